"""Whether a probe does better where a word is probable (Jumelet and Zuidema 2023, section 6.2)."""

from __future__ import annotations

import numpy as np

from truesource.evaluation.measures.bootstrap import Interval, ends
from truesource.evaluation.measures.correlation import spearman, spearman_ends
from truesource.grammar.support.arrays import FloatArray, IntArray


def word_correlations(label: FloatArray, truth: FloatArray, model: FloatArray, group: IntArray) -> dict[str, Interval]:
    """Spearman's rho of ln(probe probability of the true label) with three values of the word.

    Args:
        label: (N,) ln of the probe probability.
        truth: (N,) ln P of the word under the grammar, nats.
        model: (N,) ln Q of the word under the model, nats.
        group: (N,) word type or sentence, which are independent.

    Returns:
        ``rho_truth``, ``rho_model`` and ``rho_difference``, the last with abs(ln P - ln Q), with 95% intervals.
    """
    order = np.argsort(group, kind="stable")
    values = {"rho_truth": truth, "rho_model": model, "rho_difference": np.abs(truth - model)}
    found = {}
    for name, value in values.items():
        x, y = label[order], value[order]
        found[name] = Interval(spearman(x, y), *ends(*spearman_ends(x, y, group[order])))
    return found
