"""Samples beside a grammar: the truth's own row is within chance, others are found, tests hold their size."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from scipy import stats
from toy_english import TOY

from truesource.evaluation.measures.integer_corpus import expected_types
from truesource.evaluation.tendencies import TendencySettings
from truesource.evaluation.tendencies.against_truth import against_truth
from truesource.evaluation.tendencies.rank_frequency import exponent_of
from truesource.evaluation.tendencies.truth import TrueText, stopwords_among, symbols
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.errors import InputError

CLASSES = {"stopwords": lambda words: stopwords_among(words, ["the", "a", "in", "with"]), "symbols": symbols}
FAST = TendencySettings(CLASSES, chance=39, draws=199)


def truth() -> TrueText:
    return TrueText(PCFG.from_text(TOY), LengthRange(2, 9))


def drawn(n: int, seed: int) -> list[list[str]]:
    where = truth()
    (corpus,) = where.samples(n, 1, seed=seed)
    ends = np.cumsum(corpus.lengths)[:-1]
    return [[where.words[code] for code in part] for part in np.split(corpus.tokens, ends)]


@pytest.mark.long
def test_the_truths_own_row_is_within_chance_and_a_changed_one_is_not() -> None:
    own = drawn(400, 77)
    without = [[w if w != "dog" else "cat" for w in sentence] for sentence in own]
    short = [sentence[:4] for sentence in own]
    found = against_truth({"own": own, "no dog": without, "short": short}, truth(), FAST)
    rows = {name: {k: f.test.p for k, f in row.items() if f.test} for name, row in found.findings.items()}
    assert min(rows["own"].values()) > 0.01
    assert all(f.p_holm is None or f.p_holm > 0.05 for f in found.findings["own"].values())
    assert rows["no dog"]["unigram_tv"] == 1 / 40
    assert rows["no dog"]["types"] == 1 / 40
    assert rows["no dog"]["length_ks"] == rows["own"]["length_ks"]
    assert rows["short"]["length_ks"] == 1 / 200
    assert rows["short"]["length_mean_difference"] == 1 / 200
    assert any("no word of the class symbols" in note for note in found.notes)
    tests = sum(finding.test is not None for row in found.findings.values() for finding in row.values())
    assert found.draws_needed == 20 * tests


@pytest.mark.long
def test_values_by_hand() -> None:
    where = truth()
    text = drawn(150, 5)
    found = against_truth({"it": text}, where, FAST).findings["it"]
    tokens = [w for s in text for w in s]
    gaps = [tokens.count(w) / len(tokens) - p for w, p in zip(where.words, where.unigram, strict=True)]
    assert found["unigram_tv"].score.value == pytest.approx(sum(map(abs, gaps)) / 2)
    assert found["unigram_linf"].score.value == pytest.approx(max(map(abs, gaps)))
    ranked = sorted(range(len(gaps)), key=lambda i: -where.unigram[i])
    steps = np.cumsum([gaps[i] for i in ranked])
    assert found["rank_ks"].score.value == pytest.approx(np.abs(steps).max())
    lengths = np.bincount([len(s) for s in text], minlength=10) / 150
    assert found["length_tv"].score.value == pytest.approx(np.abs(lengths - where.length_pmf).sum() / 2)
    assert found["length_mean_difference"].score.value == pytest.approx(
        np.mean([len(s) for s in text]) - where.length_pmf @ np.arange(10)
    )
    gap = np.mean([len(set(s)) - where.types_by_length[len(s)] for s in text])
    assert found["types_gap"].score.value == pytest.approx(gap)
    shares = [sum(w in ("the", "a", "in", "with") for w in s) / len(s) for s in text]
    values, pmf = where.share_pmf(["the", "a", "in", "with"])
    assert found["stopwords_mean_difference"].score.value == pytest.approx(np.mean(shares) - values @ pmf)
    size = int(found["types"].score.signature.split("rarefied-to:")[1].split("tokens")[0])
    counts = np.array([tokens.count(w) for w in where.words])
    assert found["types"].score.value == pytest.approx(expected_types(counts, size))


@pytest.mark.long
def test_tests_against_the_truth_have_the_size_they_say() -> None:
    """100 samples of the truth; every p-value at most .05 about five times."""
    where = truth()
    texts = {str(i): drawn(60, 1000 + i) for i in range(100)}
    found = against_truth(texts, where, TendencySettings(CLASSES, chance=199, draws=199))
    rejected: dict[str, int] = defaultdict(int)
    for row in found.findings.values():
        for name, finding in row.items():
            if finding.test is not None:
                rejected[name] += finding.test.p <= 0.05
    assert len(rejected) > 15
    most = stats.binom.ppf(0.9999, 100, 0.05)
    assert max(rejected.values()) <= most
    assert sum(rejected.values()) / len(rejected) > 1.5


@pytest.mark.long
def test_with_unknown_words_the_tests_have_the_size_they_say_too() -> None:
    """<unk> is the most frequent token here; as a word of rank 1 it would make the exponent."""
    where = TrueText(
        PCFG.from_text(TOY), LengthRange(2, 9), vocabulary=["a", "in", "dog", "walks", "man", "sees", "cat", "with"]
    )
    assert where.words[int(where.unigram.argmax())] == "<unk>"
    found = against_truth(
        {str(i): drawn(60, 3000 + i) for i in range(40)}, where, TendencySettings(chance=99, draws=99)
    )
    rejected: dict[str, int] = defaultdict(int)
    for row in found.findings.values():
        for name, finding in row.items():
            if finding.test is not None:
                rejected[name] += finding.test.p <= 0.05
    assert {"unknown_share", "zipf_exponent", "types", "bigram_types", "types_gap", "heaps_beta"} <= rejected.keys()
    assert max(rejected.values()) <= stats.binom.ppf(0.9999, 40, 0.05)
    text = drawn(60, 3000)
    tokens = [w for s in text for w in s]
    row = found.findings["0"]
    known = [w for w in tokens if w in where.words]
    assert row["unknown_share"].score.value == pytest.approx(1 - len(known) / len(tokens))
    gap = np.mean([len(set(s) & set(where.words)) - where.types_by_length[len(s)] for s in text])
    assert row["types_gap"].score.value == pytest.approx(gap)
    size = int(row["types"].score.signature.split("rarefied-to:")[1].split("tokens")[0])
    counts = np.array([known.count(w) for w in where.words])
    assert row["types"].score.value == pytest.approx(expected_types(counts, size))
    ranked = sorted((w for w in where.words if w != "<unk>"), key=lambda w: -where.unigram[where.words.index(w)])
    assert row["zipf_exponent"].score.value == pytest.approx(exponent_of(np.array([known.count(w) for w in ranked])))
    assert found.curves["0"].by_rank.tolist() == [known.count(w) for w in ranked]


@pytest.mark.long
def test_a_sample_with_no_word_of_the_grammar_has_a_row_and_notes_in_a_fixed_order() -> None:
    found = against_truth({"a": [["zz"]]}, truth(), TendencySettings(chance=19, draws=19))
    assert found.findings["a"]["outside_share"].score.value == 1.0
    assert found.notes[:3] == [
        "a: no rank_ks; too few of its words have a rank for Zipf's law",
        "a: no zipf_exponent; too few of its words have a rank for Zipf's law",
        "a: no heaps_beta; Heaps' law needs sentences of two lengths or more, and some of more than one word",
    ]


@pytest.mark.long
def test_one_word_sentences_have_no_laws_but_a_row() -> None:
    where = TrueText(PCFG.from_text("S -> a 0.5 | b 0.3 | c 0.2"), LengthRange(1, 1))
    found = against_truth({"x": [["a"], ["b"], ["a"]]}, where, FAST)
    assert found.findings["x"]["unigram_tv"].score.value == pytest.approx(0.2)
    assert "heaps_beta" not in found.findings["x"]
    assert any("Heaps' law needs sentences of two lengths" in note for note in found.notes)
    assert any("no two neighbouring words" in note for note in found.notes)


def test_samples_that_cannot_be_measured() -> None:
    with pytest.raises(InputError, match="'x' is empty"):
        against_truth({"x": []}, truth(), FAST)
    with pytest.raises(InputError, match="sentence 2 of the sample 'x' has no words"):
        against_truth({"x": [["the"], []]}, truth(), FAST)
    with pytest.raises(InputError, match="no sample"):
        against_truth({}, truth(), FAST)


@pytest.mark.long
def test_records_have_all_that_the_table_has() -> None:
    records = against_truth({"it": drawn(80, 5)}, truth(), FAST).records()
    first = next(r for r in records if r["name"] == "length_ks")
    assert first["source"] == "it"
    assert first["tendency"] == "length"
    assert {"value", "low", "high", "signature", "p", "p_holm", "chance_mean", "chance_high", "draws"} <= first.keys()
    assert "against:truth/" in first["signature"]


@pytest.mark.long
def test_what_is_drawn_of_the_truth_is_exact() -> None:
    where = truth()
    found = against_truth({"own": drawn(300, 3), "long": [["dog"] * 12] * 5}, where, FAST)
    curves = found.truth
    assert curves is not None
    assert (len(curves.lengths), curves.lengths.sum()) == (13, pytest.approx(1.0))
    assert curves.types[:10] == pytest.approx(where.types_by_length)
    assert curves.by_rank == pytest.approx(sorted(where.unigram, reverse=True))
    assert curves.heaps is not None
    length = np.arange(2, 10)
    weight = where.length_pmf[2:10]
    mean = curves.heaps.alpha * length**curves.heaps.beta
    gap = weight * (where.types_by_length[2:10] - mean)  # the equations of the likelihood
    assert abs(gap.sum()) < 1e-9
    assert abs(gap @ np.log(length)) < 1e-9
    values, pmf = curves.shares["stopwords"]
    assert values @ pmf == pytest.approx(float(np.dot(*where.share_pmf(["the", "a", "in", "with"]))))
    assert "symbols" not in curves.shares
    tests = found.curves["own"].by_length
    assert tests
    assert all(row.to_reference is not None and row.to_reference.p > 0.001 for row in tests)
