"""What is found of a model in training: curves of every group, and when each is learned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from truesource.evaluation.core.score import Score
from truesource.evaluation.core.signature import signature
from truesource.evaluation.dynamics.groupings import By
from truesource.evaluation.dynamics.milestones import Crossings, Milestone
from truesource.evaluation.measures.bootstrap import ci_part
from truesource.grammar.support.arrays import FloatArray, Int32Array
from truesource.grammar.support.printable import ResultRecords, few_code


@dataclass(frozen=True, eq=False, kw_only=True)
class LearningCurves:
    """G groups at C checkpoints; ends of intervals are NaN where a group stands in too few sentences."""

    by: By
    names: tuple[str, ...]  #: (G,)
    tokens: FloatArray  #: (G,) expected tokens of each
    mean: FloatArray  #: (C, G) of ln Q - ln P, nats
    low: FloatArray  #: (C, G) lower end of the 95% interval
    high: FloatArray  #: (C, G)
    median: FloatArray  #: (C, G) of ln Q - ln P, nats
    median_ends: FloatArray  #: (2, G) 95% interval of the last row
    kl: tuple[Mapping[str, Score], ...]  #: at each checkpoint, the exact KL(P || Q) of groups that have one
    infinite: tuple[Mapping[str, int], ...]  #: at each checkpoint, contexts in which that of a group is infinite
    kl_tokens: Mapping[str, float]  #: contexts that it is of, or expected tokens of a group of words
    half: tuple[Milestone, ...]  #: (G,) for good below half of the first divergence, which is minus the mean
    threshold: tuple[Milestone, ...]  #: (G,) for good nearer to 0 than the threshold
    total: FloatArray  #: (G, N) sum of ln Q - ln P in each sentence at the last checkpoint, nats
    count: FloatArray  #: (G, N) expected tokens of each sentence
    resampled_half: Crossings  #: (R, G) where half of the first divergence is gone in each resample


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Dynamics(ResultRecords):
    """What `truesource.evaluation.dynamics.compare.learning_dynamics` found."""

    model: str
    objective: str
    steps: tuple[int, ...]  #: (C,) of the checkpoints, rising
    curves: Mapping[By, LearningCurves]
    level: float  #: the threshold, nats a token
    contexts: int  #: that the exact divergence is of; 0: there is none
    frame: str  #: which positions count, see `truesource.generator.language_model.preset_frame`
    tags: str  #: whose tags and depths, see `truesource.evaluation.dynamics.settings.Tags`
    tokens: int
    sentences: int
    impossible_model: Int32Array  #: sentences that a checkpoint cannot make
    impossible_truth: Int32Array  #: sentences that the truth cannot make
    seed: int  #: of the bootstrap
    parts: Mapping[str, object]  #: of every signature

    @property
    def excluded(self) -> int:
        """Sentences that the truth or a checkpoint cannot make."""
        return len(np.union1d(self.impossible_model, self.impossible_truth))

    def score(self, by: By, g: int, c: int, measure: str) -> Score | None:
        """One value of a group at a checkpoint: ``log_ratio``, ``log_ratio_median`` or ``kl``."""
        found = self.curves[by]
        if measure == "kl":
            return found.kl[c].get(found.names[g])
        if measure == "log_ratio":
            ends = _known(found.low[c, g]), _known(found.high[c, g])
            why = {} if ends[0] is not None else {"ci": f"none/{few_code()}"}
            signed = signature({**self._signed(by, g), "step": self.steps[c], **why})
            return Score("log_ratio", float(found.mean[c, g]), signed, *ends)
        last = c == len(self.steps) - 1
        low, high = map(_known, found.median_ends[:, g]) if last else (None, None)
        why = {} if low is not None else {"ci": f"none/{few_code() if last else 'last-step-only'}"}
        signed = signature({**self._signed(by, g), **self._percentile, "step": self.steps[c], **why})
        return Score("log_ratio_median", float(found.median[c, g]), signed, low, high)

    def records(self) -> list[dict[str, Any]]:
        """A record a checkpoint, group and measure, then the milestones (value None: not reached), for JSON."""
        rows: list[dict[str, Any]] = []
        for by, found in self.curves.items():
            for c, step in enumerate(self.steps):
                for g, name in enumerate(found.names):
                    head = self._head(by, g) | {"step": step}
                    scores = [self.score(by, g, c, m) for m in ("log_ratio", "log_ratio_median", "kl")]
                    rows += [{**head, **score.as_record()} for score in scores if score is not None]
                    if scores[-1] is not None:
                        rows[-1]["tokens"] = found.kl_tokens[name]
                    if infinite := found.infinite[c].get(name, 0):
                        rows[-1]["infinite"] = infinite
        for by, found in self.curves.items():
            for g in range(len(found.names)):
                rows += [
                    {
                        **self._head(by, g),
                        "name": name,
                        "value": reached[g].step,
                        "low": reached[g].low,
                        "high": reached[g].high,
                        "signature": signature(
                            {
                                **self._signed(by, g),
                                **self._percentile,
                                **({"ci": f"none/{few_code()}"} if np.isnan(found.median_ends[0, g]) else {}),
                                "unit": "steps",
                                "steps": "/".join(map(str, self.steps)),
                                **told,
                            }
                        ),
                    }
                    for name, reached, told in (
                        ("half_step", found.half, {}),
                        ("threshold_step", found.threshold, {"below": self.level}),
                    )
                ]
        return rows

    def as_record(self) -> dict[str, Any]:
        """The curves as plain lists, for figures and reports."""
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
            "curves": {by: _plain(found) for by, found in self.curves.items()},
        }

    def _head(self, by: By, g: int) -> dict[str, Any]:
        found = self.curves[by]
        place = {"by": by, "group": found.names[g], "tokens": float(found.tokens[g])}
        return {"model": self.model, "objective": self.objective, **place}

    def _signed(self, by: By, g: int) -> dict[str, object]:
        return {**self.parts, "by": by, "group": self.curves[by].names[g]}

    @property
    def _percentile(self) -> dict[str, object]:
        """The method of intervals of medians and of steps, which have no standard error to divide by."""
        return {"ci": ci_part(self.sentences, self.seed, method="percentile")}


def _known(x: float) -> float | None:
    return None if np.isnan(x) else float(x)


def _plain(group_curves: LearningCurves) -> dict[str, Any]:
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
