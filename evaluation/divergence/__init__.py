"""Divergence of a model from the exact truth, by context, from full distributions."""

from __future__ import annotations

from typing import Literal, get_args

By = Literal["position", "length", "class", "frequency", "phrase", "ambiguity", "distance", "probability"]
BY: tuple[By, ...] = get_args(By)
USUAL: tuple[By, ...] = BY[:5]  #: default tables; ``class`` and ``phrase`` need the rules of a grammar
IN_WORDS: tuple[By, ...] = ("phrase", "ambiguity", "distance")  #: tables that have words also for models of pieces
OF_EVENTS: tuple[By, ...] = ("class", "frequency", "probability")  #: tables that divide probabilities of words
