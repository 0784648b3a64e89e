"""Remove empty rules (``A -> ε``); strings keep their probabilities, conditioned on not being empty."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.sparse import csr_matrix

from truesource.grammar.collected_rules import Rules, Tables
from truesource.grammar.inference.masses import least_probabilities
from truesource.grammar.inference.nonnegative_matrices import solve
from truesource.grammar.support.arrays import FloatArray
from truesource.grammar.support.errors import InputError

LEAK = 1e-6  #: mass that rounding may lose before derivations count as never ending
SMALL = 0.1  #: complements below this come from linear equations, since 1 - e has lost digits


@dataclass(frozen=True)
class EmptyRules:
    """Record of the empty rules removed from a grammar."""

    rules: int  #: empty rules
    symbols: tuple[str, ...]  #: symbols that derive the empty string
    mass: float  #: P(the start symbol derives the empty string), 0 to 1

    def as_meta(self) -> dict[str, object]:
        """Return the entry ``empty`` of the grammar's ``meta``."""
        return {"rules": self.rules, "symbols": list(self.symbols), "mass": self.mass}


def remove_empty_rules(
    rules: Rules, tables: Tables, empty: Mapping[int, float], start: int, path: str | Path | None = None
) -> tuple[Rules, EmptyRules]:
    """Rewrite a proper grammar so that each symbol derives its strings, given that they are not empty.

    With ``e_A = P(A derives the empty string)`` and ``d_A = 1 - e_A``, a rule ``A -> B C`` of probability p becomes
    ``A -> B C`` of ``p d_B d_C / d_A``, ``A -> B`` of ``p d_B e_C / d_A`` and ``A -> C`` of ``p e_B d_C / d_A``; a rule
    ``A -> B`` becomes one of ``p d_B / d_A``, and one of a word, ``p / d_A``
    (``e`` as in Stolcke 1995, section 4.7). The new probabilities of a symbol sum to one, since
    ``1 - e_B e_C = d_B d_C + d_B e_C + e_B d_C``. Nodes without words disappear from trees. Symbols that derive
    only the empty string are removed.

    Args:
        rules: names of the symbols and words.
        tables: binary, unary and lexical rules with their probabilities.
        empty: probability of the empty rule of each symbol that has one.
        start: number of the start symbol.
        path: file named in errors.

    Returns:
        The new rules, whose probabilities sum to one, and the record of what was removed.

    Raises:
        InputError: the start symbol derives no word, or a symbol without words has derivations that never end.
    """
    names, words = list(rules.symbols), list(rules.words)
    (binary, p), (unary, q), (lexical, r) = tables
    empty_p = np.zeros(len(names))
    empty_p[list(empty)] = list(empty.values())
    e = least_probabilities(empty_p, binary, p, unary, q, np.bincount(lexical[:, 0], r, len(names)).astype(np.float64))
    d = _complement(e, names, tables, path)
    if not d[start] > 0.0:
        raise InputError(
            f"the start symbol {names[start]!r} derives only the empty sentence; add rules that produce words", path
        )
    parts = (
        (0, binary, p * d[binary[:, 1]] * d[binary[:, 2]]),
        (1, binary[:, :2], p * d[binary[:, 1]] * e[binary[:, 2]]),
        (1, binary[:, ::2], p * e[binary[:, 1]] * d[binary[:, 2]]),
        (1, unary, q * d[unary[:, 1]]),
        (2, lexical, r),
    )
    sums = np.sum([np.bincount(table[:, 0], weight, len(names)) for _, table, weight in parts], axis=0)
    result = Rules(name for name, rest in zip(names, d.tolist(), strict=True) if rest > 0.0)
    for kind, table, weight in parts:
        positive = weight > 0.0
        for rule, value in zip(table[positive].tolist(), (weight / sums[table[:, 0]])[positive].tolist(), strict=True):
            parent, *below = rule
            ids = (result.word(words[i]) if kind == 2 else result.symbol(names[i]) for i in below)
            result.add(kind, (result.symbol(names[parent]), *ids), value)
    nullable = tuple(name for name, mass in zip(names, e.tolist(), strict=True) if mass > 0.0)
    return result, EmptyRules(len(empty), nullable, float(e[start]))


def _complement(e: FloatArray, names: Sequence[str], tables: Tables, path: str | Path | None) -> FloatArray:
    """Return ``1 - e`` (S,), at full relative precision even if small; 0 for symbols that derive no word at all.

    The complements solve ``d_A = sum of words + sum of p (d_B + e_B d_C) + sum of q d_B``, a sum of non-negative
    terms.

    Raises:
        InputError: derivations of a symbol without words may never end.
    """
    (binary, p), (unary, q), (lexical, r) = tables
    n = len(e)
    full = np.zeros(n, dtype=np.bool_)
    full[lexical[:, 0]] = True
    before = -1
    while before < (before := int(full.sum())):
        full[binary[full[binary[:, 1]] | full[binary[:, 2]], 0]] = True
        full[unary[full[unary[:, 1]], 0]] = True
    endless = np.flatnonzero(~full & (e < 1.0 - LEAK))
    if len(endless):
        raise InputError(
            f"{names[endless[0]]!r} derives no word, and some of its derivations never end; correct its rules", path
        )
    result = np.where(full, 1.0 - e, 0.0)
    small = full & (result < SMALL)
    if small.any():
        rows = np.concatenate([binary[:, 0], binary[:, 0], unary[:, 0]])
        columns = np.concatenate([binary[:, 1], binary[:, 2], unary[:, 1]])
        weights = np.concatenate([p, p * e[binary[:, 1]], q])
        matrix = csr_matrix((weights, (rows, columns)), shape=(n, n))[small]
        words = np.bincount(lexical[:, 0], r, n)[small]
        result[small] = solve(matrix[:, small], words + matrix[:, ~small] @ result[~small])
    return result
