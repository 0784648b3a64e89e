"""Pairs as lines of JSON, written and read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from truesource.evaluation.pairs.pair import ALL, Pair, Words, differing
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import write_json_lines
from truesource.grammar.support.records import read_records

_LINE = '{"sentence_good": "...", "sentence_bad": "...", "phenomenon": "..."}'
RESERVED = ("log_odds", "choice")  #: what pairs are grouped by of themselves, so no stratum has these names
_SIDES = {"good": "a", "bad": "b"}


def write_pairs(path: str | Path, pairs: Sequence[Pair]) -> None:
    """Write a pair a line, atomically."""
    write_json_lines(path, (pair.as_record() for pair in pairs))


def read_pairs(path: str | Path, words: Collection[str], lengths: LengthRange | None = None) -> list[Pair]:
    """Read pairs; sides stand as the file has them, and what the file says of probabilities is not believed.

    The fields ``sentence_good`` and ``sentence_bad`` (words separated by spaces) are needed; ``phenomenon`` (by default
    ``pairs``), ``strata``, ``facts``, ``source`` and ``drawn`` are kept, others are ignored.

    Args:
        path: lines of JSON, empty ones ignored.
        words: those of the grammar.
        lengths: the condition that the truth is under.

    Raises:
        InputError: the file cannot be read or holds no pair, or a line is malformed, has a word that the grammar does
            not have, or a sentence outside ``lengths``; the message names file and line.
    """
    path = Path(path)
    known = frozenset(words)
    lines = read_records(path, dict[str, Any], remedy=f"a pair is {_LINE}")
    pairs = [_read(record, number, path, known, lengths) for number, record in lines]
    if not pairs:
        raise InputError(f"the file holds no pairs; a line is {_LINE}", path)
    return pairs


def filter_pairs(
    pairs: Sequence[Pair],
    path: str | Path,
    *,
    phenomena: Collection[str] | None = None,
    number: int | None = None,
    possible: bool = False,
) -> list[Pair]:
    """Some of the pairs of a file, in its order.

    Args:
        pairs: with log probabilities, see `truesource.evaluation.pairs.odds.with_truth`.
        path: of the file, for messages.
        phenomena: that are kept; None: all.
        number: the first so many of each phenomenon, of those that are kept; None: all.
        possible: only pairs of which the grammar can make both sentences.

    Raises:
        InputError: a phenomenon has no pair in the file, or no pair is left.
    """
    there = list(dict.fromkeys(pair.phenomenon for pair in pairs))
    strange = [name for name in phenomena or () if name not in there]
    if strange:
        raise InputError(f"the file has no pairs of {strange[0]!r}; it has those of {', '.join(there)}", Path(path))
    kept: list[Pair] = []
    counts: Counter[str] = Counter()
    for pair in pairs:
        name = pair.phenomenon
        wanted = (phenomena is None or name in phenomena) and (pair.possible or not possible)
        if wanted and (number is None or counts[name] < number):
            counts[name] += 1
            kept.append(pair)
    if not kept:
        raise InputError("the grammar can make both sentences of none of these pairs", Path(path))
    return kept


def _read(record: dict[str, Any], number: int, path: Path, known: frozenset[str], lengths: LengthRange | None) -> Pair:
    a, b = (_sentence(record, key, path, number, known, lengths) for key in ("sentence_good", "sentence_bad"))
    if a == b:
        raise InputError("the two sentences of the pair are the same", path, number)
    phenomenon, source, drawn = record.get("phenomenon", "pairs"), record.get("source", number), record.get("drawn")
    strata, facts = record.get("strata", {}), record.get("facts", {})
    if not isinstance(phenomenon, str) or phenomenon in ("", ALL):
        raise InputError(f"the phenomenon of a pair is a text, not {ALL!r}, which stands for all pairs", path, number)
    if type(source) is not int or abs(source) >= 2**63:
        raise InputError(
            "the source of a pair is a whole number of at most 18 digits, the same for pairs that belong together",
            path,
            number,
        )
    if drawn not in (None, *_SIDES):
        raise InputError("the drawn side of a pair is good, bad or null", path, number)
    if not _plain(strata, (str, int, bool)) or not _plain(facts, (int, float)):
        raise InputError("strata are texts, whole numbers or true and false by name; facts are numbers", path, number)
    taken = [name for name in strata if name in RESERVED]
    if taken:
        raise InputError(f"a stratum cannot be named {taken[0]!r}, which all pairs are grouped by", path, number)
    return Pair(
        *(a, b, phenomenon, None, None, None, differing(a, b), source),
        None if drawn is None else _SIDES[drawn],
        strata,
        facts,
    )


def _sentence(
    record: dict[str, Any], key: str, path: Path, number: int, known: frozenset[str], lengths: LengthRange | None
) -> Words:
    text = record.get(key)
    if not isinstance(text, str) or not text.split():
        raise InputError(f"this line lacks {key}, a text of words separated by spaces", path, number)
    words = tuple(text.split())
    strange = [word for word in words if word not in known]
    if strange:
        raise InputError(f"the word {strange[0]!r} is not one of the grammar", path, number)
    if lengths is not None and len(words) not in lengths:
        raise InputError(
            f"a sentence of {len(words)} words is outside the length range {lengths}; remove it, or give a wider range",
            path,
            number,
        )
    return words


def _plain(value: Any, kinds: tuple[type, ...]) -> bool:
    """Whether a value is a mapping of names to values of some kinds, or None."""
    return isinstance(value, dict) and all(v is None or isinstance(v, kinds) for v in value.values())
