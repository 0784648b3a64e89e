"""A string and copies of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from pydantic import Field
from typing_extensions import override

from truesource.grammar.building import Move, State, truncated_geometric, walked
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.languages import Language, LanguageSettings
from truesource.grammar.process import Process, no_length
from truesource.grammar.rules import GrammarRules
from truesource.grammar.support.arrays import BoolArray, FloatArray, Int32Array, IntArray


class CopySettings(LanguageSettings):
    """Parameters of copied strings."""

    vocabulary: int = Field(2, ge=1, le=10**6, description="Number of word types.")
    longest: int = Field(6, ge=1, le=1000, description="Largest length of the copied string.")
    p: float = Field(0.9, gt=0.0, lt=1.0, description="Ratio of the probabilities of n + 1 and n words.")
    times: int = Field(2, ge=2, le=1000, description="Number of occurrences of the string, the first included.")
    marker: bool = Field(True, description="Whether # separates the copies.")

    def n_rules(self) -> int:
        """Return the number of rules: two for each word of each string and its copies and markers; and the words."""
        v, longest = self.vocabulary, self.longest
        if v > 1 and longest * (v.bit_length() - 1) > 64:
            return 2**63  # beyond any memory; the exact number may have millions of digits
        strings: int = sum(v**n for n in range(1, longest + 1))
        return 2 * strings * ((longest + 1) * self.times + v) + v + 1


def build(settings: CopySettings) -> GrammarRules:
    """Build ``w # w``, or ``w w``: a string w of independent, uniformly distributed words, and copies of it.

    The length of w is 1 to ``longest``, in proportion to p^n. Without the marker, the end of the first string is
    hidden: a prefix is the beginning of several strings, whose probabilities the grammar sums.

    Symbols are configurations: ``w-1-2``, after the first two words of w, here w1 and w2; ``copy-1-1-2``, after the
    first word of the copies of that string, markers counted.
    """
    v, more = settings.vocabulary, truncated_geometric(settings.p, settings.longest)
    between = ("#",) if settings.marker else ()

    def rest(w: tuple[int, ...]) -> tuple[str, ...]:
        """Return all that follows the first string."""
        return (*between, *(f"w{i}" for i in w)) * (settings.times - 1)

    def moves(state: State) -> Iterator[Move]:
        if state[0] == "w":
            w = state[1:]
            yield from ((f"w{i}", (*state, i), more[len(w)] / v) for i in range(1, v + 1))
            if w:
                yield rest(w)[0], ("copy", 1, *w), 1.0 - more[len(w)]
        else:
            done, w = state[1], state[2:]
            left = rest(w)
            if done < len(left):
                yield left[done], ("copy", done + 1, *w), 1.0

    def end(state: State) -> float:
        return float(state[0] == "copy" and state[1] == len(rest(state[2:])))

    return walked(("w",), moves, end).grammar()


class CopyLanguage(Process):
    """Base class of marked and unmarked copies: the distribution of the length of the string w."""

    def __init__(self, settings: CopySettings, name: str, lengths: LengthRange | None = None) -> None:
        words = [f"w{i + 1}" for i in range(settings.vocabulary)]
        super().__init__(name, [*words, "#"] if settings.marker else words)
        self.settings, self.lengths = settings, lengths
        longest, marks = settings.longest, (settings.times - 1) * settings.marker
        #: (longest+1,) words of the whole string if w has m
        self.wholes = np.append(0, settings.times * np.arange(1, longest + 1) + marks)
        mass = settings.p ** np.arange(longest + 1.0)
        mass[0] = 0.0
        if lengths is not None:
            mass[(self.wholes < lengths.low) | (self.wholes > lengths.high)] = 0.0
            if not mass.any():
                raise no_length(name, lengths)
        #: (longest+1,) P(w has m words)
        self.mass = mass / mass.sum()

    @override
    def length_pmf(self, high: int) -> FloatArray:
        pmf, short = np.zeros(high + 1), self.wholes <= high
        pmf[self.wholes[short]] = self.mass[short]
        return pmf

    @override
    def given(self, lengths: LengthRange) -> CopyLanguage:
        # depends only on the length of w
        return type(self)(self.settings, self.name, lengths)

    @override
    def expected_words(self) -> FloatArray:
        # each word is equally frequent in w, and in every copy
        v, times = self.settings.vocabulary, self.settings.times
        expected = np.full(len(self.vocabulary), float(np.arange(len(self.mass)) @ self.mass) * times / v)
        if self.settings.marker:
            expected[v] = times - 1.0
        return expected


class MarkedState(NamedTuple):
    """State of W strings with a marker, after some words."""

    w: Int32Array  #: (W, longest) the copied string so far
    m: IntArray  #: (W,) its length so far
    done: IntArray  #: (W,) words read since its end, markers included; 0 before it


class MarkedCopies(CopyLanguage):
    """``w # w``: independent words, then a marker that ends w; everything after it is certain."""

    def __init__(self, settings: CopySettings, name: str, lengths: LengthRange | None = None) -> None:
        super().__init__(settings, name, lengths)
        above = np.append(np.cumsum(self.mass[::-1])[::-1], 0.0)
        #: (longest+1,) P(one word more | m so far)
        self._more = np.divide(above[1:], above[:-1], out=np.zeros(len(self.mass)), where=above[:-1] > 0.0)

    def begin(self, n: int) -> MarkedState:
        """Return the state before the first word."""
        none = np.zeros(n, dtype=np.int64)
        return MarkedState(np.zeros((n, self.settings.longest), dtype=np.int32), none, none)

    def _due(self, state: MarkedState) -> IntArray:
        """Return (W,) the only possible next token after the end of w: a word, the marker V-1, or the end V."""
        place = state.done % (state.m + 1)
        word = state.w[np.arange(len(place)), place - 1]
        due = np.where(place == 0, self.settings.vocabulary, word)
        return np.where(state.done == (self.settings.times - 1) * (state.m + 1), len(self.vocabulary), due)

    @override
    def law(self, state: MarkedState) -> FloatArray:
        v, more = self.settings.vocabulary, self._more[state.m]
        law = np.zeros((len(state.m), v + 2))
        law[:, :v], law[:, v] = (more / v)[:, None], 1.0 - more
        certain = np.flatnonzero(state.done)
        law[certain] = 0.0
        law[certain, self._due(state)[certain]] = 1.0
        return law

    @override
    def probability(self, state: MarkedState, words: IntArray) -> FloatArray:
        # without computing the other words
        v, more = self.settings.vocabulary, self._more[state.m]
        first = np.where(words < v, more / v, np.where(words == v, 1.0 - more, 0.0))
        probabilities = np.where(state.done > 0, words == self._due(state), first)
        return np.where(words < 0, 0.0, probabilities)

    @override
    def draw(self, state: MarkedState, uniform: FloatArray) -> IntArray:
        # first whether w continues, then the word
        v, more = self.settings.vocabulary, self._more[state.m]
        goes_on = (uniform < more) | (more == 1.0)
        share = np.divide(uniform, more, out=np.zeros(len(more)), where=goes_on)
        first = np.where(goes_on, np.minimum(share * v, v - 1).astype(np.int64), v)
        return np.where(state.done > 0, self._due(state), first)

    @override
    def read(self, state: MarkedState, words: IntArray) -> MarkedState:
        grows = (state.done == 0) & (words < self.settings.vocabulary)
        rows = np.flatnonzero(grows)
        state.w[rows, state.m[rows]] = words[rows]
        return MarkedState(state.w, state.m + grows, state.done + ~grows)


