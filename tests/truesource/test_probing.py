"""`truesource evaluate probing`, the stage of a run, and its section of the report."""

from __future__ import annotations

import json
import re
import shutil
import weakref
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from command_line import Command
from tiny_run import RunCopies, prepare

from truesource.evaluation.core.setting import Setting
from truesource.evaluation.probing import Kind
from truesource.evaluation.probing.evaluator import ProbingSettings
from truesource.evaluation.probing.probe import probe_model
from truesource.evaluation.probing.report import by_target
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.errors import InputError
from truesource.run.experiment import build_report, execute, load_config, plan

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("one_thread")]

GRAMMAR = """\
S -> NP VP 1.0
NP -> D N 0.6 | N 0.2 | NP PP 0.2
VP -> V NP 0.6 | V 0.4
PP -> P NP 1.0
D -> the 0.5 | a 0.3 | this 0.2
N -> cat 0.3 | dog 0.2 | walk 0.2 | park 0.1 | man 0.1 | her 0.1
V -> sees 0.5 | walk 0.2 | eats 0.2 | likes 0.1
P -> in 0.4 | with 0.4 | her 0.2
"""
CONFIG = """\
name: toy
seed: 3
grammar: {method: file, file: toy.txt}
corpus: {lengths: 2..8, splits: {train: 100, dev: 20, eval: 120}}
models:
  - name: kept
    model: {dim: 8, heads: 2, layers: 1, max_positions: 12}
    training: {max_steps: 2, snapshots: log}
  - {name: plain, model: {architecture: bert, dim: 8, heads: 2, layers: 1, max_positions: 12}, training: {max_steps: 1}}
  - {name: counts, model: {architecture: ngram, order: 2}}
evaluation:
  probing: {targets: [tag, span], sentences: 100}
"""
CALL = ("evaluate", "probing")


@pytest.fixture(scope="module")
def finished(finished_run: RunCopies) -> Path:
    """A finished run, in a folder with its configuration."""

    def fill(folder: Path) -> None:
        prepare(folder, CONFIG, GRAMMAR)
        execute(load_config(folder / "toy.yaml"), base=folder, runs=folder / "runs")

    return finished_run("probing", fill) / "runs" / "toy"


