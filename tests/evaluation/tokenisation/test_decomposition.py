"""The distance to the truth in two parts, with models made from the grammar itself: all parts known in closed form."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st
from piece_models import AB_PIECES, MARKER, ToyPieceModel, ToyTokenizer, toy_inventory
from reference_inference import all_strings, rules_of
from scipy import stats
from whole_language import whole_language

from truesource.evaluation.core.exclusion import Exclusion
from truesource.evaluation.core.oracle import Oracle
from truesource.evaluation.tokenisation import EstimatorRun, EstimatorSettings
from truesource.evaluation.tokenisation.decomposition import (
    Decomposition,
    below_bounds,
    decompose,
    shortfalls,
    true_log_probs,
)
from truesource.evaluation.tokenisation.documents import Estimate, documents
from truesource.evaluation.tokenisation.domain_shift import (
    IN_DOMAIN,
    SentenceSet,
    compare_sets,
    drawn_set,
    respell,
    shifted_sets,
)
from truesource.evaluation.tokenisation.lattice import LatticeBuilder
from truesource.evaluation.tokenisation.results import DOUBLE, Evaluation, evaluate_documents
from truesource.generator.language_model import ScoringFrame
from truesource.generator.piece_model import IncrementalScorer, PieceInventory
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import FloatArray, IntArray
from truesource.grammar.support.errors import InputError

GRAMMAR = PCFG.from_text(
    "S -> A B 0.5 | A S 0.25 | S B 0.25\nA -> ab 0.5 | cd 0.25 | ef 0.25\nB -> cd 0.75 | gh 0.25", start="S"
)
SHORT = LengthRange(2, 4)
WORDS = ("ab", "cd", "ef", "gh")


class GrammarModel:
    """P of a grammar for the words, each cut as a whole with one probability and in two pieces with another.

    What is missing to 1 is lost. ``end`` off leaves out the end of the sentence.
    """

    longest = None

    def __init__(
        self,
        whole: Mapping[str, float],
        halves: Mapping[str, float],
        *,
        grammar: PCFG = GRAMMAR,
        lengths: LengthRange | None = SHORT,
        end: bool = True,
    ) -> None:
        self.name, self.around = "grammar", (1, int(end))
        self.chosen_before = None
        self._oracle, self._end = Oracle(grammar, lengths=lengths), end
        words = sorted(set(WORDS) | set(grammar.vocabulary))
        spelt = [*(MARKER + w for w in words), *(MARKER + w[0] for w in words), *(w[1:] for w in words)]
        scores = [-1.0] * len(words) + [-2.0] * (len(spelt) - len(words))
        self._words, self._whole, self._halves = words, whole, halves
        ids = np.arange(len(spelt), dtype=np.int64) + 3
        self.pieces = ToyTokenizer(PieceInventory("unigram", tuple(spelt), ids, np.array(scores), MARKER))

    def log_probs(self, rows: Sequence[IntArray]) -> FloatArray:
        return np.array([self._log_prob(row.tolist()) for row in rows])

    def _log_prob(self, row: list[int]) -> float:
        sentence, total = [], 0.0
        numbers = iter(row)
        for number in numbers:
            kind, index = divmod(number - 3, len(self._words))
            word = self._words[index]
            if kind == 1:
                assert next(numbers) == number + len(self._words)
            p = (self._halves if kind else self._whole)[word]
            total += math.log(p) if p else -math.inf
            sentence.append(word)
        scores = self._oracle.score([sentence], ScoringFrame(eos=self._end))
        return -math.inf if len(scores.impossible) else total + math.fsum(scores.log_prob)

    def token_steps(self, rows: Sequence[IntArray]) -> int:
        return sum(len(row) + 1 for row in rows)

    def incremental_scorer(self) -> IncrementalScorer:
        raise AssertionError("the best cuts need no scorer")


WHOLE = dict.fromkeys(WORDS, 1.0)
NEVER = dict.fromkeys(WORDS, 0.0)
SENTENCES = Oracle(GRAMMAR, lengths=SHORT).sample(40, 5)


def evaluated(model: GrammarModel, texts: Sequence[str]) -> Evaluation:
    """All cuts: 2 to the power of the words, at most 16."""
    read = documents(model, texts, LatticeBuilder(model.pieces.inventory))
    return evaluate_documents(model, read, ["nbest"], EstimatorSettings(samples=64))


def texts_of(sentences: Sequence[Sequence[str]]) -> list[str]:
    return [" ".join(sentence) for sentence in sentences]


def decomposed(
    model: GrammarModel, sentences: Sequence[Sequence[str]] = SENTENCES, *, per_document: int = 1
) -> Decomposition:
    return decompose(evaluated(model, texts_of(sentences)), "nbest", GRAMMAR, SHORT, per_document=per_document)


# -- closed forms -----------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("end", [True, False])
@pytest.mark.parametrize("lengths", [SHORT, None])
def test_a_model_that_is_the_grammar_has_no_gap(lengths: LengthRange | None, end: bool) -> None:
    found = evaluated(GrammarModel(WHOLE, NEVER, lengths=lengths, end=end), texts_of(SENTENCES))
    parts = decompose(found, "nbest", GRAMMAR, lengths)
    assert np.abs(parts.tokenisation_gap).max() <= 1e-10
    assert np.abs(parts.model_gap).max() <= 1e-10
    scores = parts.scores()
    assert abs(scores["distance"].value) <= 1e-10
    assert "tokenisation_share" not in scores
    if end:
        strings = {s: p for table in all_strings(rules_of(GRAMMAR), 4)["S"] for s, p in table.items()}
        z = 1.0 if lengths is None else math.fsum(p for s, p in strings.items() if len(s) in lengths)
        truth = [-math.log(strings[tuple(sentence)] / z) for sentence in SENTENCES]
        assert parts.truth == pytest.approx(truth, abs=1e-10)
    assert f"eos:{'in' if end else 'out'}" in scores["distance"].signature.split("|")
    assert f"given:{lengths or 'none'}" in scores["distance"].signature.split("|")


@pytest.mark.long
def test_both_gaps_in_closed_form() -> None:
    """A word is cut whole with s and in two with t: gaps of ln (s+t)/s and -ln (s+t) a word."""
    whole = {"ab": 0.5, "cd": 0.75, "ef": 0.25, "gh": 0.5}
    halves = {"ab": 0.5, "cd": 0.125, "ef": 0.5, "gh": 0.0}
    parts = decomposed(GrammarModel(whole, halves))
    tokenisation = [math.fsum(math.log((whole[w] + halves[w]) / whole[w]) for w in s) for s in SENTENCES]
    model = [math.fsum(-math.log(whole[w] + halves[w]) for w in s) for s in SENTENCES]
    assert parts.tokenisation_gap == pytest.approx(tokenisation, abs=1e-10)
    assert parts.model_gap == pytest.approx(model, abs=1e-10)
    assert parts.distance == pytest.approx(parts.tokenisation_gap + parts.model_gap, abs=1e-10)
    n, words = len(SENTENCES), sum(map(len, SENTENCES))
    scores = parts.scores()
    for name, values in (("tokenisation", tokenisation), ("model", model)):
        assert scores[f"{name}_gap"].value == pytest.approx(math.fsum(values) / n, abs=1e-10)
        assert scores[f"{name}_gap_per_word"].value == pytest.approx(math.fsum(values) / words, abs=1e-10)
        share = math.fsum(values) / math.fsum(tokenisation + model)
        assert scores[f"{name}_share"].value == pytest.approx(share, abs=1e-10)
    assert scores["one_best_nll"].value == pytest.approx(
        scores["true_nll"].value + scores["tokenisation_gap"].value + scores["model_gap"].value
    )
    assert scores.pop("estimation_error_per_word").value == 0.0
    for score in scores.values():
        assert score.low is not None
        assert score.high is not None
        assert score.low <= score.value <= score.high
    assert "bound:exact" in scores["model_gap"].signature.split("|")
    assert [record["name"] for record in parts.records() if "by" not in record] == [
        *scores,
        "estimation_error_per_word",
    ]


def test_the_error_of_the_estimates_is_that_of_independent_documents() -> None:
    model = GrammarModel(dict.fromkeys(WORDS, 0.5), dict.fromkeys(WORDS, 0.25))
    read = documents(model, texts_of(SENTENCES), LatticeBuilder(model.pieces.inventory))
    found = evaluate_documents(model, read, ["wr", "nbest"], EstimatorSettings(samples=3))
    parts = decompose(found, "wr", GRAMMAR, SHORT, per_document=2)
    total = found.total("wr").standard_error
    assert total is not None
    assert total > 0.0
    error = parts.scores()["estimation_error_per_word"].value
    assert error == pytest.approx(total / sum(map(len, SENTENCES)), abs=1e-12)
    bounds = decompose(found, "nbest", GRAMMAR, SHORT)
    assert bounds.variance is None
    assert "estimation_error_per_word" not in bounds.scores()


def test_the_model_gap_over_the_whole_language_is_the_divergence() -> None:
    """Mean of ln P - ln Q over every sentence in its true proportion, for a Q that is another grammar."""
    lengths = LengthRange(2, 2)
    grammar = PCFG.from_text("S -> A B 1.0\nA -> ab 0.5 | cd 0.25 | ef 0.25\nB -> cd 0.75 | gh 0.25")
    other = PCFG.from_text("S -> A B 1.0\nA -> ab 0.25 | cd 0.5 | ef 0.25\nB -> cd 0.5 | gh 0.5")
    sentences = whole_language(grammar, 2, 2, 16)
    found = evaluated(GrammarModel(WHOLE, NEVER, grammar=other, lengths=lengths), texts_of(sentences))
    parts = decompose(found, "nbest", grammar, lengths)
    divergence = 0.5 * math.log(2) + 0.25 * math.log(0.5) + 0.75 * math.log(1.5) + 0.25 * math.log(0.5)
    assert parts.scores()["model_gap"].value == pytest.approx(divergence, abs=1e-10)
    assert parts.scores()["tokenisation_gap"].value == pytest.approx(0.0, abs=1e-10)


@pytest.mark.long
def test_documents_of_several_sentences_are_products() -> None:
    whole, halves = dict.fromkeys(WORDS, 0.5), dict.fromkeys(WORDS, 0.25)
    alone, joined = (decomposed(GrammarModel(whole, halves), per_document=m) for m in (1, 4))
    assert len(joined.truth) == 10
    assert joined.truth == pytest.approx(alone.truth.reshape(10, 4).sum(axis=1), abs=1e-10)
    assert joined.model_gap == pytest.approx(alone.model_gap.reshape(10, 4).sum(axis=1), abs=1e-10)
    assert joined.n_sentences.tolist() == [4] * 10
    for name, score in alone.scores().items():
        assert joined.scores()[name].value == pytest.approx(score.value), name
    wide, narrow = (found.scores()["distance"].signature.split("|") for found in (alone, joined))
    assert "sentences-a-document:4" in narrow
    assert not any(part.startswith("sentences-a-document") for part in wide)


# -- what is set aside ------------------------------------------------------------------------------


def test_impossible_and_altered_sentences_are_set_aside_and_counted() -> None:
    texts = ["ab cd", "gh gh", "AB cd", "ab zz", "ef gh"]
    found = evaluated(GrammarModel(WHOLE, NEVER, grammar=uniform(), lengths=None), texts)
    assert found.numbers.tolist() == [0, 1, 2, 4]  # no piece spells zz
    parts = decompose(found, "nbest", GRAMMAR, SHORT)
    assert (parts.impossible, parts.altered) == ((1, 2), ())  # the grammar has no AB
    assert parts.sentences == ((("ab", "cd"),), (("ef", "gh"),))
    assert {"impossible:2", "set-aside-as-altered:0", "left-out:1"} <= set(
        parts.scores()["distance"].signature.split("|")
    )
    both = PCFG.from_text("S -> A B 1.0\nA -> ab 0.5 | AB 0.5\nB -> cd 1.0")
    parts = decompose(found, "nbest", both, None)
    assert (parts.altered, parts.impossible, parts.sentences) == ((2,), (1, 4), ((("ab", "cd"),),))
    with pytest.raises(
        InputError, match="no sentence is left to compare with the truth: the grammar gives probability 0 to 4"
    ):
        decompose(found, "nbest", GRAMMAR, LengthRange(3, 4))
    with pytest.raises(InputError, match="runs are one-best, nbest"):
        decompose(found, "exact", GRAMMAR, SHORT)


def uniform() -> PCFG:
    words = " | ".join(f"{w} 0.25" for w in WORDS)
    return PCFG.from_text(f"S -> A A 1.0\nA -> {words}")


def test_true_log_probs_are_those_of_strings() -> None:
    strings = {s: p for table in all_strings(rules_of(GRAMMAR), 4)["S"] for s, p in table.items()}
    z = math.fsum(p for s, p in strings.items() if len(s) in SHORT)
    found = true_log_probs([*SENTENCES[:5], ["gh", "gh"]], GRAMMAR, SHORT, end=True)
    assert found[:5] == pytest.approx([math.log(strings[tuple(s)] / z) for s in SENTENCES[:5]], abs=1e-10)
    assert found[5] == -math.inf


# -- splits that leave sentences out ------------------------------------------------------------------

LANGUAGE = {s: p for table in all_strings(rules_of(GRAMMAR), 4)["S"] for s, p in table.items() if len(s) in SHORT}
SUBSETS = st.sets(st.sampled_from(sorted(LANGUAGE)), min_size=1, max_size=len(LANGUAGE) - 1)


@pytest.mark.long
@hypothesis.given(SUBSETS, st.booleans())
def test_the_truth_leaves_out_what_the_split_leaves_out(left_out: set[tuple[str, ...]], end: bool) -> None:
    """Every sentence that is left, and with ``end`` off every beginning, by adding up the language without the rest."""
    rest = {s: p for s, p in LANGUAGE.items() if s not in left_out}
    total = math.fsum(rest.values())
    excluded = Exclusion.from_sentences(left_out, GRAMMAR, SHORT)
    found = true_log_probs(sorted(rest), GRAMMAR, SHORT, end=end, excluded=excluded)
    wanted = [
        math.fsum(p for other, p in rest.items() if other == s or (not end and other[: len(s)] == s))
        for s in sorted(rest)
    ]
    assert np.exp(found) * total == pytest.approx(wanted, rel=1e-10)
    if end:
        assert math.fsum(np.exp(found)) == pytest.approx(1.0, abs=1e-10)
        assert np.isneginf(true_log_probs(sorted(left_out), GRAMMAR, SHORT, end=True, excluded=excluded)).all()


@pytest.mark.long
def test_gaps_of_a_disjoint_split_are_those_of_its_own_law() -> None:
    """A model of the grammar itself is behind the law of the split by ln of the probability that is left."""
    seen = sorted({tuple(s) for s in SENTENCES})
    left_out = [s for s in sorted(LANGUAGE) if s not in seen][:20] + seen[:1]
    kept = 1.0 - math.fsum(LANGUAGE[s] for s in left_out) / math.fsum(LANGUAGE.values())
    excluded = Exclusion.from_sentences(left_out, GRAMMAR, SHORT)
    found = evaluated(GrammarModel(WHOLE, NEVER), texts_of(SENTENCES))
    parts = decompose(found, "nbest", GRAMMAR, SHORT, excluded=excluded, per_document=2)
    assert parts.impossible == tuple(i for i, s in enumerate(SENTENCES) if tuple(s) == seen[0])
    assert parts.model_gap == pytest.approx(-math.log(kept) * parts.n_sentences, abs=1e-10)
    assert np.abs(parts.tokenisation_gap).max() <= 1e-10
    signed = parts.scores()["distance"].signature
    assert f"|given:2..4|disjoint:21/{excluded.part.partition('/')[2]}|grammar:" in signed
    assert "disjoint" not in decompose(found, "nbest", GRAMMAR, SHORT).scores()["distance"].signature
    estimated = Exclusion((), np.empty(0), SHORT, exact=False)
    free = decompose(found, "nbest", GRAMMAR, SHORT, excluded=estimated)
    assert "|disjoint:uncorrected|" in free.scores()["distance"].signature
    assert np.abs(free.model_gap).max() <= 1e-10


# -- tables -----------------------------------------------------------------------------------------


@pytest.mark.long
def test_the_gaps_are_divided_by_length() -> None:
    whole, halves = dict.fromkeys(WORDS, 0.5), {"ab": 0.5, "cd": 0.25, "ef": 0.125, "gh": 0.0}
    parts = decomposed(GrammarModel(whole, halves))
    rows = {record["name"]: record for record in parts.records() if "by" in record}
    assert {(row["by"], row["group"], row["documents"]) for row in rows.values()} == {
        ("length", "1 to 5 words", len(SENTENCES))
    }
    row = rows["distance_per_word"]
    assert row["value"] == pytest.approx(parts.scores()["distance_per_word"].value)
    assert "|by:length|band:1 to 5 words|" in row["signature"]


# -- other domains ----------------------------------------------------------------------------------


@pytest.mark.long
def test_each_set_is_set_against_its_own_truth_and_that_of_the_training_corpus() -> None:
    whole, halves = {"ab": 0.5, "cd": 0.5, "ef": 0.5, "gh": 0.125}, {"ab": 0.5, "cd": 0.5, "ef": 0.25, "gh": 0.125}
    model = GrammarModel(whole, halves)  # knows the training grammar
    sets = shifted_sets(GRAMMAR, SHORT, ["sharpen=0", "temperature=2"], 30, seed=3)
    assert [given.name for given in sets] == [IN_DOMAIN, "sharpen=0", "temperature=2"]
    assert sets[0].sentences == drawn_set("x", GRAMMAR, SHORT, 30, 3).sentences
    found = compare_sets(sets, [evaluated(model, given.texts) for given in sets], "nbest", GRAMMAR, SHORT)
    for given, result in zip(sets, found, strict=True):
        words = sum(map(len, given.sentences))
        own = true_log_probs(given.sentences, given.grammar, SHORT, end=True)
        training = true_log_probs(given.sentences, GRAMMAR, SHORT, end=True)
        assert result.decomposition.truth == pytest.approx(-own, abs=1e-10)
        shift = (own - training).sum() / words
        assert result.scores["domain_shift_per_word"].value == pytest.approx(shift, abs=1e-10)
        assert result.scores["training_impossible"].value == 0.0
        # what is left of the model gap is what the model loses on the training grammar itself
        lost = math.fsum(-math.log(whole[w] + halves[w]) for s in given.sentences for w in s) / words
        assert result.scores["model_gap_per_word"].value == pytest.approx(shift + lost, abs=1e-10)
    assert found[0].scores["domain_shift_per_word"].value == pytest.approx(0.0, abs=1e-12)
    assert "model_gap_per_word_growth" not in found[0].scores
    growth = found[1].scores["tokenisation_gap_per_word_growth"]
    first, other = (result.scores["tokenisation_gap_per_word"].value for result in found[:2])
    assert growth.value == pytest.approx(other - first, abs=1e-12)
    assert (growth.low or 0.0) < growth.value < (growth.high or 0.0)
    assert {record["set"] for record in found[1].records()} == {"sharpen=0"}


def test_growth_is_that_of_the_later_set_over_the_first() -> None:
    whole, halves = {"ab": 0.5, "cd": 0.5, "ef": 0.25, "gh": 0.25}, {"ab": 0.25, "cd": 0.25, "ef": 0.5, "gh": 0.5}
    model = GrammarModel(whole, halves, grammar=uniform(), lengths=None)
    grammars = [PCFG.from_text(f"S -> A A 1.0\nA -> {a} 0.5 | {b} 0.5") for a, b in (("ab", "cd"), ("ef", "gh"))]
    sets = [drawn_set(str(i), grammar, None, 10, 1) for i, grammar in enumerate(grammars)]
    _, found = compare_sets(sets, [evaluated(model, given.texts) for given in sets], "nbest", uniform(), None)
    growth = found.scores["tokenisation_gap_per_word_growth"]  # from ln 3/2 to ln 3, of every word
    assert [growth.low, growth.value, growth.high] == pytest.approx([math.log(2)] * 3, abs=1e-10)


@pytest.mark.parametrize("share", [0.25, 1.0])
def test_respelt_words_keep_the_truth(share: float) -> None:
    grammar = PCFG.from_text("S -> A B 0.5 | A S 0.5\nA -> abba 0.5 | baab 0.25 | , 0.25\nB -> acba 0.75 | caba 0.25")
    inside, outside = shifted_sets(grammar, SHORT, [f"respell={share}"], 30, seed=5)
    new = dict(zip(grammar.vocabulary, outside.grammar.vocabulary, strict=True))
    assert sum(old != word for old, word in new.items()) == round(4 * share)
    assert new[","] == ","
    assert not {word for old, word in new.items() if old != word} & set(grammar.vocabulary)
    assert set("".join(new.values())) <= set("abc,")
    assert [[new[w] for w in s] for s in inside.sentences] == outside.sentences
    truth = [true_log_probs(s.sentences, s.grammar, SHORT, end=True) for s in (inside, outside)]
    assert truth[0] == pytest.approx(truth[1], abs=1e-12)
    assert shifted_sets(grammar, SHORT, [f"respell={share}"], 1, seed=5)[1].grammar == outside.grammar


def test_respelt_words_are_all_different() -> None:
    words = ["".join(letters) for n in (2, 3) for letters in itertools.product("ab", repeat=n)]
    grammar = PCFG.from_text("S -> " + " | ".join(f"{word} {1 / len(words)}" for word in words))
    for seed in range(5):
        assert len({*respell(grammar, 1.0, seed).vocabulary, *words}) == 2 * len(words)


def test_respelling_that_cannot_be_done_is_refused() -> None:
    for wrong, why in (("0", "above 0 and at most 1"), ("much", "needs a share of the words")):
        with pytest.raises(InputError, match=why):
            shifted_sets(GRAMMAR, SHORT, [f"respell={wrong}"], 5, seed=1)
    with pytest.raises(InputError, match="no word of letters"):
        respell(PCFG.from_text("S -> a 1.0"), 0.5, 1)
    with pytest.raises(InputError, match="allow too few new words"):
        respell(PCFG.from_text("S -> ab 1.0"), 1.0, 1)  # the only chain is a, b


def test_sentences_that_the_training_grammar_cannot_make_are_counted() -> None:
    given = SentenceSet("other", [["ab", "cd"], ["gh", "gh"], ["ab", "ab"], ["ef", "gh"]], uniform(), None)
    model = GrammarModel(WHOLE, NEVER, grammar=uniform(), lengths=None)
    (found,) = compare_sets([given], [evaluated(model, given.texts)], "nbest", GRAMMAR, SHORT)
    assert found.scores["training_impossible"].value == 0.5
    assert np.isinf(found.shift).tolist() == [False, True, True, False]
    training = true_log_probs([["ab", "cd"], ["ef", "gh"]], GRAMMAR, SHORT, end=True)
    shift = (2 * math.log(1 / 16) - training.sum()) / 4
    assert found.scores["domain_shift_per_word"].value == pytest.approx(shift, abs=1e-10)
    with pytest.raises(InputError, match="one evaluation for each set"):
        compare_sets([given], [], "nbest", GRAMMAR, SHORT)


# -- what cannot be believed ------------------------------------------------------------------------


def with_total(model: GrammarModel, below: float, variance: float) -> Decomposition:
    """Estimates so far below the sum of all cuts, each with its variance."""
    found = evaluated(model, texts_of(SENTENCES))
    changed = tuple(
        replace(e, log_p=e.log_p - below, bound="unbiased", relative_variance=variance)
        for e in found.estimates["nbest"]
    )
    return decompose(replace(found, estimates={**found.estimates, "nbest": changed}), "nbest", GRAMMAR, SHORT)


@pytest.mark.long
def test_there_are_no_shares_where_the_total_is_certainly_too_low() -> None:
    model = GrammarModel(dict.fromkeys(WORDS, 0.5), dict.fromkeys(WORDS, 0.1))
    shares = {"tokenisation_share", "model_share"}
    assert shares <= set(with_total(model, 0.0, 1e-4).scores())
    assert shares <= set(with_total(model, 0.02, 0.1).scores())  # 0.8 in all, of a standard error of 2
    few = with_total(model, 1.0, 1e-4).scores()
    assert not shares & set(few)
    whole = with_total(model, 0.0, 1e-4).scores()
    assert few["tokenisation_gap"].value == pytest.approx(whole["tokenisation_gap"].value - 1.0)


@pytest.mark.long
def test_the_error_of_the_estimate_is_not_below_rounding() -> None:
    model = GrammarModel(dict.fromkeys(WORDS, 0.5), dict.fromkeys(WORDS, 0.1))
    found = with_total(model, 0.0, 1e-24)
    rounding = 1e-7 * math.sqrt(float((found.marginal**2).sum()))
    assert found.rounding == pytest.approx(rounding)
    assert found.scores()["estimation_error_per_word"].value == pytest.approx(rounding / found.words.sum())
    large = with_total(model, 0.0, 1e-4).scores()["estimation_error_per_word"].value
    assert large == pytest.approx(1e-2 * math.sqrt(len(SENTENCES)) / found.words.sum())
    assert decomposed(model).scores()["estimation_error_per_word"].value == 0.0  # all cuts, exactly


# -- totals below what some run certainly reaches, and standard errors that cannot be believed --


INVENTORY = toy_inventory(AB_PIECES)
MODEL = ToyPieceModel(INVENTORY)


@pytest.fixture(scope="module")
def whole() -> Evaluation:
    return evaluate_documents(
        MODEL, documents(MODEL, ["abab", "ba"], LatticeBuilder(INVENTORY)), [], EstimatorSettings()
    )


def drawn(log_p: float, variance: float | None, log_lower: float = -99.0) -> Estimate:
    return Estimate(
        estimator="wr", log_p=log_p, bound="unbiased", relative_variance=variance, log_lower=log_lower, steps=1, cuts=1
    )


def certain(log_p: float) -> Estimate:
    return Estimate(estimator="nbest", log_p=log_p, bound="lower", log_lower=log_p, steps=1, cuts=1)


def with_runs(whole: Evaluation, **runs: Estimate) -> Evaluation:
    """Two documents of one estimate each run, beside a cut of 1/e^60 each."""
    estimates = {"one-best": (certain(-60.0),) * 2} | {label: (one,) * 2 for label, one in runs.items()}
    return replace(whole, estimates=estimates, runs={label: EstimatorRun(label) for label in estimates})


def test_a_total_below_what_another_run_reaches(whole: Evaluation) -> None:
    found = with_runs(whole, guided=drawn(-80.0, 0.02), nbest=certain(-50.0), wr=drawn(-49.0, 0.5, -49.5))
    low = below_bounds(found, "guided")
    assert low is not None
    assert (low.run, low.below, low.certain, low.nats) == ("guided", "wr", True, pytest.approx(61.0))
    assert low.note == "error bar too small: 61 below wr"
    nbest = below_bounds(found, "nbest")
    assert nbest is not None
    assert (nbest.below, nbest.nats, nbest.note) == ("wr", pytest.approx(1.0), "too low: 1 below wr")
    assert below_bounds(found, "wr") is None


@pytest.mark.parametrize(("lacking", "variance", "said"), [(0.29, 0.02, False), (0.31, 0.02, True), (0.01, None, True)])
def test_three_standard_errors_may_be_chance(
    lacking: float, variance: float | None, said: bool, whole: Evaluation
) -> None:
    """Two documents of variance 0.02: 0.2 together. Without a standard error nothing excuses it."""
    low = drawn(-50.0 - lacking, variance)
    assert (below_bounds(with_runs(whole, wr=low, nbest=certain(-50.0)), "wr") is not None) == said


def test_errors_of_two_filters_excuse_more_than_known_ones(whole: Evaluation) -> None:
    """Student's t of two degrees of freedom has as much beyond 19.2 as the normal distribution beyond 3."""
    for degrees, lacking, said in (
        (None, 0.5, True),
        (1, 0.5, False),
        (1, 1.8, False),
        (1, 2.1, True),
        (15, 0.5, True),
    ):
        low = replace(drawn(-50.0 - lacking, 0.02), degrees=degrees)
        found = with_runs(whole, dpf=low, nbest=certain(-50.0))
        assert (below_bounds(found, "dpf") is not None) == said


