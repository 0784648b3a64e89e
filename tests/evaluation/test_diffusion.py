"""Sentences filled in step by step: samplers against enumeration of all that they can make."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from random_grammars import cases
from scipy.stats import chisquare

from truesource.evaluation.core.oracle import Oracle
from truesource.evaluation.core.setting import Setting
from truesource.evaluation.diffusion.measure import (
    ALL,
    HIDDEN,
    ORDERS,
    ExactDenoiser,
    Filler,
    Order,
    Schedule,
    filling,
    left_to_right,
)
from truesource.evaluation.divergence.contexts import cache_truth, measure_contexts
from truesource.generator.corpus import Corpus
from truesource.generator.language_model import ScoringFrame, TokenScores, assemble_scores
from truesource.generator.objectives import Objective
from truesource.generator.plan import parse_transform
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.inference.any_order import AnyOrder
from truesource.grammar.pcfg import PCFG, language
from truesource.grammar.support.arrays import FloatArray
from truesource.grammar.support.errors import InputError, NothingToMeasureError
from truesource.lmtrain.config import TrainConfig
from truesource.lmtrain.model_registry import settings_class
from truesource.lmtrain.training import train

pytestmark = pytest.mark.long

LAW = PCFG.from_text(
    "S -> A B 0.5 | B A 0.2 | C S 0.3\nA -> 'a' 0.6 | 'c' 0.4\nB -> 'b' 0.7 | 'a' 0.3\nC -> 'c' 0.5 | 'b' 0.5"
)


class TruthAsModel:
    """The truth as a model that fills gaps, or, ``broken``, one that takes each word for the next."""

    name = "truth"
    objective: Objective = "any-order"

    def __init__(self, pcfg: PCFG, *, broken: bool = False) -> None:
        self._oracle = Oracle(pcfg, "any-order")
        self._exact = ExactDenoiser(self._oracle, pcfg.vocabulary)
        self.vocabulary = pcfg.vocabulary
        self._broken = broken

    def score(self, sentences: Sequence[Sequence[str]], frame: ScoringFrame) -> TokenScores:
        return self._oracle.score(sentences, frame)

    def denoise(self, patterns: Sequence[Sequence[str | None]]) -> FloatArray:
        table = self._exact.denoise(patterns)
        if not self._broken:
            return table
        words = len(self.vocabulary)
        return np.log(0.5 * np.exp(np.roll(table[:, :, :words], 1, axis=2)) + 0.5 / words)


def filler_of(pcfg: PCFG) -> Filler:
    return Filler(ExactDenoiser(Oracle(pcfg, "any-order"), pcfg.vocabulary), pcfg.vocabulary)


def all_rows(words: int, n: int) -> np.ndarray:
    return np.array(list(itertools.product(range(words), repeat=n)))


def test_a_schedule_fills_each_word_once_and_evenly() -> None:
    for n, steps in itertools.product(range(1, 12), (1, 2, 3, 5, 8, ALL)):
        sizes = Schedule("blocks", steps).sizes(n)
        assert sum(sizes) == n and len(sizes) == min(steps or n, n) and max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize("order", ["confidence", "blocks"])
@pytest.mark.parametrize("steps", [1, 2, ALL])
def test_what_a_sampler_makes_has_probability_one(order: Order, steps: int) -> None:
    """Paths follow from the words, so that the probabilities along them are those of a distribution over strings."""
    filler, rows = filler_of(LAW), all_rows(3, 4)
    log_q, _ = filler.log_probs(rows, Schedule(order, steps), np.random.default_rng(1))
    assert np.exp(log_q).sum() == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("order", ["confidence", "blocks"])
def test_samples_have_the_probabilities_of_their_paths(order: Order) -> None:
    filler, rows, schedule = filler_of(LAW), all_rows(3, 3), Schedule(order, 2)
    log_q, _ = filler.log_probs(rows, schedule, np.random.default_rng(1))
    number = 20_000
    place = {tuple(filler.words[i] for i in row): k for k, row in enumerate(rows.tolist())}
    drawn = [place[tuple(s)] for s in filler.sample(np.full((number, 3), HIDDEN), schedule, np.random.default_rng(2))]
    counts, expected = np.bincount(drawn, minlength=len(rows)), number * np.exp(log_q)
    assert not counts[expected == 0.0].any()
    assert chisquare(counts[expected > 0.0], expected[expected > 0.0]).pvalue > 1e-3


def test_one_step_costs_the_total_correlation_and_a_word_a_step_nothing() -> None:
    """KL(truth || sampler) of the exact denoiser over all strings of a length."""
    filler, rows = filler_of(LAW), all_rows(3, 4)
    sentences = [[filler.words[i] for i in row] for row in rows.tolist()]
    log_p = LAW.exact.string_log_probs(sentences) - math.log(LAW.exact.length_pmf(4)[4])
    possible = np.isfinite(log_p)
    found = {}
    for order, steps in itertools.product(ORDERS, (1, 2, ALL)):
        log_q, _ = filler.log_probs(rows[possible], Schedule(order, steps), np.random.default_rng(1))
        found[order, steps] = float(np.exp(log_p[possible]) @ (log_p[possible] - log_q))
    price = AnyOrder(LAW).total_correlation([[None] * 4])[0]
    for order in ORDERS:
        assert found[order, 1] == pytest.approx(price, abs=1e-12)
        assert -1e-12 < found[order, 2] < price + 1e-12
        assert abs(found[order, ALL]) < 1e-9


@settings(max_examples=20)
@given(cases(max_size=4, max_symbols=3))
def test_the_sum_over_all_orders_is_that_of_enumeration(case: tuple[PCFG, list[list[str]]]) -> None:
    """Of a denoiser that is no truth, so that orders differ."""
    pcfg, (sentence,) = case
    assume(math.isfinite(pcfg.log_prob(sentence)))
    model = TruthAsModel(pcfg, broken=True)
    filler, n = Filler(model, model.vocabulary), len(sentence)
    row = np.array([model.vocabulary.index(word) for word in sentence])
    total = []
    for order in itertools.permutations(range(n)):
        patterns = [[w if i in order[:k] else None for i, w in enumerate(sentence)] for k in range(n)]
        tables = [filler.table(np.array([[-1 if w is None else row[i] for i, w in enumerate(p)]]))[0] for p in patterns]
        total.append(sum(table[i, row[i]] for table, i in zip(tables, order, strict=True)))
    wanted = np.logaddexp.reduce(total) - math.log(len(total))
    assert filler.any_order_log_prob(row) == pytest.approx(wanted, abs=1e-10)


def test_the_truth_costs_nothing_and_a_broken_model_is_seen() -> None:
    setting = Setting(LAW, Oracle(LAW).sample(60, 1), None)
    exact, broken = (filling(TruthAsModel(LAW, broken=b), setting, steps=(1, 2), samples=60) for b in (False, True))
    assert abs(exact.scores["kl"].value) < 1e-9 and abs(exact.scores["kl_short"].value) < 1e-9
    assert abs(exact.scores["elbo_gap_short"].value) < 1e-9
    low = broken.scores["kl"].low
    assert low is not None and low > 0.1
    for schedule, denoiser, scores in broken.lines:
        if denoiser == "model":
            parts = scores["parallel"].value + scores["denoising"].value
            assert scores["kl"].value == pytest.approx(parts, abs=1e-9)
        if schedule.steps == ALL:
            key = "parallel" if denoiser == "model" else "kl"
            assert abs(scores[key].value) < 1e-9
            assert denoiser == "model" or scores["invalid"].value == 0.0
    invalid = {who: scores["invalid"].value for each, who, scores in broken.lines if each == Schedule("random", ALL)}
    assert invalid["model"] > 0.3 > invalid["exact"]
    records = broken.records()
    assert [r["name"] for r in records if "by" not in r] == ["kl", "invalid", "kl_short", "elbo_gap_short"]
    assert {(r["order"], r["fills"]) for r in records if "by" in r} == set(itertools.product(ORDERS, ("1", "2", "all")))


def test_the_elbo_of_short_sentences_lies_above_their_exact_divergence() -> None:
    setting = Setting(LAW, Oracle(LAW).sample(80, 2), None)
    found = filling(TruthAsModel(LAW, broken=True), setting, steps=(), orders=("random",), samples=0).scores
    assert found["kl_short"].value > 0.0
    gap = found["elbo_gap_short"]
    assert gap.high is not None and gap.high > 0.0


def test_a_causal_model_has_the_divergence_of_whole_sentences_and_its_wrong_samples() -> None:
    class Guess:
        """Every word and the end with probability 1/4."""

        name, vocabulary = "guess", ("a", "b", "c")
        objective: Objective = "causal"

        def score(self, sentences: Sequence[Sequence[str]], frame: ScoringFrame) -> TokenScores:
            rows = [np.full(len(sentence) + 1, math.log(0.25)) for sentence in sentences]
            return assemble_scores(rows, [np.zeros(len(s), dtype=bool) for s in sentences], frame)

        def sample(self, n: int, *, seed: int) -> SimpleNamespace:
            return SimpleNamespace(sentences=[["a", "b"], ["c"], ["b"]] * (n // 3))

    text = Oracle(LAW).sample(50, 5)
    found = left_to_right(Guess(), Setting(LAW, text, None), samples=30)
    lengths = np.array([len(sentence) + 1 for sentence in text])
    wanted = (LAW.exact.string_log_probs(text) + lengths * math.log(4.0)).mean()
    assert found.scores["kl"].value == pytest.approx(wanted, abs=1e-10)
    assert found.scores["invalid"].value == pytest.approx(2 / 3)
    assert [r["objective"] for r in found.records()] == ["causal", "causal"]
    exact = left_to_right(Oracle(LAW), Setting(LAW, text, None), samples=0)
    assert abs(exact.scores["kl"].value) < 1e-12 and "invalid" not in exact.scores


def test_sentences_in_random_orders_have_the_probability_given_their_length() -> None:
    pcfg = language("english", size="small")
    oracle = Oracle(pcfg, "any-order", vocabulary=pcfg.vocabulary[::2])
    sentences = Oracle(pcfg).sample(30, 3)
    scores = oracle.score(sentences, ScoringFrame())
    found = np.bincount(scores.sentence, scores.log_prob, minlength=30)
    lengths = [len(sentence) for sentence in sentences]
    whole = oracle.grammar.exact.string_log_probs([oracle.read(s) for s in sentences])
    wanted = whole - np.log(pcfg.exact.length_pmf(max(lengths))[lengths])
    np.testing.assert_allclose(found, wanted, rtol=0.0, atol=1e-9)


def test_the_order_of_a_transformed_text_is_that_of_its_words() -> None:
    """The model sees words in the order of the text; the truth scores the same words with the same ones known."""
    plan = parse_transform("odd-even")
    originals = [s for s in Oracle(LAW).sample(30, 4) if len(s) > 2]
    text = [plan.apply(sentence) for sentence in originals]
    rows = Oracle(LAW, "any-order", transform=plan).score(text, ScoringFrame())
    free = AnyOrder(LAW)
    from truesource.generator.objectives import ranks

    for number, (sentence, original) in enumerate(zip(text, originals, strict=True)):
        (rank,) = ranks(sentence)
        moved = plan.apply([str(i) for i in range(len(original))])  # original place of each word of the text
        for position in range(len(sentence)):
            known = {int(moved[j]) for j in range(len(sentence)) if rank[j] < rank[position]}
            pattern = [word if i in known else None for i, word in enumerate(original)]
            more = [word if i in known | {int(moved[position])} else None for i, word in enumerate(original)]
            after, before = free.log_probs([more, pattern])
            found = rows.log_prob[(rows.sentence == number) & (rows.position == position)]
            assert found[0] == pytest.approx(after - before, abs=1e-10)


def test_what_cannot_be_measured_is_refused() -> None:
    model = TruthAsModel(LAW)
    with pytest.raises(NothingToMeasureError, match="can make none"):
        filling(model, Setting(LAW, [["zebra"]], None))
    with pytest.raises(NothingToMeasureError, match="order of a grammar"):
        filling(model, Setting(LAW, [["a", "b"]], None, transform=parse_transform("odd-even")))
    with pytest.raises(InputError, match="order of the grammar alone"):
        next(Oracle(LAW, "any-order", transform=parse_transform("reversal")).distributions([["a", "b"]]))
    oracle = Oracle(LAW, "any-order")
    with pytest.raises(NothingToMeasureError, match="remove class"):
        measure_contexts(oracle, oracle, [["a", "b"]], by=("class",))


@given(cases())
def test_distributions_in_any_order_are_those_that_sentences_are_scored_by(case) -> None:
    pcfg, (sentence,) = case
    kept = pcfg.vocabulary[: max(1, len(pcfg.vocabulary) - 1)]
    texts = [sentence, sentence[::-1], [*sentence[:-1], "zebra"]]
    for vocabulary in (None, kept):
        oracle = Oracle(pcfg, "any-order", vocabulary=vocabulary)
        column = {word: i for i, word in enumerate(oracle.words)}
        blocks = [each.log_prob for each in oracle.distributions(texts)]
        assert len(blocks) == len(sentence) and blocks[0].shape == (3, len(oracle.words) + 1)
        for row, (text, log_probs) in enumerate(zip(texts, oracle.token_log_probs(texts), strict=True)):
            for block in blocks:
                total = float(np.exp(block[row]).sum())
                assert total == pytest.approx(1.0, abs=1e-12) or total == 0.0
            if not np.isfinite(log_probs).all():
                continue
            found = [block[row, column.get(word, -1)] for word, block in zip(text, blocks, strict=True)]
            np.testing.assert_allclose(found, log_probs, atol=1e-9)


def test_a_model_that_fills_gaps_is_compared_in_the_order_in_which_it_is_scored(tmp_path: Path) -> None:
    english, lengths = language("english", size="small"), LengthRange(4, 9)
    corpus = Corpus.sample(english, {"train": 300, "dev": 20}, seed=1, lengths=lengths, path=tmp_path / "corpus")
    shape = settings_class("diffusion")(architecture="diffusion", dim=16, layers=1, heads=2, max_positions=16)
    training = TrainConfig(max_steps=3, batch_tokens=128, eval_every=3)
    model = train(corpus, shape, training, tmp_path / "model", seed=1)
    texts = corpus.sentences("dev")
    setting = Setting(english, texts, lengths)
    found = measure_contexts(model, setting.full_oracle(model), texts)
    scores = model.score(texts, ScoringFrame())
    np.testing.assert_array_equal(scores.sentence, found.sentence)
    np.testing.assert_allclose(found.model, scores.log_prob, atol=1e-5)
    exact = setting.full_oracle(model).score(texts, ScoringFrame())
    np.testing.assert_allclose(found.truth, exact.log_prob, atol=1e-10)
    assert found.column("kl").min() > 0.0
    kept = cache_truth(model, setting, dtype=np.float64)
    assert kept.compare(model)["kl"] == pytest.approx(found.column("kl").mean(), abs=1e-10)
    truth = measure_contexts(setting.full_oracle(model), setting.full_oracle(model), texts)
    assert np.abs(truth.column("kl")).max() < 1e-12
