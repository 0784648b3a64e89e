"""The maximum-likelihood grammar of a treebank: each rule as often as it stands there."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from truesource.grammar.estimate.rules import RuleTable, binary_trees
from truesource.grammar.pcfg import PCFG
from truesource.grammar.tree import Tree


def relative_frequency(trees: Iterable[Tree], *, start: str | None = None) -> PCFG:
    """Estimate a grammar by relative frequencies: ``p(A -> rhs) = count(A -> rhs) / count(A)``.

    Trees with a node of more than two children are binarised by `truesource.grammar.treebank.Binarisation` first;
    ``meta["binarised_trees"]`` says how many were. Such an estimate is always consistent (total mass
    one; Chi and Geman 1998).

    Args:
        trees: a treebank, or any trees; all with the same root label.
        start: the root label to insist on; by default the one the trees have.

    Returns:
        The grammar; symbols are the labels of the (binarised) trees.

    Raises:
        InputError: there are no trees, their root labels differ or are not ``start``, or a node is empty or
            mixes words and subtrees.
    """
    binarised, changed = binary_trees(trees)
    table = RuleTable.from_trees(binarised, start=start)
    rules, logp = table.rules, np.log(table.relative_frequencies)
    lexical, binary = rules[:, 3] >= 0, rules[:, 2] >= 0
    unary = ~lexical & ~binary
    meta = {
        "estimator": "relative_frequency",
        "trees": table.n_trees,
        "tokens": table.n_tokens,
        "binarised_trees": changed,
        "log_likelihood_per_token": float(table.counts @ logp) / table.n_tokens,
    }
    return PCFG(
        symbols=table.symbols,
        terminals=table.words,
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
