"""Any words of a sentence given any others, exactly: what a model that fills gaps in any order has to match.

A pattern is a sentence in which some words are not known (None); their number is. Where a word is not known, each
preterminal has the weight of all its words together, so that one inside and one outside pass give the probability of
every word at every gap. Charts hold what is part of a sentence that fits (`GapCharts`). Linear grammars, and weights
beyond the range of a float, take the passes of whole sentences, with one word more that stands for any.
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
GAP = "___"  #: how a word that is not known is written
AT_ONCE = 16  #: patterns that a search looks at together
MOST = 20_000  #: patterns that a search looks at in all


def shown(pattern: Pattern) -> str:
    """A pattern as text."""
    return " ".join(GAP if word is None else word for word in pattern)


@dataclass(frozen=True)
class Filling:
    """A sentence that fits a pattern."""

    words: tuple[str, ...]  #: all of them
    log_prob: float  #: ln P(words at the gaps | the others and their number), nats


class AnyOrder:
    """The exact conditionals of a grammar for every set of known words, given the number of words.

    Args:
        pcfg: the truth.
    """

    def __init__(self, pcfg: PCFG) -> None:
        self.pcfg = pcfg
        self._charts = GapCharts(pcfg)

    def _numbers(self, patterns: Sequence[Pattern]) -> list[Int32Array]:
        """Patterns as numbers of words, the number of words at a gap, -1 where the grammar has no such word.

        Raises:
            InputError: one is empty.
        """
        place, gap = self.pcfg.word_ids, len(self.pcfg.terminals)
        for number, pattern in enumerate(patterns, start=1):
            if not len(pattern):
                raise InputError(f"pattern {number} is empty; give a word or a gap for each place")
        return [np.array([gap if w is None else place.get(w, -1) for w in p], dtype=np.int32) for p in patterns]

    def log_probs(self, patterns: Sequence[Pattern]) -> FloatArray:
        """Ln of the probability of all sentences that fit each pattern, (N,) nats; -inf where there is none.

        Of a pattern without known words it is that of its length; of one without gaps, of the sentence.

        Raises:
            InputError: a pattern is empty.
        """
        return self._fill(self._numbers(patterns))

    def marginals(self, patterns: Sequence[Pattern]) -> list[FloatArray]:
        """P(word at each place | the known words and their number), (n, V) of each pattern.

        At a gap a row sums to one, at a known word it is all on that word; zeros where no sentence fits. Patterns of
        one length share the memory of their tables.

        Raises:
            InputError: a pattern is empty.
        """
        return self.answers(patterns)[1]

    def answers(self, patterns: Sequence[Pattern]) -> tuple[FloatArray, list[FloatArray]]:
        """`log_probs` and `marginals`, at the cost of the latter.

        Raises:
            InputError: a pattern is empty.
        """
        encoded = self._numbers(patterns)
        lengths = np.array([len(each) for each in encoded], dtype=np.int64)
        rows, tables = np.zeros(len(encoded), dtype=np.int64), {}
        for n in np.unique(lengths).tolist():
            members = np.flatnonzero(lengths == n)
            rows[members] = np.arange(len(members))
            tables[n] = np.zeros((len(members), n, len(self.pcfg.terminals)))
        logs = self._fill(encoded, tables, rows)
        return logs, [tables[n][row] for n, row in zip(lengths.tolist(), rows.tolist(), strict=True)]

    def denoise(self, ids: IntArray) -> FloatArray:
        """P(word at each place | the known words and their number) of patterns of one length, (B, n, V).

        Args:
            ids: (B, n) numbers of the words in ``pcfg.terminals``, -1 where a word is not known.

        Returns:
            As `marginals`: at a gap a row sums to one, at a known word it is all on that word; a pattern that no
            sentence fits has zeros.

        Raises:
            InputError: there is no place, or a number that no word has.
        """
        known = len(self.pcfg.terminals)
        if ids.ndim != 2 or not ids.shape[1]:
            raise InputError(f"expecting an array (patterns, places) with one place or more, not {ids.shape}")
        if ids.size and not -1 <= ids.min() <= ids.max() < known:
            raise InputError(f"a number of a word is outside -1 (not known) to {known - 1}")
        table = np.zeros((*ids.shape, known))
        self._fill(list(np.where(ids < 0, known, ids).astype(np.int32)), {ids.shape[1]: table}, np.arange(len(ids)))
        return table

    def _fill(
        self,
        encoded: Sequence[Int32Array],
        tables: Mapping[int, FloatArray] | None = None,
        rows: IntArray | None = None,
    ) -> FloatArray:
        """Ln of the probability of all sentences that fit patterns, numbers of words each, (N,) nats.

        Args:
            encoded: the number of words is a gap.
            tables: by number of places n, (R, n, V), zeros: get the words at the places; None: they are not asked for.
            rows: (N,) of the tables.
        """
        result, gap = np.full(len(encoded), -np.inf), len(self.pcfg.terminals)
        # patterns that are alike come together: what is possible in one, is then possible in its neighbours
        order = sorted(range(len(encoded)), key=lambda i: (np.count_nonzero(encoded[i] == gap), encoded[i].tobytes()))

        def task(batch: Batch) -> FloatArray:
            if tables is None or rows is None:
                return self._charts.fill(batch.words)
            own = np.array([order[members[0]] for members in batch.members], dtype=np.int64)
            return self._charts.fill(batch.words, tables[len(batch.words)], rows[own])

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
        """Sentences drawn from those that fit a pattern, in proportion to their probability.

        A derivation of the pattern is drawn from its exact posterior, then a word for the preterminal at each gap.

        Raises:
            InputError: no sentence fits.
        """
        self._require(pattern)
        hiding = self._charts.hiding
        chart = posterior(hiding, [hiding.terminals[-1] if word is None else word for word in pattern])
        emission, place = self.pcfg.exact.emission, self.pcfg.symbol_ids
        drawn = []
        for _ in range(number):
            tags = [node.label for node in chart.sample(rng).subtrees() if node.is_preterminal]
            words = list(pattern)
            for i, word in enumerate(pattern):
                if word is None:
                    row = emission.getrow(place[tags[i]])
                    words[i] = self.pcfg.terminals[rng.choice(row.indices, p=row.data / row.data.sum())]
            drawn.append(tuple(str(word) for word in words))
        return drawn

    def _require(self, pattern: Pattern) -> None:
        """Refuse a pattern that no sentence fits."""
        if not np.isfinite(self.log_probs([pattern])[0]):
            raise InputError(f"no sentence of the grammar fits {shown(pattern)!r}", code="no-possible-sentence")

    def best(self, pattern: Pattern) -> Iterator[Filling]:
        """All sentences that fit a pattern, the most probable first.

        A search over gaps from the left: what is filled so far is at least as probable as any way to fill the rest, so
        nothing that is still open can be above a whole sentence that is first in the queue (best-first search).

        Raises:
            InputError: no sentence fits, or the search takes more than `MOST` patterns.
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
                    f"the fillings are too many to rank: {MOST:,} beginnings do not decide which is the most probable;"
                    " give fewer gaps, or draw samples (infill -n 10)",
                    code="too-large",
                )
            for (cost, _, words), table in zip(some, self.marginals([each[2] for each in some]), strict=True):
                gap = words.index(None)
                for word in np.flatnonzero(table[gap]).tolist():
                    made = (*words[:gap], self.pcfg.terminals[word], *words[gap + 1 :])
                    heapq.heappush(queue, (cost - math.log(table[gap, word]), next(order), made))

    def total_correlation(self, patterns: Sequence[Pattern]) -> FloatArray:
        """Return the total correlation of the words at the gaps of each pattern: KL(joint || marginals), nats, (N,).

        It is the mean price of filling all gaps at once, each from its own exact probabilities. The joint entropy is
        summed over all fillings, so that there may be few.

        Raises:
            InputError: no sentence fits, or there are too many fillings.
        """
        result = np.zeros(len(patterns))
        for i, (pattern, table) in enumerate(zip(patterns, self.marginals(patterns), strict=True)):
            fillings = list(self.best(pattern))
            joint = math.fsum(-math.exp(each.log_prob) * each.log_prob for each in fillings)
            gaps = table[[word is None for word in pattern]]
            each = -math.fsum((gaps * np.log(np.where(gaps > 0.0, gaps, 1.0))).ravel().tolist())
            result[i] = max(0.0, each - joint)
        return result
