"""Calls of the command in a process without the libraries of the extras; run as a program, it prints what they did.

Standard input is a JSON object: ``without``, the modules that are not installed, ``calls``, lists of arguments, and
``imports``, names to import from `truesource`. Standard output is a JSON object of ``calls`` and ``imports``.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from typing import Any


class NotInstalled(MetaPathFinder):
    """Finds that some modules are not there, whatever is installed."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = frozenset(names)

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if fullname.partition(".")[0] in self._names:
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)
        return None


def call(arguments: list[str]) -> tuple[int, str]:
    """Exit code, and what was written, of one call."""
    from truesource.cli.main import main

    written = io.StringIO()
    sys.argv = ["truesource", *arguments]
    with contextlib.redirect_stdout(written), contextlib.redirect_stderr(written):
        try:
            main()
            code = 0
        except SystemExit as end:
            code = int(end.code or 0)
    return code, written.getvalue()


def imported(name: str) -> str:
    """What importing a name raises; empty: nothing."""
    import truesource

    try:
        getattr(truesource, name)
    except Exception as error:  # its kind is what is asked for
        return f"{type(error).__name__}: {error}"
    return ""


if __name__ == "__main__":
    asked = json.load(sys.stdin)
    sys.meta_path.insert(0, NotInstalled(asked["without"]))
    made = {"calls": [call(each) for each in asked["calls"]], "imports": {n: imported(n) for n in asked["imports"]}}
    made["loaded"] = sorted({name.partition(".")[0] for name in sys.modules} & set(asked["without"]))
    json.dump(made, sys.stdout)
