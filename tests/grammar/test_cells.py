"""Charts of single sentences that hold no cell which is zero: against enumeration, and against charts in batches."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import assume, given
from random_grammars import cases, length_ranges, small_pcfgs
from reference_inference import all_strings, conditioned_prefix, joint, length_mass, prefix_probability, rules_of

from truesource.generator.sampler import Sampler
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.inference.cell_charts import CellCharts
from truesource.grammar.pcfg import PCFG, language
from truesource.grammar.support.arrays import FloatArray, random_state

pytestmark = pytest.mark.long

Case = tuple[PCFG, list[list[str]]]
SUIT, LIMIT = CellCharts.suit, CellCharts._limit
#: three levels of two symbols each, unary chains, and a symbol out of reach
DEEP = PCFG.from_text("""
S -> A B 0.5 | B C 0.5
A -> D E 0.5 | E D E 0.5
B -> E E D 0.5 | C 0.5
C -> D D 0.4 | D 0.6
D -> a b 0.5 | b a b 0.5
E -> b a 0.5 | a a b 0.5
X -> X D 0.2 | a 0.8
""")
MIXED = PCFG.from_text("S -> D S 0.4 | S E 0.2 | D E 0.4\nD -> a b 0.5 | D a 0.3 | a 0.2\nE -> b b a 0.7 | E E 0.3")


@pytest.fixture(autouse=True, scope="module")
def _every_sentence_by_cells() -> object:
    """Whatever the number of its cells."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CellCharts, "suit", lambda *_: True)
        patch.setattr(CellCharts, "_limit", lambda *_: 100_000)
        yield


def in_batches(pcfg: PCFG, work: Callable[[PCFG], list[FloatArray]]) -> list[FloatArray]:
    """What charts of batches give."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CellCharts, "suit", lambda *_: False)
        return work(PCFG.from_text(pcfg.to_text()))


@given(cases(max_size=4))
def test_causal_scores_are_ratios_of_prefix_probabilities(case: Case) -> None:
    pcfg, (sentence,) = case
    rules = rules_of(pcfg)
    known = [prefix_probability(rules, sentence[:j]) for j in range(len(sentence) + 1)] + [joint(rules, sentence)]
    row = np.exp(pcfg.exact.causal_log_probs([sentence])[0])
    for j, (before, after) in enumerate(itertools.pairwise(known)):
        assert row[j] == pytest.approx(after / before if before else 0.0, rel=1e-10, abs=0.0)


@given(cases(max_size=4), length_ranges())
def test_scores_given_lengths_are_ratios_of_wildcards(case: Case, lengths: LengthRange) -> None:
    pcfg, (sentence,) = case
    rules = rules_of(pcfg)
    mass = sum(length_mass(rules, lengths.high)[lengths.low :])
    assume(mass > 0.0)
    known = [conditioned_prefix(rules, sentence[:j], lengths.low, lengths.high) for j in range(len(sentence) + 1)]
    known.append(joint(rules, sentence) / mass if len(sentence) in lengths else 0.0)
    row = np.exp(pcfg.exact.causal_log_probs([sentence], lengths)[0])
    for j, (before, after) in enumerate(itertools.pairwise(known)):
        assert row[j] == pytest.approx(after / before if before else 0.0, rel=1e-10, abs=0.0)


@given(cases(max_size=4))
def test_masked_is_substitution_of_every_word(case: Case) -> None:
    pcfg, (sentence,) = case
    rules = rules_of(pcfg)
    scores = np.exp(pcfg.exact.masked_log_probs([sentence])[0])
    for i, word in enumerate(sentence):
        parts = {w: joint(rules, [*sentence[:i], w, *sentence[i + 1 :]]) for w in pcfg.vocabulary}
        total = math.fsum(parts.values())
        if joint(rules, sentence):
            assert scores[i] == pytest.approx(parts[word] / total, rel=1e-10, abs=0.0)
        if total:
            np.testing.assert_allclose(pcfg.masked(sentence, i), np.array([*parts.values()]) / total, rtol=1e-10)


@pytest.mark.parametrize("pcfg", [DEEP, MIXED], ids=["levels", "recursive"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_they_are_the_scores_of_charts_in_batches(pcfg: PCFG, dtype: type) -> None:
    strings = all_strings(rules_of(pcfg), 9)["S"]
    whole = [list(s) for table in strings for s in sorted(table)[:12]]
    sentences = [*whole, *(s[:-1] for s in whole[::3]), *(["a", *s] for s in whole[::4]), ["?", "a", "b"]]
    lengths = LengthRange(4, 12)
    works: list[Callable[[PCFG], list[FloatArray]]] = [
        lambda g: g.exact.causal_log_probs(sentences, dtype=dtype),
        lambda g: g.exact.masked_log_probs(sentences, dtype=dtype),
        lambda g: g.exact.causal_log_probs(sentences, lengths, dtype=dtype),
    ]
    for work in works:
        for ours, theirs in zip(work(pcfg), in_batches(pcfg, work), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=0.0, atol=1e-10 if dtype is np.float64 else 1e-4)


def test_a_sentence_with_too_many_cells_is_left_and_the_next_is_right() -> None:
    strings = all_strings(rules_of(MIXED), 8)["S"]
    sentences = [list(s) for s in sorted(strings[8])]
    cells = CellCharts(MIXED.exact)
    words = np.stack([MIXED.encode(s) for s in sentences], axis=1)
    full = cells._passes(words, 100_000, outside=True)
    needed = np.sort(full.operations)
    assert needed[0] < needed[-1]
    some = cells._passes(words, int(needed[len(needed) // 2]) // 8 + 1, outside=True)
    done = some.cells >= 0
    assert 0 < done.sum() < len(done)
    for name in ("conditional", "stop", "scales", "totals"):
        np.testing.assert_array_equal(getattr(some, name)[:, done], getattr(full, name)[:, done])
    np.testing.assert_array_equal(some.starts[done], full.starts[done])
    np.testing.assert_array_equal(some.leaves[done], full.leaves[done])
    assert (some.cells[done] == full.cells[done]).all()


def test_cells_are_the_entries_of_the_chart_that_are_not_zero() -> None:
    sentence = list(sorted(all_strings(rules_of(DEEP), 9)["S"][9])[0])
    words = DEEP.encode(sentence).reshape(-1, 1)
    run = CellCharts(DEEP.exact)._passes(words, 100_000)
    assert run.cells[0] == np.count_nonzero(DEEP.exact.charts()._run(words, None).inside)


@pytest.fixture
def chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sentences are done cell by cell where that is worth a try."""
    monkeypatch.setattr(CellCharts, "suit", SUIT)
    monkeypatch.setattr(CellCharts, "_limit", LIMIT)


