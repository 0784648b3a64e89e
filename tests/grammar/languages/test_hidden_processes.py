"""Mess3, zero-one-random and random-random-xor against products of their matrices, beliefs and known entropy rates."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from truesource.grammar.inference.expected import derivational_entropy
from truesource.grammar.languages import mess3, rrxor, z1r
from truesource.grammar.pcfg import PCFG, language
from truesource.grammar.support.arrays import FloatArray

Process = tuple[PCFG, dict[str, FloatArray], tuple[str, ...], FloatArray]
LENGTH = st.floats(1.5, 50.0)
THIRD = np.full(3, 1 / 3)


def of_mess3(x: float = 0.05, alpha: float = 0.85, mean_length: float = 20.0) -> Process:
    chosen = mess3.Mess3Settings(x=x, alpha=alpha, mean_length=mean_length)
    return language("mess3", **chosen.model_dump()), mess3.transitions(chosen), mess3.STATES, THIRD


def of_z1r(mean_length: float = 20.0) -> Process:
    return language("z1r", mean_length=mean_length), z1r.transitions(), z1r.STATES, THIRD


def of_rrxor(mean_length: float = 20.0) -> Process:
    return language("rrxor", mean_length=mean_length), rrxor.transitions(), rrxor.STATES, np.array(rrxor.INITIAL)


PROCESSES = st.one_of(
    st.builds(of_mess3, st.floats(0.0, 0.5), st.floats(0.0, 1.0), LENGTH),
    st.builds(of_z1r, LENGTH),
    st.builds(of_rrxor, LENGTH),
)
DEFAULTS = pytest.mark.parametrize("process", [of_mess3(), of_z1r(), of_rrxor()], ids=["mess3", "z1r", "rrxor"])


@pytest.mark.long
@given(PROCESSES)
@settings(max_examples=25, deadline=None)
def test_string_probabilities_are_products_of_matrices(process: Process) -> None:
    pcfg, matrices, _, initial = process
    end = 1.0 / pcfg.exact.mean_length
    strings = [s for n in range(1, 6) for s in itertools.product(pcfg.vocabulary, repeat=n)]
    for string, score in zip(strings, pcfg.exact.string_log_probs(strings), strict=True):
        wanted = end * (1.0 - end) ** (len(string) - 1)
        row = initial
        for word in string:
            row = row @ matrices[word]
        assert math.exp(score) == pytest.approx(wanted * row.sum(), rel=1e-10, abs=1e-300)


@DEFAULTS
def test_the_stationary_distribution_is_the_first(process: Process) -> None:
    _, matrices, _, initial = process
    whole = sum(matrices.values())
    np.testing.assert_allclose(np.asarray(whole).sum(axis=1), 1.0, atol=1e-15)
    np.testing.assert_allclose(initial @ whole, initial, atol=1e-15)


@pytest.mark.long
@given(PROCESSES, st.data())
@settings(max_examples=40, deadline=None)
def test_beliefs_follow_their_recursion(process: Process, data: st.DataObject) -> None:
    pcfg, matrices, states, initial = process
    assert pcfg.symbols[: len(states) + 1] == ("S", *states)
    belief, prefix = initial, list[str]()
    for step in range(9):
        found = pcfg.exact.next_token(prefix)
        seen = found.states[[pcfg.symbols.index(state) for state in states]] / (1.0 - found.stop)
        np.testing.assert_allclose(seen, belief, rtol=0.0, atol=1e-12)
        assert found.stop == pytest.approx(0.0 if step == 0 else 1.0 / pcfg.exact.mean_length, rel=1e-10)
        possible = [word for word in pcfg.vocabulary if (belief @ matrices[word]).sum() > 1e-9]
        prefix.append(data.draw(st.sampled_from(possible)))
        belief = belief @ matrices[prefix[-1]]
        belief = belief / belief.sum()


@DEFAULTS
def test_entropy_of_derivations_is_that_of_states_words_and_ends(process: Process) -> None:
    """One first state, then for each word its transition and whether the string ends."""
    pcfg, matrices, _, initial = process
    end = 1.0 / 20.0

    def entropy(p: FloatArray) -> float:
        return -float(p[p > 0.0] @ np.log(p[p > 0.0]))

    ends = entropy(np.array([end, 1.0 - end]))
    moves = [entropy(np.concatenate([matrix[i] for matrix in matrices.values()])) for i in range(len(initial))]
    onto = [entropy(np.array([matrix[i].sum() for matrix in matrices.values()])) for i in range(len(initial))]
    # the state after the last word is no part of a derivation
    wanted = entropy(initial) + 20.0 * ends + 19.0 * float(initial @ moves) + float(initial @ onto)
    assert derivational_entropy(pcfg) == pytest.approx(wanted, rel=1e-10)


def losses(matrices: dict[str, FloatArray], initial: FloatArray, words: int) -> FloatArray:
    """H(word n | those before), nats, n = 1..``words``, by enumeration of the strings of the endless process."""
    blocks, rows = [0.0], initial[None]
    for _ in range(words):
        rows = np.concatenate([rows @ matrix for matrix in matrices.values()])
        p = rows.sum(axis=1)
        rows, p = rows[p > 0.0], p[p > 0.0]
        blocks.append(-float(p @ np.log(p)))
    return np.diff(blocks)


@pytest.mark.parametrize(
    ("process", "words", "rate", "off"),
    [
        (of_mess3(), 11, 0.7934576, 1e-6),
        (of_z1r(), 12, math.log(2.0) / 3, 1e-2),  # one random bit in three words
        (of_rrxor(), 14, 2.0 * math.log(2.0) / 3, 4e-2),  # two in three; the phase is found slowly
    ],
    ids=["mess3", "z1r", "rrxor"],
)
def test_entropy_rates_are_the_known_ones(process: Process, words: int, rate: float, off: float) -> None:
    """The rate is at most the loss after n words, and at least that of who knows the first state as well."""
    _, matrices, _, initial = process
    above = losses(matrices, initial, words)
    below = sum(p * losses(matrices, state, words) for p, state in zip(initial, np.eye(len(initial)), strict=True))
    assert (np.diff(above) < 1e-12).all(), "more words never make the next one less certain"
    assert above[-1] == pytest.approx(rate, abs=off)
    assert below[-1] == pytest.approx(rate, abs=off)
    assert below[-1] <= above[-1] + 1e-12


@pytest.mark.parametrize(("process", "number"), [(of_z1r(), 7), (of_rrxor(), 36)], ids=["z1r", "rrxor"])
def test_there_are_as_many_beliefs_as_published(process: Process, number: int) -> None:
    _, matrices, states, initial = process
    exact = [[[Fraction(float(p)) for p in row] for row in matrix] for matrix in matrices.values()]
    first = tuple(Fraction(float(p)).limit_denominator(6) for p in initial)
    waiting, found = [first], {first}
    for belief in waiting:  # grows while it is read
        for matrix in exact:
            joint = [sum(b * row[j] for b, row in zip(belief, matrix, strict=True)) for j in range(len(states))]
            if (total := sum(joint)) and (after := tuple(Fraction(p, total) for p in joint)) not in found:
                found.add(after)
                waiting.append(after)
    assert len(found) == number
