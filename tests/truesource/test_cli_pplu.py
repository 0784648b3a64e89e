"""`truesource evaluate pplu`: with a grammar and without, what it prints and writes, and bad luck."""

from __future__ import annotations

import json
import math
from pathlib import Path
from xml.etree import ElementTree

import pytest
from command_line import Command
from saved_models import save_model, save_piece_model
from toy_english import TOY

from truesource.grammar.pcfg import PCFG

pytestmark = pytest.mark.long

CALL = ("evaluate", "pplu")
TAGGED = TOY.replace("V -> sees 0.6 | walks 0.4", "V -> sees 0.5 | walks 0.3 | man 0.2")
GRAMMAR = ("--oracle", "toy.npz")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Command) -> Path:
    """A folder with a grammar, a corpus, a trigram model of it and a text, as working directory."""
    monkeypatch.chdir(tmp_path)
    PCFG.from_text(TAGGED).save(tmp_path / "toy.npz")
    split = ("--lengths", "2..9", "--shares", "train=.7,dev=.1,eval=.2")
    assert command("sample", "toy.npz", "-n", 600, "-o", "corpus", *split).code == 0
    assert command("train", "corpus", "--model", "ngram", "-o", "model").code == 0
    (tmp_path / "text.txt").write_text(
        "the dog sees a cat\nman walks\na cat walks with the man\n" * 5, encoding="utf-8"
    )
    (tmp_path / "other.txt").write_text("the dog sees a cat\n" * 5, encoding="utf-8")
    return tmp_path


def records(name: str = "x.json") -> list[dict[str, object]]:
    found: list[dict[str, object]] = json.loads(Path(name).read_text("utf-8"))
    assert all({"name", "value", "low", "high", "signature"} <= r.keys() for r in found)
    return found


def test_with_a_grammar(here: Path, command: Command) -> None:
    found = command(*CALL, "model", "corpus", *GRAMMAR, "--json", "x.json")
    assert found.code == 0, found.err
    assert found.last.startswith("Wrote x.json. Next: truesource evaluate divergence model corpus --oracle toy.npz")
    scores = {r["name"]: r for r in records()}
    value = {name: float(str(r["value"])) for name, r in scores.items()}
    assert value["pplu"] == pytest.approx(value["ppl"] / value["ppl_unigram"])
    assert value["share_learned"] == pytest.approx(math.log(value["pplu"]) / math.log(value["pplu_bound"]))
    assert value["bound"] <= value["ppl"]
    assert "|u:oracle|" in str(scores["pplu"]["signature"])
    assert f"{value['pplu']:.4f} [" in found.out
    assert "share learned" in found.out


def test_without_a_grammar(here: Path, command: Command) -> None:
    found = command(
        *CALL,
        "model",
        "text.txt",
        "--json",
        "x.json",
        "--reduce",
        "--rank",
        "1",
        "--split-words",
        "man",
        "--split-words",
        "dog",
    )
    assert found.code == 0, found.err
    assert found.last == "Wrote x.json. Next: truesource cite"
    assert "mutual information" not in found.out
    assert "of the truth" not in found.out
    rows = records()
    assert {r["name"] for r in rows if "table" not in r} == {"ppl", "ppl_unigram", "pplu", "information_learned"}
    whole = next(r["value"] for r in rows if r["name"] == "pplu" and "table" not in r)
    split = {
        (r["model_knows"], r["unigram_knows"], r["name"]): r["value"] for r in rows if r.get("table") == "random-split"
    }
    assert split["true", "true", "pplu_split"] == pytest.approx(whole)
    assert split["counts", "counts", "pplu_split"] == pytest.approx(whole)
    reduced = [r for r in rows if r.get("table") == "reduction"]
    assert {r["protocol"] for r in reduced} == {"skip", "merge", "renormalise"}
    assert next(r["value"] for r in reduced if (r["protocol"], r["name"]) == ("merge", "pplu")) == pytest.approx(whole)
    assert any(r["name"] == "kendall_tau" and -1 <= float(str(r["value"])) <= 1 for r in rows)
    assert "First 1 by PPLu of the model" in found.out
    sentences = (here / "text.txt").read_text("utf-8").splitlines()
    assert all(r["text"] == sentences[int(str(r["sentence"]))] for r in rows if "by" in r)


