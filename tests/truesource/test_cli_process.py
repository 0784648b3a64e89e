"""Processes in every verb: corpus, bound, training, scores, comparison, benchmark and run; and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from command_line import Command

from truesource.evaluation.core.oracle import Oracle
from truesource.evaluation.dynamics.oracle_monitor import OracleMonitor
from truesource.generator.corpus import Corpus
from truesource.grammar.truth import load_truth, process

pytestmark = pytest.mark.usefixtures("one_thread")
LANGUAGES = {"brackets": "shuffle-dyck:k=64,depth=100", "copies": "copy:vocabulary=60,longest=10"}
NO_RULES = "it has no rules; choose a language or smaller settings with a grammar"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Command) -> Path:
    """Corpora ``brackets`` and ``copies`` of a process, and an n-gram model of each."""
    monkeypatch.chdir(tmp_path)
    for name, language in LANGUAGES.items():
        split = ("--lengths", "3..24", "--shares", "train=.8,dev=.1,eval=.1")
        assert command("sample", language, "-n", 600, "-o", name, *split).code == 0
        assert command("train", name, "-o", f"m-{name}", "--model", "ngram").code == 0
    return tmp_path


@pytest.mark.long
@pytest.mark.parametrize("name", LANGUAGES)
def test_the_truth_of_a_corpus_is_that_of_every_verb(here: Path, command: Command, name: str) -> None:
    corpus, truth = Corpus.load(name), load_truth(f"{name}/grammar.npz")
    rows = truth.exact.causal_log_probs(corpus.sentences("eval"), corpus.lengths)
    exact = float(np.exp(-np.concatenate(rows).mean()))
    oracle = ("--oracle", f"{name}/grammar.npz")
    done = command("bound", f"{name}/grammar.npz", name, "--json", "bound.json")
    assert done.code == 0 and "is a process, which has no masked bound" in done.err
    (bound,) = json.loads(Path("bound.json").read_text("utf-8"))["summary"]
    assert bound["value"] == pytest.approx(exact, rel=1e-12) and truth.identity in bound["signature"]
    assert command("score", f"m-{name}", name, *oracle, "--json", "score.json").code == 0
    scores: list[dict[str, Any]] = json.loads(Path("score.json").read_text("utf-8"))
    assert any(value == pytest.approx(exact, rel=1e-12) for row in scores for value in row.values())
    other = ("--set", "model.order=2")
    assert command("train", name, "-o", "bigrams", "--model", "ngram", *other).code == 0
    done = command("compare", f"m-{name}", "bigrams", name, *oracle)
    assert done.code == 0 and "oracle" in done.out, done.err
    assert command("evaluate", "divergence", f"m-{name}", name, *oracle, "--json", "divergence.json").code == 0
    found = json.loads(Path("divergence.json").read_text("utf-8"))
    assert {row.get("by") for row in found} == {None, "position", "length", "frequency"}
    assert command("evaluate", "pplu", f"m-{name}", name, *oracle).code == 0
    done = command("cite", f"{name}/grammar.npz")
    assert done.code == 0 and truth.identity in done.out


@pytest.mark.long
def test_what_needs_rules_is_refused_in_one_sentence(here: Path, command: Command) -> None:
    grammar = "brackets/grammar.npz"
    model = ("m-brackets", "brackets", "--oracle", grammar)
    calls = {
        (
            "bound",
            grammar,
            "brackets",
            "--no-causal",
        ): "a masked bound needs the probability of a word given all",
        (
            "evaluate",
            "context",
            *model,
        ): "evaluate context needs the probability of a word given only the k words before it",
        ("evaluate", "probing", *model): "evaluate probing needs",
        ("evaluate", "divergence", *model, "--by", "phrase"): "the divergence by phrase needs trees",
        ("evaluate", "divergence", *model, "--by", "ambiguity"): "the divergence by ambiguity needs trees",
        ("evaluate", "divergence", *model, "--by", "distance"): "the divergence by distance needs the probability",
        ("parse", grammar, "brackets", "-o", "x"): "is a process: it has samples and exact next-word distributions",
        ("vary", grammar, "--variant", "zipf=0.5", "-o", "x"): "is a process",
        ("inspect", grammar): "is a process",
        ("convert", grammar, "x.txt"): "is a process",
        ("evaluate", "tendencies", "m-brackets", "brackets", "--oracle", grammar): "which the process",
        ("sample", grammar, "-n", 100, "-o", "x", "--trees", "text"): "a corpus with bracketed trees needs trees",
        ("sample", grammar, "-n", 100, "-o", "x", "--temperature", 2): "--start or --temperature needs trees",
        ("sample", grammar, "-n", 100, "-o", "x", "--variant", "zipf=0.5"): "--variant needs trees",
        ("sample", grammar, "-n", 100, "-o", "x", "--transform", "reversal"): "another order of words",
        ("language", LANGUAGES["brackets"], "-o", "x.txt"): "a process has no rules to write as text",
    }
    for call, sentence in calls.items():
        done = command(*call)
        assert done.code == 2 and sentence in done.err, (call, done.err)
        assert done.err.rstrip().splitlines()[-1].startswith("truesource: "), done.err
    assert not list(here.glob("x*"))


def test_a_language_that_is_a_process_is_described(command: Command, tmp_path: Path) -> None:
    out = tmp_path / "sd.npz"
    done = command("language", LANGUAGES["brackets"], "-n", 2, "-o", out, "--json", tmp_path / "x.json")
    assert done.code == 0 and "process    128 words" in done.out and "mean length 400.000" in done.out
    record = json.loads((tmp_path / "x.json").read_text("utf-8"))
    assert record["sizes"] == {"words": 128} and len(record["samples"]) == 2
    assert load_truth(out).digest == process(LANGUAGES["brackets"]).digest == record["digest"]


@pytest.mark.long
def test_a_monitor_of_a_training_sees_the_truth(here: Path) -> None:
    truth = load_truth("copies/grammar.npz")
    corpus = Corpus.load("copies")
    monitor = OracleMonitor.on_corpus(truth, corpus, sentences=20)
    oracle = Oracle(truth, lengths=corpus.lengths, vocabulary=truth.vocabulary)
    found = monitor(oracle)
    assert found["kl"] == pytest.approx(0.0, abs=1e-6) and found["relative_ppl"] == pytest.approx(1.0)


@pytest.mark.long
def test_lines_need_rules_before_anything_is_trained(here: Path, command: Command) -> None:
    done = command("score", "m-copies", "copies", "--oracle", "copies/grammar.npz", "--lines", 2)
    assert done.code == 2 and "--lines needs the probability of a word given only the k words before it" in done.err
    config = {**CONFIG, "name": "l", "evaluation": {"lines": 2}}
    Path("l.yaml").write_text(yaml.safe_dump(config), "utf-8")
    done = command("run", "l.yaml")
    assert done.code == 2 and "evaluation.lines needs" in done.err and not Path("runs/l/models").exists()


CONFIG: dict[str, Any] = {
    "name": "brackets",
    "seed": 1,
    "grammar": {"language": "shuffle-dyck", "k": 64, "depth": 100},
    "corpus": {"splits": {"train": 300, "dev": 20, "eval": 40}, "lengths": "2..12"},
    "models": [{"name": "counts", "model": {"architecture": "ngram"}}],
    "evaluation": {"divergence": {}, "context": {}, "pplu": {}},
}


@pytest.mark.long
def test_a_run_of_a_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Command) -> None:
    monkeypatch.chdir(tmp_path)
    Path("run.yaml").write_text(yaml.safe_dump(CONFIG), "utf-8")
    done = command("run", "run.yaml")
    assert done.code == 0, done.err
    results = json.loads(Path("runs/brackets/results.json").read_text("utf-8"))
    assert [(row["model"], row["objective"]) for row in results] == [("oracle", "causal"), ("counts", "causal")]
    assert results[0]["relative_ppl"] == 1.0
    page = Path("runs/brackets/report.html").read_text("utf-8")
    assert "The process" in page and "sampled from a process" in page
    assert "evaluate context needs the probability of a word given only the k words before it" in page
    assert not Path("runs/brackets/grammar/diagnosis.json").exists()
    Path("masked.yaml").write_text(
        yaml.safe_dump(
            {**CONFIG, "name": "m", "models": [{"name": "b", "preset": "tiny", "model": {"architecture": "bert"}}]}
        ),
        "utf-8",
    )
    done = command("run", "masked.yaml")
    assert done.code == 2 and "the masked model b needs the probability of a word given all others" in done.err
    assert not Path("runs/m/models").exists() and NO_RULES in done.err


@pytest.mark.long
def test_a_suite_of_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Command) -> None:
    monkeypatch.chdir(tmp_path)
    kind = {"kind": "process", "tests": "memory"}
    suite = {
        "name": "beyond",
        "version": 1,
        "title": "Processes",
        "seed": 1,
        "training": {"tokens": 4000, "batch_tokens": 512, "points": 2, "parameters": 560000, "seeds": [1]},
        "sizes": {"dev": 10, "test": 20, "longer": 20, "blocks": 10},
        "languages": {
            "brackets": {"language": LANGUAGES["brackets"], "lengths": "2..12", "longer": "14..20", **kind},
            "copies": {"language": LANGUAGES["copies"], "lengths": "3..21", **kind},
        },
        "baselines": {
            "ngram": {"model": {"architecture": "ngram"}},
            "truth": {"model": {"architecture": "oracle"}},
        },
    }
    Path("suite.yaml").write_text(yaml.safe_dump(suite), "utf-8")
    done = command("benchmark", "--suite", "suite.yaml", "--model", "all", "-o", "results")
    assert done.code == 0, done.err
    results = json.loads(Path("results/results.json").read_text("utf-8"))
    by_name = {model["name"]: model for model in results["models"]}
    assert {cell["language"] for cell in by_name["ngram"]["cells"]} == set(LANGUAGES)
    assert all(abs(value) < 1e-9 for cell in by_name["truth"]["cells"] for value in cell["test"]["kl"])
    done = command("benchmark", "--suite", "suite.yaml", "--model", "bert", "-o", "more")
    assert done.code == 2 and "the masked model bert" in done.err and not Path("more").exists()
    done = command("benchmark", "--suite", "suite.yaml", "--plan", "--model", "lstm")
    assert done.code == 0, done.err
