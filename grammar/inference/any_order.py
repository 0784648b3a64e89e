"""Any words of a sentence given any others, exactly: what a model that fills gaps in any order has to match.

A pattern is a sentence in which some words are not known (None); their number is. Where a word is not known, each
preterminal has the weight of all its words together, so that one inside and one outside pass give the probability of
every word at every gap: the cost of a masked word, which is the pattern with one gap.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from truesource.grammar.inference.batch import BUDGET, Batch, Distributions, batches, run
from truesource.grammar.inference.distributions import masked_blocks
from truesource.grammar.inference.posterior import posterior
from truesource.grammar.inference.windows import with_any_word
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import FloatArray, Int32Array, IntArray
from truesource.grammar.support.errors import InputError

Pattern = Sequence[str | None]
AT_ONCE = 16  #: patterns that a search looks at together
MOST = 20_000  #: patterns that a search looks at in all


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
        self._hiding = with_any_word(pcfg)

    @cached_property
    def _any(self) -> str:
        return self._hiding.terminals[-1]

    def _filled(self, patterns: Sequence[Pattern]) -> list[list[str]]:
        """Patterns as sentences of the grammar that has a word for any word.

        Raises:
            InputError: one is empty.
        """
        for number, pattern in enumerate(patterns, start=1):
            if not len(pattern):
                raise InputError(f"pattern {number} is empty; give a word or a gap for each place")
        return [[self._any if word is None else word for word in pattern] for pattern in patterns]

    def log_probs(self, patterns: Sequence[Pattern]) -> FloatArray:
        """Ln of the probability of all sentences that fit each pattern, (N,) nats; -inf where there is none.

        Of a pattern without known words it is that of its length; of one without gaps, of the sentence.

        Raises:
            InputError: a pattern is empty.
        """
        filled = self._filled(patterns)
        halves = np.array([len(pattern) for pattern in patterns]) * math.log(2.0)
        return np.asarray(self._hiding.exact.string_log_probs(filled) + halves)

    def marginals(self, patterns: Sequence[Pattern]) -> list[FloatArray]:
        """P(word at each place | the known words and their number), (n, V) of each pattern.

        At a gap a row sums to one, at a known word it is all on that word; zeros where no sentence fits.

        Raises:
            InputError: a pattern is empty.
        """
        tables: list[FloatArray] = [np.zeros((len(pattern), len(self.pcfg.terminals))) for pattern in patterns]
        self._fill([self._hiding.encode(pattern) for pattern in self._filled(patterns)], tables)
        return tables

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
        tables = np.zeros((*ids.shape, known))
        self._fill(list(np.where(ids < 0, known, ids).astype(np.int32)), tables)
        return tables

    def _fill(self, encoded: Sequence[Int32Array], tables: Sequence[FloatArray] | FloatArray) -> None:
        """Write the words at the places of patterns, numbers of `_hiding` each, to ``tables``, (n, V) each."""
        exact, known = self._hiding.exact, len(self.pcfg.terminals)
        charts = exact.charts()

        def task(batch: Batch) -> list[Distributions]:
            return list(masked_blocks(exact, batch))

        work = list(batches(encoded, lambda n: charts.bytes_per_sentence(n, 1, True), BUDGET))
        for _, blocks in run(task, work, "exact words at gaps of sentences", len(encoded)):
            for block in blocks:
                for row in np.flatnonzero(block.whole).tolist():
                    hidden = block.observed[row] == known
                    at = 2.0 * block.probability[row, :known] if hidden else np.arange(known) == block.observed[row]
                    for i in block.members[row]:
                        tables[i][block.position] = at

    def sample(self, pattern: Pattern, number: int, rng: np.random.Generator) -> list[tuple[str, ...]]:
        """Sentences drawn from those that fit a pattern, in proportion to their probability.

        A derivation of the pattern is drawn from its exact posterior, then a word for the preterminal at each gap.

        Raises:
            InputError: no sentence fits.
        """
        chart = posterior(self._hiding, self._possible(pattern))
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

    def _possible(self, pattern: Pattern) -> list[str]:
        filled = self._filled([pattern])
        if not np.isfinite(self._hiding.exact.string_log_probs(filled)[0]):
            shown = " ".join("___" if word is None else word for word in pattern)
            raise InputError(f"no sentence of the grammar fits {shown!r}", code="no-possible-sentence")
        return filled[0]

    def best(self, pattern: Pattern) -> Iterator[Filling]:
        """All sentences that fit a pattern, the most probable first.

        A search over gaps from the left: what is filled so far is at least as probable as any way to fill the rest, so
        nothing that is still open can be above a whole sentence that is first in the queue (best-first search).

        Raises:
            InputError: no sentence fits, or the search takes more than `MOST` patterns.
        """
        self._possible(pattern)
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
                    f"the {MOST:,} most probable beginnings of fillings do not decide which comes next; give fewer"
                    " gaps, or draw samples",
                    code="too-large",
                )
            for (cost, _, words), table in zip(some, self.marginals([each[2] for each in some]), strict=True):
                gap = words.index(None)
                for word in np.flatnonzero(table[gap]).tolist():
                    made = (*words[:gap], self.pcfg.terminals[word], *words[gap + 1 :])
                    heapq.heappush(queue, (cost - math.log(table[gap, word]), next(order), made))

    def total_correlation(self, patterns: Sequence[Pattern]) -> FloatArray:
        """What the words at the gaps of a pattern say of each other, nats, (N,): KL of the joint from the marginals.

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
