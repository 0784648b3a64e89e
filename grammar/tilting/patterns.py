"""Regular expressions over words, as automata.

An expression becomes a nondeterministic automaton (Thompson 1968), then a deterministic one over its sets of states,
then a minimal one. States are counted during construction, so that an expression that needs too many is refused early.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, NoReturn

import numpy as np

from truesource.grammar.support.arrays import BoolArray, Int32Array, IntArray
from truesource.grammar.support.errors import InputError
from truesource.grammar.tilting.partitions import coarsest_partition

MOST_WORDS = 6_000  #: most words in one expression
SHOWN = 90  #: most characters of an expression in a message
MOST_STATES = 4_096  #: most states of the nondeterministic and of the deterministic automaton

_WORD = re.compile(r"'((?:[^'\\]|\\.)+)'|(\S+)")
_TOKEN = re.compile(r"\s+|'((?:[^'\\]|\\.)+)'|([()|*+?.]|\{\d+(?:,\d*)?\})|\[\^([^\]]+)\]|([^\s()|*+?.{}\[\]'^]+)")
_REPEATED: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
_DIGITS = 18  #: digits of a number of repetitions; longer numbers count as this many


def compile_pattern(expression: str) -> tuple[list[str], Int32Array, BoolArray]:
    r"""Return the smallest automaton of a regular expression over words; a sentence matches as a whole.

    Words are separated by spaces; ``.`` is any word, ``[^the a]`` any but these; ``( ) | * + ? {2} {1,3}`` are as in
    Python's `re`. A word with such characters, or a quote, is in single quotes: ``'.'``, ``'don\'t'``.

    Returns:
        The words in the expression; the next state for each state and each of them, and in the last column for
        all other words, (Q, words + 1); which states accept, (Q,). State 0 is the first.

    Raises:
        InputError: it is no such expression, it matches no sentence, or it has more than 6,000 words; or, with code
            ``too-many-rules``, an automaton of it has more than `MOST_STATES` states.

    >>> words, step, accepting = compile_pattern(".* that .*")
    >>> words, step.tolist(), accepting.tolist()
    (['that'], [[1, 0], [1, 1]], [False, True])
    """
    names: dict[str, int] = {}
    network = _read(expression, names)
    step, accepting = _smallest(*_deterministic(network, len(names), expression))
    if not accepting.any():
        raise InputError(f"no sentence matches {expression_text(expression)}; correct it")
    return list(names), step, accepting


class _WordSet(NamedTuple):
    """A set of words by their columns, or the complement."""

    columns: frozenset[int]
    others: bool = False

    def union(self, more: _WordSet) -> _WordSet:
        """Return the union of two sets."""
        if self.others and more.others:
            return _WordSet(self.columns & more.columns, True)
        if self.others or more.others:
            without, with_ = (self, more) if self.others else (more, self)
            return _WordSet(without.columns - with_.columns, True)
        return _WordSet(self.columns | more.columns)


class _Fragment(NamedTuple):
    """A part of an expression: its states are all states from ``low`` on when it is finished."""

    low: int
    start: int
    end: int
    repeated: bool = False

    @property
    def is_word(self) -> bool:
        """True if the part reads one word."""
        return self.end == self.start + 1 and self.low == self.start and not self.repeated


@dataclass
class _Network:
    """A nondeterministic automaton; a state with words leads to the next one by each of them."""

    expression: str
    words: list[_WordSet | None] = field(default_factory=list)
    free: list[list[int]] = field(default_factory=list)  #: states that each state leads to without a word
    start: int = 0
    end: int = 0

    def __len__(self) -> int:
        return len(self.words)

    def state(self, words: _WordSet | None = None) -> int:
        """Add a state; return its number."""
        self.require(len(self) + 1)
        self.words.append(words)
        self.free.append([])
        return len(self) - 1

    def require(self, n: int) -> None:
        """Refuse an automaton of n states."""
        if n > MOST_STATES:
            many = f"{n:,}" if n < 10**12 else f"{n:.0e}"
            raise InputError(
                f"the expression {expression_text(self.expression)} has {many} states with its repetitions expanded,"
                f" more than {MOST_STATES:,}; repeat less, or use --count for numbers of a word",
                code="too-many-rules",
            )

    def word(self, words: _WordSet) -> _Fragment:
        """Add a part that reads one word of a set."""
        start = self.state(words)
        return _Fragment(start, start, self.state())

    def joined(self, one: _Fragment, other: _Fragment) -> bool:
        """Merge a part into an earlier one and return True, if both read one word."""
        words, more = self.words[one.start], self.words[other.start]
        if words is None or more is None or not (one.is_word and other.is_word):
            return False
        self.words[one.start] = words.union(more)
        self.forget(other.low)
        return True

    def chosen(self, low: int, parts: list[_Fragment]) -> _Fragment:
        """Add the alternative of some parts, whose states are all states from ``low`` on."""
        if len(parts) == 1:
            return parts[0]._replace(low=low, repeated=False)
        start, end = self.state(), self.state()
        for part in parts:
            self.free[start].append(part.start)
            self.free[part.end].append(end)
        return _Fragment(low, start, end)

    def repeated(self, part: _Fragment, least: int, most: int | None) -> _Fragment:
        """Add the last part repeated from ``least`` to ``most`` times (None: any number)."""
        size = len(self) - part.low
        copies = max(least, 1) if most is None else most
        self.require(part.low + size * copies + 2)
        if copies == 0:
            self.forget(part.low)
            empty = self.state()
            return _Fragment(part.low, empty, empty, repeated=True)
        for k in range(1, copies):
            for state in range(part.low, part.low + size):
                self.state(self.words[state])
                self.free[-1] += [to + k * size for to in self.free[state]]
        for k in range(1, copies):  # after all are copied
            self.free[part.end + (k - 1) * size].append(part.start + k * size)
        start, end = self.state(), self.state()
        self.free[start].append(part.start)
        if least == 0:
            self.free[start].append(end)
        for k in range(max(least, 1), copies + 1):
            self.free[part.end + (k - 1) * size].append(end)
        if most is None:
            self.free[part.end + (copies - 1) * size].append(part.start + (copies - 1) * size)
        return _Fragment(part.low, start, end, repeated=True)

    def forget(self, low: int) -> None:
        """Remove the states from ``low`` on."""
        del self.words[low:], self.free[low:]


class _Group:
    """The content so far of an open parenthesis, or of the whole expression."""

    def __init__(self, network: _Network) -> None:
        self.network, self.low = network, len(network)
        self.choices: list[_Fragment] = []
        self.sequence: _Fragment | None = None
        self.last: _Fragment | None = None  # not yet part of the sequence, since a repetition may follow

    def add(self, part: _Fragment | None) -> None:
        """Append the pending part to the sequence, and make this one pending."""
        if self.last is not None:
            if self.sequence is None:
                self.sequence = self.last
            else:
                self.network.free[self.sequence.end].append(self.last.start)
                self.sequence = _Fragment(self.sequence.low, self.sequence.start, self.last.end, repeated=True)
        self.last = part

    def choose(self) -> None:
        """End an alternative."""
        self.add(None)
        if self.sequence is None:
            empty = self.network.state()
            self.sequence = _Fragment(empty, empty, empty)
        if not (self.choices and self.network.joined(self.choices[-1], self.sequence)):
            self.choices.append(self.sequence)
        self.sequence = None


def _read(expression: str, names: dict[str, int]) -> _Network:
    """Return the nondeterministic automaton of an expression; ``names`` receives the column of each word.

    Raises:
        InputError: it is no expression, or has too many words or states.
    """
    network = _Network(expression)
    groups = [_Group(network)]
    for words, sign in _tokens(expression, names):
        group = groups[-1]
        if words is not None:
            group.add(network.word(words))
        elif sign == "(":
            group.add(None)
            groups.append(_Group(network))
        elif sign == "|":
            group.choose()
        elif sign == ")":
            if len(groups) == 1:
                _refuse(expression, "a ) closes no (; ")
            group.choose()
            groups.pop()
            groups[-1].add(network.chosen(group.low, group.choices))
        else:
            least, most = _REPEATED.get(sign) or _numbers(sign)
            if group.last is None or group.last.repeated or (most is not None and most < least):
                _refuse(expression, f"{sign} follows no part that it can repeat; ")
            group.last = network.repeated(group.last, least, most)
    if len(groups) > 1:
        _refuse(expression, f"{'a ( is' if len(groups) == 2 else f'{len(groups) - 1:,} ( are'} not closed; ")
    groups[0].choose()
    whole = network.chosen(0, groups[0].choices)
    network.start, network.end = whole.start, whole.end
    return network


def _numbers(sign: str) -> tuple[int, int | None]:
    """Return the least and largest number of ``{2}``, ``{2,}`` or ``{2,3}``."""
    least, comma, most = sign[1:-1].partition(",")
    low = _number(least)
    return low, (_number(most) if most else None) if comma else low


def _number(digits: str) -> int:
    short = digits.lstrip("0") or "0"
    return int(short) if len(short) <= _DIGITS else 10**_DIGITS


def _refuse(expression: str, why: str) -> NoReturn:
    text = expression_text(expression)
    raise InputError(f"no regular expression over words: {text}; {why}write such as '.* that .*'")


def _remedy(rest: str) -> str:
    """Return the remedy for a sign that cannot be parsed."""
    closing = {"[": "]", "{": "}", "'": "'"}.get(rest[0])
    if closing is not None and closing not in rest[1:]:
        return f"close {rest[0]} with {closing}"
    return "put a word with special signs in single quotes"


def expression_text(expression: str) -> str:
    """Return an expression in quotes for a message, without the middle of a long one."""
    if len(expression) <= SHOWN:
        return repr(expression)
    return f"{expression[: 2 * SHOWN // 3]!r} ... {expression[-SHOWN // 3 :]!r} ({len(expression):,} characters)"


def _tokens(expression: str, names: dict[str, int]) -> Iterator[tuple[_WordSet | None, str]]:
    """Yield the words possible at each position, or else the sign there; ``names`` receives the column of each word.

    Raises:
        InputError: there is an invalid sign, or there are too many words.
    """

    def column(word: str) -> int:
        if word not in names and len(names) == MOST_WORDS:
            raise InputError(f"an expression may have at most {MOST_WORDS:,} words; shorten it")
        return names.setdefault(word, len(names))

    at = 0
    while at < len(expression):
        match = _TOKEN.match(expression, at)
        if match is None:
            raise InputError(
                f"no regular expression over words: {expression_text(expression)}, at"
                f" {expression_text(expression[at:])}; {_remedy(expression[at:])}"
            )
        quoted, sign, but, word = match.groups()
        if quoted is not None or word is not None:
            yield _WordSet(frozenset([column(_unquoted(quoted, word))])), ""
        elif but is not None:
            yield _WordSet(frozenset(column(_unquoted(*each)) for each in _WORD.findall(but)), True), ""
        elif sign == ".":
            yield _WordSet(frozenset(), True), ""
        elif sign is not None:
            yield None, sign
        at = match.end()


def _unquoted(quoted: str | None, plain: str) -> str:
    return re.sub(r"\\(.)", r"\1", quoted) if quoted else plain


def _deterministic(network: _Network, n_words: int, expression: str) -> tuple[IntArray, BoolArray]:
    """Return the automaton of sets of states, (Q, words + 1) and (Q,); the first state is 0.

    Raises:
        InputError: it has more than `MOST_STATES` states (code ``too-many-rules``).
    """
    reached: dict[int, int] = {}

    def after(states: list[int]) -> int:
        """Return the states with words, and the last one, that states lead to without a word, as bits."""
        result = 0
        for state in states:
            if state not in reached:
                reached[state] = _free(network, state)
            result |= reached[state]
        return result

    sets = [after([network.start])]
    number = {sets[0]: 0}
    rows: list[IntArray] = []
    while len(rows) < len(sets):
        by_word: dict[int, list[int]] = {}
        others: list[int] = []
        reading = [(words, k + 1) for k in _members(sets[len(rows)]) if (words := network.words[k]) is not None]
        for words, to in reading:
            if words.others:
                others.append(to)
            for column in words.columns:
                by_word.setdefault(column, [])
        for words, to in reading:
            for column in by_word if words.others else words.columns:
                if (column in words.columns) != words.others:
                    by_word[column].append(to)
        row = np.empty(n_words + 1, dtype=np.int64)
        for where, states in [(None, others), *by_word.items()]:
            place = number.setdefault(key := after(states), len(sets))
            if place == len(sets):
                sets.append(key)
            row[slice(None) if where is None else where] = place
        rows.append(row)
        if len(sets) > MOST_STATES:
            raise InputError(
                f"the automaton of {expression_text(expression)} has more than {MOST_STATES:,} states; use fewer words"
                " after a word at any position, or use --count for numbers of a word",
                code="too-many-rules",
            )
    return np.stack(rows), np.array([bool(each >> network.end & 1) for each in sets])


def _free(network: _Network, state: int) -> int:
    """Return the states with words, and the last one, that a state leads to without a word, as bits."""
    seen, left = {state}, [state]
    while left:
        for to in network.free[left.pop()]:
            if to not in seen:
                seen.add(to)
                left.append(to)
    return sum(1 << each for each in seen if network.words[each] is not None or each == network.end)


def _members(states: int) -> list[int]:
    return [k for k, bit in enumerate(reversed(f"{states:b}")) if bit == "1"]


def _smallest(step: IntArray, accepting: BoolArray) -> tuple[Int32Array, BoolArray]:
    """Return the minimal automaton, its states numbered in the order in which words reach them."""
    kinds = np.unique(step, axis=1)
    label = coarsest_partition(kinds, accepting.astype(np.int64))
    first = np.unique(label, return_index=True)[1]
    merged = label[step[first]]
    order = [int(label[0])]
    place = {order[0]: 0}
    for state in order:
        for to in dict.fromkeys(merged[state].tolist()):
            if place.setdefault(to, len(order)) == len(order):
                order.append(to)
    number = np.array([place[each] for each in range(len(first))])
    return number[merged[order]].astype(np.int32), accepting[first[order]]
