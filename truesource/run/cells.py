"""Cells: the trainings of a study, each trained, scored and read in files named by its id.

The models of a sweep and of a benchmark, the levers of an explanation and the twins of a treebank baseline are cells. A
stopped training resumes, a finished one is kept, and several jobs in one folder never train the same cell.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from truesource.grammar.support.atomic_files import remove_leftovers
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import digest_json
from truesource.grammar.support.locks import exclusive
from truesource.grammar.support.parallel import Share, Workers
from truesource.grammar.support.records import read_record
from truesource.lmtrain.training_record import FILE, WHAT, place_of, remove_used_up
from truesource.run.tasks import Failure, make_tasks

log = logging.getLogger("truesource")
WEIGHTS = "model.safetensors"  #: weights of a network
REMEDY = "delete the cell and it will be trained again"


class TrainingCell(Protocol):
    """One training of a study; ``str`` describes it."""

    @property
    def id(self) -> str:
        """Name of its files, different for other settings, data or seeds."""


C = TypeVar("C", bound=TrainingCell)


def cell_id(title: str, seed: int, request: Mapping[str, Any]) -> str:
    """Return the id of a cell: its title, its seed, and the digest of all that decides its results."""
    return f"{title}-seed{seed}-{digest_json(dict(request))[:8]}"


class TrainingCells(ABC, Generic[C]):
    """The cells of a study in a folder, with their training and scoring."""

    folder: Path
    models = "cells"  #: folder of the models, in the folder of the study

    @abstractmethod
    def is_finished(self, cell: C) -> bool:
        """Return True if the cell is finished."""

    @abstractmethod
    def train(self, cell: C) -> None:
        """Train the model of a cell into its `place`, unless it is there."""

    @abstractmethod
    def score(self, cell: C) -> None:
        """Write the `results` of a cell whose model is trained."""

    @abstractmethod
    def results(self, cell: C) -> Sequence[Path]:
        """Return the files that `score` writes."""

    def place(self, cell: C) -> Path:
        """Return the folder of the model of a cell."""
        return self.folder / self.models / cell.id

    def make(self, cell: C, *, wait: bool = False) -> None:
        """Train and score a cell, unless it is finished.

        Args:
            cell: the cell.
            wait: wait for another process that is working on it.

        Raises:
            BusyError: another process is working on it, and ``wait`` is false.
            InputError: it cannot be trained or scored, or other files have its name.
        """
        place = self.place(cell)
        with exclusive(place, wait=wait):
            if self.is_finished(cell):
                return
            for path in (place, *self.results(cell)):
                remove_leftovers(path)
            remove_used_up(place)
            resumes = place_of(place).is_dir()
            log.info("%s%s", cell, " (resumes)" if resumes else "")
            self.train(cell)
            self.score(cell)

    def make_all(
        self, cells: Sequence[C], share: Share, *, workers: Workers | None = None, wait: bool = False
    ) -> list[Failure[C]]:
        """Train a job's share of cells; see `make_tasks` for arguments and result."""
        return make_tasks(cells, self.make, finished=self.is_finished, share=share, workers=workers, wait=wait)

    def strangers(self, cells: Sequence[C]) -> list[Path]:
        """Return folders of models, finished or begun, that belong to none of these cells."""
        places = [self.place(cell) for cell in cells]
        names = {path.name for place in places for path in (place, place_of(place))}
        folder = self.folder / self.models
        there = folder.iterdir() if folder.is_dir() else ()
        return sorted(path for path in there if path.is_dir() and path.name not in names and path.name[0] != ".")


def is_trained(place: Path, request: Mapping[str, Any]) -> bool:
    """Return True if the network of a request is in a folder.

    Args:
        place: the folder.
        request: all settings that decide its weights, as in ``training.json``.

    Raises:
        InputError: the folder has another model, or is damaged.
    """
    if not place.exists():
        return False
    record = read_record(place / FILE, dict[str, object], what=WHAT, remedy=REMEDY)
    wrong = [key for key, value in request.items() if record.get(key) != value]
    if wrong:
        raise InputError(
            f"this folder has the name of a cell, but its model was trained with another {wrong[0]};"
            " move it elsewhere and the cell will be trained again",
            place,
        )
    if not (place / WEIGHTS).is_file():
        raise InputError("the weights of this cell are missing; delete the cell and it will be trained again", place)
    return True
