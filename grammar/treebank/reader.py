"""Read Penn bracketings: a stream of trees with the line each starts at."""

from __future__ import annotations

import glob
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from truesource.grammar.bracketing import unescaped
from truesource.grammar.conventions import CONVENTIONS
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.unpacking import read_text_lines
from truesource.grammar.tree import Tree

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

    Words and labels stay as they are in the file (``-LRB-`` too) but for the escapes of `grammar.bracketing`; an
    empty outer label, as in ``( (S ...))``, is the empty string. Trees may share nodes.

    Raises:
        InputError: the file is missing, not UTF-8, a damaged gzip file, or not a bracketing (see
            `read_lines`).
    """
    path = Path(path)
    return read_lines(read_text_lines(path), path, skipped)


def read_text(text: str, source: str | Path | None = None) -> Iterator[tuple[int, Tree]]:
    """As `read_file`, from a string; ``source`` is named in errors."""
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
                    raise InputError(f"text outside brackets: {token[:40]!r}{_hint(line)}", source, number)
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
        raise _unclosed(len(labels), source, starts[0])


def _unlabelled(source: str | Path | None, line: int, start: int) -> InputError:
    return InputError(
        f"a node without a label inside the tree that starts at line {start}; a closing bracket may be missing before"
        " it",
        source,
        line,
    )


def _unclosed(brackets: int, source: str | Path | None, start: int) -> InputError:
    many = f"{brackets} brackets are" if brackets > 1 else "1 bracket is"
    return InputError(
        f"{many} still open at the end of the file, in the tree that starts at line {start}", source, start
    )


def _hint(line: str) -> str:
    """Which conventions skip such a line."""
    names = [name for name, convention in CONVENTIONS.items() if re.match(convention.lines, line)]
    return f"; the convention {' or '.join(names)} skips such lines" if names else ""


def _childless(label: str, source: str | Path | None, line: int) -> InputError:
    return InputError(f"the node ({label} ) has no children; a leaf needs a word", source, line)


def _beside(word: str, label: str, source: str | Path | None, line: int) -> InputError:
    return InputError(
        f"the word {word[:40]!r} stands beside other children of {label!r}; a word must be an only child",
        source,
        line,
    )
