"""A corpus with trees to disk, against samplers of the ecosystem, on one grammar in one run.

``pip install pcfg``, then ``python benchmarks/sampling.py GRAMMAR [--sentences 7500000] [--workers 2] [--peer 300]
[-o FOLDER]``. Ours is the whole command: grammar read, 6..25 tokens, trees, overlap of splits, digests, card. The peers
draw in memory and write nothing: the PyPI package ``pcfg`` (sentences without trees or a length condition), and the
recursion that builds an ``nltk.Tree`` and draws again until the length is in the range (running sums, bisection).
Ours reports the largest memory of all its processes together (proportional shares of common pages), a second apart.
"""

from __future__ import annotations

import argparse
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from itertools import accumulate
from pathlib import Path

import nltk
import numpy as np
import pcfg as peer_package

from truesource.generator.corpus import Corpus
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.pcfg import PCFG

LENGTHS = LengthRange(6, 25)
Row = tuple[str, int, int, float, float]  #: sampler, sentences, tokens, seconds, MiB


def family(pid: int) -> list[int]:
    """A process and all below it."""
    found = [pid]
    for process in found:
        for task in Path(f"/proc/{process}/task").glob("*/children"):
            found += map(int, task.read_text().split())
    return found


def proportional_mib(pid: int) -> float:
    """Memory of a process and its children; pages that several share count once."""
    total = 0
    for process in family(pid):
        try:
            rollup = Path(f"/proc/{process}/smaps_rollup").read_text()
        except OSError:
            continue  # it has just ended
        total += int(rollup.split("Pss:")[1].split()[0])
    return total / 1024


def ours(grammar: Path, sentences: int, workers: int, folder: Path) -> Row:
    command = [
        str(Path(sys.executable).with_name("truesource")),
        "sample",
        str(grammar),
        "-n",
        str(sentences),
        "-o",
        str(folder),
    ]
    command += ["--lengths", str(LENGTHS), "--shares", "train=.98,dev=.01,test=.01", "--workers", str(workers)]
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    peak = 0.0
    done = threading.Event()

    def watch() -> None:
        nonlocal peak
        while not done.wait(1.0):
            try:
                peak = max(peak, proportional_mib(process.pid))
            except OSError:
                return

    watcher = threading.Thread(target=watch)
    watcher.start()
    code = process.wait()
    seconds = time.perf_counter() - start
    done.set()
    watcher.join()
    if code:
        sys.exit(code)
    corpus = Corpus.load(folder)
    return "truesource", sentences, sum(corpus.n_tokens(split) for split in corpus.splits), seconds, peak


def as_peer(pcfg: PCFG) -> peer_package.PCFG:
    """Nonterminals are objects of the peer; words are strings."""
    symbols = [nltk.Nonterminal(name) for name in pcfg.symbols]
    rules = [
        nltk.ProbabilisticProduction(symbols[row[0]], [names[x] for x in row[1:]], prob=float(np.exp(logp)))
        for names, (table, logps) in zip((symbols, symbols, pcfg.vocabulary), pcfg.tables(), strict=True)
        for row, logp in zip(table.tolist(), logps, strict=True)
    ]
    return peer_package.PCFG(symbols[pcfg.start], rules)


def peer(pcfg: PCFG, n: int) -> Row:
    grammar = as_peer(pcfg)
    random.seed(1)
    start = time.perf_counter()
    tokens = sum(len(sentence.split()) for sentence in grammar.generate(n))
    return "PyPI pcfg", n, tokens, time.perf_counter() - start, own_mib()


def recursion(pcfg: PCFG, n: int) -> Row:
    """Trees of NLTK by recursion, with rejection of lengths."""
    options: dict[int, tuple[list[tuple[object, ...]], list[float]]] = {}
    for names, (table, logps) in zip((None, None, pcfg.vocabulary), pcfg.tables(), strict=True):
        for row, logp in zip(table.tolist(), logps, strict=True):
            below, weights = options.setdefault(row[0], ([], []))
            below.append((names[row[1]],) if names else tuple(row[1:]))
            weights.append(float(np.exp(logp)))
    sums = {a: (below, list(accumulate(weights))) for a, (below, weights) in options.items()}

    def grow(a: int) -> nltk.Tree:
        below, weights = sums[a]
        chosen = random.choices(below, cum_weights=weights)[0]
        return nltk.Tree(pcfg.symbols[a], [x if isinstance(x, str) else grow(x) for x in chosen])

    random.seed(1)
    tokens = kept = 0
    start = time.perf_counter()
    while kept < n:
        length = len(grow(pcfg.start).leaves())
        if length in LENGTHS:
            kept, tokens = kept + 1, tokens + length
    return "nltk.Tree recursion", n, tokens, time.perf_counter() - start, own_mib()


def own_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("grammar", type=Path)
    parser.add_argument("--sentences", type=int, default=7_500_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--peer", type=int, default=300, help="sentences of the PyPI package; ten times so many trees")
    parser.add_argument("-o", "--output", type=Path, help="keep the corpus here")
    args = parser.parse_args()
    pcfg = PCFG.load(args.grammar)
    print(", ".join(f"{count:,} {what}" for what, count in pcfg.sizes().items()))
    with tempfile.TemporaryDirectory() as scratch:
        folder = args.output or Path(scratch) / "corpus"
        rows = [ours(args.grammar, args.sentences, args.workers, folder)]
        size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
        if args.output is None:
            shutil.rmtree(folder)
    rows += [peer(pcfg, args.peer), recursion(pcfg, 10 * args.peer)]
    rate = rows[0][1] / rows[0][3]
    columns = f"{'s':>7} {'sent./s':>9} {'tokens/s':>10} {'ratio':>7} {'MiB':>6}"
    print(f"{'sampler':<20} {'sentences':>10} {'tokens':>11} {columns}")
    for name, sentences, tokens, seconds, mib in rows:
        print(
            f"{name:<20} {sentences:>10,} {tokens:>11,} {seconds:>7.1f} {sentences / seconds:>9,.0f}"
            f" {tokens / seconds:>10,.0f} {rate * seconds / sentences:>7,.0f} {mib:>6,.0f}"
        )
    print(f"on disk: {size:,} bytes, {size / rows[0][2]:.2f} a token; {args.workers} processes")


if __name__ == "__main__":
    main()
