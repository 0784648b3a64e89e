r"""A constituency tree, a label over children that are trees or words: traversal, notation and drawing.

Brackets and white space inside a word or a label are written as hexadecimal codes, ``\x28`` for ``(``, and so is a
backslash before an ``x``. An empty word is ``\x``. Everything else is unchanged: ``-LRB-`` is a word, as in treebanks.
So each name reads back unchanged.

A word with siblings in grammar text has its own preterminal, labelled by the word in quotes.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from html import escape
from typing import TypeVar

from truesource.grammar.support.printable import brief

EMPTY_NAME = r"\x"  #: notation of an empty word

_SPECIAL = re.compile(r"[() \t\r\n\f\v]|\\(?=x)")
_WRITTEN = re.compile(r"\\x([0-9a-f]{2})")
ROW = 44  #: pixels from a node to its children
LETTER = 8.2  #: approximate pixels of a letter
GAP = 18  #: pixels between two words
MANY = 1_000_000  #: objects for which a collection takes a second


@lru_cache(maxsize=1 << 16)
def escaped(name: str) -> str:
    r"""Return a word or label in the notation of bracketings.

    >>> escaped("New York (NY)")
    'New\\x20York\\x20\\x28NY\\x29'
    """
    return _SPECIAL.sub(lambda match: f"\\x{ord(match[0]):02x}", name) if name else EMPTY_NAME


def unescaped(written: str) -> str:
    """Return the word or label that `escaped` wrote; text without its escapes is unchanged."""
    if "\\x" not in written:
        return written
    return "" if written == EMPTY_NAME else _WRITTEN.sub(lambda match: chr(int(match[1], 16)), written)


def word_label(word: str) -> str:
    """Return the label of a word's own preterminal: the word in quotes."""
    return f"'{word}'"


def is_word_label(label: str) -> bool:
    """Return True for the label of a word's own preterminal, whose characters have no meaning (``''`` is a tag)."""
    return len(label) > 2 and label[0] == label[-1] == "'"


@dataclass(frozen=True, slots=True)
class Tree:
    """An immutable constituency tree; every leaf is a word (`str`).

    A *preterminal* is a node whose only child is a word. All methods are iterative, so depth is limited only by memory.
    """

    label: str
    children: tuple[Tree | str, ...]

    def __repr__(self) -> str:
        return brief(f"Tree({str(self)!r})")

    @property
    def is_preterminal(self) -> bool:
        """True if the only child is a word."""
        return len(self.children) == 1 and isinstance(self.children[0], str)

    def subtrees(self) -> Iterator[Tree]:
        """Yield every node, parents before children, left to right."""
        stack: list[Tree | str] = [self]
        while stack:
            node = stack.pop()
            if isinstance(node, Tree):
                yield node
                stack.extend(reversed(node.children))

    def leaves(self) -> list[str]:
        """Return the words, left to right."""
        words: list[str] = []
        stack: list[Tree | str] = [self]
        while stack:
            node = stack.pop()
            if isinstance(node, str):
                words.append(node)
            else:
                stack.extend(reversed(node.children))
        return words

    def height(self) -> int:
        """Return the number of nodes on the longest path from here to a word, the word included (as in NLTK)."""
        height, level = 1, [self]
        while level:
            height += 1
            level = [child for node in level for child in node.children if isinstance(child, Tree)]
        return height

    def __str__(self) -> str:
        """Return Penn brackets on one line, which read back as the same tree; see `truesource.grammar.tree`."""
        parts: list[str] = []
        stack: list[Tree | str | None] = [self]
        while stack:
            node = stack.pop()
            if node is None:
                parts.append(")")
            elif isinstance(node, str):
                parts.append(" " + escaped(node))
            else:
                parts.append(" (" + escaped(node.label) if parts else "(" + (node.label and escaped(node.label)))
                stack.append(None)
                stack.extend(reversed(node.children))
        return "".join(parts)

    def svg(self) -> str:
        """Return a drawing as SVG, which notebooks show.

        A node for a quoted word of a grammar (``'the'`` above ``the``) is drawn as the word alone.
        """
        nodes: list[DrawnNode] = []
        stack: list[tuple[Tree | str, int, int | None]] = [(self, 0, None)]
        while stack:
            node, depth, parent = stack.pop()
            if isinstance(node, Tree) and node.is_preterminal and is_word_label(node.label):
                node = node.children[0]
            if isinstance(node, Tree):
                stack.extend((child, depth + 1, len(nodes)) for child in reversed(node.children))
                nodes.append(DrawnNode(node.label, depth, parent))
            else:
                nodes.append(DrawnNode(node, depth, parent, is_word=True))
        return tree_svg(nodes, f"Tree: {self}")

    def _repr_svg_(self) -> str:
        return self.svg()


