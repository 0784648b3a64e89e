"""Changes of structure: rules removed, and the order of children switched, category by category.

The switches follow White and Cotterell (2021), "Examining the Inductive Bias of Neural Language Models with Artificial
Languages", over a binarised grammar: reversing every binary rule of a category and of its intermediate ``@`` nodes
reverses the children of its nodes in the treebank.

A long node is a chain of binary rules, most of them below intermediate ``@`` symbols that other nodes share. A rule
belongs to the most probable node in which it occurs: found by relaxation from the leaves (the best expansion of each
intermediate symbol) and from the nodes (its best context), so rules of grammar text are recovered unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cached_property
from typing import Literal, get_args

import numpy as np

from truesource.grammar.pcfg import PCFG
from truesource.grammar.restrict import restrict
from truesource.grammar.support.arrays import BoolArray, FloatArray, IntArray
from truesource.grammar.support.errors import InputError
from truesource.grammar.treebank.binarise import INTERMEDIATE, Binarisation, category
from truesource.grammar.treebank.head_rules import HeadRules, written_label
from truesource.grammar.variants.change import Change, ChangeResult, RuleMap, locate, require_ending, rule_name

EXAMPLES = 12  #: most nodes in a description, by the probability of their rules
REFUSED = 6  #: most nodes without a known head in a refusal
ANY = "*"  #: any symbol in a pattern
_COARSE = Binarisation(horizontal=1).coarse


def categories(pcfg: PCFG) -> tuple[str, ...]:
    """Return the category of every symbol, (S,), from ``PCFG.labels``; substates and intermediate nodes share one."""
    return tuple(category(label) for label in pcfg.labels)


def near(name: str, names: Iterable[str], most: int = 4) -> str:
    """Return a clause that lists names: similar ones to ``name``, else the first ones in order."""
    every = sorted(set(names))
    alike = get_close_matches(name, every, most, 0.5) or get_close_matches(name.upper(), every, most, 0.5)
    if alike:
        return f"near: {', '.join(alike)}"
    listed = ", ".join(every[: 2 * most]) or "none"
    return f"known: {listed}{' ...' if len(every) > 2 * most else ''}"


Names = tuple[str, ...]


@dataclass(frozen=True)
class LocalTree:
    """A node and its children: their categories, and the split of the children by one of its rules."""

    label: str
    children: Names
    parting: int  #: first child below, or right of, the right child of the rule

    def text(self, head: int | None = None) -> str:
        """Return text such as ``VP -> *V NP``, as `HeadRules` reads it."""
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
        masks = [inner[rules[:, 0]] for rules in (pcfg.binary, pcfg.unary)]
        binary, unary = pcfg.binary[masks[0]], pcfg.unary[masks[1]]
        parents = np.concatenate([binary[:, 0], unary[:, 0]])
        children = [*binary[:, 1:].tolist(), *unary[:, 1:].tolist()]
        logp = np.concatenate([pcfg.binary_logp[masks[0]], pcfg.unary_logp[masks[1]]])
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
        """Categories left and right of every intermediate symbol in its most probable node; none for others."""
        pcfg, inner = self.pcfg, self._inner
        inside, spread = self._expansions
        value = np.where(inner, -np.inf, 0.0)
        result: list[tuple[Names, Names]] = [((), ()) for _ in pcfg.symbols]
        steps = _steps(pcfg, inner)
        for _ in range(int(inner.sum()) + 1):
            before, old, changed = list(result), value.copy(), False
            for parent, child, left, right, logp in steps:
                beside = left if left >= 0 else right
                score = old[parent] + logp + (inside[beside] if beside >= 0 else 0.0)
                if score > value[child]:
                    value[child], changed = score, True
                    context = before[parent]
                    result[child] = (
                        context[0] + (spread[left] if left >= 0 else ()),
                        (spread[right] if right >= 0 else ()) + context[1],
                    )
            if not changed:
                break
        return result

    @cached_property
    def nodes(self) -> tuple[tuple[LocalTree, ...], IntArray]:
        """The distinct nodes, and the number of each binary rule's node, (R,)."""
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
        """Return the position of the head among the children of each distinct node; None if unknown."""
        return [rules.find(node.label, node.children) for node in self.nodes[0]]

    def whole(self) -> BoolArray:
        """Return which binary rules are the top ones of their node, (R,)."""
        return np.asarray(~self._inner[self.pcfg.binary[:, 0]])


