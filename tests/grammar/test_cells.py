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
from truesource.grammar._kernels.rules import CellPass
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.inference.cell_charts import CellCharts
from truesource.grammar.inference.other_words import OtherWords, after_others
from truesource.grammar.pcfg import PCFG, language
from truesource.grammar.support.arrays import BoolArray, FloatArray, Int32Array, random_state

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


def other_words(pcfg: PCFG, words: Int32Array) -> OtherWords:
    """Every word of the grammar, and an unknown one, at every place of every sentence."""
    n, width = words.shape
    known = range(-1, len(pcfg.vocabulary))
    return OtherWords.of([(w, j, word) for w in range(width) for j in reversed(range(n)) for word in known])


@given(cases(max_size=4), length_ranges())
def test_what_follows_other_words_is_what_a_pass_over_them_gives(case: Case, lengths: LengthRange) -> None:
    pcfg, (sentence,) = case
    words = pcfg.encode(sentence + sentence[:2]).reshape(-1, 1)
    shared(pcfg, words, None, 100_000)
    if sum(length_mass(rules_of(pcfg), lengths.high)[lengths.low :]) > 1e-6:
        shared(pcfg, words, lengths, 100_000)


@pytest.mark.parametrize("lengths", [None, LengthRange(2, 12)])
@pytest.mark.parametrize(("limit", "done", "left"), [(100_000, 144, 0), (12, 70, 2)])
def test_other_words_are_left_out_where_they_have_too_many_cells(
    lengths: LengthRange | None, limit: int, done: int, left: int
) -> None:
    strings = all_strings(rules_of(DEEP), 8)["S"]
    words = np.stack([*(DEEP.encode(list(text)) for text in sorted(strings[8])[:5]), np.full(8, 1)], axis=1)
    words[4, 2] = -1
    assert shared(DEEP, words.astype(np.int32), lengths, limit) == (done, left)


def shared(pcfg: PCFG, words: Int32Array, lengths: LengthRange | None, limit: int) -> tuple[int, int]:
    """Compare what follows other words with a pass over them, bit for bit; return how many were done, and left out."""
    charts, others, width = CellCharts(pcfg.exact), other_words(pcfg, words), words.shape[1]
    run, texts = charts._passes(words, limit, lengths, others=others), charts._passes(words, limit, lengths)
    done = texts.cells >= 0
    for name, values in run.columns(slice(width))._asdict().items():
        columns = slice(None) if name in ("capped", "cells", "operations") else done
        of_texts = getattr(texts, name)
        if name in ("starts", "leaves", "after"):
            assert name == "after" or np.array_equal(values[done], of_texts[done])
        else:
            np.testing.assert_array_equal(values[..., columns], of_texts[..., columns])
    after = after_others(run, words, others, lambda read, _: np.ones(read.shape[1], np.bool_))
    assert done[others.column[after.number]].all()
    for k, number in enumerate(after.number.tolist()):
        j, column = int(others.after[number]), int(others.column[number])
        read = np.append(words[:j, column], others.word[number]).astype(np.int32).reshape(-1, 1)
        alone = charts._passes(read, 100_000, lengths)
        assert after.possible[k] == bool((alone.conditional > 0.0).all())
        if after.possible[k]:
            np.testing.assert_array_equal(after.starts[:, k], alone.starts[0, j + 1])
            assert np.exp(after.log_stop[k]) == pytest.approx(alone.stop[j + 1, 0], rel=1e-15)
    for w in range(width):
        own = others.take(others.column == w)._replace(column=np.zeros((others.column == w).sum(), np.int64))
        single = charts._passes(words[:, w : w + 1], limit, lengths, others=own)
        np.testing.assert_array_equal(single.cells[1:] >= 0, run.cells[width:][others.column == w] >= 0)
    return len(after.number), int((~np.isin(np.flatnonzero(done[others.column]), after.number)).sum())


def test_the_passes_of_other_words_are_certified_as_passes_of_their_own() -> None:
    words = np.stack([DEEP.encode(list(text)) for text in sorted(all_strings(rules_of(DEEP), 8)["S"][8])[:4]], axis=1)
    charts, others = CellCharts(DEEP.exact), other_words(DEEP, words)
    seen = 0

    def compared(read: Int32Array, run: CellPass) -> BoolArray:
        nonlocal seen
        alone = charts.passes(read)
        possible = (alone.conditional > 0.0).all(axis=0)
        for name in ("conditional", "scales", "totals", "capped", "smallest", "cells"):
            np.testing.assert_array_equal(getattr(run, name)[..., possible], getattr(alone, name)[..., possible])
        np.testing.assert_array_equal(run.conditional, alone.conditional)
        seen += int(possible.sum())
        return np.ones(read.shape[1], np.bool_)

    after_others(charts.passes(words, others=others), words, others, compared)
    assert seen > 20


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
