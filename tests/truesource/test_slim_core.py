"""Without the extras: everything about grammars works, and everything else says which extra it needs."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import slim_core

import truesource
from truesource.cli.app import VERBS, load
from truesource.grammar.support.errors import EXTRAS, MissingExtraError, extras_for, require_extras
from truesource.grammar.treebank import Treebank

ROOT = Path(__file__).parents[2]
LM, REPORT = "torch and transformers: pip install 'truesource[lm]'", "matplotlib: pip install 'truesource[report]'"
BOTH = "torch, transformers and matplotlib: pip install 'truesource[lm,report]'"

GRAMMAR = """\
S -> NP VP 1
NP -> 'the' N 1
N -> 'dog' 0.5 | 'cat' 0.5
VP -> 'sees' NP 0.5 | 'sleeps' 0.5
"""
TREE = "(S (NP (D the) (N {})) (VP (V sees) (NP (D the) (N {}))))\n"
CODE = """\
import numpy as np
from truesource import FunctionModel

def score(sentences):
    return [np.full(len(sentence) + 1, -np.log(6)) for sentence in sentences]

words = ["the", "dog", "cat", "sees", "sleeps"]
uniform, other = FunctionModel(score, vocabulary=words), FunctionModel(score, vocabulary=words, name="other")
"""
RUN = """\
name: toy
grammar: {method: file, file: toy.txt}
corpus: {splits: {train: 60, eval: 30}}
models: [MODEL]
"""
#: calls that need no extra, in an order in which each finds its files
WORK = [
    "language",
    "language dyck:k=1 -o dyck.txt",
    "inspect toy.txt",
    "convert toy.txt toy.npz",
    "induce bank.mrg -o induced.npz --cycles 0",
    "split bank.mrg -o parts",
    "sample toy.npz -n 200 -o corpus --shares train=.8,eval=.2",
    "convert corpus exported --to ids",
    "bound toy.npz corpus --no-masked",
    "infill toy.npz 'the ___ sleeps'",
    "parse toy.npz text -o trees.mrg",
    "vary toy.npz -o variants --variant temperature=0.8",
    "tilt toy.npz --regex '.* sleeps' -o tilted.npz",
    "score models.py:uniform corpus --oracle toy.npz --json scores.json",
    "compare models.py:uniform models.py:other corpus --oracle toy.npz --table table.tex --table table.csv",
    "evaluate naturalness corpus --reference bank.mrg",
    "evaluate pairs --oracle dyck:k=1 -o pairs -n 4",
    "benchmark",
    "known-answers -o kit",
    "new grammar mine",
    "new --schema run",
    "run toy.yaml --help",
    "reproduce --list",
    "report run --figures",
    "cite",
]
#: calls that need an extra, and the sentence they end in; nothing is written
REFUSE = {
    "train corpus -o model": f"`truesource train` needs {LM}",
    "generate model -o samples": f"`truesource generate` needs {LM}",
    "score model corpus": f"the model model needs {LM}",
    "compare model models.py:uniform corpus --oracle toy.npz": f"the model model needs {LM}",
    "report run": f"a report needs {REPORT}",
    "report run --figure lengths -o lengths.svg": f"a report needs {REPORT}",
    "run demo": f"the run demo needs {BOTH}",
    "run --warm": f"the run warm needs {REPORT}",
    "run trained.yaml": f"the run toy needs {BOTH}",
    "run loaded.yaml": f"the run toy needs {BOTH}",
    "run code.yaml": f"the run toy needs {REPORT}",
    "run trained.yaml --dry-run": f"the run toy needs {BOTH}",
    "benchmark --model gpt2 -o results": f"`truesource benchmark` needs {BOTH}",
    "explain model corpus --oracle toy.npz -o why": f"`truesource explain` needs {BOTH}",
    "run scaling": f"`truesource run` of a sweep needs {BOTH}",
    "evaluate naturalness corpus --reference bank.mrg --figure f.svg": f"--figure needs {REPORT}",
    "evaluate divergence model corpus --oracle toy.npz": f"the model model needs {LM}",
    "evaluate context model corpus --oracle toy.npz": f"the model model needs {LM}",
    "evaluate diffusion model corpus --oracle toy.npz": f"the model model needs {LM}",
    "evaluate control model corpus --oracle toy.npz": f"the model model needs {LM}",
    "evaluate documents model corpus --oracle toy.npz": f"`truesource evaluate documents` needs {LM}",
    "evaluate memory model corpus --oracle toy.npz": f"the model model needs {LM}",
    "evaluate tokenisation model corpus --oracle toy.npz": f"the model model needs {LM}",
    "evaluate pplu model corpus --oracle toy.npz": f"the model model needs {LM}",
    "evaluate pairs model --oracle toy.npz": f"the model model needs {LM}",
    "evaluate dynamics model corpus --oracle toy.npz": f"`truesource evaluate dynamics` needs {LM}",
    "evaluate probing model corpus --oracle toy.npz": f"`truesource evaluate probing` needs {LM}",
    "evaluate beliefs model corpus --oracle toy.npz": f"the model model needs {LM}",
    "evaluate tendencies model --oracle toy.npz --lengths none": f"the model model needs {LM}",
    "evaluate tokenisation pieces.json text --lattice": f"`truesource evaluate tokenisation` needs {LM}",
    "sample toy.npz -n 900 -o other --scheduler tcp://127.0.0.1:1": "--scheduler needs dask and distributed:"
    " pip install 'truesource[dask]'",
}  # fmt: skip


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What all calls and imports did in one process without the extras, and the folder they worked in."""
    folder = tmp_path_factory.mktemp("slim")
    text = {
        "toy.txt": GRAMMAR,
        "bank.mrg": "".join(TREE.format(*pair) for pair in (("dog", "cat"), ("cat", "dog"), ("dog", "dog")) * 20),
        "text": "the dog sleeps\n",
        "models.py": CODE,
        "toy.yaml": RUN.replace("MODEL", "{name: m, load: 'models.py:uniform'}"),
        "code.yaml": RUN.replace("MODEL", "{name: m, load: 'models.py:uniform'}"),
        "loaded.yaml": RUN.replace("MODEL", "{name: m, load: model}"),
        "trained.yaml": RUN.replace("MODEL", "{name: m, preset: tiny}"),
        "pieces.json": "{}",
    }
    for name, content in text.items():
        (folder / name).write_text(content, encoding="utf-8")
    for name, file in {"model": "config.json", "run": "stages.json"}.items():
        (folder / name).mkdir()
        (folder / name / file).write_text("{}", encoding="utf-8")
    page = '<div data-figure="lengths"><div><svg aria-label="Lengths"></svg></div></div>'
    (folder / "run" / "report.html").write_text(page, encoding="utf-8")
    asked = {
        "without": [module for modules in EXTRAS.values() for module in modules],
        "calls": [shlex.split(each) for each in (*WORK, *REFUSE)],
        "imports": truesource.__all__,
    }
    done = subprocess.run(
        [sys.executable, slim_core.__file__],
        input=json.dumps(asked),
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TRUESOURCE_QUIET": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    answer: dict[str, Any] = json.loads(done.stdout)
    return {**answer, "calls": dict(zip((*WORK, *REFUSE), answer["calls"], strict=True)), "folder": folder}


@pytest.mark.long
@pytest.mark.parametrize("call", WORK)
def test_all_about_grammars_works(made: dict[str, Any], call: str) -> None:
    code, written = made["calls"][call]
    assert code == 0, written


@pytest.mark.long
@pytest.mark.parametrize("call", REFUSE)
def test_the_rest_says_what_to_install_in_one_sentence(made: dict[str, Any], call: str) -> None:
    code, written = made["calls"][call]
    assert (code, written.splitlines()[-1]) == (2, f"truesource: {REFUSE[call]}")
    assert "Traceback" not in written


def test_every_verb_is_called() -> None:
    called = {call.partition(" ")[0] for call in (*WORK, *REFUSE)}
    measured = {call.split()[1] for call in (*WORK, *REFUSE) if call.startswith("evaluate")}
    assert called == set(VERBS)
    assert measured == set(load("evaluate").commands)


@pytest.mark.long
def test_nothing_is_left_of_what_was_refused(made: dict[str, Any]) -> None:
    assert {"samples", "results", "f.svg", "other", "runs"} & {path.name for path in made["folder"].iterdir()} == set()


@pytest.mark.long
def test_names_to_import(made: dict[str, Any]) -> None:
    needing = {name: said for name, said in made["imports"].items() if said}
    assert needing == {"train": f"MissingExtraError: truesource.train needs {LM}"}


@pytest.mark.long
def test_no_library_of_an_extra_was_imported(made: dict[str, Any]) -> None:
    assert made["loaded"] == []


def test_the_extras_of_the_package_bring_these_modules() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    offered = project["optional-dependencies"]
    for extra, modules in EXTRAS.items():
        brought = {re.split(r"[\[<>=]", requirement)[0] for requirement in offered[extra]}
        brought |= {"distributed"} if "dask" in brought else set()  # dask[distributed]
        assert brought == set(modules)
    core = {re.split(r"[\[<>=]", requirement)[0] for requirement in project["dependencies"]}
    assert core & {module for modules in EXTRAS.values() for module in modules} == set()


def test_a_saved_dataset_needs_datasets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "dataset_info.json").touch()
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(MissingExtraError, match=r"^the saved dataset .* needs datasets: .*'truesource\[datasets\]'$"):
        Treebank.from_dataset(tmp_path, column="tree")


def test_what_is_installed_is_not_missed() -> None:
    require_extras("a test", *(extra for extra, modules in EXTRAS.items() if all(map(find_spec, modules))))
    with extras_for("a test"):
        pass


def test_other_modules_that_are_missing_are_no_extras() -> None:
    with pytest.raises(ModuleNotFoundError, match="no_such_module") as caught, extras_for("a test"):
        raise ModuleNotFoundError("No module named 'no_such_module'", name="no_such_module")
    assert not isinstance(caught.value, MissingExtraError)


def test_a_part_of_an_installed_library_that_is_missing_is_named() -> None:
    with pytest.raises(MissingExtraError, match=r"torch\.odd: pip install") as caught, extras_for("a test"):
        raise ModuleNotFoundError("No module named 'torch.odd'", name="torch.odd")
    assert caught.value.code == "missing-extra"
