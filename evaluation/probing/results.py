"""All that probes of one model found, as scores with signatures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from truesource.evaluation.core.score import Score
from truesource.evaluation.core.signature import signature
from truesource.evaluation.measures.bootstrap import FEWEST, Interval, ci_part, resampled_unit
from truesource.evaluation.probing.experiment import Experiment, LayerResult
from truesource.evaluation.probing.measures import confusion
from truesource.evaluation.probing.splits import ProbingSplit
from truesource.grammar.arrays import IntArray

CORRELATIONS = ("rho_truth", "rho_model", "rho_difference")
UNITS = {
    **dict.fromkeys(("cross_entropy", "entropy", "kl"), "nats/item"),
    **dict.fromkeys(("mcc", *CORRELATIONS), "correlation"),
    "mdl": "bits/label",
    "compression": "ratio",
}  #: of measures; all others are shares
RESAMPLED = {
    "type": "word types",
    "end-type": "word types that are new at an end",
    "sentence": "sentences",
    "pair": "pairs of end words",
}  #: in words, by what is resampled


@dataclass(frozen=True, eq=False, kw_only=True)
class Probing:
    """Every layer and checkpoint of one model; the best layer is that of the least dev loss in the finished model."""

    model: str
    objective: str
    layers: Sequence[LayerResult]  #: the finished model's last, by rising layer
    baselines: Mapping[str, Interval]
    chance: Mapping[str, Interval]  #: random labels, on the best layer
    labels: tuple[str, ...]  #: (C,)
    confusion: IntArray = field(repr=False)  #: (C, C) of the best layer: true label by row, guess by column
    parts: Mapping[str, object]  #: of signatures
    overrides: Mapping[str, Mapping[str, object]]  #: parts that are others for single measures, see `measure_parts`
    notes: tuple[str, ...] = ()  #: what was left out, and why

    def part(self, measure: str, name: str) -> str:
        """Part of the signature of a measure."""
        return str({**self.parts, **self.overrides.get(measure, {})}[name])

    @property
    def final(self) -> list[LayerResult]:
        """The layers of the finished model."""
        last = self.layers[-1].step
        return [found for found in self.layers if found.step == last]

    @property
    def steps(self) -> list[int]:
        """Those of the checkpoints that were probed, rising; none where only the finished model was."""
        return sorted({found.step for found in self.layers if found.step is not None})

    @property
    def best(self) -> LayerResult:
        """The layer of the finished model whose probe does best on the dev part."""
        return best_layer(self.final)

    def scores(self) -> Iterator[tuple[dict[str, Any], Score]]:
        """Every value as a `Score`, with the step and layer it is of."""
        for found in self.layers:
            parts = {**self.parts, "step": "last" if found.step is None else found.step, "layer": found.layer}
            for name, value in found.measures.items():
                decay = found.decays.get(name, f"{found.probe.weight_decay:g}")
                yield {"step": found.step, "layer": found.layer}, self._score(name, value, {**parts, "decay": decay})
        best = self.best
        for name, value in self.baselines.items():
            yield {"step": None, "layer": None}, self._score(name, value, self.parts)
        for name, value in self.chance.items():
            parts = {**self.parts, "step": "last" if best.step is None else best.step, "layer": best.layer}
            parts["trained"] = "random-labels"
            yield {"step": best.step, "layer": best.layer}, self._score(name, value, parts)

    def records(self) -> list[dict[str, Any]]:
        """One record a value, for JSON: model, objective, step, layer, name, value, low, high, signature.

        Counts of the confusion of the best layer follow, where they are not zero, with ``true`` and ``predicted``.
        """
        head = {"model": self.model, "objective": self.objective}
        found = [{**head, **place, **score.as_record()} for place, score in self.scores()]
        best = self.best
        place = {"step": best.step, "layer": best.layer}
        parts = {**self.parts, "step": "last" if best.step is None else best.step, "layer": best.layer}
        sign = signature({**parts, "unit": "count"})
        for true, guess in zip(*np.nonzero(self.confusion), strict=True):
            value = int(self.confusion[true, guess])
            pair = {"true": self.labels[true], "predicted": self.labels[guess]}
            found.append({**head, **place, **pair, **Score("confusion", value, sign).as_record()})
        return found

    def _score(self, name: str, value: Interval, parts: Mapping[str, object]) -> Score:
        own = self.overrides.get(name, {})
        sign = signature({**parts, **own, "unit": UNITS.get(name, "share")})
        return Score(name, value.value, sign, value.low, value.high)


def best_layer(layers: Sequence[LayerResult]) -> LayerResult:
    """The one whose probe has the least cross-entropy on the dev part; of several, the lowest."""
    return min(layers, key=lambda found: found.probe.dev_loss)


def confusion_of(experiment: Experiment, result: LayerResult) -> IntArray:
    """Right labels by guessed ones in the test part, (C, C)."""
    right = experiment.targets.truth[experiment.split.test]
    return confusion(result.guess, right, len(experiment.targets.labels))


def task_parts(experiment: Experiment) -> dict[str, object]:
    """What of the task goes into signatures."""
    targets, options = experiment.targets, experiment.options
    return {
        "target": targets.kind,
        "posterior-given": targets.given,
        "right": targets.right,
        "trained": "soft" if options.soft else "hard",
        "probe": "linear-l2",
        "labels": len(targets.labels),
        "items": len(targets),
        **_split_parts(experiment, experiment.split),
    }


def measure_parts(experiment: Experiment) -> dict[str, dict[str, object]]:
    """What signatures of single measures say otherwise than `task_parts`, or besides: other splits, other groups."""
    span, options = experiment.targets.kind == "span", experiment.options
    text, unit = _split_parts(experiment, experiment.text_split), "pair" if span else "type"
    sent = _ci(experiment, experiment.text_split, "t", experiment.text_split.train)
    found = {"position_identity_accuracy": text, "mdl": {**text, "ci": sent}, "compression": {**text, "ci": sent}}
    found["mcc"] = {"ci": _ci(experiment, experiment.split, "percentile")}
    correlated = _ci(experiment, experiment.split, "jackknife")
    found |= {name: {"ci": correlated} for name in CORRELATIONS}
    found["group_accuracy"] = {"grouped-by": unit}
    if options.split_by == "position":
        items = experiment.unit[experiment.split.test]
        found["group_accuracy"]["ci"] = ci_part(len(np.unique(items)), options.seed, unit)
    if options.control != "none":
        control = _split_parts(experiment, experiment.control_split)
        control["control"] = f"{options.control}/{'first-word' if span else 'word'}-type"
        found |= dict.fromkeys(("task_accuracy", "control_accuracy", "selectivity"), control)
    return found


def intervals(ci: str) -> str:
    """What the part ``ci`` of a signature says of intervals, in words."""
    unit, enough = resampled_unit(ci)
    return f"95%, {RESAMPLED[unit]} resampled" if enough else f"none: fewer than {FEWEST} {RESAMPLED[unit]}"


def _split_parts(experiment: Experiment, parts: ProbingSplit) -> dict[str, object]:
    return {
        "split": f"{parts.by}/{len(parts.train)}-{len(parts.dev)}-{len(parts.test)}",
        "ci": _ci(experiment, parts, "t"),
    }


def _ci(
    experiment: Experiment,
    parts: ProbingSplit,
    method: Literal["t", "percentile", "jackknife"],
    items: IntArray | None = None,
) -> str:
    """What is resampled for intervals over items, the test part by default, and how."""
    unit = "sentence" if parts.by == "position" else "end-type" if experiment.targets.kind == "span" else "type"
    groups = np.unique(parts.group[parts.test if items is None else items])
    return ci_part(len(groups), experiment.options.seed, unit, method=method)
