"""Numbers of types by length of two samples: what differs beside their lengths, and whether by chance."""

from __future__ import annotations

import numpy as np

from truesource.evaluation.measures.monte_carlo import ChanceTest, judged
from truesource.evaluation.measures.repetitions import PERMUTATIONS
from truesource.evaluation.tendencies.type_token import TypeCounts, fit_heaps, pooled
from truesource.grammar.conditioning import DEFAULT_SEED
from truesource.grammar.support.errors import InputError


def gap_at_equal_lengths(first: TypeCounts, second: TypeCounts) -> float | None:
    """Mean difference of the numbers of types at equal lengths, weighted by n m / (n + m); None if none is common."""
    n, m = first.sentences, second.sentences
    both = (n > 0) & (m > 0)
    if not both.any():
        return None
    weight = n[both] * m[both] / (n[both] + m[both])
    return float(weight @ (first.means() - second.means())[both] / weight.sum())


def type_tests(
    first: TypeCounts, second: TypeCounts, *, draws: int = PERMUTATIONS, seed: int = DEFAULT_SEED
) -> dict[str, tuple[float, ChanceTest]] | None:
    """Differences, first minus second, of Heaps' exponents and of types at equal lengths, with their tests.

    A sentence's length and number of types are all that either depends on, so to deal sentences out anew is to draw
    tables from a multivariate hypergeometric distribution.

    Args:
        first: table of one sample.
        second: of the other, of the same size.
        draws: of the null distribution.
        seed: of the draws.

    Returns:
        ``heaps_beta_difference`` and ``types_gap``; None where a sample has no Heaps' law, or no length is common.

    Raises:
        InputError: the tables differ in size.
    """
    if first.high != second.high:
        raise InputError("the two tables of types go up to different lengths; give `type_counts` one `high`")
    value = _differences(first, second)
    if value is None:
        return None
    whole = pooled([first, second])
    rng = np.random.default_rng(seed)
    dealt = rng.multivariate_hypergeometric(whole.count, int(first.count.sum()), size=draws, method="marginals")
    null = []
    for row in dealt:
        sides = ((row, row > 0), (whole.count - row, whole.count > row))
        one, other = (TypeCounts(whole.length[at], whole.types[at], n[at], whole.high) for n, at in sides)
        found = _differences(one, other)
        if found is not None:
            null.append(found)
    if len(null) < draws:  # some deal has no law: too few sentences to test anything
        return None
    columns = np.array(null).T
    names = ("heaps_beta_difference", "types_gap")
    return {
        name: (v, judged(v, column, "both", centre=0.0)) for name, v, column in zip(names, value, columns, strict=True)
    }


def _differences(first: TypeCounts, second: TypeCounts) -> tuple[float, float] | None:
    try:
        beta = fit_heaps(first).beta - fit_heaps(second).beta
    except InputError:
        return None
    gap = gap_at_equal_lengths(first, second)
    return None if gap is None else (beta, gap)
