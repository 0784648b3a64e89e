"""One step of a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from truesource.run.folder import RunFolder


@dataclass(frozen=True)
class Stage:
    """One step: see `truesource.stages`."""

    name: str
    made: tuple[str, ...]  #: patterns of the files it makes, relative to the run folder
    inputs: Callable[[RunFolder], Any]
    make: Callable[[RunFolder], str]

    @property
    def kind(self) -> str:
        """The name without the model."""
        return self.name.partition(":")[0]
