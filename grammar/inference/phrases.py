"""The lowest phrase over each word of a sentence, given the sentence: exact posterior probabilities."""

from __future__ import annotations

import numpy as np

from truesource.grammar.inference.posterior import Posterior
from truesource.grammar.support.arrays import FloatArray


def parents(found: Posterior) -> FloatArray:
    """P(this symbol stands right above the one that makes the word | sentence), (n, S); each derivation counts once.

    Rows sum to one, but for a sentence of one word whose symbol may be the root: that share is missing.
    """
    pcfg, chart, closed = found.pcfg, found.chart, found.closed
    n, n_symbols = len(found), len(pcfg.symbols)
    above, below = pcfg.unary.T
    unary = np.exp(pcfg.unary_logp)
    parent, left, right = pcfg.binary.T
    binary = np.exp(pcfg.binary_logp)
    table = np.zeros((n, n_symbols))
    for t, leaf in enumerate(found.leaves.tolist()):
        own = chart.bare[leaf]
        table[t] = np.bincount(above, closed[leaf, above] * unary * own[below], n_symbols)
        first, second = np.flatnonzero(own[left] > 0.0), np.flatnonzero(own[right] > 0.0)
        beside = [
            (first, own[left[first]], right[first], found.span(t, j), found.span(t + 1, j)) for j in range(t + 2, n + 1)
        ]
        beside += [(second, own[right[second]], left[second], found.span(i, t + 1), found.span(i, t)) for i in range(t)]
        for rules, word, sibling, whole, other in beside:
            weight = closed[whole, parent[rules]] * binary[rules] * word * chart.inside[other, sibling]
            power = int(chart.shift[leaf] + chart.shift[other] - chart.shift[whole])
            table[t] += np.bincount(parent[rules], np.ldexp(weight, power), n_symbols)
    return table


def phrase_of(label: str) -> str:
    """The label of the phrase that a node belongs to: that of the longer node, if binarisation made it."""
    return label[1:].partition("[")[0] if label.startswith("@") and len(label) > 1 else label


def lowest_phrases(found: Posterior) -> tuple[tuple[str, ...], FloatArray]:
    """P(the lowest phrase over the word has this label | sentence), for each word: labels (G,), and (n, G).

    A phrase is a node above the symbol that makes the word; nodes of binarisation belong to the phrase that they are
    part of. Rows sum to one: where the symbol that makes the word is the root itself, that is its phrase.
    """
    pcfg = found.pcfg
    table = parents(found)
    if len(found) == 1:
        table[0, pcfg.start] += max(0.0, 1.0 - float(table[0].sum()))
    names = [phrase_of(label) for label in pcfg.labels]
    numbers = {name: i for i, name in enumerate(dict.fromkeys(names))}
    grouped = np.zeros((len(table), len(numbers)))
    np.add.at(grouped.T, [numbers[name] for name in names], table.T)
    return tuple(numbers), grouped
