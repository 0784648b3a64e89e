"""Calls that people make in Python at first: accepted, or refused in one sentence that says what to write."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import truesource as ts
from truesource.grammar.pcfg import PCFG

GRAMMAR = PCFG.from_text("S -> a S 0.5 | b 0.5")
TEXTS = [["a", "b"], ["b"], ["a", "a", "b"], ["b"]]


def uniform(name: str = "flat") -> ts.FunctionModel:
    import numpy as np

    return ts.FunctionModel(
        lambda sentences: [np.full(len(s) + 1, np.log(1 / 3)) for s in sentences], name=name, vocabulary=["a", "b"]
    )


def truth() -> ts.Oracle:
    return ts.Oracle(GRAMMAR)


ACCEPTED: dict[str, Callable[[Path], Any]] = {
    "a list of models": lambda _: ts.compare([uniform(), uniform("other")], TEXTS, GRAMMAR),
    "a list of one model": lambda _: ts.compare([uniform()], TEXTS, GRAMMAR),
    "a path as truth": lambda f: ts.compare(uniform(), TEXTS, f / "g.npz"),
    "a language as truth": lambda _: ts.Oracle("dyck:k=1").score([["(1", "1)"]], ts.ScoringFrame()),
    "a pair as lengths": lambda _: ts.compare(uniform(), TEXTS, GRAMMAR, lengths=(1, 3)),
    "text as lengths": lambda _: ts.Oracle(GRAMMAR, lengths="1..3"),  # type: ignore[arg-type]
    "texts as sentences": lambda _: ts.compare(uniform(), ["a b", "b"], GRAMMAR),
    "a corpus with a pair": lambda f: ts.Corpus.sample(GRAMMAR, {"train": 5}, seed=1, path=f / "c", lengths=(1, 9)),
    "an architecture by name": lambda f: ts.train(TEXTS, "ngram", None, f / "m", seed=1),
}
REFUSED: dict[str, tuple[Callable[[Path], Any], str]] = {
    "one model of seeds": (
        lambda _: ts.compare({"a": [uniform(), uniform()]}, TEXTS, GRAMMAR),
        "expecting two or more models",
    ),
    "swapped": (lambda _: ts.compare(GRAMMAR, TEXTS, uniform()), "models come first"),  # type: ignore[arg-type]
    "swapped, many": (
        lambda _: ts.compare(GRAMMAR, [uniform()], TEXTS),  # type: ignore[arg-type]
        "models come first",
    ),
    "the truth as a text": (lambda _: ts.compare(uniform(), GRAMMAR, TEXTS), "the order is model, text"),  # type: ignore[arg-type]
    "no truth": (lambda _: ts.compare(uniform(), TEXTS, 3), "as the truth, got int"),  # type: ignore[arg-type]
    "several, no truth": (lambda _: ts.compare([uniform(), uniform("x")], TEXTS), "oracle=GRAMMAR"),
    "a missing file": (lambda f: ts.Oracle(f / "no.npz"), "no.npz"),  # type: ignore[arg-type]
    "a reference for a model": (lambda _: ts.compare("m", TEXTS, GRAMMAR), "there is no"),
    "three lengths": (lambda _: ts.Oracle(GRAMMAR, lengths=(1, 2, 3)), r"such as LengthRange\(6, 25\)"),  # type: ignore[arg-type]
    "lr": (lambda _: ts.TrainConfig(lr=1e-3), "TrainConfig: lr: unknown key; did you mean learning_rate"),  # type: ignore[call-arg]
    "n_layer": (lambda _: ts.model_settings("gpt2", n_layer=2), "n_layer: unknown key; did you mean layers"),
    "hidden_size": (lambda _: ts.model_settings("gpt2", hidden_size=2), "did you mean dim"),
    "an architecture": (lambda f: ts.train(TEXTS, "gtp2", None, f / "m", seed=1), "gtp2"),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    GRAMMAR.save(tmp_path / "g.npz")
    return tmp_path


@pytest.mark.parametrize("call", ACCEPTED)
def test_what_is_accepted(call: str, folder: Path) -> None:
    assert ACCEPTED[call](folder) is not None


@pytest.mark.parametrize("call", REFUSED)
def test_what_is_refused_in_one_sentence(call: str, folder: Path) -> None:
    act, message = REFUSED[call]
    with pytest.raises(ValueError, match=message) as caught:
        act(folder)
    assert "\n" not in str(caught.value)
