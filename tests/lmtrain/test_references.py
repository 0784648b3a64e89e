"""What a reference to a model names, and what it never runs."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from truesource.generator.language_model import ScoringFrame
from truesource.grammar.support.errors import InputError
from truesource.lmtrain import references
from truesource.lmtrain.models import load_model
from truesource.lmtrain.references import model_reference

UNIFORM = """
import numpy as np
from truesource.generator.language_model import assemble_scores

class Uniform:
    name, objective, vocabulary = "uniform", "causal", ("a", "b")
    def score(self, sentences, frame):
        rows = [np.full(len(s) + 1, -np.log(4)) for s in sentences]
        return assemble_scores(rows, [np.array([w not in "ab" for w in s], dtype=bool) for s in sentences], frame)

model = Uniform()
def make(): return Uniform()
def sized(vocabulary_size): raise AssertionError
def other(): return 3
number = 3
class Nameless(Uniform):
    name = ""
class Sideways(Uniform):
    objective = "sideways"
class Twice(Uniform):
    vocabulary = ("a", "b", "a")
class Numbers(Uniform):
    vocabulary = (1, 2)
class Empty(Uniform):
    vocabulary = ("a", "")
class Text(Uniform):
    vocabulary = "ab"
class Bare:
    name = "bare"
class Value(Uniform):
    score = 4
class Raises(Uniform):
    @property
    def vocabulary(self): raise KeyError("no words")
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "uniform.py").write_text(UNIFORM)
    return tmp_path


@pytest.mark.parametrize("name", ["model", "make", "Uniform"])
def test_code_gives_a_model(name: str, folder: Path) -> None:
    model = load_model(f"uniform.py:{name}", base=folder)
    assert len(model.score([["a", "b"], ["a"]], ScoringFrame()).log_prob) == 5


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("other", "not-a-model"),
        ("number", "not-a-model"),
        ("sized", "not-a-model"),
        ("Bare", "not-a-model"),
        ("Nameless", "not-a-model"),
        ("Sideways", "not-a-model"),
        ("Text", "not-a-model"),
        ("Value", "not-a-model"),
        ("Twice", "vocabulary"),
        ("Numbers", "vocabulary"),
        ("Empty", "vocabulary"),
        ("Raises", "code-failed"),
    ],
)
def test_refuses_what_is_no_model(name: str, code: str, folder: Path) -> None:
    with pytest.raises(InputError) as caught:
        load_model(f"uniform.py:{name}", base=folder)
    assert caught.value.code == code


def test_a_folder_that_exists_comes_first(tmp_path: Path) -> None:
    for name in ("x.py:f", "x.py:f@y", "plain"):
        (tmp_path / name).mkdir()
        found = model_reference(name, tmp_path)
        assert (found.folder, found.code) == (tmp_path / name, None)


def test_a_path_never_names_code(folder: Path) -> None:
    path = folder / "uniform.py:model"
    assert model_reference(path).code is None
    with pytest.raises(InputError):
        load_model(path)


@pytest.mark.parametrize(
    ("text", "code", "place"),
    [
        ("gru.py:GRU@model/", "gru.py:GRU", "model"),
        ("gru.py:GRU@a@b", "gru.py:GRU", "a@b"),
        ("me@home/gru.py:GRU@model", "me@home/gru.py:GRU", "model"),
        ("package.module:GRU@model", "package.module:GRU", "model"),
    ],
)
def test_code_and_a_folder(text: str, code: str, place: str, tmp_path: Path) -> None:
    found = model_reference(text, tmp_path)
    assert (found.code, found.folder) == (code, tmp_path / place)
    assert not found.ready


def test_what_is_nothing_is_refused(tmp_path: Path) -> None:
    for text in ("absent", "absent/model", "@model", ""):
        if text:
            with pytest.raises(InputError) as caught:
                model_reference(text, tmp_path)
            assert caught.value.code == "no-model"


def test_an_entry_point_names_a_model(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    (folder / "uniform_of_package.py").write_text(UNIFORM)
    offered = [EntryPoint("flat", "uniform_of_package:make", references.GROUP)]
    monkeypatch.setattr(
        references, "entry_points", lambda group, name: [e for e in offered if (e.group, e.name) == (group, name)]
    )
    assert load_model("flat", base=folder).name == "uniform"
    offered.append(EntryPoint("flat", "elsewhere:make", references.GROUP))
    with pytest.raises(InputError) as caught:
        load_model("flat", base=folder)
    assert caught.value.code == "ambiguous"
