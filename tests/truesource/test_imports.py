"""What a call does not use is not imported: the heavy libraries of each call by name, and a limit for all modules."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from truesource import sample
from truesource.generator.corpus import Corpus
from truesource.grammar.languages import load_language
from truesource.lmtrain.training import train
from truesource.run.experiment import execute, load_config

pytestmark = pytest.mark.long

#: a library that takes a tenth of a second or more, or whose import shows that a call does more than it has to
HEAVY = {
    *("accelerate", "datasets", "jinja2", "joblib", "matplotlib", "networkx", "nltk", "numba", "numpy", "pandas"),
    *("pyarrow", "pydantic", "scipy", "scipy.optimize", "scipy.signal", "scipy.sparse", "scipy.stats", "sentencepiece"),
    *("tokenizers", "torch", "torch._dynamo", "transformers"),
}
EXACT = {"numba", "numpy", "pydantic", "scipy", "scipy.sparse"}  #: what every use of a grammar needs
CORPUS = EXACT | {"pyarrow"}
COUNTS = CORPUS | {"tokenizers", "transformers"}
NETWORK = COUNTS | {"accelerate", "jinja2", "scipy.optimize", "sentencepiece", "torch", "torch._dynamo"}
#: by call: the heavy libraries that it may import, and the most modules, some 10% more than it has
CALLS: dict[str, tuple[set[str], int]] = {
    "language english:size=small": (EXACT, 1220),
    "inspect g.npz": (EXACT, 1120),
    "bound g.npz corpus": (CORPUS, 1320),
    "sample g.npz -n 100 --lengths 2..12 -o other --force": (CORPUS, 1250),
    "train corpus --model ngram -o counts --force": (COUNTS | {"jinja2"}, 1570),
    "score counts corpus": (COUNTS | {"jinja2"}, 1700),
    "score f.py:uniform corpus": (CORPUS, 1370),
    "score network corpus": (NETWORK, 3950),
    "report runs/toy": (CORPUS | {"jinja2", "matplotlib"}, 1640),
}
LATE = {"network", "report"}  #: these calls need more files
RUN = """
name: toy
grammar: {language: english, size: small}
corpus: {lengths: 2..10, splits: {train: 60, dev: 10, eval: 20}}
models: [{name: counts, model: {architecture: ngram}}]
"""
CODE = """
import sys
from truesource.cli.main import main

sys.argv = ["truesource", *ARGUMENTS]
try:
    main()
finally:
    with open("modules.json", "w") as file:
        __import__("json").dump(sorted(sys.modules), file)
"""
FUNCTION = """\
import numpy as np
from truesource import FunctionModel

words = WORDS
uniform = FunctionModel(lambda texts: [np.full(len(t) + 1, -np.log(len(words) + 1)) for t in texts], vocabulary=words)
"""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a grammar, a corpus, an n-gram model and a function."""
    folder = tmp_path_factory.mktemp("imports")
    grammar = load_language("english:size=small")
    grammar.save(folder / "g.npz")
    corpus = sample(grammar, 100, folder / "corpus", lengths="2..12", seed=1)
    train(corpus, "ngram", path=folder / "counts")
    (folder / "f.py").write_text(FUNCTION.replace("WORDS", repr(list(grammar.vocabulary))), encoding="utf-8")
    return folder


def modules(code: str, folder: Path) -> set[str]:
    """Return the modules that a new process has imported at its end."""
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, env=os.environ)
    assert done.returncode == 0, done.stderr
    return set(json.loads((folder / "modules.json").read_text("utf-8")))


def called(call: str, folder: Path) -> set[str]:
    """Return the modules that a call of the command imports."""
    return modules(CODE.replace("ARGUMENTS", repr(call.split())), folder)


def test_the_package_imports_no_library(tmp_path: Path) -> None:
    every = modules("import truesource, json, sys; json.dump([*sys.modules], open('modules.json', 'w'))", tmp_path)
    assert every & HEAVY == set()
    assert len(every) < 120


@pytest.mark.parametrize("call", [call for call in CALLS if not LATE & {*call.split()}])
def test_a_call_imports_what_it_uses(call: str, files: Path) -> None:
    allowed, most = CALLS[call]
    every = called(call, files)
    assert sorted(every & HEAVY - allowed) == []
    assert len(every) <= most


def test_a_network_is_scored_with_torch_and_little_else(files: Path) -> None:
    train(Corpus.load(files / "corpus"), "gpt2", {"max_steps": 1}, files / "network")
    allowed, most = CALLS["score network corpus"]
    every = called("score network corpus", files)
    assert sorted(every & HEAVY - allowed) == []
    assert len(every) <= most


def test_a_finished_run_is_shown_without_torch(files: Path) -> None:
    (files / "toy.yaml").write_text(RUN, encoding="utf-8")
    execute(load_config(files / "toy.yaml"), base=files, runs=files / "runs")
    allowed, most = CALLS["report runs/toy"]
    every = called("report runs/toy", files)
    assert sorted(every & HEAVY - allowed) == []
    assert len(every) <= most


def test_a_heavy_import_is_found(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An import of a library in a module that ``inspect`` loads makes the test above fail."""
    (files / "planted").mkdir(exist_ok=True)
    (files / "planted" / "sitecustomize.py").write_text("import pandas\n", encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(files / "planted"), os.environ.get("PYTHONPATH", "")]))
    assert "pandas" in called("inspect g.npz", files) & HEAVY - CALLS["inspect g.npz"][0]
