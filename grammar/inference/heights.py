"""Probabilities of the height of derivations, and lengths of sentences whose trees have at most a given height.

The height is the height of the derivation tree over words, as in ``nltk.Tree.height``: a symbol over a word has height
2, and each unary and binary rule of the grammar (binarisation included) adds 1.
"""

from __future__ import annotations

import numpy as np

from truesource.grammar.conditioning import LengthRange
from truesource.grammar.inference._kernels import counts as kernels
from truesource.grammar.inference.rules import unary_matrix
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import FloatArray
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.room import approximate

HIGHEST = 100_000  #: largest cap on the height of trees


def height_masses(pcfg: PCFG, max_height: int) -> FloatArray:
    """Return P(a derivation ends with height at most h), h = 0..max_height, (max_height+1,); rows 0, 1 are zero."""
    _check_height(max_height)
    exact = pcfg.exact
    unary = unary_matrix(pcfg)
    a, b, c = pcfg.binary.T
    p = np.exp(pcfg.binary_logp)
    result = np.zeros(max_height + 1)
    mass = np.zeros(len(pcfg.symbols))
    for h in range(2, max_height + 1):
        two = np.bincount(a, weights=p * mass[b] * mass[c], minlength=len(mass))
        before, mass = mass, exact.lexical_sums + unary @ mass + two
        result[h] = mass[pcfg.start]
        if np.array_equal(mass, before):
            result[h:] = mass[pcfg.start]
            break
    return result


def ending_mass(pcfg: PCFG) -> float:
    """Return P(a derivation ends), in (0, 1].

    Raises:
        InputError: no derivation ends.
    """
    mass = pcfg.exact.total_mass
    if not mass > 0.0:
        raise InputError("no derivation of this grammar ends; correct its rules")
    return mass


def height_mass(pcfg: PCFG, max_height: int, lengths: LengthRange | None = None) -> float:
    """Return P(height at most ``max_height`` | the derivation ends, with a length in ``lengths``), in [0, 1].

    Raises:
        InputError: the cap is below 2, no sentence has a length in the range, or no derivation ends.
    """
    if lengths is None:
        return min(1.0, float(height_masses(pcfg, max_height)[-1]) / ending_mass(pcfg))
    table = capped_length_masses(pcfg, max_height, lengths.high)
    return min(1.0, float(table[lengths.low :, pcfg.start].sum()) / pcfg.exact.range_mass(lengths))


def capped_mean_length(pcfg: PCFG, max_height: int, lengths: LengthRange | None = None) -> float:
    """Return the mean number of tokens of derivations of height at most ``max_height`` (and a length in ``lengths``).

    Raises:
        InputError: no tree has that height (and a length in the range).
    """
    if lengths is not None:
        pmf = capped_length_pmf(pcfg, max_height, lengths.high, lengths)
        return float(np.arange(len(pmf)) @ pmf)
    _check_height(max_height)
    unary = unary_matrix(pcfg)
    lexical = pcfg.exact.lexical_sums
    a, b, c = pcfg.binary.T
    p = np.exp(pcfg.binary_logp)
    mass = total = np.zeros(len(pcfg.symbols))  # P(ends), E[tokens; ends]
    for _ in range(2, max_height + 1):
        more = np.bincount(a, weights=p * (total[b] * mass[c] + mass[b] * total[c]), minlength=len(mass))
        two = np.bincount(a, weights=p * mass[b] * mass[c], minlength=len(mass))
        before = mass, total
        mass, total = lexical + unary @ mass + two, lexical + unary @ total + more
        if np.array_equal((mass, total), before):
            break
    return float(total[pcfg.start]) / _positive_mass(float(mass[pcfg.start]), max_height, None)


def capped_length_masses(pcfg: PCFG, max_height: int, high: int) -> FloatArray:
    """Return P(A yields exactly m tokens by a tree of height at most ``max_height``), (high+1, S); row 0 is zero."""
    _check_height(max_height)
    unary = unary_matrix(pcfg)
    masses = np.zeros((len(pcfg.symbols), high + 1))
    for _ in range(2, max_height + 1):
        mirror = np.ascontiguousarray(masses[:, ::-1])
        grown = unary @ masses + kernels.split_masses(masses, mirror, pcfg.exact.pairs)
        grown[:, 1:2] += pcfg.exact.lexical_sums[:, None]
        if np.array_equal(grown, masses):
            break
        masses = grown
    return np.ascontiguousarray(masses.T)


def capped_length_pmf(pcfg: PCFG, max_height: int, high: int, lengths: LengthRange | None = None) -> FloatArray:
    """Return P(m tokens | height at most ``max_height``) for m = 0..high, (high+1,); renormalised within ``lengths``.

    Raises:
        InputError: no tree has that height (and a length in the range).
    """
    table = capped_length_masses(pcfg, max_height, max(high, lengths.high if lengths else 0))[:, pcfg.start].copy()
    if lengths is not None:
        table[: lengths.low] = 0.0
        table[lengths.high + 1 :] = 0.0
    total = float(height_masses(pcfg, max_height)[-1] if lengths is None else table.sum())
    return np.asarray(table[: high + 1] / _positive_mass(total, max_height, lengths))


def _check_height(max_height: int) -> None:
    if max_height < 2:
        raise InputError(f"a cap on the height of trees must be at least 2 (a symbol over a word), got {max_height}")
    if max_height > HIGHEST:
        raise InputError(
            f"a cap on the height of trees is at most {HIGHEST:,}, got {approximate(max_height)}; lower it",
            code="too-large",
        )


def _positive_mass(total: float, max_height: int, lengths: LengthRange | None) -> float:
    if not total > 0.0:
        also = "" if lengths is None else f" and a length in {lengths}"
        raise InputError(f"no tree of this grammar has height at most {max_height}{also}; raise the cap")
    return total
