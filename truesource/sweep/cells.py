"""Training the cells of a sweep: finished ones are kept, begun ones go on, those of other jobs are left alone."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from truesource.grammar.support.errors import InputError
from truesource.grammar.support.locks import BusyError, exclusive
from truesource.grammar.support.parallel import Share
from truesource.grammar.support.records import read_record
from truesource.report.words import duration
from truesource.sweep.plan import Data, PlannedCell, cell_folder

log = logging.getLogger("truesource")


@dataclass(frozen=True)
class Failure:
    """A cell that could not be trained or scored."""

    cell: PlannedCell
    reason: str  #: one sentence


def is_trained(folder: Path, cell: PlannedCell) -> bool:
    """Whether the model of a cell stands in its folder.

    Raises:
        InputError: another model stands there, or what is there is damaged.
    """
    target = cell_folder(folder, cell.id)
    if not target.exists():
        return False
    remedy = "delete the cell and it will be trained again"
    record = read_record(target / "training.json", dict[str, Any], what="the record of the training", remedy=remedy)
    there = {key: record.get(key) for key in cell.request}
    wrong = [key for key, value in cell.request.items() if there[key] != value]
    if wrong:
        raise InputError(
            f"this folder has the name of a cell, but its model was trained with another {wrong[0]};"
            " move it elsewhere and the cell will be trained again",
            target,
        )
    if not (target / "model.safetensors").is_file():
        raise InputError("the weights of this cell are missing; delete the cell and it will be trained again", target)
    return True


def train_cells(
    folder: Path,
    data: Data,
    cells: Sequence[PlannedCell],
    share: Share,
    finish: Callable[[PlannedCell], None],
) -> list[Failure]:
    """Train this job's cells that are not there yet; one that fails does not stop the others.

    Args:
        folder: of the sweep.
        data: what they are made from.
        cells: all of the sweep.
        share: which of them are this job's.
        finish: called with each of them once it is trained, reused ones too.

    Returns:
        Those whose folder holds something else, whose training refuses or diverges, or that cannot be scored. The next
        call tries them again.
    """
    own = [(number, cell) for number, cell in enumerate(cells, start=1) if share.owns(number - 1)]
    missing = sum(not cell_folder(folder, cell.id).exists() for _, cell in own)
    if missing < len(own):
        log.info("%d of %d cells are trained already", len(own) - missing, len(own))
    failures: list[Failure] = []
    trained, left, begun = 0, missing, time.perf_counter()
    for number, cell in own:
        title, there = f"[{number}/{len(cells)}] {cell}", cell_folder(folder, cell.id).exists()
        try:
            with exclusive(cell_folder(folder, cell.id)):
                if not is_trained(folder, cell):
                    _train(folder, data, cell, title)
                finish(cell)
        except BusyError:
            log.info("%s: another process is at work on it", title)
            left -= not there
            continue
        except InputError as error:
            log.warning("%s failed: %s", title, error)
            failures.append(Failure(cell, str(error)))
            left -= not there
            continue
        if not there:
            trained, left = trained + 1, left - 1
            seconds = time.perf_counter() - begun
            rest = f"; {left} to go, about {duration(left * seconds / trained)}" if left else ""
            log.info("%s: done%s", title, rest)
    return failures


def _train(folder: Path, data: Data, cell: PlannedCell, title: str) -> None:
    from truesource.lmtrain.training import train

    target = cell_folder(folder, cell.id)
    goes_on = target.with_name(f"{target.name}.partial").is_dir()
    log.info("%s%s", title, " (goes on)" if goes_on else "")
    train(data.of(cell), cell.model, cell.training, target, seed=cell.seed, tokenizer=data.tokenizer, force=True)


def strangers(folder: Path, cells: Sequence[PlannedCell]) -> list[Path]:
    """Folders of cells, finished or begun, that belong to none of these."""
    known = {name for cell in cells for name in (cell.id, f"{cell.id}.partial")}
    there = (folder / "cells").iterdir() if (folder / "cells").is_dir() else ()
    return sorted(path for path in there if path.is_dir() and path.name not in known and path.name[0] != ".")
