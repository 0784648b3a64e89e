"""The nodes of a treebank that the binary rules of a grammar belong to, and which of their children are heads.

A long node is a chain of binary rules, most of them below intermediate ``@`` symbols that other nodes share. A rule
belongs to the most probable node that it occurs in: found by relaxation from the leaves (the best expansion of each
intermediate symbol) and from the nodes (its best context), so what a rule of grammar text says is found as it stands.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import BoolArray, FloatArray, IntArray
from truesource.grammar.treebank.binarise import INTERMEDIATE
from truesource.grammar.treebank.head_rules import HeadRules, written_label
from truesource.grammar.variants.categories import categories

Names = tuple[str, ...]


@dataclass(frozen=True)
class LocalTree:
    """A node and its children: their categories, and where the children of one of its rules part."""

    label: str
    children: Names
    parting: int  #: children from here on are below, or right of, the right child of the rule

    def text(self, head: int | None = None) -> str:
        """Such as ``VP -> *V NP``, as `HeadRules` reads it."""
        children = [("*" if i == head else "") + written_label(name) for i, name in enumerate(self.children)]
        return f"{written_label(self.label)} -> {' '.join(children)}"


@dataclass(frozen=True, eq=False)
class NodeRules:
    """The node of each binary rule of a grammar."""

    pcfg: PCFG

    @cached_property
    def _of(self) -> Names:
        return categories(self.pcfg)

    @cached_property
    def _inner(self) -> BoolArray:
        labels = self.pcfg.labels
        return np.array([label.startswith(INTERMEDIATE) and label != INTERMEDIATE for label in labels], dtype=bool)

    @cached_property
    def _expansions(self) -> tuple[FloatArray, list[Names]]:
        """Log probability of the best expansion of every symbol into nodes, (S,), and its categories."""
        pcfg, inner = self.pcfg, self._inner
        value = np.where(inner, -np.inf, 0.0)
        spread: list[Names] = [(name,) for name in self._of]
        kept = [inner[rules[:, 0]] for rules in (pcfg.binary, pcfg.unary)]
        binary, unary = pcfg.binary[kept[0]], pcfg.unary[kept[1]]
        parents = np.concatenate([binary[:, 0], unary[:, 0]])
        children = [*binary[:, 1:].tolist(), *unary[:, 1:].tolist()]
        logp = np.concatenate([pcfg.binary_logp[kept[0]], pcfg.unary_logp[kept[1]]])
        for _ in range(int(inner.sum()) + 1):  # a best expansion has no symbol twice on a path
            score = logp + np.concatenate([value[binary[:, 1]] + value[binary[:, 2]], value[unary[:, 1]]])
            best = np.full(len(value), -np.inf)
            np.maximum.at(best, parents, score)
            better = best > value
            if not better.any():
                break
            before = list(spread)
            done: set[int] = set()
            for rule in np.flatnonzero(better[parents] & (score == best[parents])).tolist():
                parent = int(parents[rule])
                if parent not in done:
                    done.add(parent)
                    spread[parent] = tuple(name for child in children[rule] for name in before[child])
            value = np.where(better, best, value)
        return value, spread

    @cached_property
    def _contexts(self) -> list[tuple[Names, Names]]:
        """Categories left and right of every intermediate symbol in the most probable node with it; none of others."""
        pcfg, inner = self.pcfg, self._inner
        inside, spread = self._expansions
        value = np.where(inner, -np.inf, 0.0)
        found: list[tuple[Names, Names]] = [((), ()) for _ in pcfg.symbols]
        steps = _steps(pcfg, inner)
        for _ in range(int(inner.sum()) + 1):
            before, old, changed = list(found), value.copy(), False
            for parent, child, left, right, logp in steps:
                beside = left if left >= 0 else right
                score = old[parent] + logp + (inside[beside] if beside >= 0 else 0.0)
                if score > value[child]:
                    value[child], changed = score, True
                    context = before[parent]
                    found[child] = (
                        context[0] + (spread[left] if left >= 0 else ()),
                        (spread[right] if right >= 0 else ()) + context[1],
                    )
            if not changed:
                break
        return found

    @cached_property
    def nodes(self) -> tuple[tuple[LocalTree, ...], IntArray]:
        """The different nodes, and the number of that of every binary rule, (R,)."""
        spread, context = self._expansions[1], self._contexts
        numbers: dict[LocalTree, int] = {}
        place: dict[tuple[str, tuple[Names, Names], Names, Names], int] = {}
        of_rule = np.empty(len(self.pcfg.binary), dtype=np.int64)
        for rule, (parent, left, right) in enumerate(self.pcfg.binary.tolist()):
            key = self._of[parent], context[parent], spread[left], spread[right]
            if key not in place:
                before, after = context[parent]
                children = before + spread[left] + spread[right] + after
                node = LocalTree(self._of[parent], children, len(before) + len(spread[left]))
                place[key] = numbers.setdefault(node, len(numbers))
            of_rule[rule] = place[key]
        return tuple(numbers), of_rule

    def heads(self, rules: HeadRules) -> list[int | None]:
        """Position of the head among the children of each of the different nodes; None where it is not known."""
        return [rules.find(node.label, node.children) for node in self.nodes[0]]

    def whole(self) -> BoolArray:
        """Which binary rules are the upper ones of their node, (R,)."""
        return np.asarray(~self._inner[self.pcfg.binary[:, 0]])


def _steps(pcfg: PCFG, inner: BoolArray) -> Sequence[tuple[int, int, int, int, float]]:
    """(Parent, intermediate child, sibling left of it, sibling right of it, log probability); -1 for no sibling."""
    found: list[tuple[int, int, int, int, float]] = []
    for (parent, left, right), logp in zip(pcfg.binary.tolist(), pcfg.binary_logp.tolist(), strict=True):
        if inner[left]:
            found.append((parent, left, -1, right, logp))
        if inner[right]:
            found.append((parent, right, left, -1, logp))
    for (parent, child), logp in zip(pcfg.unary.tolist(), pcfg.unary_logp.tolist(), strict=True):
        if inner[child]:
            found.append((parent, child, -1, -1, logp))
    return found
