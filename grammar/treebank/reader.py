"""Trees from files and libraries: Penn bracketings with the line of each tree, `nltk.Tree`, a column of a dataset."""

from __future__ import annotations

import glob
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from truesource.grammar.conventions import CONVENTIONS
from truesource.grammar.support.archives import read_texts
from truesource.grammar.support.errors import InputError, extras_for
from truesource.grammar.support.files import digest_json, read_text_lines
from truesource.grammar.support.records import read_records
from truesource.grammar.tree import Tree, fold, unescaped

if TYPE_CHECKING:
    import nltk


SUFFIXES = (".mrg", ".ptb", ".txt", ".parse")  #: files taken from a folder, each also with ``.gz``

# White space is ASCII only: a no-break space is part of a word, as treebanks have it.
_SPACE = r" \t\r\n\f\v"
_TOKENS = re.compile(
    rf"\([^{_SPACE}()]+[{_SPACE}]+[^{_SPACE}()]+[{_SPACE}]*\)"  # a whole preterminal: (NN dog)
    rf"|\([{_SPACE}]*[^{_SPACE}()]*"  # an opening bracket and its label
    rf"|\)"
    rf"|[^{_SPACE}()]+"  # a word or label that stands alone
).findall
_WORDS = re.compile(rf"[^{_SPACE}()]+").findall


def find_files(source: str | Path | Sequence[str | Path]) -> list[Path]:
    """The files that ``source`` means, in the order they are read.

    Args:
        source: a file; a folder (every ``*.mrg``, ``*.ptb``, ``*.txt``, ``*.parse`` below it, plain or
            ``.gz``, sorted); a glob pattern (sorted, ``**`` is recursive); or a sequence of these.

    Raises:
        InputError: nothing is there.
    """
    if not isinstance(source, (str, Path)):
        return [path for part in source for path in find_files(part)]
    path = Path(source)
    if path.is_dir():
        files = sorted(p for p in path.rglob("*") if p.is_file() and p.name.removesuffix(".gz").endswith(SUFFIXES))
        if not files:
            raise InputError(
                f"no treebank file ({', '.join('*' + s for s in SUFFIXES)}, plain or .gz) in the folder", path
            )
        return files
    if path.exists():
        return [path]
    if glob.has_magic(str(source)):
        matches = glob.glob(str(source), recursive=True)  # noqa: PTH207 (Path.glob takes no absolute pattern)
        files = sorted(file for file in map(Path, matches) if file.is_file())
        if not files:
            raise InputError("no file matches the pattern", path)
        return files
    raise InputError("there is no such file", path)


def read_file(path: str | Path, skipped: str | None = None) -> Iterator[tuple[int, Tree]]:
    """Yield (line the tree starts at, tree) for each tree of a file, gzipped when its name ends in ``.gz``.

    Words and labels stay as they are in the file (``-LRB-`` too) but for the escapes of `grammar.tree`; an
    empty outer label, as in ``( (S ...))``, is the empty string. Trees may share nodes.

    Raises:
        InputError: the file is missing, not UTF-8, a damaged gzip file, or not a bracketing (see `read_lines`).
    """
    path = Path(path)
    return read_lines(read_text_lines(path), path, skipped)


def read_text(text: str, source: str | Path | None = None) -> Iterator[tuple[int, Tree]]:
    """Read trees from a string as `read_file` does; ``source`` is named in errors."""
    return read_lines(text.split("\n"), source)


def read_lines(
    lines: Iterable[str], source: str | Path | None = None, skipped: str | None = None
) -> Iterator[tuple[int, Tree]]:
    """Parse lines of a bracketing of one or many trees, a line holding many trees or a part of one.

    A whole tree without words, ``()``, ``(())`` or ``(ROOT )``, as parsers write where they fail, has no children.

    Args:
        lines: the text, cut at line ends.
        source: name for error messages.
        skipped: regular expression of the starts of lines between trees that are none (`Convention.lines`).

    Raises:
        InputError: with the line, for a bracket that is never closed, a stray closing bracket, text
            outside brackets, a node without label inside a tree, a node without children (an empty leaf
            such as ``(NN )``) inside a tree, or a word that is not the only child of its node.
    """
    preterminals: dict[str, Tree] = {}
    labels: list[str] = []
    families: list[list[Tree | str]] = []  # children so far of every open node
    starts: list[int] = []
    hollow = 0  # line of an empty node that is all of an open tree so far
    is_skipped = re.compile(skipped or r"(?!)").match
    for number, line in enumerate(lines, 1):
        if not labels and is_skipped(line):
            continue
        for token in _TOKENS(line):
            if token[0] == "(":
                if token[-1] != ")":
                    labels.append(unescaped(token[1:].lstrip(" \t\r\n\f\v")))
                    families.append([])
                    starts.append(number)
                    continue
                node, start = preterminals.get(token), number
                if node is None:
                    label, word = map(unescaped, _WORDS(token))
                    node = preterminals[token] = Tree(label, (word,))
            elif token == ")":
                if not labels:
                    raise InputError("a closing bracket without an opening one", source, number)
                label, children, start = labels.pop(), families.pop(), starts.pop()
                if not children:
                    if not labels:
                        yield start, Tree(label, ())
                        hollow = 0
                        continue
                    if label or labels != [""] or families[-1] or hollow:
                        raise _childless(label, source, start)
                    hollow = start  # of (()), if nothing follows
                    continue
                if hollow:
                    raise _childless("", source, hollow)
                if not label and labels:
                    raise _unlabelled(source, start, starts[0])
                if isinstance(children[0], str) and len(children) > 1:
                    raise _beside(children[0], label, source, start)
                node = Tree(label, tuple(children))
            else:
                if not labels:
                    skipping = [name for name, each in CONVENTIONS.items() if re.match(each.lines, line)]
                    hint = f"; the convention {' or '.join(skipping)} skips such lines" if skipping else ""
                    raise InputError(f"text outside brackets: {token[:40]!r}{hint}", source, number)
                if families[-1]:
                    raise _beside(token, labels[-1], source, number)
                if labels[-1]:
                    families[-1].append(unescaped(token))
                else:
                    labels[-1] = unescaped(token)  # a label on the line after its bracket
                continue
            if labels:
                families[-1].append(node)
            else:
                yield start, node
    if labels:
        many = f"{len(labels)} brackets are" if len(labels) > 1 else "1 bracket is"
        message = f"{many} still open at the end of the file, in the tree that starts at line {starts[0]}"
        raise InputError(message, source, starts[0])


