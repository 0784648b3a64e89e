"""A cell of a sweep as fits see it: what was varied, what it cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Axis = Literal["sentences", "parameters", "parameters_without_embeddings", "flops"]
AXES: tuple[Axis, ...] = ("sentences", "parameters", "parameters_without_embeddings", "flops")
TITLES: dict[Axis, str] = {
    "sentences": "sentences",
    "parameters": "parameters",
    "parameters_without_embeddings": "parameters without embeddings",
    "flops": "FLOPs of training",
}


@dataclass(frozen=True)
class ScalingCell:
    """One trained model."""

    name: str
    model: str  #: what the shape is called
    sentences: int  #: of its train split
    seed: int
    parameters: int
    parameters_without_embeddings: int
    flops: float

    @property
    def settings(self) -> tuple[str, int]:
        """Equal for cells that differ in their seed alone."""
        return self.model, self.sentences

    def value(self, axis: Axis) -> float:
        """Where it stands on an axis."""
        return float(getattr(self, axis))

    def held(self, axis: Axis) -> str:
        """What is the same in all cells that a fit over ``axis`` takes together with this one."""
        return self.model if axis == "sentences" else f"{self.sentences:,} sentences"

    def varied(self, axis: Axis) -> str | int:
        """What differs between the settings of such a fit."""
        return self.sentences if axis == "sentences" else self.model
