"""Calls that people make in Python at first: accepted, or refused in one sentence that says what to write."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import truesource as ts
from truesource.grammar.pcfg import PCFG

GRAMMAR = PCFG.from_text("S -> a S 0.5 | b 0.5")
TEXTS = [["a", "b"], ["b"], ["a", "a", "b"], ["b"]]


def uniform(name: str = "flat") -> ts.FunctionModel:
    return ts.FunctionModel(
        lambda sentences: [np.full(len(s) + 1, np.log(1 / 3)) for s in sentences], name=name, vocabulary=["a", "b"]
    )


def truth() -> ts.Oracle:
    return ts.Oracle(GRAMMAR)


def folder_of(f: Path) -> ts.Corpus:
    return ts.sample(GRAMMAR, 120, f / "c")


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
    "an array as sentences": lambda _: ts.compare(uniform(), np.array(["a b", "b"]), GRAMMAR),
    "a column as sentences": lambda _: ts.compare(uniform(), pd.Series(["a b", "b"]), GRAMMAR),
    "a column to train on": lambda _: ts.train(pd.Series(["a b", "b"]), "ngram"),
    "a number and a seed of numpy": lambda _: ts.sample(GRAMMAR, np.int64(5), seed=np.int64(3)),  # type: ignore[arg-type]
    "an array as lengths": lambda _: ts.Oracle(GRAMMAR, lengths=np.array([1, 3])),  # type: ignore[arg-type]
    "training settings as keywords": lambda _: ts.train(
        TEXTS, ts.model_settings("gpt2", layers=1, dim=8, heads=1), max_steps=1
    ),
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
    "an architecture": (lambda f: ts.train(TEXTS, "gtp2", None, f / "m", seed=1), "did you mean gpt2"),
    "an architecture of settings": (lambda _: ts.model_settings("ngrm"), "did you mean ngram"),
    "swapped, to train": (lambda f: ts.train("gpt2", folder_of(f)), "got Corpus; the order is corpus, model"),  # type: ignore[arg-type]
    "a number as training": (lambda _: ts.train(TEXTS, "gpt2", 20), "such as {'max_steps': 20}, got 20"),  # type: ignore[arg-type]
    "the folder under another name": (
        lambda f: ts.train(TEXTS, "ngram", out=f / "m"),
        "the folder of the model is path=, not out=",
    ),
    "a keyword of training": (lambda _: ts.train(TEXTS, "gpt2", max_step=1), "did you mean max_steps"),
    "a keyword of the model": (lambda _: ts.train(TEXTS, "gpt2", layers=1), "layers is a setting of the model"),
    "a keyword next to a TrainConfig": (
        lambda _: ts.train(TEXTS, "gpt2", ts.TrainConfig(max_steps=1), max_steps=2),
        "max_steps is given next to a TrainConfig",
    ),
    "nothing to train on": (lambda _: ts.train("nowhere", "ngram"), "there is no such file or folder"),
    "a table to train on": (lambda _: ts.train(pd.DataFrame({"text": ["a"]}), "ngram"), "pass one of its columns"),  # type: ignore[arg-type]
    "numbers to train on": (lambda _: ts.train([[1, 2]], "ngram"), "1 in it is not a word"),  # type: ignore[list-item]
    "numbers as words": (lambda _: ts.compare(uniform(), [[1, 2]], GRAMMAR), "1 in it is not a word"),
    "a corpus to score": (lambda f: ts.Oracle(GRAMMAR).score(folder_of(f)), "not a corpus of several splits"),  # type: ignore[arg-type]
    "a corpus as truth": (lambda f: ts.sample(folder_of(f), 5), "corpus.truth"),  # type: ignore[arg-type]
    "no words to infill": (lambda _: ts.infill(GRAMMAR, None), "expecting a sentence"),  # type: ignore[arg-type]
    "one string as a text": (lambda _: ts.Text("a b"), "got one string"),  # type: ignore[arg-type]
    "a range": (lambda _: ts.Oracle(GRAMMAR, lengths=range(6, 26)), r"such as \(6, 25\)"),  # type: ignore[arg-type]
    "a setting of sample": (lambda _: ts.sample(GRAMMAR, 5, sed=1), "did you mean seed"),
    "shares as a list": (lambda _: ts.sample(GRAMMAR, 5, shares=[0.5, 0.5]), "write shares by split"),  # type: ignore[arg-type]
    "a number as path": (lambda _: ts.sample(GRAMMAR, 5, 7), "path of a folder to create"),  # type: ignore[arg-type]
    "an empty path": (lambda _: ts.bound(""), "path of a corpus or text file, got ''"),
    "no path": (lambda _: ts.Corpus.load(None), "path of a corpus folder"),  # type: ignore[arg-type]
    "no path of a grammar": (lambda _: ts.PCFG.load(None), "path of a grammar"),  # type: ignore[arg-type]
    "no text of a grammar": (lambda _: ts.PCFG.from_text(Path("g.txt")), "PCFG.load reads files"),  # type: ignore[arg-type]
    "no such result": (lambda _: ts.Result.load("nowhere.json"), "check the path"),
    "a number as language": (lambda _: ts.language(5), "expecting text"),  # type: ignore[arg-type]
    "a pair to parse": (lambda _: ts.LengthRange.parse((1, 3)), "got \\(1, 3\\)"),  # type: ignore[arg-type]
    "strings as trees": (lambda _: ts.split_merge(["(S a)"], seed=1), "expecting trees"),  # type: ignore[list-item]
    "a number from a function": (
        lambda _: ts.FunctionModel(lambda sentences: -3.0, vocabulary=["a"]).score(["a"]),  # type: ignore[arg-type, return-value]
        "returned -3.0; it gets a list of sentences",
    ),
    "no samples": (lambda _: ts.evaluate("tendencies", [], GRAMMAR), "expecting texts, such as a model"),
    "half of a split": (lambda f: ts.Corpus.sample(GRAMMAR, {"a": 2.5}, path=f / "c"), "whole number"),  # type: ignore[dict-item]
}
#: arguments of compare, bound and others that were once cut, rounded, or read as another value
BAD_VALUES: dict[str, tuple[Callable[[Any], Any], tuple[Any, ...]]] = {
    "seed": (lambda value: ts.compare(uniform(), TEXTS, GRAMMAR, seed=value), (-1, 1.5, "1", None)),
    "seed of an evaluator": (lambda value: ts.evaluate("pplu", uniform(), TEXTS, GRAMMAR, seed=value), (-1, 1.5)),
    "seed of infill": (lambda value: ts.infill(GRAMMAR, "___ b", seed=value), (-1, 1.5)),
    "seed of counts": (lambda value: ts.train(TEXTS, "ngram", seed=value), (-1, 1.5)),
    "sentences": (lambda value: ts.compare(uniform(), TEXTS, GRAMMAR, sentences=value), (0, -1, 2.0, "2", True)),
    "longest": (lambda value: ts.bound(TEXTS, GRAMMAR, longest=value), (0, -1, 2.5, "2")),
    "exact_kl": (
        lambda value: ts.compare([uniform(), uniform("x")], TEXTS, GRAMMAR, exact_kl=value),
        (0, -1, "2", True),
    ),
    "vocabulary": (
        lambda value: ts.compare([uniform(), uniform("x")], TEXTS, GRAMMAR, vocabulary=value),
        ("commn", 5),
    ),
    "baseline of one model": (lambda value: ts.compare(uniform(), TEXTS, GRAMMAR, baseline=value), ("x",)),
    "frame": (lambda value: ts.evaluate("pplu", uniform(), TEXTS, GRAMMAR, frame=value), ("papr", None, 5)),
    "frame of scores": (lambda value: uniform().score(TEXTS, value), ("paper", None)),
    "unk": (lambda value: ts.ScoringFrame(unk=value), ("skp", None)),
    "eos": (lambda value: ts.ScoringFrame(eos=value), ("paper", 1)),
    "lines": (lambda value: ts.bound(TEXTS, GRAMMAR, lines=value), (-1, 1.5, "2")),
    "definitions": (lambda value: ts.bound(TEXTS, GRAMMAR, definitions=value), ("papr", None)),
    "dtype": (lambda value: ts.bound(TEXTS, GRAMMAR, dtype=value), ("float12", 5)),
    "causal": (lambda value: ts.bound(TEXTS, GRAMMAR, causal=value), ("no", 0)),
    "no bound": (lambda value: ts.bound(TEXTS, GRAMMAR, causal=value, masked=value), (False,)),
    "known words": (lambda value: ts.bound(TEXTS, GRAMMAR, vocabulary=value), ("ab", [1], 5)),
    "objective": (lambda value: ts.Oracle(GRAMMAR, value), ("casual", 5)),
    "words of an oracle": (lambda value: ts.Oracle(GRAMMAR, vocabulary=value), ("ab", [1])),
    "samples": (lambda value: ts.Oracle(GRAMMAR).sample(value), (-1, 2.5, "3")),
    "top": (lambda value: ts.infill(GRAMMAR, "___ b", top=value), (-1, 2.5, "3")),
    "number": (lambda value: ts.infill(GRAMMAR, "___ b", number=value), (-1, 2.5, "3")),
    "top words": (lambda value: GRAMMAR.next_token("a").top(value), (-1, "3")),
    "table": (lambda value: ts.bound(TEXTS, GRAMMAR).table(value), (5, "x", -2)),
    "path of a result": (lambda value: ts.bound(TEXTS, GRAMMAR).save(value), (None, 5, "")),
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


@pytest.mark.parametrize("argument", BAD_VALUES)
def test_no_value_is_cut_or_read_as_another(argument: str) -> None:
    act, values = BAD_VALUES[argument]
    for value in values:
        with pytest.raises(ts.InputError) as caught:
            act(value)
        assert "\n" not in str(caught.value)


def test_an_iterator_of_sentences_is_read_once_and_whole() -> None:
    of_list = ts.compare(uniform(), TEXTS, GRAMMAR)
    assert ts.compare(uniform(), iter(TEXTS), GRAMMAR)["ppl"].value == of_list["ppl"].value
    assert len(uniform().score(iter(TEXTS)).log_prob) == len(uniform().score(TEXTS).log_prob) == 11


@pytest.mark.long
def test_a_path_to_train_on_is_a_folder_or_file_and_no_sentence(tmp_path: Path) -> None:
    corpus = folder_of(tmp_path)
    of_corpus = ts.train(corpus, "ngram").score(TEXTS).log_prob
    assert (ts.train(str(corpus.path), "ngram").score(TEXTS).log_prob == of_corpus).all()
    file = tmp_path / "text.txt"
    file.write_text("".join(f"{' '.join(sentence)}\n" for sentence in corpus["train"]))
    assert (ts.train(file, "ngram").score(TEXTS).log_prob == of_corpus).all()


@pytest.mark.parametrize(("name", "ours"), [("load", "load_model"), ("score", "compare"), ("evalute", "evaluate")])
def test_a_name_that_is_not_there_is_answered_with_ours(name: str, ours: str) -> None:
    with pytest.raises(AttributeError, match=f"truesource has no '{name}'; use .*{ours}"):
        getattr(ts, name)
