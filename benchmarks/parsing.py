"""Parsing a treebank: sentences a second, labelled F1 and memory of the exact, the pruned and the released parser.

``python benchmarks/parsing.py GRAMMAR.npz TREEBANK [--jar BerkeleyParser-1.7.jar --peer-grammar FILE.gr]`` parses the
sentences of at most 40 words by max-rule-product, each parser in a process of its own, on one core. CPU seconds are of
the parsing alone: of ours after the grammar is loaded and the kernels are compiled, of the released parser (Petrov et
al. 2006; a Java program) with the seconds of one sentence, of loading therefore, taken off.

``--thresholds 1e-2 1e-3 3e-4,1e-3`` adds rows for other thresholds, by pass, the last for all further passes. The
second table is the share of trees that pruning changes, by length. ``--growth 10 20 40 60 80 100`` adds the time of
sentences of these lengths, drawn from the grammar.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

LONGEST = 40  #: words
WARM = 3  #: sentences parsed before the clock starts
BINS = ((1, 10), (11, 20), (21, 30), (31, 40))
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1", "TRUESOURCE_THREADS": "1"}


class Measured(NamedTuple):
    """One parser over a treebank."""

    name: str
    load: float  #: CPU seconds
    cpu: float  #: CPU seconds of parsing
    megabytes: float  #: most held at once
    trees: list[str | None]  #: bracketings
    searches: dict[str, int]  #: trees by where they were looked for


def ours(grammar: str, sentences: list[list[str]], *, exact: bool, thresholds: Sequence[float] | None) -> Measured:
    """Parse in this process."""
    from truesource.grammar.parsing import ParseMethod
    from truesource.grammar.parsing.parser import THRESHOLDS, Parse, Parser
    from truesource.grammar.pcfg import PCFG

    parser = Parser(PCFG.load(grammar), ParseMethod.MAX_RULE, exact=exact, thresholds=thresholds or THRESHOLDS)
    parser.parse_all(sentences[:WARM])
    load = time.process_time()
    found = parser.parse_all(sentences)
    cpu = time.process_time() - load
    trees = [str(parse.tree) if isinstance(parse, Parse) else None for parse in found]
    searches = Counter(str(parse.search) for parse in found if isinstance(parse, Parse))
    at = ",".join(f"{threshold:g}" for threshold in thresholds or ())
    name = "exact" if exact else f"pruned {at}".strip()
    return Measured(name, load, cpu, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, trees, searches)


def in_own_process(grammar: str, sentences: list[list[str]], *flags: str) -> Measured:
    """`ours`, in a process of one thread, so that memory and time are its own."""
    with tempfile.TemporaryDirectory() as folder:
        given, made = Path(folder) / "sentences.json", Path(folder) / "made.json"
        given.write_text(json.dumps(sentences), encoding="utf-8")
        command = [sys.executable, __file__, grammar, str(given), "--child", str(made), *flags]
        subprocess.run(command, check=True, env=os.environ | ONE_THREAD)
        return Measured(**json.loads(made.read_text(encoding="utf-8")))


def released(jar: str, grammar: str, sentences: list[list[str]]) -> Measured:
    """The released parser, run once over one sentence and once over all."""

    def run(some: list[list[str]], folder: str) -> tuple[float, float, list[str]]:
        text, out = Path(folder) / "text", Path(folder) / "trees"
        text.write_text("".join(f"{' '.join(words)}\n" for words in some), encoding="utf-8")
        command = ["java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=4", "-Xmx8g", "-jar", jar, "-gr", grammar]
        process = subprocess.Popen([*command, "-inputFile", str(text), "-outputFile", str(out)])
        _, _, usage = os.wait4(process.pid, 0)
        lines = out.read_text(encoding="utf-8").splitlines()
        return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, lines

    with tempfile.TemporaryDirectory() as folder:
        load, _, _ = run(sentences[:1], folder)
        cpu, megabytes, lines = run(sentences, folder)
    trees = [line if line.replace(" ", "") not in ("", "()", "(())") else None for line in lines]
    return Measured("released", load, cpu - load, megabytes, trees, {})


def read_trees(lines: Sequence[str | None]) -> list[Any]:
    """Bracketings as trees."""
    from truesource.grammar.treebank.brackets import read_text

    return [None if line is None else next(tree for _, tree in read_text(line)) for line in lines]


def report(gold: list[Any], measured: Sequence[Measured]) -> None:
    """A line for each parser."""
    from truesource.evaluation.parsing import compare_brackets

    titles = ("sentences/s", "CPU s", "load s", "F1", "exact", "tags", "no tree", "peak MB")
    print(f"\n{'parser':18}" + "".join(f"{title:>12}" for title in titles))
    for one in measured:
        scores = compare_brackets(gold, read_trees(one.trees))
        shares = (scores.f1, scores.exact_match, scores.tagging_accuracy)
        figures = [f"{len(gold) / one.cpu:,.1f}", f"{one.cpu:,.2f}", f"{one.load:,.1f}"]
        figures += [*(f"{share:.2%}" for share in shares), str(one.trees.count(None)), f"{one.megabytes:,.0f}"]
        searches = ", ".join(f"{n} {name}" for name, n in one.searches.items() if name != "exact")
        print(f"{one.name:18}" + "".join(f"{figure:>12}" for figure in figures) + f"   {searches}", flush=True)


def report_errors(lengths: Sequence[int], exact: Measured, others: Sequence[Measured]) -> None:
    """Share of the trees that are not the exact ones, by length."""
    titles = ["all", *(f"{low}..{high}" for low, high in BINS)]
    print(f"\n{'changed trees':18}" + "".join(f"{title:>12}" for title in titles))
    for one in others:
        changed = [a != b for a, b in zip(one.trees, exact.trees, strict=True)]
        shares = [sum(changed) / len(changed)]
        for low, high in BINS:
            some = [is_changed for n, is_changed in zip(lengths, changed, strict=True) if low <= n <= high]
            shares.append(sum(some) / len(some) if some else 0.0)
        print(f"{one.name:18}" + "".join(f"{share:>12.2%}" for share in shares), flush=True)


def growth(grammar: str, lengths: Sequence[int], each: int = 4) -> None:
    """Seconds a sentence of sentences drawn at each length."""
    from truesource.generator.sampler import Sampler
    from truesource.grammar.conditioning import LengthRange
    from truesource.grammar.pcfg import PCFG
    from truesource.grammar.support.arrays import random_state

    pcfg = PCFG.load(grammar)
    print(f"\n{'words':>8}{'pruned ms':>12}{'exact ms':>12}{'pruned MB':>12}{'exact MB':>12}")
    for n in lengths:
        sampler = Sampler(pcfg, LengthRange(n, n))
        drawn = sampler.trees(sampler.draw(each, random_state(1, n)))
        sentences = [list(tree.leaves()) for tree in islice(drawn, each)]
        pruned, exact = in_own_process(grammar, sentences), in_own_process(grammar, sentences, "--exact")
        times = [f"{1000 * one.cpu / each:,.1f}" for one in (pruned, exact)]
        memory = [f"{one.megabytes:,.0f}" for one in (pruned, exact)]
        print(f"{n:>8}" + "".join(f"{figure:>12}" for figure in [*times, *memory]), flush=True)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("grammar")
    parser.add_argument("treebank")
    parser.add_argument("--jar")
    parser.add_argument("--peer-grammar")
    parser.add_argument("--limit", type=int, help="sentences")
    parser.add_argument("--thresholds", nargs="+", default=[], metavar="T[,T...]")
    parser.add_argument("--growth", type=int, nargs="+", default=[])
    parser.add_argument("--exact", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--threshold", help=argparse.SUPPRESS)
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child is not None:
        sentences = json.loads(Path(given.treebank).read_text(encoding="utf-8"))
        thresholds = given.threshold and [float(value) for value in given.threshold.split(",")]
        made = ours(given.grammar, sentences, exact=given.exact, thresholds=thresholds)
        given.child.write_text(json.dumps(made._asdict()), encoding="utf-8")
        return
    from truesource.grammar.treebank import Normalisation, Treebank

    gold = [tree for tree in Treebank.read(given.treebank, Normalisation()).trees if len(tree.leaves()) <= LONGEST]
    gold = gold[: given.limit]
    sentences = [list(tree.leaves()) for tree in gold]
    print(f"{len(gold):,} sentences of at most {LONGEST} words, {sum(map(len, sentences)) / len(gold):.1f} in the mean")
    exact = in_own_process(given.grammar, sentences, "--exact")
    pruned = [in_own_process(given.grammar, sentences)]
    pruned += [in_own_process(given.grammar, sentences, "--threshold", value) for value in given.thresholds]
    peers = [released(given.jar, given.peer_grammar, sentences)] if given.jar else []
    report(gold, [exact, *pruned, *peers])
    report_errors([len(words) for words in sentences], exact, pruned)
    if given.growth:
        growth(given.grammar, given.growth)


if __name__ == "__main__":
    main()
