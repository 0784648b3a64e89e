"""The truth as a model of other programs: a scorer as minicons has them, and a model of lm-evaluation-harness.

Both read texts of words between spaces. Every word has a probability, the first too, since the truth knows how
sentences begin. What the truth cannot make has log probability -inf, from the first impossible word on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from truesource.grammar.conditioning import LengthRange
from truesource.grammar.inference.batch import Distributions
from truesource.grammar.inference.distributions import next_token_distributions
from truesource.grammar.support.arrays import FloatArray, IntArray
from truesource.grammar.support.errors import InputError
from truesource.grammar.truth import Truth

END = "<eos>"  #: of a text
MOST_WORDS = 256  #: generated words if a request sets no limit


class ScoredWords(NamedTuple):
    """Scores at each position of a text, its end last: log probabilities, nats, and ranks, 1 the most probable."""

    log_prob: FloatArray  #: (n+1,)
    rank: IntArray  #: (n+1,)


def scored_words(
    truth: Truth, sentences: Sequence[Sequence[str]], lengths: LengthRange | None = None
) -> list[ScoredWords]:
    """Return the exact log probability and the rank of each word and of the end of each sentence.

    Raises:
        InputError: a sentence has no words, or no sentence of the truth has such a length.
    """
    scores = [ScoredWords(np.full(len(s) + 1, -np.inf), np.zeros(len(s) + 1, dtype=np.int64)) for s in sentences]

    def keep(block: Distributions) -> None:
        columns = np.maximum(block.observed, 0)[:, None]
        observed_p = np.where(block.observed[:, None] < 0, 0.0, np.take_along_axis(block.probability, columns, axis=1))
        rank = 1 + (block.probability > observed_p).sum(axis=1)
        for row, members in enumerate(block.members):
            for member in members:
                with np.errstate(divide="ignore"):
                    scores[member].log_prob[block.position] = np.log(observed_p[row, 0])
                scores[member].rank[block.position] = rank[row]

    for _ in next_token_distributions(truth.exact, sentences, keep, lengths):
        pass
    return scores


class TruthScorer:
    """A truth with the methods of a scorer of minicons, for the same experiment on the exact probabilities.

    Args:
        truth: the grammar or process.
        lengths: condition on the number of words of whole sentences.

    With ``eos_token=True`` the end of a text is scored too, otherwise a text is the beginning of a sentence.
    """

    def __init__(self, truth: Truth, lengths: LengthRange | None = None) -> None:
        self._truth = truth
        self._lengths = lengths

    def sequence_score(
        self,
        batch: str | Sequence[str],
        reduction: Callable[[Any], Any] = lambda x: x.mean(0).item(),
        prob: bool = False,
        base_two: bool = False,
        *,
        eos_token: bool = False,
        **ignored: Any,
    ) -> list[Any]:
        """Return a number for each text: ``reduction`` of the log probabilities of its words, a tensor (n,), nats.

        Raises:
            InputError: a text has no words.
        """
        return self.conditional_score([""] * len(_texts(batch)), batch, " ", reduction, prob, base_two, eos_token)

    def conditional_score(
        self,
        prefix: str | Sequence[str],
        stimuli: str | Sequence[str],
        separator: str = " ",
        reduction: Callable[[Any], Any] = lambda x: x.mean(0).item(),
        prob: bool = False,
        base_two: bool = False,
        eos_token: bool = False,
        **ignored: Any,
    ) -> list[Any]:
        """Return a number for each stimulus given its prefix: ``reduction`` of the log probabilities of its words.

        Raises:
            InputError: there are more or fewer stimuli than prefixes, or a stimulus has no words.
        """
        import torch

        before, after = _texts(prefix), _texts(stimuli)
        if len(before) != len(after):
            raise InputError(f"there are {len(before)} prefixes and {len(after)} stimuli; give as many of both")
        pairs = [
            (first.split(), f"{first}{separator}{second}".split()) for first, second in zip(before, after, strict=True)
        ]
        scored = scored_words(self._truth, [whole for _, whole in pairs], self._lengths)
        rows = [
            row.log_prob[len(first) : len(whole) + eos_token] for row, (first, whole) in zip(scored, pairs, strict=True)
        ]
        return [reduction(torch.from_numpy(_as_asked(row, False, prob, base_two))) for row in rows]

    def token_score(
        self,
        batch: str | Sequence[str],
        surprisal: bool = False,
        prob: bool = False,
        base_two: bool = False,
        rank: bool = False,
        *,
        eos_token: bool = False,
        **ignored: Any,
    ) -> list[list[tuple[Any, ...]]]:
        """Return the words of each text with their log probabilities, nats, and their ranks if requested.

        Raises:
            InputError: a text has no words.
        """
        texts = [text.split() for text in _texts(batch)]
        rows: list[list[tuple[Any, ...]]] = []
        for text, row in zip(texts, scored_words(self._truth, texts, self._lengths), strict=True):
            words = [*text, END][: len(text) + eos_token]
            scores = _as_asked(row.log_prob, surprisal, prob, base_two).tolist()
            columns = (words, scores, row.rank.tolist()) if rank else (words, scores)
            rows.append(list(zip(*columns, strict=False)))
        return rows


def _texts(batch: str | Sequence[str]) -> list[str]:
    return [batch] if isinstance(batch, str) else list(batch)


def _as_asked(log_prob: FloatArray, surprisal: bool, prob: bool, base_two: bool) -> FloatArray:
    if prob:
        return np.exp(log_prob)
    scores = log_prob / math.log(2.0) if base_two else log_prob.copy()
    return -scores if surprisal else scores


class TruthRequests:
    """The answers of a truth to requests of lm-evaluation-harness; `harness_model` makes a model of it.

    A text that ends in ``end`` is a whole sentence, another one the beginning of a sentence.

    Args:
        truth: the grammar or process.
        lengths: condition on the number of words of whole sentences.
        end: token that ends a text.
    """

    def __init__(self, truth: Truth, lengths: LengthRange | None = None, end: str = END) -> None:
        self._truth = truth
        self._lengths = lengths
        self._end = end

    def loglikelihood(self, requests: Sequence[Any], **ignored: Any) -> list[tuple[float, bool]]:
        """Return ln P(continuation | context), and whether it is the best, of each ``(context, continuation)``.

        Raises:
            InputError: a continuation begins within a word, or has no words.
        """
        return self._answers([request.args for request in requests])

    def loglikelihood_rolling(self, requests: Sequence[Any], **ignored: Any) -> list[float]:
        """Return ln P(text) of each request ``(text,)``.

        Raises:
            InputError: a text has no words.
        """
        return [log_prob for log_prob, _ in self._answers([("", request.args[0]) for request in requests])]

    def generate_until(self, requests: Sequence[Any], **ignored: Any) -> list[str]:
        """Decode each request ``(context, settings)`` greedily, to the end of the sentence.

        Raises:
            InputError: sampling is asked for, or no sentence starts with the context.
        """
        return [self._generated(*request.args) for request in requests]

    def _answers(self, pairs: Sequence[tuple[str, str]]) -> list[tuple[float, bool]]:
        cut = [self._cut(*pair) for pair in pairs]
        scored = scored_words(self._truth, [words for words, _, _ in cut], self._lengths)
        answers = []
        for row, (words, first, whole) in zip(scored, cut, strict=True):
            positions = slice(first, len(words) + whole)
            answers.append((float(row.log_prob[positions].sum()), bool((row.rank[positions] == 1).all())))
        return answers

    def _cut(self, context: str, continuation: str) -> tuple[list[str], int, bool]:
        """Return all words, the number of context words, and whether the sentence ends."""
        whole = bool(self._end) and continuation.rstrip().endswith(self._end)
        after = continuation.rstrip().removesuffix(self._end) if whole else continuation
        if context[-1:].strip() and after[:1].strip():
            raise InputError(f"the continuation {continuation!r} begins within a word; begin it with a space")
        words, first = f"{context}{after}".split(), len(context.split())
        if not words or (len(words) == first and not whole):
            raise InputError(f"the text {continuation!r} has no words; leave it out")
        return words, first, whole

    def _generated(self, context: str, settings: Mapping[str, Any]) -> str:
        if settings.get("do_sample") and settings.get("temperature", 1.0) != 0.0:
            raise InputError("the truth answers with the most probable words; ask without do_sample")
        until = settings.get("until") or []
        marks = [until] if isinstance(until, str) else list(until)
        words, text = context.split(), ""
        for _ in range(int(settings.get("max_gen_toks", MOST_WORDS))):
            following = self._truth.next_token(words, self._lengths)
            best = int(np.argmax(following.probability))
            if following.stop >= following.probability[best]:
                break
            words.append(following.words[best])
            text += f" {words[-1]}" if text or context[-1:].strip() else words[-1]
            if any(mark in text for mark in marks):
                return min((text.partition(mark)[0] for mark in marks), key=len)
        return text


def harness_model(truth: Truth, lengths: LengthRange | None = None, end: str = END) -> Any:
    """Return a truth as the model of ``lm_eval.simple_evaluate(model=...)``; arguments as for `TruthRequests`.

    Raises:
        InputError: lm-evaluation-harness is not installed.
    """
    try:
        from lm_eval.api.model import LM
    except ImportError:
        raise InputError(
            "this needs lm-evaluation-harness; install it with pip install 'truesource[harness]'", code="missing-extra"
        ) from None

    class HarnessTruth(TruthRequests, LM):  # type: ignore[misc]
        def __init__(self) -> None:
            LM.__init__(self)
            TruthRequests.__init__(self, truth, lengths, end)

    return HarnessTruth()
