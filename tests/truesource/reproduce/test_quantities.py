"""Quantities read from records: which record matches, seeds, missing seeds, and what is said where none matches."""

from __future__ import annotations

import re
from typing import Any

import pytest
from scipy.stats import spearmanr

from truesource.grammar.support.errors import InputError
from truesource.studies.reproduce.quantities import PAIRS, RECORD, SEEDS, QuantityValue, correlated, measured, minus
from truesource.studies.reproduce.rows import Quantity
from truesource.studies.reproduce.run_records import RunRecord, numbers_in


def found(seed: int | None = None, **fields: Any) -> RunRecord:
    return RunRecord({"evaluator": "pplu", "of": "net", "model": "net", "name": "ppl", **fields}, seed)


def read(records: list[RunRecord], **quantity: Any) -> QuantityValue:
    return measured({"q": Quantity(**quantity)}, {"run": records}, {})["q"]


def test_a_record_has_its_own_interval() -> None:
    got = read([found(value=2.0, low=1.0, high=4.0, signature="s|v:1")], record="ppl", model="net")
    assert got == QuantityValue(2.0, 1.0, 4.0, over=RECORD, signature="s|v:1")
    assert read([found(value=2.0)], record="ppl").over is None


def test_seeds_give_a_mean_and_an_interval_over_them() -> None:
    records = [found(seed, value=float(seed), low=0.0, high=9.0) for seed in (1, 2, 3)]
    got = read(records, record="ppl", model="net")
    assert (got.value, got.by_seed, got.over, got.missing) == (2.0, {1: 1.0, 2: 2.0, 3: 3.0}, SEEDS, ())


def test_a_record_of_a_study_is_not_the_score_of_the_same_name() -> None:
    """Scores have an interval over sentences and seeds, which is of the run's own models."""
    records = [RunRecord({"of": "net", "name": "kl", "first": "none", "value": float(seed)}, seed) for seed in (1, 2)]
    compared = {("run", "net", "kl"): {"value": 9.0, "low": 8.0, "high": 10.0, "signature": "s"}}
    got = measured({"q": Quantity(record="kl", first="none")}, {"run": records}, compared)["q"]
    assert (got.value, got.over) == (1.5, SEEDS)


def test_seeds_without_a_value_are_named() -> None:
    records = [found(1, value=1.0), found(2, value=2.0), found(3, value=None), found(4, value=9.0, name="other")]
    got = read(records, record="ppl", model="net")
    assert (got.value, got.by_seed, got.missing) == (1.5, {1: 1.0, 2: 2.0}, (3, 4))
    assert read([found(1, value=None), found(2, value=None)], record="ppl") == QuantityValue(None, missing=(1, 2))


@pytest.mark.parametrize("value", [None, float("nan"), float("inf"), "many", True])
def test_what_is_no_number_is_no_value(value: Any) -> None:
    assert read([found(value=value)], record="ppl").value is None


def test_every_further_key_must_match() -> None:
    records = [found(value=1.0, by="class", group="nouns", step=4), found(value=2.0, by="class", group="verbs", step=4)]
    assert read(records, record="ppl", group="verbs").value == 2.0
    assert read(records, record="ppl", group="nouns", step=4, by="class").value == 1.0
    with pytest.raises(InputError, match=r"q: 2 records match, which differ in group \(nouns, verbs\)"):
        read(records, record="ppl")


def test_the_whole_comes_before_its_parts() -> None:
    records = [found(value=1.0, set="eval", group="nouns"), found(value=2.0, set="eval"), found(value=3.0, set="dev")]
    assert read(records, record="ppl", set="eval").value == 2.0


def test_null_is_a_field_that_is_not_there() -> None:
    records = [found(value=1.0, step=5, layer=1), found(value=2.0, layer=1)]
    assert read(records, record="ppl", step=None).value == 2.0
    assert read([found(value=1.0, step=5), found(value=2.0, step=None)], record="ppl", step=None).value == 2.0


def test_the_last_step() -> None:
    records = [found(seed, value=float(step + seed), step=step) for step in (0, 8, 100) for seed in (1, 2)]
    assert read(records, record="ppl", step="last").by_seed == {1: 101.0, 2: 102.0}
    assert read([found(value=1.0, step="last"), found(value=2.0, step=3)], record="ppl", step="last").value == 1.0


def test_another_field_may_hold_the_number_and_has_no_interval() -> None:
    got = read([found(value=2.0, low=1.0, high=4.0, rank=7)], record="ppl", value="rank")
    assert (got.value, got.interval) == (7.0, None)


def test_one_is_not_true() -> None:
    records = [found(value=1.0, samples=1), found(value=2.0, samples=True)]
    assert read(records, record="ppl", samples=1).value == 1.0
    assert read(records, record="ppl", samples=True).value == 2.0


