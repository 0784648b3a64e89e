"""`truesource reproduce`: rows that share a run, seeds as values of a quantity, and mistakes in one sentence."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command_line import Command

from truesource.evaluation.core.token_table import read_token_record
from truesource.run.config import RunConfig
from truesource.studies.reproduce import rows as packaged

TRAINING = "{max_steps: 4, batch_tokens: 64, eval_every: 4}"
RUN = f"""\
name: toy
seeds: [3, 4]
grammar: {{language: dyck, k: 1, depth: 2}}
corpus: {{lengths: 2..6, splits: {{train: 60, eval: 30}}}}
models:
  - {{name: net, preset: tiny, model: {{dim: 8, heads: 1, layers: 1}}, training: {TRAINING}}}
  - {{name: counts, preset: tiny, model: {{architecture: ngram}}}}
evaluation: {{divergence: true}}
"""
ROWS = """\
paper: toy2020
rows:
  - name: toy-table-1
    shows: Table 1
    title: A network and counts
    published: Counts are nearer to the truth.
    run: toy
    evaluation: []
    quantities:
      net: {record: kl, model: net}
      counts: {record: kl, model: counts, published: 0.5}
      more: {minus: [net, counts]}
    claims:
      - {says: The network is further from the truth, less: [counts, net]}
      - {says: It is so by a number above 0, positive: more}
  - name: toy-figure-1
    shows: Figure 1
    title: The exact divergence of the network
    published: It is not 0.
    run: toy
    models: [net]
    evaluation: [divergence]
    quantities: {kl: {record: kl, model: net, evaluator: divergence}}
    claims: [{says: It is above 0, positive: kl}]
    correction: The sum is over all words.
  - name: toy-figure-2
    shows: Figure 2
    title: The bound, by a command
    published: It is above 1.
    run: toy
    models: []
    evaluation: []
    command: [bound, "dyck:k=1,depth=2", $RUN/corpus, --no-masked]
    quantities: {bound: {record: causal_bound}}
    claims: [{says: It is above 1, between: {of: bound, from: 1}}]
  - {name: toy-figure-3, shows: Figure 3, title: A drawing, published: A drawing., untested: It is a drawing.}
"""


@pytest.fixture
def rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of a paper with four rows; the working folder is above it."""
    folder = tmp_path / "rows"
    (folder / "runs").mkdir(parents=True)
    (folder / "toy2020.yaml").write_text(ROWS, encoding="utf-8")
    (folder / "runs" / "toy.yaml").write_text(RUN, encoding="utf-8")
    monkeypatch.setattr(packaged, "reproductions_folder", lambda: folder)
    monkeypatch.chdir(tmp_path)
    packaged.papers.cache_clear()
    yield folder
    packaged.papers.cache_clear()


def stages() -> dict[str, bool]:
    """Whether each stage of the run was skipped."""
    state = json.loads(Path("runs/toy/stages.json").read_text(encoding="utf-8"))["stages"]
    return {name: stage["skipped"] for name, stage in state.items()}


@pytest.mark.long
@pytest.mark.usefixtures("quick_report", "one_thread")
def test_rows_share_their_run_and_each_keeps_what_another_made(rows: Path, command: Command) -> None:
    done = command("reproduce", "toy-table-1", "--results", "results", "--json", "all.json")
    assert done.code == 0, done.err
    result = json.loads(Path("results/toy-table-1.json").read_text(encoding="utf-8"))
    assert json.loads(Path("all.json").read_text(encoding="utf-8")) == [result]
    net, counts, more = (result["quantities"][name] for name in ("net", "counts", "more"))
    assert net["by_seed"].keys() == {"3", "4"} and net["over"] == "sentences and training seeds"
    assert counts["by_seed"] == {} and counts["low"] < counts["value"] < counts["high"]
    for seed in ("3", "4"):
        score = read_token_record(f"runs/toy/scores/net-seed{seed}.parquet", dict[str, Any])["record"]
        assert net["by_seed"][seed] == score["kl"]
    assert more["value"] == pytest.approx(net["value"] - counts["value"])
    compared = {
        (each["model"], each["name"]): each
        for each in json.loads(Path("runs/toy/comparison.json").read_text(encoding="utf-8"))
    }
    difference = compared["counts", "kl_difference"]  # the run's own, to the network
    tested = result["claims"][0]["differences"][0]
    assert (tested["what"], tested["value"]) == ("net - counts", pytest.approx(-difference["value"]))
    assert (tested["low"], tested["high"]) == (pytest.approx(-difference["high"]), pytest.approx(-difference["low"]))
    assert result["command"] == "truesource reproduce toy-table-1" and result["seeds"] == 2

    assert command("reproduce", "toy-figure-1").code == 0
    after = stages()
    assert {name for name, skipped in after.items() if not skipped} >= {"divergence:net-seed3", "divergence:net-seed4"}
    assert after["train:net-seed3"] and after["score:net-seed4"] and after["corpus"]

    assert command("reproduce", "toy-table-1").code == 0  # what the other row made is still there
    assert Path("runs/toy/divergence/net-seed3.json").is_file()
    again = command("reproduce", "toy-figure-1", "--dry-run", "--json", "plan.json")
    assert again.code == 0, again.err
    fates = {each["stage"]: each["fate"] for each in json.loads(Path("plan.json").read_text(encoding="utf-8"))}
    made = {name for name, fate in fates.items() if fate != fates["corpus"]}
    assert made == {"report"}

    bound = command("reproduce", "toy-figure-2", "--json", "-")
    assert bound.code == 0, bound.err
    (found,) = json.loads(bound.out)
    assert found["verdict"] == "holds" and found["quantities"]["bound"]["value"] > 1


