"""How many random samples the tests of chance take by default."""

from __future__ import annotations

DRAWS = 9999  #: of a discrete null distribution
PERMUTATIONS = 999  #: of sentences
