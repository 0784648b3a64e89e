"""Rewards of sentences: automata that read words, with gains for words and for the last state."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from truesource.grammar.support.arrays import FloatArray, Int32Array
from truesource.grammar.support.errors import InputError
from truesource.grammar.tilting.patterns import MOST_STATES, compile_pattern

if TYPE_CHECKING:
    from truesource.grammar.rules import GrammarRules

ANY = "*"  #: in a file, every word without its own line in a state
END = "<end>"  #: in a file, the end of the sentence
LONGEST = 10_000  #: largest number of occurrences in a count
COUNT = re.compile(r"(?P<words>\S+?)(?:>=(?P<least>\d+)|=(?P<low>\d+)(?:\.\.(?P<high>\d+))?)")  #: such as ``the=3``


@dataclass(frozen=True, eq=False)
class RewardAutomaton:
    """A deterministic automaton over the V words of a grammar, with a reward for each step and for the last state."""

    start: int
    step: Int32Array  #: (Q, V) the state after a word
    gain: FloatArray  #: (Q, V) gain of the word there
    end: FloatArray  #: (Q,) reward of a sentence that ends there

    @property
    def n_states(self) -> int:
        """Number of states, Q."""
        return len(self.end)

    def reward(self, sentence: Sequence[int]) -> float:
        """Return the reward of a sentence of word numbers."""
        state, total = self.start, 0.0
        for word in sentence:
            total += self.gain[state, word]
            state = self.step[state, word]
        return float(total + self.end[state])


class Reward(ABC):
    """A reward of sentences, by which a grammar can be tilted."""

    @property
    @abstractmethod
    def spec(self) -> str:
        """The reward as text, for records."""

    @abstractmethod
    def automaton(self, pcfg: GrammarRules) -> RewardAutomaton:
        """Return the reward as an automaton over the words of a grammar.

        Raises:
            InputError: it names a word that is not in the grammar.
        """

    def __call__(self, pcfg: GrammarRules, sentences: Sequence[Sequence[str]]) -> FloatArray:
        """Return rewards of sentences, (n,).

        Raises:
            InputError: a sentence has a word that is not in the grammar.
        """
        automaton = self.automaton(pcfg)
        return np.array([automaton.reward(word_numbers(pcfg, sentence)) for sentence in sentences])


class Event(Reward):
    """A reward of 1 for sentences with some property, and of 0 for all others: an event, with a probability."""


def word_numbers(pcfg: GrammarRules, words: Sequence[str]) -> list[int]:
    """Return numbers of words.

    Raises:
        InputError: one is not in the grammar.
    """
    missing = [word for word in words if word not in pcfg.word_ids]
    if missing:
        raise InputError(f"the grammar has no word {missing[0]!r}; use words of its vocabulary")
    return [pcfg.word_ids[word] for word in words]


@dataclass(frozen=True)
class Words(Reward):
    """Each word earns its own reward at any position; other words earn nothing."""

    rewards: Mapping[str, float]

    def __post_init__(self) -> None:
        _require_finite(self.rewards.values())

    @property
    def spec(self) -> str:
        """The rewards as text, such as ``the=1,a=-0.5``."""
        return ",".join(f"{word}={value:g}" for word, value in self.rewards.items())

    def automaton(self, pcfg: GrammarRules) -> RewardAutomaton:
        """Return an automaton of one state."""
        gain = np.zeros((1, len(pcfg.vocabulary)))
        gain[0, word_numbers(pcfg, list(self.rewards))] = list(self.rewards.values())
        return RewardAutomaton(0, np.zeros(gain.shape, dtype=np.int32), gain, np.zeros(1))


@dataclass(frozen=True)
class Count(Event):
    """The event that some words together occur at least ``low`` times, and at most ``high``, in a sentence."""

    words: tuple[str, ...]
    low: int
    high: int | None  #: None for any number

    def __post_init__(self) -> None:
        if not 0 <= self.low <= (self.low if self.high is None else self.high) <= LONGEST:
            numbers = f"{self.low:,} or more" if self.high is None else f"{self.low:,} to {self.high:,}"
            raise InputError(f"expecting numbers from 0 to {LONGEST:,}, the smaller first, got {numbers}")

    @classmethod
    def parse(cls, text: str) -> Count:
        """Read ``the=3``, ``the>=2`` or ``a+the=1..2``.

        Raises:
            InputError: the text has another form.
        """
        match = COUNT.fullmatch(text.strip())
        if match is None:
            raise InputError(f"expecting a count such as the=3, the>=2, or a+the=1..2, got {text!r}")
        words = tuple(match["words"].split("+"))
        if match["least"] is not None:
            return cls(words, int(match["least"]), None)
        return cls(words, int(match["low"]), int(match["high"] or match["low"]))

    @property
    def spec(self) -> str:
        """The count as text, such as ``the=3``, ``the>=2``, ``a+the=1..2``."""
        words = "+".join(self.words)
        if self.high is None:
            return f"{words}>={self.low}"
        return f"{words}={self.low}" if self.low == self.high else f"{words}={self.low}..{self.high}"

    def automaton(self, pcfg: GrammarRules) -> RewardAutomaton:
        """Return a counter up to the number after which nothing changes."""
        last = self.low if self.high is None else self.high + 1
        step = np.repeat(np.arange(last + 1, dtype=np.int32)[:, None], len(pcfg.vocabulary), axis=1)
        numbers = word_numbers(pcfg, self.words)
        step[:, numbers] = np.minimum(step[:, numbers] + 1, last)
        end = np.array([float(self.low <= n and (self.high is None or n <= self.high)) for n in range(last + 1)])
        return RewardAutomaton(0, step, np.zeros(step.shape), end)


@dataclass(frozen=True)
class Pattern(Event):
    """The event that a sentence, as a whole, matches a regular expression over words, see `compile_pattern`."""

    expression: str

    @property
    def spec(self) -> str:
        """The expression."""
        return self.expression

    def automaton(self, pcfg: GrammarRules) -> RewardAutomaton:
        """Return the minimal automaton of the expression."""
        words, step, accepting = compile_pattern(self.expression)
        columns = np.full(len(pcfg.vocabulary), len(words))  # the last column is for all other words
        columns[word_numbers(pcfg, words)] = np.arange(len(words))
        whole = np.ascontiguousarray(step[:, columns])
        return RewardAutomaton(0, whole, np.zeros(whole.shape), accepting.astype(np.float64))


def event_of(text: str) -> Event:
    """Return an event from text: a count such as ``the=3``, else a regular expression over words.

    Raises:
        InputError: it is neither.
    """
    if COUNT.fullmatch(text.strip()):
        return Count.parse(text)
    compile_pattern(text)
    return Pattern(text)


@dataclass(frozen=True)
class Sum(Reward):
    """The sum of two rewards."""

    parts: tuple[Reward, Reward]

    @property
    def spec(self) -> str:
        """Both rewards, with a plus."""
        return " + ".join(part.spec for part in self.parts)

    def automaton(self, pcfg: GrammarRules) -> RewardAutomaton:
        """Return the product of both automata, over reachable pairs of states.

        Raises:
            InputError: as `Reward.automaton`, or there are more than `MOST_STATES` (code ``too-many-rules``).
        """
        one, other = (part.automaton(pcfg) for part in self.parts)
        pairs, at = [(one.start, other.start)], 0
        number = {pairs[0]: 0}
        steps, gains = [], []
        while at < len(pairs):
            p, q = pairs[at]
            row = []
            for pair in zip(one.step[p].tolist(), other.step[q].tolist(), strict=True):
                if pair not in number:
                    number[pair] = len(pairs)
                    pairs.append(pair)
                row.append(number[pair])
            if len(pairs) > MOST_STATES:
                raise InputError(
                    f"the sum of the rewards {self.spec} has more than {MOST_STATES:,} states; choose simpler rewards",
                    code="too-many-rules",
                )
            steps.append(row)
            gains.append(one.gain[p] + other.gain[q])
            at += 1
        end = np.array([one.end[p] + other.end[q] for p, q in pairs])
        return RewardAutomaton(0, np.array(steps, dtype=np.int32), np.stack(gains), end)


@dataclass(frozen=True)
class File(Reward):
    """A reward from a text file: see `read`."""

    path: Path
    lines: tuple[tuple[int, str, str, str, float], ...]  #: line, state, word, next state, reward

    @classmethod
    def read(cls, path: Path) -> Reward:
        """Read word rewards or an automaton, in columns; a line that begins with a hash and a space is a comment.

        Two columns are a word and its reward. Four are a state, a word, the next state and the reward; the first state
        is the initial one. The word ``*`` is every word without its own line in the state; a word without a line stays
        in the state and earns nothing. The word ``<end>``, with three columns, gives the reward of ending in the state.

        Raises:
            InputError: the file cannot be read, a line has other columns, or a state and word are repeated.
        """
        from truesource.grammar.support.files import read_text_lines

        words: dict[str, float] = {}
        lines: list[tuple[int, str, str, str, float]] = []
        for number, text in enumerate(read_text_lines(path), start=1):
            columns = text.split()
            if not columns or columns[0] == "#":
                continue
            value = _number(columns[-1], path, number)
            if len(columns) == 2:
                if columns[0] in words:
                    raise InputError(f"the word {columns[0]!r} is listed twice; remove one", path, number)
                words[columns[0]] = value
            elif len(columns) == 4:
                lines.append((number, columns[0], columns[1], columns[2], value))
            elif len(columns) == 3 and columns[1] == END:
                lines.append((number, columns[0], END, columns[0], value))
            else:
                raise InputError(
                    f"expecting a word and its reward, or state, word, next state and reward, got {text.strip()!r}",
                    path,
                    number,
                )
        if bool(words) == bool(lines):
            raise InputError("expecting rewards of words or an automaton, not both; remove one", path)
        return Words(words) if words else cls(path, tuple(lines))

    @property
    def spec(self) -> str:
        """Name of the file."""
        return self.path.name

    def automaton(self, pcfg: GrammarRules) -> RewardAutomaton:
        """Return the automaton of the lines."""
        states = {name: i for i, name in enumerate(dict.fromkeys(s for line in self.lines for s in (line[1], line[3])))}
        step = np.repeat(np.arange(len(states), dtype=np.int32)[:, None], len(pcfg.vocabulary), axis=1)
        gain, end = np.zeros(step.shape), np.zeros(len(states))
        seen: set[tuple[str, str]] = set()
        for number, state, word, after, value in sorted(self.lines, key=lambda line: line[2] != ANY):
            if (state, word) in seen:
                raise InputError(f"state {state!r} has two lines for {word!r}; remove one", self.path, number)
            seen.add((state, word))
            row = states[state]
            if word == END:
                end[row] = value
                continue
            if word != ANY and word not in pcfg.word_ids:
                raise InputError(f"the grammar has no word {word!r}; use words of its vocabulary", self.path, number)
            at = slice(None) if word == ANY else pcfg.word_ids[word]
            step[row, at], gain[row, at] = states[after], value
        return RewardAutomaton(0, step, gain, end)


def _number(text: str, path: Path, line: int) -> float:
    try:
        value = float(text)
    except ValueError:
        value = np.nan
    if not np.isfinite(value):
        raise InputError(f"a reward must be a number, got {text!r}", path, line)
    return value


def _require_finite(values: object) -> None:
    if not np.isfinite(np.array(list(values), dtype=np.float64)).all():  # type: ignore[call-overload]
        raise InputError("a reward must be a finite number; correct it")
