"""Failing system calls and tight limits: full disks, no descriptors, no memory, no threads, read-only folders."""

from __future__ import annotations

import random
import re
import resource
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import outcome
import tally
import traced
from verbs import Verb

#: what may fail, and how
ERRORS = {
    "write": ("ENOSPC", "EIO", "EDQUOT", "EFBIG"),
    "pwrite64": ("ENOSPC", "EIO", "EDQUOT"),
    "ftruncate": ("ENOSPC", "EIO"),
    "fsync": ("EIO", "ENOSPC"),
    "openat": ("EMFILE", "ENFILE", "EACCES", "EROFS", "ENOSPC", "EIO", "ENOMEM"),
    **dict.fromkeys(("mkdir", "mkdirat"), ("ENOSPC", "EROFS", "EACCES")),
    **dict.fromkeys(("rename", "renameat", "renameat2", "link", "linkat"), ("EIO", "EROFS", "EACCES", "ENOSPC")),
    **dict.fromkeys(("unlink", "unlinkat", "rmdir"), ("EIO", "EROFS", "EACCES")),
}
#: what a library says that ends the process where there is no memory, and leaves nobody to say it better
ABORTED = re.compile("allocate|memory|bad_alloc", re.IGNORECASE)
FINE = ("a sentence, then right", "not noticed, right", "aborted by a library, then right")


def campaign(folder: Path, verbs: list[Verb], number: int, seed: int, only: int | None) -> int:
    """Let one system call fail, or set one limit; then call again without: a sentence first, then the right bytes."""
    traced.present()
    outcome.preload(ours=False)
    base, scratch = folder / "world", folder / "failing"
    plans: dict[str, tuple[list[traced.Event], dict[str, str]]] = {}

    def case(rng: random.Random) -> tally.Case:
        verb = rng.choice([verb for verb in verbs if verb.made])
        if verb.name not in plans:
            outcome.copied(base, scratch)
            seen = traced.events(scratch, verb)
            mine = [e for e in seen if traced.inside(e, scratch) and e.call in ERRORS]
            plans[verb.name] = mine, outcome.results(scratch, verb)
        events, expected = plans[verb.name]
        outcome.copied(base, scratch)
        if rng.random() < 0.6 and events:
            event = rng.choice([e for e in events if e.changes] or events) if rng.random() < 0.8 else rng.choice(events)
            error = rng.choice(ERRORS[event.call])
            what = f"{error} at {event.call} {event.number}: {event.text[:150]}"
            failed = traced.disturbed(scratch, verb, event, f"error={error}")
        else:
            what, limit = _limit(rng)
            failed = outcome.call(scratch, verb, limit)
        kind = _kind(scratch, verb, failed, expected)
        detail = "\n".join(failed.err.strip().splitlines()[-3:])[:600]
        return tally.Case(f"{verb.name}, {what}", kind, detail, failed)

    code = tally.run("failures", case, FINE, number, seed, only)
    if only is None:
        shutil.rmtree(scratch, ignore_errors=True)
    return code


def _limit(rng: random.Random) -> tuple[str, Callable[[], None]]:
    how = rng.choice(("size of files", "descriptors", "memory", "full standard output"))
    if how == "size of files":
        most = rng.choice((0, 100, 1000, 10_000, 50_000))
        return f"files of at most {most} bytes", lambda: _set(resource.RLIMIT_FSIZE, most)
    if how == "descriptors":
        most = rng.choice((4, 6, 8, 12, 16, 24))
        return f"at most {most} descriptors", lambda: _set(resource.RLIMIT_NOFILE, most)
    if how == "memory":
        more = rng.choice((0, 2**20, 2**24, 2**26, 2**28))
        return f"at most {more / 2**20:g} MiB more memory", lambda: _set(resource.RLIMIT_AS, _mapped() + more)
    return "standard output is a full device", _full_output


def _set(which: int, most: int) -> None:
    resource.setrlimit(which, (most, resource.getrlimit(which)[1]))


def _mapped() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def _full_output() -> None:
    import os

    os.dup2(os.open("/dev/full", os.O_WRONLY), 1)


def _kind(folder: Path, verb: Verb, failed: outcome.Outcome, expected: dict[str, str]) -> str:
    aborted = failed.code == -signal.SIGABRT and ABORTED.search(failed.err) is not None
    if failed.fault is not None and not aborted:
        return failed.fault
    again = outcome.call(folder, verb)
    if again.fault is not None:
        return f"second call: {again.fault}"
    if again.code and not ("without --force" in again.err and outcome.results(folder, verb) == expected):
        return f"refused to go on: {again.err.strip().splitlines()[-1][:200]}"
    if left := outcome.litter(folder, verb):
        return f"litter: {left[:3]}"
    if outcome.results(folder, verb) != expected:
        return "other bytes"
    if aborted:
        return "aborted by a library, then right"
    return "a sentence, then right" if failed.code else "not noticed, right"
