"""Which stages of a run would be made, and why, without making any."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from truesource.grammar.support.errors import InputError
from truesource.run.config import RunConfig
from truesource.run.evaluator import Evaluator
from truesource.run.folder import RunFolder
from truesource.run.runner import check, depends_on, is_up_to_date, plan, state_of

MOST = 3  #: changes of a stage that are named
_PENDING = "made again: "  #: begins the digest of what an earlier stage has yet to make
_DIGEST = re.compile(r"[0-9a-f]{12,}(\+[0-9a-f]{12,})?")


class Fate(StrEnum):
    """What would become of a stage."""

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
    """Why a stage that was made before would be made again."""
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
    """What differs between two JSON values, in words; what waits for a stage begins with `_PENDING`."""
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
