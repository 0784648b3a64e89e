"""Compile kernels before they are needed: for images (`truesource run --warm`), or while a run begins."""

from __future__ import annotations

import hashlib
import importlib
import logging
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

import truesource

if TYPE_CHECKING:
    from truesource.grammar.pcfg import PCFG

INDUCES = "--induces"  #: for the process that compiles during a run
#: settings of a small run that calls the kernels of every run
NAME = "warm"  #: of the small run
RUN: dict[str, object] = {
    "name": NAME,
    "treebank": {"embedded": "english:size=small", "sentences": 200, "held_out": 0.05},
    "grammar": {"method": "relative_frequency"},
    "corpus": {"lengths": "6..12", "splits": {"train": 100, "dev": 10, "test": 10, "eval": 10}},
    "models": [],
}
ITERATIONS = {"cycles": 1, "em_split": 2, "em_merge": 1, "em_smooth": 1}
SPLIT_MERGE = {"method": "split_merge", "split_merge": ITERATIONS}
TREES = 20 * "(S (NP (D the) (N dog)) (VP (V sees) (NP (N cats))))\n(S (NP (N cats)) (VP (V sleep)))\n"


def compile_all() -> None:
    """Compile the kernels that runs, sampling, scoring and parsing need, so that later calls do not wait for them.

    Raises:
        MissingExtraError: a library for reports is not installed.
    """
    from truesource import PCFG
    from truesource.terminal.console import echo

    logging.getLogger("truesource").setLevel(logging.WARNING)  # the messages of the small run
    with tempfile.TemporaryDirectory() as folder:
        _compile_for_runs(Path(folder), {**RUN, "grammar": SPLIT_MERGE})
        _compile_for_verbs(PCFG.load(Path(folder) / NAME / "grammar" / "grammar.npz"))
    _stamp().touch()
    echo("The kernels are compiled. Next: truesource run demo")


@contextmanager
def warm_beside(*, induces: bool = False) -> Iterator[None]:
    """Compile kernels in a second process while the body runs, unless they are compiled or there is one core.

    The process prints nothing, and ends with the body or with this process, however it ends. If the body
    ``induces`` a split-merge grammar, its kernels come first: they take longest, and reading the trees comes first.
    """
    from truesource.grammar.support.threads import threads

    if threads() == 1 or _stamp().exists():
        yield
        return
    command = [sys.executable, "-m", __name__, *([INDUCES] if induces else [])]
    none = subprocess.DEVNULL
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=none, stderr=none, start_new_session=True)
    try:
        yield
    finally:
        try:
            process.communicate(timeout=5)  # closes its standard input
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _main() -> None:
    """Compile for runs until standard input is closed, which also happens if the parent process ends.

    If networks can be trained, also import the modules of training, so that Python compiles and caches them.
    """
    os.nice(10)  # the run comes first
    folder = Path(tempfile.mkdtemp())

    def end_with_parent() -> None:
        sys.stdin.buffer.read()
        shutil.rmtree(folder, ignore_errors=True)
        os._exit(0)

    Thread(target=end_with_parent, daemon=True).start()
    try:
        if INDUCES in sys.argv:
            _compile_for_induction()
        _compile_for_runs(folder, RUN)
        with suppress(ImportError):
            importlib.import_module("truesource.lmtrain.trained_models")
        _stamp().touch()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _compile_for_induction() -> None:
    """Compile the kernels of split-merge training on fixed trees."""
    from truesource.grammar.estimate.split_merge import SplitMerge
    from truesource.grammar.estimate.split_merge.train import split_merge
    from truesource.grammar.support.records import made_settings
    from truesource.grammar.treebank.brackets import read_text

    split_merge([tree for _, tree in read_text(TREES)], made_settings(SplitMerge, "the small run", ITERATIONS), seed=1)


def _compile_for_runs(folder: Path, settings: Mapping[str, Any]) -> None:
    from truesource.run.config import RunConfig
    from truesource.run.experiment import execute

    execute(RunConfig.model_validate(settings), base=folder, runs=folder)


def _compile_for_verbs(grammar: PCFG) -> None:
    """Call kernels that runs do not: parsing, posterior samples, windows, linear grammars, tiny probabilities."""
    import numpy as np

    from truesource import LengthRange, Oracle, language
    from truesource.generator.sampler import Sampler
    from truesource.grammar.inference.windows import Windows
    from truesource.grammar.parsing import ParseMethod
    from truesource.grammar.parsing.parser import Parser
    from truesource.grammar.support.arrays import random_state

    rng, lengths = np.random.default_rng(1), LengthRange(2, 12)
    for pcfg in (grammar, language("hmm")):
        sampler = Sampler(pcfg, lengths)
        some = sampler.sentences(sampler.draw(2, random_state(1)))
        for method in ParseMethod:
            for exact in (False, True):
                parser = Parser(pcfg, method, exact=exact)
                parser.parse_all(some)
                if method is not ParseMethod.MAX_SPAN:
                    parser.best(some[0], 2)
                parser.samples(some[0], 2, rng)
        for condition in (lengths, None):
            pcfg.exact.causal_log_probs(some, condition)
            Windows(pcfg, condition).log_probs(some, 2)
        pcfg.exact.masked_log_probs(some)
        pcfg.viterbi(some[0])
        Oracle(pcfg, "masked").sample(2, 1)


def _stamp() -> Path:
    """Return the file that marks the kernels of runs as compiled, in the cache folder of one of them."""
    from importlib.metadata import version

    from truesource.grammar.inference._kernels.counts import star

    root = Path(truesource.__file__).parent
    sources = [path.read_bytes() for path in sorted([*root.glob("*/**/_kernels.py"), *root.glob("*/**/_kernels/*.py")])]
    digest = hashlib.sha256(b"\0".join([version("numba").encode(), *sources])).hexdigest()[:16]
    return Path(star.stats.cache_path) / f"truesource-{digest}.warm"


if __name__ == "__main__":
    _main()
