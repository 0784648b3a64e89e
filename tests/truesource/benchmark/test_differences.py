"""Differences of shares: those of the standings, with the tests of paired contrasts."""

from __future__ import annotations

import pytest
from made_results import made_results, made_suite

from truesource.evaluation.measures.contrast import difference
from truesource.grammar.support.errors import InputError
from truesource.studies.benchmark.results import BenchmarkResults
from truesource.studies.benchmark.standings import (
    default_baseline,
    difference_tables,
    differences_of,
    share_differences,
    share_sums,
    standings,
)
from truesource.studies.benchmark.suite import Suite

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def suite() -> Suite:
    return made_suite()


@pytest.fixture(scope="module")
def results(suite: Suite) -> BenchmarkResults:
    return made_results(suite)


def test_values_are_differences_of_the_headlines(suite: Suite, results: BenchmarkResults) -> None:
    (causal, *_) = standings(results, list(suite.languages))
    shares = {row.name: row.share.value for row in causal.rows if row.share is not None}
    found = share_differences(results, causal, "gpt2")
    assert {each.model for each in found} == shares.keys() - {"gpt2", "oracle", "unigram"}
    for each in found:
        assert each.contrast.value == pytest.approx(shares[each.model] - shares["gpt2"], abs=1e-12)
        assert each.contrast.low is not None
        assert each.contrast.high is not None
        assert each.contrast.low < each.contrast.value < each.contrast.high
        assert each.contrast.p is not None
        assert each.p_adjusted is not None
        assert each.p_adjusted >= each.contrast.p
        assert (each.contrast.p < 0.05) == (each.contrast.low > 0.0 or each.contrast.high < 0.0)


def test_on_one_language_it_is_the_contrast_of_its_sums(suite: Suite, results: BenchmarkResults) -> None:
    language = next(iter(suite.languages))
    (causal, *_) = standings(results, [language])
    models = {row.name: row.model for row in causal.rows}
    (found,) = (each for each in share_differences(results, causal, "gpt2") if each.model == "lstm")
    own, other = (share_sums(results, models[name], language) for name in ("lstm", "gpt2"))
    assert own is not None
    assert other is not None
    expected = difference(own, other)
    assert found.contrast.value == pytest.approx(-expected.value, abs=1e-15)
    assert found.contrast.p == pytest.approx(expected.p, rel=1e-9)
    assert (found.contrast.low, found.contrast.high) == pytest.approx((-expected.high, -expected.low), rel=1e-9)  # type: ignore[operator]


def test_the_baseline_is_ones_own_model_or_the_best(suite: Suite, results: BenchmarkResults) -> None:
    found = standings(results, list(suite.languages))
    (causal, *_) = found
    assert default_baseline(causal) == "llama"
    assert default_baseline(causal, ["half-done", "gru"]) == "gru"
    titles = [table.title for table in difference_tables(differences_of(results, found, own=["gru"]))]
    assert "gru" in str(titles[0])
    with pytest.raises(InputError) as refused:
        differences_of(results, found, baseline="half-done")
    assert refused.value.code == "unknown-baseline"
