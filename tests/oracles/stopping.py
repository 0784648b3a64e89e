"""Stops one call of the command at every change it makes to the disk, and makes the same call again.

    python stopping.py SIGNAL FOLDER ARGUMENT...

FOLDER is what the call finds. The call is made once to its end; then again and again in fresh copies of the folder, in
which it gets the signal just before its first, second, ... change to the disk, and is then made once more. Prints, as
JSON, what the whole call left and, for every stop: where it was, how it ended, what it left, how the same call ended
after it, and what is then another file, or has other bytes.

Processes are forked, so that the libraries are imported once.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
CHANGES = {"os.rename": 2, "os.remove": 1, "os.rmdir": 1, "os.mkdir": 1, "os.link": 2, "os.truncate": 1}


def call(arguments: list[str]) -> tuple[int, str]:
    """Make the call here; exit code and what it said on stderr."""
    from truesource.cli.main import main

    sys.argv = ["truesource", *arguments]
    said = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(said):
        try:
            main()
        except SystemExit as stop:
            return int(stop.code or 0), said.getvalue()
    return 0, said.getvalue()


def stop_at(number: int, sent: int, folder: Path, note: Path) -> None:
    """Send this process a signal just before its change number ``number`` to what is in ``folder``."""
    seen = 0

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal seen
        if event == "open":
            changed = bool(arguments[2] & WRITES)
            paths = arguments[:1]
        else:
            changed = event in CHANGES
            paths = arguments[: CHANGES.get(event, 0)]
        named = [os.fsdecode(path) for path in paths if isinstance(path, str | bytes | os.PathLike)]
        if not changed or not any(str(Path(name).absolute()).startswith(f"{folder}/") for name in named):
            return
        seen += 1
        if seen == number:
            with note.open("w", encoding="utf-8") as stream:
                stream.write(f"{event} {' '.join(os.path.relpath(name, folder) for name in named)}")
            os.kill(os.getpid(), sent)

    sys.addaudithook(hook)


def forked(work: Callable[[], Any], note: Path) -> tuple[int, Any]:
    """Do something in a child; its status, and what it returned."""
    child = os.fork()
    if child == 0:
        result = work()
        note.write_text(json.dumps(result), encoding="utf-8")
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return status, json.loads(note.read_text(encoding="utf-8")) if status == 0 else None


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder, hidden ones too, and empty folders."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b""
        for path in sorted(folder.rglob("*"))
        if path.is_file() or not any(path.iterdir())
    }


def main() -> None:
    """Stop a call everywhere."""
    sent, template, arguments = int(signal.Signals[sys.argv[1]]), Path(sys.argv[2]), sys.argv[3:]
    with tempfile.TemporaryDirectory() as scratch:
        here, note = Path(scratch).resolve() / "here", Path(scratch) / "note"

        def fresh() -> None:
            shutil.rmtree(here, ignore_errors=True)
            shutil.copytree(template, here)
            os.chdir(here)

        fresh()
        code, said = call(arguments)
        whole = contents(here)
        stops = []
        number = 0
        while True:
            number += 1
            fresh()
            where = Path(scratch) / "where"
            where.unlink(missing_ok=True)

            def stopped(number: int = number, where: Path = where) -> tuple[int, str]:
                stop_at(number, sent, here, where)
                return call(arguments)

            status, ended = forked(stopped, note)
            if not where.exists():
                break
            left = {name: text.decode("latin-1") for name, text in contents(here).items()}
            _, (again, told) = forked(lambda: call(arguments), note)
            there = contents(here)
            stops.append(
                {
                    "where": where.read_text(encoding="utf-8"),
                    "status": status,
                    "ended": ended,
                    "left": left,
                    "again": again,
                    "told": told,
                    "differ": sorted(n for n in whole.keys() | there.keys() if whole.get(n) != there.get(n)),
                }
            )
        os.chdir("/")
        print(json.dumps({"code": code, "said": said, "whole": sorted(whole), "stops": stops}))


if __name__ == "__main__":
    main()
