"""A grammar with some of its rules: the others dropped, then all that became useless, rows divided by their sums."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

from truesource.grammar.inference.closure import reachable_from
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import BoolArray, FloatArray


class Restricted(NamedTuple):
    """What is left of a grammar, and of the probability of each symbol that is left."""

    pcfg: PCFG
    share: FloatArray  #: (S,) of the symbols left: the part of their rules' probability that was kept, in (0, 1]


def restrict(pcfg: PCFG, kept: Sequence[BoolArray]) -> Restricted | None:
    """The grammar of the rules kept; None when they make no sentence.

    Useless are symbols that make no finite sentence or that the start does not reach, and words that no rule makes.
    Symbols, words and rules that are left keep their order. Derivations of the result may not end.

    Args:
        pcfg: any grammar.
        kept: (R,), (Q,) and (L,), which binary, unary and lexical rules to keep.
    """
    left = [keep.copy() for keep in kept]
    productive = _productive(pcfg, left)
    if not productive[pcfg.start]:
        return None
    for i, rules in enumerate((pcfg.binary, pcfg.unary)):
        left[i] &= productive[rules[:, 1:]].all(axis=1)
    reached = _reached(pcfg, left)
    sums = np.zeros(len(pcfg.symbols))
    for keep, (rules, logp) in zip(left, pcfg.tables(), strict=True):
        keep &= reached[rules[:, 0]]
        np.add.at(sums, rules[keep, 0], np.exp(logp[keep]))
    rest = _rest(pcfg, left, reached, sums)
    return Restricted(rest, np.minimum(sums[reached] / pcfg.row_sums[reached], 1.0))


def _productive(pcfg: PCFG, kept: list[BoolArray]) -> BoolArray:
    """Symbols that derive a finite string by the rules kept, (S,)."""
    binary, unary = pcfg.binary[kept[0]], pcfg.unary[kept[1]]
    found = np.zeros(len(pcfg.symbols), dtype=bool)
    found[pcfg.lexical[kept[2], 0]] = True
    before = -1
    while before < int(found.sum()):
        before = int(found.sum())
        for rules in (binary, unary):
            found[rules[found[rules[:, 1:]].all(axis=1), 0]] = True
    return found


def _reached(pcfg: PCFG, kept: list[BoolArray]) -> BoolArray:
    """Symbols that the start reaches by the rules kept, (S,)."""
    n = len(pcfg.symbols)
    binary, unary = pcfg.binary[kept[0]], pcfg.unary[kept[1]]
    rows = np.concatenate([binary[:, 0], binary[:, 0], unary[:, 0]])
    columns = np.concatenate([binary[:, 1], binary[:, 2], unary[:, 1]])
    edges = csr_matrix((np.ones(len(rows), dtype=bool), (rows, columns)), shape=(n, n))
    return reachable_from(edges.astype(np.int8), pcfg.start)


def _rest(pcfg: PCFG, kept: list[BoolArray], reached: BoolArray, sums: FloatArray) -> PCFG:
    """The rules kept, over the symbols reached and the words they make, rows divided by ``sums``."""
    state = np.cumsum(reached) - 1
    made = np.zeros(len(pcfg.terminals), dtype=bool)
    made[pcfg.lexical[kept[2], 1]] = True
    arrays: dict[str, Any] = {}
    for kind, keep, (rules, logp) in zip(("binary", "unary", "lexical"), kept, pcfg.tables(), strict=True):
        child = (np.cumsum(made) - 1) if kind == "lexical" else state
        arrays[kind] = np.column_stack([state[rules[keep, 0]], child[rules[keep, 1:]]]).astype(np.int32)
        arrays[f"{kind}_logp"] = np.minimum(logp[keep] - np.log(sums[rules[keep, 0]]), 0.0)
    symbols = np.flatnonzero(reached)
    return replace(
        pcfg,
        symbols=tuple(pcfg.symbols[i] for i in symbols),
        labels=tuple(pcfg.labels[i] for i in symbols),
        terminals=tuple(word for word, ok in zip(pcfg.terminals, made, strict=True) if ok),
        start=int(state[pcfg.start]),
        **arrays,
    )
