"""A tree as a list of nodes with spans: neighbours, ancestors and heads."""

from __future__ import annotations

from dataclasses import dataclass

from truesource.grammar.tree import Tree
from truesource.grammar.treebank.binarise import head_index


@dataclass(frozen=True)
class ConstituentNode:
    """A node that is not a word."""

    label: str
    begin: int  #: first token
    end: int  #: one past the last token
    parent: int  #: number of the node above; -1 at the root
    children: tuple[int, ...]  #: numbers of the nodes below; none above a word


class Constituents:
    """The nodes of a tree in preorder; every word hangs on a node of its own, its tag."""

    def __init__(self, tree: Tree) -> None:
        labels: list[str] = []
        parents: list[int] = []
        children: list[list[int]] = []
        spans: list[list[int]] = []
        tags: list[int] = []
        stack: list[tuple[Tree | str, int]] = [(tree, -1)]
        while stack:
            item, parent = stack.pop()
            if isinstance(item, str):
                if spans[parent] or children[parent]:
                    raise ValueError("a word stands beside other nodes; every word needs a tag of its own")
                spans[parent] = [len(tags), len(tags) + 1]
                tags.append(parent)
                continue
            number = len(labels)
            labels.append(item.label)
            parents.append(parent)
            children.append([])
            spans.append([])
            if parent >= 0:
                children[parent].append(number)
            stack.extend((child, number) for child in reversed(item.children))
        for number in reversed(range(len(labels))):
            if children[number]:
                spans[number] = [spans[children[number][0]][0], spans[children[number][-1]][1]]
        self.nodes = [
            ConstituentNode(label, span[0], span[1], parent, tuple(below))
            for label, span, parent, below in zip(labels, spans, parents, children, strict=True)
        ]
        self.tags = tags  #: node above each word

    def tag(self, position: int) -> str:
        """Label of the node above a word."""
        return self.nodes[self.tags[position]].label

    def siblings(self, number: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Nodes to the left and to the right under the same parent."""
        parent = self.nodes[number].parent
        around = self.nodes[parent].children if parent >= 0 else (number,)
        at = around.index(number)
        return around[:at], around[at + 1 :]

    def head(self, number: int) -> int:
        """Position of the head word of a node, by the rules for Penn labels."""
        while self.nodes[number].children:
            below = self.nodes[number].children
            number = below[head_index(self.nodes[number].label, [self.nodes[c].label for c in below])]
        return self.nodes[number].begin
