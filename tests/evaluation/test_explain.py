"""Changes of levers, and the references that a model stands among."""

from __future__ import annotations

import numpy as np
import pytest

from truesource.evaluation.core.comparison import score_both
from truesource.evaluation.core.oracle import Oracle
from truesource.evaluation.core.setting import Setting
from truesource.evaluation.core.vocabulary import Kind, comparison_vocabulary
from truesource.evaluation.explain.measure import LeverChange, changes, em_rung, first_of, floor_rung, window_rungs
from truesource.evaluation.measures.contrast import Contrast, SeedSums, difference
from truesource.evaluation.measures.monte_carlo import holm
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.estimate.data_floor import data_floor
from truesource.grammar.estimate.inside_outside import random_start
from truesource.grammar.pcfg import PCFG

TOY = "S -> A S 0.4 | A 0.6\nA -> 'a' 0.5 | 'b' 0.3 | 'c' 0.2\n"
SIMPLE = "S -> S S 0.3 | 'a' 0.5 | 'b' 0.2\n"


def sums(seed: int, mean: float, k: int = 1) -> SeedSums:
    """Of 200 sentences of 2 to 8 tokens, the same for all."""
    rng = np.random.default_rng(seed)
    lengths = np.random.default_rng(0).integers(2, 9, 200).astype(np.float64)
    count = np.broadcast_to(lengths, (k, 200))
    return SeedSums(count * mean + rng.normal(0.0, 0.3, (k, 200)), count)


def test_changes_of_one_seed_are_paired_differences_with_holm() -> None:
    base, levers = sums(1, 0.5), {"data": sums(2, 0.3), "steps": sums(3, 0.5), "width": sums(4, 0.7)}
    found = changes(base, levers)
    for name, lever in levers.items():
        plain, contrast = difference(lever, base), found[name].contrast
        assert contrast.value == pytest.approx(plain.value, abs=1e-12)
        assert (contrast.low, contrast.high) == pytest.approx((plain.low, plain.high), abs=1e-9)
    assert [change.p_adjusted for change in found.values()] == holm([c.contrast.p or 0.0 for c in found.values()])
    assert (found["data"].helps, found["width"].helps) == (True, False) and first_of(found) == "data"


def test_changes_of_several_seeds_are_paired_by_seed() -> None:
    """Seeds that move model and lever alike do not hide what the lever changes; other tokens do not compare."""
    base = sums(1, 0.5, 3)
    moved = base.total + np.array([[0.0], [2.0], [4.0]]) * base.count
    levers = {"data": SeedSums(moved - 0.1 * base.count, base.count)}
    found = changes(SeedSums(moved, base.count), levers)["data"]
    assert found.contrast.value == pytest.approx(-0.1) and found.helps
    assert not (difference(levers["data"], SeedSums(moved, base.count)).p or 1.0) < 0.05
    with pytest.raises(ValueError, match="same tokens"):
        changes(base, {"data": SeedSums(base.total, base.count + 1.0)})


def test_the_truth_as_a_model_is_helped_by_nothing() -> None:
    """Model and levers all agree with the truth: every change is 0, within its interval."""
    pcfg = PCFG.from_text(TOY)
    text = [["a"], ["b", "a"], ["c"], ["a", "b", "c"]] * 10
    setting = Setting(pcfg, text)
    table = score_both(Oracle(pcfg, "causal"), setting).paired.table()
    truth = SeedSums(table[:1], table[2:])
    found = changes(truth, {"data": truth, "steps": truth})
    for change in found.values():
        low, high = change.contrast.low, change.contrast.high
        assert change.contrast.value == 0.0 and low is not None and high is not None and low <= 0.0 <= high
        assert not change.helps
    assert first_of(found) is None


def test_exact_targets_are_named_only_where_nothing_else_helps() -> None:
    sure, unsure = (LeverChange(Contrast(v, v - 0.1, v + 0.1, p), p) for v, p in ((-0.5, 0.001), (-0.4, 0.2)))
    less = LeverChange(Contrast(-0.2, -0.3, -0.1, 0.001), 0.001)
    assert first_of({"targets": sure, "data": less, "steps": unsure}) == "data"
    assert first_of({"targets": sure, "steps": unsure}) == "targets"
    assert first_of({"steps": unsure}) is None and first_of({}) is None


