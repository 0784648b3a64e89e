"""Sentences as arguments: lists of words, or text with white space between words."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from inspect import signature
from typing import Any, TypeVar

from truesource.grammar.support.errors import InputError

WHITE_SPACE = " \t\r\n\f\v"  #: characters between words; others, such as a no-break space, are parts of words
_FORMS = "a text such as 'the cat sleeps' or a list of words such as ['the', 'cat', 'sleeps']"
_SPACE = re.compile(rf"[{WHITE_SPACE}]").search
_WORDS = re.compile(rf"[^{WHITE_SPACE}]+").findall
M = TypeVar("M", bound=Callable[..., Any])


def split_words(text: str) -> list[str]:
    """Return the words of a text, split at ASCII white space."""
    return _WORDS(text)


def as_sentence(value: Any) -> Any:
    """Return the words of a sentence; a string is split.

    Raises:
        InputError: it is neither text nor a list of words, or one of its words has white space in it.
    """
    if isinstance(value, str):
        return split_words(value)
    if _is_no_sequence(value):
        raise InputError(f"expecting a sentence, {_FORMS}, not {reprlib.repr(value)}")
    value = _listed(value)
    if isinstance(value, str):
        return split_words(value)
    if isinstance(value, (list, tuple)):
        for word in value:
            if isinstance(word, (list, tuple)):
                raise InputError(f"expecting one sentence, {_FORMS}, not a list of sentences; pass them one by one")
            if not isinstance(word, str):
                raise InputError(f"expecting a sentence, {_FORMS}; {reprlib.repr(word)} in it is not a word")
            if _SPACE(word):
                raise InputError(f"{reprlib.repr(word)} is several words; pass {_FORMS}")
    return value


def as_sentences(value: Any) -> Any:
    """Return sentences as words; strings among them are split, and one string is one sentence.

    Raises:
        InputError: they are not sentences.
    """
    if isinstance(value, str):
        return [split_words(value)]
    if _is_no_sequence(value):
        raise InputError(f"expecting sentences, each {_FORMS}, not {reprlib.repr(value)}")
    value = _listed(value)
    if isinstance(value, str):
        return [split_words(value)]
    if not isinstance(value, (list, tuple)):
        return value
    for each in value:
        if _is_no_sequence(each) and not isinstance(each, str):
            raise InputError(f"expecting sentences, each {_FORMS}; {reprlib.repr(each)} among them is not a sentence")
        if isinstance(each, (list, tuple)) and each and not isinstance(each[0], str):
            as_sentence(each)  # refuses other items than words
    return [as_sentence(each) for each in value] if any(isinstance(each, str) for each in value) else value


def _listed(value: Any) -> Any:
    """Return the items of an array, a column or an iterator as a list; other sequences unchanged.

    Raises:
        InputError: it is a corpus, or a table with several columns.
    """
    if hasattr(value, "splits"):
        raise InputError("expecting sentences, not a corpus of several splits; pass one, such as corpus['eval']")
    if hasattr(value, "columns") and hasattr(value, "iloc"):
        names = ", ".join(map(str, value.columns))
        raise InputError(f"expecting sentences, not a table of {names}; pass one of its columns, such as table['text']")
    if isinstance(value, Sequence):
        return value
    return value.tolist() if hasattr(value, "tolist") else list(value)


def _is_no_sequence(value: Any) -> bool:
    return value is None or isinstance(value, (bytes, Mapping)) or not isinstance(value, Iterable)


def takes_sentence(method: M) -> M:
    """Let the first argument of a method, a sentence, be a string: it is split at white space."""
    return _converted(method, as_sentence)


def takes_sentences(method: M) -> M:
    """Let sentences, the first argument of a method, be strings: one string is one sentence.

    A list of one item that is a whole sentence is refused.
    """
    return _converted(method, _without_whole_sentences)


def _without_whole_sentences(value: Any) -> Any:
    sentences = as_sentences(value)
    for each in sentences if isinstance(sentences, (list, tuple)) else ():
        if isinstance(each, (list, tuple)) and len(each) == 1:
            as_sentence(each)
    return sentences


def _converted(method: M, convert: Callable[[Any], Any]) -> M:
    name = list(signature(method).parameters)[1]

    @wraps(method)
    def call(self: Any, *args: Any, **settings: Any) -> Any:
        if args:
            args = (convert(args[0]), *args[1:])
        elif name in settings:
            settings[name] = convert(settings[name])
        return method(self, *args, **settings)

    return call  # type: ignore[return-value]