def test_degrees_of_freedom_are_those_of_satterthwaite(whole: Evaluation) -> None:
    """Of two equal variances twice those of one; of unequal ones those of the larger, all but; none if certain."""
    one, other = (replace(drawn(-50.0, variance), degrees=3) for variance in (0.02, 1e-6))
    found = with_runs(whole, dpf=one)
    assert found.total("dpf").degrees == pytest.approx(6.0)
    uneven = replace(found, estimates={**found.estimates, "dpf": (one, other)})
    assert uneven.total("dpf").degrees == pytest.approx(3.0, rel=1e-3)
    assert with_runs(whole, wr=drawn(-50.0, 0.02)).total("wr").degrees == math.inf
    total = found.total("dpf")
    half = stats.t.ppf(0.975, 6.0) * 0.2
    assert (total.low, total.high) == pytest.approx((-99.98 - half, -99.98 + half))
    (score, *_) = found.scores()["dpf"]
    assert (score.name, score.low, score.high) == ("log_p", total.low, total.high)
    assert "ci:filters-t95" in score.signature.split("|")
    assert with_runs(whole, nbest=certain(-50.0)).total("nbest").low is None


def test_rounding_of_single_precision_is_no_shortfall(whole: Evaluation) -> None:
    """1e-7 of 50 nats, of two documents together 7e-6, three times."""
    for lacking, single in ((5e-6, False), (2e-5, True)):
        found = with_runs(whole, dpf=drawn(-50.0 - lacking, 1e-20), nbest=certain(-50.0))
        assert (below_bounds(found, "dpf") is not None) == single
        assert below_bounds(replace(found, rounding=DOUBLE), "dpf") is not None


