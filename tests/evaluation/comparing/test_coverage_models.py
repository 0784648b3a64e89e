"""The simulation of ``benchmarks/coverage_models.py``: its true values are those of the oracle, and it runs."""

from __future__ import annotations

import sys
from types import ModuleType

import numpy as np
import pytest
from program import program

from truesource.evaluation.core.oracle import Oracle
from truesource.generator.language_model import ScoringFrame
from truesource.grammar.pcfg import PCFG


@pytest.fixture(scope="module")
def simulation() -> ModuleType:
    return program("coverage_models")


def with_probabilities(pcfg: PCFG, log_q: np.ndarray) -> PCFG:
    binary, unary, lexical = np.split(log_q, np.cumsum([len(pcfg.binary), len(pcfg.unary)]))
    heads = pcfg.symbols, pcfg.vocabulary, pcfg.start
    return PCFG(*heads, pcfg.binary, binary, pcfg.unary, unary, pcfg.lexical, lexical, pcfg.labels)


@pytest.mark.long
def test_sums_of_rules_are_the_scores_of_the_oracle(simulation: ModuleType) -> None:
    world = simulation.World.of(simulation.grammar())
    rng = np.random.default_rng(1)
    gap = world.seeds(world.centre(0.3, 1), 50.0, 1, rng)
    model = with_probabilities(world.pcfg, world.sampler.logp - gap[0])
    drawn = world.sampler.draw(20, simulation.random_state(1, 0))
    sentences = world.sampler.sentences(drawn)
    counts, tokens = world.sentences(20, 1, 0)
    scores = [Oracle(pcfg).score(sentences, ScoringFrame()) for pcfg in (world.pcfg, model)]
    gaps = np.bincount(scores[0].sentence, scores[0].log_prob - scores[1].log_prob)
    assert counts @ gap[0] == pytest.approx(gaps, abs=1e-10)
    assert tokens == pytest.approx([len(sentence) + 1.0 for sentence in sentences])


def test_the_true_values_are_expectations(simulation: ModuleType) -> None:
    """Over sentences and over seeds, each within 5 standard errors of a large sample."""
    world = simulation.World.of(simulation.grammar())
    centre = world.centre(0.3, 1)
    many = world.seeds(centre, 200.0, 20_000, np.random.default_rng(2))
    values = many @ world.expected / world.tokens
    assert abs(values.mean() - world.expected_kl(centre, 200.0)) < 5 * values.std() / np.sqrt(len(values))
    counts, tokens = world.sentences(20_000, 3, 0)
    residual = counts @ many[0] - world.kl(many[:1]) * tokens
    assert abs(residual.mean()) < 5 * residual.std() / np.sqrt(len(residual))


def test_a_model_with_twins_exchanged_is_as_far_from_the_truth(simulation: ModuleType) -> None:
    world = simulation.World.of(simulation.grammar())
    gap = world.seeds(world.centre(0.3, 1), 50.0, 1, np.random.default_rng(4))
    swapped = gap[:, world.twins]
    assert not np.allclose(gap, swapped)
    assert world.kl(swapped) == pytest.approx(world.kl(gap), abs=1e-12)


def test_the_table_has_a_row_for_each_method(simulation: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    call = "coverage_models.py --replications 2 --seeds 1 3 --sizes 30 --only alike"
    monkeypatch.setattr(sys, "argv", call.split())
    lines: list[str] = []
    simulation.main(lines.append)
    assert [line.split(" | ")[1:4] for line in lines[2:]] == [
        ["1", "30", "sentences"],
        ["1", "30", "parts *"],
        ["3", "30", "sentences"],
        ["3", "30", "clusters"],
        ["3", "30", "parts *"],
    ]
