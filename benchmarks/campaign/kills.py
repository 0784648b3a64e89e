"""Kills at random system calls: the same command, called again, must end as if it had never been stopped."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import outcome
import tally
import traced
from verbs import Verb

SIGNALS = ("SIGKILL", "SIGKILL", "SIGKILL", "SIGTERM", "SIGINT")
FINE = ("resumed", "resumed with --force", "had finished")


def campaign(folder: Path, verbs: list[Verb], number: int, seed: int, only: int | None) -> int:
    """Kill a verb at a random system call, then call it again: same bytes, nothing left over, nothing lost.

    A third of the cases work with ``--force`` over an older result, which must be there, old or new, at the kill.
    """
    traced.present()
    outcome.preload(ours=True)
    base, scratch = folder / "world", folder / "killed"
    if only is None:
        outcome.warm(base, scratch, verbs)
    plans: dict[str, tuple[list[traced.Event], dict[str, str]]] = {}

    def case(rng: random.Random) -> tally.Case:
        verb = rng.choice([verb for verb in verbs if verb.made])
        if verb.name not in plans:
            plans[verb.name] = _plan(base, scratch, folder, verb)
        events, expected = plans[verb.name]
        event = _pick(events, rng)
        how = rng.choice(SIGNALS)
        force = rng.random() < 1 / 3 and verb.name not in ("run", "run-again", "report", "scaling")
        outcome.copied(base, scratch)
        call = verb
        if force:
            shutil.copytree(folder / "made" / verb.name, scratch / "out", dirs_exist_ok=True)
            call = Verb(verb.name, (*verb.args, "--force"), verb.reads, verb.made)
        stopped = traced.disturbed(scratch, call, event, f"signal={how}")
        kind = _kind(scratch, call, stopped, how, expected, force)
        what = f"{verb.name}{' --force' if force else ''}, {how} at {event.call} {event.number}"
        return tally.Case(what, kind, event.text[:200], stopped)

    code = tally.run("kills", case, FINE, number, seed, only)
    if only is None:
        shutil.rmtree(scratch, ignore_errors=True)
    return code


def _plan(base: Path, scratch: Path, folder: Path, verb: Verb) -> tuple[list[traced.Event], dict[str, str]]:
    outcome.copied(base, scratch)
    events = traced.events(scratch, verb)
    events = [event for event in events if traced.inside(event, scratch)] * 4 + events  # mostly those that matter
    kept = folder / "made" / verb.name
    if kept.exists():
        shutil.rmtree(kept)
    shutil.copytree(scratch / "out", kept)
    return events, outcome.results(scratch, verb)


def _pick(events: list[traced.Event], rng: random.Random) -> traced.Event:
    changing = [event for event in events if event.changes]
    return rng.choice(changing if changing and rng.random() < 0.8 else events)


def _kind(
    folder: Path,
    verb: Verb,
    stopped: outcome.Outcome,
    how: str,
    expected: dict[str, str],
    force: bool,
) -> str:
    if "Traceback" in stopped.err:
        return f"traceback at {how}: {stopped.err.strip().splitlines()[-1][:200]}"
    if force and not all((folder / name).exists() for name in _roots(expected, verb)):
        return "lost: neither old nor new"
    again = outcome.call(folder, verb)
    if again.fault is not None:
        return f"second call: {again.fault}: {again.err.strip()[-300:]}"
    if again.code:
        if outcome.results(folder, verb) == expected and "without --force" in again.err:
            left = outcome.litter(folder, verb)
            return f"litter after the end: {left[:3]}" if left else "had finished"
        return f"refused to go on: {again.err.strip().splitlines()[-1][:200]}"
    left = outcome.litter(folder, verb)
    if left:
        return f"litter: {left[:3]}"
    found = outcome.results(folder, verb)
    if found != expected:
        names = sorted(k for k in found.keys() | expected.keys() if found.get(k) != expected.get(k))
        return f"other bytes: {names[:4]}"
    return "resumed with --force" if force else "resumed"


def _roots(expected: dict[str, str], verb: Verb) -> set[str]:
    return {name for name in verb.made if any(k == name or k.startswith(f"{name}/") for k in expected)}
