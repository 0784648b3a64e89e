"""Runs the stages of an experiment in order, skipping those whose inputs have not changed."""

from __future__ import annotations

import logging
import os
import platform
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any

from truesource.evaluation.core.evaluator import Evaluator
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

#: what gives the stages of each step, in order
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
SOURCE = Path(__file__).resolve().parents[2]  #: of a checkout: where ``.git`` is
STATE = "stages.json"  #: in the run folder
#: kinds of stages that measure no network, so that its precision changes nothing
WITHOUT_DTYPE = frozenset({"load", "treebank", "grammar", "parsing", "corpus", "train", "report"})
MISSING = "missing-ability"  #: code of errors of `generator.abilities`
MOST = 3  #: changes of a stage that are named
_PENDING = "made again: "  #: begins the digest of what an earlier stage has yet to make
_DIGEST = re.compile(r"[0-9a-f]{12,}(\+[0-9a-f]{12,})?")


def now() -> str:
    """The time, UTC, ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def provenance(seed: int, started: str, seeds: Sequence[int] | None = None) -> dict[str, Any]:
    """Versions, machine, command and seeds of this process; ``seeds``: of the networks, where they have their own."""
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
    """Names of all packages that this one asks for to run, those of its extras included, in order."""
    asked = [each for each in requires(DISTRIBUTION) or () if not re.search(r"extra == .dev\b", each)]
    names = {re.split(r"[^A-Za-z0-9._-]", each, maxsplit=1)[0] for each in asked}
    return sorted(names - {DISTRIBUTION}, key=str.lower)


def commit(folder: Path = SOURCE) -> str | None:
    """The git commit of the source that runs, with ``+`` where files differ from it; None of an installed package.

    Args:
        folder: where ``.git`` is, if this is a checkout.
    """
    if not (folder / ".git").exists():
        return None
    try:
        head, changed = (_git(folder, *call) for call in (("rev-parse", "HEAD"), ("status", "--porcelain", "-uno")))
    except (OSError, subprocess.SubprocessError):  # there is no git, or no commit
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
    """The stages of a configuration, in order: the chain, the evaluators that it asks for, the report."""
    stages = [stage for part in CHAIN for stage in part(config)]
    for evaluator in evaluators:
        if config.evaluation.find(evaluator.settings) is not None:
            stages += [replace(stage, optional=True) for stage in stages_of(evaluator, config)]
    return [*stages, *report_stages(config, evaluators)]


def execute(config: RunConfig, evaluators: Sequence[Evaluator], *, base: Path, runs: Path, force: bool = False) -> Path:
    """Run an experiment in ``runs/<name>``; stages that are up to date are skipped.

    After Ctrl-C or a kill, the same call goes on: finished stages are kept, and the stage that was
    interrupted resumes from its own checkpoints.

    Args:
        config: what to do.
        evaluators: that it may ask for.
        base: folder that relative paths of the configuration start from.
        runs: folder of all runs.
        force: make every stage again.

    Returns:
        The report.

    Raises:
        InputError: a model or code that the configuration names is not there or cannot be used, the run folder holds
            something else, another process is at work in it, or a stage refuses its input.
    """
    folder = runs / config.name
    run = RunFolder(config, folder, base)
    with computing(config.device, config.dtype):
        check(run, force=force)
    state_file = folder / STATE
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot make the run folder: {error.strerror or error}", folder) from error
    with exclusive(folder):
        remove_leftovers_in(folder, deep=True)
        state = state_of(run, force=force)
        write_json(state_file, {"stages": state})  # first, so that a kill right here leaves a run
        write_json(folder / "config.json", config.model_dump(mode="json"))
        with computing(config.device, config.dtype):
            _run_stages(run, plan(config, evaluators), state, state_file)
    return folder / "report.html"


def check(run: RunFolder, *, force: bool) -> None:
    """Refuse a run that cannot begin.

    Raises:
        InputError: a library for it is not installed, a model or code that the configuration names is not there or
            cannot be used, or the run folder holds something else.
    """
    check_references(run)
    check_extras(run)
    check_code(run.config, run.base)
    check_room(run, force=force)
    if not force:
        refuse_foreign(run.folder, STATE, "this exists and is not a run; choose another name or use --force")


def check_room(run: RunFolder, *, force: bool) -> None:
    """Refuse a corpus or a network that does not fit this machine, unless it is made already.

    Raises:
        NoRoomError: one does not fit (code ``too-large``).
    """
    corpus = run.config.corpus
    if force or not (run.folder / "corpus" / "record.json").is_file():
        require_corpus_room(corpus.splits, corpus.shard_size, run.folder / "corpus")
    for entry in run.config.entries:
        if not entry.loaded and (force or not (run.model_folder(entry) / TRAINING).is_file()):
            shape, training = entry.resolve(run.base)
            require_network_room(shape, training=training)


def check_extras(run: RunFolder) -> None:
    """Refuse a run for which libraries are missing: a report is part of each, networks of most.

    Raises:
        MissingExtraError: one is missing.
    """
    networks = any(not entry.loaded or run.reference(entry).folder is not None for entry in run.config.models)
    require_extras(f"the run {run.config.name}", *(["lm"] if networks else []), "report")


def state_of(run: RunFolder, *, force: bool) -> dict[str, Any]:
    """The state of the finished stages of a run, by name; empty where all are made again.

    Raises:
        InputError: the record is damaged.
    """
    return {} if force else _read_state(run.folder / STATE)


def depends_on(run: RunFolder, stage: Stage) -> dict[str, Any]:
    """The inputs that the result of a stage depends on: the version, settings, and digests."""
    dtype = run.config.dtype
    measured = {} if dtype in (None, DTYPE) or stage.kind in WITHOUT_DTYPE else {"networks": dtype}
    return {"version": version("truesource"), "inputs": stage.inputs(run), **measured}


def is_up_to_date(folder: Path, known: dict[str, Any], depends: dict[str, Any]) -> bool:
    """True if a finished stage depends on nothing else now, and all its files are there."""
    return bool(
        known["inputs"] == digest_json(depends) and ("unmeasured" in known or _is_whole(folder, known["files"]))
    )


def _run_stages(run: RunFolder, stages: Sequence[Stage], state: dict[str, Any], state_file: Path) -> None:
    started = now()
    for number, stage in enumerate(stages, start=1):
        depends = depends_on(run, stage)
        known = state.get(stage.name)
        if known and is_up_to_date(run.folder, known, depends):
            log.info("[%d/%d] %s: unchanged, skipped", number, len(stages), stage.name)
            state[stage.name] = {**known, "depends": depends, "skipped": True}
        else:
            log.info("[%d/%d] %s", number, len(stages), stage.name)
            state.pop(stage.name, None)
            write_json(state_file, {"stages": state})
            if stage.name == "report":
                write_json(run.folder / "provenance.json", provenance(run.config.seed, started, run.config.seeds))
            begun = time.perf_counter()
            made = _make(run, stage)
            seconds = time.perf_counter() - begun
            log.info("[%d/%d] %s: done in %.1f s", number, len(stages), stage.name, seconds)
            state[stage.name] = {
                "inputs": digest_json(depends),
                "depends": depends,
                **made,
                "seconds": round(seconds, 2),
                "skipped": False,
                "finished": now(),
                "files": _sizes(run.folder, stage.made),
            }
        run.outputs[stage.name] = state[stage.name]["output"]
        if "unmeasured" in state[stage.name]:
            run.unmeasured[stage.name] = state[stage.name]["unmeasured"]
        write_json(state_file, {"stages": state})


def _make(run: RunFolder, stage: Stage) -> dict[str, Any]:
    """Make a stage: the digest of its ``output``, and why it is ``unmeasured`` where it found nothing to measure.

    A stage of a model is not made where the stage that all models share, of the same kind, found nothing.
    """
    note = run.unmeasured.get(stage.kind)
    if note is None:
        try:
            return {"output": stage.make(run)}
        except InputError as error:
            if not stage.optional or not (isinstance(error, NothingToMeasureError) or error.code == MISSING):
                raise
            note = {"code": error.code, "reason": error.reason}
            log.warning("%s: nothing to measure: %s", stage.name, error.reason)
    for path in [path for pattern in stage.made for path in run.folder.glob(pattern)]:
        path.unlink()  # of an earlier configuration
    return {"output": digest_json(note), "unmeasured": note}


def _sizes(folder: Path, patterns: tuple[str, ...]) -> dict[str, int]:
    """Bytes of the files a stage has made, by name relative to the run folder."""
    files = sorted(path for pattern in patterns for path in folder.glob(pattern))
    return {path.relative_to(folder).as_posix(): path.stat().st_size for path in files}


def _is_whole(folder: Path, files: dict[str, int]) -> bool:
    """True if all that a stage made still stands there, none of it cut short."""
    return bool(files) and all(
        (folder / name).is_file() and (folder / name).stat().st_size == size for name, size in files.items()
    )


def _read_state(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    from truesource.evaluation.show.records import StagesRecord

    remedy = "use --force to make every stage again"
    return dict(read_record(path, StagesRecord, what="the state of the run", remedy=remedy)["stages"])


class Fate(StrEnum):
    """The fate of a stage in a dry run."""

    RUNS = "runs"
    MAY_RUN = "may run"  #: it depends on what an earlier stage will make, which may be the same as before
    UP_TO_DATE = "up to date"


@dataclass(frozen=True)
class PlannedStage:
    """One stage of a run that has not begun."""

    name: str
    fate: Fate
    reason: str  #: why it would be made; empty for what is up to date


def dry_run(
    config: RunConfig, evaluators: Sequence[Evaluator], *, base: Path, runs: Path, force: bool = False
) -> list[PlannedStage]:
    """The stages of a run in order; nothing is written.

    Arguments and errors are those of `truesource.run.runner.execute`.
    """
    run = RunFolder(config, runs / config.name, base)
    check(run, force=force)
    state = state_of(run, force=force)
    found = []
    for stage in plan(config, evaluators):
        known = state.get(stage.name)
        pending = [name for name, output in run.outputs.items() if output.startswith(_PENDING)]
        try:
            depends = depends_on(run, stage)
        except InputError:
            if not pending:
                raise
            depends = {
                "inputs": {name: run.outputs[name] for name in pending}
            }  # it reads files that are yet to be made
        if force or known is None:
            planned = PlannedStage(stage.name, Fate.RUNS, "--force" if force else "new")
        elif is_up_to_date(run.folder, known, depends):
            planned = PlannedStage(stage.name, Fate.UP_TO_DATE, "")
        else:
            planned = _because(stage.name, known, depends)
        finished = known if planned.fate is Fate.UP_TO_DATE else None
        run.outputs[stage.name] = f"{_PENDING}{stage.name}" if finished is None else finished["output"]
        found.append(planned)
    return found


def _because(name: str, known: dict[str, Any], depends: dict[str, Any]) -> PlannedStage:
    """Return the reason why a stage that was made before would be made again."""
    changed = list(_changes(known["depends"], depends, ""))
    waits = [text.removeprefix(_PENDING) for text in changed if text.startswith(_PENDING)]
    own = [text for text in changed if not text.startswith(_PENDING)]
    if own:
        more = f" and {len(own) - MOST} more" if len(own) > MOST else ""
        return PlannedStage(name, Fate.RUNS, "; ".join(own[:MOST]) + more)
    if waits:
        return PlannedStage(name, Fate.MAY_RUN, f"if its input changes: {', '.join(dict.fromkeys(waits))}")
    return PlannedStage(name, Fate.RUNS, "files are missing or incomplete")


def _changes(before: Any, now: Any, key: str) -> Iterator[str]:
    """Differences between two JSON values, in words; those that wait for a stage begin with `_PENDING`."""
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
