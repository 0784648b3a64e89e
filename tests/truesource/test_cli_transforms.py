"""Verbs and runs on corpora in another order of words: exact, or refused in one sentence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from command_line import Command
from tiny_run import prepare, run
from toy_english import TOY

from truesource.evaluation.core.signature import parts_of
from truesource.evaluation.core.token_table import read_token_table
from truesource.generator.corpus import Corpus
from truesource.grammar.pcfg import PCFG

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("one_thread")]
SPLIT = ("--lengths", "2..8", "--shares", "train=.8,dev=.1,eval=.1")
SHUFFLE = "block-shuffle:size=2,seed=1"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Command) -> Path:
    """Corpora ``plain``, ``shuffled`` and ``reversed`` of one grammar, and an n-gram model of each."""
    PCFG.from_text(TOY).save(tmp_path / "toy.npz")
    monkeypatch.chdir(tmp_path)
    for name, transform in (("plain", None), ("shuffled", SHUFFLE), ("reversed", "reversal")):
        more = () if transform is None else ("--transform", transform)
        assert command("sample", "toy.npz", "-n", 400, "-o", name, *SPLIT, *more).code == 0
        assert command("train", name, "-o", f"model-{name}", "--model", "ngram").code == 0
    return tmp_path


def numbers(file: str = "x.json") -> dict[str, Any]:
    """Records by name, the first of each."""
    found = json.loads(Path(file).read_text("utf-8"))
    return {row["name"]: row for row in reversed(found["summary"] if isinstance(found, dict) else found)}


def test_every_verb_on_transformed_corpora(here: Path, command: Command) -> None:
    bounds = {}
    for name in ("plain", "shuffled", "reversed"):
        assert command("bound", "toy.npz", name, "--json", "x.json", "--force").code == 0
        bounds[name] = {key: row["value"] for key, row in numbers().items()}
    assert bounds["shuffled"] == pytest.approx(bounds["plain"], rel=1e-10)
    assert bounds["reversed"] == pytest.approx(bounds["plain"], rel=1e-10)
    assert Corpus.load(here / "shuffled").sentences("eval") != Corpus.load(here / "plain").sentences("eval")

    shuffled = ("model-shuffled", "shuffled", "--oracle", "toy.npz", "--json", "x.json", "--force")
    done = command("score", *shuffled)
    assert done.code == 0 and f"transformed by {SHUFFLE}: the probabilities of sentences" in " ".join(done.err.split())
    scored = numbers()
    assert scored["bound"]["value"] == pytest.approx(bounds["plain"]["causal_bound"], rel=1e-10)
    assert {"transform": SHUFFLE, "truth": "sentence"}.items() <= parts_of(scored["kl"]["signature"]).items()
    assert "rho" not in scored
    assert command("evaluate", "pplu", *shuffled).code == 0
    assert numbers()["bound"]["value"] == pytest.approx(bounds["plain"]["causal_bound"], rel=1e-10)

    backwards = ("model-reversed", "reversed", "--oracle", "toy.npz", "--json", "x.json", "--force")
    done = command("score", *backwards)
    assert done.code == 0 and done.err == ""
    assert {"transform": "reversal", "truth": "token"}.items() <= parts_of(numbers()["rho"]["signature"]).items()
    paired = numbers()["kl"]["value"]
    assert command("evaluate", "divergence", *backwards).code == 0
    assert numbers()["kl_paired"]["value"] == pytest.approx(paired, rel=1e-10)
    assert "|transform:reversal|truth:token|" in numbers()["kl_paired"]["signature"]

    refused = [
        ("bound", "toy.npz", "shuffled", "--next", "--json", "y.json"),
        ("bound", "toy.npz", "shuffled", "--frame", "paper"),
        ("score", *shuffled, "--frame", "paper"),
        ("evaluate", "divergence", *shuffled),
        ("evaluate", "pplu", *shuffled, "--reduce"),
        ("evaluate", "probing", *shuffled),
    ]
    for call in refused:
        code, _, err = command(*call)
        assert code == 2 and "transformed by block-shuffle" in err.rstrip("\n").rpartition("\n")[2], call
    without = command("evaluate", "dynamics", *shuffled)  # an n-gram model; said before the text is read
    assert without.code == 2 and "no snapshots" in without.err
    assert command("bound", "toy.npz", "shuffled", "--frame", "paper", "--no-causal").code == 0
    for verb in ("tendencies", "naturalness"):
        against = ("--oracle", "toy.npz") if verb == "tendencies" else ("--reference", "plain", "--oracle", "toy.npz")
        assert command("evaluate", verb, "shuffled", *against, "--split", "train", "--lengths", "2..8").code == 0


def test_the_distance_of_a_model_of_pieces_has_the_truth_of_the_originals(here: Path, command: Command) -> None:
    small = {"layers": 1, "dim": 8, "heads": 2, "tokenizer": "bpe", "vocab_size": 40}
    options = [*(f"--set=model.{k}={v}" for k, v in small.items()), "--set=training.max_steps=2"]
    truth = {}
    for name in ("plain", "shuffled", "reversed"):
        assert command("train", name, "-o", f"bpe-{name}", "--model", "gpt2", *options).code == 0
        call = ("evaluate", "tokenisation", f"bpe-{name}", name, "--oracle", "toy.npz", "--estimators", "nbest")
        assert command(*call, "--sentences", 20, "--json", "x.json", "--force").code == 0
        truth[name] = numbers()["true_nll"]
    assert truth["shuffled"]["value"] == pytest.approx(truth["plain"]["value"], rel=1e-10)
    assert truth["reversed"]["value"] == pytest.approx(truth["plain"]["value"], rel=1e-10)
    assert f"|transform:{SHUFFLE}|truth:sentence|" in truth["shuffled"]["signature"]
    assert "|transform:reversal|truth:token|" in truth["reversed"]["signature"]
    done = command(*call[:2], "bpe-shuffled", "shuffled", *call[4:], "--out-of-domain", "zipf=1.2")
    assert done.code == 2 and "out_of_domain needs text in the order of a grammar" in done.err
    words = ("--word-table", "words.parquet", "--estimators", "nbest", "--sentences", 5)
    assert command("evaluate", "tokenisation", "bpe-shuffled", "shuffled", "--oracle", "toy.npz", *words).code == 0
    columns = pq.read_table("words.parquet").column_names
    assert "surprisal" in columns and "surprisal_truth" not in columns


def test_an_exact_kl_that_cannot_be_computed_is_missed(here: Path, command: Command) -> None:
    for name in ("plain", "shuffled"):
        assert command("train", name, "-o", f"bigram-{name}", "--model", "ngram", "--set", "model.order=2").code == 0
        models = (f"one=model-{name}", f"two=bigram-{name}")
        found = command("compare", *models, name, "--oracle", "toy.npz", "--exact-kl", 5)
        assert found.code == 0, found.err
        assert ("exact KL" in found.out, "no exact KL of one and two: " in found.err) == (
            name == "plain",
            name == "shuffled",
        )


def test_the_parts_of_a_bound_and_the_trees_of_a_corpus(here: Path, command: Command) -> None:
    one = command("bound", "toy.npz", "shuffled", "-o", "parts")
    assert one.code == 0 and "truth:sentence" in one.out
    again = command("bound", "toy.npz", "shuffled", "-o", "parts")
    assert again.out == one.out
    for name in ("plain", "shuffled"):
        assert command("convert", name, f"{name}.mrg", "--split", "eval").code == 0
        assert command("convert", name, f"{name}.txt", "--split", "eval").code == 0
    assert Path("shuffled.mrg").read_text("utf-8") == Path("plain.mrg").read_text("utf-8")
    assert Path("shuffled.txt").read_text("utf-8") != Path("plain.txt").read_text("utf-8")


CONFIG = """\
name: toy
seed: 1
grammar: {method: file, file: toy.txt}
corpus: {lengths: 2..6, splits: {train: 200, eval: 40}, transform: "block-shuffle:size=2,seed=1"}
models:
  - {name: two, model: {architecture: ngram, order: 2}}
