"""Exact scores of sentences under a grammar, as records and as columns of their tokens."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal, NotRequired, Protocol

import numpy as np
from numpy.typing import DTypeLike
from typing_extensions import TypedDict

from truesource.evaluation.core.any_order import PatternCharts
from truesource.evaluation.core.exclusion import Exclusion
from truesource.evaluation.core.oracle import Oracle
from truesource.evaluation.core.transformed import require_tokens
from truesource.generator.abilities import require
from truesource.generator.language_model import END, check_sentences
from truesource.generator.objectives import Objective
from truesource.generator.plan import Transform, order
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.diagnostics import require_endings
from truesource.grammar.inference.batch import Distributions
from truesource.grammar.inference.distributions import next_token_distributions
from truesource.grammar.inference.exact import Variant
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import FloatArray
from truesource.grammar.support.errors import InputError
from truesource.grammar.truth import Truth

GivenLength = Literal["masked_logprob", "any_order_logprob"]
MOST_PROBABILITIES = 5_000_000  #: of full distributions in records, which are for small inputs
#: name in records of the scores of each token, by objective, where the number of words is given
GIVEN_LENGTH: dict[Objective, GivenLength] = {"masked": "masked_logprob", "any-order": "any_order_logprob"}


class SentenceRecord(TypedDict):
    """Exact scores of a sentence in nats, see `sentence_records`; infinite values are None."""

    tokens: list[str]
    possible: bool
    logprob: NotRequired[float | None]
    surprisal: NotRequired[list[float | None]]
    stop_surprisal: NotRequired[float | None]
    masked_logprob: NotRequired[list[float | None]]
    any_order_logprob: NotRequired[list[float | None]]
    next: NotRequired[list[dict[str, dict[str, float] | float] | None]]


class DeviceCharts(PatternCharts, Protocol):
    """Exact scores of a grammar that are computed on a device, see `truesource.lmtrain.accelerated`."""

    def causal_log_probs(self, sentences: Sequence[Sequence[str]]) -> list[FloatArray]:
        """Return ln P(token | left context) of each sentence, (n+1,) nats with the end, without a length condition."""

    def masked_log_probs(self, sentences: Sequence[Sequence[str]]) -> list[FloatArray]:
        """Return ln P(word | all other words) of each sentence, (n,) nats."""


def sentence_records(
    truth: Truth,
    sentences: Sequence[Sequence[str]],
    *,
    lengths: LengthRange | None,
    causal: bool = True,
    masked: bool = True,
    any_order: bool = False,
    distributions: bool = False,
    dtype: DTypeLike = np.float64,
    excluded: Exclusion | None = None,
    variant: Variant = "default",
    transform: Transform | None = None,
    charts: Callable[[PCFG], DeviceCharts] | None = None,
) -> list[SentenceRecord]:
    """Return one record a sentence: ``tokens``, ``possible`` and, in nats, the requested scores.

    Causal scores are ``logprob`` (negative), ``surprisal`` per token (positive) and ``stop_surprisal``, masked scores
    ``masked_logprob`` per token, and scores in random orders ``any_order_logprob``. An infinite
    value is written as None. With ``distributions``, ``next`` has for each position, the end included, P(word | left
    context) of every word in ``words`` and P(end | left context) in ``stop``; None if the context is impossible.
    If ``excluded`` has exactly what the sentences exclude, the scores are of P(. | not among it).
    ``variant="paper"`` computes masked scores as Jumelet & Zuidema (2023) print them, see
    `truesource.grammar.inference.exact.Exact.masked_log_probs`. With the ``transform`` of the text, causal scores are
    ``logprob`` alone, see `truesource.evaluation.core.oracle.Oracle`. With ``charts``, which makes the charts
    of a grammar on a device, masked scores, scores in any order and causal scores without ``lengths`` in float64 come
    from these; no number differs by more than rounding.

    Raises:
        InputError: a sentence is a string or has no tokens, causal scores are requested without ``lengths`` of a
            grammar whose derivations may not end, or there are more than 5 million probabilities, or sentences are
            excluded and distributions or the published variant are requested, or distributions of transformed text;
            the published variant is requested with charts on a device.
    """
    check_sentences(sentences)
    if charts is not None and variant != "default":
        raise InputError("masked scores as published are computed on the CPU; omit the device")
    device_charts = None if charts is None else charts(require(truth, "masked", "charts on a device"))
    corrected = excluded if excluded is not None and excluded.exact else None
    if corrected is not None:
        _check_excluding(distributions, variant)
    if distributions:
        require_tokens(transform, "causal", "a distribution over the next word")
    records: list[SentenceRecord] = [{"tokens": list(s), "possible": True} for s in sentences]
    text = sentences
    if transform is not None:
        sentences = [transform.undo(sentence) for sentence in sentences]
    if causal:
        if lengths is None:
            require_endings(truth)
        there = device_charts if lengths is None and np.dtype(dtype) == np.float64 else None
        exact = truth.exact
        rows = there.causal_log_probs(sentences) if there else exact.causal_log_probs(sentences, lengths, dtype=dtype)
        if corrected is not None:
            rows = corrected.causal(rows, sentences, tuple)
        for record, row in zip(records, rows, strict=True):
            record["possible"] = bool(np.isfinite(row).all())
            record["logprob"] = _finite(float(row.sum()))
            if transform is None:
                record["surprisal"] = [_surprisal(x) for x in row[:-1].tolist()]
                record["stop_surprisal"] = _surprisal(float(row[-1]))
    if masked:
        pcfg = require(truth, "masked", "a masked bound")
        here = partial(pcfg.exact.masked_log_probs, variant=variant, dtype=dtype)
        rows = (device_charts.masked_log_probs if device_charts else here)(sentences)
        if corrected is not None:
            rows = corrected.masked(rows, sentences, pcfg, tuple)
        if transform is not None:
            rows = [row[order(transform, len(row))] for row in rows]
        _add_given_length(records, rows, "masked_logprob")
    if any_order:
        oracle = Oracle(truth, "any-order", excluded=corrected, transform=transform, charts=device_charts)
        _add_given_length(records, oracle.token_log_probs(text), "any_order_logprob")
    if distributions:
        for record, following in zip(records, _next(truth, sentences, lengths, dtype), strict=True):
            record["next"] = following
    return records


def _add_given_length(records: list[SentenceRecord], rows: Sequence[FloatArray], key: GivenLength) -> None:
    """Add scores that are given the length of sentences, and whether the sentences are possible."""
    for record, row in zip(records, rows, strict=True):
        record["possible"] = record["possible"] and bool(np.isfinite(row).all())
        record[key] = [_finite(x) for x in row.tolist()]


def token_columns(
    records: Sequence[SentenceRecord], first: int = 0, of: Sequence[str] | None = None
) -> dict[str, list[Any]]:
    """Return a row for each token and each end of a sentence, as columns of one length.

    Args:
        records: as `sentence_records` gives them.
        first: number of the first sentence.
        of: numbers, of ``surprisal``, ``sentence_surprisal`` (of the whole sentence, at its end) and `GIVEN_LENGTH`;
            None: all that the records have.

    Returns:
        ``sentence``, ``position`` (the last is the end of the sentence), ``token``, and the numbers
        in nats; None if the grammar cannot make the sentence, or the number is undefined.
    """
    if of is None:
        head = {*records[0]} if records else set()
        causal = "surprisal" if "surprisal" in head else "sentence_surprisal" if "logprob" in head else None
        of = [name for name in (causal, *GIVEN_LENGTH.values()) if name is not None and name in {causal, *head}]
    return {
        "sentence": [first + i for i, r in enumerate(records) for _ in range(len(r["tokens"]) + 1)],
        "position": [j for r in records for j in range(len(r["tokens"]) + 1)],
        "token": [token for r in records for token in (*r["tokens"], END)],
        **{name: [value for r in records for value in _of_tokens(r, name)] for name in of},
    }


def _of_tokens(record: SentenceRecord, name: str) -> list[float | None]:
    """Return a number of each token of a sentence, and of its end, nats."""
    if name == "surprisal":
        return [*record["surprisal"], record["stop_surprisal"]]
    for given_length in GIVEN_LENGTH.values():
        if name == given_length:
            return [*record[given_length], None]
    return [*(None for _ in record["tokens"]), None if record["logprob"] is None else -record["logprob"]]


def _check_excluding(distributions: bool, variant: Variant) -> None:
    """Refuse requests that cannot exclude sentences."""
    if distributions:
        raise InputError(
            "these sentences exclude the sentences of earlier splits, but full distributions do not; write them to a"
            " text file to have the distributions of the grammar"
        )
    if variant != "default":
        raise InputError(
            "the published masked variant counts derivations several times, so it cannot exclude the sentences of"
            " earlier splits; write these sentences to a text file to score them by it"
        )


def _next(
    truth: Truth, sentences: Sequence[Sequence[str]], lengths: LengthRange | None, dtype: DTypeLike
) -> list[list[dict[str, dict[str, float] | float] | None]]:
    """Return full next-token distributions as plain values."""
    size = len(truth.vocabulary) * sum(len(s) + 1 for s in sentences)
    if size > MOST_PROBABILITIES:
        raise InputError(
            f"full distributions of these sentences are {size:,} probabilities, more than {MOST_PROBABILITIES:,};"
            " ask for fewer sentences, or reduce them in Python with grammar.inference.distributions"
        )
    entries: list[list[dict[str, dict[str, float] | float] | None]] = [[None] * (len(s) + 1) for s in sentences]

    def keep(block: Distributions) -> None:
        for row, members, possible in zip(block.probability, block.members, block.possible, strict=True):
            if possible:
                *probabilities, stop = row.tolist()
                of_words = dict(zip(truth.vocabulary, probabilities, strict=True))
                entry: dict[str, dict[str, float] | float] = {"words": of_words, "stop": stop}
                for i in members:
                    entries[i][block.position] = entry

    for _ in next_token_distributions(truth.exact, sentences, keep, lengths, dtype=dtype):
        pass
    return entries


def _surprisal(log_prob: float) -> float | None:
    """Return a surprisal, at least zero: rounding can make it negative for certain words."""
    return _finite(max(0.0, -log_prob))


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
