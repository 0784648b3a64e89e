"""Divergence of a model from the exact truth, context by context, from full distributions."""

from __future__ import annotations

from typing import Literal, get_args

By = Literal["position", "length", "class", "frequency", "phrase"]
BY: tuple[By, ...] = get_args(By)
USUAL: tuple[By, ...] = BY[:-1]  #: where none is named; phrases take a chart of each sentence