def test_every_experiment_with_the_truth_beside_it(here: Path, command: Command) -> None:
    call = ("--reduce", "--senses", "50", "--rank", "2", "--json", "x.json", "--figure", "x.svg")
    found = command(*CALL, "model", "corpus", *GRAMMAR, "--sentences", "40", *call)
    assert found.code == 0, found.err
    rows = records()
    sides = {r["side"] for r in rows if r.get("table") == "reduction"}
    assert sides == {"model", "truth"}
    tau = [r["of"] for r in rows if r["name"] == "kendall_tau"]
    assert ["pplu", "truth_pplu"] in tau
    assert "gained, nats per token" in found.out
    gained = {r["side"]: r["value"] for r in rows if r.get("table") == "senses" and r["name"] == "mutual_information"}
    assert float(str(gained["split"])) > float(str(gained["whole"]))
    assert "truth: PPL rank" in found.out
    assert ElementTree.parse("x.svg").getroot().tag.endswith("svg")


def test_word_frequencies_of_a_text(here: Path, command: Command) -> None:
    counted = (*CALL, "model", "text.txt", "--unigram", "train", "--counted")
    found = command(*counted, "corpus", "--json", "x.json")
    assert found.code == 0, found.err
    assert "|u:train|" in str(records()[0]["signature"])
    assert "counts of training text" in found.out
    assert command(*CALL, "model", "corpus", "--unigram", "train").code == 0  # of its train split
    refused = command(*counted, "other.txt", "--smoothing", "0")
    assert refused.code == 2
    assert "gives no probability to" in refused.err
    assert command(*counted, "other.txt").code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("model", "text.txt", "--unigram", "train"), "name it: --counted TEXT"),
        (("model", "text.txt", "--counted", "other.txt"), "unigram train or model counts; give both"),
        (("model", "text.txt", "--unigram", "model"), "name their text as counted"),
        (("model", "text.txt", "--unigram", "oracle"), "needs the grammar"),
        (("model", "text.txt", "--senses", "9"), "add its grammar: --oracle GRAMMAR"),
        (("model", "text.txt", "--figure", "x.svg"), "--figure draws the curves of --reduce"),
        (("model", "text.txt", "--reduce", "--frame", "paper"), "--reduce counts every position"),
        (("model", "text.txt", "--split-words", "zebra"), "none of the words to split"),
        (("model", "text.txt", "--split-words", "man", "--beta", "1"), "--beta: "),
        (("model", "nowhere.txt"), "there is no such file"),
        (("nowhere", "text.txt"), "nowhere"),
    ],
)
def test_bad_input_is_one_sentence(arguments: tuple[str, ...], message: str, here: Path, command: Command) -> None:
    found = command(*CALL, *arguments)
    assert found.code == 2
    assert message in found.err
    assert found.err.rstrip().count("\n") == 0


def test_models_of_pieces_have_a_vocabulary_of_pieces_to_reduce(here: Path, command: Command) -> None:
    text = [line.split() for line in (here / "text.txt").read_text("utf-8").splitlines()]
    save_piece_model(here / "pieces", text, "bpe", 30)
    found = command(*CALL, "pieces", "text.txt", "--reduce")
    assert found.code == 0 and "Only the most frequent pieces" in found.out, found.err
    assert command(*CALL, "pieces", "text.txt").code == 0
    counted = command(*CALL, "pieces", "text.txt", "--unigram", "train", "--counted", "other.txt")
    assert counted.code == 0, counted.err  # man and walks are not in other.txt: smoothed over the words of both
    assert "-ln PPLu" in counted.out
    assert "of the model" not in counted.out


def test_masked_models_too(here: Path, command: Command) -> None:
    save_model(here / "masked", "bert")
    found = command(*CALL, "masked", "text.txt")
    assert found.code == 0, found.err
    assert "(masked)" in found.out
