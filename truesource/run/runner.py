"""Execution of the stages of an experiment in order, without stages whose inputs have not changed."""

from __future__ import annotations

import logging
import os
import platform
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any

from truesource.evaluation.core.evaluator import Evaluator
from truesource.evaluation.show.records import NoteRecord, StageRecord
from truesource.generator.computing import DTYPE
from truesource.generator.plan import require_room as require_corpus_room
from truesource.grammar.support.atomic_files import remove_leftovers_in, write_json
from truesource.grammar.support.errors import InputError, NothingToMeasureError, require_extras
from truesource.grammar.support.files import digest_json
from truesource.grammar.support.locks import exclusive
from truesource.grammar.support.records import read_record
from truesource.lmtrain.architectures.settings import require_room as require_network_room
from truesource.lmtrain.device import computing
from truesource.lmtrain.training_record import FILE as TRAINING
from truesource.run.config import RunConfig
from truesource.run.corpus.stage import stages as corpus
from truesource.run.folder import RunFolder, check_references
from truesource.run.grammar.quality import stages as parsing
from truesource.run.grammar.stage import stages as grammar
from truesource.run.loaded import stages as loaded
from truesource.run.models.stage import check_code
from truesource.run.models.stage import stages as models
from truesource.run.report_stage import stages as report_stages
from truesource.run.scores.comparison import stages as comparisons
from truesource.run.scores.stage import stages as scores
from truesource.run.stage import Stage
from truesource.run.stages import stages_of
from truesource.run.tasks import refuse_foreign
from truesource.run.treebank.stage import stages as treebank

#: functions that return the stages of each step, in order
CHAIN: tuple[Callable[[RunConfig], list[Stage]], ...] = (
    loaded,
    treebank,
    grammar,
    parsing,
    corpus,
    models,
    scores,
    comparisons,
)


DISTRIBUTION = "truesource"
SOURCE = Path(__file__).resolve().parents[2]  #: root of a checkout, with ``.git``
STATE = "stages.json"  #: in the run folder
#: kinds of stages that measure no network, so its precision does not matter
WITHOUT_DTYPE = frozenset({"load", "treebank", "grammar", "parsing", "corpus", "train", "report"})
MISSING = "missing-ability"  #: code of errors of `generator.abilities`
MOST = 3  #: maximum number of listed changes of a stage
_PENDING = "made again: "  #: prefix of the digest of a stage that has yet to run
_DIGEST = re.compile(r"[0-9a-f]{12,}(\+[0-9a-f]{12,})?")


