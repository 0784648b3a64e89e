"""The command as a newcomer with bad luck meets it: every verb, and bad input of every kind."""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from command_line import Command
from toy_english import BANK, TOY

from truesource.evaluation.core.signature import parts_of
from truesource.evaluation.evaluators import EVALUATORS
from truesource.generator.corpus import Corpus
from truesource.grammar.inference.windows import Windows
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.files import data_folder
from truesource.grammar.treebank import Treebank
from truesource.report.works import TOPICS, works

VERBS = (
    *("run", "induce", "vary", "sample", "parse", "bound", "train", "score", "generate", "evaluate"),
    *("report", "convert", "inspect", "cite"),
)
TEXT = "the dog sees a cat\nman walks\n"
TINY = ("--set", "model.dim=16", "--set", "model.heads=2", "--set", "model.layers=1", "--set", "training.max_steps=4")
SPLIT = ("--lengths", "2..8", "--shares", "train=.6,dev=.1,eval=.3")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a grammar, a treebank, text and all kinds of broken files, as working directory."""
    files = {
        "toy.txt": TOY,
        "bank.mrg": BANK,
        "text.txt": TEXT,
        "unbalanced.mrg": "( (S (NP (D the) (N dog)) (VP (V sees)) )\n",
        "stray.mrg": ")\n",
        "empty.mrg": "",
        "blank.mrg": "\n\n",
        "leaf.mrg": "( (S (D the) (N )) )\n",
        "nosum.txt": "S -> A B 1.0\nA -> a 0.5 | b 0.4\nB -> c 1.0\n",
        "explode.txt": "S -> S S 0.7 | a 0.3\n",
        "leak.txt": "S -> A 0.5 | a 0.5\nA -> A A 1.0\n",
        "noprob.txt": "S -> A B 1.0\nA -> a\nB -> c 1.0\n",
        "unreachable.txt": "S -> A A 1.0\nA -> a 1.0\nX -> b 1.0\n",
        "unproductive.txt": "S -> A A 1.0\nA -> a 1.0\nX -> X X 1.0\n",
        "gap.txt": "the dog sees\n\nman walks\n",
        "empty.txt": "",
        "zebra.txt": "zebra\ndog dog\n",
    }
    #: only so much that it is known what they are
    parts = ("config.json", "stages.json", "grammar/grammar.npz", "corpus/record.json", "corpus/grammar.npz")
    of_run = (*parts, "models/a/training.json", "models/b/training.json", "models/c.partial/request.json")
    files |= {f"runs/toy/{name}": "{}" for name in of_run}
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    PCFG.from_text(TOY).save(tmp_path / "toy.npz")
    whole = (tmp_path / "toy.npz").read_bytes()
    (tmp_path / "cut.npz").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "flipped.npz").write_bytes(whole[:600] + bytes([whole[600] ^ 255]) + whole[601:])
    (tmp_path / "noise.npz").write_bytes(bytes(range(128, 256)) * 4)
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def snapshot(folder: Path) -> dict[str, bytes | None]:
    return {str(p.relative_to(folder)): p.read_bytes() if p.is_file() else None for p in folder.rglob("*")}


# -- bad input --------------------------------------------------------------------------------------

BAD = [
    ("induce unbalanced.mrg -o new", ["unbalanced.mrg:1"]),
    ("induce stray.mrg -o new", ["closing bracket without an opening one", "stray.mrg:1"]),
    ("induce empty.mrg -o new", ["holds no tree", "empty.mrg"]),
    ("induce blank.mrg -o new", ["holds no tree"]),
    ("induce leaf.mrg -o new", ["(N ) has no children", "leaf.mrg:1"]),
    ("induce text.txt -o new", ["text outside brackets: 'the'", "text.txt:1"]),
    ("induce noise.npz -o new", ["not UTF-8", "noise.npz:1"]),
    ("induce missing.mrg -o new", ["no such file", "missing.mrg"]),
    ("induce folder -o new", ["no treebank file", "folder"]),
    ("induce no*thing -o new", ["no file matches"]),
    ("induce bank.mrg -o new --lexicon magic", ["split_merge.lexicon", "'generate' or 'parse', not 'magic'"]),
    ("induce bank.mrg -o folder", ["is a folder; name a file"]),
    ("induce bank.mrg -o toy.txt/new.npz", ["cannot write here", "toy.txt"]),
    ("inspect nosum.txt", ["'A' sum to 0.9, not 1", "nosum.txt"]),
    ("inspect noprob.txt", ["must end in its probability", "noprob.txt:2"]),
    ("inspect empty.txt", ["no rules", "empty.txt"]),
    ("inspect bank.mrg", ["these are trees, not a grammar", "bank.mrg:1"]),
    ("inspect missing.npz", ["no such file", "missing.npz"]),
    ("inspect folder", ["Is a directory", "folder"]),
    ("inspect cut.npz", ["damaged", "cut.npz"]),
    ("inspect flipped.npz", ["damaged", "flipped.npz"]),
    ("inspect noise.npz", ["neither an .npz grammar nor UTF-8", "noise.npz"]),
    ("convert nosum.txt new.npz", ["'A' sum to 0.9"]),
    ("convert toy.npz folder", ["is a folder; name a file"]),
    ("sample nosum.txt -n 200 -o new", ["'A' sum to 0.9"]),
    (
        "sample explode.txt -n 200 -o new --lengths none",
        ["spectral radius is 1.4", "S -> S S (0.7)", "leaks through S", "explode.txt"],
    ),
    ("sample explode.txt -n 200 -o new", ["spectral radius is 1.4", "range of lengths, such as --lengths 1..100"]),
    (
        "sample leak.txt -n 200 -o new --lengths none",
        ["only 0.5 of the probability mass", "leaks through A", "A -> A A (1)"],
    ),
    ("sample toy.npz -n 200 -o new --lengths 25..6", ["low <= high"]),
    ("sample toy.npz -n 200 -o new --lengths short", ["6..25 (inclusive) or none, got 'short'"]),
    ("sample toy.npz -n 200 -o new --lengths 1..1", ["1..1"]),
    ("sample toy.npz -n 200 -o new --shares train", ["write splits as"]),
    ("sample toy.npz -n 200 -o new --shares train=.5,eval=.6", ["splits sum to 1.1"]),
    ("sample toy.npz -n 200 -o new --shares train=.5,train=1", ["is given twice"]),
    ("sample toy.npz -n 200 -o new --shares train=-1,eval=2", ["write splits as"]),
    ("sample toy.npz -n 200 -o new --shares train=nan", ["write splits as"]),
    ("sample toy.npz -o new", ["-n SENTENCES or --tokens TOKENS"]),
    ("sample toy.npz -o new -n 9 --tokens 9", ["-n SENTENCES or --tokens TOKENS"]),
    ("sample toy.npz -n 200 -o new --start QQ", ["no symbol 'QQ'"]),
    ("sample toy.npz -n 200 -o new --temperature 0", ["temperature"]),
    ("sample toy.npz -n 200 -o new --max-height 3", ["only 0 of the trees have a height up to 3"]),
    ("sample toy.npz -n 200 -o new --shard 4/4", ["expecting a shard i/n"]),
    ("sample toy.npz -n 200 -o new --variant mirror", ["mirror needs a value"]),
    ("sample toy.npz -n 200 -o new --variant mirror=NP --overlap unique", ["parallel corpora need iid splits"]),
    ("convert folder new", ["not a finished corpus", "folder"]),
    ("sample toy.npz -n 3 -o new", ["3 sentences are too few", "--shares train=1"]),
    ("parse toy.npz empty.txt -o new", ["no sentence", "empty.txt"]),
    ("parse toy.npz text.txt -o new.mrg --keep-missing", ["--keep-missing is for folders"]),
    ("parse toy.npz text.txt -o new.mrg --shard 0/2", ["--shard is for folders"]),
    ("parse toy.npz missing.txt -o new", ["no such file", "missing.txt"]),
    ("parse toy.npz noise.npz -o new", ["not UTF-8 text"]),
    ("bound toy.npz gap.txt --json new", ["this line is empty", "gap.txt:2"]),
    ("bound toy.npz zebra.txt --json new", ["can make none of the 2 sentences", "the grammar lacks the word 'zebra'"]),
    ("bound toy.npz folder --json new", ["not a finished corpus", "folder"]),
    ("bound toy.npz text.txt --json new --lengths 9", ["6..25 (inclusive) or none, got '9'"]),
    ("bound toy.npz text.txt --no-causal --no-masked", ["leave nothing to measure"]),
    ("bound toy.npz text.txt --no-causal --lines 2", ["--lines are causal bounds in the default frame"]),
    ("bound toy.npz text.txt --next", ["--next needs --json FILE"]),
    ("bound toy.npz text.txt --shard 0/2", ["--shard, --workers and --scheduler need -o FOLDER"]),
    ("bound toy.npz text.txt --workers 2", ["--workers and --scheduler need -o FOLDER"]),
    ("bound toy.npz text.txt -o new --workers 2 --scheduler tcp://a:1", ["use --workers or --scheduler, not both"]),
    ("bound toy.npz text.txt -o new --scheduler missing", ["there is no such scheduler file", "missing"]),
    ("bound toy.npz text.txt -o new --shard 2/2", ["expecting a shard i/n", "got '2/2'"]),
    ("bound toy.npz text.txt -o gap.txt", ["holds no unfinished scores", "gap.txt"]),
    ("bound toy.npz text.txt -o new --next --json new2", ["--next is for small inputs"]),
    ("train missing -o new", ["no such corpus folder", "missing"]),
    ("train folder -o new", ["not a finished corpus", "folder"]),
    ("train gap.txt -o new", ["this line is empty", "gap.txt:2"]),
    ("train text.txt -o new --preset huge", ["unknown preset 'huge'; there are tiny, paper"]),
    ("train text.txt -o new --model elman", ["unknown architecture 'elman'; there are adaptive, bert"]),
    ("train text.txt -o new --model lstm --set model.heads=2", ["lstm takes no heads; leave it out"]),
    ("train text.txt -o new --set model.architecture=bert", ["use --model for the architecture"]),
    ("train text.txt -o new --set model.layer=3", ["cannot train with these settings: model.layer: unknown key"]),
    ("train text.txt -o new --set model.dim=17", ["dim 17 is not a multiple of heads 4"]),
    (
        "train text.txt -o new --set training.max_steps=few",
        ["training.max_steps", "expected a whole number, not 'few'"],
    ),
    ("train text.txt -o new --set training.max_steps=[1", ["not YAML"]),
    ("train text.txt -o new --set depth=3", ["--set needs model.KEY=VALUE or training.KEY=VALUE, got 'depth=3'"]),
    ("score folder text.txt --oracle toy.npz --frame odd", ["unknown frame 'odd'; choose one of default, paper"]),
    ("report missing", ["no such run folder", "missing"]),
    ("report folder", ["not the folder of a run"]),
    ("report runs/toy/corpus", ["this is a corpus; use a run"]),
    ("report runs/toy/models/a --figures", ["this is a model; use a run"]),
    (
        "score runs/toy text.txt --oracle toy.npz",
        ["this is a run; its models are runs/toy/models/a, runs/toy/models/b"],
    ),
    ("score runs/toy/corpus text.txt --oracle toy.npz", ["this is a corpus; use a model"]),
    ("convert runs/toy new.txt", ["this is a run; its models are"]),
    ("train runs/toy -o new", ["this is a run; its corpus is runs/toy/corpus"]),
    ("train runs/toy/models/a -o new", ["this is a model; use a corpus"]),
    ("bound toy.npz runs/toy", ["this is a run; its corpus is runs/toy/corpus"]),
    ("bound runs/toy text.txt", ["this is a run; its grammar is runs/toy/grammar/grammar.npz"]),
    ("bound runs/toy/corpus text.txt", ["this is a corpus; its grammar is runs/toy/corpus/grammar.npz"]),
    ("evaluate naturalness runs/toy --reference text.txt --lengths none", ["this is a run; its models are"]),
    (
        "run missing.yaml",
        ["there is no such configuration; configurations that come with truesource: ", "missing.yaml"],
    ),
    ("run folder", ["this is a folder, not a configuration", "folder"]),
    ("run text.txt", ["must be a mapping", "text.txt"]),
]


@pytest.mark.long
@pytest.mark.parametrize(("line", "parts"), BAD, ids=[line for line, _ in BAD])
def test_bad_input_is_one_sentence(line: str, parts: list[str], here: Path, command: Command) -> None:
    before = snapshot(here)
    code, _, err = command(*line.split())
    assert code == 2
    assert err.startswith("truesource: ")
    assert err.count("\n") == 1
    for part in parts:
        assert part in err
    assert snapshot(here) == before


@pytest.mark.parametrize(
    "line",
    [
        *("sample toy.npz -n 0 -o new", "sample toy.npz -n 9 -o new --seed -1", "fly", "inspect"),
        *("bound toy.npz --oracle toy.npz", "evaluate divergence toy.npz toy.npz --sums -1", "evaluate fly"),
    ],
)
def test_a_wrong_call_points_to_the_help(line: str, here: Path, command: Command) -> None:
    code, _, err = command(*line.split())
    assert code == 2
    assert err.startswith("truesource: ") and err.count("\n") == 1
    assert err.endswith(" --help\n")
    assert not (here / "new").exists()


def test_no_model_is_no_traceback(here: Path, command: Command) -> None:
    code, _, err = command("score", "folder", "text.txt", "--oracle", "toy.npz")
    assert (code, err.count("\n")) == (2, 1)
    assert "no trained model here" in err


WRITERS = [
    "convert toy.txt OLD",
    "induce bank.mrg -o OLD --cycles 0",
    "parse toy.npz text.txt -o OLD",
    "bound toy.npz text.txt --json OLD",
    "inspect toy.npz --json OLD",
    "score folder text.txt --oracle toy.npz --json OLD",
    "sample toy.npz -n 200 -o OLD --lengths 2..8",
    "train text.txt -o OLD",
]


@pytest.mark.parametrize("line", WRITERS)
def test_nothing_is_overwritten_without_force(line: str, here: Path, command: Command) -> None:
    (here / "OLD").write_text("precious", encoding="utf-8")
    before = snapshot(here)
    code, _, err = command(*line.split())
    assert (code, err) == (2, "truesource: will not overwrite OLD without --force\n")
    assert snapshot(here) == before


@pytest.mark.parametrize("line", WRITERS[:5])
def test_force_overwrites(line: str, here: Path, command: Command) -> None:
    (here / "OLD").write_text("precious", encoding="utf-8")
    assert command(*line.split(), "--force").code == 0
    assert b"precious" not in (here / "OLD").read_bytes()


def test_a_folder_that_is_no_corpus_survives_force(here: Path, command: Command) -> None:
    (here / "folder" / "note").write_text("precious", encoding="utf-8")
    code, _, err = command("sample", "toy.npz", "-n", "200", "-o", "folder", "--lengths", "2..8", "--force")
    assert code == 2
    assert "not a corpus, so it will not be replaced" in err
    assert (here / "folder" / "note").read_text(encoding="utf-8") == "precious"


@pytest.mark.long
@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("train {}/corpus -o {} --model ngram", "model"),
        ("train text.txt -o {} --model ngram", "model"),
        ("split trees.mrg -o {}", "folder of texts"),
        ("convert {}/corpus {} --to bin", "folder of exported text"),
    ],
)
def test_a_folder_of_other_things_survives_force(line: str, what: str, here: Path, command: Command) -> None:
    assert command("sample", "toy.npz", "-n", "200", "-o", "mine/corpus", "--lengths", "2..8").code == 0
    (here / "mine" / "thesis.tex").write_text("precious", encoding="utf-8")
    (here / "trees.mrg").write_text("(S (A a) (B b))\n" * 20, encoding="utf-8")
    (here / "text.txt").write_text("a b\n" * 20, encoding="utf-8")
    before = snapshot(here)
    code, _, err = command(*line.format("mine", "mine").split(), "--force")
    assert code == 2
    assert f"this is not a {what}, so it will not be replaced" in err
    assert snapshot(here) == before


# -- a full disk ------------------------------------------------------------------------------------


@pytest.fixture
def full_disk() -> Iterator[Callable[[int], None]]:
    """Lets files grow to so many bytes and no further: writing fails in the middle, as on a full disk."""
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield lambda size: resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


FAILING = [line for line in WRITERS[:5] if not line.startswith("parse")]  # which keeps what it has finished


@pytest.mark.parametrize("line", [*FAILING, "convert toy.txt OLD.npz", "convert toy.txt OLD.txt.gz"])
def test_the_old_file_survives_a_full_disk(
    line: str, here: Path, command: Command, full_disk: Callable[[int], None]
) -> None:
    name = next(word for word in line.split() if word.startswith("OLD"))
    assert command(*line.split()).code == 0  # also compiles what is needed
    (here / name).write_text("precious", encoding="utf-8")
    before = snapshot(here)
    full_disk(40)
    code, _, err = command(*line.split(), "--force")
    full_disk(1 << 30)
    assert code == 2
    sentence = err.splitlines()[-1]  # before it, what is to be known of the input
    assert "cannot write: File too large; the old file, if any, is untouched" in sentence
    assert "Traceback" not in err
    assert snapshot(here) == before


@pytest.mark.long
def test_the_old_corpus_survives_a_full_disk(here: Path, command: Command, full_disk: Callable[[int], None]) -> None:
    assert command("sample", "toy.npz", "-n", 60, "-o", "corpus", *SPLIT).code == 0
    before = snapshot(here / "corpus")
    full_disk(2000)
    code, _, err = command("sample", "toy.npz", "-n", 6000, "-o", "corpus", *SPLIT, "--force")
    full_disk(1 << 30)
    assert (code, err.count("\n")) == (2, 1)
    assert "File too large" in err
    assert snapshot(here / "corpus") == before
    assert command("sample", "toy.npz", "-n", 6000, "-o", "corpus", *SPLIT, "--force").code == 0
    assert not list(here.glob(".corpus*"))


@pytest.mark.long
@pytest.mark.usefixtures("one_thread")
def test_training_goes_on_after_a_full_disk(here: Path, command: Command, full_disk: Callable[[int], None]) -> None:
    line = ("train", "text.txt", "-o", "model", *TINY, "--set", "training.checkpoint_every=2")
    line += ("--set", "training.eval_every=2")
    full_disk(4000)
    code, _, err = command(*line)
    full_disk(1 << 30)
    assert (code, err.count("\n")) == (2, 1)
    assert "cannot write" in err
    assert not (here / "model").exists()
    assert command(*line).code == 0
    assert (here / "model" / "model.safetensors").is_file()
    assert not (here / "model.partial").exists()


# -- Ctrl-C -----------------------------------------------------------------------------------------


def test_an_interrupt_is_one_line_and_130(here: Path, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("truesource.grammar.formats.save_grammar", interrupted)
    code, out, err = command("convert", "toy.txt", "new.npz")
    assert (code, out) == (130, "")
    assert err == "truesource: stopped; finished work is kept, run the same command again to resume\n"
    assert not (here / "new.npz").exists()


@pytest.mark.long
def test_induction_goes_on_after_an_interrupt_and_other_settings_start_anew(
    here: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "more.mrg").write_text(2 * BANK, encoding="utf-8")  # fewer words do not support a split
    line = ("induce", "more.mrg", "--cycles", "1", "-o")
    assert command(*line, "whole.npz").code == 0

    def interrupted(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("truesource.grammar.formats.save_grammar", interrupted)
        assert command(*line, "new.npz").code == 130
    assert len(list(here.glob(".new.npz.*.checkpoint"))) == 1
    assert command(*line, "new.npz", "--seed", "2").code == 0
    assert command(*line, "new.npz", "--force").code == 0
    assert PCFG.load("new.npz") == PCFG.load("whole.npz")
    assert not list(here.glob(".*checkpoint"))


# -- what the verbs do ------------------------------------------------------------------------------


@pytest.mark.long
def test_inspect_names_symbols_of_no_use_and_sample_takes_them(here: Path, command: Command) -> None:
    found = command("inspect", "unreachable.txt")
    assert found.code == 0
    assert "unreachable from S: X" in found.out
    assert found.last.startswith("Next: truesource sample unreachable.txt")
    assert "no sentence: X" in command("inspect", "unproductive.txt").out
    for name in ("unreachable", "unproductive"):
        assert command("sample", f"{name}.txt", "-n", "200", "-o", name, "--lengths", "none").code == 0
        assert (here / name / "record.json").is_file()


@pytest.mark.parametrize("name", ["explode", "leak"])
def test_inspect_shows_what_sample_refuses(name: str, here: Path, command: Command) -> None:
    code, out, _ = command("inspect", f"{name}.txt", "--json", "found.json")
    assert code == 0
    assert "\n! the spectral radius is" in out
    assert "sample" not in out
    found = json.loads((here / "found.json").read_text(encoding="utf-8"))
    assert found["spectral_radius"] >= 1.0
    assert found["mean_length"] is None
    assert found["growing"]


def test_inspect_of_a_healthy_grammar(here: Path, command: Command) -> None:
    code, out, _ = command("inspect", "toy.npz", "--json", "found.json")
    assert code == 0
    assert out.splitlines()[-1] == (
        "No problem found. Wrote found.json. Next: truesource sample toy.npz -n 100000 -o corpus/"
    )
    found = json.loads((here / "found.json").read_text(encoding="utf-8"))
    assert (found["symbols"], found["words"], found["problems"]) == (8, 10, [])
    assert found["mean_length"] == pytest.approx(PCFG.from_text(TOY).exact.mean_length)


@pytest.mark.parametrize("name", ["new.txt", "new.txt.gz"])
def test_convert_there_and_back_keeps_the_scores(name: str, here: Path, command: Command) -> None:
    assert command("convert", "toy.npz", name).last.endswith(f"Next: truesource inspect {name}")
    assert command("convert", name, "back.npz").code == 0
    assert (here / name).read_bytes()[:2] == (b"\x1f\x8b" if name.endswith("gz") else b"%s")
    sentences = [line.split() for line in TEXT.splitlines()]
    ours, back = (PCFG.load(path).exact.string_log_probs(sentences) for path in ("toy.npz", "back.npz"))
    assert ours == pytest.approx(back, abs=1e-12)


def test_parse_writes_brackets(here: Path, command: Command) -> None:
    (here / "mixed.txt").write_text("man walks\nzebra walks\nthe dog sees\ndog dog\n", encoding="utf-8")
    code, out, err = command("parse", "toy.npz", "mixed.txt", "-o", "trees.mrg")
    assert code == 0
    assert err == (
        "2 of 4 sentences cannot be made by the grammar, their trees are (): lines 2, 4 (the grammar lacks the word"
        " 'zebra'; a grammar of induce --lexicon parse takes any word; 1 of them have known words only, but no"
        " derivation has these in this order)\n"
    )
    assert out == "Wrote trees.mrg: 2 trees. Next: truesource bound toy.npz mixed.txt\n"
    assert (here / "trees.mrg").read_text(encoding="utf-8").splitlines() == [
        "(S (NP (N man)) (VP (V walks)))", "()", "(S (NP (D the) (N dog)) (VP (V sees)))", "()"
    ]  # fmt: skip


def test_bound_of_text(here: Path, command: Command) -> None:
    (here / "mixed.txt").write_text(TEXT + "zebra walks\n", encoding="utf-8")
    code, out, err = command("bound", "toy.npz", "mixed.txt", "--json", "bound.json")
    assert code == 0
    assert err == (
        "mixed.txt is no corpus that truesource sampled from this grammar, so this is the perplexity of the grammar on"
        " this text. Other models may be better, unless the text was sampled from the grammar.\n"
        "1 of 3 sentences have probability 0 in the grammar and are excluded: line 3 (the grammar lacks the word"
        " 'zebra')\n"
        "Without interval: fewer than 10 sentences.\n"
    )
    assert out.splitlines()[-1] == "Wrote bound.json. Next: truesource score MODEL mixed.txt --oracle toy.npz"
    found = json.loads((here / "bound.json").read_text(encoding="utf-8"))
    assert set(found) == {"sentences", "summary"}
    long, short, zebra = found["sentences"]
    assert {"tokens", "logprob", "surprisal", "stop_surprisal", "masked_logprob"} <= set(short)
    # man walks: 0.3 * 0.2 * 0.4 * P(VP -> V, nothing follows), by hand
    first = 0.3 * 0.2
    assert short["surprisal"][0] == pytest.approx(-math.log(first))
    assert short["logprob"] == pytest.approx(math.log(first * 0.3 * 0.4))
    assert math.fsum(short["surprisal"]) + short["stop_surprisal"] == pytest.approx(-short["logprob"])
    assert short["masked_logprob"] == pytest.approx([math.log(0.2), math.log(0.4)])
    assert zebra["logprob"] is None and zebra["surprisal"] == [None, None]
    causal, masked = found["summary"]
    assert (causal["name"], masked["name"]) == ("causal_perplexity", "masked_perplexity")
    assert causal["value"] == pytest.approx(math.exp(-(long["logprob"] + short["logprob"]) / 9))
    assert masked["value"] == pytest.approx(math.exp(-math.fsum(long["masked_logprob"] + short["masked_logprob"]) / 7))
    assert "impossible:1" in causal["signature"] and "given:none" in causal["signature"]
    assert "NaN" not in (here / "bound.json").read_text(encoding="utf-8")


@pytest.mark.long
def test_bound_with_distributions_and_in_parts(here: Path, command: Command) -> None:
    code, out, _ = command("bound", "toy.npz", "text.txt", "--json", "next.json", "--next")
    assert code == 0
    for record in json.loads((here / "next.json").read_text(encoding="utf-8"))["sentences"]:
        assert len(record["next"]) == len(record["tokens"]) + 1
        for entry, token in zip(record["next"], record["tokens"], strict=False):
            assert math.fsum(entry["words"].values()) + entry["stop"] == pytest.approx(1.0)
            place = record["tokens"].index(token)
            assert -math.log(record["next"][place]["words"][token]) == pytest.approx(record["surprisal"][place])
    whole = command("bound", "toy.npz", "text.txt").out.splitlines()[:2]
    code, out, _ = command("bound", "toy.npz", "text.txt", "-o", "scores", "--precision", "float64")
    assert (code, out.splitlines()[:2]) == (0, whole)
    assert out.splitlines()[-1].startswith("Wrote scores. Next: ")
    assert (here / "scores" / "part-00000.parquet").is_file()
    assert command("bound", "toy.npz", "text.txt", "-o", "scores").out == out  # again: read, not computed
    assert command("bound", "toy.npz", "text.txt", "-o", "half", "--shard", "1/2").out.startswith("Wrote this job's")
    many = command("bound", "toy.npz", "text.txt", "-o", "many", "--workers", 2)
    assert many.out == out.replace("scores", "many")


@pytest.mark.long
def test_bounds_of_models_that_see_few_words(here: Path, command: Command) -> None:
    command("sample", "toy.npz", "-n", 100, "-o", "corpus", *SPLIT)
    called = command("bound", "toy.npz", "corpus", "--no-masked", "--lines", 3, "--json", "lines.json")
    assert called.code == 0, called.err
    bound, *lines = json.loads((here / "lines.json").read_text(encoding="utf-8"))["summary"]
    corpus = Corpus.load(here / "corpus")
    windows = Windows(PCFG.load(here / "toy.npz"), corpus.lengths)
    assert len(lines) == 3
    for seen, line in enumerate(lines):
        rows = np.concatenate(windows.log_probs(corpus.sentences("eval"), seen))
        assert line["name"] == f"bound_{seen}_words"
        assert line["value"] == pytest.approx(math.exp(-rows.mean()), rel=1e-12)
        assert line["low"] < line["value"] < line["high"] and f"|seen:{seen}|" in line["signature"]
        assert parts_of(line["signature"])["unit"] == "perplexity"  # of which the value is not the logarithm
    values = [line["value"] for line in lines] + [bound["value"]]
    assert values == sorted(values, reverse=True)


@pytest.mark.long
def test_bound_of_a_corpus_is_conditioned_like_it(here: Path, command: Command) -> None:
    assert command("sample", "toy.npz", "-n", 100, "-o", "corpus", *SPLIT).last == (
        f"Wrote corpus: 100 sentences, {(tokens := _tokens(here / 'corpus'))} tokens, mean length {tokens / 100:.2f},"
        " lengths 2..8. Next: truesource train corpus --model gpt2 --preset tiny -o model/"
    )
    code, out, err = command("bound", "toy.npz", "corpus")
    assert (code, err) == (0, "")
    assert "causal_bound|given:2..8" in out and "sentences:30|impossible:0" in out
    assert out.splitlines()[-1].startswith("Nothing written; --json FILE saves")
    free = command("bound", "toy.npz", "corpus", "--lengths", "none")
    assert "given:none" in free.out
    assert "was sampled with lengths 2..8, but the oracle has no length range, so" in free.err
    assert "sentences:10|" in command("bound", "toy.npz", "corpus", "--split", "dev").out
    assert "no split 'test'; it has train, dev, eval" in command("bound", "toy.npz", "corpus", "--split", "test").err
    other = command("bound", "unreachable.txt", "corpus")
    assert other.code == 2
    assert other.err.startswith("Warning: corpus was sampled from another grammar")


def _tokens(corpus: Path) -> int:
    record = json.loads((corpus / "record.json").read_text(encoding="utf-8"))
    return sum(split["tokens"] for split in record["splits"].values())


@pytest.mark.long
def test_one_seed_gives_the_same_bytes(here: Path, command: Command) -> None:
    for name, seed in (("a", 3), ("b", 3), ("c", 4)):
        assert command("sample", "toy.npz", "-n", 60, "-o", name, *SPLIT, "--seed", seed).code == 0
    assert snapshot(here / "a" / "data") == snapshot(here / "b" / "data")
    assert snapshot(here / "a" / "data") != snapshot(here / "c" / "data")


@pytest.mark.long
def test_induce(here: Path, command: Command) -> None:
    code, out, _ = command("induce", "bank.mrg", "-o", "new.npz", "--cycles", 0)
    assert code == 0
    assert out.splitlines()[-1].startswith("Wrote new.npz: PCFG(")
    assert out.splitlines()[-1].endswith("Next: truesource sample new.npz -n 100000 -o corpus/")
    grammar = PCFG.load("new.npz")
    sentences = [tree.leaves() for tree in Treebank.read("bank.mrg")]
    assert (grammar.exact.string_log_probs(sentences) > -20.0).all()
    assert grammar.log_prob(["man", "walks"]) == pytest.approx(math.log(1 / 5 * 1 / 5 * 1 / 3 * 2 / 3))


@pytest.mark.long
@pytest.mark.usefixtures("one_thread")
def test_train_and_score(here: Path, command: Command) -> None:
    assert command("sample", "toy.npz", "-n", 100, "-o", "corpus", *SPLIT).code == 0
    made = command("train", "corpus", "-o", "my model", *TINY)
    assert made.code == 0
    assert made.last == "Wrote my model: my-model. Next: truesource score 'my model' corpus"
    assert "will not overwrite my model" in command("train", "corpus", "-o", "my model", *TINY).err
    found = command("score", "my model", "corpus", "--oracle", "toy.npz", "--json", "score.json")
    assert (found.code, found.err) == (0, "")
    assert found.last == "Wrote score.json. Next: truesource evaluate divergence 'my model' corpus --oracle toy.npz"
    records = json.loads((here / "score.json").read_text(encoding="utf-8"))
    assert {(r["model"], r["objective"]) for r in records} == {("my-model", "causal")}
    assert all("given:2..8" in r["signature"] for r in records if r["name"] != "bound_unconditioned")
    record = {r["name"]: r["value"] for r in records}
    assert {"ppl", "bound", "relative_ppl", "kl", "rho", "r2_pearson", "r2_identity"} <= record.keys()
    assert record["sentences"] == 30
    assert record["relative_ppl"] == pytest.approx(record["ppl"] / record["bound"])
    assert record["kl"] == pytest.approx(math.log(record["relative_ppl"]))
    assert record["relative_ppl"] > 1.0
    bound = command("bound", "toy.npz", "corpus", "--json", "bound.json")
    assert bound.code == 0
    summary = json.loads((here / "bound.json").read_text(encoding="utf-8"))["summary"]
    assert record["bound"] == pytest.approx(summary[0]["value"], rel=1e-12)

    (here / "mixed.txt").write_text(TEXT + "zebra walks\n", encoding="utf-8")
    text = command("score", "my model", "mixed.txt", "--oracle", "toy.npz", "--frame", "paper")
    assert text.code == 0
    assert (
        "1 of 3 sentences have probability 0 and are excluded: the oracle cannot make 1; the grammar lacks the word"
        " 'zebra'" in text.err
    )
    assert "eos:out" in text.out
    assert "the grammar lacks the word 'zebra'" in command("score", "my model", "zebra.txt", "--oracle", "toy.npz").err
    other = command("score", "my model", "corpus", "--oracle", "toy.npz", "--lengths", "3..8")
    assert "was sampled with lengths 2..8, but the oracle has lengths 3..8, so" in other.err
    assert "the oracle cannot make" in other.err and "the model cannot make" not in other.err
    assert command("sample", "toy.npz", "-n", 100, "--seed", 5, "-o", "elsewhere", *SPLIT).code == 0
    foreign = command("score", "my model", "elsewhere", "--oracle", "toy.npz")
    assert foreign.code == 0 and "my model was trained on another corpus" in foreign.err
    induced = command("induce", "bank.mrg", "-o", "other.npz", "--cycles", 0)
    assert induced.code == 0
    assert "sampled from another grammar" in command("score", "my model", "corpus", "--oracle", "other.npz").err


def test_cite_and_version(command: Command) -> None:
    assert "Jumelet and Zuidema (2023)" in command("cite").out
    every = command("cite", "--bibtex").out
    assert every.count("\n@inproceedings{") + every.count("\n@article{") == len(works())
    assert {work.topic for work in works()} == set(TOPICS)
    bibliography = (data_folder() / "works.bib").read_text(encoding="utf-8")
    assert bibliography.count("\n@") == len(works())  # no entry is passed over
    assert all(len(work.fields) == work.bibtex.count(" = ") for work in works())
    assert every.count("{") == every.count("}")


def test_cite_lists_what_was_used(command: Command, here: Path) -> None:
    (here / "run" / "grammar").mkdir(parents=True)
    PCFG.load("toy.npz").save(here / "run" / "grammar" / "grammar.npz")
    models = [[[]], {"model": {"architecture": "bert", "tokenizer": "bpe"}}]
    config = {"models": models, "corpus": {"transform": None}, "evaluation": {"pairs": {}, "probing": None}}
    (here / "run" / "config.json").write_text(json.dumps(config), encoding="utf-8")
    found = command("cite", "run", "--bibtex").out
    keys = re.findall(r"^@[a-z]+\{([a-z0-9-]+),", found, re.MULTILINE)
    assert keys[:4] == ["truesource", "jumelet-zuidema-2023", "jelinek-lafferty-1991", "stolcke-1995"]
    assert {"salazar-etal-2020", "oh-schuler-2024", "warstadt-etal-2020"} <= set(keys)
    unused = {"petrov-etal-2006", "salakhutdinov-roweis-2003", "hewitt-liang-2019", "chen-goodman-1999"}
    assert not unused & set(keys)
    PCFG.load("toy.npz").with_meta(method="split-merge", config={"relaxation": 1.8}).save("relaxed.npz")
    found = command("cite", "relaxed.npz", "--bibtex").out
    assert {"petrov-etal-2006", "salakhutdinov-roweis-2003"} <= set(re.findall(r"^@[a-z]+\{([a-z0-9-]+),", found, re.M))


@pytest.mark.long
@pytest.mark.parametrize("long", ["x" * 10_000, "x y " * 3_000])
def test_refusals_quote_little_of_what_is_long(long: str, command: Command, here: Path) -> None:
    for call in (("run", long), ("run", "demo", long), ("run", "demo", f"--{long}"), ("evaluate", long)):
        found = command(*call)
        assert found.code == 2 and 0 < len(found.err) < 2_500 and found.out == "", call


def test_the_version(command: Command) -> None:
    assert command("--version").out.startswith("truesource 0.")


# -- help -------------------------------------------------------------------------------------------


def test_the_help_lists_all_verbs_and_starts_with_the_demo(command: Command) -> None:
    code, out, _ = command("--help")
    assert code == 0
    assert "truesource run demo" in out
    assert all(f" {verb} " in out for verb in VERBS)


def test_the_help_of_train_lists_the_architectures_and_presets(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    from truesource.lmtrain.architectures.settings import names
    from truesource.lmtrain.model_registry import PRESETS

    monkeypatch.setattr("truesource.terminal.help.WIDTH", 400)
    _, out, _ = command("train", "--help")
    assert ", ".join(names()) in out
    assert "Architecture, or custom code; bert, deberta, diffusion, roberta are masked." in out
    assert all(preset in out for preset in PRESETS)


HELP = """
import contextlib, io, json, sys
from truesource.cli.main import main

