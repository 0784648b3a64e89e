"""The rules of a treebank with their counts, and its maximum-likelihood grammar."""

from __future__ import annotations

import reprlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import FloatArray, Int32Array, IntArray
from truesource.grammar.support.errors import InputError
from truesource.grammar.tree import Tree

#: ``(A, B, C)`` for A -> B C, ``(A, B)`` for A -> B, ``(A, None, w)`` for the preterminal A over the word w
RuleKey = tuple[str, str] | tuple[str, str | None, str]


def rule_key(node: Tree) -> RuleKey:
    """Return the base rule at the top of a binarised tree.

    Raises:
        InputError: the node has no children, more than two, or a word next to another child.
    """
    children = node.children
    if len(children) == 1:
        child = children[0]
        return (node.label, None, child) if isinstance(child, str) else (node.label, child.label)
    if len(children) == 2:
        left, right = children
        if isinstance(left, Tree) and isinstance(right, Tree):
            return (node.label, left.label, right.label)
        raise InputError(f"a word is next to other children of {node.label!r}; give each word a preterminal")
    if not children:
        raise InputError(f"a node {node.label!r} has no children; remove empty nodes first")
    raise InputError(f"a node {node.label!r} has {len(children)} children; binarise the trees first")


class BinaryTrees:
    """The trees one after another; trees with nodes of more than two children are binarised by default."""

    def __init__(self, trees: Iterable[Tree]) -> None:
        self._trees = trees
        self.changed = 0  #: number of trees binarised so far

    def __iter__(self) -> Iterator[Tree]:
        from truesource.grammar.treebank import Binarisation

        binarise = Binarisation().binarise
        for tree in self._trees:
            if not isinstance(tree, Tree):
                raise InputError(f"expecting trees, got {reprlib.repr(tree)} among them; Treebank.read reads files")
            wide = any(len(node.children) > 2 for node in tree.subtrees())
            self.changed += wide
            yield binarise(tree) if wide else tree


def _root_label(labels: Iterable[str], start: str | None) -> str:
    """Return the label of all roots."""
    roots = sorted(labels)
    if not roots:
        raise InputError("there are no trees to estimate a grammar from; provide at least one")
    if len(roots) > 1:
        listed = ", ".join(roots[:3]) + (", ..." if len(roots) > 3 else "")
        raise InputError(f"the trees have {len(roots)} root labels ({listed}); put one root above them all")
    if start is not None and roots[0] != start:
        raise InputError(f"the trees have the root label {roots[0]!r}, not the start symbol {start!r}")
    return roots[0]


