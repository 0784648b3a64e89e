"""Reading plain text: one tokenised sentence, or one document, a line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from truesource.grammar.support.errors import InputError
from truesource.grammar.support.unpacking import read_text, read_text_lines

ASCII_SPACE = " \t\r\n\f\v"
_WORDS = re.compile(rf"[^{ASCII_SPACE}]+").findall


class TextSplits:
    """Text files as a corpus that models are trained on.

    Args:
        files: by name of the split, such as ``train`` and ``dev``.

    Raises:
        InputError: as `read_sentences`.
    """

    def __init__(self, files: Mapping[str, str | Path]) -> None:
        self._sentences = {name: read_sentences(path) for name, path in files.items()}

    @property
    def splits(self) -> tuple[str, ...]:
        """Names of the splits."""
        return tuple(self._sentences)

    def sentences(self, split: str) -> list[list[str]]:
        """The words of every sentence of a split."""
        return self._sentences[split]


def read_sentences(path: str | Path) -> list[list[str]]:
    """Read one sentence a line, tokens separated by ASCII white space; ``.gz`` is unpacked.

    Other white space, such as a no-break space, is part of a word, as it is in treebanks.

    Raises:
        InputError: the file is missing, is not UTF-8 text, is empty, or has an empty line (line given).
    """
    return [split_words(line) for line in _read_lines(Path(path), "sentence", "tokenised sentence", ASCII_SPACE)]


def stream_sentences(path: str | Path) -> Iterator[list[str]]:
    """What `read_sentences` reads, line after line; an empty line is a sentence without words.

    Raises:
        InputError: the file is missing, or a line is not UTF-8 text (line given), once the line is reached.
    """
    return map(split_words, read_text_lines(path))


def split_words(line: str) -> list[str]:
    """The words of a line: what stands between ASCII white space."""
    return _WORDS(line)


def line_of(sentence: Sequence[str]) -> str:
    """A sentence as a line of text, which `split_words` reads back as the same words.

    Raises:
        InputError: a word is empty or contains white space.
    """
    for word in sentence:
        if split_words(word) != [word]:
            raise InputError(
                f"the word {word!r} contains white space, which separates words in text; write trees (.mrg) instead"
            )
    return " ".join(sentence)


def read_documents(path: str | Path) -> list[str]:
    """Read one document a line, as it stands there, without the end of the line; ``.gz`` is unpacked.

    Raises:
        InputError: the file is missing, is not UTF-8 text, is empty, or has an empty line (line given).
    """
    return [line.removesuffix("\r") for line in _read_lines(Path(path), "document", "document", None)]


def _read_lines(path: Path, what: str, long: str, space: str | None) -> list[str]:
    text = read_text(path, not_text=f"expecting UTF-8 text, one {long} a line")
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    if not lines:
        raise InputError(f"the file is empty; expecting one {long} a line", path)
    for number, line in enumerate(lines, start=1):
        if not line.strip(space):
            raise InputError(f"an empty line; expecting one {what} a line", path, number)
    return lines
