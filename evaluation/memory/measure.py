"""Memorised or learned: the training sentences of a model against fresh ones, by exact likelihood ratios.

The ratio of a sentence x is r(x) = log2 q(x) - log2 p(x), in bits, of the model q and the truth p. A learner that knows
only the language gives training sentences the same ratios as fresh ones. What a training sentence has above the mean of
the fresh ones is memorised (Morris et al. 2025, with the exact truth in place of their reference model). How well the
ratio tells training sentences from fresh ones is an attack on membership (Carlini et al. 2022) whose reference is
exact, too; .5 is chance. Both count each different sentence once, and compare samples of one language, so that what the
model knows of the language, and the length and frequency of sentences, are the same on both sides.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

import numpy as np
from typing_extensions import override

from truesource.evaluation.core.comparison import score_both
from truesource.evaluation.core.score import Score, keyed
from truesource.evaluation.core.setting import Setting
from truesource.evaluation.core.signature import digest_sentences, signature
from truesource.evaluation.measures.bootstrap import (
    DRAWN,
    Draws,
    Interval,
    ci_part,
    ends,
    resampled_times,
    studentised,
    wilson,
)
from truesource.generator.language_model import LanguageModel, check_sentences
from truesource.grammar.support.arrays import FloatArray, Int32Array
from truesource.grammar.support.errors import InputError, NothingToMeasureError
from truesource.grammar.support.printable import ResultRecords, too_few
from truesource.grammar.support.settings import DEFAULT_SEED

Words = Sequence[str]
GROUPS = (1, 2, 4, 16, 64)  #: fewest repetitions of a sentence in each group
TIE = 9  #: decimal places of bits: ratios that are equal in these are ties, which rounding must not break
MEASURES = ("auroc", "memorised", "memorised_fresh", "gap", "ratio_members", "ratio_fresh")
FRESH_STREAM = 1  #: added to the seed for resamples of fresh sentences, which are drawn independently


@dataclass(frozen=True, eq=False)
class Ratios:
    """Ratios of the different sentences of a text, N of which both sides can make."""

    values: FloatArray  #: (N,) log2 q - log2 p, bits
    sentences: Sequence[tuple[str, ...]] = field(repr=False)  #: (N,)
    different: Sequence[tuple[str, ...]] = field(repr=False)  #: all different sentences, in the order of the text
    impossible_model: Int32Array  #: numbers of sentences that the model cannot make
    impossible_truth: Int32Array  #: numbers of sentences that the truth cannot make
    parts: Mapping[str, object] = field(repr=False)  #: of signatures

    @property
    def excluded(self) -> int:
        """Number of different sentences excluded."""
        return len(self.different) - len(self.values)


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Memorisation(ResultRecords):
    """Result of `memory` for one model."""

    model: str
    objective: str
    scores: dict[str, Score]  #: `MEASURES`, and ``memorised_total``, bits of all training sentences together
    groups: dict[str, dict[str, Score]]  #: the same by repetitions in the training text, such as ``2-3``
    members: Ratios
    fresh: Ratios
    shared: int  #: fresh sentences that also occur in the training text
    repetitions: dict[str, int]  #: training sentences of each group that count

    @override
    def as_scores(self) -> list[Score]:
        scores = list(self.scores.values())
        for group, of_group in self.groups.items():
            scores += keyed(of_group.values(), by="repetitions", group=group)
        return keyed(scores, model=self.model, objective=self.objective)


def memory(
    model: LanguageModel,
    setting: Setting,
    trained: Sequence[Words],
    *,
    sentences: int | None = None,
    unseen: bool = False,
) -> Memorisation:
    """Measure what a model has memorised of its training sentences, compared with fresh ones.

    * ``auroc``: probability that a training sentence has a larger ratio than a fresh one, ties counted half.
    * ``memorised``: mean over training sentences of max(0, r - mean r of fresh ones), bits a sentence; and
      ``memorised_total``, its sum.
    * ``memorised_fresh``: the same mean over fresh sentences: the part of ``memorised`` due to scatter.
    * ``gap``: mean ratio of training sentences less the mean of fresh ones; 0 on average without memorisation.
    * ``ratio_members`` and ``ratio_fresh``: these means.

    Args:
        model: causal, or masked: the ratios are then of pseudo-likelihoods.
        setting: the fresh sentences, and the truth. Every position counts, whatever the frame.
        trained: all sentences that the model was trained on, repeated ones as often as they occur there.
        sentences: number of training sentences to score, from the first; None: all.
        unseen: exclude fresh sentences that occur in the training text; otherwise they count on both sides.

    Raises:
        InputError: a sentence is a string, or there are no training sentences.
        NothingToMeasureError: no fresh or no training sentence is left that both sides can make.
    """
    check_sentences(trained)
    if not len(trained):
        raise InputError("there are no training sentences to measure the memory of; name a split that has some")
    times = Counter(map(tuple, trained))
    fresh_given = list(dict.fromkeys(map(tuple, setting.sentences)))
    shared = sum(sentence in times for sentence in fresh_given)
    if unseen:
        fresh_given = [sentence for sentence in fresh_given if sentence not in times]
        if not fresh_given:
            raise NothingToMeasureError("all fresh sentences also occur in the training text", "no-fresh-sentence")
    fresh = ratios(model, setting, fresh_given)
    members = ratios(model, setting, list(dict.fromkeys(map(tuple, trained[:sentences]))))
    parts = {
        **{key: value for key, value in fresh.parts.items() if key not in ("tokens", "unit")},
        "sentences": len(fresh.values),
        "excluded": fresh.excluded,
        "members": _members(members.sentences),
        **({"fresh": "unseen"} if unseen else {}),
    }
    scores = _scores(members.values, fresh.values, parts, setting.seed)
    where = np.searchsorted(GROUPS, [times[sentence] for sentence in members.sentences], side="right") - 1
    groups = {}
    for number in np.unique(where).tolist():
        name = group_name(number)
        group = [sentence for sentence, at in zip(members.sentences, where, strict=True) if at == number]
        of_group = {**parts, "members": _members(group), "by": "repetitions", "group": name}
        groups[name] = _scores(members.values[where == number], fresh.values, of_group, setting.seed)
    return Memorisation(
        model=model.name,
        objective=model.objective,
        scores=scores,
        groups=groups,
        members=members,
        fresh=fresh,
        shared=shared,
        repetitions={group_name(number): int((where == number).sum()) for number in np.unique(where).tolist()},
    )


def _members(sentences: Sequence[Words]) -> str:
    """Return the part of a signature."""
    return f"{len(sentences)}/{digest_sentences(sentences)}"


def group_name(number: int) -> str:
    """Return the name of one of `GROUPS`, such as ``1``, ``2-3`` or ``64+``."""
    low = GROUPS[number]
    if number == len(GROUPS) - 1:
        return f"{low}+"
    high = GROUPS[number + 1] - 1
    return f"{low}" if high == low else f"{low}-{high}"


def ratios(model: LanguageModel, setting: Setting, sentences: Sequence[tuple[str, ...]]) -> Ratios:
    """Return the ratios of some sentences by the truth of a setting; those that one side cannot make are excluded.

    The truth excludes nothing that a text excludes, so that both texts are measured by one truth.

    Raises:
        NothingToCompareError: nothing is left.
    """
    excluded = None if setting.excluded is None else replace(setting.excluded, sentences=(), exact=False)
    both = score_both(model, replace(setting, sentences=sentences, frame="default", excluded=excluded))
    paired = both.paired
    by_model, by_truth, _ = paired.sums()
    common = np.unique(paired.sentence).tolist()
    return Ratios(
        (by_model - by_truth) / np.log(2.0),
        [sentences[i] for i in common],
        sentences,
        paired.impossible_model,
        paired.impossible_oracle,
        both.parts,
    )


def auroc(members: FloatArray, fresh: FloatArray) -> float:
    """Return the probability that one of ``members`` (N,) is larger than one of ``fresh`` (M,), ties counted half.

    It is Mann and Whitney's U over N M. Values that differ by less than 1e-9 are ties.
    """
    return float(_placements(members, fresh, np.ones((1, len(fresh))))[0].mean())


def two_samples(members: FloatArray, fresh: FloatArray, seed: int = DEFAULT_SEED) -> dict[str, Interval]:
    """Return all `MEASURES` of two samples of ratios, with intervals over both: each is resampled, independently.

    The intervals are by `truesource.evaluation.measures.bootstrap`; if the two samples do not overlap, there is nothing
    to resample, and the ends are Wilson's, with as many trials as the smaller sample has sentences.

    Args:
        members: (N,) bits.
        fresh: (M,) bits.
        seed: of the resampling.
    """
    n, m = len(members), len(fresh)
    samples = _Samples(members, fresh)
    value, error = samples.measured(np.ones((1, n)), np.ones((1, m)))
    if too_few(min(n, m)):
        return {name: Interval(float(x)) for name, x in zip(MEASURES, value[0], strict=True)}
    one, other = _resamples(n, seed), _resamples(m, seed + FRESH_STREAM)
    some, batches = max(1, DRAWN // max(n, m)), []
    while rows := list(islice(one, some)):
        batches.append(samples.measured(np.stack(rows), np.stack(list(islice(other, len(rows))))))
    values, errors = (np.concatenate(parts) for parts in zip(*batches, strict=True))
    low, high = studentised(Draws(value[0], error[0], values, errors))
    for at, name in enumerate(MEASURES):
        if name == "auroc":
            if value[0, at] in (0.0, 1.0):
                low[at], high[at] = wilson(float(value[0, at]), min(n, m))
            low[at], high[at] = np.clip([low[at], high[at]], 0.0, 1.0)
        elif name.startswith("memorised"):
            low[at] = max(low[at], 0.0)
    return {
        name: Interval(float(x), *ends(*at))
        for name, x, at in zip(MEASURES, value[0], np.stack([low, high], axis=1), strict=True)
    }


def _resamples(n: int, seed: int) -> Iterator[FloatArray]:
    """Return how often each of ``n`` sentences is in each resample, (n,) each."""
    return (times for some in resampled_times(n, seed=seed) for times in some)


@dataclass(frozen=True, eq=False)
class _Samples:
    """Two samples of ratios, and measures of their resamples."""

    members: FloatArray  #: (N,) bits
    fresh: FloatArray  #: (M,) bits

    def measured(self, times: FloatArray, times_fresh: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return `MEASURES` and their standard errors, (R, 6), with multiplicities of sentences (R, N) and (R, M).

        Errors are of the linearised measure: mean squares of the contributions of sentences, over both samples.
        """
        n, m = len(self.members), len(self.fresh)
        above = _placements(self.members, self.fresh, times_fresh)  # of each member, the share of fresh ones below
        beyond = 1.0 - _placements(self.fresh, self.members, times)
        mean_fresh = (times_fresh @ self.fresh)[:, None] / m
        stored = np.maximum(self.members - mean_fresh, 0.0)
        scatter = np.maximum(self.fresh - mean_fresh, 0.0)
        share = (times * (self.members > mean_fresh)).sum(axis=1, keepdims=True) / n
        share_fresh = (times_fresh * (self.fresh > mean_fresh)).sum(axis=1, keepdims=True) / m
        nothing, none_fresh = np.zeros((1, n)), np.zeros((1, m))
        moved = self.fresh - mean_fresh
        added = (  # of each measure: what a member adds, what a fresh sentence adds, less constants
            (above, beyond),
            (stored, -share * moved),
            (nothing, scatter - share_fresh * moved),
            (self.members[None], -self.fresh[None]),
            (self.members[None], none_fresh),
            (nothing, self.fresh[None]),
        )
        error = np.stack([np.sqrt(_spread(times, a) + _spread(times_fresh, b)) for a, b in added], axis=1)
        means = [(times * above).sum(axis=1) / n, (times * stored).sum(axis=1) / n]
        means += [(times_fresh * scatter).sum(axis=1) / m]
        ratio = (times @ self.members) / n
        value = np.stack([*means, ratio - mean_fresh[:, 0], ratio, mean_fresh[:, 0]], axis=1)
        return value, error