@dataclass(frozen=True, eq=False)
class RuleTable:
    """The base rules of a treebank, numbered: binary first, then unary, then lexical, each sorted.

    Symbols are numbered in alphabetical order after the start symbol, 0; words in alphabetical order. The lexical rules
    of one symbol are adjacent.
    """

    symbols: tuple[str, ...]  #: (K,) treebank labels, the start symbol first
    words: tuple[str, ...]  #: (V,)
    rules: Int32Array  #: (R, 4) parent, left child, right child, word; -1 for none
    counts: IntArray  #: (R,) occurrences in the treebank, all positive
    n_trees: int
    n_tokens: int

    @classmethod
    def from_trees(cls, trees: Iterable[Tree], *, start: str | None = None) -> RuleTable:
        """Count the rules of binarised trees.

        Raises:
            InputError: there are no trees, their root labels differ (or are not ``start``), or a node is not binarised.
        """
        counter: Counter[RuleKey] = Counter()
        roots: Counter[str] = Counter()
        for tree in trees:
            counter.update(map(rule_key, tree.subtrees()))
            roots[tree.label] += 1
        return cls.from_counts(counter, roots, start=start)

    @classmethod
    def from_counts(
        cls, counter: Mapping[RuleKey, int], roots: Mapping[str, int], *, start: str | None = None
    ) -> RuleTable:
        """Return the rules of trees from counts of their rules and root labels; errors as in `from_trees`."""
        start, n_trees = _root_label(roots, start), sum(roots.values())
        labels = {key[0] for key in counter}
        symbols = (start, *sorted(labels - {start}))
        words = tuple(sorted(key[2] for key in counter if len(key) == 3 and key[1] is None))
        words = tuple(dict.fromkeys(words))
        symbol_id = {label: i for i, label in enumerate(symbols)}
        word_id = {word: i for i, word in enumerate(words)}
        rows: list[tuple[int, int, int, int, int, int]] = []
        for key, count in counter.items():
            parent = symbol_id[key[0]]
            if len(key) == 2:
                rows.append((1, parent, symbol_id[key[1]], -1, -1, count))
            elif key[1] is None:
                rows.append((2, parent, -1, -1, word_id[key[2]], count))
            else:
                rows.append((0, parent, symbol_id[key[1]], symbol_id[key[2]], -1, count))
        table = np.array(sorted(rows), dtype=np.int64)
        tokens = int(table[table[:, 4] >= 0, 5].sum())
        return cls(symbols, words, table[:, 1:5].astype(np.int32), table[:, 5].copy(), n_trees, tokens)

    @property
    def n_phrasal(self) -> int:
        """Number of rules that are not lexical."""
        return int(np.count_nonzero(self.rules[:, 3] < 0))

    @property
    def word_counts(self) -> dict[str, int]:
        """Occurrences of each word."""
        lexical = self.rules[:, 3] >= 0
        counts = np.zeros(len(self.words), dtype=np.int64)
        np.add.at(counts, self.rules[lexical, 3], self.counts[lexical])
        return dict(zip(self.words, counts.tolist(), strict=True))

    @cached_property
    def ids(self) -> dict[RuleKey, int]:
        """Number of each rule."""
        result: dict[RuleKey, int] = {}
        for i, (parent, left, right, word) in enumerate(self.rules.tolist()):
            name = self.symbols[parent]
            if word >= 0:
                result[name, None, self.words[word]] = i
            elif right >= 0:
                result[name, self.symbols[left], self.symbols[right]] = i
            else:
                result[name, self.symbols[left]] = i
        return result

    @property
    def relative_frequencies(self) -> FloatArray:
        """Probability of each rule given its parent, (R,)."""
        parents = self.rules[:, 0]
        totals = np.bincount(parents, weights=self.counts, minlength=len(self.symbols))
        return np.asarray(self.counts / totals[parents], dtype=np.float64)


def relative_frequency(trees: Iterable[Tree], *, start: str | None = None) -> PCFG:
    """Estimate a grammar by relative frequencies: ``p(A -> rhs) = count(A -> rhs) / count(A)``.

    Trees with a node of more than two children are binarised by `truesource.grammar.treebank.Binarisation` first;
    ``meta["binarised_trees"]`` counts them. The estimate is always consistent (total mass one; Chi and Geman 1998).

    Args:
        trees: a treebank, or any trees; all with the same root label.
        start: the required root label; by default the one the trees have.

    Returns:
        The grammar; symbols are the labels of the (binarised) trees.

    Raises:
        InputError: there are no trees, their root labels differ or are not ``start``, or a node is empty or
            mixes words and subtrees.
    """
    binarised = BinaryTrees(trees)
    table = RuleTable.from_trees(binarised, start=start)
    rules, logp = table.rules, np.log(table.relative_frequencies)
    lexical, binary = rules[:, 3] >= 0, rules[:, 2] >= 0
    unary = ~lexical & ~binary
    meta = {
        "estimator": "relative_frequency",
        "trees": table.n_trees,
        "tokens": table.n_tokens,
        "binarised_trees": binarised.changed,
        "log_likelihood_per_token": float(table.counts @ logp) / table.n_tokens,
    }
    return PCFG(
        symbols=table.symbols,
        vocabulary=table.words,
        start=0,
        binary=rules[binary, :3],
        binary_logp=logp[binary],
        unary=rules[unary, :2],
        unary_logp=logp[unary],
        lexical=rules[lexical][:, [0, 3]],
        lexical_logp=logp[lexical],
        labels=table.symbols,
        meta=meta,
    )
