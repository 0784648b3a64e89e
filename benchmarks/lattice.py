"""Lattices of a unigram model against sentencepiece, in one run on one core.

``pip install sentencepiece==0.2.2`` (the last with scores), then
``python benchmarks/lattice.py [TEXT] [--pieces 8000] [--documents 100] [--rounds 7]``. TEXT is a file of one sentence a
line; without it the text is sampled from the embedded English grammar. Both take turns, and each document counts with
its least time. The peer's times include its normalisation of the text, ours do not, but in the row that says so. Memory
is the peak over what was held before, for the first document (Linux only). The errors are those of the peer's 32-bit
entropy.
"""

from __future__ import annotations

import argparse
from collections import Counter
from functools import partial
from importlib.metadata import version
from pathlib import Path

import lattice_paths
from lattice_setting import Document, Row, Setting, grammar_text, make_setting, measure, peak_mib

from truesource.evaluation.tokenisation.ambiguity import sums_of_stretches
from truesource.evaluation.tokenisation.lattice import entropy, partition_and_entropy


def build(setting: Setting, document: Document) -> object:
    return setting.builder.build(document.spelling)


def build_and_sum(setting: Setting, document: Document) -> object:
    return partition_and_entropy(setting.builder.build(document.spelling))


def normalise_and_sum(setting: Setting, document: Document) -> object:
    return partition_and_entropy(setting.builder.build(setting.processor.normalize(document.raw)))


def sum_by_type(setting: Setting, document: Document) -> object:
    sums = sums_of_stretches(setting.builder, Counter(setting.builder.words(document.spelling)))
    return float(sums.counts @ sums.entropies)


def peer_entropy(setting: Setting, document: Document) -> float:
    return float(setting.processor.calculate_entropy(document.raw, 1.0))


def rows(setting: Setting, n: int) -> list[Row]:
    short, long = setting.documents(1000, n), setting.documents(100_000, 1)
    peer = partial(peer_entropy, setting)
    found = [
        Row("lattice, 1,000 characters", short, partial(build, setting), None),
        Row("lattice, log Z, entropy, 1,000 characters", short, partial(build_and_sum, setting), peer),
        Row("the same, ours with the peer's normalisation", short, partial(normalise_and_sum, setting), peer),
    ]
    if long:
        found += [
            Row("the same as one text of 100,000 characters", long, partial(build_and_sum, setting), peer),
            Row("the same from its word types", long, partial(sum_by_type, setting), peer),
        ]
    return found


def print_errors(setting: Setting, n: int) -> None:
    print(f"\n{'characters':>10}{'documents':>11}{'entropy':>10}{'error of the peer':>19}{'largest':>9}")
    for length in (1000, 4000, 16_000):
        documents = setting.documents(length, n)
        truth = [entropy(setting.builder.build(d.spelling)) for d in documents]
        off = [abs(peer_entropy(setting, d) - h) for d, h in zip(documents, truth, strict=True)]
        if documents:
            mean, apart = sum(truth) / len(truth), sum(off) / len(off)
            print(f"{length:10,}{len(documents):11}{mean:10.3f}{apart:19.4f}{max(off):9.4f}")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", nargs="?", type=Path)
    parser.add_argument("--pieces", type=int, default=8000)
    parser.add_argument("--documents", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    text = options.text.read_text(encoding="utf-8") if options.text else grammar_text(40_000)
    setting = make_setting(text, options.pieces)
    print(f"{len(setting.builder.inventory.pieces):,} pieces; {len(setting.text):,} characters of text\n")
    peer = f"sentencepiece {version('sentencepiece')}"
    print(f"{'us a document':46}{'ours':>11}{peer:>21}{'ratio':>8}{'KiB':>8}{'peer':>8}")
    for row in (*rows(setting, options.documents), *lattice_paths.rows(setting, options.documents)):
        f = measure(row, options.rounds)
        line = f"{row.name:46}{1e6 * f.ours:11,.1f}"
        if f.peer is not None and f.peer_kib is not None:
            line += f"{1e6 * f.peer:21,.1f}{f.peer / f.ours:8.1f}{f.ours_kib:8.0f}{f.peer_kib:8.0f}"
        else:
            line += f"{'-':>21}{'-':>8}{f.ours_kib:8.0f}{'-':>8}"
        print(line, flush=True)
    print_errors(setting, options.documents)
    print(f"\npeak memory {peak_mib():,.0f} MiB, both in one process")


if __name__ == "__main__":
    main()
