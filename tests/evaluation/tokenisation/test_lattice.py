"""Lattices against all cuts listed one by one."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping

import enumerated_cuts as truth
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from truesource.evaluation.tokenisation._kernels.lattice import place_children
from truesource.evaluation.tokenisation._kernels.sums import decay
from truesource.evaluation.tokenisation.lattice import (
    Lattice,
    LatticeBuilder,
    arc_ends,
    arc_marginals,
    best_path,
    count_paths,
    entropy,
    fit_scores,
    forward,
    log_partition,
    partition_and_entropy,
    uniform_scores,
)
from truesource.generator.piece_model import PieceInventory
from truesource.grammar.support.errors import InputError

words = st.text("abc", min_size=1, max_size=4)
vocabularies = st.dictionaries(words, st.floats(-20.0, 1.0), min_size=1, max_size=12)
texts = st.text("abc", min_size=1, max_size=9)


def paths(lattice: Lattice) -> list[tuple[int, ...]]:
    """All of them, arcs left to right."""
    leaving: dict[int, list[int]] = {}
    ends = np.repeat(np.arange(lattice.n + 1), np.diff(lattice.first))
    for arc, j in enumerate(lattice.source.tolist()):
        leaving.setdefault(j, []).append(arc)

    def go(i: int) -> list[tuple[int, ...]]:
        if i == lattice.n:
            return [()]
        return [(arc, *rest) for arc in leaving.get(i, []) for rest in go(int(ends[arc]))]

    return go(0)


@pytest.mark.long
@given(vocabularies, texts)
def test_paths_are_the_cuts(scores: dict[str, float], text: str) -> None:
    builder = LatticeBuilder(truth.inventory(scores))
    expected = truth.cuts(text, scores)
    assert builder.spells([text]).tolist() == [bool(expected)]
    if not expected:
        with pytest.raises(InputError, match="no piece"):
            builder.build(text)
        return
    lattice = builder.build(text)
    names = builder.inventory.pieces
    found = [tuple(names[lattice.piece[arc]] for arc in path) for path in paths(lattice)]
    assert sorted(found) == sorted(expected)
    assert {arc for path in paths(lattice) for arc in path} == set(range(len(lattice.source)))
    assert lattice.score.tolist() == [scores[names[p]] for p in lattice.piece]
    for path in paths(lattice):
        assert tuple(builder.path(lattice, lattice.piece[list(path)].astype(np.int64))) == path


@given(vocabularies, texts)
def test_arcs_stand_in_order(scores: dict[str, float], text: str) -> None:
    scores |= {letter: -3.0 for letter in "abc" if letter not in scores}
    lattice = LatticeBuilder(truth.inventory(scores)).build(text)
    assert lattice.first[0] == lattice.first[1] == 0
    assert lattice.first[-1] == len(lattice.source)
    for i in range(lattice.n + 1):
        sources = lattice.source[lattice.first[i] : lattice.first[i + 1]]
        assert (np.diff(sources) > 0).all()
        pieces = lattice.piece[lattice.first[i] : lattice.first[i + 1]]
        for j, p in zip(sources.tolist(), pieces.tolist(), strict=True):
            assert text[j:i] == list(scores)[p]


@pytest.mark.long
@settings(deadline=None, max_examples=30)
@given(st.sets(st.text(min_size=1, max_size=5), min_size=1, max_size=40), st.data())
def test_any_characters_can_stand_in_pieces(pieces: set[str], data: st.DataObject) -> None:
    vocabulary = sorted(pieces)
    parts = data.draw(st.lists(st.sampled_from(vocabulary), min_size=1, max_size=4))
    lattice = LatticeBuilder(truth.inventory(dict.fromkeys(vocabulary, -1.0))).build("".join(parts))
    assert len(paths(lattice)) == len(truth.cuts("".join(parts), vocabulary))


def test_halves_of_surrogate_pairs_and_the_last_code_point_are_characters_like_others() -> None:
    builder = LatticeBuilder(truth.inventory({"\ud800": -1.0, "\U0010ffff": -1.0, "\U0010ffff\ud800": -1.0}))
    assert len(builder.build("\ud800\U0010ffff\ud800").source) == 4
    with pytest.raises(InputError, match=r"U\+00E9"):
        builder.build("é")


@pytest.mark.long
def test_a_large_vocabulary_of_many_characters() -> None:
    """All pairs of 150 characters, and the characters: the trie has nodes with many children, and grows."""
    letters = [chr(0x4E00 + 7 * k) for k in range(150)]
    pieces = {a + c: -2.0 for a, c in itertools.product(letters, repeat=2)} | dict.fromkeys(letters, -1.0)
    builder = LatticeBuilder(truth.inventory(pieces))
    lattice = builder.build("".join(letters))
    assert len(lattice.source) == 299
    assert all(builder.spells([p])[0] for p in list(pieces)[::97])
    assert not builder.spells(["一 丁"])[0]


@pytest.mark.long
def test_pieces_whose_characters_lie_far_apart() -> None:
    """Every first letter is followed by 16 of 900: hardly two nodes fit into each other."""
    rng = np.random.default_rng(2)
    letters = [chr(0x4E00 + k) for k in range(900)]
    pieces = {a + letters[k] for a in letters for k in rng.choice(900, size=16, replace=False)}
    builder = LatticeBuilder(truth.inventory(dict.fromkeys(sorted(pieces), -1.0)))
    pairs = [a + c for a in letters[:100] for c in letters]
    assert builder.spells(pairs).tolist() == [pair in pieces for pair in pairs]


def test_the_trie_grows() -> None:
    table = np.full((4, 3), -1, dtype=np.int32)
    table[1, 0] = 0
    base, _, grown = place_children(table, np.array([1, 9]), 2, 1)
    assert base == 1
    assert len(grown) > 10
    assert grown[:4].tolist() == table.tolist()
    assert (grown[4:] == -1).all()


def test_dead_ends_are_removed() -> None:
    """In "aab" the piece "aa" leads nowhere, and nothing leads to the "b" that stands alone."""
    builder = LatticeBuilder(truth.inventory({"a": -1.0, "aa": -1.0, "ab": -1.0}))
    lattice = builder.build("aab")
    assert lattice.source.tolist() == [0, 1]
    assert lattice.piece.tolist() == [0, 2]
    assert lattice.first.tolist() == [0, 0, 1, 1, 2]


def test_many_arcs_at_every_position() -> None:
    """More arcs than room was made for."""
    pieces = {"a" * k: -float(k) for k in range(1, 60)}
    lattice = LatticeBuilder(truth.inventory(pieces)).build("a" * 400)
    assert len(lattice.source) == sum(min(i, 59) for i in range(1, 401))


def test_unknown_characters_are_named() -> None:
    builder = LatticeBuilder(truth.inventory({"▁": -1.0, "a": -2.0, "bc": -3.0}))
    with pytest.raises(InputError, match=r"no piece contains the character 'é' \(U\+00E9\), '\?' \(U\+003F\)$"):
        builder.build("▁aéa?é")
    with pytest.raises(InputError, match=r"and 3 more"):
        builder.build("12345678")
    with pytest.raises(InputError, match=r"no pieces spell the text after character 2, 'c' in 'aacb'"):
        builder.build("aacb")
    with pytest.raises(InputError, match="no text"):
        builder.build("")


@pytest.mark.long
def test_words_joined_stay_apart() -> None:
    scores = {"a": -1.0, "b": -1.5, "ab": -2.0, "ba": -2.5}
    builder = LatticeBuilder(truth.inventory(scores))
    lattice, bounds = builder.join(["ab", "ba", "b"])
    assert bounds.tolist() == [0, 2, 4, 5]
    names = builder.inventory.pieces
    found = {tuple(names[lattice.piece[arc]] for arc in path) for path in paths(lattice)}
    assert found == {
        (*x, *y, *z)
        for x, y, z in itertools.product(truth.cuts("ab", scores), truth.cuts("ba", scores), truth.cuts("b", scores))
    }
    with pytest.raises(InputError, match="no text"):
        builder.join(["ab", ""])
    with pytest.raises(InputError, match="no text"):
        builder.join([])
    with pytest.raises(InputError, match="after character 4"):
        LatticeBuilder(truth.inventory({"ab": -1.0, "ba": -1.0})).join(["ab", "aba"])
    assert builder.spells(["ab", "", "abc", "b"]).tolist() == [True, True, False, True]


def test_marker_and_words() -> None:
    builder = LatticeBuilder(truth.inventory({"▁": -1.0, "▁a": -1.0, "a": -1.0, "b": -1.0, "▁▁b": -1.0}))
    assert builder.factorises
    assert builder.words("▁a▁ab▁▁b") == ["▁a", "▁ab", "▁▁b"]
    assert builder.words("ab▁b▁") == ["ab", "▁b", "▁"]
    assert builder.words("") == []
    inside = LatticeBuilder(truth.inventory({"▁": -1.0, "a▁a": -1.0, "a": -1.0}))
    assert not inside.factorises
    assert inside.words("▁a▁a") == ["▁a▁a"]
    assert not LatticeBuilder(truth.inventory({"a▁": -1.0, "▁": -1.0})).factorises
    ends = LatticeBuilder(truth.inventory({"a▁": -1.0, "▁": -1.0, "a": -1.0}, marker_ends=True))
    assert ends.factorises
    assert ends.words("a▁aa▁▁a") == ["a▁", "aa▁▁", "a"]
    assert not LatticeBuilder(truth.inventory({"▁a": -1.0}, marker_ends=True)).factorises
    other = LatticeBuilder(truth.inventory({"Ġa": -1.0, "a": -1.0, ".": -1.0, "Ġ": -1.0}, marker="Ġ"))
    assert other.words("a.ĠaĠĠa") == ["a.", "Ġa", "ĠĠa"]
    assert LatticeBuilder(truth.inventory({".": -1.0, "a": -1.0}, marker=".")).words("a.a") == ["a", ".a"]


def test_what_is_refused() -> None:
    bare = truth.inventory(["a", "b"], kind="bpe")
    with pytest.raises(InputError, match="bpe pieces have no scores"):
        LatticeBuilder(bare)
    assert LatticeBuilder(bare, np.zeros(2)).scores.tolist() == [0.0, 0.0]
    for wrong in (-np.inf, np.inf, np.nan):
        with pytest.raises(InputError, match="'b' has the score"):
            LatticeBuilder(bare, np.array([0.0, wrong]))
    with pytest.raises(ValueError, match="one score for each of 2"):
        LatticeBuilder(bare, np.zeros(3))
    for pieces in (("a", ""), ()):
        with pytest.raises(InputError, match="at least one piece, and no empty piece"):
            LatticeBuilder(PieceInventory("bpe", pieces, np.arange(len(pieces)), np.zeros(len(pieces)), "▁"))
    builder = LatticeBuilder(truth.inventory({"a": -1.0, "aa": -1.0, "b": -1.0}))
    lattice = builder.build("aab")
    for cut in ([1], [1, 1], [0, 0, 0, 2], [0, 1], [1, 0], []):
        with pytest.raises(InputError, match="do not spell 'aab'"):
            builder.path(lattice, np.array(cut, dtype=np.int64))


def test_tokens_of_one_spelling_are_arcs_of_their_own() -> None:
    pieces, scores = ("a", "ab", "a", "b", "ab", "a"), np.log([0.1, 0.2, 0.3, 0.15, 0.05, 0.2])
    is_byte = np.array([True, False, False, False, False, False])
    builder = LatticeBuilder(PieceInventory("unigram", pieces, np.arange(6), scores, "▁", byte_tokens=is_byte))
    lattice = builder.build("ab")
    assert list(zip(arc_ends(lattice).tolist(), lattice.source.tolist(), lattice.piece.tolist(), strict=True)) == [
        (1, 0, 2), (1, 0, 5), (1, 0, 0), (2, 0, 1), (2, 0, 4), (2, 1, 3),
    ]  # fmt: skip
    assert lattice.score.tolist() == scores[lattice.piece].tolist()
    assert log_partition(lattice) == pytest.approx(math.log(0.6 * 0.15 + 0.25), abs=1e-14)
    assert count_paths(lattice) == 5
    for cut in ([0, 3], [2, 3], [5, 3], [1], [4]):
        assert lattice.piece[builder.path(lattice, np.array(cut))].tolist() == cut
    with pytest.raises(InputError, match="do not spell 'ab'"):
        builder.path(lattice, np.array([0, 2]))


def test_a_long_text_has_edges_in_proportion() -> None:
    builder = LatticeBuilder(truth.inventory({"a": -1.0, "b": -1.0, "ab": -1.0}))
    lattice = builder.build("ab" * 500_000)  # work in proportion to its square would never end
    assert len(lattice.source) == 1_500_000


# -- sums over lattices against all cuts listed one by one, and against each other --


TEMPERATURES = (0.0, 0.1, 0.3, 1.0, 2.0, 50.0)
pieces_and_spaces = st.text("abc", min_size=2, max_size=4)
scores = st.floats(-20.0, 1.0)
small_vocabularies = st.builds(
    dict[str, float].__or__,
    st.dictionaries(pieces_and_spaces, scores, max_size=12),
    st.fixed_dictionaries(dict.fromkeys("abc", scores)),
)


def lattice_of(vocabulary: dict[str, float], text: str) -> Lattice:
    return LatticeBuilder(truth.inventory(vocabulary)).build(text)


def long_lattice(n: int, *, smallest: float = -20.0, seed: int = 1) -> Lattice:
    """Of a text of n letters with about two arcs a letter."""
    rng = np.random.default_rng(seed)
    pieces = {"".join(rng.choice(list("abcde"), size=k)): 0.0 for k in (2, 2, 2, 3, 3, 4, 5, 6) for _ in range(4)}
    vocabulary = {p: float(rng.uniform(smallest, -1.0)) for p in (*"abcde", *pieces)}
    return lattice_of(vocabulary, "".join(rng.choice(list("abcde"), size=n)))


@given(small_vocabularies, texts, st.sampled_from(TEMPERATURES))
def test_sums_equal_those_over_all_cuts(vocabulary: dict[str, float], text: str, b: float) -> None:
    lattice = lattice_of(vocabulary, text)
    names = list(vocabulary)
    assert log_partition(lattice, b) == pytest.approx(truth.log_partition(text, vocabulary, b), rel=1e-10, abs=1e-10)
    assert entropy(lattice, b) == pytest.approx(truth.entropy(text, vocabulary, b), rel=1e-9, abs=1e-10)
    assert entropy(lattice, b) >= 0.0
    assert count_paths(lattice) == len(truth.cuts(text, vocabulary))
    expected = truth.marginals(text, vocabulary, b)
    found = dict(
        zip(
            zip(lattice.source.tolist(), [names[p] for p in lattice.piece], strict=True),
            arc_marginals(lattice, b),
            strict=True,
        )
    )
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-10)
    a = forward(lattice, b)
    for i in range(1, lattice.n + 1):
        assert a[i] == pytest.approx(truth.log_partition(text[:i], vocabulary, b), rel=1e-10, abs=1e-10)


@given(small_vocabularies, texts)
def test_best_path(vocabulary: dict[str, float], text: str) -> None:
    lattice = lattice_of(vocabulary, text)
    path = best_path(lattice)
    expected = max(truth.score(cut, vocabulary) for cut in truth.cuts(text, vocabulary))
    assert lattice.score[path].sum() == pytest.approx(expected, abs=1e-10)
    assert "".join(list(vocabulary)[p] for p in lattice.piece[path]) == text


def test_ties_go_to_fewer_pieces_and_then_to_a_longer_last_one() -> None:
    flat = {"a": 0.0, "aa": 0.0, "aaa": 0.0}
    for text, lengths in (("aaaa", [1, 3]), ("aaaaa", [2, 3]), ("aaa", [3])):
        lattice = lattice_of(flat, text)
        assert (lattice.piece[best_path(lattice)] + 1).tolist() == lengths


@given(small_vocabularies, texts, st.floats(0.0, 5.0))
def test_entropy_is_what_the_slope_of_log_z_says(vocabulary: dict[str, float], text: str, b: float) -> None:
    """H = log Z_b - b dlog Z_b/db; the slope is the expected score, which marginals give."""
    lattice = lattice_of(vocabulary, text)
    slope = float(arc_marginals(lattice, b) @ lattice.score)
    assert entropy(lattice, b) == pytest.approx(log_partition(lattice, b) - b * slope, abs=1e-10)


def test_the_slope_is_that_of_log_z() -> None:
    lattice = long_lattice(300)
    slope = float(arc_marginals(lattice, 0.7) @ lattice.score)
    step = 1e-5
    ratio = (log_partition(lattice, 0.7 + step) - log_partition(lattice, 0.7 - step)) / (2.0 * step)
    assert slope == pytest.approx(ratio, rel=1e-7)


@pytest.mark.parametrize("b", TEMPERATURES)
def test_a_corpus_as_one_text(b: float) -> None:
    """137,000 characters: every quantity a number, entropy as the slope says, marginals of every letter sum to 1."""
    lattice = long_lattice(137_000, smallest=-30.0)
    log_z, h = partition_and_entropy(lattice, b)
    marginal = arc_marginals(lattice, b)
    assert log_z == pytest.approx(forward(lattice, b)[-1], rel=1e-12)
    assert h == pytest.approx(log_z - b * float(marginal @ lattice.score), rel=1e-9, abs=1e-9 * abs(log_z) + 1e-9)
    lengths = np.repeat(np.arange(lattice.n + 1), np.diff(lattice.first)) - lattice.source
    assert float(marginal @ lengths) == pytest.approx(lattice.n, rel=1e-10)
    assert ((marginal >= 0.0) & (marginal <= 1.0 + 1e-9)).all()


@pytest.mark.long
def test_a_corpus_as_one_text_in_pure_python() -> None:
    lattice = long_lattice(137_000, smallest=-30.0)
    a = [0.0] + [-math.inf] * lattice.n
    source, score, first = lattice.source.tolist(), lattice.score.tolist(), lattice.first.tolist()
    for i in range(1, lattice.n + 1):
        a[i] = truth.log_sum(a[source[w]] + 0.3 * score[w] for w in range(first[i], first[i + 1]))
    assert log_partition(lattice, 0.3) == pytest.approx(a[-1], rel=1e-11)


def test_uniform_over_paths_at_zero() -> None:
    lattice = long_lattice(200)
    number = math.log(count_paths(lattice))
    assert log_partition(lattice, 0.0) == pytest.approx(number, rel=1e-12)
    assert entropy(lattice, 0.0) == pytest.approx(number, rel=1e-12)


def test_numbers_of_paths_are_exact() -> None:
    """Pieces of one and two letters: Fibonacci numbers, far beyond 64 bits; none meet between the ends."""
    lattice = lattice_of({"a": -1.0, "aa": -1.0}, "a" * 1000)
    x, y = 1, 1
    for _ in range(999):
        x, y = y, x + y
    assert count_paths(lattice) == y
    assert count_paths(lattice_of({"a": -1.0, "aa": -1.0, "b": -1.0}, "aab" * 3000)) == 2**3000
    assert count_paths(lattice_of({"ab": -1.0}, "abab")) == 1


@given(small_vocabularies, texts, st.floats(-5.0, 5.0))
def test_a_factor_for_every_character_changes_nothing_but_z(vocabulary: dict[str, float], text: str, c: float) -> None:
    """Scores + c * length: all paths gain the same, so Q stays."""
    one = lattice_of(vocabulary, text)
    other = lattice_of({p: s + c * len(p) for p, s in vocabulary.items()}, text)
    assert log_partition(other) == pytest.approx(log_partition(one) + c * len(text), abs=1e-10)
    assert entropy(other) == pytest.approx(entropy(one), abs=1e-10)
    np.testing.assert_allclose(arc_marginals(other), arc_marginals(one), atol=1e-10)


def test_scores_that_no_exponential_holds() -> None:
    """b * score to -1e6 and 1e6."""
    vocabulary = {"a": -1000.0, "b": -2000.0, "ab": -3000.0 - math.log(3.0), "ba": 1000.0}
    lattice = lattice_of(vocabulary, "abab")
    for b in (1.0, 1000.0):
        assert log_partition(lattice, b) == pytest.approx(truth.log_partition("abab", vocabulary, b), rel=1e-14)
        assert entropy(lattice, b) == pytest.approx(truth.entropy("abab", vocabulary, b), rel=1e-10, abs=1e-15)


def test_a_small_entropy() -> None:
    lattice = lattice_of({"a": 0.0, "b": 0.0, "ab": -20.0}, "ab")
    q = 1.0 / (1.0 + math.exp(20.0))
    assert entropy(lattice) == pytest.approx(-q * math.log(q) - (1.0 - q) * math.log1p(-q), rel=1e-9, abs=1e-16)
    assert entropy(lattice, 5.0) == pytest.approx(101.0 * math.exp(-100.0), abs=1e-15)


@pytest.mark.parametrize("b", [0.0, 1.0, 3.0])
@pytest.mark.parametrize("text", ["a" * 3000, "aaaaaaaaac" * 300], ids=["paths never meet", "paths meet"])
def test_more_paths_than_a_float_can_count(text: str, b: float) -> None:
    """Both ways out of masses that grow too large, against marginals, which keep logarithms."""
    lattice = lattice_of({"a": -1.0, "aa": -2.1, "c": -3.0}, text)
    assert math.log(count_paths(lattice)) > 600.0
    log_z, h = partition_and_entropy(lattice, b)
    assert log_z == pytest.approx(forward(lattice, b)[-1], rel=1e-12)
    assert h == pytest.approx(log_z - b * float(arc_marginals(lattice, b) @ lattice.score), rel=1e-10)
    if b == 0.0:
        assert log_z == pytest.approx(math.log(count_paths(lattice)), rel=1e-12)


def test_exponentials_of_our_own() -> None:
    lack = np.concatenate([np.linspace(0.0, 1.0, 1001), np.geomspace(1e-300, 699.99, 5001), [700.0, 1e4, np.inf]])
    weight = np.empty_like(lack)
    decay(lack, weight)
    np.testing.assert_allclose(weight[:-3], np.exp(-lack[:-3]), rtol=2e-15)
    assert weight[0] == 1.0
    assert (weight[-3:] == 0.0).all()


def test_refused_temperatures() -> None:
    lattice = lattice_of({"a": -1.0, "aa": -2.0}, "aaa")
    for b in (-1.0, math.inf, math.nan):
        for measure in (forward, log_partition, entropy, arc_marginals):
            with pytest.raises(InputError, match="finite number of at least 0"):
                measure(lattice, b)
    for measure in (forward, log_partition, entropy, arc_marginals):
        with pytest.raises(InputError, match="overflow"):
            measure(lattice, 1e308)


# -- unigram scores fitted by EM against EM over all cuts listed one by one, and against a general optimiser --


BPE = ("▁", "a", "b", "c", "▁a", "ab", "bc", "▁ab", "abc", "cc")
WORDS = {"▁abc": 6, "▁a": 9, "▁abab": 3, "▁bcb": 2, "▁ccc": 1}


def likelihood(inventory: PieceInventory, scores: Mapping[str, float], words: Mapping[str, int]) -> float:
    return math.fsum(n * truth.log_partition(word, scores) for word, n in words.items())


@pytest.mark.long
def test_a_step_is_one_of_em_over_all_cuts() -> None:
    inventory = truth.inventory(BPE, kind="bpe")
    flat = dict.fromkeys(BPE, -math.log(len(BPE)))
    expected = dict.fromkeys(BPE, 0.0)
    for word, n in WORDS.items():
        for (_, piece), p in truth.marginals(word, flat).items():
            expected[piece] += n * p
    total = math.fsum(expected.values())
    found = fit_scores(inventory, WORDS, iterations=1, floor=1e-12)
    assert np.exp(found) == pytest.approx([expected[p] / total for p in BPE], rel=1e-10)


@pytest.mark.long
@given(
    st.dictionaries(st.text("abc", min_size=1, max_size=7), st.integers(1, 50), min_size=1, max_size=8),
    st.sets(st.text("abc", min_size=2, max_size=4), max_size=8),
    st.sampled_from([1e-12, 1e-4, 0.04]),
)
def test_the_likelihood_never_falls(words: dict[str, int], longer: set[str], floor: float) -> None:
    inventory = truth.inventory(["a", "b", "c", *sorted(longer)], kind="wordpiece")
    steps = [np.full(len(inventory.pieces), -math.log(len(inventory.pieces)))]
    steps += [fit_scores(inventory, words, iterations=n, tolerance=0.0, floor=floor) for n in (1, 2, 3, 10, 30)]
    values = [likelihood(inventory, dict(zip(inventory.pieces, s.tolist(), strict=True)), words) for s in steps]
    assert all(later >= earlier - 1e-9 * abs(earlier) for earlier, later in itertools.pairwise(values))
    scores = steps[-1]
    assert np.exp(scores).sum() == pytest.approx(1.0, rel=1e-10)
    assert np.exp(scores).min() >= floor * (1.0 - 1e-10)


@pytest.mark.long
@pytest.mark.parametrize("floor", [1e-9, 0.03])
def test_the_end_is_the_best_there_is(floor: float) -> None:
    """No other probabilities, all at least ``floor``, make the words likelier."""
    inventory = truth.inventory(BPE, kind="bpe")
    scores = fit_scores(inventory, WORDS, iterations=5000, tolerance=0.0, floor=floor)

    def loss(p: np.ndarray) -> float:
        return -likelihood(inventory, dict(zip(BPE, np.log(p).tolist(), strict=True)), WORDS)

    best = min(
        minimize(
            loss,
            start,
            method="SLSQP",
            bounds=[(floor, 1.0)] * len(BPE),
            constraints={"type": "eq", "fun": lambda p: p.sum() - 1.0},
            options={"maxiter": 500, "ftol": 1e-12},
        ).fun
        for start in (np.full(len(BPE), 0.1), np.exp(scores))
    )
    assert loss(np.exp(scores)) == pytest.approx(best, rel=1e-6)


@pytest.mark.long
def test_pieces_that_are_never_seen_keep_the_floor_and_all_paths() -> None:
    inventory = truth.inventory([*BPE, "x", "abcabc"], kind="bpe")
    scores = fit_scores(inventory, WORDS, floor=1e-6)
    named = dict(zip(inventory.pieces, scores.tolist(), strict=True))
    assert named["x"] == named["abcabc"] == pytest.approx(math.log(1e-6))
    text = "▁abcabcx"
    lattice = LatticeBuilder(inventory, scores).build(text)
    assert count_paths(lattice) == len(truth.cuts(text, inventory.pieces))
    assert log_partition(lattice) == pytest.approx(truth.log_partition(text, named), rel=1e-12)


@pytest.mark.long
def test_words_that_no_pieces_spell_are_left_out() -> None:
    inventory = truth.inventory(BPE, kind="bpe")
    other = WORDS | {"▁é": 100, "": 3, "▁ab": 0}
    assert fit_scores(inventory, other).tolist() == fit_scores(inventory, WORDS).tolist()


@pytest.mark.long
def test_it_stops_when_little_changes() -> None:
    inventory = truth.inventory(BPE, kind="bpe")
    found = fit_scores(inventory, WORDS, iterations=500, tolerance=1e-4)
    steps = [fit_scores(inventory, WORDS, iterations=n, tolerance=0.0) for n in range(1, 100)]
    (stop,) = [n for n, scores in enumerate(steps, start=1) if np.array_equal(scores, found)]
    values = [likelihood(inventory, dict(zip(BPE, scores.tolist(), strict=True)), WORDS) for scores in steps]
    changes = [(later - earlier) / abs(later) for earlier, later in itertools.pairwise(values[:stop])]
    assert stop > 2 and min(changes[:-1]) >= 1e-4 > changes[-1]


def test_uniform_scores_make_all_paths_alike() -> None:
    inventory = truth.inventory(BPE, kind="bpe")
    lattice = LatticeBuilder(inventory, uniform_scores(inventory)).build("▁abcab")
    assert log_partition(lattice) == pytest.approx(math.log(count_paths(lattice)), rel=1e-12)
    assert entropy(lattice, 3.0) == pytest.approx(math.log(count_paths(lattice)), rel=1e-12)


@pytest.mark.long
def test_what_cannot_be_fitted() -> None:
    inventory = truth.inventory(BPE, kind="bpe")
    with pytest.raises(InputError, match="none of the words"):
        fit_scores(inventory, {"x": 3})
    with pytest.raises(InputError, match="none of the words"):
        fit_scores(inventory, {})
    with pytest.raises(InputError, match="at least one iteration"):
        fit_scores(inventory, WORDS, iterations=0)
    for tolerance in (-1.0, math.nan):
        with pytest.raises(InputError, match="tolerance"):
            fit_scores(inventory, WORDS, tolerance=tolerance)
    for floor in (0.0, 0.2, math.nan):
        with pytest.raises(InputError, match="above 0 and below 1/10"):
            fit_scores(inventory, WORDS, floor=floor)
