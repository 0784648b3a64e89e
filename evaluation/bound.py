"""Exact scores of sentences under a grammar, and the bounds they add up to."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from evaluation.measures.bootstrap import resampled_ratio
from evaluation.score import Score, digest_sentences, signature
from grammar.conditioning import LengthRange
from grammar.errors import InputError
from grammar.pcfg import PCFG


def sentence_records(
    pcfg: PCFG,
    sentences: Sequence[Sequence[str]],
    *,
    lengths: LengthRange | None,
    causal: bool = True,
    masked: bool = True,
) -> list[dict[str, Any]]:
    """One record a sentence: ``tokens``, ``possible`` and, in nats, what was asked for.

    ``logprob`` (negative), ``surprisal`` per token (positive) and ``stop_surprisal`` for causal scores,
    ``masked_logprob`` per token for masked ones. An infinite value is written as None.
    """
    records: list[dict[str, Any]] = [{"tokens": list(s), "possible": True} for s in sentences]
    if causal:
        for record, row in zip(records, pcfg.exact.causal_log_probs(sentences, lengths), strict=True):
            record["possible"] = bool(np.isfinite(row).all())
            record["logprob"] = _finite(float(row.sum()))
            record["surprisal"] = [_finite(-x) for x in row[:-1].tolist()]
            record["stop_surprisal"] = _finite(-float(row[-1]))
    if masked:
        for record, row in zip(records, pcfg.exact.masked_log_probs(sentences), strict=True):
            record["possible"] = record["possible"] and bool(np.isfinite(row).all())
            record["masked_logprob"] = [_finite(x) for x in row.tolist()]
    return records


def bound_records(
    pcfg: PCFG, records: Sequence[dict[str, Any]], *, lengths: LengthRange | None, seed: int = 0
) -> list[Score]:
    """``causal_bound`` (perplexity, end of sentence counted) and ``masked_bound`` (pseudo-perplexity).

    Over the possible sentences; the others are counted in the signature.

    Raises:
        InputError: the grammar can make none of the sentences.
    """
    kept = [record for record in records if record["possible"]]
    if not kept:
        raise InputError(f"the grammar can make none of the {len(records)} sentences, so there is no bound")
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
