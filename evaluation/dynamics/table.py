"""Results about a model in training: learning curves, milestones of groups, and findings in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import comb
from typing import NamedTuple

import numpy as np
from typing_extensions import override

from truesource.evaluation.core.oracle import UNKNOWN
from truesource.evaluation.core.score import Key, NoScore, Score
from truesource.evaluation.core.signature import signature
from truesource.evaluation.core.windows import window_name
from truesource.evaluation.divergence.blocks import END
from truesource.evaluation.dynamics.groupings import By
from truesource.evaluation.measures.bootstrap import TAILS, ci_part
from truesource.evaluation.measures.contrast import (
    Contrast,
    SeedSums,
    bonferroni,
    difference,
    may_be_chance,
    mean_over_seeds,
)
from truesource.grammar.support.arrays import BoolArray, FloatArray, Int32Array
from truesource.grammar.support.printable import ResultRecords, few_code, listed

SMALL = 0.02  #: groups with a smaller share of the tokens are ignored in findings


@dataclass(frozen=True)
class Milestone:
    """A step with its interval.

    The interval covers the sample of sentences and the place between two
    checkpoints. It does not cover other seeds of training.
    """

    step: float | None  #: None: the curve ends above the level, or has no level
    low: float | None  #: None: no interval
    high: float | None  #: None: later than the last checkpoint, or no interval


class Crossings(NamedTuple):
    """The steps from which curves stay below a level; all inf without a level."""

    step: FloatArray  #: (...,) interpolated between two checkpoints; inf if the curve ends above
    before: FloatArray  #: (...,) step of the last checkpoint that is not below; of the first one if all are below
    at: FloatArray  #: (...,) step of the checkpoint after it; inf if the curve ends above


def stays_below(steps: Sequence[int], divergence: FloatArray, level: FloatArray) -> Crossings:
    """Find the step from which each curve stays nearer to 0 than its level.

    Between checkpoints, a curve is linear in ln(1 + step), a logarithmic axis that includes step 0.

    Args:
        steps: ascending steps, (C,).
        divergence: (..., C) nats, of either sign; NaN is never below.
        level: (...,) nats, above 0; NaN: no level.
    """
    step_numbers = np.asarray(steps, dtype=np.float64)
    x, last = np.log1p(step_numbers), len(step_numbers) - 1
    above = ~(np.abs(divergence) < level[..., None])
    from_end = np.argmax(above[..., ::-1], axis=-1)
    after = np.where(above.any(axis=-1), last + 1 - from_end, 0)
    at, before = np.minimum(after, last), np.maximum(after - 1, 0)
    upper, lower = (np.take_along_axis(divergence, i[..., None], -1)[..., 0] for i in (before, at))
    between = (after > 0) & (after <= last) & np.isfinite(upper)
    part = np.divide(np.abs(upper) - level, np.abs(upper - lower), out=np.zeros_like(lower), where=between)
    ended = after > last
    steps_at = np.where(after > 0, np.expm1(x[before] + part * (x[at] - x[before])), step_numbers[0])
    return Crossings(
        np.where(ended, np.inf, steps_at),
        np.where(np.isnan(level), np.inf, step_numbers[before]),
        np.where(ended, np.inf, step_numbers[at]),
    )


def crossings(steps: Sequence[int], divergence: FloatArray, threshold: float | None) -> Crossings:
    """Find where curves stay below ``threshold`` nats, or, if None, below half of their first value above 0.

    Args:
        steps: ascending steps, (C,).
        divergence: (..., C) nats.
        threshold: nats per token.
    """
    first = divergence[..., 0]
    half = np.where(first > 0.0, first / 2.0, np.nan)
    return stays_below(steps, divergence, half if threshold is None else np.full_like(half, threshold))


def milestones(crossed: Crossings, resampled: Crossings, there: BoolArray) -> list[Milestone]:
    """Compute milestones of G curves with 95% intervals from resampled sentences.

    An interval goes from the 2.5% quantile of the checkpoints before to the 97.5% quantile of the checkpoints after.

    Args:
        crossed: crossings of the curves, (G,).
        resampled: crossings in resamples of sentences, (R, G).
        there: True if the group occurs in the resample, (R, G); without any such resample, the interval is missing.
    """
    results = []
    for g, (step, before) in enumerate(zip(crossed.step.tolist(), crossed.before.tolist(), strict=True)):
        occurs = there[:, g]
        ends = [np.inf, np.inf]
        if np.isfinite(before) and occurs.any():
            # order statistics, since finite and infinite steps cannot be interpolated
            ends = [
                float(np.sort(side[occurs, g])[min(int(tail * occurs.sum()), occurs.sum() - 1)])
                for side, tail in zip((resampled.before, resampled.at), TAILS, strict=True)
            ]
        results.append(Milestone(*(x if np.isfinite(x) else None for x in (step, *ends))))
    return results


@dataclass(frozen=True, eq=False, kw_only=True)
class LearningCurves:
    """The curves of G groups at C checkpoints; ends of intervals are NaN for groups in too few sentences."""

    by: By
    names: tuple[str, ...]  #: (G,)
    tokens: FloatArray  #: (G,) expected tokens of each
    mean: FloatArray  #: (C, G) of ln Q - ln P, nats
    low: FloatArray  #: (C, G) lower end of the 95% interval
    high: FloatArray  #: (C, G)
    median: FloatArray  #: (C, G) of ln Q - ln P, nats
    median_ends: FloatArray  #: (2, G) 95% interval of the last row
    kl: tuple[Mapping[str, Score], ...]  #: at each checkpoint, the exact KL(P || Q) of groups that have one
    infinite: tuple[Mapping[str, int], ...]  #: at each checkpoint, contexts in which the KL of a group is infinite
    kl_tokens: Mapping[str, float]  #: number of contexts, or expected tokens of a group of words
    half: tuple[Milestone, ...]  #: (G,) stays below half of the first divergence, which is minus the mean
    threshold: tuple[Milestone, ...]  #: (G,) stays nearer to 0 than the threshold
    total: FloatArray  #: (G, N) sum of ln Q - ln P in each sentence at the last checkpoint, nats
    count: FloatArray  #: (G, N) expected tokens of each sentence
    resampled_half: Crossings  #: (R, G) half of the first divergence, in each resample


@dataclass(frozen=True)
class Line:
    """The optimal k-word predictor P_k, on the tokens of learning curves."""

    words: int  #: k
    log_ratio: float  #: mean of ln P_k - ln P over the tokens, nats
    low: float | None  #: lower end of its 95% interval; None: too few sentences
    high: float | None
    passed: Milestone  #: the step from which the model stays better

    def as_record(self) -> dict[str, object]:
        """Return plain values for JSON."""
        passed = [self.passed.step, self.passed.low, self.passed.high]
        return {"words": self.words, "value": self.log_ratio, "low": self.low, "high": self.high, "passed": passed}


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Dynamics(ResultRecords):
    """The result of `truesource.evaluation.dynamics.compare.learning_dynamics`."""

    model: str
    objective: str
    steps: tuple[int, ...]  #: (C,) steps of the checkpoints, ascending
    curves: Mapping[By, LearningCurves]
    lines: tuple[Line, ...]  #: optimal predictors that see 0, 1, 2, ... words; empty for masked models
    level: float  #: the threshold, nats per token
    contexts: int  #: number of contexts of the exact divergence; 0: not computed
    frame: str  #: which positions count, see `truesource.generator.language_model.preset_frame`
    tags: str  #: source of tags and depths, see `truesource.evaluation.dynamics.Tags`
    tokens: int
    sentences: int
    impossible_model: Int32Array  #: sentences with probability 0 under a checkpoint
    impossible_truth: Int32Array  #: sentences with probability 0 under the truth
    seed: int  #: seed of the bootstrap
    parts: Mapping[str, object]  #: parts of every signature

    @property
    def excluded(self) -> int:
        """Number of sentences with probability 0 under the truth or a checkpoint."""
        return len(np.union1d(self.impossible_model, self.impossible_truth))

    def score(self, by: By, g: int, c: int, measure: str) -> Score | None:
        """Return one value of a group at a checkpoint: ``log_ratio``, ``log_ratio_median`` or ``kl``."""
        curves = self.curves[by]
        if measure == "kl":
            return curves.kl[c].get(curves.names[g])
        if measure == "log_ratio":
            ends = _known(curves.low[c, g]), _known(curves.high[c, g])
            why = {} if ends[0] is not None else {"ci": f"none/{few_code()}"}
            signed = signature({**self._signed(by, g), "step": self.steps[c], **why})
            return Score("log_ratio", float(curves.mean[c, g]), signed, *ends)
        last = c == len(self.steps) - 1
        low, high = map(_known, curves.median_ends[:, g]) if last else (None, None)
        why = {} if low is not None else {"ci": f"none/{few_code() if last else 'last-step-only'}"}
        signed = signature({**self._signed(by, g), **self._percentile, "step": self.steps[c], **why})
        return Score("log_ratio_median", float(curves.median[c, g]), signed, low, high)

    @override
    def as_scores(self) -> list[Score | NoScore]:
        """Return a score for each checkpoint, group and measure, then the milestones, without value if not reached."""
        every: list[Score | NoScore] = []
        for by, curves in self.curves.items():
            for c, step in enumerate(self.steps):
                for g, name in enumerate(curves.names):
                    head = self._head(by, g) | {"step": step}
                    scores = [self.score(by, g, c, m) for m in ("log_ratio", "log_ratio_median", "kl")]
                    rows = [score.at(**head) for score in scores if score is not None]
                    if scores[-1] is not None:
                        rows[-1] = replace(rows[-1], keys={**rows[-1].keys, "tokens": curves.kl_tokens[name]})
                    if infinite := curves.infinite[c].get(name, 0):
                        rows[-1] = rows[-1].with_more(infinite=infinite)
                    every += rows
        for by, curves in self.curves.items():
            for g in range(len(curves.names)):
                every.append(self._milestone(by, g, "half_step", curves.half[g]))
                every.append(self._milestone(by, g, "threshold_step", curves.threshold[g], below=self.level))
        return every

    def _milestone(self, by: By, group: int, name: str, reached: Milestone, **parts: object) -> Score | NoScore:
        signed = signature(
            {
                **self._signed(by, group),
                **self._percentile,
                **({"ci": f"none/{few_code()}"} if np.isnan(self.curves[by].median_ends[0, group]) else {}),
                "unit": "steps",
                "steps": "/".join(map(str, self.steps)),
                **parts,
            }
        )
        keys = self._head(by, group)
        if reached.step is None:
            return NoScore(name, signed, reached.low, reached.high, keys)
        return Score(name, reached.step, signed, reached.low, reached.high, keys)

    def as_record(self) -> dict[str, object]:
        """Return the curves as plain lists, for figures and reports."""
        return {
            "model": self.model,
            "objective": self.objective,
            "steps": list(self.steps),
            "threshold": self.level,
            "contexts": self.contexts,
            "frame": self.frame,
            "tags": self.tags,
            "tokens": self.tokens,
            "sentences": self.sentences,
            "excluded": self.excluded,
            "signature": signature(self.parts),
            "curves": {by: _plain(curves) for by, curves in self.curves.items()},
            "lines": [line.as_record() for line in self.lines],
        }

    def _head(self, by: By, g: int) -> dict[str, Key]:
        curves = self.curves[by]
        place: dict[str, Key] = {"by": by, "group": curves.names[g], "tokens": float(curves.tokens[g])}
        return {"model": self.model, "objective": self.objective, **place}

    def _signed(self, by: By, g: int) -> dict[str, object]:
        return {**self.parts, "by": by, "group": self.curves[by].names[g]}

    @property
    def _percentile(self) -> dict[str, object]:
        """Return the method of intervals of medians and steps, which have no standard error."""
        return {"ci": ci_part(self.sentences, self.seed, method="percentile")}


def _known(x: float) -> float | None:
    return None if np.isnan(x) else float(x)


def _plain(group_curves: LearningCurves) -> dict[str, object]:
    def column(values: Sequence[Mapping[str, Score]], end: str) -> list[list[float | None]]:
        return [[getattr(row.get(name), end, None) for name in group_curves.names] for row in values]

    def known(ends: FloatArray) -> list[list[float | None]]:
        return [list(map(_known, row)) for row in ends]

    def steps(reached: Sequence[Milestone]) -> list[list[float | None]]:
        return [[m.step, m.low, m.high] for m in reached]

    return {
        "names": list(group_curves.names),
        "tokens": group_curves.tokens.tolist(),
        "mean": {"value": group_curves.mean.tolist(), "low": known(group_curves.low), "high": known(group_curves.high)},
        "median": {
            "value": group_curves.median.tolist(),
            "low": known(group_curves.median_ends)[0],
            "high": known(group_curves.median_ends)[1],
        },
        "kl": {end: column(group_curves.kl, end) for end in ("value", "low", "high")},
        "half": steps(group_curves.half),
        "reached": steps(group_curves.threshold),
    }


def findings(dynamics: Dynamics) -> list[str]:
    """Summarise in sentences: the distance of the model, its largest errors, and what it learned first.

    Groups that are small, or in too few sentences for an interval, are ignored. A difference of two groups is
    tested sentence by sentence, at 5%; for groups selected by their values, at 5% for all pairs of groups together.
    """
    sentences = []
    if (whole := dynamics.curves.get("all")) is not None:
        sentences.append(_whole(dynamics, whole))
    if (classes := dynamics.curves.get("class")) is not None and len(groups := _of_size(classes)) > 1:
        sentences += [_furthest(dynamics, classes, groups), *_order(dynamics, classes, groups)]
        sentences += _above(dynamics, classes, groups)
    for by, what in (("frequency", "word frequency"), ("depth", "depth"), ("length", "sentence length")):
        if (curves := dynamics.curves.get(by)) is not None:  # type: ignore[call-overload]
            sentences += _ends(curves, what, dynamics.seed)
    return sentences + _passed(dynamics)


def _of_size(curves: LearningCurves) -> list[int]:
    """Return groups with enough tokens and sentences."""
    enough = (curves.tokens >= SMALL * curves.tokens.sum()) & ~np.isnan(curves.low[-1])
    return np.flatnonzero(enough).tolist()


def _whole(dynamics: Dynamics, whole: LearningCurves) -> str:
    first, last = whole.mean[0, 0], whole.mean[-1, 0]
    text = (
        f"At step {dynamics.steps[-1]:,}, {dynamics.model} gives a token {_with_ends(whole, 0, last, ' nats')}"
        f" {_less(last)} than the truth gives it, on average over {dynamics.tokens:,} tokens"
    )
    if dynamics.frame != "default":
        text += f" ({left_out(dynamics.objective)} do not count)"
    if len(dynamics.steps) > 1:
        other = f" {_less(first)}" if (first > 0.0) != (last > 0.0) else ""
        text += f"; at step {dynamics.steps[0]:,} it was {abs(first):.3f}{other}"
        if (half := whole.half[0].step) is not None:
            text += f", half of which was learned by step {_step(half)}"
    return text + "."


def _passed(dynamics: Dynamics) -> list[str]:
    """Describe the optimal predictors that the model has passed, and the first that it has not."""
    if not dynamics.lines or dynamics.lines[0].low is None:
        return []
    passed = [(line, line.passed.step) for line in dynamics.lines if line.passed.step is not None]
    parts = [f"{window_name(line.words)} (from step {_step(step)} on)" for line, step in passed]
    left = next((line for line in dynamics.lines if line.passed.step is None), None)
    text = f"{dynamics.model} is better than the best predictor that sees {listed(parts)}"
    if left is None:
        return [f"{text}."]
    rest = f"not better than the best predictor that sees {window_name(left.words)}"
    return [f"{text}; it is {rest}." if parts else f"{dynamics.model} is {rest}."]


def left_out(objective: str) -> str:
    """Name the tokens that do not count in the published frame."""
    return "sentence ends, first words and unknown words" if objective == "causal" else "unknown words"


def _furthest(dynamics: Dynamics, classes: LearningCurves, kept: Sequence[int]) -> str:
    gap = -classes.mean[-1]
    order = sorted(kept, key=lambda g: -abs(gap[g]))
    worst, best = order[0], order[-1]
    distances = [_sums(classes, g, np.sign(gap[g])) for g in (worst, best)]
    chance = _chance(difference(*distances, seed=dynamics.seed), comb(len(kept), 2))
    text = (
        f"Furthest from the truth at the end is the class of {_name(classes, worst)} ({_gap(classes, worst)}), nearest"
        f" the class of {_name(classes, best)} ({_gap(classes, best)}){chance}"
    )
    part = classes.tokens * gap
    lacks = np.maximum(part, 0.0)
    most = max(kept, key=lambda g: lacks[g])
    if lacks[most] > 0.0:
        whole = dynamics.frame == "default" and (part >= 0.0).all()
        of = "the whole divergence" if whole else "all underestimation"
        text += (
            f"; {lacks[most] / lacks.sum():.0%} of {of} is in {_name(classes, most)},"
            f" {classes.tokens[most] / classes.tokens.sum():.0%} of the tokens"
        )
        if not (part >= 0.0).all():
            text += " (classes that it overestimates are excluded)"
    return text + "."


def _order(dynamics: Dynamics, classes: LearningCurves, kept: Sequence[int]) -> list[str]:
    """Describe the order of learning, and its uncertainty."""
    sentences = []
    steps = {g: m.step for g, m in enumerate(classes.half) if g in kept}
    reached = sorted((step, g) for g, step in steps.items() if step is not None)
    waiting = [g for g, step in steps.items() if step is None and classes.mean[0, g] < 0.0]
    if len(dynamics.steps) > 1 and reached and len(reached) + len(waiting) > 1:
        (early, first), (late, last) = reached[0], reached[-1]
        text = f"Half of the initial divergence is learned first for {_name(classes, first)} (step {_step(early)})"
        if waiting:
            text += f", and not by step {dynamics.steps[-1]:,} for {listed([_name(classes, g) for g in waiting])}"
        else:
            text += f" and last for {_name(classes, last)} (step {_step(late)})"
        if not all(_in_order(classes, first, g, comb(len(kept), 2)) for g in waiting or [last]):
            text += ", which may be chance"
        sentences.append(text + ".")
    below = {g: classes.threshold[g].step for g in kept}
    there = sorted((step, g) for g, step in below.items() if step is not None)
    missing = [g for g, step in below.items() if step is None]
    if there and missing:
        names = [f"{_name(classes, g)} (from step {_step(step)})" for step, g in there]
        others = listed([_name(classes, g) for g in missing])
        sentences.append(
            f"Within {dynamics.level:g} nats per token of the truth: {listed(names)}; not at step"
            f" {dynamics.steps[-1]:,}: {others}."
        )
    elif missing:
        step = f"{dynamics.steps[-1]:,}"
        sentences.append(f"No class is within {dynamics.level:g} nats per token of the truth at step {step}.")
    return sentences


def _above(dynamics: Dynamics, classes: LearningCurves, kept: Sequence[int]) -> list[str]:
    more = [g for g in kept if classes.mean[-1, g] > 0.0]
    tests = {g: mean_over_seeds(_sums(classes, g), seed=dynamics.seed) for g in more}
    above = [g for g, contrast in tests.items() if not may_be_chance(bonferroni(contrast, len(kept)))]
    if not above:
        return []
    names = listed([f"{_name(classes, g)} (+{classes.mean[-1, g]:.3f})" for g in above])
    over_all = (
        "; over all tokens it cannot" if dynamics.frame == "default" else f", {left_out(dynamics.objective)} among them"
    )
    return [
        f"The model gives more than the truth to {names}: this is possible within a class, at the cost of other words"
        f"{over_all}."
    ]


def _ends(curves: LearningCurves, what: str, seed: int) -> list[str]:
    """Compare the first and the last group of sufficient size, without sentence ends and unknown words."""
    groups = [g for g in _of_size(curves) if curves.names[g] not in (END, UNKNOWN)]
    if len(groups) < 2:
        return []
    first, last = groups[0], groups[-1]
    descriptions = [f"{_with_ends(curves, g)} ({_group(curves, g)})" for g in (first, last)]
    chance = _chance(difference(_sums(curves, first), _sums(curves, last), seed=seed))
    return [f"By {what} the divergence is {descriptions[0]} and {descriptions[1]}{chance}."]


def _chance(contrast: Contrast, tests: int = 1) -> str:
    """Return the end of a sentence on a difference that may be chance, with its p-value; else an empty text."""
    p = bonferroni(contrast, tests)
    if not may_be_chance(p):
        return ""
    family = f" of {tests} tests (Bonferroni)" if tests > 1 else ""
    return ", which may be chance" if p is None else f", which may be chance (p {p:.3f}{family})"


def _with_ends(curves: LearningCurves, g: int, sign: float = -1.0, unit: str = "") -> str:
    """Format the last divergence with its interval, if any; with a positive ``sign``, the mean itself."""
    ends = [(-x if sign <= 0.0 else x)[-1, g] for x in (curves.low, curves.high, curves.mean)]
    interval = "" if np.isnan(ends[0]) else f" [{min(ends[:2]):.3f}, {max(ends[:2]):.3f}]"
    return f"{ends[2]:.3f}{unit}{interval}"


def _group(curves: LearningCurves, g: int) -> str:
    name = curves.names[g]
    return {"depth": f"{name} constituents above", "length": f"{name} words"}.get(curves.by, name)


def _gap(curves: LearningCurves, g: int) -> str:
    mean = curves.mean[-1, g]
    return f"{abs(mean):.3f} nats per token" + (" too much" if mean > 0.0 else "")


def _less(mean: float) -> str:
    return "more" if mean > 0.0 else "less"


def _name(curves: LearningCurves, g: int) -> str:
    name = curves.names[g]
    return "sentence ends" if name == END else name


def _sums(curves: LearningCurves, g: int, sign: float = 1.0) -> SeedSums:
    """Return sums per sentence of a group at the last checkpoint."""
    return SeedSums(sign * curves.total[g : g + 1], curves.count[g : g + 1])


def _in_order(curves: LearningCurves, first: int, last: int, tests: int) -> bool:
    """Return True if one group has certainly learned half by a checkpoint at which the other has not.

    It must hold in 97.5% of the resamples, or more if the two were selected among many pairs, see `bonferroni`.
    """
    half = curves.resampled_half
    is_finite = np.isfinite(half.at[:, first])
    return bool(np.mean(is_finite & (half.at[:, first] <= half.before[:, last])) >= 1.0 - TAILS[0] / tests)


def _step(step: float) -> str:
    return f"{step:,.0f}" if step >= 10.0 else f"{step:.1f}"
