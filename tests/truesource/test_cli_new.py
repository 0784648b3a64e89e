"""What `truesource new` writes runs to the end."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import Command

from truesource.cli.new import Kind, run_name
from truesource.run.experiment import load_config

SMALL = [
    "corpus.splits={train: 300, dev: 20, test: 20, eval: 20}",
    "models.0.training={max_steps: 2, eval_every: 2}",
]
#: besides, of some kinds
ALSO = {
    Kind.DEMO: [
        "treebank.sentences=300",
        "grammar.split_merge={cycles: 0}",
        "models.1.training={max_steps: 2, eval_every: 2}",
    ],
    Kind.TREEBANK: ["treebank.limit=300", "grammar.split_merge={cycles: 0}", "evaluation.naturalness={sentences: 50}"],
    Kind.LANGUAGES: ["models.1.training={max_steps: 2, eval_every: 2}", "evaluation.divergence.sentences=10"],
    Kind.GRAMMAR: ["evaluation.divergence.sentences=10"],
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.long
@pytest.mark.parametrize("kind", Kind)
def test_what_is_written_runs_to_the_end(kind: Kind, folder: Path, command: Command) -> None:
    made = command("new", kind, "mine")
    assert made.code == 0, made.err
    assert "truesource run mine/experiment.yaml --dry-run" in made.out
    overrides = [part for text in SMALL + ALSO[kind] for part in ("--set", text)]
    planned = command("run", "mine/experiment.yaml", "--dry-run", *overrides)
    assert planned.code == 0, planned.err
    assert not (folder / "runs").exists()
    run = command("run", "mine/experiment.yaml", *overrides)
    assert run.code == 0, run.err
    assert (folder / "runs" / "mine" / "report.html").is_file()


@pytest.mark.parametrize("kind", Kind)
def test_every_key_is_commented_and_valid(kind: Kind, folder: Path, command: Command) -> None:
    command("new", kind, "mine")
    text = (folder / "mine" / "experiment.yaml").read_text("utf-8")
    assert text.startswith("# ") and text.count("#") >= 4
    assert {words.split()[0] for words in text.split("truesource run ")[1:]} <= {"experiment.yaml"}
    assert load_config("mine/experiment.yaml").name == "mine"


def test_what_is_there_is_kept(folder: Path, command: Command) -> None:
    (folder / "mine").mkdir()
    (folder / "mine" / "thesis.txt").write_text("x", encoding="utf-8")
    assert command("new", "grammar", "mine").code == 2
    assert [path.name for path in (folder / "mine").iterdir()] == ["thesis.txt"]


def test_the_toy_grammar_goes_through_the_commands_that_are_named(command: Command) -> None:
    command("new", "grammar", "mine")
    found = command("inspect", "mine/grammar.txt")
    assert "No problem found. Next: truesource sample mine/grammar.txt -n 100000 -o corpus/" in found.out
    assert command("sample", "mine/grammar.txt", "-n", "100", "-o", "corpus/").code == 0


@pytest.mark.parametrize(("folder_name", "name"), [("a b", "a-b"), ("_x", "x"), ("ü", "experiment"), ("v1.2", "v1.2")])
def test_the_folder_names_the_run(folder_name: str, name: str) -> None:
    assert run_name(Path(folder_name)) == name
