"""Paths through lattices: the rows of ``benchmarks/lattice.py`` for samples and best paths.

Ours make the lattice of a document, its forward sums and the paths in every call, and give the numbers of all pieces in
one array, the bounds of the paths and their log probabilities. The peer gives lists of lists of numbers, with log
probabilities where a row says "scores", and makes the lattice anew for every sample with replacement. Without
replacement both give the probability that a path is among those drawn; ours is top-down or a race by its own rule. Ours
read the normalised text.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import sentencepiece
from lattice_setting import Document, Row, Setting
from numpy.typing import NDArray

from truesource.evaluation.tokenisation.lattice import Lattice
from truesource.evaluation.tokenisation.paths import Paths, n_best, sample, sample_distinct

LENGTHS = {50: 1, 200: 1, 1000: 5, 4000: 20}  #: characters; one in so many of the documents asked for is used
Found = tuple[NDArray, NDArray, NDArray]


def _pieces(setting: Setting, lattice: Lattice, paths: Paths) -> tuple[NDArray, NDArray]:
    return setting.builder.inventory.ids[lattice.piece].take(paths.arcs), paths.bounds


def samples(setting: Setting, k: int, document: Document) -> Found:
    lattice = setting.builder.build(document.spelling)
    paths = sample(lattice, k, seed=1)
    return *_pieces(setting, lattice, paths), paths.log_q


def best(setting: Setting, k: int, document: Document) -> Found:
    lattice = setting.builder.build(document.spelling)
    paths = n_best(lattice, k)
    return *_pieces(setting, lattice, paths), paths.log_q


def distinct(setting: Setting, k: int, document: Document) -> Found:
    lattice = setting.builder.build(document.spelling)
    found = sample_distinct(lattice, k, seed=1)
    return *_pieces(setting, lattice, found.paths), found.log_inclusion


def peer_sample(setting: Setting, document: Document) -> object:
    return setting.processor.encode(document.raw, out_type=int, enable_sampling=True, nbest_size=-1, alpha=1.0)


def peer_best(setting: Setting, k: int, document: Document) -> object:
    return setting.processor.nbest_encode(document.raw, out_type=int, nbest_size=k)


def peer_samples(setting: Setting, k: int, wor: bool, document: Document) -> object:
    return setting.processor.sample_encode_and_score(document.raw, out_type=int, num_samples=k, alpha=1.0, wor=wor)


def rows(setting: Setting, n: int) -> list[Row]:
    """For each length and number of paths; ``n`` documents of the shortest."""
    sentencepiece.set_min_log_level(3)  # it complains of each long document
    found: list[Row] = []
    for length, rarer in LENGTHS.items():
        documents = setting.documents(length, max(n // rarer, 1))
        if not documents:
            continue
        work: list[tuple[str, Callable[[Document], object], Callable[[Document], object]]] = [
            ("1 sample", partial(samples, setting, 1), partial(peer_sample, setting)),
            ("16 best", partial(best, setting, 16), partial(peer_best, setting, 16)),
            ("128 best", partial(best, setting, 128), partial(peer_best, setting, 128)),
            ("16 samples, scores", partial(samples, setting, 16), partial(peer_samples, setting, 16, False)),
            ("128 samples, scores", partial(samples, setting, 128), partial(peer_samples, setting, 128, False)),
            ("128 distinct, scores", partial(distinct, setting, 128), partial(peer_samples, setting, 128, True)),
        ]
        found += [Row(f"{what}, {length:,} characters", documents, ours, peer) for what, ours, peer in work]
    return found
