"""All coarse trees of a sentence, and the probabilities of their parts, for tiny grammars."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from functools import cache

from reference_posterior import Reference, binary, bottoms, nodes, unary

from truesource.grammar.pcfg import PCFG
from truesource.grammar.tree import Tree


class Brute:
    """Probabilities of coarse rules, tags and labels, each from its own exclusion, and all coarse trees."""

    def __init__(self, pcfg: PCFG, sentence: list[str]) -> None:
        self.pcfg, self.sentence, self.n = pcfg, sentence, len(sentence)
        self.reference = Reference(pcfg, sentence)
        self.labels = tuple(dict.fromkeys(pcfg.labels))
        self.states = {label: [a for a, own in enumerate(pcfg.labels) if own == label] for label in self.labels}
        self.rule = cache(self._rule)
        self.label = cache(lambda i, j, x: self.reference.occurs((i, j), nodes(self.states[x])))
        self.tag = cache(lambda i, x: self.reference.occurs((i, i + 1), bottoms(self.states[x])))
        self.step = cache(lambda i, j, x, y: self.reference.occurs((i, j), unary(self.states[x], self.states[y])))

    def _rule(self, i: int, k: int, j: int, parent: str, left: str, right: str) -> float:
        wanted = (parent, left, right)
        rules = [r for r, abc in enumerate(self.pcfg.binary) if tuple(self.pcfg.labels[x] for x in abc) == wanted]
        return self.reference.occurs((i, j), binary(k, rules)) if rules else 0.0

    def trees(self, i: int, j: int, label: str, above: tuple[str, ...] = ()) -> Iterator[tuple[Tree, float]]:
        """Every coarse tree that may stand there, and its product, chains without a label twice."""
        above = (*above, label)
        if j - i == 1 and self.tag(i, label) > 1e-13:
            yield Tree(label, (self.sentence[i],)), self.tag(i, label)
        for k, left, right in itertools.product(range(i + 1, j), self.labels, self.labels):
            p = self.rule(i, k, j, label, left, right)
            if p > 1e-13:
                for (x, p_x), (y, p_y) in itertools.product(self.trees(i, k, left), self.trees(k, j, right)):
                    yield Tree(label, (x, y)), p * p_x * p_y
        for child in self.labels:
            if child not in above and self.step(i, j, label, child) > 1e-13:
                for tree, p in self.trees(i, j, child, above):
                    yield Tree(label, (tree,)), p * self.step(i, j, label, child)

    def product(self, tree: Tree, i: int = 0) -> float:
        """The product of one tree."""
        first, j = tree.children[0], i + len(tree.leaves())
        if isinstance(first, str):
            return self.tag(i, tree.label)
        if len(tree.children) == 1:
            return self.step(i, j, tree.label, first.label) * self.product(first, i)
        second = tree.children[1]
        assert isinstance(second, Tree)
        k = i + len(first.leaves())
        here = self.rule(i, k, j, tree.label, first.label, second.label)
        return here * self.product(first, i) * self.product(second, k)

    def bracketings(self, i: int, j: int) -> Iterator[list[tuple[int, int]]]:
        """Every binary bracketing, as its spans of two tokens or more."""
        if j - i == 1:
            yield []
        for k in range(i + 1, j):
            for left, right in itertools.product(self.bracketings(i, k), self.bracketings(k, j)):
                yield [(i, j), *left, *right]

    def gain(self, i: int, j: int) -> float:
        """Most that a non-empty set of labels over a span brings: right labels less wrong ones, halved."""
        probs = [self.label(i, j, label) for label in self.labels]
        if max(probs) < 1e-13:
            return -math.inf
        subsets = itertools.product((0, 1), repeat=len(probs))
        return max(sum(p - 0.5 for p, taken in zip(probs, s, strict=True) if taken) for s in subsets if any(s))


def shown(tree: Tree) -> Tree:
    """The treebank tree: nodes labelled ``@`` above other nodes give way to their children."""

    def parts(node: Tree) -> list[Tree]:
        first = node.children[0]
        if isinstance(first, str):
            return [node]
        below = [part for child in node.children if isinstance(child, Tree) for part in parts(child)]
        return below if node.label.startswith("@") else [Tree(node.label, tuple(below))]

    return parts(tree)[0]
