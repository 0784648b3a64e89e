"""The folder that a model is trained in, beside its place: a stopped training goes on from what stands there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import discard
from truesource.grammar.support.records import read_record
from truesource.lmtrain.training_record import FILE

SUFFIX = ".partial"
REQUEST = "request.json"  #: what is trained, in the partial folder


def place_of(out: Path) -> Path:
    """Where the model ``out`` is trained."""
    return out.with_name(f"{out.name}{SUFFIX}")


def model_of(partial: Path) -> Path:
    """The model that is trained in a partial folder."""
    return partial.with_name(partial.name.removesuffix(SUFFIX))


def remove_used_up(out: Path) -> None:
    """Remove the partial folder of a finished model, which a kill has left; for the holder of the model's lock."""
    partial = place_of(out)
    try:
        request = read_record(partial / REQUEST, dict[str, Any], remedy="start again")
        made = read_record(out / FILE, dict[str, Any], remedy="train it again")
    except InputError:  # one of the two is missing, or damaged
        return
    if all(made.get(key) == value for key, value in request.items()):
        discard(partial, out)
