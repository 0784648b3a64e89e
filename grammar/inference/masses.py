"""Total masses: the least solution of the quadratic equations of a grammar's symbols, probabilities or any weights."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components

from truesource.grammar.inference.rules import lexical_rules, solve
from truesource.grammar.rules import GrammarRules
from truesource.grammar.support.arrays import FloatArray, Int32Array, IntArray
from truesource.grammar.support.errors import InputError

STEPS = (
    200  #: of Newton's method, most for one level; a solution that is finite takes about 10, a critical one about 50
)
TOLERANCE = 1e-14  #: of the last step, relative to each mass
ROUNDING = 1e-9  #: relative size of steps that may be rounding alone, near a critical solution


def total_mass(pcfg: GrammarRules) -> FloatArray:
    """``t_A = P(A derives some finite string)``, (S,)."""
    rules = lexical_rules(pcfg)
    lexical = np.bincount(rules.parent, rules.prob, len(pcfg.symbols)).astype(np.float64)
    weights = np.exp(pcfg.binary_logp), np.exp(pcfg.unary_logp)
    result = least_solution(lexical, pcfg.binary, weights[0], pcfg.unary, weights[1], ceiling=1.0)
    assert result is not None, "probabilities have a solution up to 1"
    return result


def least_solution(
    lexical: FloatArray,
    binary: Int32Array,
    binary_weight: FloatArray,
    unary: Int32Array,
    unary_weight: FloatArray,
    *,
    ceiling: float = np.inf,
) -> FloatArray | None:
    """Least ``t >= 0`` with ``t = lexical + Un t + Bi(t, t)``, (S,); None where it is infinite.

    Newton's method from zero, which rises monotonically to the least fixed point (Etessami & Yannakakis
    2009), one strongly connected component after the other so that a critical one does not spoil the rest. Components
    that do not need each other are solved together.

    Args:
        lexical: (S,) total weight of the lexical rules of each symbol.
        binary: (R, 3) parent, left child, right child.
        binary_weight: (R,) 0 or more.
        unary: (Q, 2) parent, child.
        unary_weight: (Q,) 0 or more.
        ceiling: a bound of the solution that is known; 1 for probabilities.
    """
    level, own = _levels(len(lexical), binary, unary)
    mass = np.zeros(len(lexical))
    of_binary, of_unary = (_grouped(level[rules[:, 0]], int(level.max()) + 1) for rules in (binary, unary))
    for k, states in enumerate(_grouped(level, int(level.max()) + 1)):
        rb, ru = of_binary[k], of_unary[k]
        part = _Level(states, lexical, binary[rb], binary_weight[rb], unary[ru], unary_weight[ru])
        if not own[states].any():  # their values depend on other levels alone
            mass[states] = np.minimum(part.value(mass), ceiling)
        elif not part.solve(mass, ceiling):
            return None
        if not np.isfinite(mass[states]).all():
            return None
    return mass


def _levels(n: int, binary: Int32Array, unary: Int32Array) -> tuple[IntArray, IntArray]:
    """Level of each symbol, above all symbols below it outside its component, and whether it is below itself, (S,)."""
    above = np.concatenate([binary[:, 0], binary[:, 0], unary[:, 0]])
    below = np.concatenate([binary[:, 1], binary[:, 2], unary[:, 1]])
    graph = csr_matrix((np.ones(len(above), dtype=np.int8), (above, below)), shape=(n, n))
    n_components, component = connected_components(graph, connection="strong")
    inner = component[above] == component[below]
    edges = np.unique(np.stack([component[above[~inner]], component[below[~inner]]]), axis=1)
    level, before = np.zeros(n_components, dtype=np.int64), None
    while before is None or not np.array_equal(level, before):
        before = level.copy()
        np.maximum.at(level, edges[0], before[edges[1]] + 1)
    return level[component], np.bincount(above[inner], minlength=n)


def _grouped(keys: IntArray, n: int) -> list[IntArray]:
    """Places of each key from 0 to n - 1."""
    order = np.argsort(keys, kind="stable")
    return np.split(order, np.searchsorted(keys[order], np.arange(1, n)))


class _Level:
    """The equations of some symbols, which no other symbols of their level need."""

    def __init__(
        self,
        states: IntArray,
        lexical: FloatArray,
        binary: Int32Array,
        binary_weight: FloatArray,
        unary: Int32Array,
        unary_weight: FloatArray,
    ) -> None:
        self.states, self.lexical = states, lexical[states]
        self.place = np.full(len(lexical), -1, dtype=np.int64)
        self.place[states] = np.arange(len(states))
        self.binary, self.binary_weight = (self.place[binary[:, 0]], *binary[:, 1:].T), binary_weight
        self.unary, self.unary_weight = (self.place[unary[:, 0]], unary[:, 1]), unary_weight

    def value(self, mass: FloatArray) -> FloatArray:
        """The right-hand sides, one a symbol."""
        (a, b, c), (above, below) = self.binary, self.unary
        n = len(self.states)
        products = np.bincount(a, self.binary_weight * mass[b] * mass[c], n)
        return np.asarray(self.lexical + products + np.bincount(above, self.unary_weight * mass[below], n))

    def jacobian(self, mass: FloatArray) -> csr_matrix[np.float64]:
        """Derivatives of `value` in the masses of the level."""
        (a, b, c), (above, below) = self.binary, self.unary
        rows = np.concatenate([a, a, above])
        columns = self.place[np.concatenate([b, c, below])]
        data = np.concatenate([self.binary_weight * mass[c], self.binary_weight * mass[b], self.unary_weight])
        here = columns >= 0
        return csr_matrix((data[here], (rows[here], columns[here])), shape=(len(self.states),) * 2)

    def solve(self, mass: FloatArray, ceiling: float) -> bool:
        """Newton's steps, in place; False where there is no finite solution."""
        moved = np.inf
        for _ in range(STEPS):
            old = mass[self.states]
            step = self._step(mass, self.value(mass) - old)
            if ceiling == np.inf and not (step >= -ROUNDING * old).all():
                return False  # the linear equations have no solution from 0 on, so these have none
            new = np.minimum(old + np.maximum(step, 0.0), ceiling)
            mass[self.states] = new
            last, moved = moved, float(np.max((new - old) / np.where(new > 0.0, new, 1.0)))
            if moved <= TOLERANCE or ROUNDING >= moved >= last:
                return True
        return ceiling < np.inf

    def _step(self, mass: FloatArray, gap: FloatArray) -> FloatArray:
        try:
            return solve(self.jacobian(mass), gap)
        except InputError:  # singular, at a critical solution
            return gap