def _spread(times: FloatArray, added: FloatArray) -> FloatArray:
    """Return the variance of a mean of contributions, (R,); ``added`` (R, N) or (1, N), counted ``times`` (R, N)."""
    n = times.shape[1]
    mean = (times * added).sum(axis=1, keepdims=True) / n
    return np.asarray((times * np.square(added - mean)).sum(axis=1) / n**2)


def _placements(values: FloatArray, among: FloatArray, times: FloatArray) -> FloatArray:
    """Return share of ``among`` (M,), counted ``times`` (R, M), below each of ``values`` (N,), ties half: (R, N)."""
    values, among = np.round(values, TIE), np.round(among, TIE)
    order = np.argsort(among, kind="stable")
    ranked = among[order]
    sums = np.concatenate([np.zeros((len(times), 1)), np.cumsum(times[:, order], axis=1)], axis=1)
    below, upto = (np.searchsorted(ranked, values, side=side) for side in ("left", "right"))
    return np.asarray((sums[:, below] + sums[:, upto]) / (2.0 * sums[:, -1:]))


def _scores(members: FloatArray, fresh: FloatArray, parts: Mapping[str, object], seed: int) -> dict[str, Score]:
    """Return the measures of two samples with their signatures, and the total."""
    intervals = two_samples(members, fresh, seed)
    total = Interval(*(None if x is None else x * len(members) for x in intervals["memorised"]))  # type: ignore[arg-type]
    signed = {**parts, "ci": ci_part(min(len(members), len(fresh)), seed)}
    scores = {}
    for name, interval in {**intervals, "memorised_total": total}.items():
        unit = {"auroc": "probability", "memorised_total": "bits"}.get(name, "bits/sentence")
        scores[name] = Score(name, interval.value, signature({**signed, "unit": unit}), interval.low, interval.high)
    return scores