def _steps(pcfg: PCFG, inner: BoolArray) -> Sequence[tuple[int, int, int, int, float]]:
    """Return (parent, intermediate child, sibling to its left, sibling to its right, log p); -1 for no sibling."""
    result: list[tuple[int, int, int, int, float]] = []
    for (parent, left, right), logp in zip(pcfg.binary.tolist(), pcfg.binary_logp.tolist(), strict=True):
        if inner[left]:
            result.append((parent, left, -1, right, logp))
        if inner[right]:
            result.append((parent, right, left, -1, logp))
    for (parent, child), logp in zip(pcfg.unary.tolist(), pcfg.unary_logp.tolist(), strict=True):
        if inner[child]:
            result.append((parent, child, -1, -1, logp))
    return result


Order = Literal["mirror", "head-initial", "head-final"]


@dataclass(frozen=True)
class Branching(Change):
    """Swap the children of binary rules of some categories.

    ``mirror`` swaps every rule; ``head-initial`` and ``head-final`` swap rules whose head child is not the left, or not
    the right one. Rules of intermediate nodes of a category are included: the head is searched among the children of
    the node in the treebank (`grammar.variants.structure`), and a rule without it is swapped as if it were on the side
    of the head, so that the children keep their distance from the head. Punctuation is a child like any other.

    Heads are first those given here, then those in the grammar (``%head``), then those in `grammar.treebank.binarise`.
    If none decides, the change is refused: a guess would make another language than its name says.

    If a swapped rule equals an existing one, they become one rule and their probabilities are added.

    The distribution of sentence lengths is unchanged. Without merged rules derivations correspond one to one, and their
    entropy is unchanged, too; merging lowers it.

    Raises:
        InputError: an unknown order, or no category.
    """

    order: Order
    categories: tuple[str, ...] | None = None  #: treebank labels; None for all
    heads: HeadRules = field(default_factory=HeadRules)  #: heads, before the heads of the grammar

    def __post_init__(self) -> None:
        if self.order not in get_args(Order):
            raise InputError(f"the order of children must be one of {', '.join(get_args(Order))}, not {self.order!r}")
        if self.categories is not None and not self.categories:
            raise InputError(f"{self.order} needs a category, or all")

    @property
    def spec(self) -> str:
        """The change as text, such as ``mirror=NP+VP`` or ``head-final=all``."""
        names = "all" if self.categories is None else "+".join(self.categories)
        return f"{self.order}={names}"

    def apply(self, pcfg: PCFG) -> ChangeResult:
        """Swap the children, and merge rules that become equal.

        The details name nodes whose children change places (``swapped``) and others of the categories (``kept``), by
        the most probable rules, with a star at each head; ``nodes_swapped`` and ``nodes_kept`` count them.

        Raises:
            InputError: a category has no binary rule, or the head of a rule is unknown.
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
        reordered = pcfg.binary.astype(np.int64)
        reordered[swapped, 1:] = reordered[swapped, :0:-1]
        unique, place = np.unique(reordered, axis=0, return_inverse=True)
        place = place.ravel()
        logp = np.full(len(unique), -np.inf)
        np.logaddexp.at(logp, place, pcfg.binary_logp)
        result = replace(pcfg, binary=unique.astype(np.int32), binary_logp=np.minimum(logp, 0.0))
        target = locate(result, reordered, pcfg.unary.astype(np.int64), pcfg.lexical.astype(np.int64))
        details = {
            "rules_swapped": int(swapped.sum()),
            "rules_merged": len(reordered) - len(unique),
            **_named(self.order, rules, heads, chosen),
        }
        return ChangeResult(result, RuleMap(target, swapped, result.n_rules), details)

    def _require_heads(self, rules: NodeRules, heads: Sequence[int | None], chosen: BoolArray) -> None:
        nodes, of_rule = rules.nodes
        unknown = list(dict.fromkeys(nodes[i].text() for i in np.unique(of_rule[chosen]) if heads[i] is None))
        if not unknown:
            return
        first = next(nodes[i] for i in np.unique(of_rule[chosen]) if heads[i] is None)
        more = "" if len(unknown) <= REFUSED else f" and {len(unknown) - REFUSED} more"
        raise InputError(
            f"{self.order}: the head of {'; '.join(unknown[:REFUSED])}{more} is unknown; specify it, as in"
            f" %head {first.text(0)} or %head {first.text(len(first.children) - 1)}, in the grammar text or in a"
            " file for --heads"
        )

    def _chosen(self, pcfg: PCFG) -> BoolArray:
        """Return which binary rules belong to the categories, (R,)."""
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


def _named(order: Order, rules: NodeRules, heads: Sequence[int | None], chosen: BoolArray) -> dict[str, object]:
    """Return counts and examples of the nodes whose children change places, and of those whose children do not."""
    nodes, of_rule = rules.nodes
    whole = chosen & rules.whole()
    weight = np.bincount(of_rule[whole], weights=np.exp(rules.pcfg.binary_logp[whole]), minlength=len(nodes))
    moved: dict[str, None] = {}
    unchanged: dict[str, None] = {}
    for i in np.argsort(-weight, kind="stable").tolist():
        if weight[i] > 0.0:
            place = {"mirror": None, "head-initial": 0, "head-final": len(nodes[i].children) - 1}[order]
            (unchanged if heads[i] is not None and heads[i] == place else moved)[nodes[i].text(heads[i])] = None
    return {
        "nodes_swapped": len(moved),
        "nodes_kept": len(unchanged),
        "swapped": list(moved)[:EXAMPLES],
        "kept": list(unchanged)[:EXAMPLES],
    }


@dataclass(frozen=True)
class Ablation(Change):
    """Drop the rules that match a pattern and all useless parts, and divide rows by their sums.

    A pattern is a rule, ``NP -> NP PP`` or ``NN -> 'dog'``, or one name, ``PP``, for all rules with it on either side.
    A name matches a symbol of that name and all symbols of that treebank label, hence every substate; ``*`` matches any
    symbol. Patterns apply to the binarised grammar: a node of three children is two rules, with ``@NP`` between.

    Raises:
        InputError: no pattern, or one that is not of this form.
    """

    patterns: tuple[str, ...]  #: at least one

    def __post_init__(self) -> None:
        if not self.patterns:
            raise InputError("ablate needs a rule, such as NP -> NP PP, or a category")
        object.__setattr__(self, "patterns", tuple(_written(*_parse(pattern)) for pattern in self.patterns))

    @property
    def spec(self) -> str:
        """The change as text, such as ``ablate=NP -> NP PP``; patterns are joined by commas."""
        return ",".join(f"ablate={pattern}" for pattern in self.patterns)

    def apply(self, pcfg: PCFG) -> ChangeResult:
        """Drop the rules and useless parts.

        Raises:
            InputError: a pattern matches no rule, no sentence is left, or derivations of the rest may not end.
        """
        dropped = np.zeros(pcfg.n_rules, dtype=bool)
        for pattern in self.patterns:
            dropped |= _matching(pcfg, pattern)
        selected = np.split(~dropped, [len(pcfg.binary), len(pcfg.binary) + len(pcfg.unary)])
        rest = restrict(pcfg, selected)
        if rest is None:
            raise InputError(f"{self.spec} leaves no sentence; ablate less")
        require_ending(rest.pcfg, self.spec)
        details = {
            "rules_matched": int(dropped.sum()),
            "rules_dropped": pcfg.n_rules - rest.pcfg.n_rules,
            "symbols_dropped": len(pcfg.symbols) - len(rest.pcfg.symbols),
            "words_dropped": len(pcfg.vocabulary) - len(rest.pcfg.vocabulary),
            "largest_row_loss": float(1.0 - rest.share.min()),
        }
        return ChangeResult(rest.pcfg, RuleMap.by_name(pcfg, rest.pcfg), details)


def _parse(pattern: str) -> tuple[str, list[str] | None]:
    """Return the parent and children; a category alone has no children."""
    left, arrow, right = pattern.partition("->")
    parents, children = left.split(), right.split()
    if len(parents) != 1 or (arrow and len(children) not in (1, 2)):
        raise InputError(
            f"ablate needs a rule with one or two children, such as NP -> NP PP, or a category, got {pattern!r}"
        )
    return parents[0], children if arrow else None


def _written(parent: str, children: Sequence[str] | None) -> str:
    return parent if children is None else f"{parent} -> {' '.join(children)}"


def _matching(pcfg: PCFG, pattern: str) -> BoolArray:
    """Return which rules match, (n,), numbered binary, unary, lexical."""
    parent, children = _parse(pattern)
    if children is None:
        result = _symbols(pcfg, parent, pattern)
        table = [result[pcfg.binary].any(axis=1), result[pcfg.unary].any(axis=1), result[pcfg.lexical[:, 0]]]
        return np.concatenate(table)
    above = _symbols(pcfg, parent, pattern)
    parts = [np.zeros(len(rules), dtype=bool) for rules, _ in pcfg.tables()]
    if len(children) == 1 and _is_quoted(children[0]):
        word = children[0][1:-1]
        if word not in pcfg.word_ids:
            raise InputError(f"ablate={pattern}: the grammar has no word {word!r}; {near(word, pcfg.vocabulary)}")
        parts[2] = above[pcfg.lexical[:, 0]] & (pcfg.lexical[:, 1] == pcfg.word_ids[word])
    else:
        kind, rules = (0, pcfg.binary) if len(children) == 2 else (1, pcfg.unary)
        parts[kind] = above[rules[:, 0]]
        for column, child in enumerate(children, start=1):
            parts[kind] &= _symbols(pcfg, child, pattern)[rules[:, column]]
    matched = np.concatenate(parts)
    if not matched.any():
        raise InputError(f"no rule matches ablate={pattern}; {parent} has rules such as {_some(pcfg, above)}")
    return matched


def _symbols(pcfg: PCFG, name: str, pattern: str) -> BoolArray:
    """Return the symbols that a name denotes, (S,)."""
    if name == ANY:
        return np.ones(len(pcfg.symbols), dtype=bool)
    names = [(symbol, label, _COARSE(label)) for symbol, label in zip(pcfg.symbols, pcfg.labels, strict=True)]
    result = np.array([name in candidates for candidates in names], dtype=bool)
    if not result.any():
        listed = {coarse for _, _, coarse in names}
        raise InputError(
            f"ablate={pattern}: the grammar has no symbol or category {name!r} (words are quoted); {near(name, listed)}"
        )
    return result


def _is_quoted(item: str) -> bool:
    return len(item) > 2 and item[0] == item[-1] and item[0] in "'\""


def _some(pcfg: PCFG, above: BoolArray, most: int = 3) -> str:
    """Return the most probable rules of some symbols."""
    logp = np.concatenate([np.where(above[rules[:, 0]], logp, -np.inf) for rules, logp in pcfg.tables()])
    best = [int(rule) for rule in np.argsort(-logp, kind="stable")[:most] if np.isfinite(logp[rule])]
    return "; ".join(rule_name(pcfg, rule) for rule in best) or "none at all"
