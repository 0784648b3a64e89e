"""Divergence of a model from the exact truth, by context, from full distributions."""

from __future__ import annotations

from typing import Literal, get_args

By = Literal["position", "length", "class", "frequency", "phrase", "ambiguity", "distance", "probability"]
BY: tuple[By, ...] = get_args(By)
USUAL: tuple[By, ...] = BY[:5]  #: default tables; ``class`` and ``phrase`` need the rules of a grammar
