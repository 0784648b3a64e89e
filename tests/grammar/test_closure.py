"""Quantities of a grammar as a whole: masses, closures, spectral radius, expected counts, entropy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from random_grammars import small_pcfgs
from reference_inference import all_strings, derivations, expected, rules_of, spectral_radius, total_mass, unary_chains
from scipy.sparse import csr_matrix

from truesource.grammar.inference import nonnegative_matrices as module
from truesource.grammar.inference.expected import derivational_entropy
from truesource.grammar.inference.nonnegative_matrices import certainly_decays, closure, perron, reachable, solve
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.errors import InputError


@pytest.mark.long
@given(small_pcfgs())
def test_consistent_grammars_have_total_mass_one(pcfg: PCFG) -> None:
    np.testing.assert_allclose(pcfg.exact.mass, 1.0, rtol=1e-12)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("S -> S S 0.6 | a 0.4", 2 / 3),  # t = 0.6 t^2 + 0.4
        ("S -> S S 0.9 | a 0.1", 1 / 9),
        ("S -> S S 0.499 | a 0.501", 1.0),
        ("S -> S S 0.501 | a 0.499", 0.499 / 0.501),
        ("S -> S S 0.49999 | a 0.50001", 1.0),
        ("S -> S S 1.0", 0.0),
        ("S -> A 0.25 | a 0.75\nA -> A 1.0", 0.75),
        ("S -> T S 0.6 | a 0.4\nT -> S 0.5 | T T 0.5", None),
        ("S -> S S 0.6 | A 0.4\nA -> S A 0.3 | B 0.3 | a 0.4\nB -> B B 0.7 | b 0.3", None),
    ],
)
def test_total_mass_is_the_least_fixed_point(text: str, wanted: float | None) -> None:
    pcfg = PCFG.from_text(text)
    if wanted is None:
        mass = total_mass(rules_of(pcfg))
        np.testing.assert_allclose(pcfg.exact.mass, [mass[s] for s in pcfg.symbols], rtol=1e-9)
    else:
        assert pcfg.exact.total_mass == pytest.approx(wanted, rel=1e-10, abs=1e-300)


def test_a_critical_grammar_has_mass_one_up_to_the_precision_of_a_double_root() -> None:
    assert PCFG.from_text("S -> S S 0.5 | a 0.5").exact.total_mass == pytest.approx(1.0, abs=1e-7)


def test_a_critical_part_does_not_spoil_the_rest() -> None:
    pcfg = PCFG.from_text("S -> S S 0.3 | a 0.3 | A 0.4\nA -> A A 0.5 | a 0.5\nB -> S S 0.2 | b 0.8")
    mass = dict(zip(pcfg.symbols, pcfg.exact.mass, strict=True))
    assert mass["A"] == pytest.approx(1.0, abs=1e-7)
    assert mass["B"] == pytest.approx(1.0, abs=1e-6)


@pytest.mark.long
@given(small_pcfgs())
def test_unary_closure_is_that_of_exact_elimination(pcfg: PCFG) -> None:
    chains = unary_chains(rules_of(pcfg))
    wanted = [[chains[a, b] for b in pcfg.symbols] for a in pcfg.symbols]
    np.testing.assert_allclose(pcfg.exact.unary_closure, wanted, rtol=1e-10, atol=0.0)


@pytest.mark.long
@given(small_pcfgs())
def test_left_corner_closure_is_the_sum_of_powers(pcfg: PCFG) -> None:
    at = pcfg.symbol_ids
    step = np.zeros((len(at), len(at)))
    rules = rules_of(pcfg)
    mass = total_mass(rules)
    for a, b, p in rules.unary:
        step[at[a], at[b]] += p
    for a, b, c, p in rules.binary:
        step[at[a], at[b]] += p * mass[c]
    total = power = np.eye(len(at))
    for _ in range(3000):
        power = power @ step
        total = total + power
    np.testing.assert_allclose(pcfg.exact.left_corner_closure, total, rtol=1e-10, atol=0.0)


def test_a_closure_that_does_not_converge_is_refused() -> None:
    for matrix in ([[1.0]], [[0.0, 1.0], [1.0, 0.0]], [[0.5, 1.0], [1.0, 0.5]], [[2.0]]):
        with pytest.raises(InputError, match="does not converge"):
            closure(np.array(matrix), "unary closure")


def test_closure_entries_without_a_path_are_exactly_zero() -> None:
    """Elimination leaves rounding noise there; a chart must not take it for a rule."""
    rng = np.random.default_rng(4)
    matrix = np.tril(rng.random((40, 40)) * (rng.random((40, 40)) < 0.1))
    matrix = (matrix / np.maximum(matrix.sum(axis=1, keepdims=True), 1e-9) * 0.9)[order := rng.permutation(40)][
        :, order
    ]
    found = closure(matrix, "unary closure")
    assert ((found > 0.0) == reachable(matrix)).all()
    np.testing.assert_allclose(found @ (np.eye(40) - matrix), np.eye(40), atol=1e-12)


def test_reachable_follows_paths_and_counts_each_state_itself() -> None:
    graph = np.array([[0.0, 0.5, 0.0], [0.0, 0.0, 0.1], [0.0, 0.0, 0.0]])
    assert reachable(graph).tolist() == [[True, True, True], [False, True, True], [False, False, True]]


@pytest.mark.long
@given(small_pcfgs())
def test_spectral_radius_is_that_of_the_mean_matrix_over_reachable_symbols(pcfg: PCFG) -> None:
    rules = rules_of(pcfg)
    reached = {rules.start}
    while True:
        more = {x for a, b, c, _ in rules.binary if a in reached for x in (b, c)}
        more |= {b for a, b, _ in rules.unary if a in reached}
        if more <= reached:
            break
        reached |= more
    assert {s for s, ok in zip(pcfg.symbols, pcfg.exact.reached, strict=True) if ok} == reached
    assert pcfg.exact.spectral_radius == pytest.approx(spectral_radius(rules, sorted(reached)), rel=1e-8, abs=1e-7)


@pytest.mark.long
@given(small_pcfgs(), st.floats(0.3, 1.2))
def test_a_radius_is_below_one_where_a_vector_shows_it(pcfg: PCFG, radius: float) -> None:
    """`certainly_decays` is never wrong where it says yes, and says no only near 1 and above."""
    matrix = pcfg.exact._mean
    own = perron(matrix)[0]
    assume(own > 1e-3)
    assert certainly_decays(matrix * (radius / own)) == (radius < 1.0) or abs(radius - 1.0) < 1e-6


@pytest.mark.parametrize("n", [3, 40, 450])
def test_perron_vectors_are_eigenvectors(n: int) -> None:
    rng = np.random.default_rng(n)
    matrix = rng.random((n, n)) * (rng.random((n, n)) < 4 / n) + np.eye(n, k=1) * 0.1
    matrix[-1, 0] = 0.1  # one cycle through all states
    radius, left, right = perron(matrix)
    # a positive eigenvector belongs to the spectral radius (Perron and Frobenius)
    np.testing.assert_allclose(matrix @ right, radius * right, rtol=1e-7, atol=1e-10)
    np.testing.assert_allclose(left @ matrix, radius * left, rtol=1e-7, atol=1e-10)
    assert (left > 0).all()
    assert (right > 0).all()


@pytest.mark.parametrize(("alone", "radius"), [(0.3, 0.5), (0.7, 0.7)])
def test_perron_of_a_matrix_whose_states_are_mostly_alone(alone: float, radius: float) -> None:
    matrix = np.triu(np.full((6, 6), 0.1), 1) + np.diag([0.0, 0.1, 0.0, 0.0, alone, 0.2])
    matrix[2:4, 2:4] = [[0.0, 0.5], [0.5, 0.0]]  # the one component of two states
    found, left, right = perron(csr_matrix(matrix))
    assert found == pytest.approx(radius, abs=1e-12)
    states = [2, 3] if radius == 0.5 else [4]
    assert np.flatnonzero(left).tolist() == np.flatnonzero(right).tolist() == states


@pytest.mark.parametrize("n", [5, 450])
def test_a_grammar_without_recursion_has_spectral_radius_zero(n: int) -> None:
    lines = [f"S{i} -> S{i + 1} X 0.5 | S{i + 1} 0.5" for i in range(n)]
    pcfg = PCFG.from_text("\n".join([*lines, f"S{n} -> a 1.0", "X -> x 1.0"]))
    assert pcfg.exact.spectral_radius == 0.0
    assert pcfg.exact.mean_length == pytest.approx(1 + n / 2, rel=1e-12)


@pytest.mark.long
@given(small_pcfgs())
def test_derivational_entropy_is_that_of_iteration(pcfg: PCFG) -> None:
    rules = rules_of(pcfg)
    table = [(a, p) for a, *_, p in (*rules.binary, *rules.unary, *rules.lexical)]
    gain = {a: math.fsum(-p * math.log(p) for left, p in table if left == a) for a in rules.symbols}
    assert derivational_entropy(pcfg) == pytest.approx(expected(rules, gain), rel=1e-9, abs=1e-12)


def test_derivational_entropy_is_that_of_all_trees_of_a_finite_language() -> None:
    pcfg = PCFG.from_text("S -> A A 0.5 | A B 0.3 | B 0.2\nA -> B B 0.2 | B 0.3 | a 0.5\nB -> b 0.6 | a 0.4")
    rules = rules_of(pcfg)
    strings = [s for table in all_strings(rules, 4)["S"] for s in table]
    probabilities = [p for s in strings for _, p in derivations(rules, s)]
    assert math.fsum(probabilities) == pytest.approx(1.0, rel=1e-12)
    wanted = math.fsum(-p * math.log(p) for p in probabilities)
    assert derivational_entropy(pcfg) == pytest.approx(wanted, rel=1e-12)


def test_expected_counts_of_an_exploding_grammar_are_refused() -> None:
    with pytest.raises(InputError, match=r"spectral radius is 1\.2"):
        _ = PCFG.from_text("S -> S S 0.6 | a 0.4").exact.mean_length


def test_mean_length_near_critical() -> None:
    """E[L] = 0.501 / (1 - 2 * 0.499)."""
    exact = PCFG.from_text("S -> S S 0.499 | a 0.501").exact
    assert exact.mean_length == pytest.approx(0.501 / (1 - 0.998), rel=1e-9)
    assert exact.spectral_radius == pytest.approx(0.998, rel=1e-12)


@pytest.mark.parametrize("powers", [5000, 10])
def test_large_systems_are_solved_by_powers_or_by_elimination(powers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A random matrix against a dense solver; ten powers are too few, so that elimination takes over."""
    monkeypatch.setattr(module, "POWERS", powers)
    n, rng = 1100, np.random.default_rng(2)
    entries = rng.random(3 * n) * 0.6, (np.repeat(np.arange(n), 3), rng.integers(0, n, 3 * n))
    matrix, right = csr_matrix(entries, shape=(n, n)), rng.random(n)
    wanted = np.linalg.solve(np.eye(n) - matrix.toarray(), right)
    np.testing.assert_allclose(solve(matrix, right), wanted, rtol=1e-10)
