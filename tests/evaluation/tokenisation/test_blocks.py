"""Blocks of a text, their best cuts, and draws from the others."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from guided_estimates import AB, document_of
from hypothesis import given, settings
from hypothesis import strategies as st
from piece_models import MARKER, ToyPieceModel, cuts_of, toy_inventory
from scipy.stats import chisquare

from truesource.evaluation.tokenisation import EstimatorSettings
from truesource.evaluation.tokenisation.documents import Document, documents
from truesource.evaluation.tokenisation.estimators.blocks import LONGEST_BLOCK, Blocks, Tail, block_ends, word_ends
from truesource.evaluation.tokenisation.lattice import Lattice, LatticeBuilder, count_paths
from truesource.evaluation.tokenisation.paths import n_best
from truesource.generator.piece_model import PieceInventory, PieceText

#: pieces that reach from one word into the next, and over any place within a word
ACROSS = toy_inventory({"_": -3.0, "a": -1.0, "b": -1.5, "_a": -1.2, "a_": -2.0, "ab": -1.7, "b_a": -2.5, "bab": -2.2})


def lattice_of(inventory: PieceInventory, spelling: str) -> Lattice:
    return LatticeBuilder(inventory).build(spelling.replace("_", MARKER))


def blocks_of(inventory: PieceInventory, spelling: str, candidates: int, *, tail: bool = False) -> Blocks:
    lattice = lattice_of(inventory, spelling)
    text = PieceText("", lattice.spelling, np.empty(0, dtype=np.int64), False, ())
    return Blocks(
        Document(text, lattice, text.canonical), inventory, EstimatorSettings(candidates=candidates), tail=tail
    )


# -- blocks -----------------------------------------------------------------------------------------


def test_blocks_are_words() -> None:
    assert block_ends(lattice_of(AB, "_ab_a_bab"), MARKER, marker_ends=False) == [3, 5, 9]
    assert word_ends("__ab__a", "_", marker_ends=False) == [4, 7]
    assert word_ends("ab_a__b_", "_", marker_ends=True) == [3, 6, 8]


def test_long_words_are_divided_where_the_fewest_pieces_are_cut_through() -> None:
    inventory = toy_inventory({"_": -1.0, "a": -1.0, "b": -1.0, "aa": -1.5, "ab": -1.5})
    spelling = "_" + "a" * 18 + "b" + "a" * 20
    low, high = block_ends(lattice_of(inventory, spelling), MARKER, marker_ends=False)
    assert (low, high) == (20, 40)  # no piece begins with b
    assert LONGEST_BLOCK == 20


def every_cut(blocks: Blocks) -> Counter[tuple[int, ...]]:
    """All cuts that candidates of one block after another make, by the model's numbers, and how often each is made."""
    found = Counter({((), 0): 1})
    for end in blocks.ends:
        after: Counter[tuple[tuple[int, ...], int]] = Counter()
        for (cut, entry), count in found.items():
            listed = blocks.candidates(entry, end)
            assert listed.whole
            for tokens, size in zip(listed.tokens, listed.sizes.tolist(), strict=True):
                after[(*cut, *tokens.tolist()), entry + size] += count
        found = after
    assert {position for _, position in found} == {blocks.lattice.n}
    return Counter({cut: count for (cut, _), count in found.items()})


@settings(max_examples=40, deadline=None)
@given(st.lists(st.text("ab", min_size=1, max_size=4), min_size=1, max_size=3))
def test_cuts_of_a_text_are_cuts_of_its_blocks_in_one_way(words: list[str]) -> None:
    spelling = "_".join(["", *words])
    expected = [tuple(ACROSS.ids[list(cut)].tolist()) for cut in cuts_of(ACROSS, spelling.replace("_", MARKER))]
    assert every_cut(blocks_of(ACROSS, spelling, 10**6)) == Counter(expected)


def test_a_piece_may_cover_several_blocks() -> None:
    inventory = toy_inventory({"_": -1.0, "a": -1.0, "a_a_a": -2.0})
    spelling = "_a_a_a"
    expected = [tuple(inventory.ids[list(cut)].tolist()) for cut in cuts_of(inventory, spelling.replace("_", MARKER))]
    assert len(expected) == 2
    assert every_cut(blocks_of(inventory, spelling, 100)) == Counter(expected)


def test_a_long_text_without_spaces_has_all_its_cuts() -> None:
    inventory = toy_inventory({"_": -1.0, "a": -1.0, "b": -1.0, "aaba": -1.5})
    spelling = "_" + "baaba" * 9
    lattice = lattice_of(inventory, spelling)
    assert len(block_ends(lattice, MARKER, marker_ends=False)) == 3
    assert sum(every_cut(blocks_of(inventory, spelling, 10**5)).values()) == count_paths(lattice) == 2**9


# -- tails ------------------------------------------------------------------------------------------


