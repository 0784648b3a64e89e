"""Sentences as people pass them: lists of words, or text with white space between words."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import Any, TypeVar

WHITE_SPACE = " \t\r\n\f\v"  #: characters between words; others, such as a no-break space, are parts of words
_WORDS = re.compile(rf"[^{WHITE_SPACE}]+").findall
M = TypeVar("M", bound=Callable[..., Any])


def split_words(text: str) -> list[str]:
    """The words of a text: what is between ASCII white space."""
    return _WORDS(text)


def _sentence(given: Any) -> Any:
    return split_words(given) if isinstance(given, str) else given


def as_sentences(given: Any) -> Any:
    """Sentences as words, if some of them are text; one text is one sentence."""
    if isinstance(given, str):
        return [split_words(given)]
    if isinstance(given, (list, tuple)) and any(isinstance(each, str) for each in given):
        return [_sentence(each) for each in given]
    return given


def takes_sentence(method: M) -> M:
    """Let the first argument of a method, a sentence, be text: it is split at white space."""
    return _converted(method, _sentence)


def takes_sentences(method: M) -> M:
    """Let sentences, the first argument of a method, be text: one text is one sentence."""
    return _converted(method, as_sentences)


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
