"""Random numbers of languages."""

from __future__ import annotations

import numpy as np

from truesource.grammar.support.arrays import FloatArray

LARGEST_SEED = 2**32 - 1


def generator(seed: int, language: int) -> np.random.Generator:
    """Random numbers of one language: equal seeds of two languages have nothing in common."""
    return np.random.default_rng([seed, language])


def dirichlet(rng: np.random.Generator, concentration: float, shape: tuple[int, int]) -> FloatArray:
    """Rows of probabilities, each drawn from the symmetric Dirichlet distribution; none is 0 from 0.05 on.

    A gamma variate of shape a is one of shape a + 1 times U^(1/a) (Marsaglia & Tsang 2000); its logarithm is taken, as
    it is often too small for float64 where a is small.
    """
    log_weight = np.log(rng.standard_gamma(concentration + 1.0, shape))
    log_weight += np.log1p(-rng.random(shape)) / concentration
    return softmax(log_weight)


def softmax(logits: FloatArray) -> FloatArray:
    """Probabilities in proportion to exp(logits), row by row."""
    weight = np.exp(logits - logits.max(axis=1, keepdims=True))
    found: FloatArray = weight / weight.sum(axis=1, keepdims=True)
    return found
