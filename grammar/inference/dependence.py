"""Exact mutual information of words at a distance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property

import numpy as np
from scipy.sparse import csc_matrix, csr_matrix, hstack, identity

from truesource.grammar.conditioning import LengthRange
from truesource.grammar.inference.spines import ANY
from truesource.grammar.inference.windows import WIDTH, Windows, with_any_word
from truesource.grammar.inference.word_types import CHUNK, LARGEST_TABLE, emission_of
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import FloatArray, IntArray
from truesource.grammar.support.errors import InputError

SMALLEST = 1e-290  #: products of probabilities below this have lost some or all digits


class _Tags(Windows):
    """Windows of symbols over a word, in place of words."""

    @cached_property
    def tags(self) -> IntArray:
        """The symbols that have words, (T,)."""
        return np.flatnonzero(self.pcfg.exact.lexical_sums > 0.0)

    @cached_property
    def _leaf(self) -> csc_matrix[np.float64]:
        preterminals = csc_matrix(identity(len(self.pcfg.symbols), format="csc"))[:, self.tags]
        return csc_matrix(hstack([preterminals, csr_matrix(self.pcfg.exact.lexical_sums[:, None])]))


def pairs_apart(pcfg: PCFG, most: int, lengths: LengthRange | None = None) -> FloatArray:
    """Return the expected number of pairs of preterminals d = 1..``most`` words apart in a sentence, (most, T, T).

    T are the symbols that have words, in their order; d = 1 are neighbours; rows are the left one. Multiplied by
    emissions on both sides it is the expected number of pairs of words.

    Raises:
        InputError: as `truesource.grammar.inference.windows.Windows`, or ``most`` is below 1.
    """
    if most < 1:
        raise InputError(f"the distance of words must be 1 or more, got {most}")
    windows = _Tags(pcfg, lengths)
    n = len(windows.tags)
    result = np.empty((most, n, n))
    for at in range(0, n, WIDTH):
        some = np.arange(at, min(at + WIDTH, n))
        strings = np.column_stack([some, np.full((len(some), most - 1), ANY)]).astype(np.int64)
        for d, after in enumerate(windows.levels(strings)):
            result[d, some] = (after.states[windows.tags] * np.exp(after.log_scale)).T
    return result


def mutual_information(pcfg: PCFG, most: int, lengths: LengthRange | None = None) -> FloatArray:
    """Return the mutual information of two words of one sentence that are d = 1..``most`` words apart, nats, (most,).

    The pair (x_i, x_i+d) is drawn uniformly from all positions i of all sentences, so the information includes what the
    position reveals about both; 0 if no sentence has such a pair. Bounded by the entropy of a word.

    Raises:
        InputError: the grammar has more than 5000 words, or as `pairs_apart`.
    """
    if len(pcfg.vocabulary) > LARGEST_TABLE:
        raise InputError(f"a table of pairs of {len(pcfg.vocabulary)} words is too large (at most {LARGEST_TABLE})")
    weights = pairs_apart(pcfg, most, lengths)
    emission = emission_of(pcfg, np.flatnonzero(pcfg.exact.lexical_sums > 0.0))
    right = emission.toarray()
    result = np.zeros(most)
    for d, weight in enumerate(weights):
        left = np.asarray(emission.T @ weight)  # (V, T)
        first, last = left @ right.sum(axis=1), left.sum(axis=0) @ right
        total = float(first.sum())
        if total <= 0.0:
            continue
        for at in range(0, len(left), CHUNK):
            joint = left[at : at + CHUNK] @ right
            expected = np.outer(first[at : at + CHUNK], last) / total
            ratio = np.divide(joint, expected, out=np.ones_like(joint), where=(joint > 0.0) & (expected > SMALLEST))
            log_ratio = np.log(ratio)
            v, w = np.nonzero((joint > 0.0) & (expected <= SMALLEST))  # their products underflow float64
            log_ratio[v, w] = np.log(joint[v, w]) - np.log(first[at + v]) - np.log(last[w]) + math.log(total)
            result[d] += float((joint * log_ratio).sum()) / total
    return np.maximum(result, 0.0)


def halves_information(pcfg: PCFG, sentences: Sequence[Sequence[str]]) -> FloatArray:
    """Return ``ln P(x | n) / (P(first half | n) P(second half | n))`` of each sentence x of n words, nats, (N,).

    The first half has n // 2 words; P of a half sums over all words of the other. The mean over sentences drawn from
    the grammar, under a length condition or not, is the mutual information of the halves given the length. NaN for
    sentences of one word, and for impossible sentences.
    """
    hiding, result = with_any_word(pcfg), np.full(len(sentences), np.nan)
    possible = np.isfinite(pcfg.exact.string_log_probs(sentences))
    scored = np.flatnonzero(possible & np.array([len(s) > 1 for s in sentences], dtype=np.bool_))
    some, any_word = [list(sentences[i]) for i in scored.tolist()], hiding.vocabulary[-1]
    halves = [(s[: len(s) // 2], s[len(s) // 2 :]) for s in some]
    log_prob = hiding.exact.string_log_probs  # each has a factor 2^-n, which cancels in the ratio
    whole, none = log_prob(some), log_prob([[any_word] * len(s) for s in some])
    one = log_prob([first + [any_word] * len(second) for first, second in halves])
    other = log_prob([[any_word] * len(first) + second for first, second in halves])
    result[scored] = whole + none - one - other
    return result
