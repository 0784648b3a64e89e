"""Reading the files of a corpus, or of samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import digest_file
from truesource.grammar.tables import Kind, read_table

if TYPE_CHECKING:
    import pyarrow


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
}


def read_columns(
    path: Path, columns: list[str], *, rows: int | None = None, tree: Kind = COLUMNS["tree"]
) -> pyarrow.Table:
    """Some columns of one shard, checksums compared.

    Args:
        path: of the shard.
        columns: names in `COLUMNS`.
        rows: how many it has, as the record says.
        tree: of the column ``tree``: numbers, or text where that has brackets.

    Raises:
        InputError: the file is missing, damaged, has not these columns, or has another number of rows.
    """
    kinds = {name: tree if name == "tree" else COLUMNS[name] for name in columns}
    return read_table(path, kinds, what="this part of the corpus", remedy="sample the corpus again", rows=rows)


def check_trees(table: pyarrow.Table, n_symbols: int, path: Path) -> None:
    """Make sure that every row of the column ``tree`` is one tree over the words of the column ``text``.

    A row is the preorder of a tree if the nodes still to come, one at first, one less and as many more as a node has
    children after each, are none at its end and not before.

    Args:
        table: of one shard.
        n_symbols: S.
        path: of the shard.

    Raises:
        InputError: a row is not.
    """
    import pyarrow.compute as pc

    words = pc.add(pc.count_substring(table.column("text"), " "), 1).to_numpy()
    sizes = pc.list_value_length(table.column("tree")).to_numpy()
    codes = pc.list_flatten(table.column("tree")).to_numpy()
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