@pytest.fixture
def here(finished: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The run as working directory."""
    monkeypatch.chdir(finished)
    return finished


def call(model: str, *options: object) -> tuple[object, ...]:
    """A call on a model of the run."""
    return (*CALL, f"models/{model}", "corpus", "--oracle", "grammar/grammar.npz", *options)


def test_networks_have_a_stage_of_their_own_where_it_is_asked_for(finished: Path) -> None:
    names = [stage.name for stage in plan(load_config(finished.parent.parent / "toy.yaml"))]
    assert [name for name in names if name.startswith("probing")] == ["probing:kept", "probing:plain"]
    without = load_config(finished.parent.parent / "toy.yaml", ["evaluation={}"])
    assert not [stage.name for stage in plan(without) if stage.name.startswith("probing")]


def test_the_stage_leaves_records_of_every_snapshot_and_target(finished: Path) -> None:
    found = json.loads((finished / "probing" / "kept.json").read_text(encoding="utf-8"))
    targets = by_target(found)
    assert set(targets) == {"tag", "span"}
    for records in targets.values():
        layers = {(r["step"], r["layer"]) for r in records if r["name"] == "accuracy"}
        assert layers == {(step, layer) for step in (0, 1, 2) for layer in (0, 1)}
        assert {(r["step"], r["layer"]) for r in records if r["name"] == "mdl"} == {(2, 0), (2, 1)}
    tags = {r["name"] for r in targets["tag"]}
    assert {"rho_truth", "rho_model", "rho_difference"} <= tags
    assert "rho_truth" not in {r["name"] for r in targets["span"]}
    plain = json.loads((finished / "probing" / "plain.json").read_text(encoding="utf-8"))
    assert {r["step"] for r in by_target(plain)["tag"]} == {None}
    assert not (finished / "probing" / "counts.json").exists()


def test_the_report_has_a_section_with_whole_figures(finished: Path) -> None:
    page = (finished / "report.html").read_text(encoding="utf-8")
    section = page[page.index('<section id="probing">') :]
    section = section[: section.index("</section>")]
    assert section.count("<svg") == 10  # of the first model three for each target, of the other two
    while "<svg" in section:
        start, end = section.index("<svg"), section.index("</svg>") + len("</svg>")
        ElementTree.fromstring(section[start:end].replace("xlink:href", "href"))
        section = section[:start] + section[end:]
    for text in ("kept: tag of each word", "plain: phrase label of spans", "selectivity", "target:tag", "chance"):
        assert text in section
    assert page.index('<section id="probing">') < page.index('<section id="provenance">')
    assert '<a href="#probing">7 What the layers know</a>' in page
    assert ">8</span>Provenance" in page


def test_guesses_of_labels_that_are_not_shown_have_a_column(monkeypatch: pytest.MonkeyPatch) -> None:
    from truesource.evaluation.probing import report as figures_probing

    monkeypatch.setattr(figures_probing, "SHOWN", 2)
    head = {"name": "confusion", "layer": 1, "model": "m"}
    pairs = [("A", "A", 6), ("A", "C", 2), ("B", "B", 5), ("C", "A", 1)]
    drawn = figures_probing.confusion_figure(
        [{**head, "true": t, "predicted": g, "value": v} for t, g, v in pairs], "x"
    )
    shown = re.findall(r"<text[^>]*>([^<]+)</text>", drawn)
    assert "others" in shown
    assert "25" in shown  # of eight A, two were taken for C


def test_the_report_says_when_a_record_is_damaged(finished: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(finished, tmp_path / "run"))
    (run / "probing" / "kept.json").write_text("{}", encoding="utf-8")
    with pytest.raises(InputError, match=r"is damaged: .*; delete it and run the experiment again .*kept\.json"):
        build_report(run)


def test_a_call_prints_tables_and_writes_records_and_a_figure(here: Path, command: Command, tmp_path: Path) -> None:
    json_file, figure = tmp_path / "p.json", tmp_path / "p.svg"
    options = ("--targets", "tag,span", "--json", json_file, "--figure", figure)
    found = command(*call("kept", *options))
    assert (found.code, found.err) == (0, "")
    assert found.last.startswith(f"Wrote {json_file} and {figure}. Next: truesource evaluate dynamics models/kept")
    for text in ("Matthews", "selectivity", "description", "layer 1", "ln P(word)", "chance"):
        assert text in found.out
    ElementTree.fromstring(figure.read_text(encoding="utf-8"))
    records = json.loads(json_file.read_text(encoding="utf-8"))
    assert all("grammar:" in r["signature"] and r["model"] == "kept" for r in records)
    first = json_file.read_bytes()
    assert command(*call("kept", *options)).code == 2  # not overwritten
    assert command(*call("kept", *options, "--force")).code == 0
    assert json_file.read_bytes() == first


@pytest.mark.parametrize(
    ("options", "part"),
    [
        (("--targets", "state", "--layers", "1", "--no-mdl", "--control", "none"), "target:state"),
        (
            ("--split-by", "position", "--no-soft", "--right", "sampled", "--no-correlations"),
            "right:sampled|trained:hard",
        ),
        (("--given", "left", "--no-mdl"), "posterior-given:left"),
        (("--targets", "span", "--control", "split", "--no-mdl"), "vectors:ends-of-word"),
    ],
)
def test_options_change_what_is_measured(
    here: Path, command: Command, tmp_path: Path, options: tuple[str, ...], part: str
) -> None:
    found = command(*call("kept", *options, "--json", tmp_path / "p.json"))
    assert (found.code, found.err) == (0, "")
    records = json.loads((tmp_path / "p.json").read_text(encoding="utf-8"))
    assert part in records[0]["signature"]
    names = {r["name"] for r in records}
    assert ("mdl" in names) == ("--no-mdl" not in options)
    assert ("selectivity" in names) == ("none" not in options)
    assert ("rho_truth" in names) == ("--no-correlations" not in options and "span" not in options)


@pytest.mark.parametrize(
    ("model", "options", "message"),
    [
        ("counts", (), "counts has no hidden_states"),
        ("kept", ("--layers", "0,9"), "has layers 0 to 1, there is no layer 9"),
        ("kept", ("--layers", "some"), "--layers"),
        ("kept", ("--layers", "1,1"), "--layers"),
        ("kept", ("--layers", "-1"), "--layers"),
        ("plain", ("--given", "left"), "a masked model reads the whole sentence"),
        ("kept", ("--given", "left", "--targets", "span"), "--given"),
    ],
)
def test_bad_input_is_one_sentence(
    here: Path, command: Command, model: str, options: tuple[str, ...], message: str
) -> None:
    found = command(*call(model, *options))
    assert found.code == 2
    assert message in found.err
    assert found.err.count("\n") == 1
    assert "Traceback" not in found.err


def test_gaps_long_sentences_and_single_labels_are_named(here: Path, command: Command, tmp_path: Path) -> None:
    copy = shutil.copytree(here / "models" / "kept", tmp_path / "kept")
    shutil.rmtree(copy / "snapshots" / "step-000001")
    rest = ("corpus", "--oracle", "grammar/grammar.npz")
    found = command(*CALL, copy, *rest, "--checkpoints", "all")
    assert (found.code, "the snapshot of step 1 is missing; train the model again" in found.err) == (2, True)
    long = tmp_path / "long.txt"
    long.write_text("the cat sees " + "a dog in " * 6 + "a park\n", encoding="utf-8")
    found = command(*CALL, "models/kept", long, "--oracle", "grammar/grammar.npz")
    assert found.code == 2
    assert "sentence 1 has 23 words, but the model takes at most 11" in found.err
    few = tmp_path / "few.txt"
    few.write_text("the cat sees\n" * 9, encoding="utf-8")
    found = command(*CALL, "models/kept", few, "--oracle", "grammar/grammar.npz")
    assert found.code == 2
    assert "3 word types are too few to divide so that every label is in train" in found.err
    PCFG.from_text("S -> A A 1.0\nA -> cat 0.5 | dog 0.5").save(tmp_path / "one.npz")
    text = tmp_path / "one.txt"
    text.write_text("cat dog\n" * 9, encoding="utf-8")
    found = command(*CALL, "models/kept", text, "--oracle", tmp_path / "one.npz")
    assert found.code == 2
    assert "a probe needs at least two labels, but here the label is always A" in found.err


def test_lengths_that_no_sentence_has_leave_out_correlations_alone(
    here: Path, command: Command, tmp_path: Path
) -> None:
    options = ("--lengths", "30..40", "--no-mdl", "--json", tmp_path / "p.json")
    found = command(*call("kept", *options))
    assert found.code == 0
    warned, note = found.err.splitlines()
    assert warned.startswith("Warning: corpus was sampled with lengths 2..8, but the oracle has lengths 30..40")
    assert note == "Note: no correlations with word probabilities, because no sentence has 30..40 words"
    names = {r["name"] for r in json.loads((tmp_path / "p.json").read_text(encoding="utf-8"))}
    assert "selectivity" in names
    assert not [name for name in names if name.startswith("rho")]
    left = command(*call("kept", "--given", "left", *options[:2]))  # the posterior itself has that condition
    assert left.code == 2
    assert "the grammar can make none of the 120 sentences" in left.err


def test_few_groups_have_no_interval_anywhere(here: Path, command: Command, tmp_path: Path) -> None:
    """A dozen word types, of which a few are measured on; but sixteen sentences of the split by position."""
    figure = tmp_path / "p.svg"
    found = command(*call("kept", "--json", tmp_path / "p.json", "--figure", figure))
    assert found.code == 0
    records = [r for r in json.loads((tmp_path / "p.json").read_text(encoding="utf-8")) if r["name"] != "confusion"]
    few = ("accuracy", "mcc", "kl", "group_accuracy", "majority_accuracy", "random_accuracy", "rho_truth")
    many = ("selectivity", "task_accuracy", "mdl", "compression", "position_identity_accuracy")
    assert {r["name"] for r in records if r["low"] is None} >= {*few}
    assert {r["name"] for r in records if r["low"] is not None} == {*many, "control_accuracy"}
    assert not [r for r in records if (r["low"] is None) != (r["high"] is None)]
    assert "[0." in found.out  # of selectivity
    assert "None" not in found.out
    assert "nan" not in found.out + figure.read_text(encoding="utf-8")


def test_records_and_columns_name_split_and_groups(here: Path, command: Command, tmp_path: Path) -> None:
    def fields(*options: str) -> dict[str, tuple[str, str]]:
        found = command(*call("kept", *options, "--layers", "0", "--json", tmp_path / "p.json", "--force"))
        assert found.code == 0
        records = json.loads((tmp_path / "p.json").read_text(encoding="utf-8"))
        shown.append(found.out)
        return {r["name"]: (r["split"], r["resampled"]) for r in records if r["name"] != "confusion"}

    shown: list[str] = []
    plain = fields()
    assert plain["accuracy"] == ("type", "type")
    assert plain["selectivity"] == plain["mdl"] == ("position", "sentence")
    assert "(by position)" in " ".join(shown[-1].split())
    span = fields("--targets", "span", "--control", "split", "--no-mdl")
    assert span["accuracy"] == span["selectivity"] == ("type", "end-type")
    assert "(by position)" not in shown[-1]
    position = fields("--split-by", "position", "--control", "none")
    assert position["accuracy"] == ("position", "sentence")
    assert position["group_accuracy"] == ("position", "type")
    assert "selectivity" not in position


@pytest.mark.parametrize("right", ["argmax", "sampled"])
def test_the_limit_of_accuracy_is_one_for_drawn_labels_only(
    here: Path, command: Command, tmp_path: Path, right: str
) -> None:
    options = ("--right", right, "--layers", "0", "--no-mdl", "--figure", tmp_path / "p.svg")
    assert command(*call("kept", *options)).code == 0
    texts = re.findall(r"<text[^>]*>([^<]+)</text>", (tmp_path / "p.svg").read_text(encoding="utf-8"))
    assert ("limit" in texts) == (right == "sampled")
    assert ("limit of the expected" in texts) == ("expected for a sampled label" in texts) == (right == "argmax")


def test_one_layer_of_vectors_stands_in_memory(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a budget of one layer: when the network reads on, the vectors of the layers before are gone."""
    from truesource.generator.corpus import Corpus
    from truesource.lmtrain import hidden_states as module

    made: list[weakref.ref[object]] = []
    plain = module._extracted

    def extracted(*given: Any) -> Any:
        assert [ref for ref in made if ref() is not None] == []
        found = plain(*given)
        made.extend(weakref.ref(rows) for rows in found.values())
        return found

    monkeypatch.setattr(module, "_extracted", extracted)
    monkeypatch.setattr(module.hidden_layers, "__kwdefaults__", {**module.hidden_layers.__kwdefaults__, "budget": 1})
    corpus = Corpus.load(here / "corpus")
    pcfg = PCFG.load(here / "grammar" / "grammar.npz")
    targets: tuple[Kind, ...] = ("tag", "span")
    for target in targets:
        made.clear()
        settings = ProbingSettings(mdl=False, control="none", correlations=False, checkpoints="last")
        text = Setting(pcfg, corpus.sentences("eval"), corpus.lengths)
        probe_model(here / "models" / "kept", text, settings, target)
        assert len(made) == 3  # two layers, and the best one again
