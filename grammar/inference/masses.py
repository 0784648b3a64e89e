"""Total masses: the least solution of the quadratic equations of a grammar's symbols, for any non-negative weights."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components

from truesource.grammar.inference.components import strong_components
from truesource.grammar.inference.nonnegative_matrices import solve
from truesource.grammar.inference.rules import lexical_rules
from truesource.grammar.rules import GrammarRules
from truesource.grammar.support.arrays import BoolArray, FloatArray, Int32Array, IntArray
from truesource.grammar.support.errors import InputError

STEPS = (
    200  #: of Newton's method, most for one level; a solution that is finite takes about 10, a critical one about 50
)
TOLERANCE = 1e-14  #: of the last step, relative to each mass
ROUNDING = 1e-9  #: relative size of steps that rounding alone may cause near a critical solution
EPSILON = float(np.finfo(np.float64).eps)
PRECISE = 1e-11  #: estimated relative error above which masses are solved by another method
REFUSED = 5e-11  #: estimated relative error above which a sum is refused
SHIFT = 1e-8  #: shift of a critical matrix away from its singularity
DEFICIT = 1e-9  #: largest deviation from one of the rules of a symbol by rounding


@dataclass(frozen=True, eq=False)
class SumConstraints:
    """Sets of unknowns whose sums are given."""

    members: csr_matrix[np.float64]  #: (G, S) 1 for the members of each set
    total: FloatArray  #: (G,) sum of each set


def total_mass(pcfg: GrammarRules) -> FloatArray:
    """Return ``t_A = P(A derives some finite string)``, (S,)."""
    rules = lexical_rules(pcfg)
    lexical = np.bincount(rules.parent, rules.prob, len(pcfg.symbols)).astype(np.float64)
    lost = 1.0 - pcfg.row_sums
    weights = np.exp(pcfg.binary_logp), np.exp(pcfg.unary_logp)
    lost = np.where(np.abs(lost) > DEFICIT, lost, 0.0)
    return least_probabilities(lexical, pcfg.binary, weights[0], pcfg.unary, weights[1], lost)


def least_probabilities(
    lexical: FloatArray,
    binary: Int32Array,
    binary_prob: FloatArray,
    unary: Int32Array,
    unary_prob: FloatArray,
    lost: FloatArray,
) -> FloatArray:
    """Return the `least_solution` of probabilities, which is at most 1, (S,).

    A critical solution is accurate to half of the digits; the equations of ``1 - t`` then give the others.

    Args:
        lexical: (S,) total probability of the lexical rules of each symbol.
        binary: (R, 3) parent, left child, right child.
        binary_prob: (R,) probabilities.
        unary: (Q, 2) parent, child.
        unary_prob: (Q,) probabilities.
        lost: (S,) probability of each symbol that is in none of these rules.
    """
    system = _System(lexical, binary, binary_prob, unary, unary_prob)
    result = system.least_solution(ceiling=1.0)
    assert result is not None, "probabilities have a solution up to 1"
    if system.error(result) <= PRECISE:
        return result
    precise = 1.0 - system.greatest_complement(lost, result > 0.0)
    return np.where(np.abs(precise - result) > PRECISE, precise, result)


def least_solution(
    lexical: FloatArray,
    binary: Int32Array,
    binary_weight: FloatArray,
    unary: Int32Array,
    unary_weight: FloatArray,
    *,
    constraints: Callable[[], SumConstraints] | None = None,
) -> FloatArray | None:
    """Return the least ``t >= 0`` with ``t = lexical + Un t + Bi(t, t)``, (S,); None if it is infinite.

    Newton's method from zero increases monotonically to the least fixed point (Etessami & Yannakakis
    2009), one strongly connected component after the other so that a critical one does not spoil the rest. Components
    that do not depend on each other are solved together.

    Args:
        lexical: (S,) total weight of the lexical rules of each symbol.
        binary: (R, 3) parent, left child, right child.
        binary_weight: (R,) 0 or more.
        unary: (Q, 2) parent, child.
        unary_weight: (Q,) 0 or more.
        constraints: returns sums of unknowns, if all recursive unknowns are probabilities. They restore digits lost to
            rounding near a critical solution.

    Raises:
        InputError: rounding decides whether the solution is finite, or its tenth digit (code ``infinite-sum``).
    """
    return _System(lexical, binary, binary_weight, unary, unary_weight).least_solution(
        constraints=constraints, refuse=True
    )


class _System:
    """The equations of all symbols, in levels; each level depends only on those before it."""

    def __init__(
        self,
        lexical: FloatArray,
        binary: Int32Array,
        binary_weight: FloatArray,
        unary: Int32Array,
        unary_weight: FloatArray,
    ) -> None:
        self._rules = lexical, binary, binary_weight, unary, unary_weight
        above = np.concatenate([binary[:, 0], binary[:, 0], unary[:, 0]])
        below = np.concatenate([binary[:, 1], binary[:, 2], unary[:, 1]])
        number, level_of, cyclic = strong_components(len(lexical), above, below)
        level, self._recursive = level_of[number], cyclic[number]
        self._states = _grouped(level, int(level.max()) + 1)
        self._of_binary, self._of_unary = (
            _grouped(level[rules[:, 0]], int(level.max()) + 1) for rules in (binary, unary)
        )

    def _levels(self, *, recursive: bool = False) -> Iterator[_Level]:
        """Yield all levels, or those with a symbol below itself."""
        lexical, binary, binary_weight, unary, unary_weight = self._rules
        for states, rb, ru in zip(self._states, self._of_binary, self._of_unary, strict=True):
            part_of_cycle = bool(self._recursive[states].any())
            if part_of_cycle or not recursive:
                rules = binary[rb], binary_weight[rb], unary[ru], unary_weight[ru]
                yield _Level(states, lexical, *rules, recursive=part_of_cycle)

    def least_solution(
        self, *, ceiling: float = np.inf, constraints: Callable[[], SumConstraints] | None = None, refuse: bool = False
    ) -> FloatArray | None:
        """Return the solution of `least_solution`; ``ceiling`` is an upper bound, 1 for probabilities."""
        mass = np.zeros(len(self._recursive))
        solved = np.zeros(len(mass), dtype=bool)
        sums: SumConstraints | None = None
        for part in self._levels():
            if not part.recursive:  # values depend on other levels only
                mass[part.states] = np.minimum(part.value(mass), ceiling)
            elif not part.solve(mass, ceiling, bounded=constraints is not None or ceiling < np.inf):
                return None
            if not np.isfinite(mass[part.states]).all():
                return None
            solved[part.states] = True
            if refuse and part.recursive and (error := part.error(mass)) > PRECISE:
                sums = constraints() if constraints is not None and sums is None else sums
                if (sums is None or not part.refine(mass, sums, solved)) and error > REFUSED:
                    raise _nearly_infinite()
        return mass

    def error(self, mass: FloatArray) -> float:
        """Return the estimated relative error of a solution by rounding."""
        return max((part.error(mass) for part in self._levels(recursive=True)), default=0.0)

    def greatest_complement(self, lost: FloatArray, productive: BoolArray) -> FloatArray:
        """Return the greatest ``s <= 1`` with ``s = lost + Un s + sum p (s_B + s_C - s_B s_C)``, (S,): 1 - t.

        Newton's steps from 1 decrease monotonically. They subtract no large numbers, so they keep the digits of a small
        s; a critical solution is 0, and s is 1 for a symbol that is not ``productive``.
        """
        result = np.ones(len(lost))
        for part in self._levels():
            part.solve_complement(result, lost, productive)
        return result


def _nearly_infinite() -> InputError:
    return InputError(
        "the sum of all weights is so close to being infinite that float64 cannot give ten digits of it;"
        " choose weights further from that limit",
        code="infinite-sum",
    )


def _grouped(keys: IntArray, n: int) -> list[IntArray]:
    """Return the indices of each key from 0 to n - 1."""
    order = np.argsort(keys, kind="stable")
    return np.split(order, np.searchsorted(keys[order], np.arange(1, n)))


class _Level:
    """The equations of some symbols, which the other symbols of their level do not need."""

    def __init__(
        self,
        states: IntArray,
        lexical: FloatArray,
        binary: Int32Array,
        binary_weight: FloatArray,
        unary: Int32Array,
        unary_weight: FloatArray,
        *,
        recursive: bool,
    ) -> None:
        self.states, self.recursive, self.lexical = states, recursive, lexical[states]
        self.place = np.full(len(lexical), -1, dtype=np.int64)
        self.place[states] = np.arange(len(states))
        self.binary, self.binary_weight = (self.place[binary[:, 0]], *binary[:, 1:].T), binary_weight
        self.unary, self.unary_weight = (self.place[unary[:, 0]], unary[:, 1]), unary_weight

    def value(self, mass: FloatArray) -> FloatArray:
        """Return the right-hand sides, one a symbol."""
        (a, b, c), (above, below) = self.binary, self.unary
        n = len(self.states)
        products = np.bincount(a, self.binary_weight * mass[b] * mass[c], n)
        return np.asarray(self.lexical + products + np.bincount(above, self.unary_weight * mass[below], n))

    def complement(self, rest: FloatArray, lost: FloatArray) -> FloatArray:
        """Return the right-hand sides of the equations of ``rest``, 1 - mass."""
        (a, b, c), (above, below) = self.binary, self.unary
        n = len(self.states)
        either = np.bincount(a, self.binary_weight * (rest[b] + rest[c] * (1.0 - rest[b])), n)
        return np.asarray(lost[self.states] + either + np.bincount(above, self.unary_weight * rest[below], n))

    def jacobian(self, mass: FloatArray) -> csr_matrix[np.float64]:
        """Return derivatives of `value` in the masses of the level."""
        (a, b, c), (above, below) = self.binary, self.unary
        rows = np.concatenate([a, a, above])
        columns = self.place[np.concatenate([b, c, below])]
        data = np.concatenate([self.binary_weight * mass[c], self.binary_weight * mass[b], self.unary_weight])
        here = columns >= 0
        return csr_matrix((data[here], (rows[here], columns[here])), shape=(len(self.states),) * 2)

    def solve(self, mass: FloatArray, ceiling: float, *, bounded: bool) -> bool:
        """Apply Newton's steps in place; return False if no finite solution exists, True always if ``bounded``."""
        moved = np.inf
        for _ in range(STEPS):
            old = mass[self.states]
            gap = self.value(mass) - old
            step = self._step(mass, gap)
            if (np.abs(gap) <= 64.0 * EPSILON * old).all() and (np.abs(step) > SHIFT * old).any():
                return True  # a critical solution, up to rounding
            if not bounded and not (step >= -ROUNDING * old).all():
                return False  # the linear equations have no non-negative solution, so these have none
            new = np.minimum(old + np.maximum(step, 0.0), ceiling)
            mass[self.states] = new
            last, moved = moved, float(np.max((new - old) / np.where(new > 0.0, new, 1.0)))
            if moved <= TOLERANCE or ROUNDING >= moved >= last:
                return True
        return bounded

    def _step(self, mass: FloatArray, gap: FloatArray) -> FloatArray:
        try:
            return solve(self.jacobian(mass), gap)
        except InputError:  # singular, at a critical solution
            return gap

    def solve_complement(self, rest: FloatArray, lost: FloatArray, productive: BoolArray) -> None:
        """Apply Newton's steps to ``rest``, 1 - mass, from 1 down, in place."""
        inner = np.flatnonzero(productive[self.states])
        states = self.states[inner]
        for _ in range(STEPS if self.recursive else 1):
            old = rest[states]
            gap = old - self.complement(rest, lost)[inner]
            try:
                step = solve(self.jacobian(1.0 - rest)[inner][:, inner], gap) if self.recursive else gap
            except InputError:  # singular, at a critical solution
                step = np.where(old < ROUNDING, old, gap)
            new = np.clip(old - step, 0.0, old)
            new[new < 8.0 * EPSILON] = 0.0
            rest[states] = new
            if (old - new <= TOLERANCE * old).all():
                break

    def error(self, mass: FloatArray) -> float:
        """Return the estimated relative error of the masses by rounding; inf at a critical solution."""
        return EPSILON * float(self._amplified(mass).max(initial=0.0))

    def _amplified(self, mass: FloatArray) -> FloatArray:
        """Return the factor by which a relative error of each step of the equations is amplified, one a symbol."""
        result = np.zeros(len(self.states))
        inner = np.flatnonzero(mass[self.states] > 0.0)
        inner_mass = mass[self.states[inner]]
        with np.errstate(all="ignore"):
            try:
                ratio = solve(self.jacobian(mass)[inner][:, inner], inner_mass) / inner_mass
            except InputError:  # singular
                ratio = np.full(len(inner), np.inf)
        result[inner] = np.where(ratio >= 0.5, ratio, np.inf)  # at least 1, except near a critical solution
        return result

    def refine(self, mass: FloatArray, constraints: SumConstraints, solved: BoolArray) -> bool:
        """Correct critical components in place by sums whose members are all solved; return False if too few.

        Rounding moves a critical solution along one vector, the eigenvector of its Jacobian. Each Newton step takes the
        distance along it from the sums, and all other components from the equations.
        """
        component = connected_components(self.jacobian(mass), connection="strong")[1]
        critical = np.unique(component[self._amplified(mass) * EPSILON > PRECISE])
        usable = np.flatnonzero(constraints.members @ (~solved).astype(np.float64) == 0.0)
        members = constraints.members[usable]
        inside = csr_matrix(members[:, self.states])
        columns = [np.flatnonzero(component == k) for k in critical]
        rows = [np.flatnonzero(inside[:, places].sum(axis=1)) for places in columns]
        if not all(len(sums) for sums in rows):
            return False
        for _ in range(STEPS):
            old = mass[self.states]
            matrix = csr_matrix(self.jacobian(mass) * (1.0 - SHIFT))
            vector = old
            for _ in range(4):
                vector = solve(matrix, vector)
                for places in columns:
                    vector[places] /= vector[places].sum()
            step = solve(matrix, self.value(mass) - old)
            missing = constraints.total[usable] - members @ mass
            for places, sums in zip(columns, rows, strict=True):
                along = vector[places]
                left = float((missing[sums] - inside[sums] @ step).sum())
                step[places] += along * (left / float((inside[sums][:, places] @ along).sum()))
                mass[self.states[places]] = np.maximum(old[places] + step[places], 0.0)
            changed = np.concatenate(columns)
            if (np.abs(step[changed]) <= TOLERANCE * old[changed]).all():
                return True
        return False
