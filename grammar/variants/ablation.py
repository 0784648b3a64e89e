"""Take rules out of a grammar."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from truesource.grammar.pcfg import PCFG
from truesource.grammar.restrict import restrict
from truesource.grammar.support.arrays import BoolArray
from truesource.grammar.support.errors import InputError
from truesource.grammar.treebank.binarise import Binarisation
from truesource.grammar.variants.categories import near
from truesource.grammar.variants.change import Change, Changed, require_ending
from truesource.grammar.variants.divergence import rule_name
from truesource.grammar.variants.rule_map import RuleMap

ANY = "*"  #: stands for any symbol in a pattern

_COARSE = Binarisation(horizontal=1).coarse


@dataclass(frozen=True)
class Ablation(Change):
    """Drop the rules that match a pattern, then all that became useless, and divide rows by their sums.

    A pattern is a rule, ``NP -> NP PP`` or ``NN -> 'dog'``, or one name, ``PP``, for all rules with it on either side.
    A name matches a symbol of that name and all symbols of that treebank label, hence every substate; ``*`` matches any
    symbol. Rules are those of the binarised grammar: a node of three children is two rules, with ``@NP`` between.

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
        """Such as ``ablate=NP -> NP PP``; patterns are joined by commas."""
        return ",".join(f"ablate={pattern}" for pattern in self.patterns)

    def apply(self, pcfg: PCFG) -> Changed:
        """Drop and mend.

        Raises:
            InputError: a pattern matches no rule, no sentence is left, or derivations of the rest may not end.
        """
        dropped = np.zeros(pcfg.n_rules, dtype=bool)
        for pattern in self.patterns:
            dropped |= _matching(pcfg, pattern)
        kept = np.split(~dropped, [len(pcfg.binary), len(pcfg.binary) + len(pcfg.unary)])
        rest = restrict(pcfg, kept)
        if rest is None:
            raise InputError(f"{self.spec} leaves no sentence; ablate less")
        require_ending(rest.pcfg, self.spec)
        details = {
            "rules_matched": int(dropped.sum()),
            "rules_dropped": pcfg.n_rules - rest.pcfg.n_rules,
            "symbols_dropped": len(pcfg.symbols) - len(rest.pcfg.symbols),
            "words_dropped": len(pcfg.terminals) - len(rest.pcfg.terminals),
            "largest_row_loss": float(1.0 - rest.share.min()),
        }
        return Changed(rest.pcfg, RuleMap.by_name(pcfg, rest.pcfg), details)


def _parse(pattern: str) -> tuple[str, list[str] | None]:
    """Parent and children; a category alone has no children."""
    left, arrow, right = pattern.partition("->")
    parents, children = left.split(), right.split()
    if len(parents) != 1 or (arrow and len(children) not in (1, 2)):
        raise InputError(
            f"ablate wants a rule with one or two children, such as NP -> NP PP, or a category, got {pattern!r}"
        )
    return parents[0], children if arrow else None


def _written(parent: str, children: Sequence[str] | None) -> str:
    return parent if children is None else f"{parent} -> {' '.join(children)}"


def _matching(pcfg: PCFG, pattern: str) -> BoolArray:
    """Which rules match, (n,), numbered binary, unary, lexical."""
    parent, children = _parse(pattern)
    if children is None:
        found = _symbols(pcfg, parent, pattern)
        table = [found[pcfg.binary].any(axis=1), found[pcfg.unary].any(axis=1), found[pcfg.lexical[:, 0]]]
        return np.concatenate(table)
    above = _symbols(pcfg, parent, pattern)
    parts = [np.zeros(len(rules), dtype=bool) for rules, _ in pcfg.tables()]
    if len(children) == 1 and _is_quoted(children[0]):
        word = children[0][1:-1]
        if word not in pcfg.word_ids:
            raise InputError(f"ablate={pattern}: the grammar has no word {word!r}; {near(word, pcfg.terminals)}")
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
    """Which symbols a name stands for, (S,)."""
    if name == ANY:
        return np.ones(len(pcfg.symbols), dtype=bool)
    names = [(symbol, label, _COARSE(label)) for symbol, label in zip(pcfg.symbols, pcfg.labels, strict=True)]
    found = np.array([name in known for known in names], dtype=bool)
    if not found.any():
        known = {coarse for _, _, coarse in names}
        raise InputError(
            f"ablate={pattern}: the grammar has no symbol or category {name!r} (words are quoted); {near(name, known)}"
        )
    return found


def _is_quoted(item: str) -> bool:
    return len(item) > 2 and item[0] == item[-1] and item[0] in "'\""


def _some(pcfg: PCFG, above: BoolArray, most: int = 3) -> str:
    """The most probable rules of some symbols."""
    logp = np.concatenate([np.where(above[rules[:, 0]], logp, -np.inf) for rules, logp in pcfg.tables()])
    best = [int(rule) for rule in np.argsort(-logp, kind="stable")[:most] if np.isfinite(logp[rule])]
    return "; ".join(rule_name(pcfg, rule) for rule in best) or "none at all"
