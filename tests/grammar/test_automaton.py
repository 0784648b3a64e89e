"""Grammars of automata against the forward algorithm."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from truesource.grammar.building import Automaton
from truesource.grammar.pcfg import PCFG

pytestmark = pytest.mark.long

WORDS = ("a", "b")
WEIGHTS = st.floats(0.01, 3.0)


@st.composite
def automata(draw: st.DrawFn) -> Automaton:
    """Automata of up to 4 states, not all of them reached, some of which never end or always do."""
    n = draw(st.integers(1, 4))
    state = st.integers(0, n - 1)
    moves = draw(st.dictionaries(st.tuples(state, st.integers(0, 1)), state, max_size=8))
    moves[0, 1] = n - 1
    kept = sorted((q, word, r) for (q, word), r in moves.items())
    source, word, target = np.array(kept).T
    ends = [draw(WEIGHTS | st.just(0.0)) for _ in range(n - 1)] + [draw(WEIGHTS)]
    return Automaton(
        states=[f"q{q}" for q in range(n)],
        words=WORDS,
        source=source,
        word=word,
        target=target,
        weight=np.array([draw(WEIGHTS) for _ in kept]),
        end=np.array(ends),
    )


def forward(automaton: Automaton, string: Sequence[str]) -> float:
    """P(string) of an automaton, the empty string included."""
    n = len(automaton.states)
    total = automaton.end.copy()
    for q, w in zip(automaton.source, automaton.weight, strict=True):
        total[q] += w
    at = [1.0] + [0.0] * (n - 1)
    for token in string:
        after = [0.0] * n
        for q, word, r, weight in zip(
            automaton.source, automaton.word, automaton.target, automaton.weight, strict=True
        ):
            if automaton.words[word] == token:
                after[r] += at[q] * weight / total[q]
        at = after
    return float(sum(at[q] * automaton.end[q] / total[q] for q in range(n) if at[q] > 0.0))


def ends_everywhere(automaton: Automaton) -> bool:
    """Whether every state that is reached can reach an end."""
    steps = set(zip(automaton.source.tolist(), automaton.target.tolist(), strict=True))
    reached, able = {0}, set(np.flatnonzero(automaton.end).tolist())
    for _ in automaton.states:
        reached |= {r for q, r in steps if q in reached}
        able |= {q for q, r in steps if r in able}
    return reached <= able


@given(automata().filter(ends_everywhere))
@settings(max_examples=60, deadline=None)
def test_string_probabilities_are_those_of_the_forward_algorithm(automaton: Automaton) -> None:
    grammar = PCFG.of(automaton.grammar())
    strings = [s for n in range(1, 6) for s in itertools.product(WORDS, repeat=n)]
    strings = [s for s in strings if set(s) <= set(grammar.vocabulary)]
    not_empty = 1.0 - forward(automaton, ())
    for string, score in zip(strings, grammar.exact.string_log_probs(strings), strict=True):
        expected = forward(automaton, string) / not_empty
        assert math.isclose(math.exp(score), expected, rel_tol=1e-10), string
    assert math.isclose(grammar.exact.total_mass, 1.0, abs_tol=1e-9)
    assert grammar.exact.reached.all()
    assert not len(grammar.unary)
