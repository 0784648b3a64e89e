"""One step of a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from truesource.run.folder import RunFolder

if TYPE_CHECKING:
    from truesource.chain.models.config import ModelEntry


@dataclass(frozen=True)
class Stage:
    """One step of a run: what its result depends on, and what makes it."""

    name: str
    made: tuple[str, ...]  #: patterns of the files it makes, relative to the run folder
    inputs: Callable[[RunFolder], Any]  #: a JSON value: settings, and the outputs of earlier stages
    make: Callable[[RunFolder], str]  #: writes the files and returns a digest of them
    optional: bool = False  #: it may find nothing to measure, which is a note in the report and does not end the run

    @property
    def kind(self) -> str:
        """The name without the model."""
        return self.name.partition(":")[0]

    @classmethod
    def of_model(
        cls,
        kind: str,
        model: ModelEntry,
        made: tuple[str, ...],
        inputs: Callable[..., Any],
        make: Callable[..., str],
    ) -> Stage:
        """A step that is done for each model; ``{}`` in the patterns of its files is the name of the model.

        ``inputs`` and ``make`` take the run, and the model as ``model``.
        """
        files = tuple(pattern.format(model.name) for pattern in made)
        return cls(f"{kind}:{model.name}", files, partial(inputs, model=model), partial(make, model=model))
