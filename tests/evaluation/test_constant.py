"""Models without context, against the language itself."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from truesource.evaluation.core.oracle import Oracle
from truesource.evaluation.core.word_frequencies import (
    ConstantModel,
    counted_frequencies,
    equal_frequencies,
    true_frequencies,
)
from truesource.generator.language_model import ScoringFrame
from truesource.generator.objectives import Objective
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import FloatArray

GRAMMAR = "S -> 'a' S 0.3 | 'b' S 0.3 | 'a' 0.2 | 'c' 0.2\n"
WORDS = ("a", "b", "c")


@pytest.fixture
def pcfg(tmp_path: Path) -> PCFG:
    (tmp_path / "toy.txt").write_text(GRAMMAR, encoding="utf-8")
    return PCFG.load(tmp_path / "toy.txt")


def law_of(lengths: LengthRange) -> dict[tuple[str, ...], float]:
    """All strings of the language with their probabilities, given the range of lengths."""
    found: dict[tuple[str, ...], float] = {}

    def grow(prefix: tuple[str, ...], p: float) -> None:
        if len(prefix) + 1 in lengths:
            found.update({(*prefix, word): p * 0.2 for word in ("a", "c")})
        if len(prefix) + 1 < lengths.high:
            for word in ("a", "b"):
                grow((*prefix, word), p * 0.3)

    grow((), 1.0)
    total = sum(found.values())
    return {string: p / total for string, p in found.items()}


def probabilities(model: ConstantModel) -> FloatArray:
    return np.exp(next(iter(model.distributions([["a"]]))).log_prob[0])


@pytest.mark.parametrize("objective", ["causal", "masked"])
def test_true_frequencies_are_those_of_the_enumerated_language(pcfg: PCFG, objective: Objective) -> None:
    lengths = LengthRange(2, 5)
    law = law_of(lengths)
    expected = [sum(p * string.count(word) for string, p in law.items()) for word in WORDS]
    counts = np.array([*expected, 0.0, 1.0] if objective == "causal" else [*expected, 0.0])
    model = true_frequencies(Oracle(pcfg, objective, lengths=lengths, vocabulary=WORDS))
    assert model.vocabulary == WORDS
    assert probabilities(model) == pytest.approx(counts / counts.sum(), abs=1e-12)


def test_words_outside_the_vocabulary_are_one_word(pcfg: PCFG) -> None:
    lengths = LengthRange(1, 4)
    whole = probabilities(true_frequencies(Oracle(pcfg, lengths=lengths, vocabulary=WORDS)))
    some = probabilities(true_frequencies(Oracle(pcfg, lengths=lengths, vocabulary=["a"])))
    assert some == pytest.approx([whole[0], whole[1] + whole[2], whole[4]], abs=1e-12)


def test_they_are_the_best_model_without_context(pcfg: PCFG) -> None:
    """The expected log probability falls wherever one of the probabilities is changed."""
    lengths = LengthRange(1, 6)
    best, law = true_frequencies(Oracle(pcfg, lengths=lengths, vocabulary=WORDS)), law_of(lengths)
    chance = np.array(list(law.values()))

    def expected(model: ConstantModel) -> float:
        scores = model.score(list(law), ScoringFrame())
        return float(chance[scores.sentence] @ scores.log_prob)

    for column in (0, 1, 2, 4):
        for factor in (0.9, 1.1):
            changed = probabilities(best).copy()
            changed[column] *= factor
            assert expected(ConstantModel("changed", "causal", WORDS, changed)) < expected(best) - 1e-6


def test_counts_have_one_added() -> None:
    counts = {"a": 3, "b": 1}
    causal = counted_frequencies("counted", counts, 2, "causal")
    assert probabilities(causal) == pytest.approx(np.array([4, 2, 1, 3]) / 10.0, abs=1e-15)
    masked = counted_frequencies("counted", counts, 2, "masked")
    assert probabilities(masked) == pytest.approx(np.array([4, 2, 1]) / 7.0, abs=1e-15)


def test_scores_are_those_of_its_distribution(pcfg: PCFG) -> None:
    model = equal_frequencies(Oracle(pcfg, lengths=LengthRange(1, 4)))
    scores = model.score([["a", "x"], ["c"]], ScoringFrame())
    assert scores.log_prob == pytest.approx(np.full(5, -np.log(5.0)))
    assert scores.position.tolist() == [0, 1, 2, 0, 1]


@pytest.mark.parametrize("weight", [[1.0, 1.0], [1.0, -1.0, 1.0], [0.0, 0.0, 0.0], [1.0, float("nan"), 1.0]])
def test_weights_that_are_none_are_refused(weight: list[float]) -> None:
    with pytest.raises(ValueError, match="weight"):
        ConstantModel("wrong", "causal", ["a"], weight)
