"""`truesource evaluate pairs`: what it prints and writes, and bad input."""

from __future__ import annotations

import json
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml
from agreement_grammar import agreement_grammar
from command_line import Command

from truesource.evaluation.core.signature import parts_of
from truesource.evaluation.pairs import PHENOMENA

GIVEN = ("evaluate", "pairs", "--oracle", "g.npz", "--lengths", "3..9")
MAKE = (*GIVEN, "-n", "6", "--tries", "60", "--tolerance", "0.8")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    agreement_grammar().save(tmp_path / "g.npz")
    return tmp_path


@pytest.fixture
def model(here: Path, command: Command) -> str:
    assert command("sample", "g.npz", "-n", 400, "-o", "c", "--lengths", "3..9").code == 0
    assert command("train", "c", "--model", "ngram", "--set", "model.order=2", "-o", "m").code == 0
    return "m"


@pytest.mark.long
def test_pairs_are_made_and_written(here: Path, command: Command) -> None:
    found = command(*MAKE, "--output", "p.jsonl", "--seed", 3)
    assert (found.code, found.err) == (0, "")
    following = "truesource evaluate pairs MODEL --oracle g.npz --file p.jsonl"
    assert found.last == f"Wrote p.jsonl and p.yaml and p.py. Next: {following}"
    lines = (here / "p.jsonl").read_text("utf-8")
    records = [json.loads(line) for line in lines.splitlines()]
    assert [r["phenomenon"] for r in records] == [name for name in PHENOMENA for _ in range(6)]
    assert command(*MAKE, "--output", "q.jsonl", "--seed", 3).code == 0
    assert (here / "q.jsonl").read_text("utf-8") == lines


@pytest.mark.long
def test_a_model_is_measured(here: Path, model: str, command: Command) -> None:
    found = command(*MAKE, model, "--output", "p.jsonl", "--json", "p.json", "--figure", "p.svg")
    assert (found.code, found.err) == (0, "")
    assert "subject-verb" in found.out
    assert "|log odds|: " in found.out
    score = f"truesource score {model} CORPUS --oracle g.npz"
    assert found.last == f"Wrote p.jsonl and p.yaml and p.py and p.json and p.svg. Next: {score}"
    records = json.loads((here / "p.json").read_text("utf-8"))
    assert {r["phenomenon"] for r in records} == {"all", *PHENOMENA}
    assert all(r["model"] == "m" and r["objective"] == "causal" for r in records)
    assert all("drawn:3..9" in r["signature"] for r in records)
    methods = {"accuracy": "wilson95", "unigram_accuracy": "wilson95"}
    for record in records:
        ci = parts_of(record["signature"]).get("ci")
        if isinstance(record["value"], int):
            assert ci is None and record["low"] is None
        elif record["low"] is None:
            assert ci == "none/fewer-than-10-sentences" == f"none/{record['no_interval']}"
        else:
            assert ci == methods.get(record["name"], "sentence-bootstrap-t95/seed1")
    accuracy = next(r for r in records if r["name"] == "accuracy" and r["phenomenon"] == "all" and "by" not in r)
    assert 0.5 < accuracy["low"] < accuracy["value"] <= accuracy["high"] <= 1.0
    assert ElementTree.parse(here / "p.svg").getroot().tag.endswith("svg")
    again = command(*GIVEN, model, "--file", "p.jsonl", "--json", "again.json")
    assert again.code == 0
    assert (here / "again.json").read_text("utf-8") == (here / "p.json").read_text("utf-8")
    assert again.last.startswith("Wrote again.json. Next: ")
    assert command(*MAKE, model).last.startswith("Nothing written; --json FILE saves these numbers. Next: ")


@pytest.mark.long
def test_lengths_are_those_of_the_models_corpus_or_all(here: Path, model: str, command: Command) -> None:
    call = ("evaluate", "pairs", "--oracle", "g.npz", "-n", "6", "--output", "p.jsonl", "--force")
    assert command(*call).code == 0
    free = [json.loads(line)["sentence_good"].split() for line in (here / "p.jsonl").read_text("utf-8").splitlines()]
    assert max(map(len, free)) > 9
    found = command(*call, model, "--json", "p.json")
    assert found.code == 0 and found.out.startswith("lengths 3..9 (recorded by m)\n")
    assert all("drawn:3..9" in r["signature"] for r in json.loads((here / "p.json").read_text("utf-8")))
    own = [json.loads(line)["sentence_good"].split() for line in (here / "p.jsonl").read_text("utf-8").splitlines()]
    assert own and all(3 <= len(sentence) <= 9 for sentence in own)
    found = command(*call, model, "--lengths", "none", "--json", "n.json")
    assert found.code == 0 and "recorded" not in found.out.splitlines()[0]
    assert all("drawn:none" in r["signature"] for r in json.loads((here / "n.json").read_text("utf-8")))


@pytest.mark.long
def test_a_task_of_the_harness_is_beside_the_pairs(here: Path, command: Command) -> None:
    assert command(*MAKE, "--output", "my.own.jsonl").code == 0
    text = (here / "my.yaml").read_text("utf-8")
    first, rest = text.split("\n", 1)
    assert first == "custom_dataset: !function my.load"
    task = yaml.safe_load(rest)
    assert (task["task"], task["output_type"], task["metadata"]["end"]) == ("my", "multiple_choice", "<eos>")
    spec = spec_from_file_location("my", here / "my.py")
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    records = [json.loads(line) for line in (here / "my.own.jsonl").read_text("utf-8").splitlines()]
    for end in ("<eos>", ""):
        docs = list(module.load(**task["dataset_kwargs"], end=end)["test"])
        assert [doc["target"] for doc in docs] == [number % 2 for number in range(len(records))]
        for doc, record in zip(docs, records, strict=True):
            assert doc["choices"][doc["target"]] == record["sentence_good"] + end
            assert doc["choices"][1 - doc["target"]] == record["sentence_bad"] + end
    refused = command(*MAKE, "--output", "my.jsonl")
    assert refused.code == 2 and "will not overwrite" in refused.err and not (here / "my.jsonl").exists()


