"""Trees from files and libraries: Penn bracketings with the line of each tree, `nltk.Tree`, a column of a dataset."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from truesource.grammar.support.errors import InputError, extras_for
from truesource.grammar.support.files import digest_json
from truesource.grammar.support.parquet import read_texts
from truesource.grammar.support.records import read_records
from truesource.grammar.tree import Tree, fold
from truesource.grammar.treebank.brackets import Flaw, scan_lines

if TYPE_CHECKING:
    import nltk


Located = tuple[int, Tree | Flaw]  #: a tree, or the reason why it cannot be read, and its line, row or position, from 1


def to_nltk(tree: Tree) -> nltk.Tree:
    """Convert a tree to an `nltk.Tree`."""
    from nltk import Tree as NltkTree

    def combine(node: Tree, children: list[Any]) -> Any:
        return NltkTree(node.label, children or list(node.children))

    return fold(tree, combine)


def from_nltk(trees: Iterable[nltk.Tree]) -> Iterator[Located]:
    """Yield trees from `nltk.Tree` objects, numbered from 1.

    Raises:
        InputError: something is not a tree, or a leaf is not a word (a string without white space).
    """
    for number, tree in enumerate(trees, 1):
        yield number, _from_nltk(tree, f"tree {number}", number)


def _from_nltk(top: Any, where: str, number: int) -> Tree | Flaw:
    from nltk import Tree as NltkTree

    if not isinstance(top, NltkTree):
        raise InputError(f"{where} is a {type(top).__name__}, not an nltk.Tree")
    nodes: list[Any] = []
    stack: list[Any] = [top]
    while stack:
        node = stack.pop()
        nodes.append(node)
        stack.extend(child for child in reversed(node) if isinstance(child, NltkTree))
    done: list[Tree] = []
    for node in reversed(nodes):
        words = [child for child in node if not isinstance(child, NltkTree)]
        label = node.label()
        if not len(node):
            return Flaw(f"the node {label!r} has no children; a leaf needs a word", number, "childless")
        for name in (label, *words):
            if not isinstance(name, str) or any(c in name for c in " \t\r\n\f\v") or (not name and node is not top):
                raise InputError(f"in {where} {name!r} is not a word or label: a string without white space is needed")
        children = tuple(done.pop() if isinstance(child, NltkTree) else child for child in node)
        done.append(Tree(label, children))
    return done.pop()


def nltk_corpus(name: str) -> Iterator[tuple[str, Iterator[Located]]]:
    """Yield (source, its located trees) for each file of a bracketed corpus that NLTK has installed.

    NLTK finds the files (also inside its zips); our reader reads them.

    Raises:
        InputError: the corpus is unknown, is not installed, or holds no bracketed trees.
    """
    for source, text in _nltk_texts(name):
        yield source, scan_lines(text.split("\n"), source)


def nltk_digest(name: str) -> str:
    """Return the SHA-256 of names and texts of the files of a corpus installed by NLTK; errors as `nltk_corpus`."""
    texts = {source: hashlib.sha256(text.encode("utf-8")).hexdigest() for source, text in _nltk_texts(name)}
    return digest_json(texts)


def _nltk_texts(name: str) -> Iterator[tuple[str, str]]:
    import nltk.corpus
    from nltk.corpus.reader import BracketParseCorpusReader

    corpus = getattr(nltk.corpus, name, None)
    if corpus is None:
        raise InputError(f"NLTK has no corpus {name!r}; read Penn-bracketed files by Treebank.read")
    try:
        files = list(corpus.fileids())
    except LookupError as error:
        raise InputError(
            f"NLTK's corpus {name!r} is not on this machine; download it by `python -m nltk.downloader {name}`"
            f" or put it under corpora/{name} in a folder of nltk.data.path"
        ) from error
    if not isinstance(corpus, BracketParseCorpusReader):
        raise InputError(f"NLTK's corpus {name!r} holds no bracketed trees; 'treebank' does")
    for file in files:
        yield f"nltk:{name}/{file}", corpus.raw(file)


def dataset_column(dataset: Any, column: str, split: str | None) -> tuple[str, Iterator[Located]]:
    """Return (source, trees with their row number from 1) from bracketings in a column; a row may hold many trees.

    Args:
        dataset: a `datasets.Dataset` or `DatasetDict`, an iterable of rows (mappings), or the path of a folder written
            by ``save_to_disk``, a Parquet file, a folder of Parquet files, or a JSON-lines file.
        column: name of the column.
        split: which part of a `DatasetDict`.

    Raises:
        InputError: the path, the split or the column does not exist, or a row is not a bracketing.
    """
    source = "dataset"
    rows = dataset
    if isinstance(dataset, (str, Path)):
        source = str(dataset)
        rows = _open(Path(dataset), column)
    if isinstance(rows, Mapping):
        if split is None or split not in rows:
            raise InputError(f"the dataset has the parts {', '.join(map(str, rows))}; use one of them as the split")
        rows = rows[split]
    names = getattr(rows, "column_names", None)
    if names is not None:
        if column not in names:
            raise InputError(f"the dataset has no column {column!r}; it has {', '.join(names)}")
        rows = rows.select_columns([column])
    return source, _rows(rows, column, source)


def _rows(rows: Iterable[Any], column: str, source: str) -> Iterator[Located]:
    for number, row in enumerate(rows, 1):
        if not isinstance(row, Mapping):
            raise InputError(f"row {number} is a {type(row).__name__}, not a mapping of column names", source)
        if column not in row:
            raise InputError(f"row {number} has no column {column!r}; it has {', '.join(map(str, row))}", source)
        text = row[column]
        if not isinstance(text, str):
            raise InputError(f"row {number} holds {type(text).__name__} in column {column!r}, not a bracketing", source)
        for _, tree in scan_lines(text.split("\n"), f"{source}, row {number}"):
            yield number, replace(tree, line=number) if isinstance(tree, Flaw) else tree


def _open(path: Path, column: str) -> Any:
    if path.is_dir() and any((path / name).exists() for name in ("dataset_info.json", "dataset_dict.json")):
        with extras_for(f"the saved dataset {path}"):
            from datasets import load_from_disk

        return load_from_disk(str(path))
    if path.is_dir() or path.suffix == ".parquet":
        files = sorted(path.rglob("*.parquet")) if path.is_dir() else [path]
        if not files:
            raise InputError("the folder holds neither a saved dataset nor Parquet files", path)
        return _parquet_rows(files, column)
    remedy = "use a file with a JSON object a line"
    return (row for _, row in read_records(path, dict[str, object], remedy=remedy))


def _parquet_rows(files: list[Path], column: str) -> Iterator[dict[str, object]]:
    for file in files:
        for text in read_texts(file, column, remedy="use a Parquet file of bracketings and their column"):
            yield {column: text}