@pytest.mark.parametrize(
    ("quantity", "says"),
    [
        ({"record": "kl"}, "no record has name kl; there are ppl"),
        ({"record": "ppl", "model": "nte"}, "no record has model nte; there are net, other"),
        ({"record": "ppl", "group": "verbs"}, "no record has group verbs; there are None, nouns"),
    ],
)
def test_where_nothing_matches_the_first_such_field_is_named(quantity: dict[str, Any], says: str) -> None:
    records = [found(value=1.0), found(value=1.0, model="other", group="nouns")]
    with pytest.raises(InputError, match=re.escape(f"quantity q: {says}")):
        read(records, **quantity)


def test_of_several_runs_a_quantity_names_its_own() -> None:
    records = {"small": [found(value=1.0)], "large": [found(value=2.0)]}
    asked = {"a": Quantity(record="ppl", run="small"), "b": Quantity(record="ppl", run="large")}
    got = measured({**asked, "c": Quantity(minus=("b", "a")), "d": Quantity(over=["b", "a"])}, records, {})
    assert [each.value for each in got.values()] == [1.0, 2.0, 1.0, 2.0]
    with pytest.raises(InputError, match="quantity a: give run, one of small, large"):
        measured({"a": Quantity(record="ppl")}, records, {})


def test_run_and_over_are_fields_where_there_is_one_run() -> None:
    records = [found(value=1.0, run="dpf"), found(value=2.0, run="one-best"), found(value=3.0, over="flops")]
    assert read(records, record="ppl", run="one-best").value == 2.0
    assert read(records, record="ppl", over="flops").value == 3.0


def test_scores_of_several_seeds_have_the_interval_of_the_comparison() -> None:
    records = [found(seed, value=2.0, evaluator="scores", name="kl") for seed in (1, 2)]
    known = {("run", "net", "kl"): {"value": 2.1, "low": 1.0, "high": 3.0, "signature": "both"}}
    got = measured({"q": Quantity(record="kl")}, {"run": records}, known)["q"]
    assert got == QuantityValue(2.1, 1.0, 3.0, {1: 2.0, 2: 2.0}, f"sentences and {SEEDS}", "both")


def test_numbers_are_found_however_deep() -> None:
    content = {"targets": {"tag": [{"name": "a", "value": 1}], "more": {"name": "b", "value": None}}, "name": "c"}
    assert [each["name"] for each in numbers_in(content)] == ["a", "b"]


def test_a_number_without_a_network_has_the_interval_of_its_record() -> None:
    bounds = [found(seed, value=60.0, low=55.0, high=66.0, name="bound") for seed in (1, 2, 3)]
    got = read(bounds, record="bound")
    assert (got.value, got.interval, got.over) == (60.0, (55.0, 66.0), RECORD)
    masked = [found(seed, value=30.0, low=28.0, high=33.0, name="masked") for seed in (1, 2, 3)]
    difference = minus(got, read(masked, record="masked"))
    assert (difference.value, difference.interval) == (30.0, (22.0, 38.0))  # not that of seeds, which would be [30, 30]
    assert minus(got, read(bounds, record="bound")).interval == (0.0, 0.0)  # one number is itself


def test_a_rank_correlation_is_over_seeds_or_over_pairs() -> None:
    fixed = [QuantityValue(float(value)) for value in range(12)]
    order = [1.0, 0.0, 2.0, 5.0, 3.0, 4.0, 6.0, 9.0, 8.0, 7.0, 11.0, 10.0]
    single = [QuantityValue(value) for value in order]
    got = correlated(single, fixed)
    assert got.value == pytest.approx(spearmanr(order, range(12)).statistic, abs=1e-12)
    assert got.over == PAIRS and got.low is not None and got.low < got.value < (got.high or 0.0)
    seeds = [QuantityValue(1.0, by_seed={1: value, 2: float(i)}) for i, value in enumerate(order)]
    over_seeds = correlated(seeds, fixed)
    assert over_seeds.over == SEEDS and over_seeds.by_seed == {1: got.value, 2: 1.0}
    assert correlated(single[:4], fixed[:4]).interval is None  # too few pairs
    assert correlated([QuantityValue(None), *single[1:]], fixed).value is None


def test_a_rank_names_quantities_above_it_as_many_on_both_sides() -> None:
    names = ["a", "b", "c", "d"]
    quantities = {name: Quantity(record="ppl", set=name) for name in names}
    records = [found(value=float(i), set=name) for i, name in enumerate(names)]
    got = measured({**quantities, "rho": Quantity(rank={"of": names, "with": names[::-1]})}, {"run": records}, {})
    assert got["rho"].value == pytest.approx(-1.0)
    with pytest.raises(ValueError, match="of has 4 quantities, with has 5; name as many"):
        Quantity(rank={"of": names, "with": [*names, "e"]})
