"""The truth behind the interfaces of other programs, against its own probabilities."""

from __future__ import annotations

import math
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.errors import InputError
from truesource.studies.compare.scorers import TruthRequests, TruthScorer, harness_model

TEXT = "S -> NP VP 1.0\nNP -> T N 1.0\nT -> the 1.0\nVP -> V NP 0.6 | sleeps 0.4\nN -> dog 0.7 | cat 0.3\nV -> sees 1.0"
GRAMMAR = PCFG.from_text(TEXT)
SCORER = TruthScorer(GRAMMAR)
MODEL = TruthRequests(GRAMMAR)


def total(scores: Any) -> float:
    return float(scores.sum(0).item())


def requests(*pairs: tuple[Any, ...]) -> list[Any]:
    return [SimpleNamespace(args=pair) for pair in pairs]


def test_scores_of_texts_are_those_of_the_grammar() -> None:
    texts = ["the cat sleeps", "the dog sees the cat"]
    whole = SCORER.sequence_score(texts, reduction=total, eos_token=True)
    assert whole == pytest.approx([GRAMMAR.log_prob(text.split()) for text in texts], abs=1e-12)
    begun = SCORER.sequence_score(texts, reduction=total)
    assert begun == pytest.approx([GRAMMAR.prefix_log_prob(text.split()) for text in texts], abs=1e-12)
    assert SCORER.sequence_score("the cat sleeps") == pytest.approx([math.log(0.3 * 0.4) / 3])
    assert SCORER.sequence_score("the cat", reduction=total, base_two=True) == pytest.approx([math.log2(0.3)])
    assert SCORER.sequence_score("the cat", prob=True) == pytest.approx([0.65])
    assert SCORER.sequence_score("the the dog", reduction=total) == [-math.inf]


def test_scores_given_a_prefix_are_differences() -> None:
    found = SCORER.conditional_score(["the dog", ""], ["sees the cat", "the cat"], reduction=total)
    assert found == pytest.approx([math.log(0.6 * 0.3), math.log(0.3)], abs=1e-12)
    with pytest.raises(InputError, match="1 prefixes and 2 stimuli"):
        SCORER.conditional_score("a", ["b", "c"])


def test_scores_of_words_and_their_ranks() -> None:
    (row,) = SCORER.token_score("the cat sleeps", rank=True, eos_token=True)
    assert [(word, rank) for word, _, rank in row] == [("the", 1), ("cat", 2), ("sleeps", 2), ("<eos>", 1)]
    assert [score for _, score, _ in row] == pytest.approx([0.0, math.log(0.3), math.log(0.4), 0.0], abs=1e-12)
    (bits,) = SCORER.token_score(["the cat"], surprisal=True, base_two=True)
    assert bits == [("the", pytest.approx(0.0)), ("cat", pytest.approx(-math.log2(0.3)))]
    (unknown,) = SCORER.token_score("the bird sleeps")
    assert [score for _, score in unknown] == [0.0, -math.inf, -math.inf]


def test_requests_of_the_harness() -> None:
    asked = requests(
        ("the", " dog sees the dog<eos>"), ("the", " cat"), ("", "the cat sleeps<eos>"), ("the dog ", "sees")
    )
    found = MODEL.loglikelihood(asked)
    wanted = [math.log(0.7 * 0.6 * 0.7), math.log(0.3), math.log(0.3 * 0.4), math.log(0.6)]
    assert [log_prob for log_prob, _ in found] == pytest.approx(wanted, abs=1e-12)
    assert [greedy for _, greedy in found] == [True, False, False, True]
    rolling = MODEL.loglikelihood_rolling(requests(("the cat sleeps<eos>",), ("the cat",)))
    assert rolling == pytest.approx([math.log(0.3 * 0.4), math.log(0.3)], abs=1e-12)
    for pair in (("the do", "g"), ("the", " "), ("", "")):
        with pytest.raises(InputError):
            MODEL.loglikelihood(requests(pair))


def test_the_harness_generates_the_most_probable_words() -> None:
    asked = requests(("the", {}), ("the cat ", {"until": ["the"]}), ("", {"max_gen_toks": 2}))
    assert MODEL.generate_until(asked) == [" dog sees the dog", "sees ", "the dog"]
    with pytest.raises(InputError, match="without do_sample"):
        MODEL.generate_until(requests(("the", {"do_sample": True})))


def test_the_model_is_one_of_the_harness(monkeypatch: pytest.MonkeyPatch) -> None:
    class LM:
        def __init__(self) -> None:
            self.rank = 0

    for name in ("lm_eval", "lm_eval.api", "lm_eval.api.model"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setattr(sys.modules["lm_eval.api.model"], "LM", LM, raising=False)
    model = harness_model(GRAMMAR)
    assert isinstance(model, LM) and model.rank == 0
    assert model.loglikelihood(requests(("the", " dog"))) == MODEL.loglikelihood(requests(("the", " dog")))
    monkeypatch.setitem(sys.modules, "lm_eval.api.model", None)
    with pytest.raises(InputError, match="pip install"):
        harness_model(GRAMMAR)
