"""The truth as a language model."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from random_grammars import cases, length_ranges, small_pcfgs
from reference_inference import all_strings, rules_of

from truesource.evaluation.core.oracle import Oracle
from truesource.generator.language_model import ScoringFrame, preset_frame
from truesource.generator.objectives import Objective
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.errors import InputError

TOY = PCFG.from_text("S -> S S 0.25 | A S 0.2 | a 0.3 | b 0.25\nA -> A A 0.2 | S A 0.1 | a 0.4 | c 0.3")
EVERY = [list(s) for m in (1, 2, 3) for s in itertools.product("abc", repeat=m)]
DEFAULT = ScoringFrame()


# -- what a frame counts ----------------------------------------------------------------------------

FRAME_CASES = [
    (ScoringFrame(), "causal", [0, 1, 2, 3]),
    (ScoringFrame(eos=False), "causal", [0, 1, 2]),
    (ScoringFrame(first=False), "causal", [1, 2, 3]),
    (ScoringFrame(unk="skip"), "causal", [0, 2, 3]),
    (preset_frame("paper", "causal"), "causal", [2]),
    (ScoringFrame(), "masked", [0, 1, 2]),
    (ScoringFrame(eos=False), "masked", [0, 1, 2]),
    (ScoringFrame(first=False), "masked", [1, 2]),
    (ScoringFrame(unk="skip"), "masked", [0, 2]),
    (preset_frame("paper", "masked"), "masked", [0, 2]),
]


@pytest.mark.parametrize(("frame", "objective", "positions"), FRAME_CASES)
def test_a_frame_selects_positions_and_changes_no_score(
    frame: ScoringFrame, objective: Objective, positions: list[int]
) -> None:
    """In 'a c b' with c outside the vocabulary."""
    oracle = Oracle(TOY, objective, vocabulary=["a", "b"])
    found = oracle.score([["a", "c", "b"], ["a", "c", "b"]], frame)
    assert found.position.tolist() == positions * 2
    assert found.sentence.tolist() == [0] * len(positions) + [1] * len(positions)
    assert found.frame == frame
    everything = oracle.score([["a", "c", "b"]], ScoringFrame())
    assert found.log_prob.tolist() == everything.log_prob[positions].tolist() * 2


def test_a_sentence_of_one_token_may_have_no_position_in_the_frame() -> None:
    found = Oracle(TOY).score([["a"], ["a", "b"]], preset_frame("paper", "causal"))
    assert found.sentence.tolist() == [1]
    assert found.impossible.tolist() == []
    assert found.n_sentences == 2


# -- scores -----------------------------------------------------------------------------------------


@pytest.mark.long
@given(small_pcfgs(), length_ranges(4), st.none() | st.sets(st.sampled_from("abc")), st.booleans())
def test_causal_scores_sum_to_the_probability_of_the_collapsed_string_in_the_range(
    pcfg: PCFG, lengths: LengthRange, vocabulary: set[str] | None, free: bool
) -> None:
    strings = all_strings(rules_of(pcfg), lengths.high)[pcfg.symbols[pcfg.start]]
    total: dict[tuple[str, ...], float] = {}
    for s, p in ((s, p) for m in range(1, lengths.high + 1) for s, p in strings[m].items()):
        read = s if vocabulary is None else tuple(w if w in vocabulary else "<unk>" for w in s)
        total[read] = total.get(read, 0.0) + p
    z = 1.0 if free else math.fsum(p for s, p in total.items() if len(s) in lengths)
    assume(z > 0.0)
    oracle = Oracle(pcfg, lengths=None if free else lengths, vocabulary=vocabulary)
    asked = [list(s) for m in range(1, lengths.high + 1) for s in strings[m]]
    assume(asked)
    found = oracle.score(asked, DEFAULT)
    sums = np.bincount(found.sentence, found.log_prob, minlength=len(asked))
    for i, sentence in enumerate(asked):
        if not free and len(sentence) not in lengths:
            assert i in found.impossible
        else:
            assert math.exp(sums[i]) == pytest.approx(total[tuple(oracle.read(sentence))] / z, rel=1e-10)


@pytest.mark.long
@given(cases(most=3), st.sets(st.sampled_from("abc")))
def test_scores_are_those_of_the_next_token_distribution(
    case: tuple[PCFG, list[list[str]]], vocabulary: set[str]
) -> None:
    pcfg, batch = case
    oracle = Oracle(pcfg, vocabulary=vocabulary)
    found = oracle.score(batch, DEFAULT)
    for i, sentence in enumerate(batch):
        if i in found.impossible:
            assert pcfg.collapse(vocabulary).log_prob(oracle.read(sentence)) == -math.inf
            continue
        scores = found.log_prob[found.sentence == i]
        for k, score in enumerate(scores):
            following = oracle.next_token(sentence[:k])
            if k == len(sentence):
                assert math.exp(score) == pytest.approx(following.stop, rel=1e-10)
            else:
                at = following.words.index(oracle.read(sentence)[k])
                assert math.exp(score) == pytest.approx(following.probability[at], rel=1e-10)


@pytest.mark.long
@given(cases(most=4), length_ranges(5))
def test_masked_scores_do_not_depend_on_the_length_condition(
    case: tuple[PCFG, list[list[str]]], lengths: LengthRange
) -> None:
    pcfg, batch = case
    free = Oracle(pcfg, "masked").score(batch, DEFAULT)
    conditioned = Oracle(pcfg, "masked", lengths=lengths).score(batch, DEFAULT)
    assert free.log_prob.tolist() == conditioned.log_prob.tolist()


def test_the_next_token_is_given_the_length_condition_too() -> None:
    oracle = Oracle(TOY, lengths=LengthRange(2, 2))
    assert oracle.next_token(["a"]).stop == 0.0
    assert oracle.next_token(["a", "b"]).stop == pytest.approx(1.0, rel=1e-12)
    assert Oracle(TOY).next_token(["a"]).stop > 0.0


def test_conditions_are_named() -> None:
    assert Oracle(TOY).condition == "none"
    assert Oracle(TOY, lengths=LengthRange(2, 5)).condition == "2..5"
    assert Oracle(TOY, "masked", lengths=LengthRange(2, 5)).condition == "length"


# -- impossible sentences ---------------------------------------------------------------------------


@pytest.mark.parametrize("objective", ["causal", "masked"])
def test_impossible_sentences_are_listed_and_have_no_rows(objective: Objective) -> None:
    batch = [["a"], ["never-seen"], ["b", "a"], ["a", "never-seen", "b"], ["c"]]
    found = Oracle(TOY, objective).score(batch, DEFAULT)
    assert found.impossible.tolist() == [1, 3, 4]  # no sentence is 'c' alone
    assert set(found.sentence.tolist()) == {0, 2}
    assert found.n_sentences == 5
    assert np.isfinite(found.log_prob).all()


def test_lengths_outside_the_range_are_impossible() -> None:
    found = Oracle(TOY, lengths=LengthRange(2, 3)).score([["a"] * m for m in (1, 2, 3, 4)], DEFAULT)
    assert found.impossible.tolist() == [0, 3]


def test_no_sentences_and_only_impossible_ones_give_no_rows() -> None:
    for batch in ([], [["never-seen"]]):
        found = Oracle(TOY).score(batch, DEFAULT)
        assert found.log_prob.shape == found.sentence.shape == found.position.shape == (0,)
        assert found.n_sentences == len(batch)


def test_a_sentence_without_tokens_is_refused() -> None:
    with pytest.raises(InputError, match="sentence 1 has no tokens"):
        Oracle(TOY).score([[]], DEFAULT)


# -- vocabulary -------------------------------------------------------------------------------------


def test_words_outside_the_vocabulary_read_unknown_everywhere() -> None:
    oracle = Oracle(TOY, vocabulary=["a", "elsewhere"])
    assert oracle.vocabulary == ("a",)
    assert oracle.read(["a", "b", "c", "never-seen"]) == ["a", "<unk>", "<unk>", "<unk>"]
    assert set(oracle.language.vocabulary) == {"a", "<unk>"}
    one, other = (oracle.score([s], DEFAULT).log_prob for s in (["a", "b", "a"], ["a", "c", "a"]))
    assert one.tolist() == other.tolist()
    following = oracle.next_token(["b", "c"])
    assert following.probability.sum() + following.stop == pytest.approx(1.0, rel=1e-12)


def test_without_a_vocabulary_every_word_is_its_own() -> None:
    oracle = Oracle(TOY)
    assert oracle.language is TOY
    assert oracle.vocabulary is None
    assert oracle.read(["c", "never-seen"]) == ["c", "never-seen"]


# -- samples ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lengths", "vocabulary"), [(None, None), (LengthRange(2, 3), None), (LengthRange(1, 3), ["a"])]
)
def test_samples_follow_the_distribution_that_is_scored(
    lengths: LengthRange | None, vocabulary: list[str] | None
) -> None:
    """Chi-square over the strings of up to three words and all the rest, at a fixed seed."""
    from scipy.stats import chisquare

    oracle = Oracle(TOY, lengths=lengths, vocabulary=vocabulary)
    n = 4000
    counts = Counter(tuple(s) for s in oracle.sample(n, seed=11))
    assert oracle.sample(5, seed=11) == oracle.sample(5, seed=11)
    language = oracle.language
    strings = [s for m in (1, 2, 3) for s in itertools.product(language.vocabulary, repeat=m)]
    wanted = n * np.exp(language.exact.string_log_probs(strings, lengths))
    observed = np.array([counts.pop(s, 0) for s in strings])
    common = wanted >= 5
    rest = n - wanted[common].sum()
    found, expect = list(observed[common]), list(wanted[common])
    if rest > 1e-6 * n:
        found.append(n - observed[common].sum())
        expect.append(rest)
    else:
        assert not counts
    assert chisquare(found, expect).pvalue > 1e-3
    if lengths is not None:
        assert not counts


@pytest.mark.parametrize("objective", ["causal", "masked"])
def test_full_contexts_skip_unknown_targets_and_keep_them_as_context(objective: Objective) -> None:
    """The published oracle: 'b' and 'c' are no targets, but what stands beside them is scored given the word itself."""
    frame, made = ScoringFrame(unk="skip"), [s for s in EVERY if TOY.log_prob(s) > -math.inf]
    published = Oracle(TOY, objective, vocabulary=["a"], collapse=False).score(made, frame)
    whole = Oracle(TOY, objective).score(made, ScoringFrame())
    places = zip(whole.sentence, whole.position, strict=True)
    known = [position == len(made[s]) or made[s][position] == "a" for s, position in places]
    np.testing.assert_array_equal(published.log_prob, whole.log_prob[known])
    collapsed = Oracle(TOY, objective, vocabulary=["a"]).score(made, frame)
    assert not np.allclose(collapsed.log_prob, published.log_prob)
