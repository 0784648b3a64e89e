"""Full distributions over every word at every position of many sentences, streamed and reduced."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import DTypeLike

from truesource.grammar.conditioning import LengthRange
from truesource.grammar.inference.batch import Batch, Distributions, run
from truesource.grammar.support.arrays import FloatArray
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.threads import threads

if TYPE_CHECKING:
    from truesource.grammar.inference.causal import ExactCausal
    from truesource.grammar.inference.exact import Exact, Variant

T = TypeVar("T")


def next_token_distributions(
    exact: ExactCausal,
    sentences: Sequence[Sequence[str]],
    reduce: Callable[[Distributions], T],
    lengths: LengthRange | None = None,
    *,
    dtype: DTypeLike = np.float64,
) -> Iterator[T]:
    """Yield ``reduce`` of the next-token distributions at every position, the end of each sentence included.

    ``P(w | w_1..w_j)`` for all words at once and ``P(end | w_1..w_j)``, j = 0..n, given ``lengths`` if any; batch by
    batch, longest sentences first, so that memory does not grow with the input.

    Args:
        exact: exact inference of a grammar or process.
        sentences: at least one token each.
        reduce: called once per position and batch, from several threads.
        lengths: condition on this range.
        dtype: floating-point type of the charts.

    Raises:
        InputError: a sentence has no tokens, or no sentence of the grammar has such a length.
    """

    def task(batch: Batch) -> list[T]:
        return [reduce(block) for block in exact.next_token_blocks(batch, lengths, dtype=dtype)]

    work = exact.causal_batches(sentences, lengths, dtype=dtype)
    yield from _stream(task, work, len(sentences), "exact next-word distributions")


def masked_blocks(
    exact: Exact,
    batch: Batch,
    *,
    variant: Variant = "default",
    positions: Sequence[int] | None = None,
) -> Iterator[Distributions]:
    """Yield the masked distributions of one batch, positions 0 to n-1 or the given ones, each computed on demand.

    Batches come from ``exact.charts().batches(sentences, outside=True)``.
    """
    charts, lexical = exact.charts(), exact.lexical_weights(variant).T.tocsr()
    result = charts.leaves(batch.words)
    leaves, whole = result.weights, result.whole
    logs = exact.log_observed(batch.words, charts, result, variant)
    for i in range(len(batch.words)) if positions is None else positions:
        observed = batch.words[i].astype(np.int64)
        table = np.ascontiguousarray((lexical @ leaves[i]).T, dtype=np.float64)
        total = table.sum(axis=1)
        possible = total > 0.0
        table[possible] /= total[possible, None]
        states = np.zeros((len(table), leaves.shape[1]))
        states[possible] = leaves[i].T[possible] / total[possible, None]
        yield Distributions(i, batch.members, observed, table, possible, whole, logs[i], states)


def _stream(task: Callable[[Batch], list[T]], work: Sequence[Batch], n_sentences: int, description: str) -> Iterator[T]:
    """Yield results in order; at most one batch a thread is in progress, so that unread results do not accumulate."""
    step = threads()
    for at in range(0, len(work), step):
        some = work[at : at + step]
        total = sum(len(members) for batch in some for members in batch.members)
        for _, results in run(task, some, f"{description} (part of {n_sentences:,} sentences)", total):
            yield from results


def class_posteriors(
    exact: Exact, sentences: Sequence[Sequence[str]], classes: Sequence[int] | None = None
) -> list[FloatArray]:
    """Return P(class of the preterminal over each token | the sentence), (n, C): the exact part-of-speech posterior.

    Args:
        exact: exact inference of the grammar.
        sentences: at least one token each.
        classes: (S,) class of each symbol, 0 to C-1; None: every symbol is its own class.

    Returns:
        Rows sum to one; rows of an impossible sentence are zero.
    """
    n_symbols = len(exact.pcfg.symbols)
    class_of = np.arange(n_symbols) if classes is None else np.asarray(classes, dtype=np.int64)
    if class_of.shape != (n_symbols,) or (class_of < 0).any():
        raise InputError(f"expecting a class of 0 or more for each of the {n_symbols} symbols")
    n_classes = int(class_of.max()) + 1
    charts = exact.charts()
    start, parent, prob = exact.lexicon
    posteriors = [np.zeros((len(s), n_classes)) for s in sentences]

    def task(batch: Batch) -> FloatArray:
        leaves, whole, wide = charts.leaves(batch.words, whole_only=True)
        n, width = batch.words.shape
        table = np.zeros((width, n, n_classes))
        for w in np.flatnonzero(whole).tolist():
            for i in range(n):
                rules = slice(start[batch.words[i, w]], start[batch.words[i, w] + 1])
                if w in wide:
                    logs = wide[w][i, parent[rules]] + exact.pcfg.lexical_logp[rules]
                    weight = np.exp(logs - logs.max())
                else:
                    weight = leaves[i, parent[rules], w] * prob[rules]
                table[w, i] = np.bincount(class_of[parent[rules]], weight / weight.sum(), minlength=n_classes)
        return table

    work = charts.batches(sentences, outside=True)
    for batch, table in run(task, work, "exact posterior of word classes in sentences", len(sentences)):
        for row, members in enumerate(batch.members):
            for i in members:
                posteriors[i] = table[row]
    return posteriors
