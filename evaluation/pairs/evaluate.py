"""Preferences of a model between the sentences of pairs, compared with the truth."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
from scipy.special import expit
from typing_extensions import override

from truesource.evaluation.core.comparison import reading_part
from truesource.evaluation.core.score import Score
from truesource.evaluation.core.signature import dependence_part, signature
from truesource.evaluation.measures.bootstrap import Interval, ci_part, ends, resampled_ratios
from truesource.evaluation.pairs.odds import (
    MEASURES,
    PROPORTIONS,
    by_source,
    measures,
    model_log_odds,
    outside_vocabulary,
    pair_sums,
    preferred,
    sources,
    truth_log_odds,
)
from truesource.evaluation.pairs.pair import ALL, Pair
from truesource.generator.language_model import LanguageModel
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import BoolArray, FloatArray
from truesource.grammar.support.errors import NothingToMeasureError
from truesource.grammar.support.printable import ResultRecords
from truesource.grammar.support.settings import DEFAULT_SEED

OUTSIDE = "a word is outside the model's vocabulary"  #: why a pair is excluded
ODDS = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0, np.inf)  #: edges of ``|log odds|`` of the truth, nats
ODDS_BINS = tuple(f"{low:g}+" if high == np.inf else f"{low:g}-{high:g}" for low, high in pairwise(ODDS))
IMPOSSIBLE = "impossible"  #: the bin of pairs with a sentence that the grammar cannot make
CHOICES = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)  #: edges of the probability of a model's choice
DISTANCES = (("0", 0, 0), ("1", 1, 1), ("2", 2, 2), ("3-5", 3, 5), ("6+", 6, 10**9))


@dataclass(frozen=True, kw_only=True, repr=False)
class PairEvaluation(ResultRecords):
    """Log odds of a model and of the truth."""

    model: str
    objective: str
    pairs: list[Pair]  #: that count
    truth: FloatArray  #: (P,) nats; infinite where the grammar cannot make one side
    odds: FloatArray  #: (P,) of the model; infinite if it cannot make one side, NaN if it can make neither
    left_out: dict[str, int]  #: pairs that do not count, by reason
    parts: dict[str, object]  #: of the signature
    seed: int

    @property
    def phenomena(self) -> list[str]:
        """Phenomena of the pairs that count, in their order."""
        return list(dict.fromkeys(pair.phenomenon for pair in self.pairs))

    def scores(self) -> list[tuple[dict[str, str], Score]]:
        """Return every number, with its phenomenon and group.

        By phenomenon, and for all together: the measures and counts; accuracy by stratum, and by ``|log odds|`` of the
        truth; the mean log odds of model and truth in each of these bins; and the truth's probability of the model's
        choices, by their probability.
        """
        scores: list[tuple[dict[str, str], Score]] = []
        unigram = [np.nan if pair.unigram_log_odds is None else pair.unigram_log_odds for pair in self.pairs]
        sums = pair_sums(self.truth, self.odds, np.array(unigram, dtype=float))
        names = np.array([pair.phenomenon for pair in self.pairs])
        for phenomenon in (ALL, *self.phenomena):
            of = {"phenomenon": phenomenon}
            mask = np.ones(len(names), dtype=bool) if phenomenon == ALL else names == phenomenon
            scores += self._measured(of, self._grouped(sums, mask), MEASURES)
            scores += [(of, Score(name, n, signature({**self.parts, **of}))) for name, n in self._counts(mask).items()]
            scores += self._binned(of, sums, mask)
            if phenomenon != ALL:
                for (by, group), member in self._strata(mask).items():
                    at = {**of, "by": by, "group": group}
                    scores += self._measured(at, self._grouped(sums, member), ("accuracy",))
                    scores.append((at, Score("pairs", int(member.sum()), signature({**self.parts, **at}))))
        return scores

    @override
    def as_scores(self) -> list[Score]:
        head = {"model": self.model, "objective": self.objective}
        return [score.at(**head, **of) for of, score in self.scores()]

    def points(self) -> list[dict[str, str | float | None]]:
        """Return log odds of every pair that counts, nats, sides as in the pairs; null where infinite or unknown."""
        return [
            {"phenomenon": pair.phenomenon, "truth": _finite(x), "model": _finite(y)}
            for pair, x, y in zip(self.pairs, self.truth.tolist(), self.odds.tolist(), strict=True)
        ]

    # -- parts ----------------------------------------------------------------------------------------

    def _grouped(self, sums: FloatArray, own: BoolArray) -> FloatArray:
        return by_source(sums[own], [pair.source for pair, selected in zip(self.pairs, own, strict=True) if selected])

    def _measured(
        self, of: dict[str, str], sums: FloatArray, names: Sequence[str]
    ) -> list[tuple[dict[str, str], Score]]:
        """Return measures of the sums of some sources."""
        measured = []
        for name, value in measures(sums, names, seed=self.seed).items():
            method: Literal["wilson", "t"] = "wilson" if name in PROPORTIONS else "t"
            measured.append(self._score(of, name, value, ci_part(sources(sums, name), self.seed, method=method)))
        return measured

    def _score(self, of: dict[str, str], name: str, value: Interval, ci: str) -> tuple[dict[str, str], Score]:
        return of, Score(name, value.value, signature({**self.parts, **of, "ci": ci}), value.low, value.high)

    def _counts(self, own: BoolArray) -> dict[str, int]:
        return {
            "pairs": int(own.sum()),
            "impossible": int(np.isinf(self.truth[own]).sum()),
            "impossible_for_model": int(np.isnan(self.odds[own]).sum()),
            "infinite_for_model": int(np.isinf(self.odds[own]).sum()),
        }

    def _strata(self, own: BoolArray) -> dict[tuple[str, str], BoolArray]:
        members: dict[tuple[str, str], BoolArray] = {}
        for i in np.flatnonzero(own).tolist():
            for name, value in self.pairs[i].strata.items():
                if value is not None:
                    members.setdefault((name, _group(value)), np.zeros(len(own), dtype=bool))[i] = True
        return dict(sorted(members.items()))

    def _binned(self, of: dict[str, str], sums: FloatArray, own: BoolArray) -> list[tuple[dict[str, str], Score]]:
        binned = []
        size = np.abs(self.truth)
        bins = [
            (name, own & (size >= low) & (size < high))
            for name, (low, high) in zip(ODDS_BINS, pairwise(ODDS), strict=True)
        ]
        finite = np.isfinite(self.truth) & np.isfinite(self.odds)
        toward = preferred(self.truth) * np.where(finite, self.odds, 0.0)  # a tie counts in both orders
        for name, member in [*bins, (IMPOSSIBLE, own & np.isinf(self.truth))]:
            if not member.any():
                continue
            at = {**of, "by": "log_odds", "group": name}
            binned += self._measured(at, self._grouped(sums, member), ("accuracy",))
            binned.append((at, Score("pairs", int(member.sum()), signature({**self.parts, **at}))))
            if (member & finite).any():
                means = {"truth_log_odds": size, "model_log_odds": toward}
                binned += self._means(at, means, member & finite)
        chosen = preferred(self.odds)
        confidence = np.where(chosen == 0.0, 0.5, expit(np.abs(self.odds)))
        truth = np.where(chosen == 0.0, 0.5, expit(np.where(chosen < 0.0, -self.truth, self.truth)))
        for low, high in pairwise(CHOICES):
            member = own & (confidence >= low) & ((confidence < high) | (high == 1.0))
            if member.any():
                at = {**of, "by": "choice", "group": f"{low:g}-{high:g}"}
                means = {"choice_of_model": confidence, "choice_of_truth": truth}
                binned += self._means(at, means, member)
                binned.append((at, Score("pairs", int(member.sum()), signature({**self.parts, **at}))))
        return binned

    def _means(
        self, of: dict[str, str], values: dict[str, FloatArray], member: BoolArray
    ) -> list[tuple[dict[str, str], Score]]:
        """Return means over some pairs, (P,) values by name."""
        table = np.stack([*values.values(), np.ones(len(member))], axis=1)
        sums = self._grouped(table, member)
        intervals = resampled_ratios(sums[:, :-1], np.repeat(sums[:, -1:], len(values), axis=1), seed=self.seed)
        means = table[member].mean(axis=0).tolist()
        ci = ci_part(len(sums), self.seed)
        return [self._score(of, name, Interval(means[k], *ends(*intervals[:, k])), ci) for k, name in enumerate(values)]


class NoPairsError(NothingToMeasureError):
    """No pair counts for a model."""

    def __init__(self, objective: str, pairs: int, left_out: dict[str, int]) -> None:
        reasons = "; ".join(f"{n:,} where {reason}" for reason, n in left_out.items())
        super().__init__(f"none of the {pairs:,} pairs can be compared: {reasons or 'there are none'}", "no-pairs")
        self.objective = objective
        self.left_out = left_out


def evaluate_pairs(
    model: LanguageModel,
    pairs: Sequence[Pair],
    pcfg: PCFG,
    *,
    lengths: LengthRange | None = None,
    seed: int = DEFAULT_SEED,
) -> PairEvaluation:
    """Compare a model's log odds with the log odds of the truth.

    A causal model is compared with ln P(a)/P(b), a masked one with the difference of the grammar's exact sums of
    ln P(word | all others). Pairs with a word outside the model's vocabulary are excluded, and pairs of which the
    grammar can make neither side; `PairEvaluation.left_out` counts them. If the model can make neither side, it
    prefers none.

    Args:
        model: anything that satisfies `LanguageModel`, the oracle included.
        pairs: with the log probabilities of ``pcfg``.
        pcfg: the grammar.
        lengths: the condition that the pairs were drawn under, for the signature; odds do not depend on it.
        seed: of the bootstrap.

    Raises:
        NoPairsError: no pair is left.
        InputError: a sentence is longer than the model takes.
    """
    reasons = {
        OUTSIDE: outside_vocabulary(model, pairs),
        "the grammar can make neither sentence": np.array([pair.impossible == "both" for pair in pairs], dtype=bool),
    }
    left_out, selected = {}, np.ones(len(pairs), dtype=bool)
    for reason, wrong in reasons.items():
        left_out[reason] = int((selected & wrong).sum())
        selected &= ~wrong
    some = [pair for pair, keep in zip(pairs, selected, strict=True) if keep]
    if not some:
        raise NoPairsError(model.objective, len(pairs), _some(left_out))
    odds = model_log_odds(model, some)
    parts: dict[str, object] = {
        "objective": model.objective,
        "odds": {"causal": "sum", "masked": "pseudo", "any-order": "given-length"}[model.objective],
        "drawn": "none" if lengths is None else str(lengths),
        "pairs-read": len(pairs),
        "pairs": len(some),
        "data": digest_pairs(some),
        "grammar": pcfg.identity,
        **reading_part(model),
        **dependence_part(model),
    }
    return PairEvaluation(
        model=model.name,
        objective=model.objective,
        pairs=some,
        truth=truth_log_odds(some, pcfg, model),
        odds=odds,
        left_out=_some(left_out),
        parts=parts,
        seed=seed,
    )


def digest_pairs(pairs: Sequence[Pair]) -> str:
    """Return the first 8 hexadecimal digits of SHA-256 over phenomenon and sentences, a pair a line."""
    sha = hashlib.sha256()
    for pair in pairs:
        sha.update(f"{pair.phenomenon}\t{' '.join(pair.a)}\t{' '.join(pair.b)}\n".encode())
    return sha.hexdigest()[:8]


def _some(counts: dict[str, int]) -> dict[str, int]:
    return {reason: n for reason, n in counts.items() if n}


def _group(value: str | int | bool) -> str:
    """Return a stratum as text; whole numbers in a few ranges."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return next((name for name, low, high in DISTANCES if low <= value <= high), str(value))
    return value


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None