def test_error_bars_that_are_too_small(whole: Evaluation) -> None:
    runs = {
        "exact": Estimate(
            estimator="exact",
            log_p=-50.0,
            bound="exact",
            relative_variance=0.0,
            log_lower=-50.0,
            steps=1,
            cuts=1,
            log_upper=-50.0,
        ),
        "wor1": drawn(-50.1, 1e-8, -50.1),
        "wr": drawn(-51.0, 0.5),
        "block": drawn(-49.0, 1e-8),
        "dpf": drawn(-50.4, None),
    }
    found = shortfalls(with_runs(whole, **runs), "exact")
    assert {label: one.below for label, one in found.items()} == {"wor1": "exact", "dpf": "exact"}
    assert found["wor1"].note == "error bar too small: 0.2 below exact"
    assert found["dpf"].note == "too low: 0.8 below exact"


def test_the_best_estimate_has_an_error_of_its_own(whole: Evaluation) -> None:
    for variance, marked in ((1e-8, True), (0.02, False), (None, False)):
        found = shortfalls(with_runs(whole, dpf=drawn(-50.0, variance), wor1=drawn(-50.1, 1e-8)), "dpf")
        assert ("wor1" in found) == marked
        if marked:
            assert (found["wor1"].below, found["wor1"].certain) == ("dpf", False)
