"""Models and architectures that a configuration names: whether they are there, before anything is made."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from truesource.grammar.support.errors import InputError

if TYPE_CHECKING:
    from truesource.chain.models.config import ModelEntry
    from truesource.lmtrain.references import ModelReference
    from truesource.run.folder import RunFolder


def check_references(run: RunFolder) -> None:
    """Find every model that is loaded; code is imported, and not called.

    Raises:
        InputError: one is not there, or its code cannot be imported or lacks the name.
    """
    for entry in run.config.models:
        if entry.loaded:
            with model_errors(entry):
                _find(run.reference(entry))


@contextmanager
def model_errors(entry: ModelEntry) -> Iterator[None]:
    """Say in errors which model of the configuration they are of."""
    try:
        yield
    except InputError as error:
        raise InputError(f"models: {entry.name}: {error.reason}", error.path, error.line, code=error.code) from error


def _find(reference: ModelReference) -> None:
    from truesource.lmtrain.references import load_code

    if reference.folder is not None and not reference.folder.is_dir():
        raise InputError("there is no such model folder", reference.folder, code="missing")
    if reference.code is not None:
        load_code(reference.code, reference.base)
