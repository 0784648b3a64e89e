"""Files of text with one tokenised sentence, or one document, a line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path

from truesource.grammar.sentences import WHITE_SPACE, split_words
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import TO_UTF8, read_text, read_text_lines
from truesource.grammar.tree import Tree

HEAD = 1000  #: lines that identify the kind of a file


class TextSplits:
    """Text files as a corpus for training models.

    Args:
        files: files by name of the split, such as ``train`` and ``dev``.

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
        """Return the words of every sentence of a split."""
        return self._sentences[split]


def read_sentences(path: str | Path) -> list[list[str]]:
    """Read one sentence a line, tokens separated by ASCII white space; ``.gz`` is uncompressed.

    Other white space, such as a no-break space, is part of a word, as in treebanks.

    Raises:
        InputError: the file is missing, is not UTF-8 text, is empty, has an empty line (line given), or is a treebank
            (code ``treebank``).
    """
    return [split_words(line) for line in _read_lines(Path(path), "sentence", "tokenised sentence", WHITE_SPACE)]


def stream_sentences(path: str | Path) -> Iterator[list[str]]:
    """Read sentences as `read_sentences` does, line after line; an empty line is a sentence without words.

    Raises:
        InputError: the file is missing or a treebank (code ``treebank``), or a line is not UTF-8 text (line given),
            when the line is reached.
    """
    lines = read_text_lines(path)
    head = list(islice(lines, HEAD))
    refuse_trees(head, path)
    yield from map(split_words, chain(head, lines))


def refuse_trees(lines: Sequence[str], path: str | Path) -> None:
    """Refuse a treebank in place of a text, by its first lines.

    Raises:
        InputError: the first line that is not blank begins a tree (code ``treebank``).
    """
    first = next((line for line in lines if line.strip()), "")
    if not first.lstrip().startswith("("):
        return
    from truesource.grammar.treebank.brackets import scan_lines  # imports numpy, which settings do not need

    try:
        _, tree = next(scan_lines(lines))
    except (InputError, StopIteration):
        return
    if isinstance(tree, Tree) and any(node.is_preterminal for node in tree.subtrees()) and tree.height() > 2:
        raise InputError(
            "expecting a text, got a treebank; convert it to text by `truesource convert`, as in"
            f" truesource convert {path} text.txt",
            path,
            code="treebank",
        )


def read_documents(path: str | Path) -> list[str]:
    """Read one document a line, unchanged, without the end of the line; ``.gz`` is uncompressed.

    Raises:
        InputError: the file is missing, is not UTF-8 text, is empty, has an empty line (line given), or is a treebank
            (code ``treebank``).
    """
    return [line.removesuffix("\r") for line in _read_lines(Path(path), "document", "document", None)]


def _read_lines(path: Path, what: str, long: str, space: str | None) -> list[str]:
    text = read_text(path, not_text=f"expecting UTF-8 text, one {long} a line; {TO_UTF8}")
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    if not lines:
        raise InputError(f"the file is empty; expecting one {long} a line", path)
    refuse_trees(lines[:HEAD], path)
    for number, line in enumerate(lines, start=1):
        if not line.strip(space):
            raise InputError(f"this line is empty; expecting one {what} a line", path, number)
    return lines


def line_of(sentence: Sequence[str]) -> str:
    """Return a sentence as a line of text, which `split_words` reads back as the same words.

    Raises:
        InputError: a word is empty or contains white space.
    """
    for word in sentence:
        if split_words(word) != [word]:
            raise InputError(
                f"the word {word!r} contains white space, which separates words in text; write trees (.mrg) instead"
            )
    return " ".join(sentence)
