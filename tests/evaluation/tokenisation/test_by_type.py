"""Sums from word types against the lattice of the whole text."""

from __future__ import annotations

import math
import os
from collections import Counter
from pathlib import Path

import enumerated_cuts as truth
import numpy as np
import pytest

from truesource.evaluation.tokenisation.ambiguity import TypeSums, sums_of_stretches
from truesource.evaluation.tokenisation.lattice import (
    LatticeBuilder,
    count_paths,
    entropy,
    log_partition,
    partition_and_entropy,
)
from truesource.grammar.support.errors import InputError


def pieces_of(words: Counter[str], n: int, seed: int) -> dict[str, float]:
    """All characters, and so many of the commonest substrings of words, with scores after their counts."""
    found: Counter[str] = Counter()
    for word, count in words.items():
        for i in range(len(word)):
            for j in range(i + 1, min(len(word), i + 8) + 1):
                found[word[i:j]] += count
    kept = dict(found.most_common(n)) | {c: found[c] for word in words for c in word}
    rng = np.random.default_rng(seed)
    total = sum(kept.values())
    return {p: math.log(c / total) + float(rng.normal(0.0, 0.5)) for p, c in kept.items()}


def synthetic_text(n_words: int) -> str:
    rng = np.random.default_rng(3)
    types = ["".join(rng.choice(list("etaoinshr"), size=k)) for k in rng.integers(1, 12, size=3000)]
    ranks = np.minimum(rng.zipf(1.3, size=n_words) - 1, len(types) - 1)
    return "".join("▁" + types[r] for r in ranks.tolist())


def sums_by_type(builder: LatticeBuilder, text: str, b: float = 1.0) -> TypeSums:
    return sums_of_stretches(builder, Counter(builder.words(text)), b)


def check_against_whole(text: str, b: float) -> None:
    words = Counter(LatticeBuilder(truth.inventory({"▁": 0.0})).words(text))
    builder = LatticeBuilder(truth.inventory(pieces_of(words, 3000, 5)))
    whole = builder.build(text)
    found = sums_by_type(builder, text, b)
    assert found.counts.sum() == words.total()
    log_z, h = partition_and_entropy(whole, b)
    collision = log_partition(whole, 2.0 * b) - 2.0 * log_z
    assert found.counts @ found.log_partitions == pytest.approx(log_z, rel=1e-9)
    assert found.counts @ found.entropies == pytest.approx(h, rel=1e-9)
    assert found.counts @ found.log_collisions == pytest.approx(collision, rel=1e-9)
    assert found.counts @ found.log_paths == pytest.approx(log_partition(whole, 0.0), rel=1e-9)


@pytest.mark.parametrize("b", [0.0, 0.3, 1.0, 2.0])
def test_a_corpus_from_its_types(b: float) -> None:
    text = synthetic_text(25_000)
    assert len(text) > 100_000
    check_against_whole(text, b)


@pytest.mark.skipif("TRUESOURCE_SHARED_DATA" not in os.environ, reason="TRUESOURCE_SHARED_DATA is not set")
def test_a_treebank_from_its_types() -> None:
    from truesource.grammar.treebank import Treebank

    trees = Treebank.read(Path(os.environ["TRUESOURCE_SHARED_DATA"]) / "gum.dev.mrg.gz")
    text = "".join("▁" + word for tree in trees for word in tree.leaves())
    assert len(text) > 100_000
    check_against_whole(text, 1.0)


def test_each_type_is_as_its_own_lattice() -> None:
    rng = np.random.default_rng(8)
    scores = {p: float(rng.uniform(-5.0, -1.0)) for p in ("▁", "a", "b", "▁a", "ab", "ba", "aba", "▁ab")}
    builder = LatticeBuilder(truth.inventory(scores))
    text = "b▁ab▁aba▁ab▁▁b"
    found = sums_by_type(builder, text, 0.7)
    assert found.words == ("b", "▁ab", "▁aba", "▁▁b")
    assert found.counts.tolist() == [1, 2, 1, 1]
    for k, word in enumerate(found.words):
        assert found.log_partitions[k] == pytest.approx(truth.log_partition(word, scores, 0.7), rel=1e-12)
        assert found.entropies[k] == pytest.approx(truth.entropy(word, scores, 0.7), abs=1e-12)
        assert found.log_collisions[k] == pytest.approx(truth.log_collision(word, scores, 0.7), abs=1e-12)
        assert found.paths[k] == len(truth.cuts(word, scores)) == round(math.exp(found.log_paths[k]))
    assert found.counts @ found.entropies == pytest.approx(entropy(builder.build(text), 0.7), rel=1e-12)


def test_numbers_of_paths_of_long_words_are_exact() -> None:
    builder = LatticeBuilder(truth.inventory({"▁": -1.0, "a": -1.0, "aa": -1.0, "▁a": -2.0}))
    word = "▁" + "a" * 200
    found = sums_by_type(builder, word + "▁a" + word)
    assert found.paths == (count_paths(builder.build(word)), 2)
    assert found.paths[0] > 2**62
    assert found.log_paths == pytest.approx([math.log(found.paths[0]), math.log(2)], rel=1e-12)


def test_what_is_refused() -> None:
    builder = LatticeBuilder(truth.inventory({"▁": -1.0, "a": -1.0}))
    with pytest.raises(InputError, match=r"U\+0078"):
        sums_by_type(builder, "▁a▁x")
    with pytest.raises(InputError, match="no text"):
        sums_by_type(builder, "")
    for b in (-1.0, math.nan):
        with pytest.raises(InputError, match="finite number"):
            sums_by_type(builder, "▁a", b)
    with pytest.raises(InputError, match="no longer numbers"):
        sums_by_type(builder, "▁aaa", 1e308)
