"""The lowest phrase over each word of a sentence, given the sentence: exact posterior probabilities."""

from __future__ import annotations

import numpy as np

from truesource.grammar.inference.posterior import Posterior
from truesource.grammar.support.arrays import FloatArray


def parents(joint: Posterior) -> FloatArray:
    """Return P(this symbol is right above the preterminal of the word | sentence), (n, S), once per derivation.

    Rows sum to one, except for a sentence of one word whose preterminal may be the root: that share is missing.
    """
    pcfg, chart, closed = joint.pcfg, joint.chart, joint.closed
    n, n_symbols = len(joint), len(pcfg.symbols)
    above, below = pcfg.unary.T
    unary = np.exp(pcfg.unary_logp)
    parent, left, right = pcfg.binary.T
    binary = np.exp(pcfg.binary_logp)
    table = np.zeros((n, n_symbols))
    for t, leaf in enumerate(joint.leaves.tolist()):
        bare = chart.bare[leaf]
        table[t] = np.bincount(above, closed[leaf, above] * unary * bare[below], n_symbols)
        first, second = np.flatnonzero(bare[left] > 0.0), np.flatnonzero(bare[right] > 0.0)
        sides = [
            (first, bare[left[first]], right[first], joint.span(t, j), joint.span(t + 1, j))
            for j in range(t + 2, n + 1)
        ]
        sides += [(second, bare[right[second]], left[second], joint.span(i, t + 1), joint.span(i, t)) for i in range(t)]
        for rules, word, sibling, whole, other in sides:
            weight = closed[whole, parent[rules]] * binary[rules] * word * chart.inside[other, sibling]
            power = int(chart.shift[leaf] + chart.shift[other] - chart.shift[whole])
            table[t] += np.bincount(parent[rules], np.ldexp(weight, power), n_symbols)
    return table


def phrase_of(label: str) -> str:
    """Return the label of the phrase of a node: for a node of binarisation, the label of the longer node."""
    return label[1:].partition("[")[0] if label.startswith("@") and len(label) > 1 else label


def lowest_phrases(posterior: Posterior) -> tuple[tuple[str, ...], FloatArray]:
    """Return P(the lowest phrase over the word has this label | sentence), for each word: labels (G,), and (n, G).

    A phrase is a node above the preterminal; nodes of binarisation belong to the phrase that they are part of. Rows sum
    to one: if the preterminal is the root, the root is its phrase.
    """
    pcfg = posterior.pcfg
    table = parents(posterior)
    if len(posterior) == 1:
        table[0, pcfg.start] += max(0.0, 1.0 - float(table[0].sum()))
    names = [phrase_of(label) for label in pcfg.labels]
    numbers = {name: i for i, name in enumerate(dict.fromkeys(names))}
    grouped = np.zeros((len(table), len(numbers)))
    np.add.at(grouped.T, [numbers[name] for name in names], table.T)
    return tuple(numbers), grouped