def show_help(*verb):
    sys.argv = ["truesource", *verb, "--help"]
    with contextlib.redirect_stdout(io.StringIO()) as shown, contextlib.suppress(SystemExit):
        main()
    assert f"Usage: {' '.join(['truesource', *verb])}" in " ".join(shown.getvalue().split())
    loaded.append((" ".join(verb), sorted(set(sys.modules) & set(HEAVY)), len(sys.modules)))

loaded = []
show_help()
from typer.main import get_command
from truesource.cli.app import VERBS, evaluators
for verb in VERBS:
    show_help(verb)
for verb in get_command(evaluators()).commands:
    show_help("evaluate", verb)
json.dump(loaded, sys.stderr)
"""
HEAVY = (
    *("accelerate", "datasets", "joblib", "matplotlib", "networkx", "nltk", "numba", "numpy", "pandas", "pyarrow"),
    *("scipy", "sentencepiece", "tokenizers", "torch", "transformers"),
)


@pytest.mark.long
def test_help_imports_no_heavy_library_and_few_modules() -> None:
    code = f"HEAVY = {HEAVY}\n{HELP}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ)
    loaded = json.loads(done.stderr)
    assert [(verb, heavy) for verb, heavy, _ in loaded if heavy] == []
    shown = [verb for verb, *_ in loaded]
    measures = (f"evaluate {each.name}" for each in EVALUATORS if not each.verb)
    assert {"", *VERBS, *measures} < set(shown)
    assert loaded[0][2] < 500  # about 390; pydantic alone would add 100


def test_convert_can_divide_weights_by_their_sums(here: Path, command: Command) -> None:
    (here / "weights.txt").write_text("S -> S S 3 | 'a' 7\n", encoding="utf-8")
    assert command("convert", "weights.txt", "proper.npz").code == 2
    assert command("convert", "--normalise", "weights.txt", "proper.npz").code == 0
    assert PCFG.load(here / "proper.npz") == PCFG.from_text("S -> S S 0.3 | 'a' 0.7")


@pytest.mark.parametrize(
    ("name", "text", "part"),
    [
        ("words.txt", "dog dog\nwalks man\n", "2 of them have known words only"),
        ("table.csv", "id,text\n1,man walks\n", "of .csv files every line is read whole"),
    ],
)
def test_where_no_sentence_has_a_tree_parse_says_why(
    name: str, text: str, part: str, here: Path, command: Command
) -> None:
    (here / name).write_text(text, encoding="utf-8")
    code, out, err = command("parse", "toy.npz", name, "-o", "trees.mrg")
    assert (code, err.count("\n")) == (0, 1) and part in err
    assert out == f"Wrote trees.mrg: 0 trees. Next: truesource inspect toy.npz {name}\n"


@pytest.mark.long
@pytest.mark.parametrize("method", ["viterbi", "max-rule", "max-span"])
def test_parse_by_every_method_and_scores_it(method: str, here: Path, command: Command) -> None:
    (here / "mixed.txt").write_text("the dog sees a cat\nzebra walks\nman walks\n", encoding="utf-8")
    first, second, third = BANK.splitlines()
    wrong = second.replace("(NP (N man))", "(X (N man))")
    (here / "gold.mrg").write_text("\n".join((first, third, wrong)), encoding="utf-8")
    arguments = ("parse", "toy.npz", "mixed.txt", "-o", "trees.mrg", "--method", method, "--gold", "gold.mrg")
    code, out, err = command(*arguments)
    assert code == 0 and err.startswith("1 of 3 sentences cannot be made by the grammar, their trees are (): line 2 (")
    # gold has 4, 5 and 3 brackets; of 4, none and 3 one is wrong: the X
    assert out.splitlines()[0] == (
        "labelled F1 63.16% (precision 85.71%, recall 50.00%), exact match 33.33%, tags 53.85%,"
        " 3 sentences, 1 without a parse"
    )
    assert "Labelled brackets, by sentence length" in out and "All labels" in out
    assert out.splitlines()[-1] == "Wrote trees.mrg: 2 trees. Next: truesource bound toy.npz mixed.txt"
    assert (here / "trees.mrg").read_text(encoding="utf-8").splitlines() == [first[2:-2], "()", second[2:-2]]


@pytest.mark.long
@pytest.mark.parametrize("method", ["viterbi", "max-rule", "max-span"])
def test_parse_unbinarises_and_projects(method: str, here: Path, command: Command) -> None:
    for share, tree in ((0.4, "(S (NP x) (V y) (NP x))"), (0.6, "(S (NP x) (VP (V y) (NP x)))")):
        pcfg = PCFG.from_text(
            f"S -> NP VP1 {share} | S1 NP {1 - share}\nS1 -> NP V 1.0\nVP1 -> V NP 1.0\nNP -> x 1.0\nV -> y 1.0"
        )
        split = replace(pcfg, labels=tuple({"S1": "@S", "VP1": "VP"}.get(name, name) for name in pcfg.symbols))
        split.save(here / "split.npz", force=True)
        (here / "one.txt").write_text("x y x\n", encoding="utf-8")
        assert command("parse", "split.npz", "one.txt", "-o", "one.mrg", "--method", method, "--force").code == 0
        assert (here / "one.mrg").read_text(encoding="utf-8") == tree + "\n"


def test_parse_wants_a_gold_tree_for_each_sentence(here: Path, command: Command) -> None:
    code, _, err = command("parse", "toy.npz", "text.txt", "-o", "trees.mrg", "--gold", "bank.mrg")
    assert code == 2
    assert "the treebank has 3 trees, but text.txt has 2 sentences" in err
    assert not (here / "trees.mrg").exists()
    refused = command("parse", "toy.npz", "text.txt", "-o", "trees.mrg", "--method", "best").err
    assert "is not one of" in refused and "Value error" not in refused
