"""Models that a configuration loads: they are found before anything is made, and measured as far as they can be."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from tiny_run import prepare, run

from truesource.grammar.support.errors import InputError
from truesource.run.experiment import load_config, plan

pytestmark = pytest.mark.long

GRAMMAR = "S -> 'a' S 0.3 | 'b' S 0.3 | 'a' 0.2 | 'c' 0.2\n"
CONFIG = """\
name: toy
seed: 3
grammar: {method: file, file: toy.txt}
corpus: {lengths: 1..6, splits: {train: 60, eval: 20}}
models:
  - {name: counts, preset: tiny, model: {architecture: ngram}}
  - {name: flat, load: "own.py:model"}
  - {name: again, load: $MODELS/kept}
evaluation: {divergence: {sentences: 20}}
"""
CODE = """\
import numpy as np
from truesource import FunctionModel

def uniform(sentences):
    return [np.full(len(sentence) + 1, -np.log(4.0)) for sentence in sentences]

def model():
    return FunctionModel(uniform, vocabulary=None, name="its own name")
"""
SHORT = """
def short():
    found = FunctionModel(uniform, vocabulary=["a"], name="short")
    found.longest = 5
    return found
"""


def stages(folder: Path) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = json.loads((folder / "runs/toy/stages.json").read_text("utf-8"))["stages"]
    return found


def written(tmp_path: Path, models: str) -> Path:
    return prepare(tmp_path, CONFIG.partition("models:")[0] + f"models: {models}\n", GRAMMAR)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that loads a function and a folder: the n-gram model that an earlier run has counted."""
    folder = prepare(tmp_path_factory.mktemp("loaded"), CONFIG, GRAMMAR)
    (folder / "own.py").write_text(CODE, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MODELS", str(folder))
        run(folder, "models=[{name: counts, preset: tiny, model: {architecture: ngram}}]", "evaluation={}")
        (folder / "runs" / "toy" / "models" / "counts").rename(folder / "kept")
        shutil.rmtree(folder / "runs")
        run(folder)
    return folder


@pytest.fixture(autouse=True)
def models(finished: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODELS", str(finished))


def test_loaded_models_are_loaded_first(finished: Path) -> None:
    assert list(stages(finished)) == [
        *("load:flat", "load:again", "grammar", "corpus", "train:counts"),
        *("score:oracle", "score:counts", "score:flat", "score:again"),
        *("vocabulary", "compare:counts", "compare:flat", "compare:again"),
        *("divergence:counts", "divergence:flat", "divergence:again", "report"),
    ]


def test_loaded_models_are_scored_as_they_are(finished: Path) -> None:
    rows = {row["model"]: row for row in json.loads((finished / "runs/toy/results.json").read_text("utf-8"))}
    assert set(rows) == {"oracle", "counts", "flat", "again"}
    assert rows["flat"]["ppl"] == pytest.approx(4.0, abs=1e-12)
    assert rows["again"]["ppl"] == rows["counts"]["ppl"]
    assert rows["again"]["parameters"] == rows["counts"]["parameters"] and rows["flat"]["parameters"] is None
    assert [rows[name].get("loaded") for name in ("counts", "flat", "again")] == [None, "own.py:model", "$MODELS/kept"]


def test_what_a_model_cannot_do_is_a_note(finished: Path) -> None:
    found = stages(finished)
    assert found["divergence:flat"]["unmeasured"]["code"] == "missing-ability"
    assert "distributions" in found["divergence:flat"]["unmeasured"]["reason"]
    records = json.loads((finished / "runs/toy/divergence/again.json").read_text("utf-8"))["records"]
    assert {record["model"] for record in records} == {"again"}
    page = (finished / "runs/toy/report.html").read_text("utf-8")
    assert "Nothing to measure (flat): " in page and "Loaded, not trained here: flat" in page


def test_a_second_run_skips_what_is_loaded_too(finished: Path) -> None:
    assert run(finished) == []


@pytest.mark.slow
def test_changed_code_is_noticed(finished: Path, tmp_path: Path) -> None:
    """In another process, for code is imported once."""
    from subprocess import run as call

    folder = written(tmp_path, "[{name: flat, load: 'own.py:model'}]")
    (folder / "own.py").write_text(CODE, encoding="utf-8")
    run(folder, "evaluation={}")
    (folder / "own.py").write_text(CODE.replace("4.0", "5.0"), encoding="utf-8")
    program = "import tiny_run, pathlib; print(tiny_run.run(pathlib.Path('.'), 'evaluation={}'))"
    paths = {"PYTHONPATH": ":".join(sys.path)}
    found = call([sys.executable, "-c", program], cwd=folder, env=paths, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == str(["load:flat", "score:flat", "report"])


@pytest.mark.parametrize(
    ("models", "code", "said"),
    [
        ("[{name: x, load: nowhere}]", "no-model", "nowhere"),
        ("[{name: x, load: 'gone.py:model'}]", "missing", "gone.py"),
        ("[{name: x, load: 'own.py:nobody'}]", "no-name", "nobody"),
        ("[{name: x, load: 'broken.py:model'}]", "import-failed", "ZeroDivisionError"),
        ("[{name: x, load: 'no.such.module:model'}]", "no-module", "no"),
        ("[{name: x, load: '$UNSET_HERE/model'}]", "input", "UNSET_HERE"),
    ],
)
def test_a_reference_is_looked_up_before_anything_is_made(models: str, code: str, said: str, tmp_path: Path) -> None:
    folder = written(tmp_path, models)
    (folder / "own.py").write_text(CODE, encoding="utf-8")
    (folder / "broken.py").write_text("1 / 0\n", encoding="utf-8")
    load_config(folder / "toy.yaml")  # runs and looks up nothing
    with pytest.raises(InputError) as error:
        run(folder)
    assert error.value.code == code
    assert "models: x: " in str(error.value) and said in str(error.value)
    assert not (folder / "runs").exists()


def test_a_model_that_cannot_be_made_stops_the_run_before_the_grammar(tmp_path: Path) -> None:
    folder = written(tmp_path, "[{name: x, load: 'own.py:uniform'}]")
    (folder / "own.py").write_text(CODE, encoding="utf-8")
    with pytest.raises(InputError, match="models: x: ") as error:
        run(folder)
    assert error.value.code == "not-a-model"
    assert stages(folder) == {}


def test_a_network_too_short_for_the_corpus_stops_the_run_before_the_grammar(tmp_path: Path) -> None:
    folder = written(tmp_path, "[{name: x, load: 'own.py:short'}]")
    code = (
        CODE
        + "\n\ndef short():\n    found = model()\n    found.vocabulary, found.longest = ('a',), 5\n    return found\n"
    )
    (folder / "own.py").write_text(code, encoding="utf-8")
    with pytest.raises(InputError, match="models: x: it reads sentences of at most 5 words"):
        run(folder)
    assert stages(folder) == {}


@pytest.mark.parametrize(
    "key", ["preset: tiny", "model: {layers: 1}", "training: {max_steps: 1}", "oracle_monitor: true"]
)
def test_nothing_stands_beside_load(key: str, tmp_path: Path) -> None:
    folder = written(tmp_path, f"[{{name: x, load: saved, {key}}}]")
    with pytest.raises(InputError, match=f"load uses a model unchanged, without {key.partition(':')[0]}"):
        load_config(folder / "toy.yaml")


def test_reading_a_configuration_runs_no_code(tmp_path: Path) -> None:
    folder = written(tmp_path, "[{name: x, load: 'own.py:model'}]")
    (folder / "own.py").write_text("raise SystemExit('run')\n", encoding="utf-8")
    names = [stage.name for stage in plan(load_config(folder / "toy.yaml", ["seeds=[1, 2]"]))]
    assert names[0] == "load:x" and "score:x" in names


OWN = """\
from torch import nn

class Small(nn.Module):
    def __init__(self, vocabulary_size, hidden=8):
        super().__init__()
        self.words = nn.Embedding(vocabulary_size, hidden)
        self.gru = nn.GRU(hidden, hidden, batch_first=True)
        self.out = nn.Linear(hidden, vocabulary_size)

    def forward(self, input_ids, attention_mask):
        return self.out(self.gru(self.words(input_ids))[0])
"""
TRAINED = (
    "{name: mine, preset: tiny, model: {architecture: 'net.py:Small'}, training: {max_steps: 2, batch_tokens: 64}}"
)


@pytest.mark.usefixtures("quick_report")
def test_an_architecture_of_ones_own_is_trained_and_loaded_with_its_code(tmp_path: Path) -> None:
    folder = written(tmp_path, f"[{TRAINED}]")
    (folder / "net.py").write_text(OWN, encoding="utf-8")
    made = ["grammar", "corpus", "train:mine", "score:oracle", "score:mine", "divergence:mine", "report"]
    assert run(folder, "evaluation={divergence: true}") == made
    assert run(folder, "evaluation={divergence: true}") == []


def test_a_wrong_setting_of_ones_own_architecture_stops_the_run_before_the_grammar(tmp_path: Path) -> None:
    folder = written(tmp_path, f"[{TRAINED}]".replace("Small'", "Small', hiden: 8"))
    (folder / "net.py").write_text(OWN, encoding="utf-8")
    with pytest.raises(InputError, match="takes no setting hiden"):
        run(folder)
    assert not (folder / "runs").exists()


BIGRAM = """\
from torch import nn

class Bigram(nn.Module):
    def __init__(self, vocabulary_size):
        super().__init__()
        self.logits = nn.Embedding(vocabulary_size, vocabulary_size)

    def forward(self, input_ids, attention_mask):
        return self.logits(input_ids)
"""


@pytest.mark.usefixtures("quick_report")
def test_an_architecture_of_ones_own_that_was_trained_before(tmp_path: Path) -> None:
    net = "{name: net, preset: tiny, model: {architecture: 'bigram.py:Bigram'}, training: {max_steps: 5}}"
    folder = written(tmp_path, f"[{net}]")
    (folder / "bigram.py").write_text(BIGRAM, encoding="utf-8")
    run(folder, "evaluation={}")
    (trained,) = (row for row in results(folder) if row["model"] == "net")
    (folder / "runs/toy/models/net").rename(folder / "kept")
    shutil.rmtree(folder / "runs")
    with pytest.raises(InputError) as refused:
        run(folder, "evaluation={}", "models=[{name: net, load: kept}]")
    assert refused.value.code == "needs-code"
    run(folder, "evaluation={}", "models=[{name: net, load: 'bigram.py:Bigram@kept'}]")
    (loaded,) = (row for row in results(folder) if row["model"] == "net")
    assert loaded == {**trained, "loaded": "bigram.py:Bigram@kept"}


def results(folder: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((folder / "runs/toy/results.json").read_text("utf-8"))
    return found
