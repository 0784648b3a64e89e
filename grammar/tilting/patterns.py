"""Regular expressions over words, as automata."""

from __future__ import annotations

import re

import numpy as np

from truesource.grammar.support.arrays import BoolArray, Int32Array
from truesource.grammar.support.errors import InputError

FIRST = 0xE000  #: characters of Unicode for private use stand for words
MOST = 6_000  #: words that one expression may name
OTHER = chr(FIRST + MOST)  #: stands for every word that the expression does not name

_WORD = re.compile(r"'((?:[^'\\]|\\.)+)'|(\S+)")
_TOKEN = re.compile(r"\s+|'((?:[^'\\]|\\.)+)'|([()|*+?.]|\{\d+(?:,\d*)?\})|\[\^([^\]]+)\]|([^\s()|*+?.{}\[\]'^]+)")


def compile_pattern(expression: str) -> tuple[list[str], Int32Array, BoolArray]:
    r"""The smallest automaton of a regular expression over words; a sentence matches as a whole.

    Words are separated by spaces; ``.`` is any word, ``[^the a]`` any but these; ``( ) | * + ? {2} {1,3}`` are those of
    Python's `re`. A word with such characters, or a quote, stands in single quotes: ``'.'``, ``'don\'t'``.

    Returns:
        The words that the expression names; the next state for each state and such word, and in the last column for
        all other words, (Q, words + 1); which states accept, (Q,). State 0 is the first.

    Raises:
        InputError: it is no such expression, it matches no sentence, or it names more than 6,000 words.

    >>> words, step, accepting = compile_pattern(".* that .*")
    >>> words, step.tolist(), accepting.tolist()
    (['that'], [[1, 0], [1, 1]], [False, True])
    """
    from greenery import parse
    from greenery.parse import NoMatch

    names: dict[str, str] = {}
    try:
        automaton = parse(_translated(expression, names)).to_fsm().reduce()
    except (NoMatch, ValueError, IndexError) as error:
        raise InputError(f"no regular expression over words: {expression!r}; write such as '.* that .*'") from error
    order = [automaton.initial, *sorted(automaton.states - {automaton.initial}, key=str)]
    number = {state: i for i, state in enumerate(order)}
    step = np.empty((len(order), len(names) + 1), dtype=np.int32)
    for state in order:
        for kind, after in automaton.map[state].items():
            for column, character in enumerate((*names.values(), OTHER)):
                if kind.accepts(character):
                    step[number[state], column] = number[after]
    accepting = np.array([state in automaton.finals for state in order])
    if not accepting.any():
        raise InputError(f"no sentence matches {expression!r}; mend it")
    return list(names), step, accepting


def _translated(expression: str, names: dict[str, str]) -> str:
    """The expression over characters, each of which is a word; ``names`` gets the character of each.

    Raises:
        InputError: it has a sign that cannot stand there, or too many words.
    """

    def character(word: str) -> str:
        if len(names) == MOST:
            raise InputError(f"an expression names at most {MOST:,} words; shorten it")
        return names.setdefault(word, chr(FIRST + len(names)))

    parts, at = [], 0
    while at < len(expression):
        match = _TOKEN.match(expression, at)
        if match is None:
            raise InputError(
                f"no regular expression over words: {expression!r}, at {expression[at:]!r};"
                " put a word with special signs in single quotes"
            )
        quoted, sign, but, word = match.groups()
        if quoted is not None or word is not None:
            parts.append(character(_unquoted(quoted, word)))
        elif but is not None:
            parts.append(f"[^{''.join(character(_unquoted(*each)) for each in _WORD.findall(but))}]")
        elif sign is not None:
            parts.append(sign)
        at = match.end()
    return "".join(parts)


def _unquoted(quoted: str | None, plain: str) -> str:
    return re.sub(r"\\(.)", r"\1", quoted) if quoted else plain
