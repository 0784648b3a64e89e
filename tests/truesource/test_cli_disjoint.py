"""Verbs that compare a model with the truth on a split that leaves out the sentences of earlier splits."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import pytest
from command_line import Command
from toy_english import TOY

from truesource.evaluation.core.exclusion import Exclusion
from truesource.generator.corpus import Corpus
from truesource.grammar.pcfg import PCFG

pytestmark = pytest.mark.usefixtures("one_thread")
SPLIT = ("--lengths", "2..8", "--shares", "train=.4,dev=.2,eval=.4", "--overlap", "disjoint")
SMALL = [f"--set=model.{k}={v}" for k, v in {"layers": 1, "dim": 8, "heads": 2}.items()]
STEPS = [f"--set=training.{k}={v}" for k, v in {"max_steps": 2, "snapshots": "log", "eval_every": 2}.items()]
MODEL = ("model", "b", "--oracle", "toy.npz", "--json", "x.json")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Command) -> Path:
    PCFG.from_text(TOY).save(tmp_path / "toy.npz")
    monkeypatch.chdir(tmp_path)
    assert command("sample", "toy.npz", "-n", 400, "-o", "b", *SPLIT).code == 0
    return tmp_path


def rows(**wanted: object) -> list[dict[str, object]]:
    found = json.loads(Path("x.json").read_text("utf-8"))
    return [row for row in found if all(row.get(key) == value for key, value in wanted.items())]


@pytest.mark.long
def test_each_verb_is_exact_or_says_that_it_is_not(here: Path, command: Command) -> None:
    corpus = Corpus.load(here / "b")
    pcfg = PCFG.load(here / "toy.npz")
    excluded = {s: Exclusion.of(corpus, s, pcfg, corpus.lengths) for s in ("dev", "eval")}
    assert excluded["dev"] is not None and excluded["eval"] is not None
    exactly = f"|given:2..8|disjoint:{excluded['eval'].part}|eos:in|"
    uncorrected = "|given:2..8|disjoint:uncorrected|eos:in|"

    train = ("train", "b", "-o", "model", *SMALL, *STEPS, "--oracle", "toy.npz", "--oracle-monitor-sentences", 30)
    done = command(*train)
    assert done.code == 0
    said = " ".join(done.err.split())
    assert "dev of b excludes the" in said
    assert "But kl, js and tv are of the grammar itself (disjoint:uncorrected)." in said

    assert command("score", *MODEL, "--split", "dev", "--longest", 8).code == 0
    assert f"|disjoint:{excluded['dev'].part}|" in str(rows(name="kl")[0]["signature"])
    done = command("score", *MODEL, "--force")
    (scored,) = rows(name="kl")
    assert exactly in str(scored["signature"]) and "the oracle does not" not in done.err
    sentences = corpus.sentences("eval")
    done = command("evaluate", "pplu", *MODEL, "--force", "--reduce")
    said = " ".join(done.err.split())
    assert "the oracle excludes them exactly. But smaller vocabularies of the truth are of the grammar" in said
    (bound,) = rows(name="bound")
    tokens = sum(len(sentence) + 1 for sentence in sentences)
    free = pcfg.exact.string_log_probs(sentences, corpus.lengths).sum()
    correction = corpus.record["splits"]["eval"]["excluded"]["log_correction"]
    assert math.log(float(str(bound["value"]))) == pytest.approx(
        -(free + len(sentences) * correction) / tokens, rel=1e-10
    )
    assert exactly in str(bound["signature"])
    sides = {str(row["side"]): str(row["signature"]) for row in rows(table="reduction")}
    assert uncorrected in sides.pop("truth")
    assert all(exactly in signed for signed in sides.values()) and sides

    done = command("evaluate", "dynamics", *MODEL, "--force")
    assert "But exact divergences (kl) are of the grammar itself" in " ".join(done.err.split())
    ratio = rows(name="log_ratio", by="all")[-1]
    assert ratio["value"] == pytest.approx(-float(str(scored["value"])), rel=1e-10)
    assert exactly in str(ratio["signature"])
    assert uncorrected in str(rows(name="kl", by="all")[-1]["signature"])

    done = command("evaluate", "divergence", *MODEL, "--force", "--by", "position")
    assert re.search(r"the oracle does not: add \S+ nats .*disjoint:uncorrected", " ".join(done.err.split()))
    assert uncorrected in done.out
    assert all(uncorrected in str(row["signature"]) for row in rows())


RUN = """\
name: apart
seed: 3
grammar: {method: file, file: toy.npz}
corpus: {lengths: 2..8, overlap: disjoint, splits: {train: 160, dev: 80, eval: 160}}
models: [{name: n, model: {architecture: ngram}}]
evaluation: {pplu: true, divergence: true}
"""


@pytest.mark.long
def test_a_run_excludes_what_its_splits_exclude(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Command
) -> None:
    monkeypatch.chdir(tmp_path)
    PCFG.from_text(TOY).save(tmp_path / "toy.npz")
    Path("apart.yaml").write_text(RUN, encoding="utf-8")
    assert command("run", "apart.yaml").code == 0
    run = Path("runs/apart")
    corpus, pcfg = Corpus.load(run / "corpus"), PCFG.load(run / "grammar/grammar.npz")
    excluded = Exclusion.of(corpus, "eval", pcfg, corpus.lengths)
    assert excluded is not None and excluded.sentences
    results = {row["model"]: row for row in json.loads((run / "results.json").read_text("utf-8"))[:2]}
    assert f"|disjoint:{excluded.part}|" in results["oracle"]["signature"] and results["oracle"]["kl"] == 0
    model = (run / "models/n", run / "corpus", "--oracle", run / "grammar/grammar.npz", "--json", "x.json", "--force")
    assert command("score", *model).code == 0
    (kl,) = rows(name="kl")
    assert results["n"]["kl"] == kl["value"] and f"|disjoint:{excluded.part}|" in str(kl["signature"])
    assert command("evaluate", "pplu", *model).code == 0
    (bound,) = rows(name="bound")
    made = json.loads((run / "pplu/n.json").read_text("utf-8"))["records"]
    assert [row["value"] for row in made if row["name"] == "bound"] == [bound["value"]]
    divergence = json.loads((run / "divergence/n.json").read_text("utf-8"))["records"]
    assert all("|disjoint:uncorrected|" in row["signature"] for row in divergence)


@pytest.mark.parametrize(
    ("corpus", "said"),
    [
        ("{overlap: unique, lengths: 2..8}", "the truth of a text without repetition is unknown"),
        ("{overlap: disjoint, stratified: true, lengths: 2..8}", "stratified needs overlap: iid"),
    ],
)
def test_a_run_refuses_splits_without_a_truth(
    corpus: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Command
) -> None:
    monkeypatch.chdir(tmp_path)
    PCFG.from_text(TOY).save(tmp_path / "toy.npz")
    Path("two.yaml").write_text(f"name: two\ngrammar: {{method: file, file: toy.npz}}\ncorpus: {corpus}\n", "utf-8")
    done = command("run", "two.yaml")
    assert done.code == 2 and said in done.err and not Path("runs").exists()
