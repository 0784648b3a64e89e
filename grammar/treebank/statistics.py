"""Counts over the trees of a treebank."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from truesource.grammar.support.arrays import IntArray
from truesource.grammar.support.printable import counted
from truesource.grammar.tree import Tree


@dataclass(frozen=True, eq=False)
class TreebankStatistics:
    """Counts over the trees of a treebank. Heights are in nodes, words included."""

    trees: int  #: number of accepted trees
    tokens: int  #: words
    words: Mapping[str, int]  #: occurrences of each word
    lengths: IntArray  #: (longest + 1,) number of trees of each length in words; entry 0 is 0
    phrasal: Mapping[str, int]  #: nodes of each label above other nodes, most frequent first
    preterminal: Mapping[str, int]  #: nodes of each label above a word, most frequent first
    phrasal_rules: int  #: distinct ``X -> Y Z ...``
    lexical_rules: int  #: distinct ``X -> word``
    mean_height: float
    max_height: int
    unary_share: float  #: share of the phrasal nodes with one child, 0 to 1
    binary_share: float  #: share with two children
    nary_share: float  #: share with three or more children
    refused: Mapping[str, int]  #: trees refused, by reason

    @property
    def types(self) -> int:
        """Different words."""
        return len(self.words)

    @property
    def mean_length(self) -> float:
        """Words per tree."""
        return self.tokens / self.trees

    def as_dict(self) -> dict[str, int | float]:
        """Return the scalar numbers, by name; refusals as ``refused: reason``."""
        numbers: dict[str, int | float] = {
            "trees": self.trees,
            "tokens": self.tokens,
            "types": self.types,
            "mean_length": self.mean_length,
            "max_length": len(self.lengths) - 1,
            "phrasal_labels": len(self.phrasal),
            "preterminal_labels": len(self.preterminal),
            "phrasal_rules": self.phrasal_rules,
            "lexical_rules": self.lexical_rules,
            "mean_height": self.mean_height,
            "max_height": self.max_height,
            "unary_share": self.unary_share,
            "binary_share": self.binary_share,
            "nary_share": self.nary_share,
        }
        return numbers | {f"refused: {reason}": count for reason, count in self.refused.items()}

    def as_records(self) -> list[dict[str, str | int | float]]:
        """Return the scalar numbers as records with ``name`` and ``value``, for JSON and tables."""
        return [{"name": name, "value": value} for name, value in self.as_dict().items()]

    def __str__(self) -> str:
        """Return a few readable lines."""
        most = [
            ", ".join(f"{x} {n:,}" for x, n in list(counts.items())[:8]) for counts in (self.phrasal, self.preterminal)
        ]
        refused = ", ".join(f"{count:,} ({reason})" for reason, count in self.refused.items()) or "none"
        return "\n".join(
            [
                f"{counted(self.trees, 'tree')}, {counted(self.tokens, 'word')}, {self.types:,} types",
                f"length     {self.mean_length:.2f} words on average, {len(self.lengths) - 1} at most",
                f"height     {self.mean_height:.2f} on average, {self.max_height} at most",
                f"phrases    {len(self.phrasal)} labels: {most[0]}",
                f"words      {len(self.preterminal)} labels: {most[1]}",
                f"rules      {self.phrasal_rules:,} phrasal, {self.lexical_rules:,} lexical",
                f"children   one {self.unary_share:.1%}, two {self.binary_share:.1%}, more {self.nary_share:.1%}",
                f"refused    {refused}",
            ]
        )


def count(trees: Iterable[Tree], refused: Iterable[str] = ()) -> TreebankStatistics:
    """Count over ``trees`` (at least one); ``refused`` holds the reason of every refused tree."""
    phrasal_rules: Counter[tuple[str, ...]] = Counter()
    lexical_rules: Counter[tuple[str, str]] = Counter()
    lengths: list[int] = []
    heights: list[int] = []
    for tree in trees:
        n_words = 0
        for node in tree.subtrees():
            if isinstance(node.children[0], str):
                n_words += len(node.children)
                for word in node.children:
                    lexical_rules[node.label, str(word)] += 1
            else:
                phrasal_rules[(node.label, *(c.label for c in node.children if isinstance(c, Tree)))] += 1
        lengths.append(n_words)
        heights.append(tree.height())
    phrasal: Counter[str] = Counter()
    arity: Counter[int] = Counter()
    for rule, number in phrasal_rules.items():
        phrasal[rule[0]] += number
        arity[min(len(rule) - 1, 3)] += number
    preterminal: Counter[str] = Counter()
    words: Counter[str] = Counter()
    for (label, word), number in lexical_rules.items():
        preterminal[label] += number
        words[word] += number
    nodes = max(phrasal.total(), 1)
    return TreebankStatistics(
        trees=len(lengths),
        tokens=sum(lengths),
        words=words,
        lengths=np.bincount(lengths).astype(np.int64),
        phrasal=dict(phrasal.most_common()),
        preterminal=dict(preterminal.most_common()),
        phrasal_rules=len(phrasal_rules),
        lexical_rules=len(lexical_rules),
        mean_height=float(np.mean(heights)),
        max_height=max(heights),
        unary_share=arity[1] / nodes,
        binary_share=arity[2] / nodes,
        nary_share=arity[3] / nodes,
        refused=dict(Counter(refused).most_common()),
    )