@pytest.mark.usefixtures("chosen")
def test_strings_of_a_deep_language_score_as_in_batches() -> None:
    deep, lengths = language("cfg3b"), LengthRange(140, 180)
    sampler = Sampler(deep, lengths)
    strings = sampler.sentences(sampler.draw(2, random_state(1)))
    works: list[Callable[[PCFG], list[FloatArray]]] = [
        lambda g: g.exact.causal_log_probs(strings),
        lambda g: g.exact.masked_log_probs(strings),
        lambda g: g.exact.causal_log_probs(strings, lengths),
    ]
    for words, condition in itertools.product((deep.encode(s) for s in strings), (None, lengths)):
        cells = deep.exact.charts()._cells
        assert cells.suit(len(words), condition)
        assert cells.passes(words.reshape(-1, 1), condition, outside=condition is None).cells[0] > 0
    for work in works:
        for ours, theirs in zip(work(deep), in_batches(deep, work), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=0.0, atol=1e-10)


@pytest.mark.usefixtures("chosen")
def test_only_grammars_of_few_cells_are_tried() -> None:
    assert CellCharts(DEEP.exact).suit(200)
    assert CellCharts(DEEP.exact).suit(200, LengthRange(1, 60))
    ambiguous = PCFG.from_text("S -> S S 0.45 | a 0.55")
    assert not any(CellCharts(ambiguous.exact).suit(n) for n in (2, 10, 40))


@given(small_pcfgs())
def test_operations_over_single_words_are_a_part_of_all(pcfg: PCFG) -> None:
    """So a grammar that is refused by the first would be refused by the second, which a kernel counts."""
    charts = CellCharts(pcfg.exact)
    assert 1.0 <= charts._least_rate <= charts._rate
