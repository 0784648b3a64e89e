"""Exact distribution of any words of a sentence given any others: the target of models that fill gaps in any order.

A pattern is a sentence in which some words are unknown (None); their number is known. At an unknown word, each
preterminal has the total weight of its words, so that one inside and one outside pass give the probability of every
word at every gap. Charts hold only the parts of matching sentences (`GapCharts`). Linear grammars, and weights beyond
the range of a float, use the passes over whole sentences, with one further word that represents any word.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from truesource.grammar.inference.batch import BUDGET, Batch, batches, run
from truesource.grammar.inference.gaps import GapCharts
from truesource.grammar.inference.posterior import posterior
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import FloatArray, Int32Array, IntArray
from truesource.grammar.support.errors import InputError

Pattern = Sequence[str | None]
GAP = "___"  #: notation for an unknown word
AT_ONCE = 16  #: patterns that a search expands at once
MOST = 20_000  #: most patterns that a search expands


def shown(pattern: Pattern) -> str:
    """Return a pattern as text."""
    return " ".join(GAP if word is None else word for word in pattern)


@dataclass(frozen=True)
class Filling:
    """A sentence that matches a pattern."""

    words: tuple[str, ...]  #: all words of the sentence
    log_prob: float  #: ln P(words at the gaps | the other words and the length), nats


class AnyOrder:
    """The exact conditionals of a grammar for every set of known words, given the number of words.

    Args:
        pcfg: the true grammar.
    """

    def __init__(self, pcfg: PCFG) -> None:
        self.pcfg = pcfg
        self._charts = GapCharts(pcfg)

    def _numbers(self, patterns: Sequence[Pattern]) -> list[Int32Array]:
        """Return patterns as word numbers, the vocabulary size at a gap, -1 for a word that is not in the grammar.

        Raises:
            InputError: a pattern is empty.
        """
        place, gap = self.pcfg.word_ids, len(self.pcfg.vocabulary)
        for number, pattern in enumerate(patterns, start=1):
            if not len(pattern):
                raise InputError(f"pattern {number} is empty; give a word or a gap for each position")
        return [np.array([gap if w is None else place.get(w, -1) for w in p], dtype=np.int32) for p in patterns]

    def log_probs(self, patterns: Sequence[Pattern]) -> FloatArray:
        """Return ln of the probability of all sentences that match each pattern, (N,) nats; -inf for none.

        For a pattern without known words this is ln P(its length); for one without gaps, ln P(the sentence).

        Raises:
            InputError: a pattern is empty.
        """
        return self._fill(self._numbers(patterns))

    def marginals(self, patterns: Sequence[Pattern]) -> list[FloatArray]:
        """Return P(word at each position | the known words and the length), (n, V) of each pattern.

        A row sums to one; at a known word it is all on that word. Zeros if no sentence matches. Patterns of one length
        share the memory of their tables.

        Raises:
            InputError: a pattern is empty.
        """
        return self.answers(patterns)[1]

    def answers(self, patterns: Sequence[Pattern]) -> tuple[FloatArray, list[FloatArray]]:
        """Return `log_probs` and `marginals`, at the cost of `marginals`.

        Raises:
            InputError: a pattern is empty.
        """
        encoded = self._numbers(patterns)
        lengths = np.array([len(each) for each in encoded], dtype=np.int64)
        rows, tables = np.zeros(len(encoded), dtype=np.int64), {}
        for n in np.unique(lengths).tolist():
            members = np.flatnonzero(lengths == n)
            rows[members] = np.arange(len(members))
            tables[n] = np.zeros((len(members), n, len(self.pcfg.vocabulary)))
        logs = self._fill(encoded, tables, rows)
        return logs, [tables[n][row] for n, row in zip(lengths.tolist(), rows.tolist(), strict=True)]

    def denoise(self, ids: IntArray) -> FloatArray:
        """Return P(word at each position | the known words and the length) of patterns of one length, (B, n, V).

        Args:
            ids: (B, n) numbers of the words in ``pcfg.vocabulary``, -1 for an unknown word.

        Returns:
            As `marginals`: a row sums to one, at a known word it is all on that word; zeros for a pattern without a
            matching sentence.

        Raises:
            InputError: there is no position, or a number that no word has.
        """
        n_words = len(self.pcfg.vocabulary)
        if ids.ndim != 2 or not ids.shape[1]:
            raise InputError(f"expecting an array (patterns, positions) with a position or more, got {ids.shape}")
        if ids.size and not -1 <= ids.min() <= ids.max() < n_words:
            raise InputError(f"a word number is outside the range from -1 (unknown) to {n_words - 1}")
        table = np.zeros((*ids.shape, n_words))
        self._fill(list(np.where(ids < 0, n_words, ids).astype(np.int32)), {ids.shape[1]: table}, np.arange(len(ids)))
        return table

    def _fill(
        self,
        encoded: Sequence[Int32Array],
        tables: Mapping[int, FloatArray] | None = None,
        rows: IntArray | None = None,
    ) -> FloatArray:
        """Return ln of the probability of all sentences that match patterns of word numbers, (N,) nats.

        Args:
            encoded: the vocabulary size is a gap.
            tables: by length n, (R, n, V), zeros: receive the words at the positions; None: skip them.
            rows: (N,) of the tables.
        """
        result, gap = np.full(len(encoded), -np.inf), len(self.pcfg.vocabulary)
        # similar patterns are adjacent: then neighbours share their possible cells
        order = sorted(range(len(encoded)), key=lambda i: (np.count_nonzero(encoded[i] == gap), encoded[i].tobytes()))

        def task(batch: Batch) -> FloatArray:
            if tables is None or rows is None:
                return self._charts.fill(batch.words)
            sources = np.array([order[members[0]] for members in batch.members], dtype=np.int64)
            return self._charts.fill(batch.words, tables[len(batch.words)], rows[sources])

        work = list(batches([encoded[i] for i in order], self._charts.bytes_per_pattern, BUDGET))
        for batch, logs in run(task, work, "exact words at gaps of sentences", len(encoded)):
            for members, log_prob in zip(batch.members, logs.tolist(), strict=True):
                first, *others = (order[member] for member in members)
                result[[first, *others]] = log_prob
                if others and tables is not None and rows is not None:
                    table = tables[len(batch.words)]
                    table[rows[others]] = table[rows[first]]
        return result

    def sample(self, pattern: Pattern, number: int, rng: np.random.Generator) -> list[tuple[str, ...]]:
        """Return sentences drawn from those that match a pattern, in proportion to their probability.

        A derivation of the pattern is drawn from its exact posterior, then a word for the preterminal at each gap.

        Raises:
            InputError: no sentence matches.
        """
        self._require(pattern)
        hiding = self._charts.hiding
        chart = posterior(hiding, [hiding.vocabulary[-1] if word is None else word for word in pattern])
        emission, place = self.pcfg.exact.emission, self.pcfg.symbol_ids
        samples = []
        for _ in range(number):
            tags = [node.label for node in chart.sample(rng).subtrees() if node.is_preterminal]
            words = list(pattern)
            for i, word in enumerate(pattern):
                if word is None:
                    row = emission.getrow(place[tags[i]])
                    words[i] = self.pcfg.vocabulary[rng.choice(row.indices, p=row.data / row.data.sum())]
            samples.append(tuple(str(word) for word in words))
        return samples

    def _require(self, pattern: Pattern) -> None:
        """Refuse a pattern that no sentence matches."""
        if not np.isfinite(self.log_probs([pattern])[0]):
            raise InputError(f"no sentence of the grammar matches {shown(pattern)!r}", code="no-possible-sentence")

    def best(self, pattern: Pattern) -> Iterator[Filling]:
        """Yield all sentences that match a pattern, the most probable first.

        A best-first search over gaps from the left: a partial filling is at least as probable as each of its
        completions, so the first whole sentence in the queue is the most probable one left.

        Raises:
            InputError: no sentence matches, or the search takes more than `MOST` patterns.
        """
        self._require(pattern)
        order, looked = itertools.count(), 0
        queue: list[tuple[float, int, tuple[str | None, ...]]] = [(0.0, next(order), tuple(pattern))]
        while queue:
            if None not in queue[0][2]:
                cost, _, words = heapq.heappop(queue)
                yield Filling(tuple(str(word) for word in words), -cost)
                continue
            some: list[tuple[float, int, tuple[str | None, ...]]] = []
            while queue and len(some) < AT_ONCE and None in queue[0][2]:
                some.append(heapq.heappop(queue))
            looked += len(some)
            if looked > MOST:
                raise InputError(
                    f"there are too many fillings to rank: {MOST:,} partial ones do not decide which is most probable;"
                    " use fewer gaps, or draw samples (infill -n 10)",
                    code="too-large",
                )
            for (cost, _, words), table in zip(some, self.marginals([each[2] for each in some]), strict=True):
                gap = words.index(None)
                for word in np.flatnonzero(table[gap]).tolist():
                    extended = (*words[:gap], self.pcfg.vocabulary[word], *words[gap + 1 :])
                    heapq.heappush(queue, (cost - math.log(table[gap, word]), next(order), extended))

    def total_correlation(self, patterns: Sequence[Pattern]) -> FloatArray:
        """Return the total correlation of the words at the gaps of each pattern: KL(joint || marginals), nats, (N,).

        It is the expected cost of filling all gaps at once, each from its exact marginal. The joint entropy is a sum
        over all fillings, so their number must be small.

        Raises:
            InputError: no sentence matches, or there are too many fillings.
        """
        result = np.zeros(len(patterns))
        for i, (pattern, table) in enumerate(zip(patterns, self.marginals(patterns), strict=True)):
            fillings = list(self.best(pattern))
            joint = math.fsum(-math.exp(each.log_prob) * each.log_prob for each in fillings)
            gaps = table[[word is None for word in pattern]]
            each = -math.fsum((gaps * np.log(np.where(gaps > 0.0, gaps, 1.0))).ravel().tolist())
            result[i] = max(0.0, each - joint)
        return result
