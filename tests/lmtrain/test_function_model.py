"""Models around functions: their scores, their truth in closed form, and every refusal by its code."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from truesource import FunctionModel
from truesource.evaluation.core.comparison import compare_in
from truesource.evaluation.core.setting import Setting
from truesource.evaluation.divergence.compare import compare_distributions
from truesource.generator.abilities import offers
from truesource.generator.language_model import ScoringFrame
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.errors import InputError
from truesource.lmtrain.decoding.decode import draw
from truesource.lmtrain.decoding.settings import Decoding

FRAME = ScoringFrame()
GOES_ON = 0.3
PCFG_TEXT = f"S -> 'a' S {GOES_ON} | 'b' S 0.2 | 'a' 0.1 | 'b' {0.9 - GOES_ON - 0.2}"
SENTENCES = [["a", "b"], ["a"], ["b", "b", "a"], ["b"]]


def flat(value: float, beyond: int = 1) -> Callable[[Any], Any]:
    return lambda sentences: [np.full(len(s) + beyond, value) for s in sentences]


def table(row: list[float], beyond: int = 1) -> Callable[[Any], Any]:
    return lambda sentences: [np.tile(np.log(row), (len(s) + beyond, 1)) for s in sentences]


def test_scores_are_those_of_the_function() -> None:
    numbers = [[-1.0, -2.0, -3.0], [-4.0, -5.0]]
    model = FunctionModel(lambda sentences: numbers, vocabulary=["a", "b"], name="mine")
    scores = model.score([["a", "b"], ["a"]], FRAME)
    assert scores.log_prob.tolist() == [-1.0, -2.0, -3.0, -4.0, -5.0]
    assert (model.name, model.objective, model.vocabulary) == ("mine", "causal", ("a", "b"))
    assert scores.position.tolist() == [0, 1, 2, 0, 1]


def test_words_outside_the_vocabulary_are_unknown() -> None:
    model = FunctionModel(flat(-1.0), vocabulary=["a"])
    skipping = ScoringFrame(unk="skip")
    assert model.score([["a", "x", "a"]], skipping).position.tolist() == [0, 2, 3]
    everything = FunctionModel(flat(-1.0), vocabulary=None)
    assert everything.score([["a", "x", "a"]], skipping).position.tolist() == [0, 1, 2, 3]


def test_minus_infinity_makes_a_sentence_impossible() -> None:
    model = FunctionModel(lambda sentences: [[-1.0, -np.inf], [-1.0, -1.0]], vocabulary=["a"])
    assert model.score([["a"], ["a"]], FRAME).impossible.tolist() == [0]


def test_a_masked_model_has_no_end() -> None:
    model = FunctionModel(flat(-1.0, 0), vocabulary=["a"], objective="masked")
    assert model.score([["a", "a"], []], FRAME).log_prob.tolist() == [-1.0, -1.0]


def test_log_probs_are_read_off_distributions() -> None:
    causal = FunctionModel(distributions=table([0.4, 0.3, 0.2, 0.1]), vocabulary=["a", "b"])
    expected = np.log([0.3, 0.2, 0.4, 0.1])
    assert causal.score([["b", "x", "a"]], FRAME).log_prob == pytest.approx(expected, abs=1e-15)
    masked = FunctionModel(distributions=table([0.4, 0.3, 0.2], 0), vocabulary=["a", "b"], objective="masked")
    assert masked.score([["b", "x", "a"]], FRAME).log_prob == pytest.approx(expected[:3], abs=1e-15)


def test_the_divergence_of_a_unigram_model_has_a_closed_form() -> None:
    """In every context but the first, P(a) = 0.3 q', ..., where the sentence goes on with probability 0.5."""
    pcfg = PCFG.from_text(PCFG_TEXT)
    q = {"a": 0.35, "b": 0.25, "unk": 0.1, "end": 0.3}
    model = FunctionModel(distributions=table(list(q.values())), vocabulary=["a", "b"], name="unigram")
    words = {"a": GOES_ON + 0.1, "b": 0.2 + 0.4}  # of the first word
    goes_on = {"a": GOES_ON / words["a"], "b": 0.2 / words["b"]}  # after a word

    def kl(before: str | None) -> float:
        p = {w: x * (1.0 if before is None else goes_on[before]) for w, x in words.items()}
        p["end"] = 0.0 if before is None else 1.0 - goes_on[before]
        return sum(x * math.log(x / q[w]) for w, x in p.items() if x)

    contexts = [before for sentence in SENTENCES for before in (None, *sentence)]
    expected = sum(map(kl, contexts)) / len(contexts)
    found = compare_distributions(model, Setting(pcfg, SENTENCES, lengths=None, seed=1))
    assert found.scores["kl"].value == pytest.approx(expected, abs=1e-10)


def test_the_relative_perplexity_of_a_uniform_model_has_a_closed_form() -> None:
    pcfg = PCFG.from_text(PCFG_TEXT)
    model = FunctionModel(flat(-math.log(4)), vocabulary=["a", "b"], name="uniform")
    found = compare_in(model, Setting(pcfg, SENTENCES))
    tokens = sum(len(sentence) + 1 for sentence in SENTENCES)
    true = sum(pcfg.log_prob(sentence) for sentence in SENTENCES) / tokens
    assert found.measures["ppl"].value == pytest.approx(4.0, abs=1e-10)
    assert found.measures["relative_ppl"].value == pytest.approx(math.exp(true + math.log(4)), abs=1e-10)
    assert found.measures["kl"].value == pytest.approx(true + math.log(4), abs=1e-10)


