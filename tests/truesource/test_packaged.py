"""Configurations that come with truesource run by name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from command_line import Command

from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import data_folder
from truesource.run.experiment import load_config
from truesource.run.reading import find_config, is_sweep, packaged, purpose
from truesource.studies.scaling.config import load_sweep


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", packaged())
def test_every_name_is_a_configuration_with_a_purpose(name: str, folder: Path) -> None:
    path, base = find_config(name)
    assert (path, base) == (data_folder() / f"{name}.yaml", folder)
    assert (load_sweep(path) if is_sweep(path) else load_config(path)).name == name
    assert len(purpose(name)) > 20


def test_help_names_all(command: Command) -> None:
    text = " ".join(command("run", "--help").out.replace("│", " ").split())
    listed = text.partition("come with truesource: ")[2].partition(" read the treebank")[0]
    assert sorted(re.findall(r"[a-z]\w+", listed.replace(" and ", " "))) == sorted(packaged())


def test_a_file_comes_first_and_its_folder_is_where_paths_start(folder: Path) -> None:
    (folder / "in").mkdir()
    for place in (folder / "demo", folder / "in" / "own.yaml"):
        place.write_text("name: own\n", encoding="utf-8")
    assert find_config("demo") == (Path("demo"), folder)
    assert find_config("in/own.yaml") == (Path("in/own.yaml"), folder / "in")


def test_a_folder_does_not_hide_a_name(folder: Path) -> None:
    (folder / "demo").mkdir()
    assert find_config("demo")[0] == data_folder() / "demo.yaml"


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("dem", "there is no such configuration; did you mean demo? configurations that come with truesource: "),
        ("data/demo.yaml", "did you mean demo?"),
        ("zzz.yaml", "there is no such configuration; configurations that come with truesource: architectures, "),
        ("mine", "this is a folder, not a configuration; did you mean mine/experiment.yaml?"),
    ],
)
def test_what_is_no_configuration(text: str, part: str, folder: Path) -> None:
    (folder / "mine").mkdir()
    (folder / "mine" / "experiment.yaml").touch()
    with pytest.raises(InputError) as caught:
        find_config(text)
    assert part in str(caught.value)


@pytest.mark.long
def test_a_run_by_name(folder: Path, command: Command) -> None:
    small = [
        "corpus.splits={train: 200, dev: 20, eval: 20}",
        "models.0.training={max_steps: 2, eval_every: 2}",
        "models.1.training={max_steps: 2, eval_every: 2}",
        "evaluation.divergence.sentences=20",
    ]
    found = command("run", "language", *(part for text in small for part in ("--set", text)))
    assert found.code == 0, found.err
    assert (folder / "runs" / "language" / "report.html").is_file()
