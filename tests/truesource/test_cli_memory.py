"""`evaluate memory`: splits that do not fit, disjoint splits, what is left out, tables and the figure."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import Command
from toy_english import TOY

from truesource.evaluation.core.oracle import Oracle
from truesource.evaluation.core.setting import Setting
from truesource.evaluation.memory.evaluator import MemorySettings
from truesource.evaluation.memory.measure import repeated
from truesource.evaluation.memory.report import figure, groups_table, measure, tables
from truesource.evaluation.show.declared import grouped, record_of
from truesource.generator.corpus import Corpus
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.errors import InputError
from truesource.run.experiment import load_config

pytestmark = pytest.mark.usefixtures("one_thread")
LENGTHS = LengthRange(2, 8)
LONG = ("--lengths", "2..8")
MODEL = """\
import numpy as np
from truesource import PCFG, FunctionModel, LengthRange

pcfg = PCFG.load("toy.npz")

def score(sentences):
    return pcfg.exact.causal_log_probs(sentences, LengthRange(2, 8))

def short(sentences):
    return [row if len(row) < 7 else np.full(len(row), -np.inf) for row in score(sentences)]

words = pcfg.vocabulary
truth = FunctionModel(score, vocabulary=words, name="truth")
lossy = FunctionModel(short, vocabulary=words, name="lossy", unchecked=True)
"""
CONFIG = """\
name: toy
grammar: {method: file, file: toy.txt}
corpus: {lengths: 2..8, splits: {train: 30, dev: 10, eval: 20}}
models: [{name: bigram, model: {architecture: ngram, order: 2}}]
evaluation: {memory: true}
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    PCFG.from_text(TOY).save(tmp_path / "toy.npz")
    (tmp_path / "mine.py").write_text(MODEL, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.long
def test_the_truth_has_half_also_where_splits_are_disjoint(here: Path, command: Command) -> None:
    """The fresh sentences are then rarer ones; the truth of both texts is the grammar's."""
    for name, overlap in (("a", "iid"), ("b", "disjoint")):
        sample = ("sample", "toy.npz", "-n", 400, "-o", name, *LONG, "--shares", "train=.5,eval=.5")
        assert command(*sample, "--overlap", overlap).code == 0
        call = ("evaluate", "memory", "mine.py:truth", name, "--oracle", "toy.npz", "--json", f"{name}.json")
        done = command(*call, "--figure", f"{name}.svg", "--table", f"{name}.csv")
        assert done.code == 0, done.err
        records = {r["name"]: r for r in json.loads(Path(f"{name}.json").read_text("utf-8")) if "by" not in r}
        assert records["auroc"]["value"] == 0.5
        assert abs(records["gap"]["value"]) < 1e-10 and abs(records["memorised"]["value"]) < 1e-10
        assert ("disjoint:uncorrected" in records["auroc"]["signature"]) == (overlap == "disjoint")
        assert ("count on both sides" in " ".join(done.err.split())) == (overlap == "iid")
        assert "repetitions" in Path(f"{name}.csv").read_text("utf-8")
        assert "<svg" in Path(f"{name}.svg").read_text("utf-8")


@pytest.mark.long
def test_what_cannot_be_made_is_said_of_both_texts(here: Path, command: Command) -> None:
    assert command("sample", "toy.npz", "-n", 300, "-o", "a", *LONG, "--shares", "old=.5,new=.5").code == 0
    call = ("evaluate", "memory", "mine.py:lossy", "a", "--oracle", "toy.npz", "--split", "new", "--members", "old")
    done = command(*call, "--json", "x.json")
    assert done.code == 0, done.err
    corpus, said = Corpus.load("a"), " ".join(done.err.split())
    lost = sum(len(sentence) >= 6 for sentence in corpus.sentences("new"))
    different = {tuple(sentence) for sentence in corpus.sentences("old")}
    lost_members = sum(len(sentence) >= 6 for sentence in different)
    assert lost and lost_members
    assert f"{lost} of 150 sentences have probability 0 and are excluded" in said
    assert f"{lost_members} of {len(different)} different training sentences are impossible" in said
    excluded = len({tuple(sentence) for sentence in corpus.sentences("new") if len(sentence) >= 6})
    assert f"excluded:{excluded}" in json.loads(Path("x.json").read_text("utf-8"))[0]["signature"]


@pytest.mark.long
def test_splits_that_do_not_fit_are_refused(here: Path, command: Command) -> None:
    assert command("sample", "toy.npz", "-n", 40, "-o", "a", *LONG, "--shares", "train=.5,eval=.5").code == 0
    Path("text.txt").write_text("the dog sleeps\n" * 3, encoding="utf-8")
    call = ("evaluate", "memory", "mine.py:truth")
    oracle = ("--oracle", "toy.npz")
    assert "is the split eval itself" in command(*call, "a", *oracle, "--members", "eval").err
    assert "no split of a corpus" in command(*call, "text.txt", *oracle).err
    assert "has no split 'test'" in command(*call, "a", *oracle, "--members", "test").err
    Path("toy.yaml").write_text(CONFIG, encoding="utf-8")
    assert load_config("toy.yaml").evaluation.find(MemorySettings) == MemorySettings()
    for members, why in (("test", "is not among the splits"), ("eval", "is what models are measured on")):
        with pytest.raises(InputError, match=why):
            load_config("toy.yaml", [f"evaluation.memory.members={members}"])


@pytest.mark.long
def test_groups_of_a_repeated_text_have_rows_and_places_in_the_figure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pcfg = PCFG.from_text(TOY)
    drawn = Oracle(pcfg, lengths=LENGTHS).sample(300, 2)
    text = repeated(drawn[100:], (1, 4, 16, 64))
    setting = Setting(pcfg, drawn[:100], LENGTHS)
    monkeypatch.setattr(Setting, "other_split", lambda *_: text.sentences)
    result = measure(Oracle(pcfg, lengths=LENGTHS), setting, MemorySettings(sentences=None))
    record = record_of(result)
    assert list(grouped(record, "repetitions")) == ["1", "4-15", "16-63", "64+"]
    assert record["repetitions"] == dict.fromkeys(["1", "4-15", "16-63", "64+"], len(text.parts[1]))
    rows = [[str(cell) for cell in row.cells] for row in groups_table(record, "").rows]
    assert [row[2].split()[0] for row in rows] == ["0.500"] * 4
    assert len(tables(record, "")) == 2
    drawn_figure = figure(record, "x")
    assert all(label in drawn_figure for label in ("64+", "chance", "fresh sentences", "AUROC"))
