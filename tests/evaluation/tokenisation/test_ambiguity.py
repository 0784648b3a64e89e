"""Sums over the cuts of texts: against enumeration, and for pieces that reach over white space."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import enumerated_cuts as slow
import enumerated_cuts as truth
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from truesource.evaluation.tokenisation.ambiguity import Ambiguity, TypeSums, measure_ambiguity, sums_of_stretches
from truesource.evaluation.tokenisation.lattice import (
    LatticeBuilder,
    count_paths,
    entropy,
    log_partition,
    partition_and_entropy,
)
from truesource.generator.piece_model import PieceText
from truesource.grammar.support.errors import InputError

WITHIN = {"▁": -1.5, "a": -1.1, "b": -2.0, "ab": -2.3, "▁a": -2.4, "ba": -2.9, "▁ab": -3.3, "bab": -3.1}
ACROSS = {**WITHIN, "a▁": -2.2, "b▁a": -4.0}
words = st.lists(st.text("ab", min_size=1, max_size=3), min_size=1, max_size=3)


def text_of(spelling: str, scores: Mapping[str, float], *, own: slow.Cut | None = None) -> PieceText:
    """A text as a tokeniser reads it whose own cut is given, or the best one."""
    best = own or max(slow.cuts(spelling, scores), key=lambda cut: slow.score(cut, scores))
    cut = np.array([[*scores].index(piece) for piece in best], dtype=np.int64)
    return PieceText(spelling.replace("▁", " ").strip(), spelling, cut, False, ())


def measure(spellings: list[str], scores: Mapping[str, float], b: float = 1.0) -> Ambiguity:
    builder = LatticeBuilder(slow.inventory(scores))
    return measure_ambiguity(builder, [text_of(spelling, scores) for spelling in spellings], b)


@pytest.mark.long
@settings(max_examples=30, deadline=None)
@pytest.mark.parametrize("scores", [WITHIN, ACROSS], ids=["within", "across"])
@given(texts=st.lists(words, min_size=1, max_size=3), b=st.sampled_from([0.0, 0.4, 1.0, 2.0]))
def test_every_sum_is_that_of_enumeration(scores: dict[str, float], texts: list[list[str]], b: float) -> None:
    spellings = ["".join(f"▁{word}" for word in text) for text in texts]
    found = measure(spellings, scores, b)
    assert found.factorises == (scores is WITHIN)
    for k, spelling in enumerate(spellings):
        cuts = slow.cuts(spelling, scores)
        entropy = slow.entropy(spelling, scores, b)
        best = max(slow.score(cut, scores) for cut in cuts)
        assert found.log_partition[k] == pytest.approx(slow.log_partition(spelling, scores, b), abs=1e-10)
        assert found.entropy[k] == pytest.approx(entropy, abs=1e-10)
        assert found.derivative_entropy[k] == pytest.approx(entropy, abs=1e-10)
        assert found.log_collision[k] == pytest.approx(slow.log_collision(spelling, scores, b), abs=1e-10)
        assert found.log_paths[k] == pytest.approx(math.log(len(cuts)), abs=1e-10)
        assert found.canonical_log_q[k] == pytest.approx(b * best - found.log_partition[k], abs=1e-10)
        places = {(at, piece) for cut in cuts for at, piece in zip(np.cumsum([0, *map(len, cut)]), cut, strict=False)}
        assert found.arcs[k] == len(places)
    assert found.below_best == 0
    values = found.scores(scores="own")
    entropies = [slow.entropy(spelling, scores, b) for spelling in spellings]
    n_words = sum(map(len, texts))
    assert values["entropy"].value == pytest.approx(np.mean(entropies), abs=1e-10)
    assert values["entropy_per_word"].value == pytest.approx(sum(entropies) / n_words, abs=1e-10)
    assert values["log2_paths"].value == pytest.approx(
        np.mean([math.log2(len(slow.cuts(spelling, scores))) for spelling in spellings]), abs=1e-10
    )
    assert values["words"].value == n_words
    assert ("words_to_64_paths" in values) == found.factorises


@pytest.mark.long
def test_words_come_with_their_cuts_and_shares() -> None:
    found = measure(["▁ab▁bab", "▁ab▁a"], WITHIN)
    ambiguous = {word.word: word for word in found.words(10)}
    assert [*ambiguous] == sorted(ambiguous, key=lambda word: -slow.entropy(word, WITHIN))
    for word, cuts in ((word, slow.cuts(word, WITHIN)) for word in ambiguous):
        best = max(cuts, key=lambda cut: slow.score(cut, WITHIN))
        assert ambiguous[word].paths == len(cuts)
        assert ambiguous[word].best == best
        assert ambiguous[word].probability == pytest.approx(slow.distribution(word, WITHIN)[best], abs=1e-10)
        assert ambiguous[word].entropy == pytest.approx(slow.entropy(word, WITHIN), abs=1e-10)
    assert (ambiguous["▁ab"].tokens, ambiguous["▁a"].tokens) == (2, 1)
    assert len(found.words(2)) == 2
    assert measure(["▁ab"], ACROSS).words(5) == []


@pytest.mark.long
def test_shares_of_words_are_of_tokens() -> None:
    long = "▁" + "ab" * 8
    n = len(slow.cuts(long, WITHIN))
    assert n > 1024
    values = measure([f"▁a{long}", "▁a▁b"], WITHIN).scores(scores="own")
    assert [values[f"words_to_{most}_paths"].value for most in (64, 1024)] == [0.75, 0.75]


@pytest.mark.long
def test_own_cuts_that_are_not_the_best_are_counted() -> None:
    scores = {"▁": -1.0, "a": -1.0, "▁a": -2.0, "b": -3.0, "▁b": -9.0}
    builder = LatticeBuilder(slow.inventory(scores))
    texts = [
        text_of("▁b", scores, own=("▁b",)),
        text_of("▁b", scores),
        text_of("▁a", scores, own=("▁", "a")),
        text_of("▁a", scores, own=("▁a",)),
    ]
    found = measure_ambiguity(builder, texts)
    assert (found.below_best, found.tied) == (1, 1)
    values = found.scores(scores="own")
    assert (values["own_below_best"].value, values["own_tied"].value) == (1.0, 1.0)
    assert "own_tied" not in found.scores(scores="uniform")


@pytest.mark.long
def test_records_are_signed_and_sizes_are_those_of_the_original() -> None:
    builder = LatticeBuilder(slow.inventory(WITHIN))
    read = text_of("▁ab▁a", WITHIN)
    found = measure_ambiguity(builder, [PieceText("äb  a\n", read.spelling, read.canonical, True, ())], 0.5)
    values = found.scores(scores="own")
    sizes = {name: values[name].value for name in ("documents", "words", "characters", "bytes", "altered")}
    assert sizes == {"documents": 1, "words": 2, "characters": 6, "bytes": 7, "altered": 1}
    assert values["entropy_per_character"].value == pytest.approx(values["entropy"].value / 6)
    for part in ("unit:nats/document", "scores:own", "b:0.5", "tokeniser:unigram", "data:"):
        assert part in values["entropy"].signature
    assert measure(["▁ab▁a"], WITHIN).scores(scores="own")["entropy"].signature != values["entropy"].signature
    records = [score.as_record() for score in found.as_scores(scores="own", words=1)]
    assert {record["name"] for record in records} == {*values, "word_entropy"}
    assert records[-1]["group"] == "▁ab"
    assert records[-1]["log2_paths"] == pytest.approx(math.log2(len(slow.cuts("▁ab", WITHIN))))


def test_texts_without_cuts_are_refused() -> None:
    builder = LatticeBuilder(slow.inventory(WITHIN))
    with pytest.raises(InputError, match="there are no texts"):
        measure_ambiguity(builder, [])
    with pytest.raises(InputError, match="remove it"):
        measure_ambiguity(builder, [PieceText("x", "▁x", np.zeros(0, dtype=np.int64), False, ("x",))])
    with pytest.raises(InputError, match="inverse temperature"):
        measure(["▁a"], WITHIN, -1.0)


# -- sums from word types against the lattice of the whole text --


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


@pytest.mark.long
@pytest.mark.parametrize("b", [0.0, 0.3, 1.0, 2.0])
def test_a_corpus_from_its_types(b: float) -> None:
    text = synthetic_text(25_000)
    assert len(text) > 100_000
    check_against_whole(text, b)


@pytest.mark.long
@pytest.mark.skipif("TRUESOURCE_SHARED_DATA" not in os.environ, reason="TRUESOURCE_SHARED_DATA is not set")
def test_a_treebank_from_its_types() -> None:
    from truesource.grammar.treebank import Treebank

    trees = Treebank.read(Path(os.environ["TRUESOURCE_SHARED_DATA"]) / "gum.dev.mrg.gz")
    text = "".join("▁" + word for tree in trees for word in tree.leaves())
    assert len(text) > 100_000
    check_against_whole(text, 1.0)


@pytest.mark.long
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


@pytest.mark.long
def test_numbers_of_paths_of_long_words_are_exact() -> None:
    builder = LatticeBuilder(truth.inventory({"▁": -1.0, "a": -1.0, "aa": -1.0, "▁a": -2.0}))
    word = "▁" + "a" * 200
    found = sums_by_type(builder, word + "▁a" + word)
    assert found.paths == (count_paths(builder.build(word)), 2)
    assert found.paths[0] > 2**62
    assert found.log_paths == pytest.approx([math.log(found.paths[0]), math.log(2)], rel=1e-12)


@pytest.mark.long
def test_what_is_refused() -> None:
    builder = LatticeBuilder(truth.inventory({"▁": -1.0, "a": -1.0}))
    with pytest.raises(InputError, match=r"U\+0078"):
        sums_by_type(builder, "▁a▁x")
    with pytest.raises(InputError, match="no text"):
        sums_by_type(builder, "")
    for b in (-1.0, math.nan):
        with pytest.raises(InputError, match="finite number"):
            sums_by_type(builder, "▁a", b)
    with pytest.raises(InputError, match="overflow"):
        sums_by_type(builder, "▁aaa", 1e308)
