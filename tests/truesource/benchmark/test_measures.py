"""What a benchmark measures, against enumeration, the truth itself and models without context."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tiny_benchmark import measure, mini_suite

from truesource.evaluation.core.oracle import Oracle
from truesource.evaluation.core.word_frequencies import ConstantModel, true_frequencies
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.parallel import Workers
from truesource.studies.benchmark.cells import MeasuredModel
from truesource.studies.benchmark.results import BenchmarkModel, BenchmarkResults
from truesource.studies.benchmark.standings import standings
from truesource.studies.benchmark.truth import LanguageTruth, corpus_of, longer_strings, make_corpora

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("benchmark")


@pytest.fixture(scope="module")
def results(folder: Path) -> BenchmarkResults:
    return measure(mini_suite(folder), folder / "results", ["all"], seeds=[1]).results


def model_of(results: BenchmarkResults, name: str, objective: str = "causal") -> BenchmarkModel:
    return next(m for m in results["models"] if (m["name"], m["objective"]) == (name, objective))


def test_the_truth_is_perfect_in_every_cell(results: BenchmarkResults) -> None:
    for objective in ("causal", "masked"):
        cells = model_of(results, "oracle", objective)["cells"]
        assert {cell["language"] for cell in cells} == {"brackets", "chain"}
        for cell in cells:
            for part in (cell["test"], cell["longer"]):
                if part is not None:
                    assert part["kl"] == pytest.approx([0.0] * 10, abs=1e-9)
                    assert part["wrong"] == pytest.approx(0.0, abs=1e-12)
            assert cell["calibration"] == pytest.approx(0.0, abs=1e-12)


def test_the_share_of_word_frequencies_is_zero(folder: Path, results: BenchmarkResults) -> None:
    suite = mini_suite(folder)
    for name in suite.languages:
        truth = LanguageTruth(suite, name, folder / "results")
        exact = true_frequencies(Oracle(truth.distribution, lengths=truth.language.range))
        found = MeasuredModel(exact, truth, None)
        there = results["languages"][name]["truth"]["causal"]
        assert found.test["kl"] == pytest.approx(there["test"]["information"], rel=1e-9)
    for table in standings(results, list(suite.languages)):
        unigram = next(row for row in table.rows if row.name == "unigram")
        for cell in unigram.languages.values():
            assert cell.share.low is not None
            assert cell.share.high is not None
            assert cell.share.low <= 0.0 <= cell.share.high
            assert abs(cell.share.value) < 0.01


def test_information_is_that_of_prefix_probabilities(folder: Path, results: BenchmarkResults) -> None:
    """Next-token distributions one by one, from the grammar's prefix probabilities."""
    language = mini_suite(folder).languages["chain"]
    pcfg = PCFG.load(language.language)
    unigram = true_frequencies(Oracle(pcfg, lengths=language.range))
    row = np.exp(next(iter(unigram.distributions([["x"]]))).log_prob[0])
    frequency = {**dict(zip(unigram.vocabulary, row, strict=False)), "</s>": row[-1]}
    information, contexts = np.zeros(10), np.zeros(10)
    for number, string in enumerate(corpus_of(folder / "results", "chain").sentences("test")):
        for position in range(len(string) + 1):
            following = pcfg.next_token(string[:position], language.range)
            p = {**dict(zip(following.words, following.probability, strict=True)), "</s>": following.stop}
            information[number % 10] += sum(x * np.log(x / frequency[word]) for word, x in p.items() if x > 0.0)
            contexts[number % 10] += 1
    test = results["languages"]["chain"]["truth"]["causal"]["test"]
    assert test["contexts"] == contexts.tolist()
    assert test["information"] == pytest.approx(information, abs=1e-9)


