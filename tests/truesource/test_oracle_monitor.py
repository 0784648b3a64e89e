"""A model in training beside the truth: the numbers are those of a comparison afterwards."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from truesource.evaluation.core.comparison import compare_in
from truesource.evaluation.core.oracle import Oracle
from truesource.evaluation.core.setting import Setting
from truesource.evaluation.dynamics.oracle_monitor import OracleMonitor
from truesource.generator.corpus import Corpus
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.errors import InputError
from truesource.lmtrain.models import load_model
from truesource.run.config import RunConfig
from truesource.run.folder import RunFolder

GRAMMAR = """\
S -> A B 0.6
S -> A S 0.4
A -> 'a' 0.7 | 'c' 0.3
B -> 'b' 0.5 | 'd' 0.5
"""
TINY = [f"--set=model.{k}={v}" for k, v in {"layers": 1, "dim": 8, "heads": 2, "dropout": 0.1}.items()]
TINY += [f"--set=training.{k}={v}" for k, v in {"max_steps": 4, "batch_tokens": 64, "eval_every": 2}.items()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A grammar and a corpus of it."""
    made = tmp_path_factory.mktemp("monitor")
    pcfg = PCFG.from_text(GRAMMAR)
    pcfg.save(made / "toy.npz")
    Corpus.sample(pcfg, {"train": 80, "dev": 30}, seed=1, path=made / "corpus", lengths=LengthRange(2, 5))
    (made / "text.txt").write_text("a b\n" * 20)
    return made


@pytest.mark.long
@pytest.mark.parametrize(
    "settings", [["--model=gpt2"], ["--model=bert"], ["--model=gpt2", "--set=model.tokenizer=bpe"]]
)
def test_the_command_compares_with_the_grammar_while_it_trains(
    settings: list[str], folder: Path, tmp_path: Path, command: Any
) -> None:
    if "bpe" in settings[-1]:
        settings = [*settings, "--set=model.vocab_size=12"]
    options = ["--oracle", folder / "toy.npz", "--oracle-monitor-sentences", 20]
    done = command("train", folder / "corpus", "-o", tmp_path / "model", *settings, *TINY, *options)
    assert (done.code, done.err) == (0, "")
    rows = [json.loads(line) for line in (tmp_path / "model" / "metrics.jsonl").read_text().splitlines()]
    corpus = Corpus.load(folder / "corpus")
    model = load_model(tmp_path / "model")
    found = compare_in(
        model, Setting(PCFG.load(folder / "toy.npz"), corpus.sentences("dev")[:20], lengths=corpus.lengths)
    )
    assert len(rows) == 3
    assert rows[-1]["relative_ppl"] == pytest.approx(found.as_record()["relative_ppl"], rel=1e-5)
    assert rows[0]["relative_ppl"] > 1.0
    assert all(row["kl"] > 0.0 for row in rows)


def test_the_truth_is_as_good_as_itself(folder: Path) -> None:
    pcfg, corpus = PCFG.load(folder / "toy.npz"), Corpus.load(folder / "corpus")
    monitor = OracleMonitor.on_corpus(pcfg, corpus, sentences=10)
    oracle: Any = Oracle(pcfg, lengths=corpus.lengths)
    assert monitor(oracle)["relative_ppl"] == pytest.approx(1.0, abs=1e-12)
    free: Any = Oracle(pcfg)  # of another length condition
    assert monitor(free)["relative_ppl"] > 1.001


@pytest.mark.parametrize("vocabulary", [None, ["a", "b"], ["a", "b", "c", "d"]])
@pytest.mark.parametrize("objective", ["causal", "masked"])
def test_a_model_is_compared_with_the_truth_of_a_split_that_leaves_sentences_out(
    vocabulary: list[str] | None, objective: Any, tmp_path: Path
) -> None:
    law, lengths = PCFG.from_text("S -> W S 0.4 | W 0.6\nW -> a 0.4 | b 0.3 | c 0.2 | d 0.1"), LengthRange(1, 3)
    splits = {"train": 25, "dev": 40}
    corpus = Corpus.sample(law, splits, seed=3, path=tmp_path / "c", lengths=lengths, overlap="disjoint")
    model: Any = Oracle(law, objective, lengths=lengths, vocabulary=vocabulary)
    monitor = OracleMonitor.on_corpus(law, corpus)
    found = monitor(model)
    wanted = compare_in(
        model, Setting(law, corpus.sentences("dev"), lengths=lengths, excluded=monitor.setting.excluded)
    )
    assert "|disjoint:" in wanted.signature
    relative = wanted.measures["relative_ppl"].value
    assert relative > 1.001
    assert found["relative_ppl"] == pytest.approx(relative, rel=1e-6)
    assert monitor(model) == found
    assert found.get("kl", 0.0) == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize(
    ("corpus", "options", "message"),
    [
        ("text.txt", [], "--oracle needs a dev split"),
        (
            "corpus",
            ["--oracle-monitor-split", "test"],
            "no split 'test' on which to compare the model with the truth; it has train, dev",
        ),
    ],
)
def test_where_there_is_nothing_to_compare_on(
    corpus: str, options: list[str], message: str, folder: Path, tmp_path: Path, command: Any
) -> None:
    made = command("train", folder / corpus, "-o", tmp_path / "model", *TINY, "--oracle", folder / "toy.npz", *options)
    assert made.code == 2
    assert message in made.err
    assert list(tmp_path.iterdir()) == []


def test_a_corpus_without_sentences_to_compare_on(folder: Path) -> None:
    with pytest.raises(InputError, match="no sentences on which to compare"):
        OracleMonitor(Setting(PCFG.load(folder / "toy.npz"), []))


def test_a_run_needs_dev_sentences_to_compare_on() -> None:
    with pytest.raises(ValueError, match=r"needs a split dev for models with oracle_monitor: true"):
        RunConfig(
            name="x",
            treebank={"embedded": "english"},
            corpus={"splits": {"train": 5, "eval": 5}},
            models=[{"name": "m", "preset": "tiny", "oracle_monitor": True}],
        )


def test_a_stage_whose_model_has_a_monitor_depends_on_the_grammar() -> None:
    from truesource.run.models import stage as train

    config = RunConfig(name="x", treebank={"embedded": "english"}, models=[{"name": "m", "preset": "tiny"}])
    run: Any = RunFolder(config, Path(), Path(), outputs={"corpus": "1", "grammar": "2"})
    entry = config.models[0]
    assert "grammar" not in train.inputs(run, entry)
    monitored = train.inputs(run, entry.model_copy(update={"oracle_monitor": True}))
    assert (monitored["grammar"], monitored["oracle_monitor_sentences"]) == ("2", 200)