@dataclass(frozen=True)
class RepeatedText:
    """A training text in which known sentences occur a known number of times."""

    sentences: list[list[str]] = field(repr=False)  #: shuffled
    parts: dict[int, list[list[str]]] = field(repr=False)  #: different sentences, by their number of occurrences


def repeated(
    sentences: Sequence[Words], times: Sequence[int] = (1, 4, 16, 64), seed: int = DEFAULT_SEED
) -> RepeatedText:
    """Return a training text to measure memory on: equal parts of the sentences, each repeated another number of times.

    Which sentences are repeated how often is drawn, so that the parts differ in nothing else.

    Args:
        sentences: of which each different one is used once; the rest after equal parts is excluded.
        times: numbers of repetitions, different, 1 or more.
        seed: of the parts and of the order.

    Raises:
        InputError: numbers of repetitions are the same or below 1, or there are fewer sentences than these.
    """
    check_sentences(sentences)
    if not len(times) or min(times) < 1 or len(set(times)) < len(times):
        raise InputError(f"repetitions are different whole numbers from 1 on, not {', '.join(map(str, times))}")
    different = [list(sentence) for sentence in dict.fromkeys(map(tuple, sentences))]
    size = len(different) // len(times)
    if not size:
        raise InputError(f"{len(different)} different sentences are too few for {len(times)} parts; give more")
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(different)).tolist()
    parts = {n: [different[i] for i in order[at * size : (at + 1) * size]] for at, n in enumerate(times)}
    text = [sentence for n, part in parts.items() for sentence in part for _ in range(n)]
    return RepeatedText([text[i] for i in rng.permutation(len(text)).tolist()], parts)
