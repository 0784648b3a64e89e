"""Texts made ready for sums over their cuts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from piece_models import AB_PIECES, ToyPieceModel, toy_inventory

from truesource.evaluation.tokenisation.documents import Unreadable, documents, fitting
from truesource.evaluation.tokenisation.lattice import LatticeBuilder
from truesource.grammar.support.errors import InputError

INVENTORY = toy_inventory(AB_PIECES)
BUILDER = LatticeBuilder(INVENTORY)
MODEL = ToyPieceModel(INVENTORY)


def test_texts_that_cannot_be_read_are_set_aside_and_counted() -> None:
    found = documents(MODEL, ["ab ba", "a cab, b", "  aba\t ab ", "é"], BUILDER)
    assert len(found) == 2
    assert found.numbers == (0, 2)
    assert found.unreadable == (Unreadable(1, (",", "c")), Unreadable(3, ("é",)))
    assert [document.text.spelling for document in found.documents] == ["▁ab▁ba", "▁aba▁ab"]
    assert found.documents[1].text.original == "  aba\t ab "


def test_the_best_cut_is_the_tokenisers_own() -> None:
    document = documents(MODEL, ["aba abab ab"], BUILDER).documents[0]
    assert document.lattice.piece[document.best].tolist() == document.text.canonical.tolist()
    pieces = [INVENTORY.pieces[piece] for piece in document.text.canonical]
    assert "".join(pieces) == document.text.spelling
    reversed_scores = LatticeBuilder(INVENTORY, -BUILDER.scores)  # what Q prefers is another matter
    other = documents(MODEL, ["aba abab ab"], reversed_scores).documents[0]
    assert np.array_equal(other.best, document.best)


def test_an_empty_text_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "texts.txt"
    with pytest.raises(InputError, match=r"^text 2: the text is empty$"):
        documents(MODEL, ["ab", " \t"], BUILDER)
    with pytest.raises(InputError, match=r"^the text is empty \(.*texts.txt:2\)$") as caught:
        documents(MODEL, ["ab", ""], BUILDER, path)
    assert (caught.value.path, caught.value.line) == (path, 2)


def test_there_must_be_something_to_read() -> None:
    with pytest.raises(InputError, match="there are no texts"):
        documents(MODEL, [], BUILDER)
    with pytest.raises(InputError, match="none of the 2 texts can be segmented into pieces: no piece spells 'c', 'd'"):
        documents(MODEL, ["abc", "da"], BUILDER)


def test_pieces_with_one_number_are_refused() -> None:
    """They would make one row of tokens of two cuts, which a sum must not count twice."""
    ids = INVENTORY.ids.copy()
    ids[[5, 9]] = 77
    model = ToyPieceModel(replace(INVENTORY, ids=ids))
    with pytest.raises(InputError, match="the pieces 'ab' and '▁aba' have the same number 77"):
        documents(model, ["ab"], LatticeBuilder(model.pieces.inventory))


def test_a_lattice_of_other_pieces_is_an_error() -> None:
    other = toy_inventory({**AB_PIECES, "c": -4.0})
    with pytest.raises(ValueError, match="pieces of the model's tokeniser"):
        documents(MODEL, ["ab"], LatticeBuilder(other))


def test_texts_that_do_not_fit_are_set_aside() -> None:
    found = documents(MODEL, ["abab", "x", "ab", "ababab", "a"], BUILDER)
    assert [len(document.best) for document in found.documents] == [2, 1, 3, 1]
    narrow = ToyPieceModel(INVENTORY, longest=3)  # one of them for the token before the text
    fit = fitting(narrow, found)
    assert (fit.numbers, fit.too_long, fit.unreadable) == ((0, 2, 4), (3,), found.unreadable)
    assert [document.text.original for document in fit.documents] == ["abab", "ab", "a"]
    assert fitting(MODEL, found) == found
    assert fitting(ToyPieceModel(INVENTORY, longest=2), fit).too_long == (0, 3)
    with pytest.raises(InputError, match="the window of toy, 1 tokens, is too short for all of the texts"):
        fitting(ToyPieceModel(INVENTORY, longest=1), found)
