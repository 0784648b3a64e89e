"""`truesource evaluate divergence`: tables, records, figures, samples, and bad luck."""

from __future__ import annotations

import json
import math
from pathlib import Path
from xml.etree import ElementTree

import pytest
from command_line import Command

from truesource.evaluation.core.oracle import Oracle
from truesource.evaluation.divergence.report import group_table, measures_table
from truesource.evaluation.show.table import Cell
from truesource.generator.corpus import Corpus
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.pcfg import PCFG

TOY = """\
S -> NP VP 1.0
NP -> DT NN 0.7 | NN 0.3
VP -> VB NP 0.6 | VB 0.4
DT -> the 0.6 | a 0.4
NN -> dog 0.4 | cat 0.3 | walk 0.3
VB -> sees 0.6 | walk 0.4
"""
LENGTHS = LengthRange(2, 8)
CALL = ("evaluate", "divergence")


@pytest.fixture(scope="module")
def networks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders of untrained networks of both kinds."""
    import torch

    from truesource.lmtrain.model_registry import model_settings, network_architecture
    from truesource.lmtrain.tokenizer import build_tokenizer
    from truesource.lmtrain.word_vocabulary import WordVocabulary

    folder = tmp_path_factory.mktemp("networks")
    for name in ("gpt2", "bert"):
        architecture = network_architecture(name)
        tokenizer = build_tokenizer([["the", "a", "dog", "cat", "walk", "sees"]], objective=architecture.objective)
        torch.manual_seed(0)
        network = architecture.build(
            model_settings(architecture=name, layers=1, heads=2, dim=8, max_positions=12), WordVocabulary(tokenizer)
        )
        network.save_pretrained(folder / name)
        tokenizer.save_pretrained(folder / name)
    return folder


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Command, networks: Path) -> Path:
    """A folder with a grammar, a corpus of it and two models, as working directory."""
    monkeypatch.chdir(tmp_path)
    PCFG.from_text(TOY).save(tmp_path / "toy.npz")
    (tmp_path / "gpt2").symlink_to(networks / "gpt2")
    (tmp_path / "bert").symlink_to(networks / "bert")
    split = ("--lengths", str(LENGTHS), "--shares", "train=.6,eval=.4")
    assert command("sample", "toy.npz", "-n", 100, "-o", "corpus", *split).code == 0
    return tmp_path


def records_of(path: Path) -> dict[str, dict[str, object]]:
    """Those of the whole corpus, by name."""
    return {r["name"]: r for r in json.loads(path.read_text(encoding="utf-8")) if "by" not in r}


@pytest.mark.long
@pytest.mark.parametrize("name", ["gpt2", "bert"])
def test_a_model_is_compared_and_everything_is_written(name: str, here: Path, command: Command) -> None:
    found = command(
        *CALL, name, "corpus", "--oracle", "toy.npz", "--by", "class, length,frequency", "--top-k", 3,
        "--json", "d.json", "--figure", "d.svg",
    )  # fmt: skip
    assert (found.code, found.err) == (0, "")
    assert found.last.startswith("Wrote d.json and d.svg. Next: truesource ")
    for text in ("KL(P‖Q)", "most probable tokens shared", "By class", "By frequency", "nouns", "1/10 to 1"):
        assert text in found.out
    assert "nats per token; frequency: expected share of the tokens" in " ".join(found.out.split())
    assert "By position" not in found.out
    records = records_of(here / "d.json")
    kl = records["kl"]
    assert kl["low"] < kl["value"] < kl["high"]  # type: ignore[operator]
    assert f"kl|{kl['signature']}" in found.out
    assert f"{kl['value']:.4f} " in found.out
    given = "2..8" if name == "gpt2" else "length"
    assert f"given:{given}" in str(kl["signature"]).split("|")
    assert kl["objective"] == ("causal" if name == "gpt2" else "masked")
    tables = {r["by"] for r in json.loads((here / "d.json").read_text(encoding="utf-8")) if "by" in r}
    assert tables == {"class", "frequency", "length"}
    root = ElementTree.parse(here / "d.svg").getroot()
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    drawn = "".join(root.itertext())
    assert "probability the model gives" in drawn
    assert "words in the sentence" in drawn


@pytest.mark.long
def test_tables_that_are_made_where_they_are_named(here: Path, command: Command) -> None:
    by = "phrase,ambiguity,distance,probability"
    found = command(*CALL, "gpt2", "corpus", "--oracle", "toy.npz", "--by", by, "--json", "d.json")
    assert (found.code, found.err) == (0, "")
    for text in (
        *("By lowest phrase over the next word", "By ambiguity of the sentence", "0 (one tree)"),
        *("By words back that matter", "words back are the fewest from which the next word can be predicted"),
        *("By true probability in the context", "impossible", "part of KL(P‖Q)", "mass of P", "mass of Q"),
    ):
        assert text in " ".join(found.out.split())
    records = json.loads((here / "d.json").read_text(encoding="utf-8"))
    whole = records_of(here / "d.json")
    bands = [record for record in records if record.get("by") == "probability"]
    parts = sum(record["value"] for record in bands if record["name"] == "kl_part")
    assert parts == pytest.approx(whole["kl"]["value"], rel=1e-9)
    (invalid,) = (r["value"] for r in bands if r["group"] == "impossible" and r["name"] == "model_mass")
    assert invalid == pytest.approx(whole["impossible_mass"]["value"], rel=1e-9)
    distances = [record for record in records if record.get("by") == "distance"]
    assert all("|seen:0..4|below:0.05|" in record["signature"] for record in distances)
    refused = command(*CALL, "bert", "corpus", "--oracle", "toy.npz", "--by", "distance")
    assert refused.code == 2 and "it has no divergence by distance; use a causal one" in refused.err


@pytest.mark.long
def test_the_numbers_are_those_of_score(here: Path, command: Command) -> None:
    assert command(*CALL, "gpt2", "corpus", "--oracle", "toy.npz", "--json", "d.json").code == 0
    assert command("score", "gpt2", "corpus", "--oracle", "toy.npz", "--json", "s.json").code == 0
    paired, plain = records_of(here / "d.json")["kl_paired"], records_of(here / "s.json")["kl"]
    for key in ("value", "low", "high"):
        assert paired[key] == pytest.approx(plain[key], abs=1e-5)
    assert records_of(here / "d.json").keys() >= {"js", "tv", "agreement", "calibration_error", "variance_ratio"}


@pytest.mark.long
@pytest.mark.parametrize("objective", ["causal", "masked"])
def test_the_oracle_as_a_model_differs_in_nothing(
    objective: str, here: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    lengths = LENGTHS if objective == "causal" else None
    truth = Oracle(PCFG.load("toy.npz"), objective, lengths=lengths)  # type: ignore[arg-type]
    monkeypatch.setattr("truesource.lmtrain.models.load_model", lambda folder: truth)
    found = command(
        *CALL,
        "a.b:truth",
        "corpus",
        "--oracle",
        "toy.npz",
        "--by",
        "position,length,class,frequency",
        "--json",
        "d.json",
    )
    assert (found.code, found.err) == (0, "")
    records = json.loads((here / "d.json").read_text(encoding="utf-8"))
    nothing = {"kl", "kl_paired", "reverse_kl", "js", "tv", "kl_infinite", "impossible_mass", "calibration_error"}
    assert nothing <= {r["name"] for r in records}
    for record in records:
        if record["name"] in nothing:
            assert (record["value"], record["low"] or 0.0, record["high"] or 0.0) == (0.0, 0.0, 0.0)
        if record["name"] in ("agreement", "top_k_overlap"):
            assert record["value"] == 1.0


@pytest.mark.long
@pytest.mark.parametrize("verb", [("score",), CALL])
def test_a_call_opens_its_corpus_once(
    verb: tuple[str, ...], here: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[Path] = []
    load = Corpus.load
    monkeypatch.setattr(Corpus, "load", lambda path: opened.append(path) or load(path))
    for _ in range(2):  # the next call opens it again
        assert command(*verb, "gpt2", "corpus", "--oracle", "toy.npz").code == 0
    assert opened == [Path("corpus")] * 2


@pytest.mark.long
def test_text_with_impossible_sentences(here: Path, command: Command) -> None:
    (here / "text.txt").write_text("the dog sees a cat\nzebra\n", encoding="utf-8")
    found = command(*CALL, "gpt2", "text.txt", "--oracle", "toy.npz", "--json", "d.json")
    assert found.code == 0
    assert found.err == (
        "1 of 2 sentences have probability 0 and are excluded: the oracle cannot make 1; the grammar lacks the word"
        " 'zebra'\n"
    )
    assert "given:none" in str(records_of(here / "d.json")["kl"]["signature"])


# -- samples of the model ---------------------------------------------------------------------------


@pytest.mark.long
def test_samples_as_text(here: Path, command: Command) -> None:
    (here / "own.txt").write_text("the dog sees\ndog dog\ncat walk\nthe walk walk\n", encoding="utf-8")
    found = command(*CALL, "gpt2", "corpus", "--oracle", "toy.npz", "--model-samples", "own.txt", "--json", "d.json")
    assert (found.code, found.err) == (0, "")
    assert "4 sentences of gpt2" in found.out
    assert found.last.startswith("Wrote d.json. Next: truesource evaluate pplu")
    records = records_of(here / "d.json")
    assert records["samples_impossible"]["value"] == 0.25
    assert records["samples_reverse_kl_infinite"]["value"] == 1.0
    assert math.isfinite(float(str(records["samples_reverse_kl_of_possible"]["value"])))


@pytest.mark.long
def test_samples_as_a_folder(here: Path, command: Command) -> None:
    make = ("generate", "gpt2", "-n", 40, "--max-tokens", 3)
    assert command(*make, "-o", "own").code == 0
    assert command(*make, "-o", "nucleus", "--scheme", "nucleus", "--top-p", 0.9).code == 0
    assert command(*make, "-o", "hot", "--temperature", 2).code == 0
    found = command(*CALL, "gpt2", "corpus", "--oracle", "toy.npz", "--model-samples", "own", "--json", "d.json")
    assert found.code == 0
    cut = int(found.err.split()[0])
    assert found.err == f"{cut} of 40 sentences of the model were truncated and are excluded\n"
    assert f"samples:{40 - cut}" in str(records_of(here / "d.json")["samples_impossible"]["signature"])
    for other in ("nucleus", "hot"):
        refused = command(*CALL, "gpt2", "corpus", "--oracle", "toy.npz", "--model-samples", other)
        assert refused.code == 2
        assert "not from the model's own distribution" in refused.err
    assert (
        "no finished samples"
        in command(*CALL, "gpt2", "corpus", "--oracle", "toy.npz", "--model-samples", "corpus").err
    )


# -- bad input --------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize(
    ("line", "part"),
    [
        (
            "gpt2 corpus --oracle toy.npz --by colour",
            "--by: expected one of 'position', 'length', 'class'",
        ),
        ("gpt2 corpus --oracle toy.npz --split dev", "dev"),
        ("missing corpus --oracle toy.npz", "missing"),
        ("gpt2 missing --oracle toy.npz", "missing"),
        ("gpt2 corpus --oracle missing.npz", "missing.npz"),
        ("gpt2 corpus --oracle toy.npz --model-samples missing.txt", "missing.txt"),
        ("gpt2 corpus --oracle toy.npz --lengths 9", "6..25 (inclusive) or none, got '9'"),
        ("gpt2 corpus --oracle toy.npz --json toy.npz", "will not overwrite toy.npz without --force"),
        ("gpt2 corpus --oracle toy.npz --figure toy.npz", "will not overwrite toy.npz without --force"),
        ("bert corpus --oracle toy.npz --model-samples text.txt", "a masked model cannot sample sentences"),
    ],
)
def test_bad_input_is_one_sentence(line: str, part: str, here: Path, command: Command) -> None:
    (here / "text.txt").write_text("the dog sees\n", encoding="utf-8")
    found = command(*CALL, *line.split())
    assert found.code == 2
    assert found.err.startswith("truesource: ")
    assert found.err.count("\n") == 1
    assert part in found.err


def test_a_model_of_pieces_is_refused(here: Path, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("truesource.lmtrain.models.load_model", lambda folder: object())
    found = command(*CALL, "gpt2", "corpus", "--oracle", "toy.npz")
    assert found.code == 2
    assert "no distributions" in found.err


@pytest.mark.long
def test_another_grammar_is_warned_of(here: Path, command: Command) -> None:
    PCFG.from_text(TOY.replace("0.7 | NN 0.3", "0.6 | NN 0.4")).save(here / "other.npz")
    found = command(*CALL, "gpt2", "corpus", "--oracle", "other.npz")
    assert found.code == 0
    assert "sampled from another grammar" in found.err


def test_a_share_below_one_is_never_shown_as_all() -> None:
    record = {"signature": "s", "low": None, "high": None}
    rows = [
        {**record, "name": "kl_infinite", "value": 0.99999},
        {**record, "name": "kl_where_finite", "value": 0.8182},
    ]
    cell = measures_table({"net": {"records": rows}}).rows[0].cells[1]
    assert isinstance(cell, Cell)
    assert (cell.text, cell.small) == ("infinite in over 99.99% of contexts", "0.8182 in the other contexts")
    assert "infinite in 3.00% of contexts" in str(
        measures_table({"net": {"records": [{**rows[0], "value": 0.03}]}}).rows[0].cells[1]
    )


def test_groups_of_no_tokens_have_no_row() -> None:
    """Expected tokens that print as 0 say nothing, unless a model has probability there."""
    record = {"signature": "s", "low": 0.0, "high": 0.2, "by": "phrase", "name": "kl", "value": 0.1}
    rows = [{**record, "group": name, "tokens": tokens} for name, tokens in (("NP", 20.4), ("X", 0.3), ("VP", 0.6))]
    table = group_table("phrase", {"net": {"records": rows}})
    assert [row.cells[0] for row in table.rows] == ["NP", "VP"]
    assert "fewer than 0.5 expected tokens are excluded" in (table.note or "")
    mass = {**record, "by": "probability", "group": "impossible", "name": "model_mass", "tokens": 0.0}
    assert [row.cells[0] for row in group_table("probability", {"net": {"records": [mass]}}).rows] == ["impossible"]
    assert "left out" not in (group_table("phrase", {"net": {"records": rows[:1]}}).note or "")


@pytest.mark.long
def test_none_is_a_value_of_options(here: Path, command: Command) -> None:
    """As in configurations: none of 300 sentences is all of them."""
    call = (*CALL, "gpt2", "corpus", "--oracle", "toy.npz", "--by", "position", "--json", "-", "--sentences")
    numbers = {}
    for value in ("none", 5):
        done = command(*call, value)
        assert done.code == 0, done.err
        numbers[value] = int(json.loads(done.out)[0]["signature"].partition("|sentences:")[2].partition("|")[0])
    assert numbers == {"none": Corpus.load("corpus").n_sentences("eval"), 5: 5}
    assert command(*call, 0).code == command(*call, "many").code == 2
