"""Damaged files: a verb reads a world in which one file is not what it was."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import damage
import outcome
import tally
import world
from verbs import KEPT, Verb

FINE = ("refused", "same", "other input")


def campaign(folder: Path, verbs: list[Verb], number: int, seed: int, only: int | None) -> int:
    """Damage one file a case; the command must succeed with the same result, or refuse in a sentence.

    Of files that carry no digest, those that a person or another program writes, another result is right: it is
    another input. Everything else that changes a result without a word is counted as ``silent``.
    """
    outcome.preload(ours=True)
    base, scratch = folder / "world", folder / "scratch"
    if only is None:
        outcome.warm(base, scratch, verbs)
    expected: dict[str, dict[str, str]] = {}

    def case(rng: random.Random) -> tally.Case:
        verb = rng.choice([verb for verb in verbs if verb.reads])
        if verb.name not in expected:
            expected[verb.name] = _undamaged(base, scratch, verb)
        outcome.copied(base, scratch)
        file = rng.choice(_files(scratch, verb))
        how = damage.damage(file, rng)
        done = outcome.call(scratch, verb)
        kind = _kind(scratch, verb, file, done, expected[verb.name])
        detail = "\n".join((done.err or done.out).strip().splitlines()[-3:])[:600]
        return tally.Case(f"{verb.name}, {how} of {file.relative_to(scratch)}", kind, detail, done)

    code = tally.run("damaged files", case, FINE, number, seed, only)
    if only is None:
        shutil.rmtree(scratch)
    return code


def _kind(folder: Path, verb: Verb, file: Path, done: outcome.Outcome, expected: dict[str, str]) -> str:
    if done.fault is not None:
        return done.fault
    if done.code == 2:
        left = [name for name in verb.made if (folder / name).exists() and name not in KEPT]
        return f"half written: {left}" if left else "refused"
    if outcome.litter(folder, verb):
        return f"litter: {outcome.litter(folder, verb)[:3]}"
    found = outcome.results(folder, verb)
    name = str(file.relative_to(folder))
    if {k: v for k, v in found.items() if k != name} == {k: v for k, v in expected.items() if k != name}:
        return "same"
    return "other input" if world.without_digest(name) else "silent"


def _undamaged(base: Path, scratch: Path, verb: Verb) -> dict[str, str]:
    outcome.copied(base, scratch)
    done = outcome.call(scratch, verb)
    if done.code or done.fault:
        raise SystemExit(f"{verb.name} fails without damage: {done.fault}\n{done.out}{done.err}")
    return outcome.results(scratch, verb)


def _files(folder: Path, verb: Verb) -> list[Path]:
    found: list[Path] = []
    for name in verb.reads:
        place = folder / name
        found += [place] if place.is_file() else sorted(p for p in place.rglob("*") if p.is_file())
    return [p for p in found if p.suffix not in (".md", ".html") and not p.name.startswith(".")]
