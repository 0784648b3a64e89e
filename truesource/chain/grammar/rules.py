"""The rules that a grammar uses most: by expected number of uses in a sentence, projected to treebank labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from truesource.grammar.pcfg import PCFG


@dataclass(frozen=True)
class FrequentRule:
    """A rule over treebank labels, summed over the states that project to them."""

    parent: str
    children: tuple[str, ...]
    expected: float  #: uses in a sentence, on average
    probability: float  #: given the parent label, 0 to 1


def frequent_rules(pcfg: PCFG, kind: str, most: int = 15) -> list[FrequentRule]:
    """The most used rules of a kind, first the most used.

    The expected count of a rule is that of its parent state times its probability; states with the same label
    add up. Not conditioned on length.

    Args:
        pcfg: a grammar with spectral radius below 1.
        kind: ``binary``, ``unary`` or ``lexical``.
        most: how many.

    Raises:
        InputError: the spectral radius is 1 or more.
    """
    names = tuple(dict.fromkeys(pcfg.labels))
    numbers = {name: i for i, name in enumerate(names)}
    label = np.array([numbers[name] for name in pcfg.labels], dtype=np.int64)
    states = pcfg.exact.expected_symbols
    parents = np.bincount(label, states, len(names))
    rules = getattr(pcfg, kind).astype(np.int64)
    if not len(rules):
        return []
    uses = states[rules[:, 0]] * np.exp(getattr(pcfg, f"{kind}_logp"))
    right = len(pcfg.terminals) if kind == "lexical" else len(names)
    key = label[rules[:, 0]]
    for column in rules.T[1:]:
        key = key * right + (column if kind == "lexical" else label[column])
    keys, inverse = np.unique(key, return_inverse=True)
    total = np.bincount(inverse, uses)
    found = []
    for i in np.argsort(-total, kind="stable")[:most]:
        rest, children = int(keys[i]), []
        for _ in range(rules.shape[1] - 1):
            rest, child = divmod(rest, right)
            children.append(pcfg.terminals[child] if kind == "lexical" else names[child])
        if total[i] > 0.0:
            share = float(total[i] / parents[rest])
            found.append(FrequentRule(names[rest], tuple(reversed(children)), float(total[i]), share))
    return found
