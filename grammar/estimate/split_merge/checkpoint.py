"""Saving a training run after each phase, and going on from there."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NotRequired

import numpy as np
from pydantic import with_config
from typing_extensions import TypedDict

from truesource.grammar.estimate.rules import RuleTable
from truesource.grammar.estimate.split_merge.parameters import Layout, Parameters, SplitTree
from truesource.grammar.support.archives import FLOATS, TEXT, read_arrays
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import atomic_path
from truesource.grammar.support.records import STRICT, Count, Positive, decode_record

NAME = "split-merge.npz"
_WHAT, _REMEDY = "the checkpoint", "delete it to start again"


@with_config(STRICT)
class TraceRow(TypedDict):
    """One iteration, also a line of the trace that `truesource induce --trace` writes."""

    cycle: Count
    phase: str
    iteration: Count
    log_likelihood: float | None
    unsmoothed: NotRequired[float | None]
    held_out: NotRequired[float | None]
    held_out_impossible: NotRequired[Count | None]
    substates: NotRequired[Count]
    rules: NotRequired[Count]
    seconds: NotRequired[float]  # in traces of earlier versions


@with_config(STRICT)
class State(TypedDict):
    """What is in the file besides the probabilities, as JSON."""

    key: str
    phases: Count
    substates: tuple[Positive, ...]  # of each symbol
    trees: tuple[Any, ...]  # a `SplitTree` for each symbol
    trace: list[dict[str, Any]]


def save(folder: Path, key: str, phases: int, parameters: Parameters, trace: Sequence[dict[str, Any]]) -> None:
    """Write the state after ``phases`` finished phases, atomically."""
    state: State = {
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
    arrays = read_arrays(path, {"prob": FLOATS, "state": TEXT}, what=_WHAT, remedy=_REMEDY)
    state = decode_record(str(arrays["state"]), State, what=_WHAT, remedy=_REMEDY, path=path, embedded=True)
    if state["key"] != key:
        raise InputError("the checkpoint has other trees, settings or seed; choose another folder", path)
    substates, trees = state["substates"], state["trees"]
    layout = Layout(table, substates)
    fits = len(substates) == len(table.symbols) and layout.size == len(arrays["prob"])
    if not fits or [sorted(_leaves(tree)) for tree in trees] != [list(range(n)) for n in substates]:
        raise InputError(f"{_WHAT} does not fit the trees; {_REMEDY}", path)
    if not ((arrays["prob"] >= 0.0) & (arrays["prob"] <= 1.0 + 1e-9)).all():
        raise InputError(f"{_WHAT} has a probability outside 0 to 1; {_REMEDY}", path)
    return state["phases"], Parameters(layout, arrays["prob"], trees), state["trace"]


def _leaves(tree: SplitTree) -> list[int]:
    """The numbers of the substates; -1 where something else is found."""
    if isinstance(tree, list):
        return [leaf for part in tree for leaf in _leaves(part)]
    return [tree if type(tree) is int else -1]