def unlisted(lattice: Lattice, listed: int, b: float) -> dict[tuple[int, ...], float]:
    """Log probability of each cut below the best ones, among these, in proportion to exp(b * score)."""
    paths = n_best(lattice, count_paths(lattice)).each()[listed:]
    scores = {tuple(lattice.piece[path].tolist()): b * float(lattice.score[path].sum()) for path in paths}
    top = max(scores.values())
    total = top + math.log(math.fsum(math.exp(score - top) for score in scores.values()))
    return {cut: score - total for cut, score in scores.items()}


def tail_of(lattice: Lattice, listed: int, b: float) -> Tail:
    best = n_best(lattice, listed).each()
    return Tail(lattice, best, b, lattice.piece.astype(np.int64), np.zeros(len(lattice.piece), dtype=np.int64))


@pytest.mark.long
@pytest.mark.parametrize(("listed", "b"), [(1, 1.0), (8, 1.0), (8, 0.0), (79, 1.0), (20, 2.5)])
def test_tails_draw_unlisted_cuts_in_proportion_to_q(listed: int, b: float) -> None:
    lattice = lattice_of(AB, "_abababa")
    expected = unlisted(lattice, listed, b)
    tail, rng, n = tail_of(lattice, listed, b), np.random.default_rng(0), 3000
    found: Counter[tuple[int, ...]] = Counter()
    for _ in range(n):
        drawn = tail.draw(rng)
        assert drawn.log_q == pytest.approx(expected[tuple(drawn.tokens.tolist())], abs=1e-9)
        found[tuple(drawn.tokens.tolist())] += 1
    if len(expected) > 1:
        frequent = [cut for cut, log_q in expected.items() if n * math.exp(log_q) >= 5.0]
        counts = [found[cut] for cut in frequent]
        shares = [math.exp(expected[cut]) for cut in frequent]
        if len(frequent) < len(expected):
            counts, shares = [*counts, n - sum(counts)], [*shares, 1.0 - sum(shares)]
        assert chisquare(counts, n * np.array(shares) / sum(shares)).pvalue > 1e-3


def test_where_the_best_cuts_have_all_mass_tails_are_drawn_at_a_smaller_b() -> None:
    """At b = 60 the others have 1e-16 of Q; a half of it, as often as needed, is the proposal."""
    lattice = lattice_of(AB, "_abababa")
    tail, rng = tail_of(lattice, 8, 60.0), np.random.default_rng(0)
    drawn = [tail.draw(rng) for _ in range(200)]
    fitting = [
        b
        for b in (60.0 / 2**k for k in range(1, 8))
        if all(x.log_q == pytest.approx(unlisted(lattice, 8, b)[tuple(x.tokens.tolist())], abs=1e-6) for x in drawn)
    ]
    assert len(fitting) == 1


def test_stretches_are_looked_up_once_for_each_different_one() -> None:
    blocks = blocks_of(AB, "_abab_ab_abab", 4, tail=True)
    assert blocks.candidates(0, 5) is blocks.candidates(8, 13)
    assert blocks.candidates(0, 5) is not blocks.candidates(5, 8)
    assert blocks.candidates(5, 8).whole
    assert blocks.candidates(5, 8).tail is None
    assert not blocks.candidates(0, 5).whole


def test_candidates_are_the_best_cuts() -> None:
    model = ToyPieceModel(AB)
    document = document_of(model, "abab")
    listed = Blocks(document, AB, EstimatorSettings(candidates=5), tail=False).candidates(0, 5)
    assert AB.scores is not None
    by_score = sorted(cuts_of(AB, document.lattice.spelling), key=lambda cut: -AB.scores[list(cut)].sum())
    assert [tuple(cut.tolist()) for cut in listed.tokens] == [tuple(AB.ids[list(cut)].tolist()) for cut in by_score[:5]]


@pytest.mark.parametrize("candidates", [1, 3])
def test_the_tokenisers_own_cut_is_always_a_candidate(candidates: int) -> None:
    """Scores that are not the tokeniser's rank its own cut of a word last of all, or nearly."""
    model = ToyPieceModel(AB)
    assert AB.scores is not None
    builder = LatticeBuilder(AB, -AB.scores)
    document = documents(model, ["abababa abab"], builder).documents[0]
    blocks = Blocks(document, AB, EstimatorSettings(candidates=candidates), tail=True)
    lists = [blocks.candidates(0, 8), blocks.candidates(8, 13)]
    assert [len(listed.tokens) for listed in lists] == [candidates, candidates]
    for word, listed in zip(["abababa", "abab"], lists, strict=True):
        own = AB.ids[model.pieces.read(word).canonical].tolist()
        assert listed.tokens[-1].tolist() == own
        best = n_best(builder.build(MARKER + word), candidates).each()[: candidates - 1]
        lattice = builder.build(MARKER + word)
        assert [cut.tolist() for cut in listed.tokens[:-1]] == [AB.ids[lattice.piece[path]].tolist() for path in best]
        assert listed.tail is not None
        drawn = {tuple(listed.tail.draw(np.random.default_rng(seed)).tokens.tolist()) for seed in range(200)}
        assert not drawn & {tuple(cut.tolist()) for cut in listed.tokens}
