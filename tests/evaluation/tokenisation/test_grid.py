"""The table of perplexities."""

from __future__ import annotations

import math
from typing import Any

import pytest
from piece_models import AB_PIECES, ToyPieceModel, toy_inventory

from truesource.evaluation.tokenisation import EstimatorSettings
from truesource.evaluation.tokenisation.documents import documents
from truesource.evaluation.tokenisation.lattice import LatticeBuilder
from truesource.evaluation.tokenisation.results import evaluate_documents
from truesource.evaluation.tokenisation.summaries import Grid, perplexities, perplexity_grid, pooled_grid

INVENTORY = toy_inventory(AB_PIECES)
MODEL = ToyPieceModel(INVENTORY, order=None)


def perplexities_of(grid: Grid) -> dict[tuple[str, str], dict[str, Any]]:
    """Records of the perplexities by consistency and method."""
    return {(record["cuts"], record["method"]): record for record in grid.records() if record["name"] == "ppl"}


@pytest.mark.parametrize("samples", [1, 5])
def test_every_cell_is_the_perplexity_of_its_estimator(samples: int) -> None:
    read = documents(MODEL, ["ab ba ab", "aba b aba"], LatticeBuilder(INVENTORY))
    settings = EstimatorSettings(seed=4, samples=samples)
    found = perplexity_grid(MODEL, read, settings)
    first, *records = found.records()
    few = ["wr", "nbest"] if samples == 1 else ["wr", "wor", "wor1", "nbest"]
    assert list(perplexities_of(found))[1:] == [(cuts, name) for cuts in ("consistent", "inconsistent") for name in few]
    assert (first["method"], first["cuts"], first["samples"], len(records)) == ("one-best", None, None, 4 * len(few))
    alone = perplexities(evaluate_documents(MODEL, read, [*few, *(f"consistent-{name}" for name in few)], settings))
    assert first["value"] == alone["one-best"]["ppl"].value
    for record in records:
        name = record["method"] if record["cuts"] == "inconsistent" else f"consistent-{record['method']}"
        assert record["samples"] == samples
        assert record.items() >= alone[name][record["name"]].as_record().items()
    if samples == 1:  # the best cut is consistent
        assert perplexities_of(found)["consistent", "nbest"]["value"] == pytest.approx(first["value"])
    else:  # a sum over more cuts is larger
        assert perplexities_of(found)["inconsistent", "nbest"]["value"] < first["value"]


def test_the_table_of_pooled_sets_is_that_of_all_their_documents() -> None:
    texts, builder, settings = (
        ["ab ba ab", "aba b aba", "b ba"],
        LatticeBuilder(INVENTORY),
        EstimatorSettings(samples=4),
    )
    sets = {
        name: perplexity_grid(MODEL, documents(MODEL, some, builder), settings)
        for name, some in (("one", texts[:2]), ("two", texts[2:]))
    }
    whole = perplexity_grid(MODEL, documents(MODEL, texts, builder), settings)
    pooled, together = perplexities_of(pooled_grid(sets)), perplexities_of(whole)
    assert {method for _, method in pooled} == {"one-best", "wr", "wor", "wor1", "nbest"}
    for place, mine in pooled.items():
        if place[1] in ("nbest", "one-best"):  # nothing is drawn
            assert mine["value"] == pytest.approx(together[place]["value"], rel=1e-12)
        nats = [math.log(perplexities_of(grid)[place]["value"]) * grid.evaluation.words.sum() for grid in sets.values()]
        assert mine["value"] == pytest.approx(math.exp(sum(nats) / whole.evaluation.words.sum()), rel=1e-12)
    other = perplexity_grid(MODEL, documents(MODEL, texts, builder), EstimatorSettings(samples=1))
    with pytest.raises(ValueError, match="same runs"):
        pooled_grid({**sets, "more": other})


def test_consistent_sums_are_over_fewer_cuts() -> None:
    read = documents(MODEL, ["ab ab"], LatticeBuilder(INVENTORY))
    found = perplexities_of(perplexity_grid(MODEL, read, EstimatorSettings(samples=100)))
    whole = {place: record["value"] for place, record in found.items()}
    assert whole["inconsistent", "nbest"] < whole["consistent", "nbest"]
    assert whole["consistent", "wor"] == pytest.approx(whole["consistent", "nbest"], rel=1e-10)
    signed = {cuts: record["signature"].split("|") for (cuts, method), record in found.items() if method == "nbest"}
    assert {"sum:consistent-cuts", "bound:lower"} <= set(signed["consistent"])
    assert {"sum:all-cuts", "bound:exact"} <= set(signed["inconsistent"])
