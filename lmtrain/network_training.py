"""The course of a network's training: its partial folder, checkpoints, interruption, the finished folder."""

from __future__ import annotations

import shutil
import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from truesource.grammar.support.atomic_files import atomic_path, discard, remove_leftovers_in, write_json, write_text
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.records import holds
from truesource.lmtrain.card import folder_card, versions
from truesource.lmtrain.distributed import wait_for_all
from truesource.lmtrain.model_code import why_code_stays
from truesource.lmtrain.process_group import from_main_process
from truesource.lmtrain.processes import is_main_process
from truesource.lmtrain.saving import save_model, step_of
from truesource.lmtrain.snapshots import copy_all
from truesource.lmtrain.tokenizer import SPECIALS
from truesource.lmtrain.training_record import FILE, REQUEST, TIMES, file_digests, place_of
from truesource.lmtrain.training_run import TrainingRun


def train_network(
    run: TrainingRun,
    request: Mapping[str, object],
    record: Mapping[str, object],
    out: Path,
    *,
    force: bool,
    resume: bool,
) -> None:
    """Train, or continue a training, until the folder is finished.

    Args:
        run: the training.
        request: of the training, which tells whether a partial run is of the same settings.
        record: beginning of ``training.json``.
        out: folder to make, which is claimed.
        force: replace a partial run of other settings.
        resume: continue a partial run of the same settings; False: start again.

    Raises:
        InputError: a loss is not finite, the disk is full, or there is a partial run of other settings.
    """
    from_main_process(lambda: run.require_disk(out))
    checkpoint = from_main_process(lambda: _prepare(out, request, force=force, resume=resume))
    _go(run, out, checkpoint)
    from_main_process(lambda: _finish(run, record, out))


def _go(run: TrainingRun, out: Path, checkpoint: Path | None) -> None:
    partial = place_of(out)
    with _interrupt_flag() as interrupted:
        try:
            run(partial, checkpoint, interrupted)
        except FloatingPointError as error:
            wait_for_all()  # every process comes here
            if is_main_process():
                discard(partial, out)  # a resumed run would only diverge again
            raise InputError(f"{error}; lower the learning rate or the gradient clip") from None
        except OSError as error:
            raise InputError(
                f"cannot write: {error.strerror or error}; free some space and run again to continue", partial
            ) from error


def _prepare(out: Path, request: Mapping[str, object], *, force: bool, resume: bool) -> Path | None:
    """Make or keep the partial folder; return the checkpoint to resume from, if any."""
    partial = place_of(out)
    record = partial / REQUEST
    if partial.exists():
        same = holds(record, request)
        if same and resume:
            remove_leftovers_in(partial, deep=True)
            return _last_checkpoint(partial / "checkpoints")
        if not same and not force and any(not path.name.startswith(".") for path in partial.iterdir()):
            raise InputError(f"{partial} is an unfinished run of other settings; delete it or use --force")
        discard(partial, out)
    partial.mkdir(parents=True, exist_ok=True)
    write_json(record, request)
    return None


def _last_checkpoint(folder: Path) -> Path | None:
    """Return the newest complete checkpoint (its state file is written last, after the files of all processes)."""
    steps = [(step_of(path), path) for path in folder.glob("checkpoint-*")]
    result = [(step, path) for step, path in steps if step is not None]
    return max(result)[1] if result else None


@contextmanager
def _interrupt_flag() -> Iterator[threading.Event]:
    """Set a flag at Ctrl-C or SIGTERM, so that the running step can end; stop at once at a second one.

    Raises:
        KeyboardInterrupt: after the block, if the flag is set; with the number of the signal, if this process got it.
    """
    flag, came = threading.Event(), list[int]()
    before: dict[signal.Signals, Any] = {}

    def on_interrupt(number: int, frame: FrameType | None) -> None:
        came.append(number)
        if flag.is_set():
            raise KeyboardInterrupt(number)
        flag.set()

    if threading.current_thread() is threading.main_thread():
        before = {number: signal.signal(number, on_interrupt) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield flag
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if flag.is_set():
        raise KeyboardInterrupt(*came[:1])


def _finish(run: TrainingRun, request: Mapping[str, object], out: Path) -> None:
    """Write the finished folder, then drop the partial one."""
    partial = place_of(out)
    last = run.watch.rows[-1]
    record = {
        **request,
        "name": run.config.label,
        "objective": run.architecture.objective,
        "parameters": run.model.num_parameters(),
        "vocabulary": len(run.vocabulary) - len(SPECIALS),
        "steps": last["step"],
        "planned_steps": run.batches.n_steps,
        "device": str(run.model.device),
        "stopped_early": run.watch.stopped_early,
        "final": last,
        "versions": versions(),
        **why_code_stays(run.model),
    }
    with atomic_path(out) as folder:
        save_model(folder, run.model, run.tokenizer)
        files = file_digests(folder)
        copy_all(partial, folder)
        for name in ("metrics.jsonl", TIMES):
            shutil.copy(partial / name, folder / name)
        record["files"] = files
        write_json(folder / FILE, record)
        write_text(folder / "README.md", folder_card(record))
    discard(partial, out)
