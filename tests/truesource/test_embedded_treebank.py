"""Treebanks sampled from the embedded grammar, and how well the sentences of the demo read."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from truesource.generator.sampler import sample_treebank
from truesource.grammar.pcfg import language
from truesource.grammar.support.files import data_folder
from truesource.run.config import RunConfig
from truesource.run.experiment import load_config
from truesource.run.folder import RunFolder
from truesource.run.grammar import stage as grammar_stage
from truesource.run.treebank import stage as treebank_stage

pytestmark = pytest.mark.long

SMALL = "english:size=small"


def _folder(config: RunConfig, path: Path) -> RunFolder:
    run = RunFolder(config, path, path)
    for name in ("treebank", "grammar"):
        (path / name).mkdir()
    return run


def _treebank(path: Path, name: str) -> RunFolder:
    path.mkdir()
    sampled = {"embedded": name, "sentences": 200, "held_out": 0.2}
    run = _folder(RunConfig.model_validate({"name": "x", "treebank": sampled}), path)
    run.outputs["treebank"] = treebank_stage.make(run)
    return run


def test_trees_and_their_truth_are_of_the_size_that_is_named(tmp_path: Path) -> None:
    small, full = _treebank(tmp_path / "small", SMALL), _treebank(tmp_path / "full", "english")
    for run, name in ((small, SMALL), (full, "english")):
        found = json.loads((run.folder / "treebank" / "statistics.json").read_text(encoding="utf-8"))
        assert found["truth"]["grammar"] == language(name).sizes()
        assert found["source"].endswith("size small") == (name == SMALL)
    assert treebank_stage.inputs(small)["embedded"] == language(SMALL).digest
    assert treebank_stage.inputs(full)["embedded"] == language("english").digest


def test_held_out_trees_are_scored_by_the_grammar_that_made_them(tmp_path: Path) -> None:
    run = _treebank(tmp_path / "run", SMALL)
    held_out = grammar_stage._held_out(run)
    assert held_out is not None
    truth = language(SMALL)
    fit = grammar_stage._held_out_fit(run, truth, held_out)
    assert fit["impossible"] == 0
    assert fit["truth_log_prob_per_token"] == pytest.approx(fit["log_prob_per_token"], abs=1e-12)


@pytest.mark.slow  # half a minute: 30,000 trees, six cycles
def test_most_sentences_of_the_demo_are_english(tmp_path: Path) -> None:
    """Half of them are possible in the grammar that made the trees, with all its agreement and selection."""
    config = load_config(data_folder() / "demo.yaml")
    assert config.treebank is not None and config.treebank.embedded is not None and config.corpus.lengths is not None
    run = _folder(config, tmp_path)
    run.outputs["treebank"] = treebank_stage.make(run)
    run.outputs["grammar"] = grammar_stage.make(run)
    truth, lengths = language(config.treebank.embedded), config.corpus.lengths
    own, of_truth = (
        [s for tree in sample_treebank(pcfg, 1500, 1) if len(s := tree.leaves()) in lengths]
        for pcfg in (run.pcfg, truth)
    )
    assert np.isfinite(truth.exact.string_log_probs(own)).mean() > 0.5
    scores = run.pcfg.exact.string_log_probs(of_truth)
    possible = np.isfinite(scores)
    assert possible.mean() > 0.995
    excess = truth.exact.string_log_probs(of_truth) - scores
    tokens = np.array([len(s) + 1 for s in of_truth])
    assert 0.0 < excess[possible].sum() / tokens[possible].sum() < 0.15
