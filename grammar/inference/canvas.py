"""Any words given any others if the number of words is unknown: a canvas of positions, the last of them ends.

A model that fills gaps in any order gets a fixed number of positions: the sentence, then the end symbol at each
position after it. Exact results for patterns with a given number of words (`AnyOrder`) are averaged over the possible
numbers of words, each weighted by the probability of its matching sentences.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy  # it imports `scipy.special` when that is first used

from truesource.grammar.conditioning import LengthRange
from truesource.grammar.inference.any_order import AnyOrder, Pattern, shown
from truesource.grammar.inference.batch import BUDGET
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import FloatArray
from truesource.grammar.support.errors import InputError


class Canvas:
    """The exact conditionals of a grammar for every set of known positions, given a range of lengths.

    Args:
        pcfg: the true grammar.
        lengths: range of the number of words, distributed as in the grammar; there are ``lengths.high`` positions.
        end: symbol at each position after the sentence; no word of the grammar.

    Raises:
        InputError: the grammar has ``end`` as a word, or no sentence of such a length.
    """

    def __init__(self, pcfg: PCFG, lengths: LengthRange, end: str) -> None:
        if end in pcfg.word_ids:
            raise InputError(f"the grammar has the word {end!r}; choose another symbol for the end of a sentence")
        self.pcfg, self.lengths, self.end = pcfg, lengths, end
        self._truth, self._log_range = AnyOrder(pcfg), float(np.log(pcfg.exact.range_mass(lengths)))

    def log_probs(self, patterns: Sequence[Pattern]) -> FloatArray:
        """Return ln of the probability of all sentences that match each pattern, (N,) nats; -inf for none.

        Args:
            patterns: a word, the end, or None at each position.

        Raises:
            InputError: a pattern has the wrong number of positions.
        """
        cuts = [self._cuts(pattern) for pattern in patterns]
        flat = self._truth.log_probs([cut for some in cuts for cut in some])
        totals = np.full(len(patterns), -np.inf)
        for i, logs in enumerate(_parts(flat, cuts)):
            if len(logs):
                totals[i] = scipy.special.logsumexp(logs)
        return totals - self._log_range

    def marginals(self, patterns: Sequence[Pattern]) -> FloatArray:
        """Return P(word or end at each position | the known positions), (N, positions, V+1), the end last.

        A row sums to one; at a known position it is all on the known token. Zeros if no sentence matches.

        Args:
            patterns: as in `log_probs`.

        Raises:
            InputError: a pattern has the wrong number of positions.
        """
        places, size = self.lengths.high, len(self.pcfg.vocabulary)
        result = np.zeros((len(patterns), places, size + 1))
        step = max(1, BUDGET // (4 * places * places * size))  # number of tables for all lengths
        for at in range(0, len(patterns), step):
            cuts = [self._cuts(pattern) for pattern in patterns[at : at + step]]
            flat, tables = self._truth.answers([cut for some in cuts for cut in some])
            first = 0
            for table, some, logs in zip(result[at : at + step], cuts, _parts(flat, cuts), strict=True):
                for cut, weight, words in zip(some, _shares(logs), tables[first : first + len(some)], strict=True):
                    table[: len(cut), :size] += weight * words
                    table[len(cut) :, size] += weight
                first += len(some)
        return result

    def sample(self, pattern: Pattern, number: int, rng: np.random.Generator) -> list[tuple[str, ...]]:
        """Return canvases drawn from those that match a pattern, in proportion to their probability: words, then ends.

        Raises:
            InputError: the pattern has the wrong number of positions, or no sentence matches.
        """
        cuts = self._cuts(pattern)
        shares = _shares(self._truth.log_probs(cuts))
        if not shares.sum() > 0.0:
            raise InputError(
                f"the grammar has no sentence of {self.lengths} words that matches {shown(pattern)!r}",
                code="no-possible-sentence",
            )
        samples: list[tuple[str, ...]] = []
        for cut, times in zip(cuts, rng.multinomial(number, shares / shares.sum()).tolist(), strict=True):
            if times:
                ends = (self.end,) * (self.lengths.high - len(cut))
                samples += [(*words, *ends) for words in self._truth.sample(cut, times, rng)]
        return [samples[i] for i in rng.permutation(number)]

    def _cuts(self, pattern: Pattern) -> list[Pattern]:
        """Return the beginnings of a pattern that can be a whole sentence."""
        if len(pattern) != self.lengths.high:
            raise InputError(f"a pattern has {len(pattern)} positions; expecting {self.lengths.high}")
        words = [i for i, word in enumerate(pattern) if word is not None and word != self.end]
        ends = [i for i, word in enumerate(pattern) if word == self.end]
        low = max(self.lengths.low, words[-1] + 1 if words else 0)
        high = ends[0] if ends else self.lengths.high
        return [pattern[:m] for m in range(low, high + 1)]


def _parts(flat: FloatArray, groups: Sequence[Sequence[Pattern]]) -> list[FloatArray]:
    """Split ``flat`` into parts of the sizes of the groups."""
    return np.split(flat, np.cumsum([len(group) for group in groups])[:-1]) if groups else []


def _shares(logs: FloatArray) -> FloatArray:
    """Return the shares of a total, from logarithms; zeros if the total is zero."""
    most = logs.max(initial=-np.inf)
    weights = np.exp(logs - (most if np.isfinite(most) else 0.0))
    return np.asarray(weights / max(weights.sum(), 1.0))
