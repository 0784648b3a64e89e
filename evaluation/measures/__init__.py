"""Measures of a model against the oracle, one module each."""

from __future__ import annotations

DRAWS = 9999  #: random samples of a discrete null distribution, by default
PERMUTATIONS = 999  #: of sentences, by default
