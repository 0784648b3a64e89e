"""Brackets of k kinds, each well nested for itself: the shuffle of k counters (Suzgun et al. 2019)."""

from __future__ import annotations

from collections.abc import Iterator
from math import comb
from typing import NamedTuple

import numpy as np
from pydantic import Field
from typing_extensions import override

from truesource.grammar.building import Move, State, walked
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.languages import Language, LanguageSettings
from truesource.grammar.process import Process, no_length
from truesource.grammar.rules import GrammarRules
from truesource.grammar.support.arrays import FloatArray, IntArray


class ShuffleDyckSettings(LanguageSettings):
    """Parameters of shuffled brackets."""

    k: int = Field(2, ge=1, le=10**4, description="Number of kinds of brackets.")
    depth: int = Field(6, ge=1, le=10**4, description="Maximum number of open brackets of all kinds.")
    p_open: float = Field(0.5, gt=0.0, lt=1.0, description="Probability that a bracket opens if one may close.")

    def n_rules(self) -> int:
        """Return the number of rules: two for each bracket in each configuration, and one for each bracket."""
        return 4 * self.k * comb(self.k + self.depth, min(self.k, self.depth)) + 2 * self.k


def build(settings: ShuffleDyckSettings) -> GrammarRules:
    """Build non-empty strings in which the brackets of each kind, taken alone, are well nested.

    If nothing is open, the string ends with probability 1 - ``p_open``; at the maximum depth a bracket closes; in
    between one opens with probability ``p_open``. An opening bracket has a uniform kind, a closing one a uniform kind
    among the open ones. With one kind and ``p_open`` 1/2 it is `dyck` with k = 1.

    Symbols are configurations, ``open-2-0``: two of the first kind are open, none of the second.
    """
    k, depth, p = settings.k, settings.depth, settings.p_open

    def moves(state: State) -> Iterator[Move]:
        opened = state[1:]
        total, kinds = sum(opened), [i for i in range(k) if opened[i]]
        if total < depth:
            share = (1.0 if total == 0 else p) / k
            yield from ((f"({i + 1}", _changed(state, i, 1), share) for i in range(k))
        share = 0.0 if not kinds else (1.0 if total == depth else 1.0 - p) / len(kinds)
        yield from ((f"{i + 1})", _changed(state, i, -1), share) for i in kinds)

    start = ("open", *(0 for _ in range(k)))
    return walked(start, moves, lambda state: (1.0 - p) / p if not any(state[1:]) else 0.0).grammar()


class OpenBrackets(NamedTuple):
    """Open brackets of W strings after t words."""

    counts: IntArray  #: (W, k) open brackets of each kind
    total: IntArray  #: (W,) open brackets of all kinds
    kinds: IntArray  #: (W,) number of kinds with open brackets
    words: IntArray  #: (W,) number t of words


