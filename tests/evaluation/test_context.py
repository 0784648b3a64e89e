"""Models beside the best predictors that see k words: constructed cases with known answers."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from toy_models import END, Table

from truesource.evaluation.context.measure import ALL, ContextUse, context_use
from truesource.evaluation.core.comparison import compare_in
from truesource.evaluation.core.oracle import Oracle
from truesource.evaluation.core.setting import Setting
from truesource.evaluation.core.windows import BestWithin, window_name
from truesource.evaluation.core.word_frequencies import true_frequencies
from truesource.evaluation.divergence.compare import compare_distributions
from truesource.generator.language_model import DistributionModel, ScoringFrame
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.errors import InputError, NothingToMeasureError

LENGTHS = LengthRange(2, 9)
PALINDROMES = PCFG.from_text(
    "S -> A T 0.3 | B U 0.3 | A A 0.2 | B B 0.2\nT -> S A 1.0\nU -> S B 1.0\nA -> a 1.0\nB -> b 1.0"
)
SETTING = Setting(PALINDROMES, Oracle(PALINDROMES, lengths=LENGTHS).sample(400, 3), lengths=LENGTHS)


def use(model: DistributionModel, **more: object) -> ContextUse:
    return context_use(model, SETTING, **{"words": 3, **more})  # type: ignore[arg-type]


@pytest.mark.long
@pytest.mark.parametrize("placed", [False, True])
def test_the_truth_is_nearest_to_itself_and_below_every_line(placed: bool) -> None:
    found = use(Oracle(PALINDROMES, lengths=LENGTHS), placed=placed)
    assert found.scores["effective_context"].value == 4
    assert (found.scores["effective_context"].low, found.scores["effective_context"].high) == (4, 4)
    assert found.scores["words_passed"].value == 3
    assert found.scores["loss"].value == found.scores["loss_truth"].value
    assert found.lines[ALL]["distance"].value == pytest.approx(0.0, abs=1e-12)
    losses = [found.lines[str(k)]["loss"].value for k in range(4)] + [found.scores["loss_truth"].value]
    assert all(a > b for a, b in itertools.pairwise(losses))
    assert found.scores["excess_entropy"].value == pytest.approx(sum(losses) - 5 * losses[-1], abs=1e-10)
    for k in range(4):
        line = found.lines[str(k)]
        assert line["model_above"].value == pytest.approx(-line["above_truth"].value, abs=1e-12)
        assert "distance_infinite" in line  # what k words allow, the truth may not
        assert f"seen:{k}{'/placed' if placed else ''}|" in line["loss"].signature


@pytest.mark.long
@pytest.mark.parametrize("placed", [False, True])
@pytest.mark.parametrize("k", [0, 1, 2, 3])
def test_a_predictor_of_k_words_is_found_to_be_one(k: int, placed: bool) -> None:
    found = use(BestWithin(PALINDROMES, k, placed=placed, lengths=LENGTHS), placed=placed)
    assert found.scores["effective_context"].value == k
    line = found.lines[str(k)]
    assert line["model_above"].value == pytest.approx(0.0, abs=1e-12)
    assert line["distance"].value == pytest.approx(0.0, abs=1e-12)
    passed = found.scores.get("words_passed")
    assert (None if passed is None else passed.value) == (k - 1 if k else None)


@pytest.mark.long
def test_frequencies_alone_are_no_word() -> None:
    constant = true_frequencies(Oracle(PALINDROMES, lengths=LENGTHS, vocabulary=PALINDROMES.vocabulary))
    found = use(constant)
    assert found.scores["effective_context"].value == 0
    assert found.lines["0"]["distance"].value == pytest.approx(0.0, abs=1e-12)
    assert "words_passed" not in found.scores


@pytest.mark.long
def test_distances_are_the_sums_over_all_words() -> None:
    """By hand: two words, a model that never sees more than one."""
    row = {"<unk>": 1e-9, "a": 0.5, "b": 0.25, END: 0.25}
    model = Table({"<s>": row, "a": {**row, "a": 0.25, "b": 0.5}, "b": row, "<unk>": row}, ("a", "b"))
    setting = Setting(PALINDROMES, [list("abba")], lengths=LENGTHS)
    line = context_use(model, setting, words=1).lines["1"]
    rows = {"": row, "a": {**row, "a": 0.25, "b": 0.5}, "b": row}
    best = BestWithin(PALINDROMES, 1, lengths=LENGTHS, vocabulary=("a", "b"))
    total = loss = 0.0
    for block, before, word in zip(best.distributions([list("abba")]), ["", *"abba"], [*"abba", END], strict=True):
        p = np.exp(block.log_prob[0])
        for i, event in enumerate(("a", "b", "<unk>", END)):
            total += p[i] * math.log(p[i] / rows[before][event]) if p[i] > 0.0 else 0.0
            loss -= math.log(p[i]) if event == word else 0.0
    assert line["distance"].value == pytest.approx(total / 5, abs=1e-10)
    assert line["loss"].value == pytest.approx(loss / 5, abs=1e-10)


@pytest.mark.long
def test_a_predictor_is_a_model_like_others() -> None:
    best = BestWithin(PALINDROMES, 2, lengths=LENGTHS)
    compared = {
        s.name: s.value for s in compare_in(best, Setting(PALINDROMES, SETTING.sentences, lengths=LENGTHS)).as_scores()
    }
    exact = compare_distributions(best, SETTING).scores["kl"]
    assert exact.low is not None and exact.high is not None
    assert exact.low < compared["kl"] < exact.high
    small = BestWithin(PALINDROMES, 2, lengths=LENGTHS, vocabulary=["a"])
    read = small.score([["a", "x", "a"], ["a", "a"]], ScoringFrame())
    assert read.impossible.tolist() == [] and small.words == ("a",)  # to it, every other word is the same
    assert [window_name(k) for k in range(3)] == ["no word", "1 word", "2 words"]


def test_what_cannot_be_compared_is_refused() -> None:
    with pytest.raises(NothingToMeasureError, match="a masked model sees the words after a token"):
        use(Oracle(PALINDROMES, "masked"))
    with pytest.raises(InputError, match="a predictor sees 0 words or more, got -1"):
        BestWithin(PALINDROMES, -1, lengths=LENGTHS)


@pytest.mark.long
def test_sentences_that_the_truth_cannot_make_are_left_out() -> None:
    some = [*SETTING.sentences[:30], list("aab"), ["a", "x"]]
    found = context_use(Oracle(PALINDROMES, lengths=LENGTHS), Setting(PALINDROMES, some, lengths=LENGTHS), words=1)
    assert found.impossible.tolist() == [30, 31]
    assert found.contexts == sum(len(s) + 1 for s in some[:30])


@pytest.mark.long
def test_means_of_few_sentences_say_why_they_have_no_interval_and_counts_do_not() -> None:
    few = Setting(PALINDROMES, SETTING.sentences[:6], lengths=LENGTHS)
    scores = context_use(Oracle(PALINDROMES, lengths=LENGTHS), few, words=1).scores
    assert scores["words_passed"].as_record()["value"] == 1
    assert "no_interval" not in scores["words_passed"].as_record()
    assert scores["effective_context"].as_record()["no_interval"] == "fewer-than-10-sentences"
    assert scores["loss"].as_record()["no_interval"] == "fewer-than-10-sentences"
