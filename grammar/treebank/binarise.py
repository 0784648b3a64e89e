"""Binarise trees, with horizontal and vertical Markov orders, so that it can be undone exactly."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import is_
from typing import Annotated, Literal

from pydantic import Field

from truesource.grammar.bracketing import is_word_label
from truesource.grammar.support.checked_fields import check_fields
from truesource.grammar.support.errors import InputError
from truesource.grammar.tree import Tree
from truesource.grammar.treebank.heads import head_index
from truesource.grammar.treebank.traverse import fold

INTERMEDIATE = "@"  #: first character of every label that binarisation makes

_SPECIAL = re.compile(r"[\\^\[\]]")
_BASE = re.compile(r"(?:\\.|[^\\^\[])*", re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Binarisation:
    r"""How nodes with more than two children become chains of binary ones, and back.

    ``direction`` names the side from which children are split off. For ``X -> A B C D``:

    * ``"right"`` splits off the last child first: ``X -> @X D``, ``@X -> @X C``, ``@X -> A B``, a
      left-branching chain. This is the Berkeley trainer's RIGHT, and the default.
    * ``"left"`` splits off the first child first: ``X -> A @X``, ``@X -> B @X``, ``@X -> C D``, a
      right-branching chain (what NLTK calls ``factor="right"``).
    * ``"head"`` splits off the children right of the head, last one first, then those left of it, first
      one first, so that every intermediate node contains the head (`truesource.grammar.treebank.heads`). With B as
      head: ``X -> @X D``, ``@X -> @X C``, ``@X -> A B``.

    Nodes of one or two children keep their shape: unary chains and preterminals are untouched.

    An intermediate node of ``X`` is named ``@X``, followed by one ``[C]`` for each of the ``horizontal``
    siblings that were split off last (in text order); order 0 gives one ``@X`` for each ``X``, order
    None (no limit) makes the relative-frequency grammar equal to that of the unbinarised trees. In
    direction ``head``, orders other than 0 also name the head, ``[=H]``, and mark the side of each
    sibling, ``[<C]`` or ``[>C]`` (in the order of splitting).

    A ``vertical`` order of 2 appends ``^P`` to every phrasal label but the top one, with P the parent's label
    in the original tree; order 3 the grandparent too, and so on. Preterminals are not annotated, and
    an intermediate node carries the annotation of its ``X``. When names carry any context, the characters
    ``^ [ ] \`` of treebank labels are escaped by a backslash, so that every label can be got back.

    Orders as in Klein & Manning (2003), "Accurate Unlexicalized Parsing", section 2.

    Raises:
        InputError: an unknown direction, ``horizontal`` below 0 or ``vertical`` below 1.
    """

    direction: Annotated[
        Literal["left", "right", "head"],
        Field(description="Children that are split off first: the first (left), the last (right), or around the head."),
    ] = "right"
    horizontal: Annotated[
        int | None, Field(ge=0, description="Number of siblings that an intermediate label names; none: all of them.")
    ] = 0
    vertical: Annotated[
        int, Field(ge=1, description="Number of labels upwards that a label names, itself included; 1: no parent.")
    ] = 1

    def __post_init__(self) -> None:
        check_fields(self, "binarisation")

    def binarise(self, tree: Tree) -> Tree:
        """The tree with at most two children a node; ``unbinarise`` gives ``tree`` back.

        Raises:
            InputError: a label starts with ``@`` (the tree is binarised), or a word is not an only child.
        """
        names = self._names(tree)

        def combine(node: Tree, children: list[Tree]) -> Tree:
            name = names.pop()
            if len(node.children) > 1 and len(children) < len(node.children):
                raise InputError(f"a word stands beside other children of {node.label!r}; it must be alone")
            if not children:
                return node if name == node.label else Tree(name, node.children)
            if len(children) < 3:
                same = name == node.label and all(map(is_, children, node.children))
                return node if same else Tree(name, tuple(children))
            return self._chain(node, name, children)

        return fold(tree, combine)

    def unbinarise(self, tree: Tree) -> Tree:
        """Undo `binarise`: intermediate nodes vanish, labels lose their context.

        Raises:
            InputError: the top node is an intermediate one.
        """
        return splice(tree, self)

    def coarse(self, label: str) -> str:
        """The treebank label of a binarised one, context and escapes removed; ``@X...`` gives ``@X``."""
        return _unescaped_base(label) if self._annotates else label

    @property
    def _annotates(self) -> bool:
        return self.vertical > 1 or self.horizontal != 0

    def _escape(self, label: str) -> str:
        return _escaped(label, self._annotates)

    def _names(self, tree: Tree) -> list[str]:
        """The name of every node, ancestors included, in the order that `fold` reverses."""
        names: list[str] = []
        stack: list[tuple[Tree, tuple[str, ...]]] = [(tree, ())]
        while stack:
            node, ancestors = stack.pop()
            own = self._escape(node.label)
            if self.vertical == 1 or node.is_preterminal:
                names.append(own)
                below = ancestors
            else:
                names.append("^".join((own, *ancestors)))
                below = (own, *ancestors)[: self.vertical - 1]
            for child in node.children:
                if isinstance(child, Tree):
                    stack.append((child, below))
        return names

    def _chain(self, node: Tree, name: str, children: Sequence[Tree]) -> Tree:
        # Labels of the original children, which no longer are those of `children` when annotated.
        labels = [self._escape(child.label) for child in node.children if isinstance(child, Tree)]
        remembered = len(labels) if self.horizontal is None else self.horizontal
        order = self._splitting_order(node)
        kept = order[-1]
        current = children[kept]
        for depth in range(len(order) - 2, -1, -1):
            sibling = order[depth]
            pair = (children[sibling], current) if sibling < kept else (current, children[sibling])
            label = name if depth == 0 else INTERMEDIATE + name
            if depth and remembered:
                label += self._context(labels, order[max(0, depth - remembered) : depth], kept)
            current = Tree(label, pair)
        return current

    def _splitting_order(self, node: Tree) -> list[int]:
        """Children in the order they are split off; the last one stays."""
        last = len(node.children) - 1
        if self.direction == "right":
            return list(range(last, -1, -1))
        if self.direction == "left":
            return list(range(last + 1))
        labels = [child.label for child in node.children if isinstance(child, Tree)]
        head = head_index(node.label, labels)
        return [*range(last, head, -1), *range(head + 1)]

    def _context(self, labels: Sequence[str], recent: Sequence[int], kept: int) -> str:
        if self.direction == "head":
            sides = "".join(f"[{'<' if i < kept else '>'}{labels[i]}]" for i in recent)
            return f"[={labels[kept]}]{sides}"
        return "".join(f"[{labels[i]}]" for i in sorted(recent))


@lru_cache(maxsize=100_000)
def _escaped(label: str, annotates: bool) -> str:
    if label.startswith(INTERMEDIATE):
        raise InputError(f"the label {label!r} starts with @, which only binarised trees may have")
    return _SPECIAL.sub(r"\\\g<0>", label) if annotates else label


@lru_cache(maxsize=100_000)
def _unescaped_base(label: str) -> str:
    mark = INTERMEDIATE if label.startswith(INTERMEDIATE) else ""
    base = _BASE.match(label, len(mark))
    assert base is not None  # it matches the empty string
    return mark + _ESCAPED.sub(r"\1", base[0])


def category(label: str) -> str:
    """The category a label belongs to: ``NP`` for ``NP``, ``NP^S``, ``@NP`` and ``@NP[DT]``."""
    return label if is_word_label(label) else _unescaped_base(label).removeprefix(INTERMEDIATE) or label


def splice(tree: Tree, binarisation: Binarisation | None = None) -> Tree:
    """Remove the nodes whose label starts with ``@``: their children take their place.

    Args:
        tree: any tree, binarised or not.
        binarisation: when given, the other labels become coarse ones too.

    Raises:
        InputError: the top node is an intermediate one.
    """
    if tree.label.startswith(INTERMEDIATE):
        raise InputError(f"a whole tree cannot be labelled {tree.label!r}: @ marks parts made by binarisation")
    coarse = (lambda label: label) if binarisation is None else binarisation.coarse
    # Children are gathered top-down: a chain of n intermediate nodes costs n steps, not n squared.
    done: list[Tree] = []
    nodes: list[tuple[Tree, int]] = []
    stack = [tree]
    while stack:
        node = stack.pop()
        children = _without_intermediates(node)
        nodes.append((node, len(children)))
        stack.extend(reversed(children))
    for node, n_children in reversed(nodes):
        label = coarse(node.label)
        if n_children:
            done.append(Tree(label, tuple(done.pop() for _ in range(n_children))))
        else:
            done.append(node if label == node.label else Tree(label, node.children))
    return done.pop()


def _without_intermediates(node: Tree) -> list[Tree]:
    children: list[Tree] = []
    stack = [child for child in reversed(node.children) if isinstance(child, Tree)]
    while stack:
        child = stack.pop()
        if child.label.startswith(INTERMEDIATE):
            stack.extend(grandchild for grandchild in reversed(child.children) if isinstance(grandchild, Tree))
        else:
            children.append(child)
    return children
