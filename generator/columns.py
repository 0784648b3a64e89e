"""Sentences as columns: numbers in memory, four bytes a word, Arrow columns, and columns from the files of a corpus.

No Python string is created per token.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, overload

import numpy as np
from numpy.typing import NDArray

from truesource.grammar.sentences import as_sentences
from truesource.grammar.support.arrays import Int32Array, IntArray
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import digest_file
from truesource.grammar.support.parquet import Kind, read_table

if TYPE_CHECKING:
    import pyarrow


#: words, (T,) numbers into them of all tokens of some sentences, (n,) lengths of the sentences
Part = tuple[Sequence[str], NDArray[np.integer], NDArray[np.integer]]
COLUMN_LIMIT = 2**31 - 1  #: most bytes in one string column of one shard
#: the columns of corpora and samples
COLUMNS: dict[str, Kind] = {
    "text": "text",
    "split": "text",
    "n_tokens": "int",
    "logprob": "float",
    "string_logprob": "float",
    "tree": "ints",
    "ids": "ints",
    "finished": "bool",
    "group": "int",
    "language": "int",
}


class Rows(Sequence[IntArray]):
    """Arrays of integers of different lengths, stored one after the other in one array.

    Args:
        flat: (T,) the entries of all rows.
        lengths: (n,) lengths of the rows; their sum is T.
    """

    def __init__(self, flat: Int32Array, lengths: NDArray[np.integer]) -> None:
        self.flat = flat
        self.offsets: IntArray = np.zeros(len(lengths) + 1, dtype=np.int64)
        np.cumsum(lengths, out=self.offsets[1:])
        if self.offsets[-1] != len(flat):
            raise ValueError(f"the rows have {self.offsets[-1]} entries together, but {len(flat)} are given")

    @classmethod
    def of(cls, rows: Iterable[NDArray[np.integer]]) -> Rows:
        """Return rows in this form; a `Rows` is returned unchanged."""
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
        """Return the rows that are not empty."""
        lengths = self.lengths
        return Rows(self.flat, lengths[lengths > 0])

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @overload
    def __getitem__(self, number: int) -> IntArray: ...
    @overload
    def __getitem__(self, number: slice) -> list[IntArray]: ...
    def __getitem__(self, number: int | slice) -> IntArray | list[IntArray]:
        """Return one row, or a list of rows."""
        if isinstance(number, slice):
            return [self[i] for i in range(*number.indices(len(self)))]
        if not -len(self) <= number < len(self):
            raise IndexError(f"row {number} of {len(self)}")
        number %= len(self)
        return self.flat[self.offsets[number] : self.offsets[number + 1]].astype(np.int64)


class CodedSentences(Sequence[list[str]]):
    """Sentences that store each type once.

    Args:
        words: the types.
        rows: numbers into ``words``, one row a sentence.
    """

    def __init__(self, words: Sequence[str], rows: Rows) -> None:
        self.words = tuple(words)
        self.rows = rows

    @classmethod
    def join(cls, parts: Iterable[Part]) -> Self:
        """Return the parts one after the other; each has its own numbers, and a word may be in several."""
        numbers: dict[str, int] = {}
        flat, lengths = [np.zeros(0, dtype=np.int32)], [np.zeros(0, dtype=np.int64)]
        for words, codes, sizes in parts:
            renumbered = np.array([numbers.setdefault(word, len(numbers)) for word in words], dtype=np.int32)
            flat.append(renumbered[codes])
            lengths.append(sizes.astype(np.int64))
        return cls(list(numbers), Rows(np.concatenate(flat), np.concatenate(lengths)))

    @classmethod
    def of(cls, sentences: Iterable[Sequence[str]]) -> CodedSentences:
        """Return sentences, as words or text, in this form; a `CodedSentences` is returned unchanged."""
        if isinstance(sentences, CodedSentences):
            return sentences
        numbers: dict[str, int] = {}
        codes: list[int] = []
        lengths: list[int] = []
        for sentence in as_sentences(sentences):
            codes += [numbers.setdefault(word, len(numbers)) for word in sentence]
            lengths.append(len(sentence))
        for word in numbers:
            if not isinstance(word, str):
                raise InputError(f"{word!r} in a sentence is not a word; pass words as text, such as ['the', 'cat']")
        return cls(list(numbers), Rows(np.array(codes, dtype=np.int32), np.array(lengths, dtype=np.int64)))

    @classmethod
    def split(cls, texts: Iterable[pyarrow.ChunkedArray], spelling: Mapping[str, str]) -> Self:
        """Split texts at single spaces.

        Args:
            texts: columns of text, one sentence an entry.
            spelling: words to replace, with their replacements.
        """
        return cls.join(part for column in texts for part in _parts(column, spelling))

    @property
    def lengths(self) -> IntArray:
        """Words of each sentence, (n,)."""
        return self.rows.lengths

    def counts(self) -> IntArray:
        """Return the number of occurrences of each of ``words``; they are counted once."""
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
        """Return the words of one sentence, or of some."""
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
        yield words, as_numbers(coded.indices), as_numbers(pc.list_value_length(lists))


def packed(names: tuple[str, ...]) -> tuple[NDArray[np.uint8], IntArray]:
    """Return names as UTF-8, one after the other, and their bounds, (n + 1,)."""
    encoded = [name.encode() for name in names]
    bounds = np.zeros(len(names) + 1, dtype=np.int64)
    np.cumsum([len(name) for name in encoded], out=bounds[1:])
    return np.frombuffer(b"".join(encoded), dtype=np.uint8), bounds


def as_column(values: NDArray[Any]) -> pyarrow.Array:
    """Return numbers as a column that shares their memory; `pyarrow.array` would import pandas."""
    import pyarrow as pa

    values = np.ascontiguousarray(values)
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [None, pa.py_buffer(values)])


def as_numbers(column: pyarrow.Array | pyarrow.ChunkedArray) -> NDArray[Any]:
    """Return a column of numbers as an array, which shares its memory if it is one chunk; ``to_numpy`` imports pandas.

    Raises:
        InputError: a value is missing.
    """
    if column.null_count:
        raise InputError("a column of numbers has missing values; write the file again")
    dtype = np.dtype(column.type.to_pandas_dtype())
    parts = [
        np.frombuffer(chunk.buffers()[1] or b"", dtype, len(chunk), chunk.offset * dtype.itemsize)
        for chunk in getattr(column, "chunks", [column])
        if len(chunk)
    ]
    return parts[0] if len(parts) == 1 else np.concatenate([np.empty(0, dtype), *parts])


def strings(data: NDArray[np.uint8], bounds: IntArray) -> pyarrow.Array:
    """Return UTF-8 bytes, cut at ``bounds`` (n + 1,), as an array of n strings."""
    import pyarrow as pa

    return pa.Array.from_buffers(pa.string(), len(bounds) - 1, [None, offsets(bounds).buffers()[1], pa.py_buffer(data)])


def offsets(bounds: IntArray) -> pyarrow.Array:
    """Return bounds (n + 1,) for Arrow.

    Raises:
        InputError: they exceed the limit of one column.
    """
    if bounds[-1] > COLUMN_LIMIT:
        raise InputError("a shard's sentences take more than 2 GB; use a smaller shard size")
    return as_column(bounds.astype(np.int32))


def read_columns(
    path: Path, columns: list[str], *, rows: int | None = None, tree: Kind = COLUMNS["tree"]
) -> pyarrow.Table:
    """Read some columns of one shard, with checksums.

    Args:
        path: path of the shard.
        columns: names in `COLUMNS`.
        rows: number of rows in the record.
        tree: type of the column ``tree``: numbers, or text for brackets.

    Raises:
        InputError: the file is missing, damaged, lacks these columns, or has another number of rows.
    """
    kinds = {name: tree if name == "tree" else COLUMNS[name] for name in columns}
    return read_table(path, kinds, what="this part of the corpus", remedy="sample the corpus again", rows=rows)


def check_trees(table: pyarrow.Table, n_symbols: int, path: Path) -> None:
    """Check that every row of the column ``tree`` is one tree over the words of the column ``text``.

    A row is the preorder of a tree if the number of pending nodes, which starts at one and changes by the children of
    each node less one, first reaches zero at its end.

    Args:
        table: table of one shard.
        n_symbols: S.
        path: path of the shard.

    Raises:
        InputError: a row is not a tree.
    """
    import pyarrow.compute as pc

    words = as_numbers(pc.count_substring(table.column("text"), " ")) + 1
    sizes = as_numbers(pc.list_value_length(table.column("tree")))
    codes = as_numbers(pc.list_flatten(table.column("tree")))
    ends = np.cumsum(sizes, dtype=np.int64)
    fits = bool((sizes > 0).all()) and bool(((codes >= 0) & (codes < 3 * n_symbols)).all())
    if fits and len(sizes):
        children = codes % 3
        to_come = np.cumsum(children.astype(np.int64) - 1) + np.repeat(np.arange(1, len(sizes) + 1), sizes)
        last = np.zeros(len(codes), dtype=np.bool_)
        last[ends - 1] = True
        leaves = np.add.reduceat(children == 0, ends - sizes, dtype=np.int64)
        fits = bool(((to_come == 0) == last).all()) and to_come.min() >= 0 and bool((leaves == words).all())
    if not fits:
        raise InputError("this part of the corpus is damaged: a tree does not fit; sample the corpus again", path)


def verify_shards(folder: Path, shards: Sequence[Mapping[str, Any]], damage: str) -> None:
    """Compare the digest of every shard of a record with its file.

    Raises:
        InputError: a file has changed; ``damage`` is the message.
    """
    for shard in shards:
        file = folder / "data" / shard["file"]
        if digest_file(file) != shard["sha256"]:
            raise InputError(damage, file)
