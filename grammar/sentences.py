"""Sentences as people pass them: lists of words, or text with white space between words."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Callable, Iterable, Mapping
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
    """The words of a text: what is between ASCII white space."""
    return _WORDS(text)


def as_sentence(given: Any) -> Any:
    """Return the words of a sentence, which is split if it is text.

    Raises:
        InputError: it is neither text nor a list of words, or one of its words has white space in it.
    """
    if isinstance(given, str):
        return split_words(given)
    if _is_no_sequence(given):
        raise InputError(f"expecting a sentence, {_FORMS}, not {reprlib.repr(given)}")
    if isinstance(given, (list, tuple)):
        for word in given:
            if isinstance(word, (list, tuple)):
                raise InputError(f"expecting one sentence, {_FORMS}, not a list of sentences; pass them one by one")
            if not isinstance(word, str):
                raise InputError(f"expecting a sentence, {_FORMS}; {reprlib.repr(word)} in it is not a word")
            if _SPACE(word):
                raise InputError(f"{reprlib.repr(word)} is not one word, but several; pass {_FORMS}")
    return given


def as_sentences(given: Any) -> Any:
    """Return sentences as words, if some of them are text; one text is one sentence.

    Raises:
        InputError: they are not sentences.
    """
    if isinstance(given, str):
        return [split_words(given)]
    if _is_no_sequence(given):
        raise InputError(f"expecting sentences, each {_FORMS}, not {reprlib.repr(given)}")
    if not isinstance(given, (list, tuple)):
        return given
    for each in given:
        if _is_no_sequence(each) and not isinstance(each, str):
            raise InputError(f"expecting sentences, each {_FORMS}; {reprlib.repr(each)} among them is not a sentence")
    return [as_sentence(each) for each in given] if any(isinstance(each, str) for each in given) else given


def _is_no_sequence(given: Any) -> bool:
    return given is None or isinstance(given, (bytes, Mapping)) or not isinstance(given, Iterable)


def takes_sentence(method: M) -> M:
    """Let the first argument of a method, a sentence, be text: it is split at white space."""
    return _converted(method, as_sentence)


def takes_sentences(method: M) -> M:
    """Let sentences, the first argument of a method, be text: one text is one sentence.

    A sentence that is passed as its only word is refused.
    """
    return _converted(method, _without_whole_sentences)


def _without_whole_sentences(given: Any) -> Any:
    sentences = as_sentences(given)
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
