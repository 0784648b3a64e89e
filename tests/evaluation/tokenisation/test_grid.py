"""The table of perplexities."""

from __future__ import annotations

import math

import pytest
from piece_models import AB_PIECES, ToyPieceModel, toy_inventory

from truesource.evaluation.tokenisation import EstimatorSettings
from truesource.evaluation.tokenisation.documents import documents
from truesource.evaluation.tokenisation.lattice import LatticeBuilder
from truesource.evaluation.tokenisation.results import evaluate_documents
from truesource.evaluation.tokenisation.summaries import perplexities, perplexity_grid, pooled_grid

INVENTORY = toy_inventory(AB_PIECES)
MODEL = ToyPieceModel(INVENTORY, order=None)


def test_every_cell_is_the_perplexity_of_its_estimator() -> None:
    read = documents(MODEL, ["ab ba ab", "aba b aba"], LatticeBuilder(INVENTORY))
    found = perplexity_grid(MODEL, read, EstimatorSettings(seed=4), samples=(1, 5))
    places = [(cell.cuts, cell.method, cell.samples) for cell in found.cells]
    few = [("wr", 1), ("nbest", 1), ("wr", 5), ("wor", 5), ("wor1", 5), ("nbest", 5)]
    assert places == [(cuts, *cell) for cuts in ("consistent", "inconsistent") for cell in few]
    by_place = dict(zip(places, found.cells, strict=True))
    names = ["wr", "wor1", "consistent-wr", "consistent-nbest"]
    alone = perplexities(evaluate_documents(MODEL, read, names, EstimatorSettings(samples=5, seed=4)))
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


def test_the_table_of_pooled_sets_is_that_of_all_their_documents() -> None:
    texts, builder, settings = ["ab ba ab", "aba b aba", "b ba"], LatticeBuilder(INVENTORY), EstimatorSettings()
    sets = {
        name: perplexity_grid(MODEL, documents(MODEL, some, builder), settings, samples=(4,))
        for name, some in (("one", texts[:2]), ("two", texts[2:]))
    }
    pooled = pooled_grid(sets)
    whole = perplexity_grid(MODEL, documents(MODEL, texts, builder), settings, samples=(4,))
    assert pooled.one_best.value == pytest.approx(whole.one_best.value, rel=1e-12)
    for i, (mine, all_of_them) in enumerate(zip(pooled.cells, whole.cells, strict=True)):
        if mine.method == "nbest":  # nothing is drawn
            assert mine.ppl.value == pytest.approx(all_of_them.ppl.value, rel=1e-12)
        nats = [math.log(grid.cells[i].ppl.value) * grid.evaluation.words.sum() for grid in sets.values()]
        assert mine.ppl.value == pytest.approx(math.exp(sum(nats) / whole.evaluation.words.sum()), rel=1e-12)
    assert {row["method"] for row in pooled.records()} == {"one-best", "wr", "wor", "wor1", "nbest"}
    with pytest.raises(ValueError, match="same runs"):
        pooled_grid({**sets, "more": perplexity_grid(MODEL, documents(MODEL, texts, builder), settings, samples=(5,))})


def test_consistent_sums_are_over_fewer_cuts() -> None:
    read = documents(MODEL, ["ab ab"], LatticeBuilder(INVENTORY))
    found = perplexity_grid(MODEL, read, EstimatorSettings(), samples=(100,))
    whole = {(cell.cuts, cell.method): cell.ppl.value for cell in found.cells}
    assert whole["inconsistent", "nbest"] < whole["consistent", "nbest"]
    assert whole["consistent", "wor"] == pytest.approx(whole["consistent", "nbest"], rel=1e-10)
    signed = {cell.cuts: cell.ppl.signature.split("|") for cell in found.cells if cell.method == "nbest"}
    assert {"sum:consistent-cuts", "bound:lower"} <= set(signed["consistent"])
    assert {"sum:all-cuts", "bound:exact"} <= set(signed["inconsistent"])
