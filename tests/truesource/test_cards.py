"""The cards of a run: licence and results, written without making a stage again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import DatasetCard, ModelCard
from tiny_run import BANK

from truesource.evaluation.core.token_table import read_token_record
from truesource.grammar.support.errors import InputError
from truesource.run.experiment import execute, load_config

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("quick_report")]

CONFIG = """\
name: toy
treebank: {files: bank.mrg, held_out: 0.25}
grammar: {method: relative_frequency}
corpus: {lengths: 1..9, splits: {train: 400, dev: 20, eval: 40}}
models:
  - {name: bigrams, model: {architecture: ngram, order: 2}}
"""


@pytest.fixture
def run(tmp_path: Path) -> Path:
    (tmp_path / "bank.mrg").write_text(BANK)
    (tmp_path / "toy.yaml").write_text(CONFIG)
    return executed(tmp_path)


def executed(base: Path, *overrides: str) -> Path:
    config = load_config(base / "toy.yaml", overrides)
    return execute(config, base=base, runs=base / "runs").parent


def test_results_are_those_of_the_scores(run: Path) -> None:
    scores = read_token_record(run / "scores" / "bigrams.parquet", dict[str, Any])["record"]
    card = ModelCard.load(run / "models" / "bigrams" / "README.md")
    found = {result.metric_type: result for result in card.data.eval_results}
    assert card.data.model_name == "bigrams" and "## " not in card.text[:3]
    for kind, key in (("perplexity", "ppl"), ("relative-perplexity", "relative_ppl"), ("perplexity-bound", "bound")):
        assert found[kind].metric_value == scores[key]
        assert found[kind].metric_args == {
            "signature": scores["signature"],
            "interval_95": [scores[f"{key}_low"], scores[f"{key}_high"]],
        }
    digest = json.loads((run / "corpus" / "record.json").read_text())["digest"]
    assert {(r.dataset_split, r.dataset_revision, r.task_type) for r in found.values()} == {
        ("eval", digest, "text-generation")
    }


def test_another_licence_makes_only_the_report_again(run: Path) -> None:
    folders = (run / "corpus", run / "models" / "bigrams")
    assert DatasetCard.load(folders[0] / "README.md").data.license == "unknown"
    before = {p: p.read_bytes() for folder in folders for p in folder.rglob("*") if p.is_file() and p.suffix != ".md"}
    executed(run.parent.parent, "license=CC-BY-4.0")
    stages = json.loads((run / "stages.json").read_text())["stages"]
    assert [name for name, stage in stages.items() if not stage["skipped"]] == ["report"]
    assert {path: path.read_bytes() for path in before} == before
    for folder in folders:
        assert "license: cc-by-4.0\n" in (folder / "README.md").read_text()
    assert ModelCard.load(folders[1] / "README.md").data.eval_results


def test_a_licence_is_an_identifier(tmp_path: Path) -> None:
    (tmp_path / "toy.yaml").write_text(f"{CONFIG}license: all mine\n")
    with pytest.raises(InputError, match=r"license: .*SPDX identifier"):
        load_config(tmp_path / "toy.yaml")