@pytest.mark.long
def test_a_file_is_filtered(here: Path, command: Command) -> None:
    assert command(*MAKE, "--output", "p.jsonl").code == 0
    made = [json.loads(line) for line in (here / "p.jsonl").read_text("utf-8").splitlines()]
    call = (*GIVEN, "--file", "p.jsonl", "--output", "q.jsonl", "--force")

    def chosen(*options: object) -> list[str]:
        assert command(*call, *options).code == 0
        return [json.loads(line)["sentence_good"] for line in (here / "q.jsonl").read_text("utf-8").splitlines()]

    assert chosen() == [r["sentence_good"] for r in made]
    assert chosen("-n", 4) == [r["sentence_good"] for i, r in enumerate(made) if i % 6 < 4]
    verbs = [r for r in made if r["phenomenon"] == "subject-verb"]
    assert chosen("--phenomena", "subject-verb", "-n", 2) == [r["sentence_good"] for r in verbs[:2]]
    possible = [r["sentence_good"] for r in made if r["impossible"] is None]
    assert chosen("--possible") == possible
    assert len(possible) < 30


@pytest.mark.long
def test_a_model_that_knows_none_of_the_words(here: Path, command: Command) -> None:
    assert command("sample", "g.npz", "-n", 400, "-o", "c", "--lengths", "3..9").code == 0
    settings = ("--set", "model.order=2", "--set", "model.min_count=210")
    assert command("train", "c", "--model", "ngram", *settings, "-o", "m").code == 0
    found = command(*MAKE, "m")
    assert found.code == 2
    assert found.err == (
        "truesource: none of the 30 pairs can be compared: 30 where a word is outside the model's vocabulary\n"
    )


def test_phenomena_are_chosen_and_absent_ones_told(here: Path, command: Command) -> None:
    agreement_grammar(relabel={"DT": "D"}).save(here / "bare.npz")
    call = ("evaluate", "pairs", "--oracle", "bare.npz", "--lengths", "3..9", "-n", 3, "--output", "p.jsonl")
    found = command(*call, "--phenomena", "determiner-noun, word-order")
    assert found.code == 0
    assert found.err == (
        "no pairs of determiner-noun: the grammar has no determiner that shows number"
        " (this, these, that, those, a, an; tag DT).\n"
    )
    assert {json.loads(line)["phenomenon"] for line in (here / "p.jsonl").read_text("utf-8").splitlines()} == {
        "word-order"
    }


@pytest.mark.long
@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((), "--output"),
        (
            ("--output", "p", "--json", "j"),
            "--json and --figure are for a model's scores; name a model, or remove them",
        ),
        (("--output", "g.npz"), "will not overwrite g.npz without --force"),
        (
            ("nothing", "--file", "good.jsonl"),
            "there is no model 'nothing'",
        ),
        (
            ("--output", "p", "--file", "good.jsonl", "--tries", "11"),
            "tries: only used to generate pairs; leave out together with file",
        ),
        (
            ("--output", "p", "--file", "good.jsonl", "--forms", "f", "--attached", "0.9", "--tolerance", "0.4"),
            "tolerance, attached, forms: only used to generate pairs; leave out together with file",
        ),
        (
            ("--output", "p", "--file", "good.jsonl", "--phenomena", "word-order"),
            "the file has no pairs of 'word-order'; it has pairs (good.jsonl)",
        ),
        (("a.b:model", "--file", "broken.jsonl"), "(broken.jsonl:2)"),
        (
            ("no.where:model", "--file", "strange.jsonl"),
            "the word 'unicorn' is not one of the grammar (strange.jsonl:1)",
        ),
        (("--output", "p", "--phenomena", "islands"), "word-order"),
        (("--output", "p", "--tolerance", "0"), "--tolerance: expected more than 0, not 0"),
        (("--output", "p", "--forms", "nothing.txt"), "cannot read the forms: No such file or directory (nothing.txt)"),
        (
            ("--output", "p", "--phenomena", "subject-verb", "--forms", "empty.txt"),
            "(tags VBZ and VBP, or was and were)",
        ),
    ],
)
def test_bad_input_is_one_sentence(args: tuple[str, ...], message: str, here: Path, command: Command) -> None:
    good = '{"sentence_good": "the dog sleeps", "sentence_bad": "the dog sleep"}\n'
    (here / "good.jsonl").write_text(good, "utf-8")
    (here / "broken.jsonl").write_text(good + '{"sentence_good": "the dog sleeps"\n', "utf-8")
    (here / "strange.jsonl").write_text(good.replace("dog", "unicorn"), "utf-8")
    (here / "empty.txt").write_text("# nothing\n", "utf-8")
    call = list(GIVEN if "--file" in args else MAKE)
    if "--tolerance" in args and "--file" not in args:
        del call[call.index("--tolerance") : call.index("--tolerance") + 2]
    found = command(*call, *args)
    assert found.code == 2
    assert found.err.startswith("truesource: ")
    assert message in found.err
    assert found.err.count("\n") == 1
