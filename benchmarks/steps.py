"""How many files of truesource a command enters, and how often it moves from one to another: what a reader must follow.

    python benchmarks/steps.py score MODEL CORPUS --oracle GRAMMAR
    python benchmarks/steps.py            a small corpus and model: score, evaluate pplu, run

Functions that Python enters count, once each, with their files; bodies of modules and kernels do not. A move is a call,
distinct by caller and callee, from a function of one file to a function of another. The last two columns say how often
a corpus is opened, and how often a folder is asked whether it is one of samples.
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = tuple(f"{ROOT / name}{os.sep}" for name in ("truesource", "grammar", "generator", "lmtrain", "evaluation"))
GRAMMAR = "S -> A S 0.4 | A 0.6\nA -> 'a' 0.5 | 'b' 0.3 | 'c' 0.2\n"
RUN = """\
name: toy
grammar: {method: file, file: g.txt}
corpus: {lengths: 1..8, splits: {train: 100, eval: 40}}
models: [{name: counts, model: {architecture: ngram}}]
"""


#: functions whose calls count, by file
OPENED, ASKED = ("generator/corpus.py", "load"), ("lmtrain/decoding/folder.py", "is_sample_folder")


class Steps:
    """Functions that have been entered so far."""

    def __init__(self) -> None:
        self.calls: Counter[tuple[str, str]] = Counter()
        self.functions: set[tuple[str, str, int]] = set()
        self.moves: set[tuple[tuple[str, str, int], tuple[str, str, int]]] = set()

    def watch(self, frame: FrameType, event: str, _: Any) -> None:
        """Note a call, for `sys.setprofile`."""
        if event != "call" or (entered := _place(frame)) is None:
            return
        self.functions.add(entered)
        self.calls[str(Path(entered[0]).relative_to(ROOT)), entered[1]] += 1
        caller = frame.f_back
        while caller is not None and _place(caller) is None:  # a library between them
            caller = caller.f_back
        before = None if caller is None else _place(caller)
        if before is not None and before[0] != entered[0]:
            self.moves.add((before, entered))

    def row(self, name: str) -> str:
        """A row of the table."""
        files = Counter(file for file, _, _ in self.functions)
        return (
            f"| {name} | {len(files)} | {len(self.functions)} | {len(self.moves)} |"
            f" {self.calls[OPENED]} | {self.calls[ASKED]} |"
        )


def _place(frame: FrameType) -> tuple[str, str, int] | None:
    code = frame.f_code
    if not code.co_filename.startswith(PACKAGES) or code.co_name == "<module>" or "_kernels" in code.co_filename:
        return None
    return os.path.realpath(code.co_filename), code.co_name, code.co_firstlineno


def steps_within(call: Callable[[], object]) -> Steps:
    """Make a call of the library, and note what it enters."""
    steps = Steps()
    threading.setprofile(steps.watch)
    sys.setprofile(steps.watch)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return steps


def steps_of(*arguments: str) -> Steps:
    """Call the command in this process, and note what it enters.

    Raises:
        RuntimeError: it ended with an error.
    """
    from truesource.cli.main import main

    errors = StringIO()
    sys.argv = ["truesource", *arguments]

    def call() -> None:
        with redirect_stdout(StringIO()), redirect_stderr(errors):
            try:
                main()
            except SystemExit as stop:
                if stop.code:
                    raise RuntimeError(errors.getvalue()) from stop

    return steps_within(call)


def table(calls: dict[str, tuple[str, ...]]) -> None:
    """Print a row for each call."""
    print("| command | files | functions | moves between files | opened | asked |\n|---|---|---|---|---|---|")
    for name, arguments in calls.items():
        print(steps_of(*arguments).row(name), flush=True)


def main() -> None:
    """Print the table."""
    if len(sys.argv) > 1:
        table({sys.argv[1]: tuple(sys.argv[1:])})
        return
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        Path("g.txt").write_text(GRAMMAR, encoding="utf-8")
        Path("toy.yaml").write_text(RUN, encoding="utf-8")
        steps_of("convert", "g.txt", "g.npz")
        steps_of("sample", "g.npz", "-n", "200", "--lengths", "1..8", "--shares", "train=.5,eval=.5", "-o", "c")
        steps_of("train", "c", "--model", "ngram", "-o", "m")
        on = ("m", "c")
        verbs = {"score": ("score", *on), "evaluate pplu": ("evaluate", "pplu", *on)}
        explain = ("explain", *on, "-o", "why", "--levers", "context")
        table({**verbs, "explain": explain, "run": ("run", "toy.yaml")})
        import truesource

        print(steps_within(lambda: truesource.compare("m", "c")).row("truesource.compare"))


if __name__ == "__main__":
    main()
