"""Switch the order of children, category by category.

The switches are those of White and Cotterell (2021), "Examining the Inductive Bias of Neural Language Models with
Artificial Languages", over a binarised grammar: reversing every binary rule of a category and of its intermediate
``@`` nodes reverses the children of its nodes in the treebank.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

import numpy as np

from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import BoolArray
from truesource.grammar.support.errors import InputError
from truesource.grammar.treebank.head_rules import HeadRules
from truesource.grammar.variants.categories import categories, near
from truesource.grammar.variants.change import Change, Changed
from truesource.grammar.variants.node_rules import NodeRules
from truesource.grammar.variants.rule_map import RuleMap, locate

Order = Literal["mirror", "head-initial", "head-final"]
EXAMPLES = 12  #: nodes named in a description, those of the most probable rules
REFUSED = 6  #: nodes without a known head that a refusal names


@dataclass(frozen=True)
class Branching(Change):
    """Swap the children of binary rules of some categories.

    ``mirror`` swaps every rule; ``head-initial`` and ``head-final`` those whose head child is not the left, or not the
    right one. Rules of intermediate nodes of a category go with it: the head is looked for among the children of the
    node in the treebank (`grammar.variants.node_rules`), and a rule that does not hold it is swapped as if it lay on
    the side where it is, so that the children keep their distance from the head. Punctuation is a child like any other.

    Heads are those given here, then those of the grammar (``%head``), then those of `grammar.treebank.heads`. Where
    none of them answers, the change is refused: a guess would make another language than its name says.

    Where a swapped rule meets one that stood there, they become one rule and their probabilities add.

    The distribution of sentence lengths stays. Without merged rules derivations correspond one to one, and their
    entropy stays too; merging lowers it.

    Raises:
        InputError: an unknown order, or no category.
    """

    order: Order
    categories: tuple[str, ...] | None = None  #: treebank labels; None for all
    heads: HeadRules = field(default_factory=HeadRules)  #: before those of the grammar

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

        The details name nodes whose children change places (``swapped``) and others of the categories (``kept``), those
        of the most probable rules, with a star at each head; ``nodes_swapped`` and ``nodes_kept`` count them.

        Raises:
            InputError: a category has no binary rule, or the head of a rule is not known.
        """
        chosen = self._chosen(pcfg)
        rules = NodeRules(pcfg)
        nodes, of_rule = rules.nodes
        heads: Sequence[int | None] = [None] * len(nodes)
        swapped = chosen
        if self.order != "mirror":
            heads = rules.heads(self.heads.before(HeadRules.of(pcfg)))
            self._require_heads(rules, heads, chosen)
            right = [head is not None and head >= node.parting for node, head in zip(nodes, heads, strict=True)]
            swapped = chosen & (np.array(right, dtype=bool)[of_rule] == (self.order == "head-initial"))
        wanted = pcfg.binary.astype(np.int64)
        wanted[swapped, 1:] = wanted[swapped, :0:-1]
        unique, place = np.unique(wanted, axis=0, return_inverse=True)
        place = place.ravel()
        logp = np.full(len(unique), -np.inf)
        np.logaddexp.at(logp, place, pcfg.binary_logp)
        result = replace(pcfg, binary=unique.astype(np.int32), binary_logp=np.minimum(logp, 0.0))
        target = locate(result, wanted, pcfg.unary.astype(np.int64), pcfg.lexical.astype(np.int64))
        details = {
            "rules_swapped": int(swapped.sum()),
            "rules_merged": len(wanted) - len(unique),
            **_named(self.order, rules, heads, chosen),
        }
        return Changed(result, RuleMap(target, swapped, result.n_rules), details)

    def _require_heads(self, rules: NodeRules, heads: Sequence[int | None], chosen: BoolArray) -> None:
        nodes, of_rule = rules.nodes
        unknown = list(dict.fromkeys(nodes[i].text() for i in np.unique(of_rule[chosen]) if heads[i] is None))
        if not unknown:
            return
        first = next(nodes[i] for i in np.unique(of_rule[chosen]) if heads[i] is None)
        more = "" if len(unknown) <= REFUSED else f" and {len(unknown) - REFUSED} more"
        raise InputError(
            f"{self.order}: the head is not known of {'; '.join(unknown[:REFUSED])}{more}; say which child it is, as in"
            f" %head {first.text(0)} or %head {first.text(len(first.children) - 1)}, in the grammar text or in a"
            " file for --heads"
        )

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


def _named(order: Order, rules: NodeRules, heads: Sequence[int | None], chosen: BoolArray) -> dict[str, Any]:
    """Counts and examples of the nodes whose children change places, and of those whose children do not."""
    nodes, of_rule = rules.nodes
    whole = chosen & rules.whole()
    weight = np.bincount(of_rule[whole], weights=np.exp(rules.pcfg.binary_logp[whole]), minlength=len(nodes))
    moved: dict[str, None] = {}
    kept: dict[str, None] = {}
    for i in np.argsort(-weight, kind="stable").tolist():
        if weight[i] > 0.0:
            place = {"mirror": None, "head-initial": 0, "head-final": len(nodes[i].children) - 1}[order]
            (kept if heads[i] is not None and heads[i] == place else moved)[nodes[i].text(heads[i])] = None
    return {
        "nodes_swapped": len(moved),
        "nodes_kept": len(kept),
        "swapped": list(moved)[:EXAMPLES],
        "kept": list(kept)[:EXAMPLES],
    }