def test_text_is_drawn_from_distributions() -> None:
    model = FunctionModel(distributions=table([0.4, 0.2, 0.1, 0.3]), vocabulary=["a", "b"])
    drawn = draw(model, 2000, Decoding(), seed=1)
    counts = np.bincount([len(sentence) for sentence in drawn.sentences], minlength=3)
    assert counts[0] / 2000 == pytest.approx(0.3, abs=4 * math.sqrt(0.21 / 2000))
    words = [word for sentence in drawn.sentences for word in sentence]
    for word, share in {"a": 4 / 7, "b": 2 / 7, "<unk>": 1 / 7}.items():
        assert words.count(word) / len(words) == pytest.approx(share, abs=4 * 0.5 / math.sqrt(len(words)))
    scores = model.score([drawn.sentences[0]], FRAME)
    assert drawn.log_prob[0] == pytest.approx(scores.log_prob.sum(), abs=1e-12)


def test_it_has_the_abilities_that_its_functions_give() -> None:
    scored = FunctionModel(flat(-1.0), vocabulary=["a"])
    full = FunctionModel(distributions=table([0.5, 0.1, 0.4]), vocabulary=["a"])
    masked = FunctionModel(distributions=table([0.5, 0.5], 0), vocabulary=["a"], objective="masked")
    assert [offers(m, "distributions") for m in (scored, full, masked)] == [False, True, True]
    assert [offers(m, "stepping") for m in (scored, full, masked)] == [False, True, False]
    assert [offers(m, "words") for m in (scored, FunctionModel(flat(-1.0), vocabulary=None))] == [True, False]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"vocabulary": ["a"]}, "not-a-model"),
        ({"log_probs": flat(-1.0), "vocabulary": ["a", "a"]}, "vocabulary"),
        ({"log_probs": flat(-1.0), "vocabulary": ["a", ""]}, "vocabulary"),
        ({"log_probs": flat(-1.0), "vocabulary": ["a b"]}, "vocabulary"),
        ({"log_probs": flat(-1.0), "vocabulary": ["a", 3]}, "vocabulary"),
        ({"log_probs": flat(-1.0), "vocabulary": "ab"}, "vocabulary"),
        ({"log_probs": flat(-1.0), "vocabulary": ["a"], "objective": "both"}, "not-a-model"),
        ({"log_probs": flat(-1.0), "vocabulary": ["a"], "name": ""}, "not-a-model"),
        ({"distributions": flat(-1.0), "vocabulary": None}, "vocabulary"),
    ],
)
def test_what_makes_no_model_is_refused(arguments: dict[str, Any], code: str) -> None:
    with pytest.raises(InputError) as caught:
        FunctionModel(**arguments)
    assert caught.value.code == code


def fails(sentences: Any) -> Any:
    return sentences[99]


@pytest.mark.parametrize(
    ("function", "code"),
    [
        (lambda sentences: [[-1.0] * 3], "not-scores"),
        (lambda sentences: [[-1.0] * 3] * 3, "not-scores"),
        (flat(-1.0, 0), "not-scores"),
        (flat(-1.0, 2), "not-scores"),
        (lambda sentences: [[[-1.0] * 3]] * 2, "not-scores"),
        (flat(float("nan")), "not-log-probabilities"),
        (flat(math.inf), "not-log-probabilities"),
        (flat(2.5), "not-log-probabilities"),
        (lambda sentences: [["x"] * 3] * 2, "code-failed"),
        (lambda sentences: None, "not-scores"),
        (fails, "code-failed"),
        (lambda sentences: [np.full(3, -1.0 + 0.5j)] * 2, "complex"),
        (lambda sentences: [[complex(-1.0)] * 3] * 2, "complex"),
    ],
)
def test_what_are_no_log_probs_is_refused(function: Callable[[Any], Any], code: str) -> None:
    with pytest.raises(InputError) as caught:
        FunctionModel(function, vocabulary=["a"]).score([["a", "a"], ["a", "a"]], FRAME)
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("function", "code"),
    [
        (table([0.5, 0.6, 0.1]), "not-log-probabilities"),
        (table([0.5, 0.5]), "not-distributions"),
        (table([0.5, 0.4, 0.1], 0), "not-distributions"),
        (lambda sentences: [], "not-scores"),
        (fails, "code-failed"),
        (lambda sentences: [np.full((2, 3), -2.0 + 0.5j)], "complex"),
    ],
)
def test_what_are_no_distributions_is_refused(function: Callable[[Any], Any], code: str) -> None:
    model = FunctionModel(distributions=function, vocabulary=["a"])
    for asked in (lambda: list(model.distributions([["a"]])), lambda: model.score([["a"]], FRAME)):
        with pytest.raises(InputError) as caught:
            asked()
        assert caught.value.code == code


def test_a_sentence_of_another_length_is_named() -> None:
    model = FunctionModel(lambda sentences: [[-1.0, -1.0], [-1.0]], vocabulary=["a"], name="mine")
    with pytest.raises(InputError) as caught:
        model.score([["a"], ["b", "a"]], FRAME)
    assert "sentence 2 ('b a')" in caught.value.reason and "expected 3" in caught.value.reason


@pytest.mark.long
def test_it_needs_no_torch() -> None:
    made = (
        "import sys; from truesource import FunctionModel;"
        "from truesource.generator.language_model import ScoringFrame;"
        "FunctionModel(lambda s: [[-1.0, -1.0]], vocabulary=['a']).score([['a']], ScoringFrame());"
        "print('torch' in sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", made], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"
