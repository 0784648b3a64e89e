"""Lattices against all cuts listed one by one."""

from __future__ import annotations

import itertools

import enumerated_cuts as truth
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from truesource.evaluation.tokenisation._kernels.lattice import _place
from truesource.evaluation.tokenisation.lattice import Lattice, LatticeBuilder
from truesource.generator.language_model import PieceInventory
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


def test_a_large_vocabulary_of_many_characters() -> None:
    """All pairs of 150 characters, and the characters: the trie has nodes with many children, and grows."""
    letters = [chr(0x4E00 + 7 * k) for k in range(150)]
    pieces = {a + c: -2.0 for a, c in itertools.product(letters, repeat=2)} | dict.fromkeys(letters, -1.0)
    builder = LatticeBuilder(truth.inventory(pieces))
    lattice = builder.build("".join(letters))
    assert len(lattice.source) == 299
    assert all(builder.spells([p])[0] for p in list(pieces)[::97])
    assert not builder.spells(["一 丁"])[0]


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
    base, _, grown = _place(table, np.array([1, 9]), 2, 1)
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
    with pytest.raises(InputError, match=r"no piece holds the character 'é' \(U\+00E9\), '\?' \(U\+003F\)$"):
        builder.build("▁aéa?é")
    with pytest.raises(InputError, match=r"and 3 more"):
        builder.build("12345678")
    with pytest.raises(InputError, match=r"no pieces spell the text from character 3 on, 'c' in 'aacb'"):
        builder.build("aacb")
    with pytest.raises(InputError, match="no text"):
        builder.build("")


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
    with pytest.raises(InputError, match="from character 5 on"):
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
    for pieces in (("a", "a"), ("a", ""), ()):
        with pytest.raises(InputError, match="all different"):
            LatticeBuilder(PieceInventory("bpe", pieces, np.arange(len(pieces)), np.zeros(len(pieces)), "▁"))
    builder = LatticeBuilder(truth.inventory({"a": -1.0, "aa": -1.0, "b": -1.0}))
    lattice = builder.build("aab")
    for cut in ([1], [1, 1], [0, 0, 0, 2], [0, 1], [1, 0], []):
        with pytest.raises(InputError, match="do not spell 'aab'"):
            builder.path(lattice, np.array(cut, dtype=np.int64))


def test_a_long_text_has_edges_in_proportion() -> None:
    builder = LatticeBuilder(truth.inventory({"a": -1.0, "b": -1.0, "ab": -1.0}))
    lattice = builder.build("ab" * 500_000)  # work in proportion to its square would never end
    assert len(lattice.source) == 1_500_000
