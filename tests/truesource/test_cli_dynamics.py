"""`truesource evaluate dynamics`, the stage of a run, its section of the report, and folders with gaps."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from command_line import Command
from tiny_run import RunCopies, prepare, run

from truesource.evaluation.dynamics.evaluator import DYNAMICS
from truesource.evaluation.dynamics.report import curves_figure, figure, places_figure
from truesource.evaluation.show.declared import section_of, template_of
from truesource.generator.process_sampler import sampler_of
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import random_state
from truesource.grammar.support.atomic_files import write_json
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import data_folder
from truesource.lmtrain.model_registry import model_settings
from truesource.lmtrain.models import load_model
from truesource.lmtrain.snapshots import checkpoints
from truesource.lmtrain.training import train
from truesource.report.finished_run import FinishedRun, read_run
from truesource.run.experiment import build_report, load_config, plan

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("one_thread")]

GRAMMAR = """\
S -> NP VP 1.0
NP -> DT NN 0.7 | NN 0.3
VP -> VB NP 0.6 | VB 0.4
DT -> the 0.6 | a 0.4
NN -> dog 0.4 | cat 0.3 | walk 0.3
VB -> sees 0.6 | walk 0.4
"""
CALL = ("evaluate", "dynamics")
STEPS = (0, 1, 2, 3)
TRAINING = {"max_steps": 3, "snapshots": "log"}
CONFIG = """\
name: toy
seed: 3
grammar: {method: file, file: toy.txt}
corpus: {lengths: 2..5, splits: {train: 100, dev: 20, eval: 30}}
models:
  - {name: network, model: {dim: 8, heads: 2, layers: 1}, training: {max_steps: 3, snapshots: log}}
  - {name: masked, model: {architecture: bert, dim: 8, heads: 2, layers: 1}, training: {max_steps: 3, snapshots: log}}
  - {name: plain, model: {dim: 8, heads: 2, layers: 1}, training: {max_steps: 2}}
  - {name: counts, model: {architecture: ngram, order: 2}}
