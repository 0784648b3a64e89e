"""Finite pools of any languages: grammars whose next word depends on charts, and processes.

The state of a language is the current string so far: the language computes the distribution of the word after it.
Strings are announced by `TruthsPool.prepare`, so that a language computes all next words of all strings together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from typing_extensions import override

from truesource.grammar.documents.document import WordPredictor, check_pool, with_language
from truesource.grammar.support.arrays import FloatArray, IntArray
from truesource.grammar.support.errors import InputError
from truesource.grammar.truth import Truth, word_counts

if TYPE_CHECKING:
    from numpy.typing import NDArray

Prefix = tuple[int, ...]  #: words of a string so far, by their numbers


class TruthsState(NamedTuple):
    """W documents after the words so far."""

    rows: IntArray  #: (n,)
    prefix: NDArray[Any]  #: (W,) prefix of the current string
    log_weight: FloatArray  #: (W, K) ln P(language | words so far), nats


class TruthsPool(WordPredictor):
    """A predictor by Bayes' rule over K languages of any kind.

    Args:
        languages: (K,) their names.
        truths: (K,) all of whose strings end.
        prior: (K,) P(language).
        switch: P(the language is drawn again) before each string but the first.

    Raises:
        InputError: not all strings of a language end.
    """

    def __init__(self, languages: Sequence[str], truths: Sequence[Truth], prior: FloatArray, switch: float) -> None:
        for name, truth in zip(languages, truths, strict=True):
            total = truth.exact.total_mass
            if abs(total - 1.0) > 1e-9:
                raise InputError(f"not all strings of {name} end: their probabilities sum to {total:.6f}, not 1")
        seen = [word for truth in truths for word in truth.vocabulary]
        check_pool(languages, len(set(seen)) < len(seen))
        words = list(dict.fromkeys(word for truth in truths for word in truth.vocabulary))
        super().__init__(words, None, 8 * len(languages), languages)
        self.truths, self.prior, self.switch = tuple(truths), prior, switch
        number = {word: i for i, word in enumerate(words)}
        self._columns = [np.array([*(number[w] for w in t.vocabulary), len(words)]) for t in truths]
        with np.errstate(divide="ignore"):
            self.log_prior = np.log(prior)
        self._logs: dict[tuple[Prefix, int], FloatArray] = {}
        self._laws: dict[Prefix, FloatArray] = {}

    @override
    def prepare(self, strings: Sequence[Prefix], *, full: bool) -> None:
        # forget earlier strings
        self._logs.clear()
        self._laws.clear()
        prefixes = sorted({string for string in strings if string})
        texts = [[self.words[w] if w >= 0 else "" for w in string] for string in prefixes]
        shape = (len(self.truths), len(self.words) + 1)
        for k, (truth, columns) in enumerate(zip(self.truths, self._columns, strict=True)):
            if full:
                following = truth.next_words(texts)
                for string, table in zip(prefixes, following.probability, strict=True):
                    for j in range(len(string) + 1):
                        self._laws.setdefault(string[:j], np.zeros(shape))[k, columns] = table[j]
                continue
            for string, row in zip(prefixes, truth.exact.causal_log_probs(texts), strict=True):
                for j, word in enumerate([*string, len(self.words)]):
                    self._logs.setdefault((string[:j], word), np.full(len(self.truths), -np.inf))[k] = row[j]

    def _law(self, prefix: Prefix) -> FloatArray:
        """Return P(word or end | prefix, language), (K, V+1); zero if the prefix is impossible."""
        if prefix not in self._laws:
            law = np.zeros((len(self.truths), len(self.words) + 1))
            text = [self.words[w] for w in prefix]
            for k, (truth, columns) in enumerate(zip(self.truths, self._columns, strict=True)):
                if np.isfinite(truth.exact.prefix_log_prob(text)) if text else True:
                    after = truth.next_token(text)
                    law[k, columns] = [*after.probability, after.stop]
            self._laws[prefix] = law
        return self._laws[prefix]

    def _joint(self, state: TruthsState, words: IntArray) -> FloatArray:
        """Return ln P(language, word | words so far) of each document, (n, K) nats; -inf for word -1."""
        log_p = np.empty((len(words), len(self.truths)))
        for i, (row, word) in enumerate(zip(state.rows.tolist(), words.tolist(), strict=True)):
            prefix = state.prefix[row]
            if (prefix, word) in self._logs:
                log_p[i] = self._logs[prefix, word]
            else:
                with np.errstate(divide="ignore"):
                    log_p[i] = -np.inf if word < 0 else np.log(self._law(prefix)[:, word])
        return np.asarray(log_p + state.log_weight[state.rows])

    @override
    def begin(self, n: int) -> TruthsState:
        prefix = np.empty(n, dtype=object)
        prefix[:] = [()] * n
        return TruthsState(np.arange(n), prefix, np.tile(self.log_prior, (n, 1)))

    @override
    def law(self, state: TruthsState) -> tuple[FloatArray, FloatArray]:
        weights = np.exp(state.log_weight[state.rows])
        laws = [weight @ self._law(state.prefix[row]) for weight, row in zip(weights, state.rows, strict=True)]
        table = np.array(laws).reshape(len(laws), len(self.words) + 1)
        return table[:, :-1], table[:, -1]

    @override
    def log_probability(self, state: TruthsState, words: IntArray) -> FloatArray:
        return np.asarray(np.logaddexp.reduce(self._joint(state, words), axis=1))

    @override
    def read(self, state: TruthsState, words: IntArray) -> TruthsState:
        joint = self._joint(state, words)
        weight = joint - np.logaddexp.reduce(joint, axis=1)[:, None]
        ends = words == len(self.words)
        if self.switch > 0.0:
            with np.errstate(divide="ignore"):
                changed = np.logaddexp(np.log1p(-self.switch) + weight, np.log(self.switch) + self.log_prior)
            weight = np.where(ends[:, None], changed, weight)
        state.log_weight[state.rows] = weight
        for row, word, end in zip(state.rows.tolist(), words.tolist(), ends.tolist(), strict=True):
            state.prefix[row] = () if end else (*state.prefix[row], word)
        return state

    @override
    def posterior(self, state: TruthsState) -> FloatArray:
        return np.asarray(np.exp(state.log_weight[state.rows]))

    @override
    def knowing(self, language: int) -> TruthsPool:
        return with_language(self, language)

    @override
    def string_lengths(self, high: int) -> tuple[FloatArray, FloatArray, float]:
        return np.stack([truth.exact.length_pmf(high) for truth in self.truths]), self.prior, self.switch

    @override
    def expected_words(self) -> FloatArray:
        result = np.zeros(len(self.words) + 1)
        for truth, weight, columns in zip(self.truths, self.prior, self._columns, strict=True):
            result[columns[:-1]] += weight * word_counts(truth)
        return result[:-1]

    def words_by_place(self, high: int) -> FloatArray:
        """Raise an error: these strings have no range of lengths."""
        raise NotImplementedError