def _unlabelled(source: str | Path | None, line: int, start: int) -> InputError:
    return InputError(
        f"a node without a label inside the tree that starts at line {start}; a closing bracket may be missing before"
        " it",
        source,
        line,
    )


def _childless(label: str, source: str | Path | None, line: int) -> InputError:
    return InputError(f"the node ({label} ) has no children; a leaf needs a word", source, line)


def _beside(word: str, label: str, source: str | Path | None, line: int) -> InputError:
    return InputError(
        f"the word {word[:40]!r} stands beside other children of {label!r}; a word must be an only child", source, line
    )


Located = tuple[int, Tree]  #: a tree and where it stands (line, row or position, from 1)


def to_nltk(tree: Tree) -> nltk.Tree:
    """Convert a tree to an `nltk.Tree`."""
    from nltk import Tree as NltkTree

    def combine(node: Tree, children: list[Any]) -> Any:
        return NltkTree(node.label, children or list(node.children))

    return fold(tree, combine)


def from_nltk(trees: Iterable[nltk.Tree]) -> Iterator[Located]:
    """Trees from `nltk.Tree` objects, numbered from 1.

    Raises:
        InputError: something is not a tree, a leaf is not a word (a string without white space), a node has
            no children, or a word is not an only child.
    """
    for number, tree in enumerate(trees, 1):
        yield number, _from_nltk(tree, f"tree {number}")


def _from_nltk(top: Any, where: str) -> Tree:
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
        if not len(node) or (words and len(node) > 1):
            raise InputError(f"in {where} the node {label!r} has neither one word nor constituents as its children")
        for name in (label, *words):
            if not isinstance(name, str) or any(c in name for c in " \t\r\n\f\v") or (not name and node is not top):
                raise InputError(f"in {where} {name!r} is not a word or label: a string without white space is needed")
        children = tuple(words) if words else tuple(done.pop() for _ in node)
        done.append(Tree(label, children))
    return done.pop()


def nltk_corpus(name: str) -> Iterator[tuple[str, Iterator[Located]]]:
    """Yield (source, its located trees) for each file of a bracketed corpus that NLTK has installed.

    NLTK finds the files (also inside its zips); our reader reads them.

    Raises:
        InputError: the corpus is unknown, is not installed, or holds no bracketed trees.
    """
    for source, text in _nltk_texts(name):
        yield source, read_text(text, source)


def nltk_digest(name: str) -> str:
    """SHA-256 of the names and texts of the files of a corpus that NLTK has installed; errors as `nltk_corpus`."""
    texts = {source: hashlib.sha256(text.encode("utf-8")).hexdigest() for source, text in _nltk_texts(name)}
    return digest_json(texts)


def _nltk_texts(name: str) -> Iterator[tuple[str, str]]:
    import nltk.corpus
    from nltk.corpus.reader import BracketParseCorpusReader

    corpus = getattr(nltk.corpus, name, None)
    if corpus is None:
        raise InputError(f"NLTK knows no corpus {name!r}; Penn-bracketed files can be read by Treebank.read")
    try:
        files = list(corpus.fileids())
    except LookupError as error:
        raise InputError(
            f"NLTK's corpus {name!r} is not on this machine; fetch it by `python -m nltk.downloader {name}`"
            f" or put it under corpora/{name} in a folder of nltk.data.path"
        ) from error
    if not isinstance(corpus, BracketParseCorpusReader):
        raise InputError(f"NLTK's corpus {name!r} holds no bracketed trees; 'treebank' does")
    for file in files:
        yield f"nltk:{name}/{file}", corpus.raw(file)


def dataset_column(dataset: Any, column: str, split: str | None) -> tuple[str, Iterator[Located]]:
    """(Source, trees with their row number from 1) from bracketings in a column; a row may hold many trees.

    Args:
        dataset: a `datasets.Dataset` or `DatasetDict`, an iterable of rows (mappings), or the path of a folder written
            by ``save_to_disk``, a Parquet file, a folder of Parquet files, or a JSON-lines file.
        column: its name.
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
            raise InputError(f"the dataset has the parts {', '.join(map(str, rows))}; name one of them as the split")
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
        for _, tree in read_text(text, f"{source}, row {number}"):
            yield number, tree


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
    remedy = "name a file with a JSON object a line"
    return (row for _, row in read_records(path, dict[str, Any], remedy=remedy))


def _parquet_rows(files: list[Path], column: str) -> Iterator[dict[str, Any]]:
    for file in files:
        for text in read_texts(file, column, remedy="name a Parquet file of bracketings and the column they are in"):
            yield {column: text}
