"""How ambiguous a sentence is: the entropy of its derivations, given the sentence."""

from __future__ import annotations

import numpy as np
from scipy.special import xlogy

from truesource.grammar.inference._kernels.posterior import expected_binary
from truesource.grammar.inference.posterior import Posterior


def derivation_entropy(found: Posterior) -> float:
    """Exact entropy of the derivation given the sentence, nats; 0 where it has only one, but for rounding.

    It is ln P(sentence) less the expected sum of ln P(rule) over the rules of a derivation, and does not depend on a
    length condition. Unary chains count rule by rule: where they go round, there are infinitely many derivations. It
    costs about as much as the outside chart, in O(n^3 P + n^2 (R + Q)) for P child pairs, R binary and Q unary rules.
    """
    pcfg, chart, closed = found.pcfg, found.chart, found.closed
    exact = pcfg.exact
    weight = np.asarray(xlogy(exact.pairs.prob, exact.pairs.prob), dtype=np.float64)
    pairs = exact.pairs._replace(prob=weight)
    spent = float(expected_binary(chart, closed, len(found), pairs))
    above, below = pcfg.unary.T
    weight = np.exp(pcfg.unary_logp) * pcfg.unary_logp
    for outside, inside in zip(closed, chart.inside, strict=True):
        spent += float((outside[above] * inside[below]) @ weight)
    for leaf, word in zip(found.leaves.tolist(), pcfg.encode(found.sentence).tolist(), strict=True):
        rules = slice(*exact.lexicon.start[word : word + 2])
        tags = exact.lexicon.parent[rules]
        spent += float((closed[leaf, tags] * chart.bare[leaf, tags]) @ pcfg.lexical_logp[rules])
    return max(found.log_prob - spent, 0.0)
