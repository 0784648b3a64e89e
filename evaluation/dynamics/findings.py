"""What the curves of a model in training say, in plain words made from the numbers."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb

import numpy as np

from truesource.evaluation.core.oracle import UNKNOWN
from truesource.evaluation.divergence.groups import END
from truesource.evaluation.dynamics.table import Dynamics, LearningCurves
from truesource.evaluation.measures.bootstrap import TAILS
from truesource.evaluation.measures.contrast import SeedSums, difference, may_be_chance, mean_over_seeds

SMALL = 0.02  #: groups with a smaller share of the tokens are passed over


def findings(dynamics: Dynamics) -> list[str]:
    """A few sentences: where the model stands, on what it is furthest from the truth, what it learned first.

    Groups that are small, or stand in too few sentences for an interval, are passed over. A difference of two groups is
    tested sentence by sentence, at 5%; where the two were picked for it, at 5% for all pairs of groups together.
    """
    said = []
    if (whole := dynamics.curves.get("all")) is not None:
        said.append(_whole(dynamics, whole))
    if (classes := dynamics.curves.get("class")) is not None and len(kept := _of_size(classes)) > 1:
        said += [_furthest(dynamics, classes, kept), *_order(dynamics, classes, kept), *_above(dynamics, classes, kept)]
    for by, what in (("frequency", "word frequency"), ("depth", "depth"), ("length", "sentence length")):
        if (curves := dynamics.curves.get(by)) is not None:  # type: ignore[call-overload]
            said += _ends(curves, what, dynamics.seed)
    return said


def _of_size(curves: LearningCurves) -> list[int]:
    """Groups with enough tokens and sentences."""
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
            text += f", half of which was gone by step {_step(half)}"
    return text + "."


def left_out(objective: str) -> str:
    """What does not count in the published frame."""
    return "unknown words" if objective == "masked" else "sentence ends, first words and unknown words"


def _furthest(dynamics: Dynamics, classes: LearningCurves, kept: Sequence[int]) -> str:
    gap = -classes.mean[-1]
    order = sorted(kept, key=lambda g: -abs(gap[g]))
    worst, best = order[0], order[-1]
    distances = [_sums(classes, g, np.sign(gap[g])) for g in (worst, best)]
    chance = may_be_chance(difference(*distances, seed=dynamics.seed), comb(len(kept), 2))
    text = (
        f"Furthest from the truth at the end is the class of {_name(classes, worst)} ({_gap(classes, worst)}), nearest"
        f" that of {_name(classes, best)} ({_gap(classes, best)}){', which may be chance' if chance else ''}"
    )
    part = classes.tokens * gap
    lacks = np.maximum(part, 0.0)
    most = max(kept, key=lambda g: lacks[g])
    if lacks[most] > 0.0:
        whole = dynamics.frame == "default" and (part >= 0.0).all()
        of = "the whole divergence" if whole else "all that it gives too little"
        text += (
            f"; {lacks[most] / lacks.sum():.0%} of {of} is in {_name(classes, most)},"
            f" {classes.tokens[most] / classes.tokens.sum():.0%} of the tokens"
        )
        if not (part >= 0.0).all():
            text += " (classes to which it gives too much are not counted in)"
    return text + "."


def _order(dynamics: Dynamics, classes: LearningCurves, kept: Sequence[int]) -> list[str]:
    """What is learned when, and where the order is not certain."""
    said = []
    steps = {g: m.step for g, m in enumerate(classes.half) if g in kept}
    reached = sorted((step, g) for g, step in steps.items() if step is not None)
    waiting = [g for g, step in steps.items() if step is None and classes.mean[0, g] < 0.0]
    if len(dynamics.steps) > 1 and reached and len(reached) + len(waiting) > 1:
        (early, first), (late, last) = reached[0], reached[-1]
        text = f"Half of its first divergence is gone first for {_name(classes, first)} (step {_step(early)})"
        if waiting:
            text += f", and not by step {dynamics.steps[-1]:,} for {_listed([_name(classes, g) for g in waiting])}"
        else:
            text += f" and last for {_name(classes, last)} (step {_step(late)})"
        if not all(_in_order(classes, first, g, comb(len(kept), 2)) for g in waiting or [last]):
            text += ", which may be chance"
        said.append(text + ".")
    below = {g: classes.threshold[g].step for g in kept}
    there = sorted((step, g) for g, step in below.items() if step is not None)
    missing = [g for g, step in below.items() if step is None]
    if there and missing:
        names = [f"{_name(classes, g)} (from step {_step(step)})" for step, g in there]
        others = _listed([_name(classes, g) for g in missing])
        said.append(
            f"Within {dynamics.level:g} nats a token of the truth: {_listed(names)}; not at step"
            f" {dynamics.steps[-1]:,}: {others}."
        )
    elif missing:
        said.append(f"No class is within {dynamics.level:g} nats a token of the truth at step {dynamics.steps[-1]:,}.")
    return said


def _above(dynamics: Dynamics, classes: LearningCurves, kept: Sequence[int]) -> list[str]:
    more = [g for g in kept if classes.mean[-1, g] > 0.0]
    tests = {g: mean_over_seeds(_sums(classes, g), seed=dynamics.seed) for g in more}
    above = [g for g, found in tests.items() if not may_be_chance(found, len(kept))]
    if not above:
        return []
    names = _listed([f"{_name(classes, g)} (+{classes.mean[-1, g]:.3f})" for g in above])
    over_all = (
        "; over all tokens it cannot" if dynamics.frame == "default" else f", {left_out(dynamics.objective)} among them"
    )
    return [
        f"The model gives more than the truth to {names}: within a class that can be, at the cost of other words"
        f"{over_all}."
    ]


def _ends(curves: LearningCurves, what: str, seed: int) -> list[str]:
    """The first and the last group of some size; the end and unknown words do not count."""
    kept = [g for g in _of_size(curves) if curves.names[g] not in (END, UNKNOWN)]
    if len(kept) < 2:
        return []
    first, last = kept[0], kept[-1]
    told = [f"{_with_ends(curves, g)} ({_group(curves, g)})" for g in (first, last)]
    chance = may_be_chance(difference(_sums(curves, first), _sums(curves, last), seed=seed))
    return [f"By {what} the divergence is {told[0]} and {told[1]}{', which may be chance' if chance else ''}."]


def _with_ends(curves: LearningCurves, g: int, sign: float = -1.0, unit: str = "") -> str:
    """The last divergence with its interval if there is one; with a positive ``sign``, of the mean itself."""
    ends = [(-x if sign <= 0.0 else x)[-1, g] for x in (curves.low, curves.high, curves.mean)]
    interval = "" if np.isnan(ends[0]) else f" [{min(ends[:2]):.3f}, {max(ends[:2]):.3f}]"
    return f"{ends[2]:.3f}{unit}{interval}"


def _group(curves: LearningCurves, g: int) -> str:
    name = curves.names[g]
    return {"depth": f"{name} constituents above", "length": f"{name} words"}.get(curves.by, name)


def _gap(curves: LearningCurves, g: int) -> str:
    mean = curves.mean[-1, g]
    return f"{abs(mean):.3f} nats a token" + (" too much" if mean > 0.0 else "")


def _less(mean: float) -> str:
    return "more" if mean > 0.0 else "less"


def _name(curves: LearningCurves, g: int) -> str:
    name = curves.names[g]
    return "sentence ends" if name == END else name


def _sums(curves: LearningCurves, g: int, sign: float = 1.0) -> SeedSums:
    """Sums per sentence of a group at the last checkpoint."""
    return SeedSums(sign * curves.total[g : g + 1], curves.count[g : g + 1])


def _in_order(curves: LearningCurves, first: int, last: int, tests: int) -> bool:
    """Whether one half is surely gone by a checkpoint at which the other one is not yet.

    In 97.5% of the resamples, or more where the two were picked among so many pairs, see `may_be_chance`.
    """
    half = curves.resampled_half
    known = np.isfinite(half.at[:, first])
    return bool(np.mean(known & (half.at[:, first] <= half.before[:, last])) >= 1.0 - TAILS[0] / tests)


def _step(step: float) -> str:
    return f"{step:,.0f}" if step >= 10.0 else f"{step:.1f}"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
