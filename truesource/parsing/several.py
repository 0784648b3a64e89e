"""Several trees of a sentence: the best ones, or samples of the posterior."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

from truesource.parsing.settings import ParseSettings

if TYPE_CHECKING:
    from truesource.grammar.parsing.parser import Parser
    from truesource.grammar.parsing.samples import ScoredTree


def several(settings: ParseSettings) -> Literal["best", "samples"] | None:
    """Which trees are asked for besides the best one."""
    return "best" if settings.best is not None else "samples" if settings.samples is not None else None


def several_trees(parser: Parser, settings: ParseSettings, number: int, words: Sequence[str]) -> list[ScoredTree]:
    """The trees that are asked for besides the best one, none where none are.

    Args:
        parser: finds them.
        settings: how many, and which.
        number: of the sentence; with the seed, it decides the samples, whoever draws them.
        words: of the sentence.

    Raises:
        InputError: the grammar cannot make the sentence; as `TooLongError`, its chart does not fit into memory.
    """
    if settings.samples is not None:
        return parser.samples(words, settings.samples, np.random.default_rng([settings.seed, number]))
    return [] if settings.best is None else parser.best(words, settings.best)
