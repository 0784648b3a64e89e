"""One call of the command, and what is to be said of how it ended."""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import io
import json
import os
import pkgutil
import re
import resource
import selectors
import shutil
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from verbs import THREADED, Verb

LIMIT = 400  #: seconds of wall time for one call
MEMORY = 8 * 2**30  #: bytes of address space that a call may take beyond what is mapped at its start
#: files whose content tells when and how fast something ran, and keys that do
TIMED = re.compile(r"(provenance\.json|stages\.json|report\.html|times\.jsonl|\.lock)$")
TIMED_KEY = re.compile(r"seconds|started|finished|duration|per_second|command|created")


@dataclass(frozen=True)
class Outcome:
    """How a call ended."""

    code: int
    out: str
    err: str
    seconds: float

    @property
    def fault(self) -> str | None:
        """What is wrong with this ending whatever the input: a traceback, a hang, a death, more than one sentence."""
        if self.code == -signal.SIGALRM:
            return "hang"
        if "Traceback" in self.err or "Traceback" in self.out:
            return "traceback"
        if self.code < 0:
            return f"died of {signal.Signals(-self.code).name}"
        if self.code not in (0, 2):
            return f"exit code {self.code}"
        if self.code == 2 and "truesource: " not in self.err and "Usage:" not in self.err:
            return "no sentence"
        if re.search(r"[\x00-\x08\x0b-\x1f\x7f\x80-\x9f]", self.out + self.err):
            return "control characters"
        return None


def preload(*, ours: bool) -> None:
    """Import what every verb needs, so that a case is a fork and not a start.

    Args:
        ours: also all modules of this suite, which a verb imports when it comes to need them; without, a case is slower
            and shows what happens when one of these imports fails.
    """
    import datasets  # noqa: F401
    import matplotlib.pyplot  # noqa: F401
    import numba  # noqa: F401
    import pyarrow.parquet  # noqa: F401
    import scipy.stats  # noqa: F401
    import torch  # noqa: F401
    import transformers  # noqa: F401
    from transformers import AutoModelForCausalLM, AutoModelForMaskedLM, Trainer  # noqa: F401

    import truesource.cli.main
    import truesource.lmtrain.models
    import truesource.lmtrain.training  # noqa: F401

    for name in ("truesource",) if ours else ():
        for module in pkgutil.walk_packages(importlib.import_module(name).__path__, f"{name}."):
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)


def warm(world: Path, scratch: Path, verbs: list[Verb]) -> None:
    """Call here once what can be, so that compiled code is loaded once and not in every case.

    What a verb keeps in memory is of no file: a case finds nothing there of what it reads.
    """
    from truesource.cli.main import main

    before = Path.cwd()
    for verb in verbs:
        if not verb.name.startswith(THREADED):
            copied(world, scratch)
            os.chdir(scratch)
            sys.argv = ["truesource", *verb.args]
            said = io.StringIO()
            try:
                with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
                    main()
            except SystemExit as stop:
                if stop.code:
                    raise SystemExit(f"{verb.name} fails without damage: {said.getvalue()}") from None
    os.chdir(before)


def copied(source: Path, target: Path) -> None:
    """A copy of the world, of hard links: what is changed must be replaced, not written to."""
    if target.exists():
        shutil.rmtree(target)
    shutil.copytree(source, target, copy_function=os.link, symlinks=True)
    (target / "out").mkdir(exist_ok=True)


def call(
    folder: Path,
    verb: Verb,
    before: Callable[[], None] | None = None,
    started: Callable[[int], None] | None = None,
) -> Outcome:
    """Call a verb in a forked child of this process, which has the heavy libraries already.

    Args:
        folder: to work in.
        verb: to call.
        before: called in the child before the verb.
        started: called here with the number of the child's process.
    """
    pipes = os.pipe(), os.pipe()  # not files: what a limit on the size of files leads to must be said
    begun = time.perf_counter()
    child = os.fork()
    if child == 0:
        _child(folder, verb, pipes, before)
    for _, end in pipes:
        os.close(end)
    if started is not None:
        started(child)
    status, said = _followed(child, [end for end, _ in pipes])
    for end, _ in pipes:
        os.close(end)
    out, err = (text.decode("utf-8", errors="replace") for text in said)
    return Outcome(os.waitstatus_to_exitcode(status), out, err, time.perf_counter() - begun)


def _followed(child: int, pipes: list[int]) -> tuple[int, list[bytes]]:
    """Read until the child ends, though others that it leaves behind may hold the pipes; its status, what it said."""
    said = dict.fromkeys(pipes, b"")
    with selectors.DefaultSelector() as open_pipes:
        for pipe in pipes:
            open_pipes.register(pipe, selectors.EVENT_READ)
        ended, status = 0, 0
        while True:
            ready = open_pipes.select(0 if ended else 0.05) if open_pipes.get_map() else []
            for key, _ in ready:
                text = os.read(key.fd, 2**16)
                said[key.fd] += text
                if not text:
                    open_pipes.unregister(key.fd)
            if ended and not ready:
                return status, list(said.values())
            if not ended:
                ended, status = os.waitpid(child, os.WNOHANG if open_pipes.get_map() else 0)


def _child(folder: Path, verb: Verb, pipes: tuple[tuple[int, int], ...], before: Callable[[], None] | None) -> None:
    code = 99
    try:
        os.chdir(folder)
        for number, ends in enumerate(pipes, start=1):
            os.dup2(ends[1], number)
            for end in ends:
                os.close(end)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell lets what runs behind it ignore Ctrl-C
        signal.alarm(LIMIT)
        mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (mapped + MEMORY, mapped + MEMORY))
        if before is not None:
            before()
        sys.argv = ["truesource", *verb.args]
        from truesource.cli.main import main

        try:
            main()
            code = 0
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else 0 if stop.code is None else 1
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:
        import traceback

        traceback.print_exc()
        sys.stderr.flush()
        code = 1
    os._exit(code)


def results(folder: Path, verb: Verb) -> dict[str, str]:
    """Digest of every file that a verb made, without what tells the time."""
    found = {}
    for name in verb.made:
        place = folder / name
        files = [place] if place.is_file() else sorted(p for p in place.rglob("*") if p.is_file())
        for file in files:
            if not TIMED.search(file.name):
                found[str(file.relative_to(folder))] = hashlib.sha256(_untimed(file)).hexdigest()
    return found


def _untimed(file: Path) -> bytes:
    data = file.read_bytes()
    if file.suffix == ".json":
        try:
            return json.dumps(_without_times(json.loads(data)), sort_keys=True).encode()
        except ValueError:
            return data
    return data


def _without_times(value: object) -> object:
    if isinstance(value, dict):
        return {key: _without_times(inner) for key, inner in value.items() if not TIMED_KEY.search(key)}
    return [_without_times(inner) for inner in value] if isinstance(value, list) else value


def litter(folder: Path, verb: Verb) -> list[str]:
    """Temporary files inside results, or beside them where no later call will find them."""
    names = [str(p.relative_to(folder)) for p in (folder / "out").rglob("*")]
    names += [str(p.relative_to(folder)) for p in folder.iterdir() if p.name.startswith(".")]
    return [n for n in names if re.search(r"\.(partial|retired|tmp|work)(/|$)", n) or re.search(r"(^|/)tmp\w{8}$", n)]
