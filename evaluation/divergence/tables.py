"""Tables of a divergence: means over groups of contexts, and parts of groups of next events."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from truesource.evaluation.core.score import Score
from truesource.evaluation.core.signature import signature
from truesource.evaluation.divergence.contexts import Contexts, DividedDivergence, GroupMasses
from truesource.evaluation.measures.bootstrap import ends, resampled_ratios
from truesource.grammar.support.arrays import FloatArray, IntArray
from truesource.grammar.support.printable import few_code, too_few

MEASURES = ("kl", "js", "tv", "entropy_truth", "agreement")
SHARES = ("tv", "agreement")  #: measures that are at most 1


@dataclass(frozen=True)
class BreakdownRow:
    """One row of a breakdown table."""

    group: str
    tokens: float  #: number of contexts, or of expected tokens of a group of words
    infinite: int  #: contexts in which KL(P || Q) is infinite; they are excluded from ``kl``
    scores: dict[str, Score]  #: without ``kl`` if a group has no finite value, or is never expected


def by_context(
    measured: Contexts, key: IntArray, shared: Mapping[str, object], seed: int, names: Sequence[str] = ()
) -> list[BreakdownRow]:
    """Compute means over the contexts of each value of ``key`` (T,), with intervals for enough sentences.

    Args:
        measured: all contexts.
        key: group of each context, (T,).
        shared: parts of every signature.
        seed: seed of the bootstrap.
        names: names of the groups, by key; empty: the keys are names.
    """
    values = np.stack([measured.column(name) for name in MEASURES], axis=1)
    finite = np.isfinite(values)
    keys, inverse = np.unique(key, return_inverse=True)
    row = np.cumsum(np.diff(measured.sentence, prepend=-1) != 0) - 1
    size = (int(row[-1]) + 1, len(keys), len(MEASURES))
    total, count = np.zeros(size), np.zeros(size)
    np.add.at(total, (row, inverse), np.where(finite, values, 0.0))
    np.add.at(count, (row, inverse), finite)
    contexts, infinite = np.bincount(inverse), np.bincount(inverse, ~finite[:, 0])
    intervals = resampled_ratios(total.reshape(size[0], -1), count.reshape(size[0], -1), seed=seed)
    intervals = np.clip(intervals.reshape(2, *size[1:]), 0.0, [1.0 if name in SHARES else np.inf for name in MEASURES])
    rows = []
    for g, value in enumerate([names[key] for key in keys] if names else keys.tolist()):
        scores = {}
        for m, name in enumerate(MEASURES):
            if n := count[:, g, m].sum():
                parts = {
                    **shared,
                    "group": value,
                    "contexts": int(n),
                    "estimator": "rao-blackwell",
                    "unit": "share" if name in SHARES else "nats/token",
                    **few(count[:, g, m]),
                }
                mean = total[:, g, m].sum() / n
                scores[name] = Score(name, float(mean), signature(parts), *ends(*intervals[:, g, m]))
        rows.append(BreakdownRow(str(value), float(contexts[g]), int(infinite[g]), scores))
    return rows


def by_group(divided: DividedDivergence, shared: Mapping[str, object], seed: int) -> list[BreakdownRow]:
    """Compute the mean of ln P - ln Q over tokens of each group of words, under the truth, with intervals.

    Groups that neither side ever expects are excluded. Their means times their tokens sum to KL(P || Q).
    """
    intervals = resampled_ratios(divided.part, divided.share, seed=seed)
    if divided.of_contexts:
        intervals = np.maximum(intervals, 0.0)
    masses = [] if divided.masses is None else _masses(divided, divided.masses, shared, seed)
    rows = []
    for g, name in enumerate(divided.names):
        tokens = float(divided.tokens[g])
        if tokens == 0.0 and not (masses and masses[g]["model_mass"].value > 0.0):
            continue
        scores = {}
        finite = float(divided.share[:, g].sum())
        if finite > 0.0:
            parts = {**shared, "group": name, "tokens": f"{finite:.6g}", "estimator": "rao-blackwell"}
            parts |= {"unit": "nats/token"}
            parts |= few(divided.share[:, g])
            mean = float(divided.part[:, g].sum() / finite)
            scores["kl"] = Score("kl", mean, signature(parts), *ends(*intervals[:, g]))
        scores |= masses[g] if masses else {}
        rows.append(BreakdownRow(name, tokens, int(divided.infinite[g]), scores))
    return rows


def _masses(
    divided: DividedDivergence, masses: GroupMasses, shared: Mapping[str, object], seed: int
) -> list[dict[str, Score]]:
    """Return means over all contexts for each group: its part of KL(P || Q), if finite, and its P and Q."""
    every = np.broadcast_to(masses.contexts[:, None], masses.truth.shape)
    number = int(masses.contexts.sum())
    columns = {
        "kl_part": (divided.part, "nats/token", (-math.inf, math.inf)),
        "true_mass": (masses.truth, "share", (0.0, 1.0)),
        "model_mass": (masses.model, "share", (0.0, 1.0)),
    }
    groups: list[dict[str, Score]] = [{} for _ in divided.names]
    for name, (total, unit, (low, high)) in columns.items():
        intervals = np.clip(resampled_ratios(total, every, seed=seed), low, high)
        parts = {**shared, "contexts": number, "estimator": "rao-blackwell", "unit": unit, **few(masses.contexts)}
        for g, group in enumerate(divided.names):
            if name != "kl_part" or not divided.infinite[g]:
                value = float(total[:, g].sum() / number)
                groups[g][name] = Score(name, value, signature({**parts, "group": group}), *ends(*intervals[:, g]))
    return groups


def few(count: FloatArray) -> dict[str, object]:
    """Return the part of a signature that explains a missing interval, if too few sentences (N,) count."""
    sentences = int((count > 0.0).sum())
    return {"ci": f"none/{few_code()}"} if too_few(sentences) else {}
