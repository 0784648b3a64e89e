"""Penn bracketings: one or many trees in lines of text, each with its first line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import ClassVar

from truesource.grammar.conventions import CONVENTIONS, PLAIN, Convention
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import read_text_lines
from truesource.grammar.tree import Tree, fold, unescaped, word_label
from truesource.grammar.treebank.foreign import refuse_foreign, refuse_positions

# White space is ASCII only: a no-break space is part of a word, as in treebanks.
_SPACE = r" \t\r\n\f\v"
_TOKENS = re.compile(
    rf"\([^{_SPACE}()]+[{_SPACE}]+[^{_SPACE}()]+[{_SPACE}]*\)"  # a whole preterminal: (NN dog)
    rf"|\([{_SPACE}]*[^{_SPACE}()]*"  # an opening bracket and its label
    rf"|\)"
    rf"|[^{_SPACE}()]+"  # a word or label by itself
).findall
_WORDS = re.compile(rf"[^{_SPACE}()]+").findall


BLOCKS = 20  #: consecutive brackets at the margin of an open tree after which it counts as never closed
MOST_RESTARTS = 100  #: never-closed brackets up to the end of a text after which it counts as no bracketing


@dataclass(frozen=True, slots=True)
class Flaw:
    """A reason why a tree cannot be read."""

    reason: str  #: what is wrong, without the position
    line: int  #: line of the mistake
    kind: str  #: ``unclosed``, ``stray-bracket``, ``unlabelled`` or ``childless``


def read_file(path: str | Path, convention: Convention = PLAIN) -> Iterator[tuple[int, Tree]]:
    """Yield (first line, tree) for each tree of a file, gzipped if its name ends in ``.gz``.

    Words and labels are unchanged (``-LRB-`` too) except for the escapes of `grammar.tree`; an empty outer label, as in
    ``( (S ...))``, is the empty string. Trees may share nodes.

    Raises:
        InputError: the file is missing, not UTF-8, a damaged gzip file, or not a bracketing (see `read_lines`).
    """
    return read_lines(read_text_lines(Path(path)), path, convention)


def read_text(text: str, source: str | Path | None = None) -> Iterator[tuple[int, Tree]]:
    """Read trees from a string as `read_file` does; ``source`` is named in errors."""
    return read_lines(text.split("\n"), source)


def read_lines(
    lines: Iterable[str], source: str | Path | None = None, convention: Convention = PLAIN
) -> Iterator[tuple[int, Tree]]:
    """Parse lines of a bracketing of one or many trees, as `scan_lines` does; all must be valid.

    Raises:
        InputError: as in `scan_lines`, and for the first invalid tree, with its line.
    """
    for start, tree in scan_lines(lines, source, convention):
        if isinstance(tree, Flaw):
            raise InputError(tree.reason, source, tree.line)
        require_tags(tree, source, start)
        yield start, tree


def scan_lines(
    lines: Iterable[str], source: str | Path | None = None, convention: Convention = PLAIN
) -> Iterator[tuple[int, Tree | Flaw]]:
    """Parse lines of a bracketing of one or many trees; a line may hold many trees or a part of one.

    A tree that cannot be read is a `Flaw`, and reading resumes after it; after a bracket that is never closed, at the
    next line whose first character opens one. A whole tree without words, ``()``, ``(())`` or ``(ROOT )``, as failed
    parsers write, has no children. A word next to other children keeps its position.

    Args:
        lines: the text, cut at line ends.
        source: name for error messages.
        convention: which lines between trees to skip, and whether each word has its own brackets.

    Raises:
        InputError: text outside brackets (line given), the text has another format (code ``foreign-format``), or
            many brackets are never closed.
    """
    remaining: Iterator[tuple[int, str]] = enumerate(lines, 1)
    ends = 0  # number of times that the text ended in an open tree
    while ends < MOST_RESTARTS:
        scan = _Scan(source, convention)
        yield from scan.run(remaining)
        if not scan.starts:
            return
        ends += not scan.blocks > BLOCKS
        start = scan.starts[0]
        brackets = "1 bracket is" if len(scan.starts) == 1 else f"{len(scan.starts)} brackets are"
        reason = f"{brackets} still open at the end of the file, in the tree that starts at line {start}"
        yield start, scan.flaw or Flaw(reason, start, "unclosed")
        rest = scan.pending[1:]
        first = next((i for i, (_, line) in enumerate(rest) if line.startswith("(")), len(rest))
        remaining = chain(rest[first:], remaining)
    raise InputError(f"brackets of {MOST_RESTARTS} trees are never closed; correct the brackets", source)


class _Scan:
    """The state of one pass over lines."""

    def __init__(self, source: str | Path | None, convention: Convention) -> None:
        self.source, self.convention = source, convention
        self.starts: list[int] = []  #: lines of the open brackets
        self.blocks = 0  #: consecutive brackets at the margin, all at one depth of the open tree
        self._depth = 0
        self.flaw: Flaw | None = None  #: first flaw of the open tree
        self.pending: list[tuple[int, str]] = []  #: lines since the open tree began

    def _counts_blocks(self, depth: int) -> bool:
        """Count a line that begins a bracket at the margin in an open tree; return False after too many in a row.

        Trees below a bracket that is never closed are such blocks, one after the other, all at one depth.
        """
        self.blocks = self.blocks + 1 if depth == self._depth else 1
        self._depth = depth
        return self.blocks <= BLOCKS

    def run(self, lines: Iterator[tuple[int, str]]) -> Iterator[tuple[int, Tree | Flaw]]:
        """Yield the trees; brackets open at the end remain in the state."""
        preterminals: dict[str, Tree] = {}
        labels: list[str] = []
        families: list[list[Tree | str]] = []  # children so far of every open node
        starts = self.starts
        hollow = 0  # line of an empty node that is the whole open tree so far
        is_skipped = re.compile(self.convention.lines).match
        is_bracketed = self.convention.bracketed_words
        for number, line in lines:
            if labels:
                self.pending.append((number, line))
                if line.startswith("(") and not self._counts_blocks(len(labels)):
                    return
            elif is_skipped(line):
                continue
            else:
                self.pending, self.blocks = [(number, line)], 0
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
                        yield number, Flaw("a closing bracket without an opening one", number, "stray-bracket")
                        continue
                    label, children, start = labels.pop(), families.pop(), starts.pop()
                    if not children:
                        if not labels:
                            yield start, self.flaw or Tree(label, ())
                            hollow, self.flaw = 0, None
                            continue
                        if is_bracketed and label:
                            families[-1].append(label)  # (NN (dog))
                            continue
                        if label or labels != [""] or families[-1] or hollow:
                            self.flaw = self.flaw or _childless(label, start)
                        else:
                            hollow = start  # line of (()), if nothing follows
                        continue
                    if hollow:
                        self.flaw = self.flaw or _childless("", hollow)
                    if not label and labels:
                        self.flaw = self.flaw or _unlabelled(start, starts[0])
                    if is_bracketed and len(children) > 1:  # (. .) for (.) next to others
                        children = [Tree(c, (c,)) if isinstance(c, str) else c for c in children]
                    node = Tree(label, tuple(children))
                else:
                    if not labels:
                        refuse_foreign(line, self.source, number)
                        raise _outside(token, line, self.source, number)
                    if labels[-1] or families[-1]:
                        families[-1].append(unescaped(token))
                    else:
                        labels[-1] = unescaped(token)  # a label on the line after its bracket
                    continue
                if labels:
                    families[-1].append(node)
                else:
                    if self.flaw is None:
                        refuse_positions(node, self.source, start)
                    yield start, self.flaw or node
                    hollow, self.flaw = 0, None


class LooseWordError(InputError):
    """A word that is not the only child of its node."""

    default_code: ClassVar[str] = "loose-word"

    def __init__(self, node: Tree, source: str | Path | None = None, line: int | None = None) -> None:
        word = next(child for child in node.children if isinstance(child, str))
        super().__init__(
            f"the word {word[:40]!r} is next to other children of {node.label!r}; a word must be an only child;"
            " loose_words: tag gives it its own tag, loose_words: first takes the first of several words",
            source,
            line,
        )


def require_tags(tree: Tree, source: str | Path | None = None, line: int | None = None) -> None:
    """Refuse a tree with a word that is not the only child of its node.

    Raises:
        LooseWordError: there is one.
    """
    for node in tree.subtrees():
        if len(node.children) > 1 and _has_word(node):
            raise LooseWordError(node, source, line)


def _has_word(node: Tree) -> bool:
    return any(isinstance(child, str) for child in node.children)


def tagged(tree: Tree) -> Tree:
    """Return the tree with a tag above each word that is not an only child: the word in quotes."""

    def combine(node: Tree, values: list[Tree]) -> Tree:
        if len(node.children) < 2 or not _has_word(node):
            return Tree(node.label, tuple(values)) if values else node
        below = iter(values)
        children = (Tree(word_label(c), (c,)) if isinstance(c, str) else next(below) for c in node.children)
        return Tree(node.label, tuple(children))

    return fold(tree, combine)


def first_words(tree: Tree) -> Tree:
    """Return the tree with the first word of each node that has several words and nothing else."""

    def combine(node: Tree, values: list[Tree]) -> Tree:
        if values or len(node.children) < 2:
            return Tree(node.label, tuple(values)) if values and len(values) == len(node.children) else node
        return Tree(node.label, node.children[:1])

    return fold(tree, combine)


def _outside(token: str, line: str, source: str | Path | None, number: int) -> InputError:
    skipping = [name for name, each in CONVENTIONS.items() if re.match(each.lines, line)]
    hint = f"; the convention {' or '.join(skipping)} skips such lines" if skipping else ""
    return InputError(f"text outside brackets: {token[:40]!r}{hint}", source, number)


def _unlabelled(line: int, start: int) -> Flaw:
    return Flaw(
        f"a node has no label in the tree that starts at line {start}; a closing bracket may be missing before it",
        line,
        "unlabelled",
    )


def _childless(label: str, line: int) -> Flaw:
    return Flaw(
        f"the node ({label} ) has no children; a leaf needs a word"
        + (" (or is itself a word, with the convention bracketed-words)" if label else ""),
        line,
        "childless",
    )
