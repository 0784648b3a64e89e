"""Random automata: the forward algorithm, determinism, lengths, rank and topology."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare, kstest, norm

from truesource.generator.sampler import Sampler
from truesource.grammar.languages.pfsa import PfsaSettings, automaton
from truesource.grammar.pcfg import language
from truesource.grammar.support.arrays import random_state
from truesource.grammar.support.errors import InputError

TOPOLOGY = st.sampled_from(["random", "ring", "banded"])


@st.composite
def chosen(draw: st.DrawFn) -> PfsaSettings:
    states, vocabulary = draw(st.integers(1, 8)), draw(st.integers(1, 6))
    topology = draw(TOPOLOGY)
    return PfsaSettings(
        states=states,
        vocabulary=vocabulary,
        transitions=draw(st.none() | st.integers(1, vocabulary)),
        topology=topology,
        width=None if topology == "random" else draw(st.none() | st.integers(1, 9)),
        rank=draw(st.none() | st.integers(1, min(states, vocabulary))),
        temperature=draw(st.floats(0.5, 5.0)),
        mean_length=draw(st.floats(1.5, 9.0)),
        seed=draw(st.integers(0, 2**32 - 1)),
    )


@pytest.mark.long
@given(chosen())
@settings(max_examples=25, deadline=None)
def test_string_probabilities_are_those_of_the_forward_algorithm(given: PfsaSettings) -> None:
    """The automaton is deterministic, so that the forward algorithm is a walk."""
    model, end = automaton(given), 1.0 / given.mean_length
    moves = {(q, w): (r, p) for q, w, r, p in zip(model.source, model.word, model.target, model.weight, strict=True)}
    assert len(moves) == len(model.source) == given.states * given.outgoing
    grammar = language("pfsa", **given.model_dump())
    assert grammar.exact.reached.all()
    assert {name for name in grammar.symbols if name.startswith("q")} == set(model.states), "no state is lost"
    assert grammar.exact.mean_length == pytest.approx(given.mean_length, rel=1e-10)
    rng = np.random.default_rng(5)
    strings, expected = [], []
    for _ in range(40):
        state, p, string = 0, 1.0 / (1.0 - end), []
        for _ in range(rng.integers(1, 9)):
            word = int(rng.integers(given.vocabulary))
            state, step = moves.get((state, word), (0, 0.0))
            p *= step
            string.append(model.words[word])
        strings.append(string)
        expected.append(p * end)
    for score, p in zip(grammar.exact.string_log_probs(strings), expected, strict=True):
        assert math.exp(score) == pytest.approx(p, rel=1e-10, abs=0.0)


def test_sampled_strings_are_those_of_a_walk() -> None:
    """First words and lengths of a sample against their exact probabilities."""
    grammar = language("pfsa", states=5, vocabulary=4, transitions=3, mean_length=4.0)
    model = automaton(PfsaSettings(states=5, vocabulary=4, transitions=3, mean_length=4.0))
    sampler = Sampler(grammar, None)
    sentences = list(sampler.sentences(sampler.draw(4000, random_state(3, 4))))
    first = np.flatnonzero(model.source == 0)
    counts = [sum(s[0] == model.words[model.word[t]] for s in sentences) for t in first]
    assert chisquare(counts, 4000 * model.weight[first] / model.weight[first].sum()).pvalue > 1e-3
    lengths = np.bincount(np.minimum([len(s) for s in sentences], 12), minlength=13)[1:]
    geometric = 0.25 * 0.75 ** np.arange(12)
    geometric[-1] = 0.75**11
    assert chisquare(lengths, 4000 * geometric).pvalue > 1e-3


@pytest.mark.parametrize("rank", [1, 3, None])
def test_the_matrix_of_log_probabilities_has_the_rank_that_was_asked_for(rank: int | None) -> None:
    """But for the normaliser of each state, which a row's mean takes away."""
    model = automaton(PfsaSettings(states=12, vocabulary=10, rank=rank, temperature=2.0))
    table = np.zeros((12, 10))
    table[model.source, model.word] = np.log(model.weight)
    table -= table.mean(axis=1, keepdims=True)
    values = np.linalg.svd(table, compute_uv=False)
    expected = 9 if rank is None else rank  # rows of 10 that sum to 0
    assert values[expected - 1] > 1e-3
    assert (values[expected:] < 1e-12).all()


def test_logits_are_standard_normal_over_the_temperature() -> None:
    model = automaton(PfsaSettings(states=400, vocabulary=50, temperature=0.5))
    logits = 0.5 * np.log(model.weight).reshape(400, 50)
    difference = (logits[:, 0] - logits[:, 1]) / math.sqrt(2.0)
    assert kstest(difference, norm.cdf).pvalue > 1e-3


@pytest.mark.parametrize(("topology", "width"), [("random", None), ("ring", None), ("ring", 3), ("banded", 2)])
def test_transitions_lead_where_the_topology_allows(topology: str, width: int | None) -> None:
    n, d = 40, 200
    given = PfsaSettings(states=n, vocabulary=d, topology=topology, width=width)  # type: ignore[arg-type]
    target = automaton(given).target.reshape(n, d)
    assert (target[:-1, 0] == np.arange(1, n)).all()
    reach = n if topology == "random" else (width or 1)
    for q in range(n):
        near = range(q - reach, q + reach + 1)
        allowed = {r % n for r in near} if topology == "ring" else {r for r in near if 0 <= r < n}
        counts = np.bincount(target[q, 1:], minlength=n)
        assert set(np.flatnonzero(counts)) <= allowed
        assert chisquare(counts[sorted(allowed)]).pvalue > 1e-6


@pytest.mark.parametrize(
    ("reference", "words"),
    [
        ("pfsa:transitions=17", "transitions=17 is more than vocabulary=16"),
        ("pfsa:states=5,rank=6", "rank=6 is more than the smaller"),
        ("pfsa:width=2", "width applies only to topology=ring"),
    ],
)
def test_settings_that_do_not_go_together_are_one_sentence(reference: str, words: str) -> None:
    with pytest.raises(InputError, match=words) as caught:
        language(reference)
    assert caught.value.code == "bad-setting"


def test_seeds_differ_and_repeat() -> None:
    assert language("pfsa:seed=1").digest == language("pfsa").digest != language("pfsa:seed=2").digest
