"""Broadcast on trees: sums over all states of a tree, moments of the sum of spins, colourings that are proper."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from truesource.grammar.inference.windows import Windows
from truesource.grammar.pcfg import PCFG, language
from truesource.grammar.support.arrays import FloatArray
from truesource.grammar.support.errors import InputError


def leaves(states: int, depth: int, children: int, flip: float) -> dict[tuple[str, ...], float]:
    """Every string of leaves with its probability, by summing over the states of all nodes level by level."""
    edge = np.where(np.eye(states, dtype=bool), 1.0 - flip, flip / (states - 1))
    level = {(state,): 1.0 / states for state in range(states)}
    for _ in range(depth):
        below: dict[tuple[int, ...], float] = {}
        for nodes, p in level.items():
            for new in itertools.product(range(states), repeat=children * len(nodes)):
                q = p * math.prod(edge[nodes[i // children], state] for i, state in enumerate(new))
                below[new] = below.get(new, 0.0) + q
        level = below
    return {tuple(str(state + 1) for state in string): p for string, p in level.items()}


@pytest.mark.parametrize(
    ("states", "depth", "children", "flip"),
    [(2, 2, 2, 0.1), (2, 2, 2, 1.0), (2, 2, 3, 0.7), (3, 2, 2, 1.0), (3, 2, 2, 0.4), (4, 1, 4, 1.0), (3, 1, 2, 0.0)],
)
def test_strings_have_the_sum_over_all_states_of_the_tree(states: int, depth: int, children: int, flip: float) -> None:
    grammar = language("broadcast", states=states, depth=depth, children=children, flip=flip)
    wanted = leaves(states, depth, children, flip)
    assert sum(wanted.values()) == pytest.approx(1.0)
    strings = [string for string, p in wanted.items() if set(string) <= set(grammar.vocabulary)]
    found = np.exp(grammar.exact.string_log_probs(strings))
    assert found == pytest.approx([wanted[string] for string in strings], rel=1e-10, abs=1e-300)
    tokens = children**depth
    assert grammar.exact.length_pmf(tokens + 1) == pytest.approx(np.eye(tokens + 2)[tokens], abs=1e-10)


def pairs(grammar: PCFG, apart: int) -> FloatArray:
    """Expected number of each pair of words in a string so many places apart, (2, 2), by windows with any words."""
    windows = Windows(grammar)
    words = np.array([[word] + [-1] * (apart - 1) for word in range(2)])
    after = windows.following(words)
    emission = grammar.exact.emission.toarray()
    table: FloatArray = (emission.T @ after.states).T * np.exp(np.asarray(after.log_scale))[:, None]
    return table


@pytest.mark.long
@given(st.integers(1, 4), st.integers(2, 3), st.floats(0.01, 0.99))
@settings(max_examples=15, deadline=None)
def test_the_variance_of_the_sum_of_spins_is_its_closed_form(depth: int, children: int, flip: float) -> None:
    """The sum over all pairs of theta^distance, of which each leaf has (c - 1) c^(j-1) at distance 2j."""
    depth = min(depth, 3 if children == 3 else 4)
    theta = 1.0 - 2.0 * flip
    n = children**depth
    wanted = 1.0 + sum((children - 1) * children ** (j - 1) * theta ** (2 * j) for j in range(1, depth + 1))
    places = range(n)
    distances = [
        2 * next(j for j in range(depth + 1) if a // children**j == b // children**j) for a in places for b in places
    ]
    assert wanted == pytest.approx(sum(theta**distance for distance in distances) / n)
    grammar = language("broadcast", depth=depth, children=children, flip=flip)
    spin = np.array([1.0 if word == "1" else -1.0 for word in grammar.vocabulary])
    found = 1.0 + 2.0 / n * sum(spin @ pairs(grammar, apart) @ spin for apart in range(1, n))
    assert found == pytest.approx(wanted, rel=1e-8)


def test_leaves_of_no_proper_colouring_are_impossible() -> None:
    grammar = language("broadcast:states=3,depth=2,children=3,flip=1")
    sibling = grammar.log_prob(tuple("123" + "111" + "111"))
    assert sibling == -math.inf, "three siblings of three colours leave none for their parent"
    cousins = tuple("122" + "233" + "311"), tuple("122" + "233" + "223")
    assert grammar.log_prob(cousins[0]) == -math.inf, "parents of three colours leave none for the root"
    assert grammar.log_prob(cousins[1]) > -math.inf
    assert grammar.log_prob(cousins[1]) == pytest.approx(math.log(1 / 3 / 2**3 / 2**9)), "all colours are forced"


def test_two_colours_make_strings_of_one_word() -> None:
    grammar = language("broadcast:flip=1,depth=3")
    assert grammar.log_prob(("1",) * 8) == pytest.approx(math.log(0.5))


def test_too_long_strings_are_refused() -> None:
    with pytest.raises(InputError, match="strings have 1,594,323 tokens") as caught:
        language("broadcast:depth=13,children=3")
    assert caught.value.code == "bad-setting"
