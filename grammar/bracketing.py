r"""How words and labels stand in bracketings, so that each reads back as what it was.

Brackets and white space inside a word or a label are written as their number in hexadecimal, ``\x28`` for ``(``, and
so is a backslash before an ``x``. A word without any character is ``\x``. Everything else stands as it is: ``-LRB-`` is
a word of its own, as treebanks have it.

A word that stands beside other children in grammar text has a symbol of its own, labelled by the word in quotes.
"""

from __future__ import annotations

import re

EMPTY_NAME = r"\x"  #: how a word without any character is written

_SPECIAL = re.compile(r"[() \t\r\n\f\v]|\\(?=x)")
_WRITTEN = re.compile(r"\\x([0-9a-f]{2})")


def escaped(name: str) -> str:
    r"""A word or label as a bracketing can hold it.

    >>> escaped("New York (NY)")
    'New\\x20York\\x20\\x28NY\\x29'
    """
    return _SPECIAL.sub(lambda match: f"\\x{ord(match[0]):02x}", name) if name else EMPTY_NAME


def unescaped(written: str) -> str:
    """The word or label that `escaped` wrote; any other text without its escapes stays as it is."""
    if "\\x" not in written:
        return written
    return "" if written == EMPTY_NAME else _WRITTEN.sub(lambda match: chr(int(match[1], 16)), written)


def word_label(word: str) -> str:
    """The label of the symbol that a word has of its own: the word in quotes."""
    return f"'{word}'"


def is_word_label(label: str) -> bool:
    """Whether a label is that of a word's own symbol, in which no character has a meaning (``''`` is a tag)."""
    return len(label) > 2 and label[0] == label[-1] == "'"
