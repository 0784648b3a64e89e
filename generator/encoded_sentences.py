"""Sentences kept as numbers: four bytes a word in place of a Python string each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Self, overload

import numpy as np
from numpy.typing import NDArray

from truesource.grammar.support.arrays import Int32Array, IntArray

if TYPE_CHECKING:
    import pyarrow

#: words, (T,) numbers into them of all tokens of some sentences, (n,) lengths of the sentences
Part = tuple[Sequence[str], NDArray[np.integer], NDArray[np.integer]]


class Rows(Sequence[IntArray]):
    """Arrays of whole numbers of different lengths, kept one after the other in one array.

    Args:
        flat: (T,) the entries of all rows.
        lengths: (n,) of the rows; their sum is T.
    """

    def __init__(self, flat: Int32Array, lengths: NDArray[np.integer]) -> None:
        self.flat = flat
        self.offsets: IntArray = np.zeros(len(lengths) + 1, dtype=np.int64)
        np.cumsum(lengths, out=self.offsets[1:])
        if self.offsets[-1] != len(flat):
            raise ValueError(f"the rows have {self.offsets[-1]} entries together, but {len(flat)} are given")

    @classmethod
    def of(cls, rows: Iterable[NDArray[np.integer]]) -> Rows:
        """Keep rows in this form; a `Rows` is returned as it is."""
        if isinstance(rows, Rows):
            return rows
        listed = list(rows)
        flat = np.concatenate(listed).astype(np.int32) if listed else np.zeros(0, dtype=np.int32)
        return cls(flat, np.array([len(row) for row in listed], dtype=np.int64))

    @property
    def lengths(self) -> IntArray:
        """Entries of each row, (n,)."""
        return np.diff(self.offsets)

    def filled(self) -> Rows:
        """Without the empty rows."""
        lengths = self.lengths
        return Rows(self.flat, lengths[lengths > 0])

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @overload
    def __getitem__(self, number: int) -> IntArray: ...
    @overload
    def __getitem__(self, number: slice) -> list[IntArray]: ...
    def __getitem__(self, number: int | slice) -> IntArray | list[IntArray]:
        """One row, or a list of rows."""
        if isinstance(number, slice):
            return [self[i] for i in range(*number.indices(len(self)))]
        if not -len(self) <= number < len(self):
            raise IndexError(f"row {number} of {len(self)}")
        number %= len(self)
        return self.flat[self.offsets[number] : self.offsets[number + 1]].astype(np.int64)


class CodedSentences(Sequence[list[str]]):
    """Sentences of which each different word is kept once.

    Args:
        words: the different words.
        rows: numbers into ``words``, one row a sentence.
    """

    def __init__(self, words: Sequence[str], rows: Rows) -> None:
        self.words = tuple(words)
        self.rows = rows

    @classmethod
    def join(cls, parts: Iterable[Part]) -> Self:
        """One after the other; each part has its own numbers, and a word may stand in many."""
        numbers: dict[str, int] = {}
        flat, lengths = [np.zeros(0, dtype=np.int32)], [np.zeros(0, dtype=np.int64)]
        for words, codes, sizes in parts:
            renumbered = np.array([numbers.setdefault(word, len(numbers)) for word in words], dtype=np.int32)
            flat.append(renumbered[codes])
            lengths.append(sizes.astype(np.int64))
        return cls(list(numbers), Rows(np.concatenate(flat), np.concatenate(lengths)))

    @classmethod
    def of(cls, sentences: Iterable[Sequence[str]]) -> CodedSentences:
        """Keep sentences in this form; a `CodedSentences` is returned as it is."""
        if isinstance(sentences, CodedSentences):
            return sentences
        numbers: dict[str, int] = {}
        codes: list[int] = []
        lengths: list[int] = []
        for sentence in sentences:
            codes += [numbers.setdefault(word, len(numbers)) for word in sentence]
            lengths.append(len(sentence))
        return cls(list(numbers), Rows(np.array(codes, dtype=np.int32), np.array(lengths, dtype=np.int64)))

    @classmethod
    def split(cls, texts: Iterable[pyarrow.ChunkedArray], spelling: Mapping[str, str]) -> Self:
        """Cut texts at single spaces.

        Args:
            texts: columns of text, one sentence an entry.
            spelling: words to be replaced, and by what.
        """
        return cls.join(part for column in texts for part in _parts(column, spelling))

    @property
    def lengths(self) -> IntArray:
        """Words of each sentence, (n,)."""
        return self.rows.lengths

    def counts(self) -> IntArray:
        """How often each of ``words`` occurs; they are counted once."""
        return self._counts

    @cached_property
    def _counts(self) -> IntArray:
        counts: IntArray = np.bincount(self.rows.flat, minlength=len(self.words))
        counts.flags.writeable = False
        return counts

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, number: int) -> list[str]: ...
    @overload
    def __getitem__(self, number: slice) -> list[list[str]]: ...
    def __getitem__(self, number: int | slice) -> list[str] | list[list[str]]:
        """The words of one sentence, or of some."""
        words = self.words
        if isinstance(number, slice):
            return [[words[i] for i in row.tolist()] for row in self.rows[number]]
        return [words[i] for i in self.rows[number].tolist()]


def _parts(column: pyarrow.ChunkedArray, spelling: Mapping[str, str]) -> Iterable[Part]:
    import pyarrow.compute as pc

    for chunk in column.chunks:
        lists = pc.split_pattern(chunk, " ")
        coded = lists.flatten().dictionary_encode()
        words = [spelling.get(word, word) for word in coded.dictionary.to_pylist()]
        yield words, coded.indices.to_numpy(), pc.list_value_length(lists).to_numpy()
