"""A step of a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from truesource.grammar.support.files import digest_file
from truesource.grammar.support.settings import Settings
from truesource.run.folder import RunFolder

if TYPE_CHECKING:
    from truesource.run.models import ModelEntry


@dataclass(frozen=True)
class Stage:
    """A step of a run: its inputs, the function that runs it, and its files."""

    name: str
    files: tuple[str, ...]  #: patterns of its output files, relative to the run folder
    inputs: Callable[[RunFolder], Any]  #: a JSON value: settings, and the outputs of earlier stages
    make: Callable[[RunFolder], str]  #: writes the files and returns a digest of them
    optional: bool = False  #: it may find nothing to measure, which the report notes without ending the run

    @property
    def kind(self) -> str:
        """Return the name without the model."""
        return self.name.partition(":")[0]

    @classmethod
    def of_model(
        cls,
        kind: str,
        model: ModelEntry,
        files: tuple[str, ...],
        inputs: Callable[..., Any],
        make: Callable[..., str],
    ) -> Stage:
        """Build a step for a model; ``{}`` in the patterns of its files is the name of the model.

        ``inputs`` and ``make`` take the run, and the model as ``model``.
        """
        files = tuple(pattern.format(model.name) for pattern in files)
        return cls(f"{kind}:{model.name}", files, partial(inputs, model=model), partial(make, model=model))


def of_settings(run: RunFolder, kind: type[Settings]) -> dict[str, object]:
    """Return the settings of an evaluator, with the contents of the files in them."""
    settings = run.config.evaluation.of(kind).model_dump(mode="json")
    files = {name: digest_file(file) for name, file in run.settings(kind).named_files().items()}
    return {"settings": settings, "files": files}


def of_model(run: RunFolder, model: ModelEntry, kind: type[Settings] | None = None) -> dict[str, object]:
    """Return split, seed, corpus, grammar, the trained model, and the settings of an evaluator."""
    return {
        **({} if kind is None else of_settings(run, kind)),
        "split": run.config.evaluation.split,
        "seed": run.config.seed,
        "corpus": run.outputs["corpus"],
        "grammar": run.outputs["grammar"],
        "model": run.model_digest(model),
    }
