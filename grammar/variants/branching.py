"""Switch the order of children, category by category.

The switches are those of White and Cotterell (2021), "Examining the Inductive Bias of Neural Language Models with
Artificial Languages", over a binarised grammar: reversing every binary rule of a category and of its intermediate
``@`` nodes reverses the children of its nodes in the treebank.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from grammar.errors import InputError
from grammar.pcfg import PCFG
from grammar.treebank.binarise import INTERMEDIATE
from grammar.treebank.heads import head_index
from grammar.variants.categories import categories, near
from grammar.variants.change import Change, Changed
from grammar.variants.rule_map import RuleMap, locate

Order = Literal["mirror", "head-initial", "head-final"]
BoolArray = NDArray[np.bool_]


@dataclass(frozen=True)
class Branching(Change):
    """Swap the children of binary rules of some categories.

    ``mirror`` swaps every rule; ``head-initial`` and ``head-final`` those whose head child
    (`grammar.treebank.heads`) is not the left, or not the right one. Rules of intermediate nodes of a category go with
    it. Punctuation is a child like any other.

    The head label of an intermediate child is that of its most probable derivation down to nodes of the treebank, one
    for each symbol; of a node whose head was split off before, it is merely what would be the head without it. Where a
    swapped rule meets one that stood there, they become one rule and their probabilities add.

    The distribution of sentence lengths stays. Without merged rules derivations correspond one to one, and their
    entropy stays too; merging lowers it.

    Raises:
        InputError: an unknown order, or no category.
    """

    order: Order
    categories: tuple[str, ...] | None = None  #: treebank labels; None for all

    def __post_init__(self) -> None:
        if self.order not in get_args(Order):
            raise InputError(f"the order of children is {', '.join(get_args(Order))}, not {self.order!r}")
        if self.categories is not None and not self.categories:
            raise InputError(f"{self.order} needs a category, or all")

    @property
    def spec(self) -> str:
        """Such as ``mirror=NP+VP`` or ``head-final=all``."""
        return f"{self.order}={'all' if self.categories is None else '+'.join(self.categories)}"

    def apply(self, pcfg: PCFG) -> Changed:
        """Swap, and merge what meets.

        Raises:
            InputError: a category has no binary rule.
        """
        swapped = self._chosen(pcfg)
        if self.order != "mirror":
            swapped &= head_sides(pcfg) == (1 if self.order == "head-initial" else 0)
        wanted = pcfg.binary.astype(np.int64)
        wanted[swapped, 1:] = wanted[swapped, :0:-1]
        rules, place = np.unique(wanted, axis=0, return_inverse=True)
        place = place.ravel()
        logp = np.full(len(rules), -np.inf)
        np.logaddexp.at(logp, place, pcfg.binary_logp)
        result = replace(pcfg, binary=rules.astype(np.int32), binary_logp=np.minimum(logp, 0.0))
        target = locate(result, wanted, pcfg.unary.astype(np.int64), pcfg.lexical.astype(np.int64))
        details = {"rules_swapped": int(swapped.sum()), "rules_merged": len(wanted) - len(rules)}
        return Changed(result, RuleMap(target, swapped, result.n_rules), details)

    def _chosen(self, pcfg: PCFG) -> BoolArray:
        """Which binary rules belong to the categories, (R,)."""
        if self.categories is None:
            return np.ones(len(pcfg.binary), dtype=bool)
        of = categories(pcfg)
        branching = {of[parent] for parent in np.unique(pcfg.binary[:, 0]).tolist()}
        for name in self.categories:
            if name not in branching:
                what = "has no binary rule, so nothing to reorder" if name in of else "is not in the grammar"
                raise InputError(f"{self.order}: the category {name!r} {what}; {near(name, branching)}")
        inside = np.array([name in self.categories for name in of], dtype=bool)
        return np.asarray(inside[pcfg.binary[:, 0]])


def head_sides(pcfg: PCFG) -> NDArray[np.int64]:
    """Which child of each binary rule is its head, (R,): 0 the left one, 1 the right one."""
    heads = head_labels(pcfg)
    of = categories(pcfg)
    names = sorted({*heads, *of})
    number = {name: i for i, name in enumerate(names)}
    head = np.array([number[name] for name in heads], dtype=np.int64)
    own = np.array([number[name] for name in of], dtype=np.int64)
    parent, left, right = pcfg.binary.T
    triples, place = np.unique(np.column_stack([own[parent], head[left], head[right]]), axis=0, return_inverse=True)
    side = [head_index(names[a], [names[b], names[c]]) for a, b, c in triples.tolist()]
    return np.array(side, dtype=np.int64)[place.ravel()]


def head_labels(pcfg: PCFG) -> tuple[str, ...]:
    """Head label of each symbol, (S,): its category, or for an intermediate one that of its best derivation's head.

    The best derivation is the most probable one whose leaves are not intermediate. All of them are found together, by
    relaxation from the leaves; an intermediate symbol without any keeps its category.
    """
    of = categories(pcfg)
    inner = np.array([label.startswith(INTERMEDIATE) and label != INTERMEDIATE for label in pcfg.labels], dtype=bool)
    value, heads = np.where(inner, -np.inf, 0.0), list(of)
    kept = [inner[rules[:, 0]] for rules in (pcfg.binary, pcfg.unary)]
    binary, unary = pcfg.binary[kept[0]], pcfg.unary[kept[1]]
    logp = np.concatenate([pcfg.binary_logp[kept[0]], pcfg.unary_logp[kept[1]]])
    parents = np.concatenate([binary[:, 0], unary[:, 0]])
    children = [*binary[:, 1:].tolist(), *unary[:, 1:].tolist()]
    find = cache(head_index)
    for _ in range(int(inner.sum()) + 1):  # a best derivation has no symbol twice on a path
        score = logp + np.concatenate([value[binary[:, 1]] + value[binary[:, 2]], value[unary[:, 1]]])
        best = np.full(len(of), -np.inf)
        np.maximum.at(best, parents, score)
        better = best > value
        if not better.any():
            break
        before = tuple(heads)
        done: set[int] = set()
        for rule in np.flatnonzero(better[parents] & (score == best[parents])).tolist():
            parent = int(parents[rule])
            if parent not in done:
                done.add(parent)
                labels = tuple(before[child] for child in children[rule])
                heads[parent] = labels[find(of[parent], labels)]
        value = np.where(better, best, value)
    return tuple(heads)
