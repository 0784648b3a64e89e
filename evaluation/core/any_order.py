"""The truth of a sentence whose words become known in any order, given their number."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Protocol

import numpy as np

from truesource.evaluation.core.exclusion import Exclusion, log_rest
from truesource.grammar.inference.any_order import AnyOrder, Pattern
from truesource.grammar.inference.batch import BUDGET, Batch, Distributions, batches
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import FloatArray, IntArray

AT_ONCE = 50_000  #: patterns that are summed over together


class PatternCharts(Protocol):
    """A source of the probabilities of patterns, such as `AnyOrder`."""

    def log_probs(self, patterns: Sequence[Pattern]) -> FloatArray:
        """Return ln of the probability of all sentences that fit each pattern, (N,) nats."""


def in_orders(
    language: PCFG,
    sentences: Sequence[Sequence[str]],
    orders: Sequence[IntArray],
    excluded: Exclusion | None = None,
    read: Callable[[Sequence[str]], Sequence[str]] = list,
    charts: PatternCharts | None = None,
) -> list[FloatArray]:
    """Return mean ln P over orders of each word given earlier words of the order and the length, (n,) nats a sentence.

    A row sums to ln P(sentence | its length), whatever the orders (chain rule); each word costs one inside pass, of
    the sentence with all other words unknown. Rows are -inf if a sentence is impossible.

    Args:
        language: the grammar.
        sentences: N of them, none empty.
        orders: (R, n) for each, when each word becomes known, see `truesource.generator.objectives.ranks`.
        excluded: sentences that the text excludes; the truth then excludes them too, if it can.
        read: how the truth reads the sentences excluded.
        charts: of the grammar, on a device (default: on the CPU).
    """
    truth = charts or AnyOrder(language)
    excluder = _ExcludedSentences(excluded, language, read) if excluded is not None and excluded.exact else None
    patterns = _patterns(sentences, orders)
    log_probs: list[float] = []
    while some := list(islice(patterns, AT_ONCE)):
        log_probs += truth.log_probs(some).tolist()
    whole = language.exact.string_log_probs(sentences)
    rows, at = [], 0
    for sentence, ranked, log_prob in zip(sentences, orders, whole.tolist(), strict=True):
        size = len(sentence)
        of_orders = np.zeros((len(ranked), size))
        for number, rank in enumerate(ranked):
            prefixes = np.append(log_probs[at : at + size], log_prob)  # ln P of the first 0, ..., n words of the order
            at += size
            if excluder is not None and np.isfinite(log_prob):
                prefixes = excluder.without(prefixes, sentence, rank)
            with np.errstate(invalid="ignore"):
                of_orders[number] = np.diff(prefixes)[rank]
        possible = np.isfinite(of_orders).all()
        rows.append(of_orders.mean(axis=0) if possible else np.full(size, -np.inf))
    return rows


def ordered_batches(
    language: PCFG, sentences: Sequence[Sequence[str]], orders: Sequence[IntArray], bytes_per_word: int
) -> list[Batch]:
    """Return sentences in batches for `ordered_blocks`; those that read the same, in the same order, share a column.

    Args:
        language: the grammar.
        sentences: as it reads them, none empty.
        orders: (n,) of each, when each word becomes known.
        bytes_per_word: memory that a pattern takes for each of its places.
    """
    both = [np.concatenate([language.encode(s), o]).astype(np.int32) for s, o in zip(sentences, orders, strict=True)]
    joint = [(batch, len(batch.words) // 2) for batch in batches(both, lambda size: size // 2 * bytes_per_word, BUDGET)]
    return [Batch(batch.words[:n], batch.members, batch.words[n:]) for batch, n in joint]


def ordered_blocks(truth: AnyOrder, batch: Batch) -> Iterator[Distributions]:
    """Yield the distributions of the words of one batch, each given earlier words of the order, by position."""
    language = truth.pcfg
    assert batch.ranks is not None
    unknown = batch.words < 0
    texts = [[language.vocabulary[word] for word in column] for column in np.maximum(batch.words, 0).T.tolist()]
    whole = np.isfinite(language.exact.string_log_probs(texts)) & ~unknown.any(axis=0)
    for i, observed in enumerate(batch.words.astype(np.int64)):
        context = batch.ranks < batch.ranks[i]
        table = truth.denoise(np.where(context & ~unknown, batch.words, -1).T)[:, i]
        table[(context & unknown).any(axis=0)] = 0.0
        seen = np.where(observed < 0, 0.0, table[np.arange(len(table)), observed])
        with np.errstate(divide="ignore"):
            logs = np.log(seen)
        states = np.zeros((len(table), 0))
        yield Distributions(i, batch.members, observed, table, np.asarray(table.any(axis=1)), whole, logs, states)


def _patterns(sentences: Sequence[Sequence[str]], orders: Sequence[IntArray]) -> Iterator[list[str | None]]:
    """Yield the sentences with the first 0, 1, ..., n-1 words of each order known."""
    for sentence, ranked in zip(sentences, orders, strict=True):
        for rank in ranked:
            for step in range(len(sentence)):
                yield [word if when < step else None for word, when in zip(sentence, rank, strict=True)]


class _ExcludedSentences:
    """The sentences that a text excludes, by their number of words."""

    def __init__(self, excluded: Exclusion, language: PCFG, read: Callable[[Sequence[str]], Sequence[str]]) -> None:
        self._language, self._condition = language, 0.0
        by_length: dict[int, tuple[list[IntArray], list[float]]] = {}
        for number, (sentence, log_prob) in enumerate(excluded.possible()):
            seen = read(sentence)
            if not number:  # ln P of the range of lengths, on which the probabilities of patterns are not conditioned
                free, bound = (language.exact.string_log_probs([seen], lengths) for lengths in (None, excluded.lengths))
                self._condition = float((free - bound)[0])
            words, log_probs = by_length.setdefault(len(seen), ([], []))
            words.append(np.asarray(language.encode(seen), dtype=np.int64))
            log_probs.append(log_prob)
        self._of = {n: (np.stack(words), np.array(log_probs)) for n, (words, log_probs) in by_length.items() if n}

    def without(self, prefixes: FloatArray, sentence: Sequence[str], rank: IntArray) -> FloatArray:
        """Subtract excluded sentences with the first words of an order from the probability of these words, (n+1,)."""
        if len(sentence) not in self._of:
            return prefixes
        words, log_probs = self._of[len(sentence)]
        other = words != np.asarray(self._language.encode(sentence))
        agree = np.where(other, rank, len(sentence)).min(axis=1)  # words of the order that each has
        log_mass = np.full(len(prefixes), -np.inf)
        np.logaddexp.at(log_mass, agree, log_probs + self._condition)
        return prefixes + log_rest(np.logaddexp.accumulate(log_mass[::-1])[::-1] - prefixes)
