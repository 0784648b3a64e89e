"""The table of perplexities."""

from __future__ import annotations

import pytest
from piece_models import AB_PIECES, ToyPieceModel, toy_inventory

from evaluation.tokenisation.builder import LatticeBuilder
from evaluation.tokenisation.documents import documents
from evaluation.tokenisation.estimate import Settings
from evaluation.tokenisation.evaluate import evaluate_documents
from evaluation.tokenisation.grid import perplexity_grid
from evaluation.tokenisation.perplexity import perplexities

INVENTORY = toy_inventory(AB_PIECES)
MODEL = ToyPieceModel(INVENTORY, order=None)


def test_every_cell_is_the_perplexity_of_its_estimator() -> None:
    read = documents(MODEL, ["ab ba ab", "aba b aba"], LatticeBuilder(INVENTORY))
    found = perplexity_grid(MODEL, read, Settings(seed=4), samples=(1, 5))
    places = [(cell.cuts, cell.method, cell.samples) for cell in found.cells]
    few = [("wr", 1), ("nbest", 1), ("wr", 5), ("wor", 5), ("wor1", 5), ("nbest", 5)]
    assert places == [(cuts, *cell) for cuts in ("consistent", "inconsistent") for cell in few]
    by_place = dict(zip(places, found.cells, strict=True))
    names = ["wr", "wor1", "consistent-wr", "consistent-nbest"]
    alone = perplexities(evaluate_documents(MODEL, read, names, Settings(samples=5, seed=4)))
    for name in names:
        cuts = "consistent" if name.startswith("consistent-") else "inconsistent"
        cell = by_place[cuts, name.removeprefix("consistent-"), 5]
        assert (cell.ppl, cell.improvement) == (alone[name]["ppl"], alone[name]["improvement"])
    assert found.one_best == alone["one-best"]["ppl"]
    # the best cut is consistent, and a sum over more cuts is larger
    assert by_place["consistent", "nbest", 1].ppl.value == pytest.approx(found.one_best.value)
    assert by_place["inconsistent", "nbest", 5].ppl.value < found.one_best.value
    records = found.records()
    assert records[0]["method"] == "one-best"
    assert len(records) == 1 + 2 * len(found.cells)
    assert {(r["cuts"], r["method"], r["samples"]) for r in records[1:]} == set(places)


def test_consistent_sums_are_over_fewer_cuts() -> None:
    read = documents(MODEL, ["ab ab"], LatticeBuilder(INVENTORY))
    found = perplexity_grid(MODEL, read, Settings(), samples=(100,))
    whole = {(cell.cuts, cell.method): cell.ppl.value for cell in found.cells}
    assert whole["inconsistent", "nbest"] < whole["consistent", "nbest"]
    assert whole["consistent", "wor"] == pytest.approx(whole["consistent", "nbest"], rel=1e-10)
    signed = {cell.cuts: cell.ppl.signature.split("|") for cell in found.cells if cell.method == "nbest"}
    assert {"sum:consistent-cuts", "bound:lower"} <= set(signed["consistent"])
    assert {"sum:all-cuts", "bound:exact"} <= set(signed["inconsistent"])
