"""From derivations of a grammar to the trees a treebank would show."""

from __future__ import annotations

from truesource.grammar.rules import GrammarRules
from truesource.grammar.tree import Tree
from truesource.grammar.treebank.binarise import splice
from truesource.grammar.treebank.traverse import fold


def surface(tree: Tree, pcfg: GrammarRules, *, binarised: bool = False) -> Tree:
    """Project symbols to treebank labels and splice out the nodes that binarisation made.

    Args:
        tree: a derivation, nodes named by the grammar's symbols.
        pcfg: the grammar, for its labels.
        binarised: keep the ``@`` nodes.
    """
    labels, ids = pcfg.labels, pcfg.symbol_ids

    def relabel(node: Tree, children: list[Tree]) -> Tree:
        return Tree(labels[ids[node.label]], tuple(children) or node.children)

    projected = fold(tree, relabel)
    return projected if binarised else splice(projected)
