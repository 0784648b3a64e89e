"""Saving a training run after each phase, and going on from there."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from grammar.errors import InputError
from grammar.estimate.rules import RuleTable
from grammar.estimate.split_merge.parameters import Layout, Parameters
from grammar.files import atomic_path

NAME = "split-merge.npz"


def save(folder: Path, key: str, phases: int, parameters: Parameters, trace: Sequence[dict[str, Any]]) -> None:
    """Write the state after ``phases`` finished phases, atomically."""
    state = {
        "key": key,
        "phases": phases,
        "substates": parameters.layout.substates,
        "trees": parameters.trees,
        "trace": list(trace),
    }
    with atomic_path(folder / NAME) as temporary, temporary.open("wb") as stream:
        np.savez(stream, prob=parameters.prob, state=np.array(json.dumps(state, allow_nan=False)))


def load(folder: Path, key: str, table: RuleTable) -> tuple[int, Parameters, list[dict[str, Any]]] | None:
    """Finished phases, grammar and trace of an earlier run; None where there is none.

    Raises:
        InputError: the file cannot be read, or belongs to other trees, settings or another seed.
    """
    path = folder / NAME
    if not path.exists():
        return None
    try:
        with np.load(path, allow_pickle=False) as archive:
            prob, state = archive["prob"], json.loads(str(archive["state"]))
        same, phases = state["key"] == key, int(state["phases"])
        layout = Layout(table, tuple(state["substates"]))
        trees, trace = tuple(state["trees"]), list(state["trace"])
    except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile, EOFError) as error:
        raise InputError("the checkpoint cannot be read; delete it to start again", path) from error
    if not same:
        raise InputError("the checkpoint has other trees, settings or seed; choose another folder", path)
    return phases, Parameters(layout, prob, trees), trace
