"""Lines of the best predictors that see k words, beside scores of a model, in a run and in a sweep."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from command_line import Command

from truesource.evaluation.core.windows import BestWithin
from truesource.generator.corpus import Corpus
from truesource.generator.language_model import ScoringFrame
from truesource.grammar.pcfg import PCFG
from truesource.studies.scaling.results import read_sweep

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("one_thread")]
CONFIG: dict[str, Any] = {
    "name": "lines",
    "seed": 1,
    "grammar": {"language": "hmm", "states": 4, "vocabulary": 6},
    "corpus": {"splits": {"train": 300, "dev": 20, "eval": 40}, "lengths": "2..12"},
    "models": [{"name": "counts", "model": {"architecture": "ngram"}}],
    "evaluation": {"lines": 3},
}


def perplexities(folder: Path) -> list[float]:
    """Of the predictors themselves, as language models."""
    corpus, grammar = Corpus.load(folder / "corpus"), PCFG.load(folder / "grammar" / "grammar.npz")
    best = BestWithin(grammar, 0, lengths=corpus.lengths)
    scores = [best.with_words(k).score(corpus.sentences("eval"), ScoringFrame()) for k in range(3)]
    return [float(np.exp(-each.log_prob.mean())) for each in scores]


def test_lines_of_a_run_and_of_score(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Command) -> None:
    monkeypatch.chdir(tmp_path)
    Path("run.yaml").write_text(yaml.safe_dump(CONFIG), "utf-8")
    assert command("run", "run.yaml").code == 0
    run = Path("runs/lines")
    lines = json.loads((run / "scores" / "lines.json").read_text("utf-8"))
    wanted = perplexities(run)
    assert [line["name"] for line in lines] == [f"bound_{k}_words" for k in range(3)]
    assert [line["value"] for line in lines] == pytest.approx(wanted, rel=1e-12)
    page = (run / "report.html").read_text("utf-8")
    assert "Best predictors that see k words" in page and f"{wanted[1]:.2f}" in page
    call = ("score", run / "models" / "counts", run / "corpus", "--oracle", run / "grammar" / "grammar.npz")
    done = command(*call, "--lines", 3, "--json", "x.json")
    assert done.code == 0 and "best predictor that sees" in done.out
    found = {row["name"]: row["value"] for row in json.loads(Path("x.json").read_text("utf-8"))}
    assert [found[f"bound_{k}_words"] for k in range(3)] == pytest.approx(wanted, rel=1e-12)
    assert command(*call, "--lines", 3, "--frame", "paper").code == 2
    assert command("run", "run.yaml", "--set", "evaluation.frame=paper").code == 2
    assert command("run", "run.yaml", "--set", "evaluation.lines=0").code == 0
    assert not (run / "scores" / "lines.json").exists()


def test_lines_of_a_sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Command) -> None:
    monkeypatch.chdir(tmp_path)
    sweep = {
        "name": "sweep",
        "seed": 1,
        "grammar": CONFIG["grammar"],
        "corpus": {**CONFIG["corpus"], "trees": "none"},
        "axes": {"sentences": [100, 300]},
        "base": {"model": {"architecture": "lstm", "dim": 8}, "training": {"max_steps": 2}},
        "evaluation": {"lines": 2, "replicates": 100},
    }
    Path("sweep.yaml").write_text(yaml.safe_dump(sweep), "utf-8")
    done = command("run", "sweep.yaml")
    assert done.code == 0, done.err
    found = read_sweep(Path("runs/sweep"))
    bound = found.rows[0]["measures"]["bound"]["value"]
    assert [line["relative_ppl"] for line in found.lines] == pytest.approx(
        [line["value"] / bound for line in found.lines], rel=1e-9
    )
    assert [record["name"] for record in found.records() if record["name"].startswith("bound_")] == [
        "bound_0_words",
        "bound_1_words",
    ]
    assert "1 word" in Path("runs/sweep/figures/relative_ppl.svg").read_text("utf-8")
