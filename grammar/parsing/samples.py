"""Trees of a sentence drawn from its posterior, and records of trees with their log probabilities."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from truesource.grammar.parsing.tree_scores import TreeScores
from truesource.grammar.support.errors import InputError
from truesource.grammar.surface import surface
from truesource.grammar.tree import Tree
from truesource.grammar.unknown import put_words

if TYPE_CHECKING:
    import numpy as np

    from truesource.grammar.inference.posterior import Posterior
    from truesource.grammar.pcfg import PCFG


def posterior_samples(found: Posterior, k: int, rng: np.random.Generator) -> list[tuple[Tree, float]]:
    """Trees drawn from the posterior, independently: the same tree may come again.

    Args:
        found: the posterior, of the whole chart: chains of a pruned one may pass through what was left out.
        k: how many trees.
        rng: decides them.

    Returns:
        Trees with treebank labels, not binarised, and ln P(tree | sentence), nats: the sum over all derivations that
        show the tree, over the probability of the sentence.

    Raises:
        InputError: k is below 1, or the label of the start symbol begins with ``@``.
    """
    if k < 1:
        raise InputError(f"the number of samples is 1 or more, not {k}")
    scores = TreeScores(found.pcfg)
    trees = [surface(found.sample(rng), found.pcfg) for _ in range(k)]
    return [(tree, scores.log_p(tree) - found.log_prob) for tree in trees]


class ScoredTree(NamedTuple):
    """A tree of a sentence, by what it was chosen, and how probable it is."""

    tree: Tree  #: treebank labels, not binarised
    score: float  #: nats, of the method that chose it
    log_p: float  #: ln P(tree, sentence), nats: all derivations that show the tree

    def record(self) -> dict[str, str | float]:
        """As a JSON object: the tree as Penn bracketing, brackets inside words and labels escaped, and both numbers."""
        return {"tree": str(self.tree), "score": self.score, "log_p": self.log_p}


def scored_trees(pcfg: PCFG, trees: Iterable[tuple[Tree, float]], sentence: Sequence[str]) -> list[ScoredTree]:
    """Trees with their exact log probabilities, over the sentence's own words.

    Args:
        pcfg: the grammar.
        trees: treebank trees over the words as the grammar reads them, and scores in nats.
        sentence: the words that are to stand in the trees.

    Raises:
        InputError: a tree has more or fewer words than the sentence.
    """
    scores = TreeScores(pcfg)
    return [ScoredTree(put_words(tree, sentence), score, scores.log_p(tree)) for tree, score in trees]