def test_what_is_not_there_is_asked_for_before_anything_is_run(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PUBLISHED", raising=False)
    found = command("reproduce", "jz-table-1-causal-bound")
    assert found.code == 2 and "set the environment variable PUBLISHED to a folder with clm.json.gz" in found.err
    assert list(tmp_path.iterdir()) == []


def test_a_row_that_varies_its_configuration_has_a_run_for_each_value(rows: Path) -> None:
    row = packaged.find_rows("toy-table-1")[0].model_copy(update={"vary": {"low": ["corpus.lengths=2..4"], "high": []}})
    low, high = (each.config for each in packaged.compose(row, ["seeds=[7]", "name=other"]))
    assert isinstance(low, RunConfig) and isinstance(high, RunConfig)
    assert (low.name, high.name) == ("toy-low", "toy-high") and low.seeds == high.seeds == [7]
    assert str(low.corpus.lengths) == "2..4" and str(high.corpus.lengths) == "2..6"


def test_the_list(rows: Path, command: Command) -> None:
    done = command("reproduce", "--list", "--json", "list.json")
    assert done.code == 0 and "cannot be tested" in done.out
    listed = json.loads(Path("list.json").read_text(encoding="utf-8"))
    assert [each["row"] for each in listed] == ["toy-table-1", "toy-figure-1", "toy-figure-2", "toy-figure-3"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "name rows, such as jz-table-1, or give --list"),
        (("--list", "toy-table-1"), "name rows, such as jz-table-1, or give --list"),
        (("toy-table-2",), "there is no row or paper 'toy-table-2'; did you mean toy-table-1"),
        (("toy-figure-3",), "toy-figure-3 (Figure 3) cannot be tested: It is a drawing."),
        (("toy-table-1", "--set", "corpus.lenghts=3"), "corpus.lenghts: unknown key; did you mean lengths?"),
    ],
)
def test_calls_that_are_refused(arguments: tuple[str, ...], says: str, rows: Path, command: Command) -> None:
    done = command("reproduce", *arguments)
    assert (done.code, done.out) == (2, "") and says in done.err and len(done.err.splitlines()) == 1
    assert not Path("runs").exists()


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("less: [counts, net]", "less: [counts, ent]", "rows.0 (toy-table-1): claims.0: there is no quantity 'ent'"),
        ("less: [counts, net]", "less: [net, net]", "rows.0 (toy-table-1).claims.0: a quantity is named twice"),
        ("less: [counts, net]", "fewer: [counts, net]", "rows.0 (toy-table-1).claims.0.fewer: unknown key"),
        ("less: [counts, net]", "less: [a, b], positive: net", "claims.0: give one of less, "),
        ("minus: [net, counts]", "minus: [net, cuonts]", "more is made of cuonts, which is no quantity above it"),
        ("{record: kl, model: net}", "{model: net}", "quantities.net: give record: NAME, or minus: [a, b], or over"),
        ("published: 0.5", "published: .nan", "quantities.counts.published: expected a finite number"),
        ("{of: bound, from: 1}", "{of: bound}", "rows.2 (toy-figure-2).claims.0.between: give from, to, or both"),
        ("name: toy-figure-1", "name: toy-table-1", "rows: two rows have the name 'toy-table-1'"),
        ("shows: Figure 2", "shows: Figure 1", "rows: two rows have the shows 'Figure 1'"),
        ("    shows: Table 1\n", "", "rows.0 (toy-table-1).shows: this key is missing"),
        ("untested: It is a drawing.", "run: toy", "rows.3 (toy-figure-3): claims: a row that runs needs one or more"),
        (
            "    run: toy\n",
            "    run: [toy, toy]\n    vary: {a: [seed=2]}\n",
            "vary: name the one configuration that is run in",
        ),
        ("untested: It is a drawing.", "differs: so", "rows.3 (toy-figure-3): give run, command or untested"),
        ("untested: It is", "run: toy, untested: It is", "untested: a row that says why there is nothing to run has"),
        ("paper: toy2020", "paper: toy2021", "paper: expected toy2020, as the file is called, not toy2021"),
        ("paper: toy2020", "paper: [", "the list of rows is not YAML"),
    ],
)
def test_mistakes_name_file_row_and_key(old: str, new: str, says: str, rows: Path, command: Command) -> None:
    file = rows / "toy2020.yaml"
    assert old in ROWS
    file.write_text(ROWS.replace(old, new, 1), encoding="utf-8")
    done = command("reproduce", "--list")
    assert (done.code, done.out) == (2, "") and says in done.err and str(file) in done.err
    assert len(done.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("run: toy\n", "run: tyo\n", "there is no configuration tyo for this row"),
        ("models: [net]", "models: [ent]", "toy-figure-1: models: the configuration has no model ent"),
        (
            "evaluation: [divergence]",
            "evaluation: [distance]",
            "toy-figure-1: evaluation: there is no evaluator distance",
        ),
    ],
)
def test_rows_that_do_not_fit_their_configuration(old: str, new: str, says: str, rows: Path, command: Command) -> None:
    (rows / "toy2020.yaml").write_text(ROWS.replace(old, new), encoding="utf-8")
    done = command("reproduce", "toy-figure-1")
    assert done.code == 2 and says in done.err and len(done.err.splitlines()) == 1