class UnmarkedState(NamedTuple):
    """State of W strings without a marker, after t words."""

    w: Int32Array  #: (W, longest) the first words
    log_weight: FloatArray  #: (W, longest+1) ln P(w has m words, words so far) up to a constant, nats; -inf: impossible
    words: IntArray  #: (W,) t


class UnmarkedCopies(CopyLanguage):
    """``w w``: the end of the first string is hidden, so that the distribution is a sum over its possible lengths."""

    def begin(self, n: int) -> UnmarkedState:
        """Return the state in which every length is possible."""
        with np.errstate(divide="ignore"):
            log_mass = np.log(self.mass)
        w = np.zeros((n, self.settings.longest), dtype=np.int32)
        return UnmarkedState(w, np.repeat(log_mass[None], n, axis=0), np.zeros(n, dtype=np.int64))

    def _parts(self, state: UnmarkedState) -> tuple[FloatArray, Int32Array, BoolArray, BoolArray]:
        """Return P(w has m words | words so far), the next word then, whether w grows and whether it ends, (W, m)."""
        m, t = np.arange(self.settings.longest + 1), state.words[:, None]
        weight = np.exp(state.log_weight - state.log_weight.max(axis=1, keepdims=True))
        follows = np.take_along_axis(state.w, t % np.maximum(m, 1), axis=1)
        return weight / weight.sum(axis=1, keepdims=True), follows, t < m, t == self.wholes

    @override
    def law(self, state: UnmarkedState) -> FloatArray:
        v = self.settings.vocabulary
        share, follows, grows, ends = self._parts(state)
        law = np.repeat((share * grows).sum(axis=1, keepdims=True) / v, v + 1, axis=1)
        law[:, v] = (share * ends).sum(axis=1)
        np.add.at(law, (np.arange(len(law))[:, None], follows), share * ~(grows | ends))
        return law

    @override
    def probability(self, state: UnmarkedState, words: IntArray) -> FloatArray:
        # without computing the other words
        v = self.settings.vocabulary
        share, follows, grows, ends = self._parts(state)
        copied = ~(grows | ends) & (follows == words[:, None])
        of_word = (share * np.where(grows, 1.0 / v, copied)).sum(axis=1)
        return np.where(words < 0, 0.0, np.where(words == v, (share * ends).sum(axis=1), of_word))

    @override
    def draw(self, state: UnmarkedState, uniform: FloatArray) -> IntArray:
        # first the length of w, then the next token
        v, every = self.settings.vocabulary, np.arange(len(uniform))
        share, follows, grows, ends = self._parts(state)
        sums = np.cumsum(share, axis=1)
        place = uniform * sums[:, -1]
        m = (sums <= place[:, None]).sum(axis=1)
        rest = np.clip((place - sums[every, m] + share[every, m]) / share[every, m], 0.0, 1.0)
        new = np.minimum(rest * v, v - 1).astype(np.int64)
        return np.where(ends[every, m], v, np.where(grows[every, m], new, follows[every, m]))

    @override
    def read(self, state: UnmarkedState, words: IntArray) -> UnmarkedState:
        m, t = np.arange(self.settings.longest + 1), state.words
        log_weight = np.where(t[:, None] < m, state.log_weight - np.log(self.settings.vocabulary), state.log_weight)
        follows = np.take_along_axis(state.w, t[:, None] % np.maximum(m, 1), axis=1)
        log_weight[(t[:, None] >= m) & ((follows != words[:, None]) | (t[:, None] == self.wholes))] = -np.inf
        rows = np.flatnonzero(t < self.settings.longest)
        state.w[rows, t[rows]] = words[rows]
        return UnmarkedState(state.w, log_weight, t + 1)


def process(settings: CopySettings, name: str) -> CopyLanguage:
    """Return the language of given settings as a process."""
    return (MarkedCopies if settings.marker else UnmarkedCopies)(settings, name)


LANGUAGE = Language(
    title="a string and copies of it",
    tests="verbatim memory, beyond context-free",
    citation=(
        "Jelassi, Brandfonbrener, Kakade and Malach (2024), Repeat after me: Transformers are better than state space"
        " models at copying, ICML"
    ),
    settings=CopySettings,
    build=build,
    process=process,
    presets={"repeat": {"times": 4}},
)