class ShuffleDyck(Process):
    """Shuffled brackets as a process: the state is the number of open brackets of each kind.

    Whether a bracket opens or closes or the string ends depends only on the number of open brackets of all kinds, also
    under a length condition: each probability is multiplied by the factor by which it raises P(a length of the range)
    (Doob's h-transform), which needs only a table by words read and brackets open.
    """

    def __init__(self, settings: ShuffleDyckSettings, name: str, lengths: LengthRange | None = None) -> None:
        k = settings.k
        super().__init__(name, [f"({i + 1}" for i in range(k)] + [f"{i + 1})" for i in range(k)])
        self.settings, self.lengths = settings, lengths
        depth = settings.depth if lengths is None else min(settings.depth, lengths.high // 2 + 1)
        #: (depth+1,) probabilities by number of open brackets, after the first word
        self._up = np.full(depth + 1, settings.p_open)
        self._down = np.full(depth + 1, 1.0 - settings.p_open)
        if depth == settings.depth:
            self._up[-1], self._down[-1] = 0.0, 1.0
        self._end = np.where(np.arange(depth + 1) == 0, self._down, 0.0)
        self._down[0] = 0.0
        self._reaching = None if lengths is None else self._reach(lengths)

    def _reach(self, lengths: LengthRange) -> FloatArray:
        """Return ln P(a length in the range | words read, open), (high+2, depth+2) nats; last row, column -inf."""
        with np.errstate(divide="ignore"):
            up, down, end = np.log(self._up), np.log(self._down), np.log(self._end)
        table = np.full((lengths.high + 2, len(up) + 1), -np.inf)
        for t in range(lengths.high, 0, -1):
            onward = np.logaddexp(up + table[t + 1, 1:], down + np.append(-np.inf, table[t + 1, :-2]))
            table[t, :-1] = np.logaddexp(onward, end if t in lengths else -np.inf)
        table[0, 0] = table[1, 1]
        if not np.isfinite(table[0, 0]):
            raise no_length(self.name, lengths)
        return table

    def begin(self, n: int) -> OpenBrackets:
        """Return the state with nothing open."""
        none = np.zeros(n, dtype=np.int64)
        return OpenBrackets(np.zeros((n, self.settings.k), dtype=np.int32), none, none, none)

    def _rates(self, state: OpenBrackets) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the probabilities that a bracket opens, that one closes, and of the end, (W,) each."""
        t, d = state.words, state.total
        up, down, end = np.where(t == 0, 1.0, self._up[d]), self._down[d], np.where(t == 0, 0.0, self._end[d])
        if self._reaching is None or self.lengths is None:
            return up, down, end
        here = self._reaching[t, d]
        up = up * np.exp(self._reaching[t + 1, d + 1] - here)
        down = down * np.exp(self._reaching[t + 1, np.maximum(d - 1, 0)] - here)
        return up, down, end * np.where((t >= self.lengths.low) & (t <= self.lengths.high), np.exp(-here), 0.0)

    @override
    def law(self, state: OpenBrackets) -> FloatArray:
        up, down, end = self._rates(state)
        close = down / np.maximum(state.kinds, 1)
        opening = np.repeat((up / self.settings.k)[:, None], self.settings.k, axis=1)
        return np.concatenate([opening, (state.counts > 0) * close[:, None], end[:, None]], axis=1)

    @override
    def probability(self, state: OpenBrackets, words: IntArray) -> FloatArray:
        # without computing the other words
        k = self.settings.k
        up, down, end = self._rates(state)
        kind = np.clip(words - k, 0, k - 1)
        close = np.where(state.counts[np.arange(len(words)), kind] > 0, down / np.maximum(state.kinds, 1), 0.0)
        probabilities = np.where(words < k, up / k, np.where(words < 2 * k, close, end))
        return np.where(words < 0, 0.0, probabilities)

    @override
    def draw(self, state: OpenBrackets, uniform: FloatArray) -> IntArray:
        # first whether a bracket opens, then which
        k = self.settings.k
        up, down, end = self._rates(state)
        u = uniform * (up + down + end)
        words = np.full(len(u), 2 * k)
        opens = u < up
        words[opens] = np.minimum(u[opens] / up[opens] * k, k - 1)
        closes = np.flatnonzero(~opens & ((u < up + down) | (end == 0.0)))
        share = np.clip((u[closes] - up[closes]) / down[closes], 0.0, 1.0)
        rank = np.minimum(share * state.kinds[closes], state.kinds[closes] - 1).astype(np.int64)
        seen = np.cumsum(state.counts[closes] > 0, axis=1, dtype=np.int32)
        words[closes] = k + np.argmax(seen > rank[:, None], axis=1)
        return words

    @override
    def read(self, state: OpenBrackets, words: IntArray) -> OpenBrackets:
        k, every = self.settings.k, np.arange(len(words))
        opens, kind = words < k, words % k
        counts = state.counts
        before = counts[every, kind]
        counts[every, kind] = after = before + np.where(opens, 1, -1)
        return OpenBrackets(
            counts,
            state.total + np.where(opens, 1, -1),
            state.kinds + (opens & (before == 0)) - (~opens & (after == 0)),
            state.words + 1,
        )

    @override
    def length_pmf(self, high: int) -> FloatArray:
        # the walk of the number of open brackets, forward
        pmf, walk = np.zeros(high + 1), np.zeros(len(self._up) + 1)
        top = high if self.lengths is None else min(high, self.lengths.high)
        if top:
            walk[1] = 1.0
        for t in range(1, top + 1):
            pmf[t] = walk[0] * self._end[0]
            up, down = walk[:-1] * self._up, walk[:-1] * self._down
            walk = np.concatenate([[0.0], up]) + np.concatenate([down[1:], [0.0, 0.0]])
        if self.lengths is not None:
            pmf[: self.lengths.low] = 0.0
            pmf /= np.exp(self._log_mass)
        return pmf

    @property
    def _log_mass(self) -> float:
        assert self._reaching is not None
        return float(self._reaching[0, 0])

    @override
    def given(self, lengths: LengthRange) -> ShuffleDyck:
        return ShuffleDyck(self.settings, self.name, lengths)

    @override
    def expected_words(self) -> FloatArray:
        # all kinds are equally frequent
        if self.lengths is not None:
            mean = float(np.arange(self.lengths.high + 1) @ self.length_pmf(self.lengths.high))
        else:
            down_one = 0.0  # expected words until one less is open, from the maximum down to 1
            with np.errstate(over="ignore"):
                for d in range(self.settings.depth, 0, -1):
                    down_one = (1.0 + self._up[d] * down_one) / self._down[d]
            mean = float((1.0 + down_one) / self._end[0])
        return np.full(len(self.vocabulary), mean / len(self.vocabulary))


def _changed(state: State, kind: int, by: int) -> State:
    return (*state[: kind + 1], state[kind + 1] + by, *state[kind + 2 :])


LANGUAGE = Language(
    title="brackets of k kinds, each nested for itself",
    tests="k counters at once, beyond context-free from two kinds on",
    citation=(
        "Suzgun, Gehrmann, Belinkov and Shieber (2019), LSTM networks can perform dynamic counting, Workshop on Deep"
        " Learning and Formal Languages, ACL"
    ),
    settings=ShuffleDyckSettings,
    build=build,
    process=ShuffleDyck,
)
