"""A sentence and a table on the same models: one family of tests, and never a contradiction."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import combinations
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from made_results import made_results, made_suite

from truesource.evaluation.comparing import ModelComparison, ModelScores, SeedScores, compare_models
from truesource.evaluation.measures.contrast import CHANCE, Contrast, PairFamily, SeedSums, difference
from truesource.evaluation.measures.monte_carlo import holm
from truesource.evaluation.measures.paired import Paired
from truesource.evaluation.show import words
from truesource.run.scores.section import nearer_test
from truesource.studies.benchmark.page import answer
from truesource.studies.benchmark.results import BenchmarkResults
from truesource.studies.benchmark.standings import difference_table, share_differences, standings
from truesource.studies.compare.page import _answer
from truesource.studies.compare.tables import comparison_table

SENTENCES, TOKENS = 100, 5
NONE = np.empty(0, np.int32)


def models(gaps: Sequence[float], seed: int, noise: float = 0.3) -> list[ModelScores]:
    """Models that differ from the truth by so many nats a token."""
    rng = np.random.default_rng(seed)
    sentence = np.repeat(np.arange(SENTENCES, dtype=np.int32), TOKENS)
    position = np.tile(np.arange(TOKENS, dtype=np.int32), SENTENCES)
    oracle = rng.normal(-3.0, 1.0, len(sentence))
    parts = {"objective": "causal", "data": "d", "grammar": "g", "sentences": SENTENCES, "tokens": len(sentence)}
    found = []
    for n, gap in enumerate(gaps):
        model = oracle - gap + rng.normal(0.0, noise, len(sentence))
        paired = Paired(
            model=model,
            oracle=oracle,
            sentence=sentence,
            position=position,
            impossible_model=NONE,
            impossible_oracle=NONE,
            n_sentences=SENTENCES,
        )
        found.append(ModelScores(name=f"m{n}", seeds=[SeedScores(label=f"m{n}", paired=paired, parts=parts)]))
    return found


def run_of(found: Sequence[ModelScores], comparison: ModelComparison | None) -> Any:
    """A finished run with these scores; without a comparison it has one seed a model."""
    tables = {
        model.name: {"sentence": p.sentence, "oracle": p.oracle, "model": p.model}
        for model in found
        for p in [model.seeds[0].paired]
    }
    records = [] if comparison is None else comparison.records()
    return SimpleNamespace(tokens_of=tables.get, comparison=records, models=rows(found), config={})


def rows(found: Sequence[ModelScores]) -> list[dict[str, Any]]:
    gaps = {model.name: float(np.mean(model.seeds[0].paired.oracle - model.seeds[0].paired.model)) for model in found}
    head = {"objective": "causal", "excluded": 0, "sentences": SENTENCES}
    return [{**head, "model": name, "relative_ppl": float(np.exp(gap))} for name, gap in gaps.items()]


@pytest.mark.long
@pytest.mark.parametrize("seed", range(30))
def test_page_report_and_table_say_the_same_of_simulated_models(seed: int) -> None:
    rng = np.random.default_rng([seed, 1])
    found = models([0.1, *(0.1 + rng.choice([0.0, 0.03, 0.04, 0.05, 0.5], size=rng.integers(1, 6)))], seed)
    nearest, next_one = sorted(rows(found), key=lambda row: row["relative_ppl"])[:2]
    comparison = compare_models(found, baseline=str(nearest["model"]))
    pair = comparison.pair(next_one["model"], nearest["model"])
    assert pair.p_adjusted is not None
    stays = pair.p_adjusted >= CHANCE
    table = comparison_table(comparison, ["difference", "p_adjusted"])
    (cell,) = [row.cells[2] for row in table.rows if row.cells[0] == next_one["model"]]
    assert cell is not None and not isinstance(cell, str) and cell.score is not None
    assert cell.score[0] == pair.p_adjusted
    for run in (run_of(found, comparison), run_of(found, None)):
        (said,) = words.answer(run.models, lambda best, other: nearer_test(run, best, other))  # noqa: B023
        for sentence in (said, _answer(comparison)):
            assert ("may be chance" in sentence) == stays and ("is significant" in sentence) == (not stays)
            assert f"(p {words.p_value(pair.p_adjusted)}; {words.holm_family(pair.tests)})" in sentence
    assert words.holm_family(pair.tests) in (table.note or "")


def test_a_difference_that_is_significant_in_the_table_is_so_in_the_box() -> None:
    """Three models of which the third is far: Bonferroni over the three pairs would call the first two alike."""
    found = models([0.1, 0.145, 0.9], 20)
    comparison = compare_models(found)
    pair = comparison.differences[0]
    assert pair.contrast.p is not None and pair.contrast.p < CHANCE < 3 * pair.contrast.p
    assert pair.p_adjusted == pytest.approx(pair.contrast.p) and pair.tests == 3
    run = run_of(found, comparison)
    (said,) = words.answer(run.models, lambda best, other: nearer_test(run, best, other))
    assert f"That it is better than m1 is significant (p {words.p_value(pair.p_adjusted)}; Holm: for 3 pairs" in said


def shares(gaps: Sequence[float], seed: int) -> BenchmarkResults:
    """Made results whose models of words are alike but for so much KL at each block of test strings."""
    results = made_results(made_suite())
    first = next(m for m in results["models"] if m["name"] == "gru")
    rng = np.random.default_rng(seed)
    made: list[Any] = []
    for n, gap in enumerate(gaps):
        cells = [
            {
                **cell,
                "test": {**cell["test"], "kl": [max(x * (gap + rng.normal(0, 0.3)), 0.0) for x in cell["test"]["kl"]]},
            }
            for cell in first["cells"]
        ]
        made.append({**first, "name": f"m{n}", "cells": cells})
    return {**results, "models": made}


@pytest.mark.long
@pytest.mark.parametrize("seed", range(6))
def test_the_leaderboard_says_what_its_table_says(seed: int) -> None:
    """Seven models, 21 pairs; the second has one that the first surely or hardly beats."""
    gap = [1.0, 1.02, 1.1, 1.2, 1.3, 1.5, 2.0][seed]
    results = shares([1.0, gap, 3.0, 4.0, 5.0, 6.0, 7.0], seed)
    found = standings(results, list(made_suite().languages))
    ranked = [row.name for row in found[0].rows]
    pairs = share_differences(results, found[0], ranked[0])
    assert {pair.tests for pair in pairs} == {21}
    said, p = answer(results, found)[0], pairs[0].p_adjusted
    assert p is not None
    assert ("may be chance" in said) == (p >= CHANCE) and ("is significant" in said) == (p < CHANCE)
    assert f"learned more than {ranked[1]}" in said and f"p {words.p_value(p)};" in said
    other = share_differences(results, found[0], ranked[1])  # another baseline, the same test
    assert next(pair.p_adjusted for pair in other if pair.model == ranked[0]) == pytest.approx(p)
    assert re.search(r"Holm: for 21 pairs of models", difference_table(other).note or "")


@pytest.mark.parametrize("seed", [1, 2])
def test_a_family_is_all_pairs_with_holms_p(seed: int) -> None:
    rng = np.random.default_rng(seed)
    names = ["a", "b", "c", "d"]
    sums = {name: SeedSums(rng.normal(0.1 * n, 1.0, (1, 60)), np.ones((1, 60))) for n, name in enumerate(names)}
    family = PairFamily.test(names, lambda x, y: difference(sums[x], sums[y]))
    by_hand = {pair: difference(sums[pair[1]], sums[pair[0]]) for pair in combinations(names, 2)}
    adjusted = dict(zip(by_hand, holm([each.p or 0.0 for each in by_hand.values()]), strict=True))
    for (x, y), contrast in by_hand.items():
        assert family.of(y, x).contrast == contrast and family.of(y, x).p_adjusted == adjusted[x, y]
        turned = family.of(x, y)
        assert turned.contrast.value == -contrast.value and turned.contrast.high == -(contrast.low or 0.0)
        assert (turned.contrast.p, turned.p_adjusted, turned.tests) == (contrast.p, adjusted[x, y], 6)


def test_pairs_without_p_are_no_tests() -> None:
    p = {("b", "a"): 0.01, ("c", "a"): None, ("c", "b"): 0.04}
    family = PairFamily.test(["a", "b", "c"], lambda x, y: Contrast(1.0, p=p[x, y]))
    assert {pair: found.p_adjusted for pair, found in family.pairs.items()} == {
        ("b", "a"): 0.02,
        ("c", "a"): None,
        ("c", "b"): 0.04,
    }
    assert words.chance(None, 2, 1.0) == "may be chance (too few sentences for a p-value)"


@pytest.mark.long
def test_no_pair_of_alike_models_is_called_significant_too_often() -> None:
    """The first two of five models that are alike, selected after looking."""
    n = 200
    wrong = 0
    for seed in range(n):
        rng = np.random.default_rng([seed, 7])
        sums = {str(k): SeedSums(rng.normal(0.0, 1.0, (1, 40)), np.ones((1, 40))) for k in range(5)}
        low, *_, high = sorted(sums, key=lambda k: float(sums[k].values[0]))
        family = PairFamily.test(list(sums), lambda x, y: difference(sums[x], sums[y]))  # noqa: B023
        wrong += (family.of(high, low).p_adjusted or 0.0) < CHANCE
    assert wrong <= 0.05 * n + 2.33 * (0.05 * 0.95 * n) ** 0.5
    assert wrong > 0


def test_a_p_value_is_never_rounded_to_the_level() -> None:
    assert [words.p_value(p) for p in (0.0497, 0.0503, 0.05, 0.049999, 0.0351, 0.0001)] == [
        "0.0497",
        "0.0503",
        "0.050",
        "0.049999",
        "0.035",
        "<0.001",
    ]