@dataclass
class DrawnNode:
    """A label or a word, with the number of its parent."""

    text: str
    depth: int
    parent: int | None = None
    is_word: bool = False
    x: float = 0.0


def tree_svg(nodes: list[DrawnNode], title: str) -> str:
    """Return a drawing of a tree.

    Args:
        nodes: its labels and words, parents before children, left to right.
        title: text for screen readers.

    >>> tree_svg([DrawnNode("S", 0), DrawnNode("a", 1, 0, is_word=True)], "a tree").count("<text")
    2
    """
    _spread(nodes)
    width = max(node.x + _width(node.text) / 2 for node in nodes) + GAP / 2
    height = max(node.depth for node in nodes) * ROW + 30
    lines, texts = [], []
    for node in nodes:
        y = node.depth * ROW + 20
        if node.parent is not None:
            above = nodes[node.parent]
            lines.append(f'<line x1="{above.x:.1f}" y1="{above.depth * ROW + 26}" x2="{node.x:.1f}" y2="{y - 14}"/>')
        style = ' font-style="italic"' if node.is_word else ""
        texts.append(f'<text x="{node.x:.1f}" y="{y}"{style}>{escape(node.text)}</text>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{width:.0f}" height="{height}"'
        f' viewBox="0 0 {width:.0f} {height}" style="max-width: 100%; height: auto; background: #fff">'
        f"<title>{escape(title)}</title>"
        f'<g stroke="#777">{"".join(lines)}</g>'
        '<g fill="#000" font-family="sans-serif" font-size="14" text-anchor="middle">'
        f"{''.join(texts)}</g></svg>"
    )


def _spread(nodes: list[DrawnNode]) -> None:
    """Place words side by side, each as wide as the labels above it alone; centre labels over their children."""
    below: list[list[DrawnNode]] = [[] for _ in nodes]
    for node in nodes:
        if node.parent is not None:
            below[node.parent].append(node)
    room = [_width(node.text) for node in nodes]
    # the only child of a node has the next number, so wide labels of a chain widen the word at its end
    for number in range(len(nodes)):
        if len(below[number]) == 1:
            room[number + 1] = max(room[number + 1], room[number])
    left = GAP / 2
    for number, node in enumerate(nodes):
        if not below[number]:
            node.x = left + room[number] / 2
            left += room[number] + GAP
    for number in range(len(nodes) - 1, -1, -1):
        if below[number]:
            node = nodes[number]
            node.x = (below[number][0].x + below[number][-1].x) / 2


def _width(text: str) -> float:
    return max(len(text), 1) * LETTER


R = TypeVar("R")


def fold(tree: Tree, combine: Callable[[Tree, list[R]], R]) -> R:
    """Compute a value for every node from the values of its children; return the value of ``tree``.

    Args:
        tree: where to start.
        combine: called once per node with the node and the values of its children that are trees, left to
            right; words have no value (a preterminal gets an empty list).
    """
    nodes: list[tuple[Tree, int]] = []  # parents before children, right to left; number of subtrees
    stack = [tree]
    while stack:
        node = stack.pop()
        before = len(stack)
        for child in node.children:
            if isinstance(child, Tree):
                stack.append(child)
        nodes.append((node, len(stack) - before))
    values: list[R] = []
    for node, n_children in reversed(nodes):
        if n_children:
            inner = values[-n_children:]
            del values[-n_children:]
            values.append(combine(node, inner))
        else:
            values.append(combine(node, []))
    return values.pop()


def map_words(tree: Tree, change: Callable[[str], str]) -> Tree:
    """Return the tree with ``change`` applied to every word, left to right; a word must be an only child."""

    def combine(node: Tree, children: list[Tree]) -> Tree:
        if children:
            return Tree(node.label, tuple(children))
        words = tuple(change(word) for word in node.children if isinstance(word, str))
        return node if words == node.children else Tree(node.label, words)

    return fold(tree, combine)


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Suspend garbage collection: trees hold no cycles, and collecting among millions of them doubles reading time.

    If more than `MANY` new objects exist afterwards, later collections skip them: they are freed with their last
    reference, as usual, except for unreferenced cycles.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            if gc.get_count()[0] > MANY:
                gc.freeze()
            gc.enable()
