"""The suites that come with truesource: they can be read, and their lengths keep nearly all of each language."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from truesource.generator.abilities import offers
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.documents.document import DocumentProcess
from truesource.grammar.support.errors import InputError
from truesource.grammar.truth import Truth, load_truth, word_counts
from truesource.studies.benchmark.cells import planned_cells
from truesource.studies.benchmark.lm_eval import language_pairs
from truesource.studies.benchmark.suite import candidates, load_suite, suites

PAGE = Path(__file__).resolve().parents[3] / "docs" / "howto" / "benchmark.md"
KEPT = 0.95
NAMES = sorted(suites())
LANGUAGES = [(name, language) for name in NAMES for language in load_suite(name).languages]


@cache
def grammar(reference: str) -> Truth:
    return load_truth(reference)


def test_the_suites_of_the_page_are_there() -> None:
    assert {"small", "paper"} <= set(NAMES)
    assert all(len(load_suite(name).languages) >= 12 for name in ("small", "paper"))


@pytest.mark.parametrize("name", NAMES)
def test_a_suite_is_called_as_its_file(name: str) -> None:
    suite = load_suite(name)
    assert name == (suite.name if suite.version == 1 else suite.label)


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_languages_differ(name: str) -> None:
    """Compared as grammars: two references may be two ways to write one language."""
    digests = [grammar(language.language).digest for language in load_suite(name).languages.values()]
    assert len(set(digests)) == len(digests)


@pytest.mark.long
@pytest.mark.parametrize(("name", "language"), LANGUAGES)
def test_lengths_keep_nearly_all_of_a_language(name: str, language: str) -> None:
    entry = load_suite(name).languages[language]
    assert KEPT <= grammar(entry.language).exact.range_mass(entry.range) <= 1.0 + 1e-9


@pytest.mark.long
@pytest.mark.parametrize(("name", "language"), LANGUAGES)
def test_a_language_has_longer_strings_unless_its_lengths_end(name: str, language: str) -> None:
    """Where a suite names no longer strings, the language has none."""
    entry = load_suite(name).languages[language]
    if entry.longer_range is None:
        assert grammar(entry.language).exact.range_mass(LengthRange(1, entry.longest)) == pytest.approx(1.0, abs=1e-9)
    else:
        assert grammar(entry.language).exact.range_mass(entry.longer_range) > 1e-3


@pytest.mark.long
def test_twins_differ_in_order_alone() -> None:
    """The pairs of the suites have one law of length, on which their comparison rests."""
    for name in ("small", "paper"):
        languages = load_suite(name).languages
        for one, other in (("centre", "right"), ("english-order", "japanese-order")):
            assert languages[one].lengths == languages[other].lengths
            assert languages[one].longer == languages[other].longer
            laws = [grammar(languages[each].language).exact.length_pmf(60) for each in (one, other)]
            np.testing.assert_allclose(laws[0], laws[1], atol=1e-12)


@pytest.mark.long
def test_the_second_versions_have_every_kind_of_truth_and_learner() -> None:
    for name in ("tiny-v2", "small-v2"):
        suite = load_suite(name)
        truths = {each: grammar(entry.language) for each, entry in suite.languages.items()}
        causal = [each for each, truth in truths.items() if not offers(truth, "masked")]
        assert "copy" in causal and any(isinstance(truths[each], DocumentProcess) for each in causal)
        cells = planned_cells(suite, candidates(suite, ["all"], [], None), list(suite.languages), [1])
        own = {(cell.candidate.architecture, cell.objective): [] for cell in cells}
        for cell in cells:
            own[cell.candidate.architecture, cell.objective].append(cell.language)
        others = [each for each in suite.languages if each not in causal]
        for model in ("oracle", "unigram", "ngram", "lstm", "gpt2", "llama"):
            assert own[model, "causal"] == list(suite.languages)
        kinds = [("bert", "masked"), ("diffusion", "any-order"), ("window-1", "causal"), ("window-2", "causal")]
        for key in (*kinds, ("oracle", "masked"), ("oracle", "any-order"), ("unigram", "any-order")):
            assert own[key] == others
        without = planned_cells(suite, candidates(suite, ["oracle", "gpt2"], [], None), ["english"], [1])
        assert {cell.objective for cell in without} == {"causal", "masked"}, "nothing fills gaps in any order"


@pytest.mark.long
def test_families_of_documents_have_a_causal_truth_alone_and_the_word_frequencies_of_their_share() -> None:
    for name in ("in-context-tiny", "in-context-small"):
        suite = load_suite(name)
        truths = [grammar(language.language) for language in suite.languages.values()]
        assert all(isinstance(truth, DocumentProcess) and not offers(truth, "masked") for truth in truths)
        assert all(word_counts(truth).sum() == pytest.approx(truth.exact.mean_length, rel=1e-9) for truth in truths)
        cells = planned_cells(suite, candidates(suite, ["oracle", "ngram"], [], None), ["counts"], [1])
        assert [(cell.candidate.name, cell.objective) for cell in cells] == [("oracle", "causal"), ("ngram", "causal")]
    with pytest.raises(
        InputError, match="the masked model bert-2x128 needs the probability of a word given all others"
    ):
        planned_cells(suite, candidates(suite, ["bert"], [], None), ["counts"], [1])
    with pytest.raises(InputError, match="needs trees, and counts or changes in them") as refused:
        language_pairs(suite.languages["counts"], 10, 1)
    assert refused.value.code == "missing-ability"


@pytest.mark.parametrize("name", [each for each in NAMES if each != "tiny"])
def test_the_page_lists_the_languages(name: str) -> None:
    rows = PAGE.read_text("utf-8").split("\n")
    for each, entry in load_suite(name).languages.items():
        assert any(row.startswith(f"| `{each}` |") and f"`{entry.language}`" in row for row in rows)
        if name in ("small", "paper"):
            assert any(row.startswith(f"| {name} | `{each}` |") and f"| {entry.lengths} |" in row for row in rows)


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_baselines_have_valid_settings(name: str) -> None:
    """Every baseline on every language; those with positions have enough for the longer strings too."""
    suite = load_suite(name)
    for candidate in candidates(suite, ["all"], [], None):
        for language in suite.languages.values():
            if candidate.trained:
                shape, settings = candidate.resolve(suite, language)
                assert shape.longest is None or shape.longest >= language.longest + 2
                assert shape.counts or (settings is not None and settings.batch_tokens == suite.training.batch_tokens)