evaluation:
  dynamics: {sentences: 20, contexts: 50, threshold: 0.5}
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders of networks with snapshots, made without training."""
    import torch

    from truesource.lmtrain.model_registry import model_settings, network_architecture
    from truesource.lmtrain.tokenizer import build_tokenizer
    from truesource.lmtrain.word_vocabulary import WordVocabulary

    folder = tmp_path_factory.mktemp("networks")
    for name in ("gpt2", "bert"):
        architecture = network_architecture(name)
        tokenizer = build_tokenizer([["the", "a", "dog", "cat", "walk", "sees"]], objective=architecture.objective)
        for step in STEPS:
            torch.manual_seed(step)
            shape = model_settings(architecture=name, layers=1, heads=2, dim=8, max_positions=12)
            network = architecture.build(shape, WordVocabulary(tokenizer))
            last = step == STEPS[-1]
            for target in (folder / name / f"snapshots/step-{step:06d}", folder / name)[: 1 + last]:
                network.save_pretrained(target)
                tokenizer.save_pretrained(target)
                record: dict[str, Any] = {"name": f"{name}@{step}", "step": step}
                write_json(target / "training.json", record)
        write_json(
            folder / name / "training.json",
            {"name": name, "training": TRAINING, "steps": 3, "planned_steps": 3},
        )
    return folder


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Command, made: Path) -> Path:
    """A folder with a grammar, a corpus of it and two models, as working directory."""
    monkeypatch.chdir(tmp_path)
    PCFG.from_text(GRAMMAR).save(tmp_path / "toy.npz")
    for name in ("gpt2", "bert"):
        shutil.copytree(made / name, tmp_path / name)
    split = ("--lengths", "2..5", "--shares", "train=.6,eval=.4")
    assert command("sample", "toy.npz", "-n", 60, "-o", "corpus", *split).code == 0
    return tmp_path


@pytest.fixture(scope="module")
def finished(finished_run: RunCopies) -> Path:
    """A finished run, in a folder with its configuration."""
    return finished_run("dynamics", lambda folder: run(prepare(folder, CONFIG, GRAMMAR)))


# -- the verb ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["gpt2", "bert"])
def test_every_snapshot_is_measured_and_everything_is_written(name: str, here: Path, command: Command) -> None:
    found = command(
        *CALL,
        name,
        "corpus",
        "--oracle",
        "toy.npz",
        "--by",
        "class,depth,length",
        "--json",
        "d.json",
        "--figure",
        "d.svg",
    )
    assert (found.code, found.err) == (0, "")
    assert found.last.startswith("Wrote d.json and d.svg. Next: truesource evaluate divergence")
    for text in ("nouns", "constituents above", "words in sentence", "Furthest from the truth at the end"):
        assert text in found.out
    assert "position" not in found.out
    records = json.loads((here / "d.json").read_text(encoding="utf-8"))
    assert {r["step"] for r in records if "step" in r} == set(STEPS)
    assert {r["by"] for r in records} == {"all", "class", "length", "depth"}
    last = next(r for r in records if (r["name"], r["by"], r.get("step")) == ("log_ratio", "all", 3))
    assert last["low"] < last["value"] < last["high"]
    assert f"log_ratio|{last['signature']}" in found.out
    root = ElementTree.parse(here / "d.svg").getroot()
    drawn = "".join(root.itertext())
    for text in ("training step", "the truth", "nouns", "words in the sentence", "constituents above"):
        assert text in drawn


@pytest.mark.long
def test_the_table_of_a_model_of_pieces_says_what_it_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Command
) -> None:
    monkeypatch.chdir(tmp_path)
    law = PCFG.from_text("S -> W S 0.6 | W 0.4\nW -> cat 0.4 | cats 0.3 | the 0.2 | zebra 0.1")
    law.save("law.npz")
    sampler = sampler_of(law, LengthRange(2, 6))
    known = [list(s) for s in sampler.sentences(sampler.draw(60, random_state(3))) if "zebra" not in s]
    shape = model_settings("gpt2", layers=1, dim=16, heads=2, tokenizer="bpe", vocab_size=20, max_positions=64)
    train(known, shape, {"max_steps": 2, "snapshots": "linear", "snapshot_every": 1}, Path("m"))
    text = [["zebra", "cat"], *known]  # z is an unknown character
    Path("text").write_text("".join(" ".join(sentence) + "\n" for sentence in text), encoding="utf-8")
    options = ("--lengths", "2..6", "--by", "length", "--sentences", 20, "--contexts", 40)
    result = command(*CALL, "m", "text", "--oracle", "law.npz", *options)
    assert result.code == 0
    assert "1 of 20 sentences have probability 0" in result.err
    cut, some = load_model("m").cut(text), 0
    while sum(len(pieces) + 1 for pieces in cut[: some + 1]) <= 40:
        some += 1
    words = sum(len(sentence) + 1 for sentence in text[:some])
    caption = f"tokens: words and sentence ends; exact KL: over {words} tokens of {some} sentences"
    assert some > 1 and caption in " ".join(result.out.split())


def test_the_last_checkpoint_has_the_numbers_of_score(here: Path, command: Command) -> None:
    assert command(*CALL, "gpt2", "corpus", "--oracle", "toy.npz", "--json", "d.json").code == 0
    assert command("score", "gpt2", "corpus", "--oracle", "toy.npz", "--json", "s.json").code == 0
    rows = json.loads((here / "d.json").read_text(encoding="utf-8"))
    mine = next(r for r in rows if (r["name"], r["by"], r.get("step")) == ("log_ratio", "all", 3))
    plain = next(r for r in json.loads((here / "s.json").read_text(encoding="utf-8")) if r["name"] == "kl")
    assert (-mine["value"], -mine["high"], -mine["low"]) == pytest.approx(
        (plain["value"], plain["low"], plain["high"]), abs=1e-6
    )


@pytest.mark.parametrize("tags", ["paper", "drawn"])
def test_tags_of_one_derivation_give_whole_counts(tags: str, here: Path, command: Command) -> None:
    call = (*CALL, "gpt2", "corpus", "--oracle", "toy.npz", "--tags", tags, "--contexts", 0, "--json", "d.json")
    assert command(*call, "--measure", "median", "--figure", "d.svg").code == 0
    rows = json.loads((here / "d.json").read_text(encoding="utf-8"))
    counts = {r["group"]: r["tokens"] for r in rows if r["by"] == "class"}
    assert all(tokens == round(tokens) for tokens in counts.values())
    assert sum(counts.values()) == next(r["tokens"] for r in rows if r["by"] == "all")
    assert "median of" in (here / "d.svg").read_text(encoding="utf-8")
    assert not any(r["name"] == "kl" for r in rows)


def test_own_classes_are_used_and_some_shown(here: Path, command: Command) -> None:
    (here / "c.tsv").write_text("NN\tthings\nVB\tdeeds\nDT\tthe rest\n", encoding="utf-8")
    call = (*CALL, "gpt2", "corpus", "--oracle", "toy.npz", "--contexts", 0, "--classes", "c.tsv")
    found = command(*call, "--only", "things", "--only", "deeds", "--json", "d.json")
    assert found.code == 0
    table = found.out[: found.out.index("At step")]
    assert "things" in table
    assert "the rest" not in table
    groups = {r["group"] for r in json.loads((here / "d.json").read_text(encoding="utf-8")) if r["by"] == "class"}
    assert groups == {"things", "deeds", "the rest", "(end)"}
    other = ("evaluate", "divergence", "gpt2", "corpus", "--oracle", "toy.npz", "--by", "class", "--classes", "c.tsv")
    assert "deeds" in command(*other).out
    assert (refused := command(*call, "--only", "nouns")).code == 2
    assert "there is no class 'nouns'; choose from things, deeds, the rest, (end)" in refused.err


def test_classes_that_miss_a_tag_are_refused(here: Path, command: Command) -> None:
    (here / "c.json").write_text('{"NN": "things"}', encoding="utf-8")
    found = command(*CALL, "gpt2", "corpus", "--oracle", "toy.npz", "--classes", "c.json")
    assert found.code == 2
    assert "the classes miss the tag 'DT' (and 1 more of the grammar's tags)" in found.err
    assert "Traceback" not in found.err
    (here / "c.tsv").write_text("NN\tthings\nVB deeds\n", encoding="utf-8")
    found = command(*CALL, "gpt2", "corpus", "--oracle", "toy.npz", "--classes", "c.tsv")
    assert found.code == 2
    assert "c.tsv:2" in found.err


def test_derivations_are_needed_for_the_published_tags(here: Path, command: Command) -> None:
    (here / "text.txt").write_text("the dog sees a cat\ndog sees\n", encoding="utf-8")
    found = command(*CALL, "gpt2", "text.txt", "--oracle", "toy.npz", "--tags", "paper")
    assert found.code == 2
    assert "use --tags drawn" in found.err
    assert command(*CALL, "gpt2", "text.txt", "--oracle", "toy.npz", "--tags", "drawn", "--by", "tag").code == 2


def test_only_what_is_asked_for_is_measured(here: Path, command: Command) -> None:
    PCFG.from_text("S -> S S 0.5 | NN 0.5\nNN -> dog 0.5 | cat 0.5").save(here / "critical.npz")
    (here / "text.txt").write_text("dog cat\ncat\ndog dog cat\n", encoding="utf-8")
    call = (*CALL, "gpt2", "text.txt", "--oracle", "critical.npz", "--contexts", 0)
    assert command(*call, "--by", "class").code == 0  # no word has a frequency under this grammar
    found = command(*call, "--by", "frequency")
    assert found.code == 2
    assert "infinite" in found.err


def test_there_is_no_exact_divergence_of_another_frame(here: Path, command: Command) -> None:
    call = (*CALL, "gpt2", "corpus", "--oracle", "toy.npz")
    found = command(*call, "--frame", "paper", "--json", "d.json")
    assert found.code == 0
    assert found.err.count("No exact KL") == 1
    assert "over all tokens it cannot" not in found.out
    assert not any(r["name"] == "kl" for r in json.loads((here / "d.json").read_text(encoding="utf-8")))
    for options, message in ((("--contexts", 0), "--measure"), (("--frame", "paper"), "in the frame paper")):
        refused = command(*call, *options, "--measure", "kl", "--figure", "d.svg")
        assert refused.code == 2
        assert "no exact KL" in refused.err
        assert message in refused.err
        assert not (here / "d.svg").exists()


def test_a_text_of_few_sentences_has_no_intervals(here: Path, command: Command) -> None:
    found = command(*CALL, "bert", "corpus", "--oracle", "toy.npz", "--sentences", 5, "--json", "d.json")
    assert found.code == 0
    assert " to ..." not in found.out
    assert "[" not in found.out
    rows = json.loads((here / "d.json").read_text(encoding="utf-8"))
    assert {(r["low"], r["high"]) for r in rows if r["by"] in ("all", "class") and r["name"] != "kl"} == {(None, None)}


# -- folders with gaps ------------------------------------------------------------------------------


def test_snapshots_come_in_order_and_the_model_itself_last(here: Path) -> None:
    found = checkpoints("gpt2")
    assert [step for step, _ in found] == list(STEPS)
    assert found[-1][1] == Path("gpt2")
    assert found[1][1] == Path("gpt2/snapshots/step-000001")
    shutil.rmtree("gpt2/snapshots/step-000003")  # the model itself stands for it
    assert checkpoints("gpt2") == found


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda f: shutil.rmtree(f / "snapshots/step-000001"), "the snapshot of step 1 is missing"),
        (
            lambda f: [shutil.rmtree(f / f"snapshots/step-00000{k}") for k in (0, 2)],
            r"the snapshot of step 0 is missing \(and 1 more\)",
        ),
        (lambda f: (f / "snapshots/step-000002/config.json").unlink(), "of step 2 is unfinished, it lacks config.json"),
        (
            lambda f: (f / "snapshots/step-000002/model.safetensors").unlink(),
            "of step 2 is unfinished, it lacks model.safetensors",
        ),
        (
            lambda f: (f / "snapshots/step-000002/training.json").unlink(),
            "of step 2 is unfinished, it lacks training.json",
        ),
        (lambda f: [(f / "training.json").unlink(), shutil.rmtree(f / "snapshots")], "no trained model here"),
        (lambda f: (f / "training.json").write_text("{"), "record of the training is not JSON"),
        (
            lambda f: write_json(f / "training.json", {"training": {"max_steps": 3}, "steps": 3, "planned_steps": 3}),
            "train it with --set training.snapshots=log",
        ),
        (
            lambda f: write_json(f / "training.json", {"training": None, "steps": 0, "planned_steps": 0}),
            "an n-gram model has no steps",
        ),
        (lambda f: shutil.rmtree(f), "no such model folder"),
    ],
)
def test_gaps_are_named(damage: Any, message: str, here: Path, command: Command) -> None:
    damage(here / "gpt2")
    with pytest.raises(InputError, match=message):
        checkpoints(here / "gpt2")
    found = command(*CALL, "gpt2", "corpus", "--oracle", "toy.npz")
    assert found.code == 2
    assert len(found.err.strip().splitlines()) <= 3
    assert "Traceback" not in found.err


# -- the stage and the report -----------------------------------------------------------------------


def test_the_stage_measures_models_with_snapshots(finished: Path) -> None:
    made = sorted(path.name for path in (finished / "runs" / "toy" / "dynamics").iterdir())
    assert made == ["masked.json", "network.json"]
    record = json.loads((finished / "runs" / "toy" / "dynamics" / "network.json").read_text(encoding="utf-8"))
    assert record["steps"] == [0, 1, 2, 3]
    assert set(record["curves"]) == {"all", "class", "length", "position", "frequency", "depth"}
    assert record["findings"][0].startswith("At step 3, network gives a token")
    assert record["sentences"] == 20
    assert run(finished) == []
    assert run(finished, "evaluation.dynamics={sentences: 20, contexts: 50, threshold: 0.4}") == [
        "dynamics:network", "dynamics:masked", "report"
    ]  # fmt: skip
    assert run(finished) == ["dynamics:network", "dynamics:masked", "report"]


def test_the_report_has_a_section_with_figures_and_words(finished: Path) -> None:
    page = build_report(finished / "runs" / "toy").read_text(encoding="utf-8")
    section = page[page.index('<section id="dynamics">') : page.index('<section id="provenance">')]
    assert "What is learned when" in section
    assert section.count("<svg") == 6
    assert "network (causal): 4 checkpoints" in section
    assert "masked (masked): 4 checkpoints" in section
    assert "At step 3, network gives a token" in section
    assert "nouns" in section
    numbers = [int(n) for n in re.findall(r'<span class="no">(\d+)</span>', page)]
    assert numbers == list(range(1, len(numbers) + 1))
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))


def test_a_damaged_record_is_refused(finished: Path, tmp_path: Path) -> None:
    shutil.copytree(finished / "runs" / "toy", tmp_path / "toy")
    write_json(tmp_path / "toy" / "dynamics" / "network.json", {"model": "network"})
    with pytest.raises(InputError, match="damaged"):
        build_report(tmp_path / "toy")


def without_kl(curves: dict[str, Any]) -> dict[str, Any]:
    """Curves as of a model without full distributions."""
    return {**curves, "kl": {end: [[None] * len(row) for row in rows] for end, rows in curves["kl"].items()}}


def test_the_words_of_the_section_go_by_tags_and_frame(finished: Path) -> None:
    from truesource.report.environment import render

    record = json.loads((finished / "runs" / "toy" / "dynamics" / "network.json").read_text(encoding="utf-8"))
    curves = record["curves"]["class"]
    curves["mean"]["low"][-1][0] = curves["mean"]["high"][-1][0] = None  # too few sentences
    curves["half"][0] = [2.5, None, None]

    def page(**changes: object) -> str:
        run = read_run(finished / "runs" / "toy")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(FinishedRun, "of_models", lambda *given: {"m": {**record, **changes}})
            content = section_of(DYNAMICS, run)
        assert [row.cells[2].ends for row in content[0]["table"].rows].count(None) == 1
        return " ".join(render(template_of(DYNAMICS), finished, section=content).split())

    own = page()
    assert "minus the divergence" in own
    assert "exact posterior" in own
    other = page(tags="paper", frame="paper")
    assert "minus the divergence" not in other
    assert "causal: sentence ends, first words and unknown words" in other
    assert "exact posterior" not in other
    assert "in the derivation that the sentence was sampled with" in other


def test_figures_draw_the_kinds_of_records_there_are(finished: Path) -> None:
    record = json.loads((finished / "runs" / "toy" / "dynamics" / "network.json").read_text(encoding="utf-8"))
    for measure in ("mean", "median", "kl"):
        drawn = ElementTree.fromstring(figure({**record, "measure": measure}, "dynamics"))
        assert "nouns" in "".join(drawn.itertext())
    some = {**record, "curves": {"all": record["curves"]["all"]}}
    assert "all tokens" in "".join(ElementTree.fromstring(curves_figure(0, some)).itertext())
    with pytest.raises(InputError, match=r"no exact KL.* of network to draw"):
        figure({**record, "measure": "kl", "curves": {"class": without_kl(record["curves"]["class"])}}, "dynamics")
    assert "constituents above the word (expected)" in (places_figure(0, record) or "")
    drawn_tags = places_figure(0, {**record, "tags": "drawn"}) or ""
    assert "constituents above the word" in drawn_tags
    assert "(expected)" not in drawn_tags
    only = "".join(ElementTree.fromstring(figure({**record, "only": ["verbs"]}, "dynamics")).itertext())
    assert "verbs" in only
    assert "nouns" not in only


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("evaluation.dynamics={by: [tag]}", "evaluation.dynamics.by"),
        ("evaluation.dynamics={tags: best}", "evaluation.dynamics.tags"),
        ("evaluation.dynamics={threshold: 0}", "evaluation.dynamics.threshold"),
        ("evaluation.dynamics={measure: kl, contexts: 0}", "evaluation.dynamics: measure"),
        ("evaluation={frame: paper, dynamics: {measure: kl}}", "evaluation.dynamics.measure"),
        ("models=[{name: plain, training: {max_steps: 2}}]", "needs a model with snapshots"),
    ],
)
def test_wrong_settings_are_named(override: str, message: str, finished: Path) -> None:
    with pytest.raises(InputError, match=message):
        load_config(finished / "toy.yaml", [override])


def test_the_example_configuration_plans_a_stage_for_every_network() -> None:
    stages = [stage.name for stage in plan(load_config(data_folder() / "dynamics.yaml"))]
    assert {"dynamics:gpt2", "dynamics:lstm", "dynamics:bert"} <= set(stages)
    without = plan(load_config(data_folder() / "dynamics.yaml", ["evaluation.dynamics=null"]))
    assert not any(stage.name.startswith("dynamics") for stage in without)
