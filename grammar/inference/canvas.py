"""Any words given any others where the number of words is not known: a canvas of places, the last of them ends.

A model that fills gaps in any order is given some places; the sentence stands first, and the end of the sentence at
each place behind it. What is exact of patterns of a given number of words (`AnyOrder`) is averaged over the numbers
of words that what is known allows, each weighted with the probability of its sentences that fit.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import logsumexp

from truesource.grammar.conditioning import LengthRange
from truesource.grammar.inference.any_order import AnyOrder, Pattern, shown
from truesource.grammar.inference.batch import BUDGET
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import FloatArray
from truesource.grammar.support.errors import InputError


class Canvas:
    """The exact conditionals of a grammar for every set of known places, given the range of the number of words.

    Args:
        pcfg: the truth.
        lengths: the number of words of a sentence, by the law of the grammar in this range; there are ``lengths.high``
            places.
        end: stands at each place behind the sentence; no word of the grammar.

    Raises:
        InputError: the grammar has ``end`` as a word, or no sentence of such a length.
    """

    def __init__(self, pcfg: PCFG, lengths: LengthRange, end: str) -> None:
        if end in pcfg.word_ids:
            raise InputError(f"the grammar has the word {end!r}; give another name for the end of a sentence")
        self.pcfg, self.lengths, self.end = pcfg, lengths, end
        self._truth, self._log_range = AnyOrder(pcfg), float(np.log(pcfg.exact.range_mass(lengths)))

    def log_probs(self, patterns: Sequence[Pattern]) -> FloatArray:
        """Ln of the probability of all sentences that fit each pattern, (N,) nats; -inf where there is none.

        Args:
            patterns: a word, the end, or None at each place.

        Raises:
            InputError: a pattern has another number of places.
        """
        cuts = [self._cuts(pattern) for pattern in patterns]
        flat = self._truth.log_probs([cut for some in cuts for cut in some])
        totals = np.full(len(patterns), -np.inf)
        for i, logs in enumerate(_parts(flat, cuts)):
            if len(logs):
                totals[i] = logsumexp(logs)
        return totals - self._log_range

    def marginals(self, patterns: Sequence[Pattern]) -> FloatArray:
        """P(word or end at each place | what is known), (N, places, V+1), the end last.

        A row sums to one; of a known place it is all on what stands there. Zeros where no sentence fits.

        Args:
            patterns: as in `log_probs`.

        Raises:
            InputError: a pattern has another number of places.
        """
        places, size = self.lengths.high, len(self.pcfg.terminals)
        result = np.zeros((len(patterns), places, size + 1))
        step = max(1, BUDGET // (4 * places * places * size))  # of tables of all numbers of words
        for at in range(0, len(patterns), step):
            cuts = [self._cuts(pattern) for pattern in patterns[at : at + step]]
            flat, tables = self._truth.answers([cut for some in cuts for cut in some])
            first = 0
            for table, own, logs in zip(result[at : at + step], cuts, _parts(flat, cuts), strict=True):
                for cut, weight, words in zip(own, _shares(logs), tables[first : first + len(own)], strict=True):
                    table[: len(cut), :size] += weight * words
                    table[len(cut) :, size] += weight
                first += len(own)
        return result

    def sample(self, pattern: Pattern, number: int, rng: np.random.Generator) -> list[tuple[str, ...]]:
        """Canvases drawn from those that fit a pattern, in proportion to their probability: words, then ends.

        Raises:
            InputError: the pattern has another number of places, or no sentence fits.
        """
        cuts = self._cuts(pattern)
        shares = _shares(self._truth.log_probs(cuts))
        if not shares.sum() > 0.0:
            raise InputError(
                f"no sentence of {self.lengths} words of the grammar fits {shown(pattern)!r}",
                code="no-possible-sentence",
            )
        drawn: list[tuple[str, ...]] = []
        for cut, times in zip(cuts, rng.multinomial(number, shares / shares.sum()).tolist(), strict=True):
            if times:
                ends = (self.end,) * (self.lengths.high - len(cut))
                drawn += [(*words, *ends) for words in self._truth.sample(cut, times, rng)]
        return [drawn[i] for i in rng.permutation(number)]

    def _cuts(self, pattern: Pattern) -> list[Pattern]:
        """The beginnings of a pattern that can be a whole sentence."""
        if len(pattern) != self.lengths.high:
            raise InputError(f"a pattern has {len(pattern)} places, expecting {self.lengths.high}, the most words")
        words = [i for i, word in enumerate(pattern) if word is not None and word != self.end]
        ends = [i for i, word in enumerate(pattern) if word == self.end]
        low = max(self.lengths.low, words[-1] + 1 if words else 0)
        high = ends[0] if ends else self.lengths.high
        return [pattern[:m] for m in range(low, high + 1)]


def _parts(flat: FloatArray, groups: Sequence[Sequence[Pattern]]) -> list[FloatArray]:
    """``flat``, cut into as many as there are in each group."""
    return np.split(flat, np.cumsum([len(group) for group in groups])[:-1]) if groups else []


def _shares(logs: FloatArray) -> FloatArray:
    """Return shares of the whole from logarithms; zeros if the whole is zero."""
    most = logs.max(initial=-np.inf)
    weights = np.exp(logs - (most if np.isfinite(most) else 0.0))
    return np.asarray(weights / max(weights.sum(), 1.0))
