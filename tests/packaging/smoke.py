"""Try an installed truesource from a folder of its own: ``python tests/packaging/smoke.py``, by the Python it is for.

Every call must end with exit code 0. Without the extra ``lm``, the calls that need it must end with 2 and name it.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

GRAMMAR = """\
S -> NP VP 1
NP -> 'the' N 1
N -> 'dog' 0.5 | 'cat' 0.5
VP -> 'sees' NP 0.5 | 'sleeps' 0.5
"""
PYTHON = """
from truesource import PCFG, Oracle, compare, english
grammar = PCFG.load("toy.txt")
truth = Oracle(grammar, "causal")
assert compare(truth, truth.sample(50, seed=1), grammar)["relative_ppl"].value == 1
assert len(english().vocabulary) > 100
"""
CALLS = [
    "--version",
    "--help",
    "language",
    "inspect toy.txt",
    "sample toy.txt -n 1000 -o corpus --lengths 3..5",
    "bound toy.txt corpus",
    "parse toy.txt corpus -o trees",
    "convert toy.txt toy.npz",
    "new grammar mine",
    "cite",
]
NETWORKS = "train corpus -o model --model gpt2 --set model.dim=16 --set model.heads=1 --set training.max_steps=5"
SCORED = "score model corpus --oracle toy.txt"
DEMO = "run demo --set models.0.training.max_steps=20 --set models.1.training.max_steps=20"  # by name


def call(words: list[str], folder: Path, expected: int = 0) -> str:
    """What one call of the command wrote.

    Raises:
        SystemExit: it ends with another exit code.
    """
    begun = time.perf_counter()
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True)
    print(f"{time.perf_counter() - begun:6.1f} s  {' '.join(words[1:])}"[:150], flush=True)
    if done.returncode != expected:
        raise SystemExit(f"exit code {done.returncode}, not {expected}:\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def main() -> None:
    """Try it."""
    command = [sys.executable, "-P", "-m", "truesource"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "toy.txt").write_text(GRAMMAR, encoding="utf-8")
        call([sys.executable, "-P", "-c", PYTHON], folder)
        for words in CALLS:
            call([*command, *words.split()], folder)
        if find_spec("torch") is None:
            said = call([*command, *NETWORKS.split()], folder, expected=2)
            assert "pip install 'truesource[lm]'" in said, said
            return
        call([*command, *NETWORKS.split()], folder)
        call([*command, *SCORED.split()], folder)
        if find_spec("matplotlib") is not None:
            call([*command, *DEMO.split()], folder)
            assert (folder / "runs" / "demo" / "report.html").stat().st_size > 100_000


if __name__ == "__main__":
    main()
