"""Scores on a test set from which the sentences of a training set were removed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from truesource.grammar.conditioning import LengthRange
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import FloatArray
from truesource.grammar.support.errors import InputError


def removed_mass(pcfg: PCFG, sentences: Iterable[Sequence[str]], lengths: LengthRange | None = None) -> float:
    """``P'(S)``: probability that a sentence (of the range) is one of ``sentences``; each counts once.

    Sentences that the grammar cannot make, or outside the range, add nothing. Without ``lengths``, sentences are
    those of derivations that end.

    Raises:
        InputError: no sentence of the grammar has a length in the range, or a sentence has no tokens.
    """
    distinct = list(dict.fromkeys(tuple(sentence) for sentence in sentences))
    if not distinct:
        return 0.0
    log_probs = pcfg.exact.string_log_probs(distinct, lengths) - _log_all(pcfg, lengths)
    return min(math.fsum(np.exp(log_probs).tolist()), 1.0)


def held_out_log_probs(
    pcfg: PCFG,
    test: Sequence[Sequence[str]],
    train: Iterable[Sequence[str]],
    lengths: LengthRange | None = None,
) -> FloatArray:
    """Ln P(sentence | it is not one of ``train``), (N,) nats: exact scores of a test set without training sentences.

    "No overlapping sentences" changes the distribution of the test set from P' to ``P'(w) / (1 - P'(S))``, S the
    distinct training sentences. A test sentence that is in ``train``, or that the grammar cannot make, has -inf.

    Raises:
        InputError: ``train`` holds all sentences of the range, or as `removed_mass`.
    """
    train = [tuple(sentence) for sentence in train]
    removed = removed_mass(pcfg, train, lengths)
    if removed >= 1.0 - 1e-12:
        raise InputError("the training sentences are all that the grammar can make: nothing is left for a test set")
    log_probs = pcfg.exact.string_log_probs(test, lengths) - _log_all(pcfg, lengths) - math.log1p(-removed)
    seen = set(train)
    log_probs[[tuple(sentence) in seen for sentence in test]] = -np.inf
    return np.asarray(log_probs)


def _log_all(pcfg: PCFG, lengths: LengthRange | None) -> float:
    """Ln of the mass that scores given ``lengths`` sum to.

    Raises:
        InputError: it is zero.
    """
    if lengths is not None:
        return 0.0
    if not pcfg.exact.total_mass > 0.0:
        raise InputError("no derivation of this grammar ends; mend it")
    return math.log(pcfg.exact.total_mass)
