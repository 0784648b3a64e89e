"""Exact scores of sentences under a grammar, and the bounds they add up to."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from evaluation.exclusion import Exclusion
from evaluation.measures.bootstrap import resampled_ratio
from evaluation.measures.paired import unknown_words, words_missing
from evaluation.score import Score, digest_sentences, signature
from generator.language_model import check_sentences
from grammar.conditioning import LengthRange
from grammar.errors import InputError
from grammar.inference.distributions import Distributions, next_token_distributions
from grammar.pcfg import PCFG

MOST_PROBABILITIES = 5_000_000  #: of full distributions in records, which are for small inputs


def sentence_records(
    pcfg: PCFG,
    sentences: Sequence[Sequence[str]],
    *,
    lengths: LengthRange | None,
    causal: bool = True,
    masked: bool = True,
    distributions: bool = False,
    dtype: DTypeLike = np.float64,
    excluded: Exclusion | None = None,
) -> list[dict[str, Any]]:
    """One record a sentence: ``tokens``, ``possible`` and, in nats, what was asked for.

    ``logprob`` (negative), ``surprisal`` per token (positive) and ``stop_surprisal`` for causal scores,
    ``masked_logprob`` per token for masked ones. An infinite value is written as None. With ``distributions``,
    ``next`` has for each position, the end included, P(word | left context) of every word in ``words`` and P(end |
    left context) in ``stop``; None where the context is impossible. Where ``excluded`` says exactly what the sentences
    leave out, the scores are those of P(. | not among it).

    Raises:
        InputError: a sentence is a string or has no tokens, or there are more than 5 million probabilities,
            or distributions are asked for although sentences are excluded.
    """
    check_sentences(sentences)
    corrected = excluded if excluded is not None and excluded.exact else None
    if corrected is not None and distributions:
        raise InputError(
            "these sentences leave out those of earlier splits, and full distributions do not; write them to a text"
            " file to have the distributions of the grammar"
        )
    records: list[dict[str, Any]] = [{"tokens": list(s), "possible": True} for s in sentences]
    if causal:
        rows = pcfg.exact.causal_log_probs(sentences, lengths, dtype=dtype)
        if corrected is not None:
            rows = corrected.causal(rows, sentences, tuple)
        for record, row in zip(records, rows, strict=True):
            record["possible"] = bool(np.isfinite(row).all())
            record["logprob"] = _finite(float(row.sum()))
            record["surprisal"] = [_finite(-x) for x in row[:-1].tolist()]
            record["stop_surprisal"] = _finite(-float(row[-1]))
    if masked:
        rows = pcfg.exact.masked_log_probs(sentences, dtype=dtype)
        if corrected is not None:
            rows = corrected.masked(rows, sentences, pcfg, tuple)
        for record, row in zip(records, rows, strict=True):
            record["possible"] = record["possible"] and bool(np.isfinite(row).all())
            record["masked_logprob"] = [_finite(x) for x in row.tolist()]
    if distributions:
        for record, following in zip(records, _next(pcfg, sentences, lengths, dtype), strict=True):
            record["next"] = following
    return records


def _next(
    pcfg: PCFG, sentences: Sequence[Sequence[str]], lengths: LengthRange | None, dtype: DTypeLike
) -> list[list[dict[str, Any] | None]]:
    """Full next-token distributions as plain values."""
    size = len(pcfg.terminals) * sum(len(s) + 1 for s in sentences)
    if size > MOST_PROBABILITIES:
        raise InputError(
            f"full distributions of these sentences are {size:,} probabilities, more than {MOST_PROBABILITIES:,};"
            " ask for fewer sentences, or reduce them in Python with grammar.inference.distributions"
        )
    found: list[list[dict[str, Any] | None]] = [[None] * (len(s) + 1) for s in sentences]

    def keep(block: Distributions) -> None:
        for row, members, possible in zip(block.probability, block.members, block.possible, strict=True):
            if possible:
                *probabilities, stop = row.tolist()
                entry = {"words": dict(zip(pcfg.terminals, probabilities, strict=True)), "stop": stop}
                for i in members:
                    found[i][block.position] = entry

    for _ in next_token_distributions(pcfg.exact, sentences, keep, lengths, dtype=dtype):
        pass
    return found


def bound_records(
    pcfg: PCFG,
    records: Sequence[dict[str, Any]],
    *,
    lengths: LengthRange | None,
    seed: int = 0,
    excluded: Exclusion | None = None,
) -> list[Score]:
    """``causal_bound`` (perplexity, end of sentence counted) and ``masked_bound`` (pseudo-perplexity).

    Over the possible sentences; the others are counted in the signature.

    Raises:
        InputError: the grammar can make none of the sentences.
    """
    kept = [record for record in records if record["possible"]]
    if not kept:
        unknown = unknown_words(pcfg, (record["tokens"] for record in records))
        why = f"; {words_missing(unknown)}" if unknown else ""
        raise InputError(f"the grammar can make none of the {len(records)} sentences, so there is no bound{why}")
    found = []
    for name, key in (("causal_bound", "surprisal"), ("masked_bound", "masked_logprob")):
        if key not in kept[0]:
            continue
        causal = key == "surprisal"
        total = np.array([-r["logprob"] if causal else -math.fsum(r[key]) for r in kept])
        count = np.array([len(r["tokens"]) + causal for r in kept], dtype=np.float64)
        low, high = np.exp(resampled_ratio(total, count, seed=seed))
        parts = {
            "given": (lengths or "none") if causal else "length",
            **({} if excluded is None else {"disjoint": excluded.part}),
            "eos": "in" if causal else "out",
            "unit": "nats/token",
            "sentences": len(kept),
            "impossible": len(records) - len(kept),
            "tokens": int(count.sum()),
            "data": digest_sentences([r["tokens"] for r in records]),
            "grammar": pcfg.digest[:8],
        }
        value = float(np.exp(total.sum() / count.sum()))
        found.append(Score(name, value, signature(parts), float(low), float(high)))
    return found


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
