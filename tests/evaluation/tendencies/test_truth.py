"""Exact tendencies against the whole language of a toy grammar, written out, and against its samples."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from reference_inference import all_strings, rules_of
from scipy import stats
from toy_english import TOY

from truesource.evaluation.measures.integer_corpus import encode_with_words
from truesource.evaluation.tendencies.rank_frequency import exponent_of
from truesource.evaluation.tendencies.truth import TrueText, is_symbol, shares, stopwords_among
from truesource.evaluation.tendencies.type_token import types_by_sentence
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.errors import InputError, NothingToMeasureError

pytestmark = pytest.mark.long

RANGE = LengthRange(3, 6)
CLASS = ("the", "a", "with")


@pytest.fixture(scope="module")
def truth() -> TrueText:
    return TrueText(PCFG.from_text(TOY), RANGE)


@pytest.fixture(scope="module")
def language() -> dict[tuple[str, ...], float]:
    """Every sentence of 3 to 6 words and its probability."""
    pcfg = PCFG.from_text(TOY)
    strings = all_strings(rules_of(pcfg), RANGE.high)[pcfg.symbols[pcfg.start]]
    found = {s: p for n in range(RANGE.low, RANGE.high + 1) for s, p in strings[n].items()}
    total = sum(found.values())
    return {s: p / total for s, p in found.items()}


def test_every_exact_quantity_by_enumeration(truth: TrueText, language: dict[tuple[str, ...], float]) -> None:
    length, share, types, unigram, occurs = (defaultdict(float) for _ in range(5))
    for s, p in language.items():
        length[len(s)] += p
        share[sum(w in CLASS for w in s) / len(s)] += p
        types[len(s)] += p * len(set(s))
        for w in s:
            unigram[w] += p
        for w in set(s):
            occurs[w] += p
    tokens = sum(unigram.values())
    assert truth.length_pmf == pytest.approx([length[n] for n in range(7)], abs=1e-12)
    values, probability = truth.share_pmf(CLASS)
    assert values.tolist() == sorted(share)
    assert probability == pytest.approx([share[v] for v in values.tolist()], abs=1e-12)
    assert truth.unigram == pytest.approx([unigram[w] / tokens for w in truth.words], abs=1e-12)
    for n in range(3, 7):
        assert truth.types_by_length[n] == pytest.approx(types[n] / length[n], abs=1e-12)
    assert truth.vocabulary_size([1, 50]) == pytest.approx(
        [sum(1 - (1 - occurs[w]) ** m for w in truth.words) for m in (1, 50)], rel=1e-3
    )


def test_samples_are_of_that_language(truth: TrueText, language: dict[tuple[str, ...], float]) -> None:
    first, second = truth.samples(20_000, 2, seed=4)
    again = next(iter(truth.samples(20_000, 1, seed=4)))
    assert np.array_equal(first.tokens, again.tokens)
    assert not np.array_equal(first.lengths[:100], second.lengths[:100])
    expected = {}
    for s, p in language.items():
        code = (len(s), sum(w in CLASS for w in s), len(set(s)))
        expected[code] = expected.get(code, 0.0) + p
    member = [truth.words.index(w) for w in CLASS]
    count = np.rint(shares(first, member) * first.lengths).astype(int)
    seen = list(zip(first.lengths.tolist(), count.tolist(), types_by_sentence(first).tolist(), strict=True))
    assert set(seen) <= expected.keys()
    observed = np.array([seen.count(code) for code in expected])
    wanted = 20_000 * np.array(list(expected.values()))
    common = wanted > 5
    table = [np.append(x[common], x[~common].sum()) for x in (observed, wanted)]
    assert stats.chisquare(*table).pvalue > 1e-3


def test_shares_of_a_sample_are_the_atoms_of_the_truth(truth: TrueText) -> None:
    values, _ = truth.share_pmf(CLASS)
    sample = next(iter(truth.samples(3000, 1, seed=1)))
    assert set(shares(sample, [truth.words.index(w) for w in CLASS]).tolist()) <= set(values.tolist())


def test_words_outside_the_vocabulary_are_unknown_on_both_sides() -> None:
    pcfg = PCFG.from_text(TOY)
    truth = TrueText(pcfg, RANGE, vocabulary=["the", "dog", "walks", "zebra"])
    assert truth.collapsed
    assert set(truth.words) == {"the", "dog", "walks", "<unk>"}
    assert truth.read([["the", "cat", "walks"]]) == [["the", "<unk>", "walks"]]
    whole = TrueText(pcfg, RANGE)
    rest = sum(p for w, p in zip(whole.words, whole.unigram, strict=True) if w not in truth.words)
    assert truth.unigram[truth.words.index("<unk>")] == pytest.approx(rest, abs=1e-12)
    assert truth.outside([["the", "cat", "<unk>", "zebra"]]) == 0.25  # cat is a word of the grammar
    assert whole.outside([["the", "cat", "<unk>", "zebra"]]) == 0.5
    assert not whole.collapsed
    assert whole.read([["zebra"]]) == [["zebra"]]


def test_unknown_words_have_no_rank_and_are_no_types(language: dict[tuple[str, ...], float]) -> None:
    """By enumeration: types of known words only; the law is that of the known words' frequencies."""
    told = {"the", "a", "dog", "walks"}
    where = TrueText(PCFG.from_text(TOY), RANGE, vocabulary=told)
    types, mass = np.zeros(7), np.zeros(7)
    for s, p in language.items():
        mass[len(s)] += p
        types[len(s)] += p * len(set(s) & told)
    assert where.types_by_length[3:] == pytest.approx(types[3:] / mass[3:], abs=1e-12)
    share = dict(zip(where.words, where.unigram, strict=True))
    known = np.array(sorted((share[w] for w in told), reverse=True))
    assert where.ranked == pytest.approx(known / known.sum(), abs=1e-12)
    assert where.zipf_exponent == pytest.approx(exponent_of(known / known.sum()))


