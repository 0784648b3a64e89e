"""Several trees of a sentence: the best ones, or samples of the posterior."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from truesource.grammar.inference.posterior import posterior
from truesource.grammar.parsing.kbest import k_best_max_rule, k_best_viterbi
from truesource.grammar.parsing.method import ParseMethod
from truesource.grammar.parsing.samples import ScoredTree, posterior_samples, scored_trees
from truesource.grammar.pcfg import PCFG
from truesource.grammar.unknown import read_words
from truesource.parsing.settings import ParseSettings


def several(settings: ParseSettings) -> Literal["best", "samples"] | None:
    """Which trees are asked for besides the best one."""
    return "best" if settings.best is not None else "samples" if settings.samples is not None else None


def several_trees(pcfg: PCFG, settings: ParseSettings, number: int, words: Sequence[str]) -> list[ScoredTree]:
    """The trees that are asked for besides the best one, none where none are.

    Args:
        pcfg: the grammar.
        settings: how many, and which.
        number: of the sentence; with the seed, it decides the samples, whoever draws them.
        words: of the sentence.

    Raises:
        InputError: the grammar cannot make the sentence; as `TooLongError`, its chart does not fit into memory.
    """
    if several(settings) is None:
        return []
    known = read_words(pcfg, words)
    if settings.samples is not None:
        rng = np.random.default_rng([settings.seed, number])
        found = posterior_samples(posterior(pcfg, known), settings.samples, rng)
    else:
        assert settings.best is not None
        if settings.method is ParseMethod.VITERBI:
            found = k_best_viterbi(pcfg, known, settings.best)
        else:
            found = k_best_max_rule(posterior(pcfg, known), settings.best)
    return scored_trees(pcfg, found, words)
