"""inspect: its scorer of perplexity, given the exact log probabilities of prompts as its providers return them.

python benchmarks/known_answers/run_inspect.py

The scorer needs log probabilities of the prompt, which its provider of transformers does not return; servers such as
vLLM return none for the first token.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from inspect_ai.model import ChatCompletionChoice, ChatMessageAssistant, Logprob, Logprobs, ModelName, ModelOutput
from inspect_ai.scorer import SampleScore, Target, perplexity, perplexity_per_seq, perplexity_per_token
from inspect_ai.solver import TaskState
from measured import Kit, Measured, main


def scores_of(kit: Kit, *, first: bool) -> list[SampleScore]:
    """Return the scores of the sentences; without the first token, as of a server."""
    scorer, scores = perplexity(), []
    for number, sentence in enumerate(kit.answers.texts["words-1"].sentences):
        pairs = [*zip(sentence.tokens, sentence.log_probs, strict=True)][0 if first else 1 : -1]
        content = [Logprob(token=token, logprob=value) for token, value in pairs]
        choice = ChatCompletionChoice(
            message=ChatMessageAssistant(content=""), prompt_logprobs=Logprobs(content=content)
        )
        output = ModelOutput(model="known", choices=[choice])
        state = TaskState(
            model=ModelName("known/answers"), sample_id=number, epoch=1, input="", messages=[], output=output
        )
        score = asyncio.run(scorer(state, Target("")))
        assert score is not None
        scores.append(SampleScore(score=score, sample_id=number))
    return scores


def measure(kit: Kit) -> Iterator[Measured]:
    for first in (True, False):
        scores = scores_of(kit, first=first)
        name = "all tokens" if first else "without the first token"
        for label, metric in (("per_token", perplexity_per_token), ("per_seq", perplexity_per_seq)):
            yield Measured(f"{label}, {name}", "(answers)", "words-1", float(metric()(scores)))


if __name__ == "__main__":
    main("inspect_ai", measure)
