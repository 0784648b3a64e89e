"""The checkpoints of any model, by its reference: snapshots in a folder, or those that a model of one's own gives."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from truesource.generator.abilities import code_errors, file_of, offers, require
from truesource.generator.language_model import LanguageModel
from truesource.grammar.support.errors import InputError
from truesource.lmtrain.models import load_model
from truesource.lmtrain.ready import require_model
from truesource.lmtrain.references import ModelReference, model_reference
from truesource.lmtrain.snapshots import FOLDER, checkpoints


class Checkpoint(NamedTuple):
    """A model at a step of its training."""

    step: int
    load: Callable[[], LanguageModel]


def checkpoints_of(
    reference: str | Path | ModelReference, needed_by: str, model: LanguageModel | None = None
) -> list[Checkpoint]:
    """The checkpoints of a model by rising step, the model itself last.

    Args:
        reference: to the model. A folder has snapshots, see `truesource.lmtrain.snapshots.checkpoints`; code gives a
            model with a method ``snapshots()``, which returns pairs of a step and a model.
        needed_by: for the refusal of a model without them.
        model: what the reference names, where it is loaded already.

    Raises:
        InputError: there are none (code ``missing-ability`` of a model without the method), or they are not pairs of
            different steps and models (``not-snapshots``).
    """
    named = model_reference(reference)
    if named.folder is not None:
        return [Checkpoint(step, partial(load_model, named.at(path))) for step, path in checkpoints(named.folder)]
    ready = require(load_model(named) if model is None else model, "snapshots", needed_by)
    source = file_of(ready)
    with code_errors(f"{ready.name}.snapshots", source):
        found = list(ready.snapshots())

    def refuse(what: str) -> InputError:
        return InputError(f"{ready.name}.snapshots {what}", source, code="not-snapshots")

    if not found:
        raise refuse("returned no snapshots")
    if not all(isinstance(pair, tuple | list) and len(pair) == 2 and isinstance(pair[0], int) for pair in found):
        raise refuse("has to return pairs of a step, a whole number, and a model")
    if len({step for step, _ in found}) < len(found):
        raise refuse("returned a step twice")
    return [
        Checkpoint(step, partial(require_model, snapshot, f"step {step} of {ready.name}", source))
        for step, snapshot in sorted(found, key=lambda pair: pair[0])
    ]


def has_checkpoints(reference: str | Path | ModelReference, model: LanguageModel) -> bool:
    """Whether there are checkpoints beside the model, where they are wanted but not needed."""
    folder = model_reference(reference).folder
    return offers(model, "snapshots") if folder is None else (folder / FOLDER).is_dir()
