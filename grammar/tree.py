"""A constituency tree: a label over children that are trees or words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from truesource.grammar.bracketing import escaped, is_word_label


@dataclass(frozen=True, slots=True)
class Tree:
    """An immutable constituency tree; every leaf is a word (`str`).

    A *preterminal* is a node whose only child is a word. All methods are iterative, so depth is
    bounded by memory only.
    """

    label: str
    children: tuple[Tree | str, ...]

    @property
    def is_preterminal(self) -> bool:
        """True when the only child is a word."""
        return len(self.children) == 1 and isinstance(self.children[0], str)

    def subtrees(self) -> Iterator[Tree]:
        """Every node, parents before children, left to right."""
        stack: list[Tree | str] = [self]
        while stack:
            node = stack.pop()
            if isinstance(node, Tree):
                yield node
                stack.extend(reversed(node.children))

    def leaves(self) -> list[str]:
        """The words, left to right."""
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
        """Number of nodes on the longest path from here to a word, the word included (as in NLTK)."""
        deepest = 0
        stack: list[tuple[Tree | str, int]] = [(self, 1)]
        while stack:
            node, depth = stack.pop()
            deepest = max(deepest, depth)
            if isinstance(node, Tree):
                stack.extend((child, depth + 1) for child in node.children)
        return deepest

    def __str__(self) -> str:
        """Penn brackets on one line, which read back as the same tree; see `truesource.grammar.bracketing`."""
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
        """A drawing as SVG, which notebooks show.

        A node that stands for a quoted word of a grammar (``'the'`` above ``the``) is drawn as the word alone.
        """
        from truesource.grammar.tree_drawing import DrawnNode, tree_svg

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
