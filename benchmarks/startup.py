"""Seconds and memory of small calls of the command, beside an earlier commit: the wait before the first number.

    python benchmarks/startup.py [--before CHECKOUT] [--busy 0] [--repeats 5]

Each figure is the median over processes of their own, now and before in turn: processor seconds, seconds on the wall,
megabytes. Kernels are compiled before. ``--busy`` processes keep cores busy meanwhile.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from beside import beside

ROOT = Path(__file__).resolve().parent.parent
#: calls that write the files of the later ones, then those that are timed
FILES = (
    "language english:size=small -o g.npz",
    "sample g.npz -n 2000 --lengths 2..12 --seed 1 -o corpus",
    "train corpus --model ngram -o counts",
    "train corpus --model gpt2 --set training.max_steps=5 -o network",
    "run toy.yaml",
)
CALLS = (
    "language english:size=small",
    "inspect g.npz",
    "bound g.npz corpus",
    "sample g.npz -n 2000 --lengths 2..12 -o other --force",
    "train corpus --model ngram -o again --force",
    "score counts corpus",
    "score f.py:uniform corpus",
    "score network corpus",
    "report runs/toy",
)
RUN = """\
name: toy
grammar: {language: english, size: small}
corpus: {lengths: 2..10, splits: {train: 500, dev: 50, eval: 100}}
models: [{name: counts, model: {architecture: ngram}}]
"""
FUNCTION = """\
import numpy as np
from truesource import FunctionModel, PCFG

words = PCFG.load("g.npz").vocabulary
uniform = FunctionModel(lambda texts: [np.full(len(t) + 1, -np.log(len(words) + 1)) for t in texts], vocabulary=words)
"""


def cost(call: str, checkout: Path, folder: str) -> tuple[float, float, float]:
    """Return processor seconds, seconds on the wall, and megabytes of a call."""
    command = [sys.executable, "-m", "truesource", *call.split()]
    path = os.pathsep.join([str(checkout), os.environ.get("PYTHONPATH", "")])
    began = time.perf_counter()
    none = subprocess.DEVNULL
    process = subprocess.Popen(command, cwd=folder, stdout=none, stderr=none, env={**os.environ, "PYTHONPATH": path})
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{call}: failed in {checkout}")
    return usage.ru_utime + usage.ru_stime, time.perf_counter() - began, usage.ru_maxrss / 1024


def main() -> None:
    """Print the table."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--before", type=Path, help="folder with an earlier commit")
    arguments.add_argument("--busy", type=int, default=0, help="busy processes beside the calls")
    arguments.add_argument("--repeats", type=int, default=5)
    options = arguments.parse_args()
    checkouts = [ROOT] if options.before is None else [options.before.resolve(), ROOT]
    names = ["now"] if options.before is None else ["before", "now"]
    print("| call |", *(f"{name}: CPU s | wall s | MB |" for name in names), "" if len(names) == 1 else "wall ratio |")
    print("|---|" + "---:|" * (3 * len(names) + len(names) - 1))
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "toy.yaml").write_text(RUN, encoding="utf-8")
        Path(folder, "f.py").write_text(FUNCTION, encoding="utf-8")
        for call in FILES:
            cost(call, ROOT, folder)
        for call in CALLS:
            for checkout in checkouts:
                cost(call, checkout, folder)  # kernels, bytecode
            with beside(options.busy):
                rounds = [[cost(call, checkout, folder) for checkout in checkouts] for _ in range(options.repeats)]
            medians = [
                [statistics.median(values) for values in zip(*some, strict=True)] for some in zip(*rounds, strict=True)
            ]
            cells = [f"{cpu:.2f} | {wall:.2f} | {memory:.0f} |" for cpu, wall, memory in medians]
            ratio = "" if len(medians) == 1 else f"{medians[-1][1] / medians[0][1]:.2f} |"
            print(f"| `{call}` |", *cells, ratio, flush=True)


if __name__ == "__main__":
    main()