@pytest.mark.long
def test_rungs_fall_to_the_truth_with_the_words_seen() -> None:
    """In expectation: sums of all strings, each as often as the truth has it, are exact divergences."""
    pcfg = PCFG.from_text(SIMPLE)
    text = pcfg_sample(pcfg, 400)
    setting = Setting(pcfg, text, LengthRange(1, 8))
    model = Oracle(pcfg, "causal", lengths=LengthRange(1, 8))
    values = [
        float(rung.table[0].sum() / rung.table[2].sum())
        for rung in window_rungs(model, setting, 4)
        if rung.table is not None
    ]
    assert len(values) == 4 and values == sorted(values, reverse=True) and values[-1] > -0.01
    assert list(window_rungs(Oracle(pcfg, "masked"), Setting(pcfg, text), 3)) == []


@pytest.mark.long
def test_em_without_trees_finds_the_rules_probabilities() -> None:
    """Of a grammar that strings determine; near the truth with many sentences, further with few."""
    pcfg = PCFG.from_text(TOY)
    setting = Setting(pcfg, pcfg_sample(pcfg, 300), LengthRange(1, 8))
    model = Oracle(pcfg, "causal", lengths=LengthRange(1, 8))
    far, near = (em_rung(model, setting, pcfg_sample(pcfg, n, seed=5), 2) for n in (5, 2000))
    assert far is not None and near is not None and far.table is not None and near.table is not None
    values = [float(rung.table[0].sum() / rung.table[2].sum()) for rung in (far, near) if rung.table is not None]
    assert values[0] > 0.002 > abs(values[1])
    assert em_rung(Oracle(pcfg, "masked"), setting, [["a"]], 1) is None


def test_a_random_start_has_the_rules_and_proper_probabilities() -> None:
    pcfg = PCFG.from_text(TOY)
    start = random_start(pcfg, np.random.default_rng(1))
    totals: dict[int, float] = {}
    for (rules, logp), (own, _) in zip(start.tables(), pcfg.tables(), strict=True):
        np.testing.assert_array_equal(rules, own)
        for parent, value in zip(rules[:, 0].tolist(), np.exp(logp).tolist(), strict=True):
            totals[parent] = totals.get(parent, 0.0) + value
    assert list(totals.values()) == pytest.approx([1.0] * len(totals), abs=1e-12)
    assert start == random_start(pcfg, np.random.default_rng(1)) != pcfg


def pcfg_sample(pcfg: PCFG, n: int, seed: int = 3) -> list[list[str]]:
    from truesource.generator.sampler import Sampler
    from truesource.grammar.support.arrays import random_state

    sampler = Sampler(pcfg, LengthRange(1, 8))
    return [list(each) for each in sampler.sentences(sampler.draw(n, random_state(seed)))]


def test_the_floor_is_that_of_the_derivations_a_token() -> None:
    pcfg = PCFG.from_text(SIMPLE)
    rung = floor_rung(Setting(pcfg, [["a"]]), 500, 2.5)
    assert rung is not None and rung.value == data_floor(pcfg, 500) / 2.5 and rung.table is None
    conditioned = floor_rung(Setting(pcfg, [["a"]], LengthRange(1, 8)), 500, 2.5)
    assert conditioned is not None and conditioned.value == data_floor(pcfg, 500, lengths=LengthRange(1, 8)) / 2.5
    endless = PCFG.from_text("S -> S S 0.7 | 'a' 0.3")
    assert floor_rung(Setting(endless, [["a"]]), 500, 2.5) is None


@pytest.mark.long
@pytest.mark.parametrize("kind", ["common", "full"])
def test_references_predict_the_words_of_the_comparison(kind: Kind) -> None:
    """In one vocabulary the best predictors near the truth as they see more, and all rungs count the same tokens."""
    pcfg = PCFG.from_text("S -> A S 0.4 | B 0.6\nA -> 'a' 0.5 | 'b' 0.5\nB -> 'b' 0.5 | 'c' 0.5\n")
    lengths = LengthRange(1, 4)
    text = Oracle(pcfg, lengths=lengths).sample(200, 3)
    setting = Setting(pcfg, text, lengths)
    coarse = Oracle(pcfg, lengths=lengths, vocabulary=["a"])
    other = Oracle(pcfg, lengths=lengths, vocabulary=["a", "b"])
    vocabulary = comparison_vocabulary([coarse, other], pcfg, kind)
    assert vocabulary is not None
    model = score_both(vocabulary.adapt(coarse), setting).paired.table()
    rungs = list(window_rungs(coarse, setting, 5, vocabulary))
    em = em_rung(coarse, setting, text, 1, vocabulary)
    assert em is not None
    values = [float(rung.table[0].sum()) for rung in rungs if rung.table is not None]
    assert values[0] > 1.0 and values[4] == pytest.approx(0.0, abs=1e-9)  # four words are a whole sentence
    for rung in (*rungs, em):
        assert rung.table is not None
        assert rung.table[1:] == pytest.approx(model[1:], abs=1e-12)