def test_longer_strings_are_compared_without_the_length_condition_beyond_the_longest(
    folder: Path, results: BenchmarkResults
) -> None:
    """Uniform guesses over the six events, against prefix probabilities of the unconditioned grammar."""
    suite = mini_suite(folder)
    truth = LanguageTruth(suite, "brackets", folder / "results")
    words = tuple(sorted(truth.distribution.vocabulary))
    found = MeasuredModel(ConstantModel("guesses", "causal", words, np.ones(len(words) + 2)), truth, None)
    kl, wrong, n = np.zeros(10), 0.0, 0
    for number, string in enumerate(longer_strings(folder / "results", "brackets")):
        assert 11 <= len(string) <= 16
        for position in range(10, len(string) + 1):
            following = truth.distribution.next_token(string[:position])
            p = np.array([*following.probability, following.stop])
            kl[number % 10] += float((p[p > 0] * np.log(p[p > 0] * 6.0)).sum())
            wrong += (1 + int((p == 0).sum())) / 6.0  # <unk> is one of the six
            n += 1
    assert found.longer is not None
    assert found.longer["kl"] == pytest.approx(kl, abs=1e-9)
    assert found.longer["wrong"] == pytest.approx(wrong / n, abs=1e-12)
    longer = results["languages"]["brackets"]["truth"]["causal"]["longer"]
    assert longer is not None
    assert sum(longer["contexts"]) == n
    assert longer["impossible"] == pytest.approx(wrong / n, abs=1e-12)


def test_a_model_that_reads_few_tokens_has_no_longer_strings(folder: Path) -> None:
    suite = mini_suite(folder)
    truth = LanguageTruth(suite, "brackets", folder / "results")
    words = tuple(sorted(truth.distribution.vocabulary))
    guesses = ConstantModel("guesses", "causal", words, np.ones(len(words) + 2))
    assert MeasuredModel(guesses, truth, 17).longer_refused is not None
    assert MeasuredModel(guesses, truth, 18).longer_refused is None


def test_a_model_without_smoothing_is_refused(folder: Path) -> None:
    suite = mini_suite(folder)
    truth = LanguageTruth(suite, "brackets", folder / "results")
    words = tuple(sorted(truth.distribution.vocabulary))
    with pytest.raises(InputError) as refused:
        MeasuredModel(ConstantModel("never", "causal", words, [*np.ones(len(words)), 1.0, 0.0]), truth, None)
    assert refused.value.code == "infinite-divergence"


def test_the_corpora_are_recipes(folder: Path, tmp_path: Path) -> None:
    suite = mini_suite(folder)
    make_corpora(suite, "brackets", tmp_path, Workers(1))
    one, other = corpus_of(folder / "results", "brackets"), corpus_of(tmp_path, "brackets")
    assert one.digest == other.digest
    tokens = one.n_tokens("train") + one.n_sentences("train")
    assert tokens == pytest.approx(suite.training.tokens, rel=0.1)
    assert tokens == results_tokens(folder)


def results_tokens(folder: Path) -> int:
    """Training tokens of ``brackets`` as a counting model has seen them."""
    cells = sorted((folder / "results" / "cells").glob("brackets-bigram-*.json"))
    return int(json.loads(cells[0].read_text(encoding="utf-8"))["measured"]["tokens"])


def test_networks_and_counts_have_learning_curves(results: BenchmarkResults) -> None:
    for name in ("small", "bigram", "masked"):
        model = model_of(results, name, "masked" if name == "masked" else "causal")
        for cell in model["cells"]:
            tokens = [point[0] for point in cell["curve"]]
            assert len(tokens) > 2
            assert tokens == sorted(tokens)
            assert tokens[-1] == cell["tokens"]
    curves = [cell["curve"] for cell in model_of(results, "bigram")["cells"]]
    assert all(curve[-1][1] < curve[0][1] for curve in curves)


def test_the_model_that_is_the_language_learns_it(results: BenchmarkResults) -> None:
    """A bigram model of bigram text comes near the truth, and is far from that of brackets."""
    (table,) = (each for each in standings(results, ["brackets", "chain"]) if each.objective == "causal")
    bigram = next(row for row in table.rows if row.name == "bigram")
    assert bigram.languages["chain"].share.value > bigram.languages["brackets"].share.value + 0.2
    assert table.rows[0].name == "oracle"
    assert table.rows[0].share is not None
    assert table.rows[0].share.value == pytest.approx(1.0, abs=1e-12)
