"""How reliable a ranking is and what separates models, where the answer is known."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from program import program
from scipy import stats

from truesource.studies.benchmark.results import BenchmarkCell, BenchmarkModel, BenchmarkResults, TruthContexts

study = program("reliability")
reliability, reliability_table = study.reliability, study.reliability_table
separation, separation_table = study.separation, study.separation_table
seed_splits, shares = study.seed_splits, study.shares
ALL_LANGUAGES, MOST_SPLITS = study.ALL_LANGUAGES, study.MOST_SPLITS

BLOCKS = 40
INFORMATION = np.linspace(40.0, 60.0, BLOCKS)
Share = Callable[[int, str, int], Any]  #: (model, language, seed) -> the share, a number or (BLOCKS,)


def make_results(
    share: Share, *, models: int, languages: tuple[str, ...] = ("one", "two"), seeds: tuple[int, ...] = (1, 2, 3)
) -> BenchmarkResults:
    truth: TruthContexts = {
        "contexts": [100] * BLOCKS,
        "information": INFORMATION.tolist(),
        "entropy": 1.0,
        "impossible": 0.0,
    }
    return {
        "format": "truesource-benchmark",
        "version": 1,
        "suite": {"name": "made", "version": 1, "digest": "0" * 12},
        "truesource": "0",
        "languages": {
            name: {
                "language": name,
                "words": 4,
                "train_sentences": 10,
                "train_tokens": 100,
                "truth": {"causal": {"test": truth, "longer": None}},
            }
            for name in languages
        },
        "models": [
            make_model(
                f"m{i:02d}", [make_cell(name, seed, share(i, name, seed)) for name in languages for seed in seeds]
            )
            for i in range(models)
        ],
        "provenance": {},
    }


def make_model(name: str, cells: list[BenchmarkCell]) -> BenchmarkModel:
    return {
        "name": name,
        "objective": "causal",
        "architecture": "made",
        "settings": {},
        "parameters": {},
        "cells": cells,
    }


def make_cell(language: str, seed: int, share: Any) -> BenchmarkCell:
    return {
        "language": language,
        "seed": seed,
        "test": {"kl": (INFORMATION * (1.0 - np.broadcast_to(share, BLOCKS))).tolist(), "wrong": 0.0},
        "longer": None,
        "longer_refused": None,
        "calibration": 0.0,
        "curve": [],
        "steps": 10,
        "tokens": 100,
        "flops": None,
    }


def noise(seed: int, *shape: int) -> Any:
    return np.random.default_rng(seed).normal(scale=0.05, size=shape)


def test_a_ranking_without_noise_is_perfectly_reliable() -> None:
    found = reliability(make_results(lambda m, _, __: 0.1 * m, models=8), ["one", "two"], "causal")
    for agreements in (found.headline, *found.languages.values()):
        assert {by: each.splits for by, each in agreements.items()} == {"strings": 1, "seeds": 3, "both": 6}
        for each in agreements.values():
            assert len(each.models) == 8
            values = (each.spearman, each.spearman_least, each.kendall, each.kendall_least, each.pearson)
            assert values == pytest.approx((1.0,) * 5)
        assert agreements["strings"].spearman_brown == pytest.approx(1.0)
        assert agreements["seeds"].spearman_brown is None
        assert agreements["both"].spearman_brown is None


@pytest.mark.long
def test_noise_of_training_agrees_by_strings_and_not_by_seeds() -> None:
    drawn = noise(1, 200, 3)
    found = reliability(make_results(lambda m, _, seed: 0.5 + drawn[m, seed - 1], models=200), ["one"], "causal")
    assert found.headline["strings"].spearman == pytest.approx(1.0)
    for by in ("seeds", "both"):
        assert found.headline[by].spearman == pytest.approx(0.0, abs=0.2)
        assert found.headline[by].kendall == pytest.approx(0.0, abs=0.2)


@pytest.mark.long
def test_noise_of_strings_agrees_by_seeds_and_not_by_strings() -> None:
    drawn = noise(2, 200, BLOCKS)
    found = reliability(make_results(lambda m, _, __: 0.5 + drawn[m], models=200), ["one"], "causal")
    assert found.headline["seeds"].spearman == pytest.approx(1.0)
    for by in ("strings", "both"):
        assert found.headline[by].spearman == pytest.approx(0.0, abs=0.2)


def test_correlations_are_those_of_scipy_between_means_by_hand() -> None:
    drawn = noise(3, 9, 2, 3, BLOCKS) + 0.02 * np.arange(9)[:, None, None, None]
    results = make_results(lambda m, name, seed: drawn[m, int(name == "two"), seed - 1], models=9)
    found = reliability(results, ["one", "two"], "causal")

    def headline(blocks: slice, seeds: list[int]) -> Any:
        weights = INFORMATION[blocks]
        ratio = (drawn[..., blocks] * weights).sum(axis=-1) / weights.sum()
        return ratio[:, :, seeds].mean(axis=(1, 2))

    even, odd, whole = slice(0, None, 2), slice(1, None, 2), slice(None)
    strings = [(headline(even, [0, 1, 2]), headline(odd, [0, 1, 2]))]
    parted = [([0], [1, 2]), ([1], [0, 2]), ([2], [0, 1])]
    seeds = [(headline(whole, a), headline(whole, b)) for a, b in parted]
    both = [(headline(even, a), headline(odd, b)) for x, y in parted for a, b in ((x, y), (y, x))]
    for by, ways in (("strings", strings), ("seeds", seeds), ("both", both)):
        each = found.headline[by]
        rho = [stats.spearmanr(*way).statistic for way in ways]
        tau = [stats.kendalltau(*way).statistic for way in ways]
        assert each.spearman == pytest.approx(np.mean(rho))
        assert each.spearman_least == pytest.approx(min(rho))
        assert each.kendall == pytest.approx(np.mean(tau))
        assert each.kendall_least == pytest.approx(min(tau))
        assert each.pearson == pytest.approx(np.mean([stats.pearsonr(*way).statistic for way in ways]))
    r = stats.pearsonr(*strings[0]).statistic
    assert found.headline["strings"].spearman_brown == pytest.approx(2 * r / (1 + r))
    assert found.headline["both"].spearman < 1.0


@pytest.mark.long
def test_spearman_brown_foretells_twice_as_many_strings() -> None:
    true, drawn = noise(4, 3000), noise(5, 3000, BLOCKS)
    strong = 6.0  # so many blocks' noise is as large as the differences between models
    results = make_results(
        lambda m, _, __: 0.5 + true[m] + strong * drawn[m], models=3000, languages=("one",), seeds=(1,)
    )
    models = results["models"]
    found = reliability(results, ["one"], "causal").headline["strings"]
    other = 0.5 + true + strong * (noise(6, 3000, BLOCKS) * INFORMATION).sum(axis=1) / INFORMATION.sum()
    whole = shares(results, models, ["one"], (slice(None), None))
    assert found.pearson == pytest.approx(0.36, abs=0.06)
    assert found.spearman_brown == pytest.approx(np.corrcoef(whole, other)[0, 1], abs=0.06)


def test_models_that_lack_seeds_or_languages_are_left_out_of_what_needs_them() -> None:
    results = make_results(lambda m, _, __: 0.1 * m, models=7)
    models = results["models"]
    models[0]["cells"] = [cell for cell in models[0]["cells"] if cell["seed"] == 1]
    models[1]["cells"] = [cell for cell in models[1]["cells"] if cell["language"] == "one"]
    found = reliability(results, ["one", "two"], "causal")
    assert found.headline["strings"].models == ["m00", "m02", "m03", "m04", "m05", "m06"]
    assert found.headline["seeds"].models == ["m02", "m03", "m04", "m05", "m06"]
    assert found.languages["one"]["seeds"].models == ["m01", "m02", "m03", "m04", "m05", "m06"]
    assert list(found.headline["seeds"].seeds) == [1, 2, 3]
    assert "5 models" in reliability_table(found).note


@pytest.mark.parametrize("models", [0, 1, 2])
def test_too_few_models_have_no_correlation(models: int) -> None:
    found = reliability(make_results(lambda m, _, __: 0.1 * m, models=models), ["one", "two"], "causal")
    assert all(each.spearman is None and each.kendall is None for each in found.headline.values())
    assert reliability_table(found).rows[0].cells[2] is None


def test_equal_models_and_single_seeds_have_no_correlation() -> None:
    equal = reliability(make_results(lambda *_: 0.5, models=5), ["one"], "causal")
    assert all(each.spearman is None and each.pearson is None for each in equal.headline.values())
    single = reliability(make_results(lambda m, *_: 0.1 * m, models=5, seeds=(1,)), ["one"], "causal")
    assert single.headline["strings"].spearman == pytest.approx(1.0)
    assert single.headline["seeds"].spearman is None and single.headline["both"].splits == 0


def test_splits_of_seeds_are_all_of_them_each_once() -> None:
    assert seed_splits([3, 1]) == [(frozenset([1]), frozenset([3]))]
    assert len(seed_splits(range(3))) == 3 and len(set(seed_splits(range(6)))) == 2**5 - 1
    for first, second in (*seed_splits(range(5)), *seed_splits(range(40))):
        assert first and second and not first & second
    many = seed_splits(range(40))
    assert len(many) > 0.9 * MOST_SPLITS and len(set(many)) == len(many) and many == seed_splits(range(40))
    assert {first | second for first, second in many} == {frozenset(range(40))}


def test_a_language_that_separates_nothing_is_found() -> None:
    drawn = noise(7, 6, 3)
    spread = np.array([-0.01, 0.0, 0.01])

    def share(model: int, language: str, seed: int) -> float:
        return 0.5 + drawn[model, seed - 1] if language == "noise" else 0.1 * model + spread[seed - 1]

    languages = ["clear", "noise"]
    headline, clear, dull = separation(make_results(share, models=6, languages=("clear", "noise")), languages, "causal")
    assert (headline.language, clear.language, dull.language) == (None, "clear", "noise")
    assert clear.separated == clear.tested == len(clear.pairs) == 15
    assert clear.models == ["m05", "m04", "m03", "m02", "m01", "m00"]
    assert clear.largest_gap == pytest.approx(0.5) and clear.seed_sd == pytest.approx(0.01)
    assert clear.gap_in_sd == pytest.approx(50.0)
    assert dull.separated == 0 and dull.tested == 15
    assert dull.seed_sd == pytest.approx(np.sqrt(drawn.var(axis=1, ddof=1).mean()))
    assert headline.seed_sd == pytest.approx(np.sqrt(0.01**2 + dull.seed_sd**2) / 2)
    table = separation_table([headline, clear, dull], "causal")
    assert [row.cells[0] for row in table.rows] == [ALL_LANGUAGES, "clear", "noise"]
    assert [str(row.cells[2]) for row in table.rows[1:]] == ["15 of 15", "0 of 15"]
    assert "noise" in table.note and "clear" not in table.note


@pytest.mark.long
def test_separation_rarely_finds_what_is_not_there() -> None:
    wrong = 0
    for seed in range(30):
        drawn, blocks = noise(100 + seed, 4, 3), noise(200 + seed, 4, 3, BLOCKS)
        results = make_results(
            lambda m, _, s, d=drawn, b=blocks: 0.5 + d[m, s - 1] + b[m, s - 1], models=4, languages=("one",)
        )
        wrong += separation(results, ["one"], "causal")[1].separated > 0
    assert wrong <= 4  # 1.5 are expected; more than 4 come in 2% of all samples


def test_separation_of_pairs_is_the_difference_with_holms_p() -> None:
    drawn = noise(8, 4, 3, BLOCKS) + 0.03 * np.arange(4)[:, None, None]
    [_, found] = separation(
        make_results(lambda m, _, s: drawn[m, s - 1], models=4, languages=("one",)), ["one"], "causal"
    )
    assert all(pair.contrast.value >= 0.0 for pair in found.pairs)
    p = [pair.contrast.p for pair in found.pairs]
    assert [pair.p_adjusted for pair in found.pairs] == pytest.approx(_holm(p))
    best = found.pairs[2]
    assert (best.model, best.other) == ("m03", "m00")
    assert best.contrast.value == pytest.approx(found.largest_gap)
    assert best.contrast.low < best.contrast.value < best.contrast.high


def _holm(p: list[float]) -> list[float]:
    order = sorted(range(len(p)), key=p.__getitem__)
    return [min(1.0, max((len(p) - place) * p[i] for place, i in enumerate(order) if p[i] <= own)) for own in p]


def test_models_that_count_have_no_part_in_the_spread_over_seeds() -> None:
    spread = np.array([-0.01, 0.0, 0.01])
    results = make_results(lambda m, _, s: 0.1 * m + (spread[s - 1] if m else 0.0), models=3, languages=("one",))
    for cell in results["models"][0]["cells"]:
        cell["steps"] = 0
    assert separation(results, ["one"], "causal")[1].seed_sd == pytest.approx(0.01)
    single = make_results(lambda m, *_: 0.1 * m, models=3, languages=("one",), seeds=(1,))
    found = separation(single, ["one"], "causal")[1]
    assert found.seed_sd is None and found.gap_in_sd is None


def test_records_are_json_without_infinities() -> None:
    results = make_results(lambda m, _, s: 0.1 * m + 0.01 * s, models=4)
    found = reliability(results, ["one", "two"], "causal")
    records = found.records()
    assert [(each["language"], each["by"]) for each in records[:3]] == [
        (None, "strings"),
        (None, "seeds"),
        (None, "both"),
    ]
    json.dumps([*records, *(each.record() for each in separation(results, ["one", "two"], "causal"))], allow_nan=False)
    for table in (reliability_table(found), separation_table(separation(results, ["one"], "causal"), "causal")):
        assert {len(row.cells) for row in table.rows} == {len(table.columns)} == {len(table.keys)}
