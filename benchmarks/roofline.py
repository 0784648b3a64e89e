"""How near each hot kernel comes to what one core of this machine can do: one table.

``python benchmarks/roofline.py [--quick] [--rows NAME,...] [--json FILE]``; about 5 minutes on an idle core. First the
limits are measured: multiply-adds a second of the kernels' inner loop in the first-level cache, bytes a second of each
level of the memory hierarchy (the faster of ``y += a x`` and a dot product over arrays that just fit), and the disk.
Then each row runs in a process of its own, whose peak memory it reports, with one thread: the least CPU time of two
runs. The corpus has wall time, since the disk writes while the processor waits.

Operations and bytes are counted in a further run (``benchmarks/operations.py``). Each part of a kernel moves its bytes
at the level where the array lies that it goes over; the level shown is the one that would take longest at its peak.
The share is the larger of that time and the time of the multiply-adds at their peak, over the time taken. What is
neither, such as the search for cells, exponents of wide numbers or branches, makes a share small.

Windows are nearly all one dense product of matrices in BLAS, so their limit is a rate of such products. Parsing and
corpora are there with what can be measured; their operations are not counted. Left out: lattices of tokenisations,
whose sums are exponentials of differences, not multiply-adds (``benchmarks/lattice.py`` has their times).

``--growth`` prints instead how time grows with words and rules, beside the counted operations
(``benchmarks/growth.py``); ``--figure FILE.svg`` plots it, too.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from induction import held
from linear import LENGTHS as STRING_LENGTHS
from linear import automaton, draw
from operations import Part, counting
from oracle import LENGTHS, MAX_WIDTH, _axpy, limit
from parsing import ONE_THREAD
from shapes import PUBLISHED, split_grammar

from truesource.generator.corpus import Corpus
from truesource.generator.sampler import sample_treebank
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.embedded import english
from truesource.grammar.estimate.relative_frequency import RuleTable
from truesource.grammar.estimate.split_merge import SplitMerge
from truesource.grammar.estimate.split_merge.estep import Forest, encode, expected_entries
from truesource.grammar.estimate.split_merge.parameters import SparseRules
from truesource.grammar.estimate.split_merge.result import filtered, to_pcfg
from truesource.grammar.estimate.split_merge.trainer import PHASES, SMALLEST, SplitMergeTrainer, Validation
from truesource.grammar.inference.any_order import AnyOrder
from truesource.grammar.inference.windows import Windows
from truesource.grammar.parsing import ParseMethod
from truesource.grammar.parsing.parser import Parser
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import IntArray
from truesource.grammar.support.printable import meter
from truesource.grammar.treebank import Binarisation, Treebank

WORDS = 13  #: of the sentences of the charts, about the mean of the published corpus
SMALL = {"states": 120, "binary": 4_000, "unary": 200, "lexical": 32_000, "words": 5_000}
DEFAULTS = {"L1": 32 * 2**10, "L2": 2**20, "L3": 32 * 2**20}  #: bytes, where the system does not say
DISK = 256 * 2**20  #: bytes
ROUNDS = 2  #: of which the faster counts
TRIES = 3  #: of a limit, of which the fastest counts: a limit is what can be reached
MATRIX = "dense product"  #: of matrices of float64, its own limit
MACHINE = "machine"  #: the process that measures it


# -- the machine --------------------------------------------------------------------------------------------------


class Machine(NamedTuple):
    """What one core can do."""

    caches: dict[str, int]  #: bytes of each level
    adds: dict[str, float]  #: multiply-adds a second by type
    moved: dict[str, float]  #: bytes a second by level, and of the disk

    def level(self, size: float) -> str:
        """The nearest level that so many bytes fit."""
        return next((name for name, bytes_ in self.caches.items() if size <= bytes_), "memory")


def caches() -> dict[str, int]:
    """Bytes of the data caches of the first core."""
    found = dict(DEFAULTS)
    for index in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        level, kind, size = (index.joinpath(name).read_text().strip() for name in ("level", "type", "size"))
        if kind != "Instruction":
            found[f"L{level}"] = int(size.rstrip("KM")) * (2**20 if size.endswith("M") else 2**10)
    return found


def bandwidth(size: int, total: float) -> float:
    """Bytes a second of two loops over arrays of ``size`` bytes in all; ``total`` bytes are moved by each."""
    rows, x = np.zeros((max(size // 8 // MAX_WIDTH, 1), MAX_WIDTH)), np.ones(MAX_WIDTH)
    left, right = np.ones(size // 16), np.ones(size // 16)
    times = math.ceil(total / size)
    _axpy(rows, x, 1e-9, 1)
    begun = time.perf_counter()
    _axpy(rows, x, 1e-9, times)
    written = time.perf_counter()
    for _ in range(times):
        left @ right
    return max(2 * times * rows.nbytes / (written - begun), 2 * times * left.nbytes / (time.perf_counter() - written))


def dense() -> float:
    """Multiply-adds a second of a square matrix times a narrow one, in BLAS."""
    left, right = np.ones((1_000, 1_000)), np.ones((1_000, MAX_WIDTH))
    begun = time.perf_counter()
    left @ right
    return left.size * MAX_WIDTH / (time.perf_counter() - begun)


def disk(size: int) -> float:
    """Bytes a second of one file, until they are on the disk."""
    block = os.urandom(2**20)
    with tempfile.TemporaryFile() as file:
        begun = time.perf_counter()
        for _ in range(size // len(block)):
            file.write(block)
        file.flush()
        os.fsync(file.fileno())
        return size / (time.perf_counter() - begun)


def measure_machine(quick: bool) -> Machine:
    """All limits; some seconds."""
    known = caches()
    total = 5e8 if quick else 3e9  # bytes
    sizes = {"L1": known["L1"] // 2, "L2": known["L2"] // 2, "L3": int(math.sqrt(known["L2"] * known["L3"]))}
    sizes["memory"] = (2 if quick else 8) * known["L3"]
    moved = {name: max(bandwidth(size, total) for _ in range(TRIES)) for name, size in sizes.items()}
    moved["disk"] = disk(DISK // 4 if quick else DISK)
    adds = {np.dtype(dtype).name: max(limit(dtype) for _ in range(3 * TRIES)) for dtype in (np.float64, np.float32)}
    adds[MATRIX] = max(dense() for _ in range(3 * TRIES))
    return Machine(known, adds, moved)


# -- the rows -----------------------------------------------------------------------------------------------------


class Task(NamedTuple):
    """What one row runs."""

    what: str
    work: Callable[[], object]
    warm: Callable[[], object]  #: compiles the kernels, makes the tables
    dtype: str = "float64"
    counted: bool = True
    items: tuple[int, str] = (0, "")  #: how many of what, for a rate
    folder: Path | None = None  #: that is written


class Measured(NamedTuple):
    """What one row took."""

    what: str
    dtype: str
    seconds: float
    megabytes: float
    items: tuple[int, str]
    parts: list[tuple[float, float, float]] | None  #: multiply-adds, bytes, size of the array; None: not counted
    written: int  #: bytes to the disk


def charts(which: str, dtype: str, quick: bool, folder: Path) -> Task:
    """Scores under the grammar of the published size, 64 sentences of one length at a time."""
    pcfg = PCFG.load(folder / "split.npz")
    sentences = json.loads((folder / "split.json").read_text("utf-8"))
    exact, kind = pcfg.exact, np.dtype(dtype)

    def scores(some: list[list[str]]) -> object:
        if which == "masked":
            return exact.masked_log_probs(some, dtype=kind)
        return exact.causal_log_probs(some, None if which == "causal" else LENGTHS, dtype=kind)

    what = f"{len(sentences)} sentences of {WORDS} words, {len(pcfg.binary):,} binary rules"
    items = (len(sentences), "sentences")
    return Task(what, partial(scores, sentences), partial(scores, sentences[:2]), dtype, items=items)


def make_charts(quick: bool, folder: Path) -> None:
    """Write what `charts` reads, so that the memory of no row is that of making it."""
    pcfg = split_grammar(**(SMALL if quick else PUBLISHED))
    pcfg.save(folder / "split.npz")
    sentences = draw(pcfg, LengthRange(WORDS, WORDS), 64 if quick else 128)
    (folder / "split.json").write_text(json.dumps(sentences), "utf-8")


def any_order(quick: bool, _folder: Path) -> Task:
    """Every word at the gaps of sentences of which half of the words, at random, are known."""
    pcfg, rng = english(), np.random.default_rng(1)
    patterns = [
        [word if known else None for word, known in zip(s, rng.random(len(s)) < 0.5, strict=True)]
        for s in draw(pcfg, LengthRange(4, 25), 200 if quick else 2_000)
    ]
    truth = AnyOrder(pcfg)
    what = f"{len(patterns):,} half-known sentences of 4..25 words, {len(pcfg.binary):,} binary rules"
    warm = partial(truth.marginals, patterns[:8])
    return Task(what, partial(truth.marginals, patterns), warm, items=(len(patterns), "patterns"))


def windows(quick: bool, _folder: Path) -> Task:
    """What follows every pair of words that stand in drawn sentences."""
    pcfg = english()
    known = [pcfg.encode(s).astype(np.int64) for s in draw(pcfg, LengthRange(4, 25), 100 if quick else 1_000)]
    pairs = np.unique(np.concatenate([np.stack([ids[:-1], ids[1:]], axis=1) for ids in known]), axis=0)
    predictor = Windows(pcfg)

    def follow(some: IntArray) -> None:
        for _ in predictor.batches(some):
            pass

    what = f"{len(pairs):,} pairs of words, {len(pcfg.symbols):,} symbols"
    items = (len(pairs), "pairs")
    return Task(what, partial(follow, pairs), partial(follow, pairs[:64]), MATRIX, items=items)


def linear(which: str, quick: bool, _folder: Path) -> Task:
    """Forward(-backward) over an automaton."""
    pcfg = automaton(50, 8)
    strings = draw(pcfg, STRING_LENGTHS, 100 if quick else 2_000)
    score = pcfg.exact.causal_log_probs if which == "causal" else pcfg.exact.masked_log_probs
    what = f"{len(strings):,} strings of {STRING_LENGTHS} tokens, automaton of 50 states"
    items = (sum(map(len, strings)), "tokens")
    return Task(what, partial(score, strings), partial(score, strings[:2]), items=items)


def trained(number: int, cycles: int) -> tuple[Sequence[Forest], SplitMergeTrainer, list[list[str]]]:
    """Split-merge on trees of embedded English with treebank labels, few iterations; and the sentences."""
    trees = Treebank.from_trees(sample_treebank(english(), number, 1), None).binarise(Binarisation()).trees
    table = RuleTable.from_trees(trees)
    forests, _ = encode(trees, table)
    config = SplitMerge(cycles=cycles, em_split=4, em_merge=2, em_smooth=2)
    with meter("split-merge", config.iterations) as progress:
        trainer = SplitMergeTrainer(config, forests, Validation((), 0), SparseRules.initial(table), progress)
        for cycle in range(1, cycles + 1):
            for phase in PHASES:
                trainer.run(cycle, phase, np.random.default_rng([1, cycle]))
    return forests, trainer, [list(tree.leaves()) for tree in trees]


def em(quick: bool, _folder: Path) -> Task:
    """One iteration of EM in which dormant rules sleep, as seven of eight do: counts of the rules, and new rules."""
    number, cycles = (1_000, 2) if quick else (30_000, 5)
    forests, trainer, _ = trained(number, cycles)
    first = trainer.rules.astype(np.float32)
    rules = first.maximised(expected_entries(forests, first)[1], SMALLEST)

    def iteration() -> object:
        return rules.maximised(expected_entries(forests, rules, asleep_too=False)[1], SMALLEST, slept=0)

    what = f"{number:,} trees, {rules.layout.n_rows:,} substates, {len(rules.prob):,} rules"
    return Task(what, iteration, iteration, "float32", items=(number, "trees"))


def parse(quick: bool, _folder: Path) -> Task:
    """Max-rule trees, coarse to fine, of sentences that the grammar was trained on."""
    number, cycles = (1_000, 2) if quick else (3_000, 5)
    _, trainer, sentences = trained(number, cycles)
    final = filtered(trainer.rules, 1e-6)
    pcfg = to_pcfg(final, {"split_trees": dict(zip(final.layout.table.symbols, final.trees, strict=True))})
    parser, some = Parser(pcfg, ParseMethod.MAX_RULE), sentences[: 50 if quick else 500]
    assert parser.prunes
    what = f"{len(some)} sentences, {cycles} cycles, {len(pcfg.binary):,} binary rules"
    work, warm = partial(parser.parse_all, some), partial(parser.parse_all, some[:3])
    return Task(what, work, warm, "float32", counted=False, items=(len(some), "sentences"))


def corpus(quick: bool, folder: Path) -> Task:
    """Sentences with their trees to a folder, digests and card included."""
    pcfg, number, path = english(), 20_000 if quick else 500_000, folder / "corpus"

    def sample(n: int) -> object:
        return Corpus.sample(pcfg, {"train": n}, seed=1, path=path, lengths=LengthRange(6, 25), force=True)

    what = f"{number:,} sentences with trees"
    items = (number, "sentences")
    return Task(what, partial(sample, number), partial(sample, 10), counted=False, items=items, folder=path)


ROWS: dict[str, Callable[[bool, Path], Task]] = {
    **{
        f"{which}-{dtype}": partial(charts, which, dtype)
        for which in ("causal", "masked", "conditioned")
        for dtype in ("float64", "float32")
    },
    "any-order": any_order,
    "windows": windows,
    "linear-causal": partial(linear, "causal"),
    "linear-masked": partial(linear, "masked"),
    "em": em,
    "parsing": parse,
    "corpus": corpus,
}


def run(name: str, quick: bool, folder: Path) -> Measured:
    """One row, in this process: the peak of memory is that of two timed runs, before the counting one."""
    task = ROWS[name](quick, folder)
    task.warm()
    spent = []
    for _ in range(ROUNDS):
        begun = time.process_time(), time.perf_counter()
        task.work()
        spent.append(time.perf_counter() - begun[1] if task.folder else time.process_time() - begun[0])
    megabytes, parts = held(os.getpid()), None
    if task.counted:
        with counting() as tally:
            task.work()
        parts = [(float(part.adds), float(part.moved), float(part.size)) for part in tally]
    written = sum(file.stat().st_size for file in task.folder.rglob("*") if file.is_file()) if task.folder else 0
    return Measured(task.what, task.dtype, min(spent), megabytes, task.items, parts, written)


def in_own_process(name: str, quick: bool, folder: Path) -> list[Any]:
    """`run`, or `measure_machine`, with one thread and a memory of its own; as JSON."""
    command = [sys.executable, __file__, "--rows", name, "--child", str(folder), *(["--quick"] if quick else [])]
    subprocess.run(command, check=True, env=os.environ | ONE_THREAD, stdout=subprocess.DEVNULL)
    result: list[Any] = json.loads((folder / f"{name}.json").read_text("utf-8"))
    return result


# -- the table ----------------------------------------------------------------------------------------------------


def figures(measured: Measured, machine: Machine) -> dict[str, Any]:
    """What a row of the table shows."""
    parts = [Part(*part) for part in measured.parts or []]
    moved: dict[str, float] = {"disk": measured.written} if measured.written else {}
    for part in parts:
        if part.moved:
            level = machine.level(part.size)
            moved[level] = moved.get(level, 0.0) + part.moved
    adds = sum(part.adds for part in parts)
    times = {level: number / machine.moved[level] for level, number in moved.items()}
    slowest = max(times, key=lambda level: times[level], default=None)
    shares = {"operations": adds / machine.adds[measured.dtype] / measured.seconds}
    if slowest is not None:
        shares[slowest] = times[slowest] / measured.seconds
    binds = max(shares, key=lambda what: shares[what])
    known = measured.parts is not None or measured.written > 0
    number, unit = measured.items
    return {
        "what": measured.what,
        "seconds": measured.seconds,
        "adds": adds if measured.parts is not None else None,
        "bytes": moved,
        "level": slowest,
        "share": shares[binds] if known else None,
        "binds": binds if known else None,
        "megabytes": measured.megabytes,
        "rate": number / measured.seconds,
        "unit": unit,
    }


def line(name: str, row: dict[str, Any]) -> str:
    """One row as text."""
    seconds, level = row["seconds"], row["level"]
    moved = row["bytes"].get(level, 0.0)
    adds = ["-", "-"] if row["adds"] is None else [f"{row['adds'] / 1e9:.3g}", f"{row['adds'] / 1e9 / seconds:.3g}"]
    bytes_ = ["-", "-"] if level is None else [f"{moved / 1e9:.3g}", f"{moved / 1e9 / seconds:.3g}"]
    share = "-" if row["share"] is None else f"{100 * row['share']:.2g}%"
    cells = (adds[0], bytes_[0], level or "-", f"{seconds:.3g}", adds[1], bytes_[1], share, row["binds"] or "-")
    rate = f"{row['rate']:,.0f} {row['unit']}/s"
    return f"{name:20}" + "".join(f"{c:>11}" for c in cells) + f"{row['megabytes']:8,.0f}  {row['what']}; {rate}"


def show_machine(machine: Machine) -> None:
    """The limits."""
    adds = ", ".join(f"{dtype} {rate / 1e9:.1f}" for dtype, rate in machine.adds.items())
    print(f"limits of one core: G multiply-adds/s, of loops in the first-level cache: {adds}")
    print("GB/s: " + ", ".join(f"{level} {rate / 1e9:.2f}" for level, rate in machine.moved.items()))
    print("caches, KiB: " + ", ".join(f"{level} {size // 1024:,}" for level, size in machine.caches.items()) + "\n")


def table(names: Sequence[str], quick: bool) -> dict[str, Any]:
    """Measure and print all rows."""
    heads = ("G adds", "GB", "at", "s", "G adds/s", "GB/s", "share", "binds")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        machine = Machine(*in_own_process(MACHINE, quick, folder))
        show_machine(machine)
        print(f"{'kernel':20}" + "".join(f"{head:>11}" for head in heads) + f"{'peak MB':>8}  work", flush=True)
        result: dict[str, Any] = {"machine": machine._asdict(), "rows": {}}
        if any(name.endswith(("float64", "float32")) for name in names):
            make_charts(quick, folder)
        for name in names:
            row = result["rows"][name] = figures(Measured(*in_own_process(name, quick, folder)), machine)
            print(line(name, row), flush=True)
    return result


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small sizes: to see that it runs")
    parser.add_argument("--rows", default=",".join(ROWS), help=f"of {', '.join(ROWS)}")
    parser.add_argument("--json", type=Path, help="write all figures here")
    parser.add_argument("--growth", action="store_true")
    parser.add_argument("--figure", type=Path, help="of --growth")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    os.environ |= ONE_THREAD
    names = given.rows.split(",")
    if unknown := set(names) - {*ROWS, MACHINE}:
        parser.error(f"no such row: {', '.join(sorted(unknown))}")
    if given.child is not None:
        found = measure_machine(given.quick) if names == [MACHINE] else run(names[0], given.quick, given.child)
        (given.child / f"{names[0]}.json").write_text(json.dumps(found), "utf-8")
        return
    if given.growth:
        from growth import growth

        result = growth(given.quick, given.figure)
    else:
        result = table(names, given.quick)
    if given.json:
        given.json.write_text(json.dumps(result, indent=1), "utf-8")


if __name__ == "__main__":
    main()
