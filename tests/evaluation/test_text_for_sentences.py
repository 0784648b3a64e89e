"""A sentence may be text: it is split at white space, in the same way everywhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from truesource.evaluation.core.oracle import Oracle
from truesource.generator.columns import CodedSentences
from truesource.generator.language_model import ScoringFrame
from truesource.grammar.languages import load_language
from truesource.grammar.pcfg import PCFG, language
from truesource.grammar.process import Process
from truesource.lmtrain.truth import ExactTargets

PCFG_TOY = PCFG.from_text("S -> NP VP 1\nNP -> the cat 0.5 | the dog 0.5\nVP -> ran 0.75 | sat VP 0.25")
WORDS = ["the", "cat", "sat", "ran"]
TEXT = " the cat\tsat ran\n"
CALLS: dict[str, Callable[[Any], Any]] = {
    "log_prob": PCFG_TOY.log_prob,
    "prefix_log_prob": PCFG_TOY.prefix_log_prob,
    "next_token": lambda s: PCFG_TOY.next_token(s).probability.tolist(),
    "masked": lambda s: PCFG_TOY.masked(s, 1).tolist(),
    "viterbi": lambda s: str(PCFG_TOY.viterbi(s)),
    "encode": lambda s: PCFG_TOY.encode(s).tolist(),
    "oracle.next_token": lambda s: Oracle(PCFG_TOY, "causal").next_token(s).probability.tolist(),
}
OF_MANY: dict[str, Callable[[Any], Any]] = {
    "string_log_probs": lambda s: PCFG_TOY.exact.string_log_probs(s).tolist(),
    "beliefs": lambda s: PCFG_TOY.beliefs(s).values.tolist(),
    "oracle.score": lambda s: Oracle(PCFG_TOY, "causal").score(s, ScoringFrame()).log_prob.tolist(),
    "oracle.token_log_probs": lambda s: [row.tolist() for row in Oracle(PCFG_TOY, "causal").token_log_probs(s)],
    "coded": lambda s: list(CodedSentences.of(s)),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_sentence_is_text_or_words(name: str) -> None:
    assert CALLS[name](TEXT) == CALLS[name](WORDS)
    assert CALLS[name](tuple(WORDS)) == CALLS[name](WORDS)


@pytest.mark.parametrize("name", OF_MANY)
def test_sentences_are_texts_or_words(name: str) -> None:
    call = OF_MANY[name]
    assert call([TEXT, TEXT]) == call([WORDS, WORDS])
    assert call([TEXT, WORDS]) == call([WORDS, WORDS])
    assert call(TEXT) == call([WORDS])  # one text is one sentence


def test_keywords_are_converted_too() -> None:
    assert PCFG_TOY.log_prob(sentence=TEXT) == PCFG_TOY.log_prob(WORDS)
    assert np.isfinite(PCFG_TOY.log_prob(sentence=TEXT))


def test_processes_take_text() -> None:
    process = load_language("z1r")
    truth = process if isinstance(process, Process) else PCFG.of(process)  # type: ignore[arg-type]
    words = list(truth.vocabulary[:1]) * 2
    assert truth.log_prob(" ".join(words)) == truth.log_prob(words)


def test_exact_targets_take_text() -> None:
    order = {word: i for i, word in enumerate(PCFG_TOY.vocabulary)}
    assert order
    targets = ExactTargets(PCFG_TOY, sentences=[WORDS])
    one, other = targets.batch([TEXT]), targets.batch([WORDS])
    assert all(torch.equal(one[name], other[name]) for name in one)  # type: ignore[literal-required]


def test_languages_take_text() -> None:
    assert language("dyck:k=1").log_prob("(1 1)") == language("dyck:k=1").log_prob(["(1", "1)"])
