"""Results of the probes of one model, as scores with signatures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from typing_extensions import override

from truesource.evaluation.core.score import Score, keyed
from truesource.evaluation.core.signature import signature
from truesource.evaluation.measures.bootstrap import Interval, ci_part
from truesource.evaluation.probing.experiment import Experiment, LayerResult
from truesource.evaluation.probing.measures import confusion
from truesource.evaluation.probing.splits import ProbingSplit
from truesource.grammar.support.arrays import IntArray
from truesource.grammar.support.printable import ResultRecords

ON_TEXT = ("position_identity_accuracy", "mdl", "compression")  #: measures on the split by position
SELECTIVITY = ("task_accuracy", "control_accuracy", "selectivity")
CORRELATIONS = ("rho_truth", "rho_model", "rho_difference")
UNITS = {
    **dict.fromkeys(("cross_entropy", "entropy", "kl"), "nats/item"),
    **dict.fromkeys(("mcc", *CORRELATIONS), "correlation"),
    "mdl": "bits/label",
    "compression": "ratio",
}  #: units of measures; all others are shares


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Probing(ResultRecords):
    """The results of every layer and checkpoint of one model; the best layer has the least final dev loss."""

    model: str
    objective: str
    layers: Sequence[LayerResult]  #: layers of the finished model come last, by ascending layer
    baselines: Mapping[str, Interval]
    chance: Mapping[str, Interval]  #: random labels, on the best layer
    labels: tuple[str, ...]  #: (C,)
    confusion: IntArray = field(repr=False)  #: (C, C) counts of the best layer: true label by row, guess by column
    parts: Mapping[str, object]  #: parts of signatures
    overrides: Mapping[str, Mapping[str, object]]  #: different parts for single measures, see `measure_parts`
    fields: Mapping[str, Mapping[str, str]]  #: fields of records, see `record_fields`
    notes: tuple[str, ...] = ()  #: exclusions with reasons

    @property
    def final(self) -> list[LayerResult]:
        """Return the layers of the finished model."""
        last = self.layers[-1].step
        return [result for result in self.layers if result.step == last]

    @property
    def steps(self) -> list[int]:
        """Return the steps of the probed checkpoints, ascending; empty if only the finished model was probed."""
        return sorted({result.step for result in self.layers if result.step is not None})

    @property
    def best(self) -> LayerResult:
        """Layer of the finished model whose probe is best on the dev part."""
        return best_layer(self.final)

    def scores(self) -> Iterator[tuple[dict[str, int | None], Score]]:
        """Yield every value as a `Score`, with its step and layer."""
        for result in self.layers:
            parts = {**self.parts, "step": "last" if result.step is None else result.step, "layer": result.layer}
            for name, value in result.measures.items():
                decay = result.decays.get(name, f"{result.probe.weight_decay:g}")
                yield {"step": result.step, "layer": result.layer}, self._score(name, value, {**parts, "decay": decay})
        best = self.best
        for name, value in self.baselines.items():
            yield {"step": None, "layer": None}, self._score(name, value, self.parts)
        for name, value in self.chance.items():
            parts = {**self.parts, "step": "last" if best.step is None else best.step, "layer": best.layer}
            parts["trained"] = "random-labels"
            yield {"step": best.step, "layer": best.layer}, self._score(name, value, parts)

    @override
    def as_scores(self) -> list[Score]:
        """Return every score with its task, step, layer and `fields`.

        Counts of the confusion of the best layer follow, if they are not zero, with ``true`` and ``predicted``.
        """
        task: dict[str, Any] = {name: self.parts[name] for name in ("target", "right", "items", "labels")}
        every = [
            score.at(**place).with_more(**self.fields.get(score.name, self.fields[""]))
            for place, score in self.scores()
        ]
        best = self.best
        place = {"step": best.step, "layer": best.layer}
        parts = {**self.parts, "step": "last" if best.step is None else best.step, "layer": best.layer}
        sign = signature({**parts, "unit": "count"})
        for true, guess in zip(*np.nonzero(self.confusion), strict=True):
            value = int(self.confusion[true, guess])
            pair = {"true": self.labels[true], "predicted": self.labels[guess]}
            every.append(Score("confusion", value, sign).at(**place, **pair))
        return keyed(every, model=self.model, objective=self.objective, **task)

    def _score(self, name: str, value: Interval, parts: Mapping[str, object]) -> Score:
        different_parts = self.overrides.get(name, {})
        sign = signature({**parts, **different_parts, "unit": UNITS.get(name, "share")})
        return Score(name, value.value, sign, value.low, value.high)


def best_layer(layers: Sequence[LayerResult]) -> LayerResult:
    """Return the layer whose probe has the least dev cross-entropy; of several, the lowest layer."""
    return min(layers, key=lambda result: result.probe.dev_loss)


def confusion_of(experiment: Experiment, result: LayerResult) -> IntArray:
    """Count right labels by guessed labels in the test part, (C, C)."""
    right = experiment.targets.truth[experiment.split.test]
    return confusion(result.guess, right, len(experiment.targets.labels))


def task_parts(experiment: Experiment) -> dict[str, object]:
    """Return the parts of the task for signatures."""
    targets, settings = experiment.targets, experiment.settings
    return {
        "target": targets.kind,
        "posterior-given": targets.given,
        "right": targets.right,
        "trained": "soft" if settings.soft else "hard",
        "probe": "linear-l2",
        "labels": len(targets.labels),
        "items": len(targets),
        **_split_parts(experiment, experiment.split),
    }


def measure_parts(experiment: Experiment) -> dict[str, dict[str, object]]:
    """Return parts of signatures of single measures that differ from `task_parts` or are added: splits, groups."""
    span, settings = experiment.targets.kind == "span", experiment.settings
    text, unit = _split_parts(experiment, experiment.text_split), _group(experiment)
    sent = _ci(experiment, experiment.text_split, "t", experiment.text_split.train)
    result = {"position_identity_accuracy": text, "mdl": {**text, "ci": sent}, "compression": {**text, "ci": sent}}
    result["mcc"] = {"ci": _ci(experiment, experiment.split, "percentile")}
    correlated = _ci(experiment, experiment.split, "jackknife")
    result |= {name: {"ci": correlated} for name in CORRELATIONS}
    result["group_accuracy"] = {"grouped-by": unit}
    if settings.split_by == "position":
        items = experiment.unit[experiment.split.test]
        result["group_accuracy"]["ci"] = ci_part(len(np.unique(items)), experiment.seed, unit)
    if settings.control != "none":
        control = _split_parts(experiment, experiment.control_split)
        control["control"] = f"{settings.control}/{'first-word' if span else 'word'}-type"
        result |= dict.fromkeys(SELECTIVITY, control)
    return result


def record_fields(experiment: Experiment) -> dict[str, dict[str, str]]:
    """Return split and unit of resampling by measure; the empty name has all others."""

    def of(parts: ProbingSplit) -> dict[str, str]:
        return {"split": parts.by, "resampled": _unit(experiment, parts)}

    result = {"": of(experiment.split), **dict.fromkeys(ON_TEXT, of(experiment.text_split))}
    result |= dict.fromkeys(SELECTIVITY, of(experiment.control_split))
    if experiment.settings.split_by == "position":
        result["group_accuracy"] = {"split": "position", "resampled": _group(experiment)}
    return result


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
    """Return a part of a signature: unit and method of resampling over items, by default of the test part."""
    groups = np.unique(parts.group[parts.test if items is None else items])
    return ci_part(len(groups), experiment.seed, _unit(experiment, parts), method=method)


def _unit(experiment: Experiment, parts: ProbingSplit) -> str:
    """Return the unit of resampling for intervals."""
    return "sentence" if parts.by == "position" else "end-type" if experiment.targets.kind == "span" else "type"


def _group(experiment: Experiment) -> str:
    """Return the unit over which accuracy is averaged."""
    return "pair" if experiment.targets.kind == "span" else "type"
