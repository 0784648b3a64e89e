"""Which rule of one grammar became which rule of another, and whether its children changed places."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import BoolArray, Int32Array, IntArray


@dataclass(frozen=True, eq=False)
class RuleMap:
    """Rules are numbered as derivations are written: binary, unary, lexical, each in the order of its array.

    A derivation of P in preorder becomes one of Q: every rule by ``target``, and where ``swapped`` the right
    subtree before the left one.
    """

    target: IntArray  #: (n,) rule of Q for each rule of P; -1 for a dropped one
    swapped: BoolArray  #: (R,) binary rules of P whose two children stand in the other order in Q
    n_target: int  #: number of rules of Q

    @classmethod
    def identity(cls, pcfg: PCFG) -> RuleMap:
        """Every rule is itself."""
        return cls(np.arange(pcfg.n_rules), np.zeros(len(pcfg.binary), dtype=bool), pcfg.n_rules)

    @classmethod
    def by_name(cls, p: PCFG, q: PCFG) -> RuleMap:
        """Every rule of P is the rule of Q with the same parent and children by name, if there is one."""
        symbol = _numbers(p.symbols, q.symbol_ids)
        word = _numbers(p.terminals, q.word_ids)
        lexical = np.column_stack([symbol[p.lexical[:, 0]], word[p.lexical[:, 1]]])
        target = locate(q, symbol[p.binary], symbol[p.unary], lexical)
        return cls(target, np.zeros(len(p.binary), dtype=bool), q.n_rules)

    @property
    def bijective(self) -> bool:
        """Whether every rule of Q comes from exactly one of P and none is dropped: so it is with derivations, too."""
        return self.n_target == len(self.target) and np.array_equal(np.unique(self.target), np.arange(self.n_target))

    def then(self, after: RuleMap) -> RuleMap:
        """This map, then ``after``."""
        swapped = self.swapped.copy()
        kept = np.flatnonzero(self.target[: len(swapped)] >= 0)
        swapped[kept] ^= after.swapped[self.target[kept]]
        target = np.where(self.target >= 0, after.target[self.target], -1)
        swapped[target[: len(swapped)] < 0] = False
        return RuleMap(target, swapped, after.n_target)


def locate(pcfg: PCFG, binary: IntArray, unary: IntArray, lexical: IntArray) -> IntArray:
    """Numbers of the given rules in a grammar, -1 where it has none such.

    Args:
        pcfg: the grammar.
        binary: (n, 3) parent, left child, right child, in its own numbers; -1 for a symbol it does not have.
        unary: (n, 2) parent, child.
        lexical: (n, 2) parent, word.
    """
    found: list[IntArray] = []
    first = 0
    base = max(len(pcfg.symbols), len(pcfg.terminals))
    for (rules, _), wanted in zip(pcfg.tables(), (binary, unary, lexical), strict=True):
        keys, sought = _keys(rules, base), _keys(wanted, base)
        place = np.minimum(np.searchsorted(keys, sought), max(len(keys) - 1, 0))
        here = (wanted >= 0).all(axis=1) & (keys[place] == sought if len(keys) else False)
        found.append(np.where(here, first + place, -1))
        first += len(rules)
    return np.concatenate(found)


def _keys(rules: Int32Array | IntArray, base: int) -> IntArray:
    """One number a rule, rising in the order of a grammar's arrays: by children, then parent."""
    key = np.zeros(len(rules), dtype=np.int64)
    for column in (*range(1, rules.shape[1]), 0):
        key = key * base + rules[:, column]
    return key


def _numbers(names: Sequence[str], ids: Mapping[str, int]) -> IntArray:
    return np.array([ids.get(name, -1) for name in names], dtype=np.int64)
