"""Measures against hand-computed values and formulas."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from truesource.evaluation.core.score import Score
from truesource.evaluation.core.signature import digest_sentences, signature
from truesource.evaluation.measures.bootstrap import perplexities, perplexity
from truesource.evaluation.measures.correlation import correlations, r2_identity, r2_pearson, r2_released, spearman
from truesource.evaluation.measures.paired import NothingToCompareError, Paired, pair
from truesource.generator.language_model import ScoringFrame, TokenScores, assemble_scores, preset_frame
from truesource.grammar.support.errors import InputError

FRAME = ScoringFrame()
VALUES = st.lists(st.tuples(st.integers(-8, 0), st.integers(-8, 0)), min_size=3, max_size=30)


def scores(rows: list[list[float]], frame: ScoringFrame = FRAME) -> TokenScores:
    """Rows with an end of sentence; no unknown words."""
    return assemble_scores([np.array(r) for r in rows], [np.zeros(len(r) - 1, dtype=bool) for r in rows], frame)


def paired(model: list[list[float]], oracle: list[list[float]]) -> Paired:
    return pair(scores(model), scores(oracle))


# -- perplexity -------------------------------------------------------------------------------------


def test_perplexity_by_hand() -> None:
    """Probabilities 1/2, 1/4, 1/4 and 1/8: two sentences, pooled, not a mean of two perplexities."""
    assert perplexity(np.log([0.5, 0.25, 0.25, 0.125])) == pytest.approx(2.0 ** (8 / 4))
    found = perplexities(paired([np.log([0.5, 0.25]).tolist(), np.log([0.25, 0.125]).tolist()], [[0.0, 0.0]] * 2))
    assert found["ppl"].value == pytest.approx(4.0)
    assert found["bound"].value == 1.0
    assert found["relative_ppl"].value == pytest.approx(4.0)


def test_relative_perplexity_is_the_ratio_of_the_perplexities() -> None:
    rng = np.random.default_rng(0)
    model, oracle = (
        [rng.normal(-3, 1, k).tolist() for k in (2, 5, 3, 9, 4) * 3],
        [rng.normal(-2, 1, k).tolist() for k in (2, 5, 3, 9, 4) * 3],
    )
    found = perplexities(paired(model, oracle), seed=4)
    assert found["relative_ppl"].value == pytest.approx(found["ppl"].value / found["bound"].value, rel=1e-12)
    flat = np.concatenate([np.array(m) for m in model]), np.concatenate([np.array(o) for o in oracle])
    assert math.log(found["relative_ppl"].value) == pytest.approx(float(np.mean(flat[1] - flat[0])), rel=1e-12)
    for interval in found.values():
        assert interval.low <= interval.value <= interval.high
    assert perplexities(paired(model, oracle), seed=4) == found
    assert perplexities(paired(model, oracle), seed=5)["ppl"] != found["ppl"]


def test_equal_scores_give_exactly_one() -> None:
    rows = [[-1.1, -2.3, -0.7], [-0.3, -4.1]] * 5
    both = paired(rows, rows)
    assert perplexities(both)["relative_ppl"] == (1.0, 1.0, 1.0)
    for name, interval in correlations(both).items():
        assert interval == (1.0, 1.0, 1.0), name


# -- correlation ------------------------------------------------------------------------------------


def test_spearman_by_hand() -> None:
    """Without ties rho = 1 - 6 sum d^2 / (n (n^2 - 1)): d = (1, -1, 0, 0), n = 4."""
    x, y = np.array([-4.0, -3.0, -2.0, -1.0]), np.array([-3.0, -4.0, -2.0, -1.0])
    assert spearman(x, y) == pytest.approx(1 - 6 * 2 / (4 * 15))


@pytest.mark.long
@given(VALUES)
def test_spearman_is_that_of_scipy_ties_included(pairs: list[tuple[int, int]]) -> None:
    x, y = np.array(pairs, dtype=float).T
    assume(np.ptp(x) > 0 and np.ptp(y) > 0)
    assert spearman(x, y) == pytest.approx(stats.spearmanr(x, y).statistic, abs=1e-12)


@given(VALUES)
def test_r2_by_their_formulas(pairs: list[tuple[int, int]]) -> None:
    model, oracle = np.array(pairs, dtype=float).T
    assume(np.ptp(model) > 0 and np.ptp(oracle) > 0)
    n = len(pairs)
    mean_m, mean_o = sum(model) / n, sum(oracle) / n
    residual = sum((o - m) ** 2 for m, o in pairs)
    spread_m, spread_o = sum((m - mean_m) ** 2 for m in model), sum((o - mean_o) ** 2 for o in oracle)
    shared = sum((m - mean_m) * (o - mean_o) for m, o in pairs)
    assert r2_pearson(model, oracle) == pytest.approx(shared**2 / (spread_m * spread_o), abs=1e-12)
    assert r2_identity(model, oracle) == pytest.approx(1 - residual / spread_o, abs=1e-12)
    assert r2_released(model, oracle) == pytest.approx(1 - residual / spread_m, abs=1e-12)


def test_r2_identity_sees_a_bias_that_pearson_does_not() -> None:
    oracle = np.array([-1.0, -2.0, -3.0, -4.0])
    model = oracle * 2 - 1
    assert r2_pearson(model, oracle) == pytest.approx(1.0)
    assert spearman(model, oracle) == pytest.approx(1.0)
    assert r2_identity(model, oracle) == pytest.approx(1 - (4 + 9 + 16 + 25) / 5)


@pytest.mark.parametrize("measure", [spearman, r2_pearson, r2_identity, r2_released])
def test_constant_scores_correlate_with_nothing_but_themselves(measure: object) -> None:
    flat, varied = np.full(5, -1.0), np.array([-1.0, -2.0, -3.0, -4.0, -5.0])
    assert measure(flat, flat) == 1.0  # type: ignore[operator]
    for x, y in ((flat, varied), (varied, flat)):
        assert math.isfinite(measure(x, y))  # type: ignore[operator]
        assert measure(x, y) <= 0.0  # type: ignore[operator]


# -- pairing ----------------------------------------------------------------------------------------


def test_impossible_sentences_leave_both_sides_and_are_counted() -> None:
    inf = -math.inf
    model = [[-1.0, -2.0], [-3.0, inf], [-4.0, -5.0, -6.0], [-7.0, -8.0]]
    oracle = [[-1.5, -2.5], [-3.5, -4.5], [-4.5, -5.5, -6.5], [inf, inf]]
    both = paired(model, oracle)
    assert both.excluded.tolist() == [1, 3]
    assert both.model.tolist() == [-1.0, -2.0, -4.0, -5.0, -6.0]
    assert both.oracle.tolist() == [-1.5, -2.5, -4.5, -5.5, -6.5]
    assert both.sentence.tolist() == [0, 0, 2, 2, 2]
    assert (both.tokens, both.n_sentences) == (5, 4)
    model_sum, oracle_sum, count = both.sums()
    assert model_sum.tolist() == [-3.0, -15.0]
    assert oracle_sum.tolist() == [-4.0, -16.5]
    assert count.tolist() == [2.0, 3.0]


def test_scores_that_do_not_belong_together_are_refused() -> None:
    rows = [[-1.0, -2.0], [-3.0, -4.0]]
    with pytest.raises(InputError, match="different sentences or frames"):
        pair(scores(rows), scores(rows[:1]))
    with pytest.raises(InputError, match="different sentences or frames"):
        pair(scores(rows), scores(rows, ScoringFrame(eos=False)))
    with pytest.raises(InputError, match="count different positions"):
        pair(scores(rows), scores([[-1.0, -2.0, -3.0], [-3.0, -4.0]]))
    skip = ScoringFrame(unk="skip")
    seen = [np.array(r) for r in rows]
    knows, knows_not = (assemble_scores(seen, [np.array([u]), np.array([False])], skip) for u in (False, True))
    with pytest.raises(InputError, match="give the oracle the model's vocabulary"):
        pair(knows, knows_not)


def test_nothing_left_to_compare_is_refused_with_its_reason() -> None:
    impossible, possible = scores([[-1.0, -math.inf]]), scores([[-1.0, -2.0]])
    with pytest.raises(NothingToCompareError, match=r"the oracle cannot make 0 and the model cannot make 1$") as caught:
        pair(impossible, possible)
    assert (caught.value.impossible_model, caught.value.impossible_oracle) == (1, 0)
    with pytest.raises(NothingToCompareError, match=r"the oracle cannot make 1 and the model cannot make 0$") as caught:
        pair(possible, impossible)
    assert (caught.value.impossible_model, caught.value.impossible_oracle) == (0, 1)
    with pytest.raises(InputError, match=r"the grammar lacks the word 'unicorn'$"):
        pair(possible, impossible, ["unicorn"])
    with pytest.raises(InputError, match=r"the grammar lacks 6 words: 'a', 'b', 'c', 'd', 'e', ...$"):
        pair(possible, impossible, list("abcdef"))
    with pytest.raises(InputError, match=r"and the others have no position that counts$"):
        pair(*[scores([[-1.0, -2.0]] * 2, preset_frame("paper", "causal"))] * 2)
    with pytest.raises(InputError, match="of 0 sentences"):
        paired([], [])


def test_both_sides_are_counted_where_sentences_are_left_out() -> None:
    dead = [-1.0, -math.inf]
    found = paired([dead, [-1.0, -2.0], [-1.0, -2.0], dead], [dead, [-1.0, -2.0], dead, [-1.0, -2.0]])
    assert found.impossible_model.tolist() == [0, 3]
    assert found.impossible_oracle.tolist() == [0, 2]
    assert found.excluded.tolist() == [0, 2, 3]


def test_token_scores_never_hold_an_infinity() -> None:
    at = np.zeros(1, dtype=np.int32)
    for bad in (-math.inf, math.nan):
        with pytest.raises(ValueError, match="not finite"):
            TokenScores(np.array([bad]), at, at, at[:0], 1, FRAME)
    with pytest.raises(ValueError, match="one entry per scored position"):
        TokenScores(np.array([-1.0, -2.0]), at, at, at[:0], 1, FRAME)


# -- scores and signatures --------------------------------------------------------------------------


def test_a_score_carries_its_signature_and_no_nan() -> None:
    score = Score("XENT", 2.314, signature({"eos": "in", "sentences": 5}), 2.2, 2.4)
    assert str(score).startswith("XENT|eos:in|sentences:5|v:")
    assert str(score).endswith(" = 2.3140 [2.2000, 2.4000]")
    assert score.as_record()["value"] == 2.314
    for bad in (math.nan, math.inf):
        with pytest.raises(ValueError, match="is no finite number"):
            Score("XENT", bad, "")


def test_the_digest_of_sentences_sees_words_order_and_bounds() -> None:
    base = [["a", "b"], ["c"]]
    others = [[["a", "b"]], [["c"], ["a", "b"]], [["a"], ["b", "c"]], [["a", "b"], ["d"]], [["a", "b", "c"]]]
    assert digest_sentences(base) == digest_sentences([list(s) for s in base])
    assert len({digest_sentences(x) for x in [base, *others]}) == 6