def now() -> str:
    """Return the time, UTC, ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def provenance(seed: int, started: str, seeds: Sequence[int] | None = None) -> dict[str, object]:
    """Return versions, machine, command and seeds of this process; ``seeds``: separate seeds of networks."""
    return {
        "truesource": version(DISTRIBUTION),
        "commit": commit(),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cores": os.cpu_count(),
        "packages": {name: _version(name) for name in dependencies()},
        "command": shlex.join(["truesource", *sys.argv[1:]]),
        "seed": seed,
        **({} if seeds is None else {"seeds": list(seeds)}),
        "started": started,
        "finished": now(),
    }


def dependencies() -> list[str]:
    """Return the names of all required packages, including extras, in order."""
    requirements = [each for each in requires(DISTRIBUTION) or () if not re.search(r"extra == .dev\b", each)]
    names = {re.split(r"[^A-Za-z0-9._-]", each, maxsplit=1)[0] for each in requirements}
    return sorted(names - {DISTRIBUTION}, key=str.lower)


def commit(folder: Path = SOURCE) -> str | None:
    """Return the git commit of the running source, with ``+`` if files differ; None for an installed package.

    Args:
        folder: folder with ``.git``, if this is a checkout.
    """
    if not (folder / ".git").exists():
        return None
    try:
        head, changed = (_git(folder, *call) for call in (("rev-parse", "HEAD"), ("status", "--porcelain", "-uno")))
    except (OSError, subprocess.SubprocessError):  # git or a commit is missing
        return None
    return head + ("+" if changed else "")


def _git(folder: Path, *arguments: str) -> str:
    call = ["git", "-C", str(folder), *arguments]
    return subprocess.run(call, capture_output=True, text=True, check=True, timeout=10).stdout.strip()


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "absent"


log = logging.getLogger("truesource")


def plan(config: RunConfig, evaluators: Sequence[Evaluator]) -> list[Stage]:
    """Return the stages of a configuration, in order: the chain, the requested evaluators, the report."""
    stages = [stage for part in CHAIN for stage in part(config)]
    for evaluator in evaluators:
        if config.evaluation.find(evaluator.settings) is not None:
            stages += [replace(stage, optional=True) for stage in stages_of(evaluator, config)]
    return [*stages, *report_stages(config, evaluators)]


def execute(config: RunConfig, evaluators: Sequence[Evaluator], *, base: Path, runs: Path, force: bool = False) -> Path:
    """Run an experiment in ``runs/<name>``; stages that are up to date are skipped.

    After Ctrl-C or a kill, the same call resumes: finished stages are kept, and the
    interrupted stage resumes from its checkpoints.

    Args:
        config: configuration of the run.
        evaluators: evaluators that it may request.
        base: folder that relative paths of the configuration start from.
        runs: folder for all runs.
        force: run every stage again.

    Returns:
        Path of the report.

    Raises:
        InputError: a model or code in the configuration does not exist or cannot be used, the run folder holds
            something else, another process is working in it, or a stage refuses its input.
    """
    folder = runs / config.name
    run = RunFolder(config, folder, base)
    with computing(config.device, config.dtype, config.threads):
        check(run, force=force)
    state_file = folder / STATE
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot create the run folder: {error.strerror or error}", folder) from error
    with exclusive(folder):
        remove_leftovers_in(folder, deep=True)
        state = state_of(run, force=force)
        write_json(state_file, {"stages": state})  # written first, so that even a killed run is a run folder
        write_json(folder / "config.json", config.model_dump(mode="json"))
        with computing(config.device, config.dtype, config.threads):
            _run_stages(run, plan(config, evaluators), state, state_file)
    return folder / "report.html"


def check(run: RunFolder, *, force: bool) -> None:
    """Refuse a run that cannot begin.

    Raises:
        InputError: a library is not installed, a model or code in the configuration does not exist or
            cannot be used, or the run folder holds something else.
    """
    check_references(run)
    check_extras(run)
    check_code(run.config, run.base)
    check_room(run, force=force)
    if not force:
        refuse_foreign(run.folder, STATE, "this exists and is not a run; choose another name or use --force")


def check_room(run: RunFolder, *, force: bool) -> None:
    """Refuse a corpus or a network that does not fit this machine, unless it is finished.

    Raises:
        NoRoomError: one of them does not fit (code ``too-large``).
    """
    corpus = run.config.corpus
    if force or not (run.folder / "corpus" / "record.json").is_file():
        require_corpus_room(corpus.splits, corpus.shard_size, run.folder / "corpus")
    for entry in run.config.entries:
        if not entry.loaded and (force or not (run.model_folder(entry) / TRAINING).is_file()):
            shape, training = entry.resolve(run.base)
            require_network_room(shape, training=training)


def check_extras(run: RunFolder) -> None:
    """Refuse a run for which libraries are missing: every run has a report, most have networks.

    Raises:
        MissingExtraError: a library is missing.
    """
    networks = any(not entry.loaded or run.reference(entry).folder is not None for entry in run.config.models)
    require_extras(f"the run {run.config.name}", *(["lm"] if networks else []), "report")


def state_of(run: RunFolder, *, force: bool) -> dict[str, StageRecord]:
    """Return the state of the finished stages of a run, by name; empty if all run again.

    Raises:
        InputError: the record is damaged.
    """
    return {} if force else _read_state(run.folder / STATE)


def depends_on(run: RunFolder, stage: Stage) -> dict[str, object]:
    """Return the inputs of a stage: version, settings, and digests."""
    dtype = run.config.dtype
    measured = {} if dtype in (None, DTYPE) or stage.kind in WITHOUT_DTYPE else {"networks": dtype}
    return {"version": version("truesource"), "inputs": stage.inputs(run), **measured}


def is_up_to_date(folder: Path, record: StageRecord, depends: Mapping[str, object]) -> bool:
    """Return True if the inputs of a finished stage are unchanged and all its files exist."""
    return bool(
        record["inputs"] == digest_json(depends) and ("unmeasured" in record or _is_whole(folder, record["files"]))
    )


def _run_stages(run: RunFolder, stages: Sequence[Stage], state: dict[str, StageRecord], state_file: Path) -> None:
    started = now()
    for number, stage in enumerate(stages, start=1):
        depends = depends_on(run, stage)
        recorded = state.get(stage.name)
        if recorded and is_up_to_date(run.folder, recorded, depends):
            log.info("[%d/%d] %s: unchanged, skipped", number, len(stages), stage.name)
            state[stage.name] = {**recorded, "depends": depends, "skipped": True}
        else:
            log.info("[%d/%d] %s", number, len(stages), stage.name)
            state.pop(stage.name, None)
            write_json(state_file, {"stages": state})
            if stage.name == "report":
                write_json(run.folder / "provenance.json", provenance(run.config.seed, started, run.config.seeds))
            begun = time.perf_counter()
            output, note = _make(run, stage)
            seconds = time.perf_counter() - begun
            log.info("[%d/%d] %s: done in %.1f s", number, len(stages), stage.name, seconds)
            state[stage.name] = {
                "inputs": digest_json(depends),
                "depends": depends,
                "output": output,
                "unmeasured": note,
                "seconds": round(seconds, 2),
                "skipped": False,
                "finished": now(),
                "files": _sizes(run.folder, stage.files),
            }
            if note is None:
                del state[stage.name]["unmeasured"]
        run.outputs[stage.name] = state[stage.name]["output"]
        if (reason := state[stage.name].get("unmeasured")) is not None:
            run.unmeasured[stage.name] = reason
        write_json(state_file, {"stages": state})


def _make(run: RunFolder, stage: Stage) -> tuple[str, NoteRecord | None]:
    """Run a stage; return the digest of its output, and the reason if nothing was measured.

    A stage of a model is skipped if the shared stage of the same kind measured nothing.
    """
    note = run.unmeasured.get(stage.kind)
    if note is None:
        try:
            return stage.make(run), None
        except InputError as error:
            if not stage.optional or not (isinstance(error, NothingToMeasureError) or error.code == MISSING):
                raise
            note = {"code": error.code, "reason": error.reason}
            log.warning("%s: nothing to measure: %s", stage.name, error.reason)
    for path in [path for pattern in stage.files for path in run.folder.glob(pattern)]:
        path.unlink()  # file of an earlier configuration
    return digest_json(note), note


def _sizes(folder: Path, patterns: tuple[str, ...]) -> dict[str, int]:
    """Return the sizes of the files of a stage in bytes, by name relative to the run folder."""
    files = sorted(path for pattern in patterns for path in folder.glob(pattern))
    return {path.relative_to(folder).as_posix(): path.stat().st_size for path in files}


def _is_whole(folder: Path, files: dict[str, int]) -> bool:
    """Return True if all output files exist with their recorded sizes."""
    return bool(files) and all(
        (folder / name).is_file() and (folder / name).stat().st_size == size for name, size in files.items()
    )


def _read_state(path: Path) -> dict[str, StageRecord]:
    if not path.is_file():
        return {}
    from truesource.evaluation.show.records import StagesRecord

    remedy = "use --force to run every stage again"
    return dict(read_record(path, StagesRecord, what="the state of the run", remedy=remedy)["stages"])


class Fate(StrEnum):
    """The fate of a stage in a dry run."""

    RUNS = "runs"
    MAY_RUN = "may run"  #: it depends on the output of an earlier stage, which may stay the same
    UP_TO_DATE = "up to date"


@dataclass(frozen=True)
class PlannedStage:
    """A stage of a run that has not begun."""

    name: str
    fate: Fate
    reason: str  #: reason why it would run; empty if it is up to date


def dry_run(
    config: RunConfig, evaluators: Sequence[Evaluator], *, base: Path, runs: Path, force: bool = False
) -> list[PlannedStage]:
    """Return the stages of a run in order, without writing anything.

    See `truesource.run.runner.execute` for arguments and errors.
    """
    run = RunFolder(config, runs / config.name, base)
    check(run, force=force)
    state = state_of(run, force=force)
    planned_stages = []
    for stage in plan(config, evaluators):
        recorded = state.get(stage.name)
        pending = [name for name, output in run.outputs.items() if output.startswith(_PENDING)]
        try:
            depends = depends_on(run, stage)
        except InputError:
            if not pending:
                raise
            depends = {"inputs": {name: run.outputs[name] for name in pending}}  # it reads files that do not exist yet
        if force or recorded is None:
            planned = PlannedStage(stage.name, Fate.RUNS, "--force" if force else "new")
        elif is_up_to_date(run.folder, recorded, depends):
            planned = PlannedStage(stage.name, Fate.UP_TO_DATE, "")
        else:
            planned = _because(stage.name, recorded, depends)
        finished = recorded if planned.fate is Fate.UP_TO_DATE else None
        run.outputs[stage.name] = f"{_PENDING}{stage.name}" if finished is None else finished["output"]
        planned_stages.append(planned)
    return planned_stages


def _because(name: str, recorded: StageRecord, depends: Mapping[str, object]) -> PlannedStage:
    """Return the reason why a finished stage would run again."""
    changed = list(_changes(recorded["depends"], depends, ""))
    waits = [text.removeprefix(_PENDING) for text in changed if text.startswith(_PENDING)]
    own_changes = [text for text in changed if not text.startswith(_PENDING)]
    if own_changes:
        more = f" and {len(own_changes) - MOST} more" if len(own_changes) > MOST else ""
        return PlannedStage(name, Fate.RUNS, "; ".join(own_changes[:MOST]) + more)
    if waits:
        return PlannedStage(name, Fate.MAY_RUN, f"if its input changes: {', '.join(dict.fromkeys(waits))}")
    return PlannedStage(name, Fate.RUNS, "files are missing or incomplete")


def _changes(before: Any, now: Any, key: str) -> Iterator[str]:
    """Yield differences between two JSON values, in words; pending ones begin with `_PENDING`."""
    if isinstance(before, dict) and isinstance(now, dict):
        for name in dict.fromkeys([*before, *now]):
            inner = name if key in ("", "inputs") else f"{key}.{name}"
            yield from _changes(before.get(name), now.get(name), inner)
    elif isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        for index, pair in enumerate(zip(before, now, strict=True)):
            yield from _changes(*pair, f"{key}.{index}")
    elif isinstance(now, str) and now.startswith(_PENDING):
        yield now
    elif before != now:
        digest = any(isinstance(value, str) and _DIGEST.fullmatch(value) for value in (before, now))
        yield f"input changed: {key}" if digest else f"{key}: {_shown(before)} -> {_shown(now)}"


def _shown(value: Any) -> str:
    text = "none" if value is None else str(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
