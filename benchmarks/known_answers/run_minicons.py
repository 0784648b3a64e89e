"""minicons: causal and masked scorers; scores of tokens are added, and the beginning token is not counted.

python benchmarks/known_answers/run_minicons.py
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from measured import Kit, Measured, main
from minicons import scorer

CAUSAL = (("gpt2", "words-1"), ("llama", "words-1"), ("gpt2-pairs", "pairs"), ("gpt2-pieces", "pieces"))
OPTIONS: tuple[dict[str, bool], ...] = ({}, {"bos_token": True}, {"bos_token": True, "eos_token": True})


def measure(kit: Kit) -> Iterator[Measured]:
    for twin, text in CAUSAL:
        model = scorer.IncrementalLMScorer(kit.twin(twin), "cpu")
        for options in OPTIONS:
            tokens = model.token_score(kit.lines(text), **options)
            scored = [value for sentence in tokens for _, value in sentence[1:]]  # the first has no score but 0
            call = f"token_score({', '.join(options)})"
            yield Measured(call, twin, text, math.exp(-sum(scored) / len(scored)))
    for twin, text in (("bert-words", "masked-words"), ("bert-pieces", "masked-pieces")):
        masked = scorer.MaskedLMScorer(kit.twin(twin), "cpu")
        for metric in ("original", "within_word_l2r"):
            tokens = masked.token_score(kit.lines(text), PLL_metric=metric)
            values = [value for sentence in tokens for _, value in sentence]
            yield Measured(f"token_score, {metric}", twin, text, math.exp(-sum(values) / len(values)))
            means = masked.sequence_score(kit.lines(text), PLL_metric=metric)
            yield Measured(f"sequence_score, {metric}, exp of the mean", twin, text, math.exp(-sum(means) / len(means)))


if __name__ == "__main__":
    main("minicons transformers", measure)
