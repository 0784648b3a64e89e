"""Arguments of calls: whole numbers, seeds, flags, names and paths, checked before any work."""

from __future__ import annotations

import os
import reprlib
from collections.abc import Iterable, Sequence
from numbers import Integral
from pathlib import Path
from typing import Any

from truesource.grammar.support.errors import InputError
from truesource.grammar.support.printable import listed


def whole_number(value: Any, name: str, least: int = 1) -> int:
    """Return a whole number, also one of numpy, as an `int`.

    Args:
        value: the argument.
        name: its name, which begins the message.
        least: smallest number that is allowed.

    Raises:
        InputError: it is no whole number, or is too small.
    """
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise InputError(f"{name} must be a whole number, {least} or more, got {reprlib.repr(value)}")
    return int(value)


def seed_number(value: Any) -> int:
    """Return a seed, also one of numpy, as an `int`.

    Raises:
        InputError: it is no whole number, or negative.
    """
    return whole_number(value, "a seed", 0)


def flag(value: Any, name: str) -> bool:
    """Return True or False; words and numbers are refused.

    Raises:
        InputError: it is something else.
    """
    if not isinstance(value, bool):
        raise InputError(f"{name} must be True or False, got {reprlib.repr(value)}")
    return value


def choice(value: Any, name: str, names: Sequence[str]) -> Any:
    """Return one of some names unchanged.

    Args:
        value: the argument.
        name: its name, which begins the message.
        names: names that are allowed.

    Raises:
        InputError: it is another value.
    """
    if not isinstance(value, str) or value not in names:
        from truesource.grammar.support.settings import did_you_mean  # pydantic

        near = did_you_mean(value, names) if isinstance(value, str) else ""
        allowed = listed([repr(each) for each in names]).replace(" and ", " or ")
        raise InputError(f"{name} must be {allowed}, got {reprlib.repr(value)}{near}")
    return value


def as_path(value: Any, what: str = "a file or folder") -> Path:
    """Return a path.

    Args:
        value: text or a path.
        what: noun for its content, with an article.

    Raises:
        InputError: it is something else, or empty text.
    """
    if not isinstance(value, str | os.PathLike):
        raise InputError(f"expecting the path of {what}, as text or a Path, got {reprlib.repr(value)}")
    path = os.fspath(value)
    if not path or not isinstance(path, str):
        raise InputError(f"expecting the path of {what}, got {path!r}")
    return Path(path)


def word_list(value: Any, name: str) -> list[str]:
    """Return words as a list.

    Args:
        value: the argument.
        name: its name, which begins the message.

    Raises:
        InputError: it is one string, or has something else than words in it.
    """
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise InputError(f"{name} must be a list of words, got {reprlib.repr(value)}")
    words = list(value)
    for word in words:
        if not isinstance(word, str):
            raise InputError(f"{name} must be a list of words; {reprlib.repr(word)} in it is not a word")
    return words