evaluation: {pplu: true, divergence: true, pairs: {number: 2}}
"""


def test_a_run_measures_what_is_exact_and_says_what_is_not(tmp_path: Path) -> None:
    prepare(tmp_path, CONFIG, TOY)
    run(tmp_path)
    folder = tmp_path / "runs" / "toy"
    results = {
        (row["model"], row["objective"]): row for row in json.loads((folder / "results.json").read_text("utf-8"))
    }
    assert results["oracle", "causal"]["relative_ppl"] == 1.0 and results["oracle", "causal"]["rho"] is None
    assert results["oracle", "masked"]["rho"] == 1.0
    two = results["two", "causal"]
    assert two["relative_ppl"] > 1.0 and two["bound"] == pytest.approx(results["oracle", "causal"]["bound"], rel=1e-10)
    assert "|truth:sentence|" in two["signature"]
    assert not len(read_token_table(folder / "scores" / "two.parquet")["model"])
    assert len(read_token_table(folder / "scores" / "oracle-masked.parquet")["model"])
    stages = json.loads((folder / "stages.json").read_text("utf-8"))["stages"]
    assert stages["divergence:two"]["unmeasured"]["code"] == "sentence-truth"
    assert stages["pairs"]["unmeasured"]["code"] == "transformed"
    assert "unmeasured" not in stages["pplu:two"]
    page = (folder / "report.html").read_text("utf-8")
    assert "block-shuffle:size=2,seed=1" in page and "sentence, masked token" in page
    assert run(tmp_path, "corpus.transform=reversal")
    stages = json.loads((folder / "stages.json").read_text("utf-8"))["stages"]
    assert "unmeasured" not in stages["divergence:two"]
    assert len(read_token_table(folder / "scores" / "two.parquet")["model"])
    assert run(tmp_path, "corpus.transform=reversal") == []


def test_a_sweep_has_the_bound_of_the_original_text(here: Path, command: Command) -> None:
    small = {"layers": 1, "heads": 2, "dim": 4, "dropout": 0.0, "max_positions": 12}
    steps = {"max_steps": 2, "batch_tokens": 60, "eval_every": 2, "warmup_steps": 1}
    measured = {}
    for name in ("plain", "shuffled"):
        config = {
            "name": name,
            "grammar": "toy.npz",
            "corpus": name,
            "base": {"model": small, "training": steps},
            "axes": {"sentences": [20]},
            "evaluation": {"replicates": 100},
        }
        Path(f"{name}.yaml").write_text(json.dumps(config), encoding="utf-8")
        assert command("run", f"{name}.yaml").code == 0
        (scored,) = (here / "runs" / name / "scores").glob("*.json")
        measured[name] = json.loads(scored.read_text("utf-8"))
    plain, shuffled = measured["plain"], measured["shuffled"]
    assert shuffled["measures"]["bound"]["value"] == pytest.approx(plain["measures"]["bound"]["value"], rel=1e-10)
    assert (shuffled["parts"]["transform"], shuffled["parts"]["truth"]) == (SHUFFLE, "sentence")
    assert "transform" not in plain["parts"]
    done = command("run", "shuffled.yaml", "--set", "evaluation.frame=paper")
    assert done.code == 2 and "a frame that leaves out positions" in done.err


def test_an_unknown_transform_of_a_configuration_is_refused(tmp_path: Path) -> None:
    from truesource.grammar.support.errors import InputError
    from truesource.run.experiment import load_config

    prepare(tmp_path, CONFIG, TOY)
    with pytest.raises(InputError, match=r"corpus.transform: .*there is no transform 'shuffle'"):
        load_config(tmp_path / "toy.yaml", ["corpus.transform=shuffle"])
    with pytest.raises(InputError, match=r"evaluation.frame: paper excludes positions"):
        load_config(tmp_path / "toy.yaml", ["evaluation.frame=paper"])
    load_config(tmp_path / "toy.yaml", ["evaluation.frame=paper", "corpus.transform=reversal"])
