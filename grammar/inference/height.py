"""Exact masses and scores when taller trees are rejected.

The height is that of the derivation tree over words, as ``nltk.Tree.height`` counts it: a symbol over a word has
height 2, and unary and binary rules of the grammar as it stands (binarisation included) each add 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from truesource.grammar.conditioning import LengthRange
from truesource.grammar.inference.rules import unary_matrix
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import FloatArray
from truesource.grammar.support.errors import InputError


def height_masses(pcfg: PCFG, max_height: int) -> FloatArray:
    """P(a derivation ends with height at most h) for h = 0..max_height, (max_height+1,); rows 0 and 1 are zero."""
    _check(max_height)
    exact = pcfg.exact
    unary = unary_matrix(pcfg)
    a, b, c = pcfg.binary.T
    p = np.exp(pcfg.binary_logp)
    found = np.zeros(max_height + 1)
    mass = np.zeros(len(pcfg.symbols))
    for h in range(2, max_height + 1):
        two = np.bincount(a, weights=p * mass[b] * mass[c], minlength=len(mass))
        mass = exact.lexical_sums + unary @ mass + two
        found[h] = mass[pcfg.start]
    return found


def height_mass(pcfg: PCFG, max_height: int, lengths: LengthRange | None = None) -> float:
    """P(height at most ``max_height`` | the derivation ends, with a length in ``lengths``), in [0, 1].

    Raises:
        InputError: the cap is below 2, or no sentence has a length in the range.
    """
    if lengths is None:
        return min(1.0, float(height_masses(pcfg, max_height)[-1]) / pcfg.exact.total_mass)
    table = capped_length_masses(pcfg, max_height, lengths.high)
    return min(1.0, float(table[lengths.low :, pcfg.start].sum()) / pcfg.exact.range_mass(lengths))


def capped_mean_length(pcfg: PCFG, max_height: int, lengths: LengthRange | None = None) -> float:
    """Mean number of tokens of derivations of height at most ``max_height`` (and a length in ``lengths``).

    Raises:
        InputError: no tree has that height (and a length in the range).
    """
    if lengths is not None:
        pmf = capped_length_pmf(pcfg, max_height, lengths.high, lengths)
        return float(np.arange(len(pmf)) @ pmf)
    _check(max_height)
    unary = unary_matrix(pcfg)
    lexical = pcfg.exact.lexical_sums
    a, b, c = pcfg.binary.T
    p = np.exp(pcfg.binary_logp)
    mass = total = np.zeros(len(pcfg.symbols))  # P(ends), E[tokens; ends]
    for _ in range(2, max_height + 1):
        more = np.bincount(a, weights=p * (total[b] * mass[c] + mass[b] * total[c]), minlength=len(mass))
        two = np.bincount(a, weights=p * mass[b] * mass[c], minlength=len(mass))
        mass, total = lexical + unary @ mass + two, lexical + unary @ total + more
    return float(total[pcfg.start]) / _positive(float(mass[pcfg.start]), max_height, None)


def capped_length_masses(pcfg: PCFG, max_height: int, high: int) -> FloatArray:
    """P(A yields exactly m tokens by a tree of height at most ``max_height``), (high+1, S); row 0 is zero."""
    from truesource.grammar.inference._kernels.counts import split_masses

    _check(max_height)
    unary = unary_matrix(pcfg)
    masses = np.zeros((len(pcfg.symbols), high + 1))
    for _ in range(2, max_height + 1):
        mirror = np.ascontiguousarray(masses[:, ::-1])
        grown = unary @ masses + split_masses(masses, mirror, pcfg.exact.pairs)
        grown[:, 1] += pcfg.exact.lexical_sums
        if np.array_equal(grown, masses):
            break
        masses = grown
    return np.ascontiguousarray(masses.T)


def capped_length_pmf(pcfg: PCFG, max_height: int, high: int, lengths: LengthRange | None = None) -> FloatArray:
    """P(m tokens | height at most ``max_height``) for m = 0..high, (high+1,); renormalised within ``lengths``.

    Raises:
        InputError: no tree has that height (and a length in the range).
    """
    table = capped_length_masses(pcfg, max_height, max(high, lengths.high if lengths else 0))[:, pcfg.start].copy()
    if lengths is not None:
        table[: lengths.low] = 0.0
        table[lengths.high + 1 :] = 0.0
    total = float(height_masses(pcfg, max_height)[-1] if lengths is None else table.sum())
    return np.asarray(table[: high + 1] / _positive(total, max_height, lengths))


def capped_log_prob(
    pcfg: PCFG, sentence: Sequence[str], max_height: int, lengths: LengthRange | None = None, *, given: bool = True
) -> float:
    """Ln P(sentence | height at most ``max_height``, length in ``lengths``), nats; -inf where no such tree makes it.

    With ``given=False`` it is ln P(sentence, height at most ``max_height``), not divided by anything. One chart per
    height, O(H n^3 P) for P child pairs: meant for sentences of ordinary length.

    Raises:
        InputError: the sentence has no tokens, or no tree has that height (and a length in the range).
    """
    from truesource.grammar.inference._kernels.counts import split_spans

    _check(max_height)
    n = len(sentence)
    if n == 0:
        raise InputError("the sentence has no tokens")
    lexicon = pcfg.exact.lexicon
    unary = unary_matrix(pcfg)
    leaves = np.zeros((len(pcfg.symbols), n + 1, n + 1))
    for i, word in enumerate(pcfg.encode(sentence)):
        if word >= 0:
            rules = slice(lexicon.start[word], lexicon.start[word + 1])
            leaves[lexicon.parent[rules], i, i + 1] = lexicon.prob[rules]
    chart = np.zeros_like(leaves)
    for _ in range(2, max_height + 1):
        two = split_spans(chart, pcfg.exact.pairs)
        grown = leaves + (unary @ chart.reshape(len(unary), -1)).reshape(chart.shape) + two
        if np.array_equal(grown, chart):
            break
        chart = grown
    joint = float(chart[pcfg.start, 0, n])
    if not given:
        return math.log(joint) if joint > 0.0 else -math.inf
    if lengths is None:
        total = float(height_masses(pcfg, max_height)[-1])
    else:
        total = float(capped_length_masses(pcfg, max_height, lengths.high)[lengths.low :, pcfg.start].sum())
    total = _positive(total, max_height, lengths)
    possible = joint > 0.0 and (lengths is None or n in lengths)
    return math.log(joint) - math.log(total) if possible else -math.inf


def _check(max_height: int) -> None:
    if max_height < 2:
        raise InputError(f"the smallest tree has height 2 (a symbol over a word), got a cap of {max_height}")


def _positive(total: float, max_height: int, lengths: LengthRange | None) -> float:
    if not total > 0.0:
        also = "" if lengths is None else f" and a length in {lengths}"
        raise InputError(f"no tree of this grammar has height at most {max_height}{also}; raise the cap")
    return total