def test_sentences_too_long_for_exact_tables_need_a_range() -> None:
    """In a run, which may have trained models for hours, this is a note: `NothingToMeasureError`."""
    pcfg = PCFG.from_text("S -> a S 0.95 | b 0.05")
    with pytest.raises(NothingToMeasureError, match=r"longer than 200 words, .* give the length range"):
        _ = TrueText(pcfg).high
    with pytest.raises(NothingToMeasureError, match="up to 200 words a sentence, not 201"):
        _ = TrueText(pcfg, LengthRange(1, 201)).types_by_length
    assert TrueText(pcfg, LengthRange(1, 200)).high == 200


def test_a_text_is_cut_like_samples_of_its_truth_whatever_the_vocabulary() -> None:
    pcfg = PCFG.from_text("S -> The X 0.5 | A X 0.5\nX -> cat 0.5 | dog 0.5")
    text = [["The", "cat"], ["A", "dog"]] * 50
    assert TrueText(pcfg, LengthRange(2, 2)).habits(text, seed=1) == []
    few = TrueText(pcfg, LengthRange(2, 2), vocabulary=["cat", "dog"])  # capitals are <unk> on both sides
    assert few.habits(text, seed=1) == []
    assert few.habits([["<unk>", "cat"]] * 50, seed=1) == []
    assert few.habits([["<unk>"]] * 50, seed=1) == []
    lower = [[w.lower() for w in s] for s in text]
    assert any("capital letters" in habit for habit in TrueText(pcfg, LengthRange(2, 2)).habits(lower, seed=1))


def test_without_a_length_range_all_lengths_are_covered() -> None:
    truth = TrueText(PCFG.from_text("S -> a S 0.5 | a 0.5"))
    assert truth.length_pmf.sum() == pytest.approx(1.0, abs=1e-9)
    assert truth.high == 50
    with pytest.raises(InputError, match="length range"):
        _ = TrueText(PCFG.from_text("S -> a S 0.999 | a 0.001")).high


def test_codes_of_a_corpus_are_those_of_the_truth(truth: TrueText) -> None:
    (corpus,), words = encode_with_words([[["the", "dog", "walks"], ["a", "zebra", "walks"]]], truth.words)
    assert words == [*truth.words, "zebra"]
    assert [truth.words[c] for c in corpus.tokens[:4]] == ["the", "dog", "walks", "a"]
    assert corpus.tokens[4] == len(truth.words)


def test_symbols_have_no_letter() -> None:
    assert [w for w in (",", "-LRB-", "12.5", "&quot;", "a", "<unk>", "n't", "<apostrophe>", "é") if is_symbol(w)] == [
        ",",
        "-LRB-",
        "12.5",
        "&quot;",
        "<apostrophe>",
    ]
    assert stopwords_among(["The", "dog", "of"], ["the", "of"]) == ["The", "of"]
