"""What the curves of a model in training say, in plain words made from the numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from evaluation.divergence.groups import END
from evaluation.dynamics.milestones import Milestone
from evaluation.dynamics.table import Curves, Dynamics
from evaluation.oracle import UNKNOWN

SMALL = 0.02  #: groups with a smaller share of the tokens are passed over


def findings(found: Dynamics) -> list[str]:
    """A few sentences: where the model stands, on what it is furthest from the truth, what it learned first."""
    said = []
    if (whole := found.curves.get("all")) is not None:
        said.append(_whole(found, whole))
    if (classes := found.curves.get("class")) is not None and len(classes.names) > 1:
        said += [_furthest(classes), *_order(found, classes), *_above(classes)]
    for by, what in (("frequency", "word frequency"), ("depth", "depth"), ("length", "sentence length")):
        if (curves := found.curves.get(by)) is not None:  # type: ignore[call-overload]
            said += _ends(curves, what)
    return said


def _whole(found: Dynamics, whole: Curves) -> str:
    first, last = -whole.mean[0, 0], -whole.mean[-1, 0]
    ends = f"[{-whole.high[-1, 0]:.3f}, {-whole.low[-1, 0]:.3f}]"
    text = (
        f"At step {found.steps[-1]:,}, {found.model} gives a token {last:.3f} nats {ends} less than the truth gives it,"
        f" on average over {found.tokens:,} tokens"
    )
    if len(found.steps) > 1:
        text += f"; at step {found.steps[0]:,} it was {first:.3f}"
        if (half := whole.half[0].step) is not None:
            text += f", half of which was gone by step {_step(half)}"
    return text + "."


def _furthest(classes: Curves) -> str:
    gap = -classes.mean[-1]
    order = np.argsort(-gap, kind="stable").tolist()
    share = classes.tokens * gap / float(classes.tokens @ gap) if float(classes.tokens @ gap) > 0.0 else None
    worst, best = order[0], order[-1]
    text = (
        f"Furthest from the truth at the end is the class of {_name(classes, worst)} ({_gap(classes, worst)}), nearest"
        f" that of {_name(classes, best)} ({_gap(classes, best)})"
    )
    if share is not None:
        most = int(np.argmax(share))
        text += (
            f"; {share[most]:.0%} of the whole divergence is in {_name(classes, most)},"
            f" {classes.tokens[most] / classes.tokens.sum():.0%} of the tokens"
        )
    return text + "."


def _order(found: Dynamics, classes: Curves) -> list[str]:
    """What is learned when, and where the order is not certain."""
    said = []
    reached = [(m.step, g) for g, m in enumerate(classes.half) if m.step is not None]
    waiting = [g for g, m in enumerate(classes.half) if m.step is None and classes.mean[0, g] < 0.0]
    if len(found.steps) > 1 and reached and len(reached) + len(waiting) > 1:
        reached.sort()
        (early, first), (late, last) = reached[0], reached[-1]
        text = f"Half of its first divergence is gone first for {_name(classes, first)} (step {_step(early)})"
        if waiting:
            text += f", and not by step {found.steps[-1]:,} for {_listed([_name(classes, g) for g in waiting])}"
        else:
            text += f" and last for {_name(classes, last)} (step {_step(late)})"
            if _overlap(classes.half[first], classes.half[last]):
                text += ", though the intervals of the two overlap"
        said.append(text + ".")
    there = [g for g, m in enumerate(classes.threshold) if m.step is not None]
    missing = [g for g, m in enumerate(classes.threshold) if m.step is None]
    if there and missing:
        there.sort(key=lambda g: classes.threshold[g].step or 0.0)
        again = ["" if -classes.mean[-1, g] < found.level else ", above it again at the end" for g in there]
        names = [
            f"{_name(classes, g)} (step {_step(classes.threshold[g].step or 0.0)}{back})"
            for g, back in zip(there, again, strict=True)
        ]
        others = _listed([_name(classes, g) for g in missing])
        said.append(
            f"Below {found.level:g} nats a token, in this order: {_listed(names)}; not by step {found.steps[-1]:,}:"
            f" {others}."
        )
    elif missing:
        said.append(f"No class comes below {found.level:g} nats a token by step {found.steps[-1]:,}.")
    return said


def _above(classes: Curves) -> list[str]:
    above = [g for g in range(len(classes.names)) if classes.low[-1, g] > 0.0]
    if not above:
        return []
    names = _listed([f"{_name(classes, g)} (+{classes.mean[-1, g]:.3f})" for g in above])
    return [
        f"The model gives more than the truth to {names}: within a class that can be, at the cost of other words; over"
        " all tokens it cannot."
    ]


def _ends(curves: Curves, what: str) -> list[str]:
    """The first and the last group of some size; the end and unknown words do not count."""
    enough = curves.tokens >= SMALL * curves.tokens.sum()
    kept = [g for g, name in enumerate(curves.names) if name not in (END, UNKNOWN) and enough[g]]
    if len(kept) < 2:
        return []
    first, last = kept[0], kept[-1]
    apart = curves.high[-1, first] < curves.low[-1, last] or curves.high[-1, last] < curves.low[-1, first]
    return [
        f"By {what} the divergence is {_with_ends(curves, first)} ({_group(curves, first)}) and"
        f" {_with_ends(curves, last)} ({_group(curves, last)})"
        f"{'' if apart else ', which may be chance'}."
    ]


def _with_ends(curves: Curves, g: int) -> str:
    low, value, high = (-x[-1, g] for x in (curves.high, curves.mean, curves.low))
    return f"{value:.3f} [{low:.3f}, {high:.3f}]"


def _group(curves: Curves, g: int) -> str:
    name = curves.names[g]
    return {"depth": f"{name} constituents above", "length": f"{name} words"}.get(curves.by, name)


def _gap(curves: Curves, g: int) -> str:
    return f"{-curves.mean[-1, g]:.3f} nats a token"


def _name(curves: Curves, g: int) -> str:
    name = curves.names[g]
    return "sentence ends" if name == END else name


def _overlap(early: Milestone, late: Milestone) -> bool:
    return early.high is None or late.low is None or early.high >= late.low


def _step(step: float) -> str:
    return f"{step:,.0f}" if step >= 10.0 else f"{step:.1f}"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
