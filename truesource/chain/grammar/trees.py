"""A constituency tree drawn as SVG: words on one line, every node above the middle of its children."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from itertools import islice

from truesource.grammar.tree import Tree
from truesource.report.figures import MODEL

LEVEL = 44.0  #: points between levels
GAP = 16.0  #: points between neighbouring words
CHARACTER = 7.6  #: points a character of a word takes, generously
LABEL = 8.2  #: the same for a label
_FONT = "sans-serif"
STYLES = {
    "t-label": f"font: 600 13px {_FONT}; fill: #1f2937",
    "t-pos": f"font: 12.5px {_FONT}; fill: {MODEL}",
    "t-word": f"font: italic 14px {_FONT}; fill: #1f2937",
}
LINE = "stroke: #8A919E; stroke-width: 1.3; fill: none"
FAR = "stroke-dasharray: 2 3"  #: a line that goes down further than a level


def typical_tree(trees: Iterable[Tree], low: int = 8, high: int = 12, most: int = 300) -> Tree | None:
    """A tree of medium length and, among those, of medium height; None where there are no trees."""
    seen = list(islice(trees, most))
    if not seen:
        return None
    middle = (low + high) / 2
    sized = [(len(tree.leaves()), tree) for tree in seen]
    fitting = [tree for n, tree in sized if low <= n <= high]
    if not fitting:
        return min(sized, key=lambda pair: abs(pair[0] - middle))[1]
    return sorted(fitting, key=lambda tree: tree.height())[len(fitting) // 2]


def draw_tree(tree: Tree) -> str:
    """The tree as an ``<svg>`` element; iterative, so its depth is bounded by memory only.

    A node stands as deep as it is in the tree and its words hang down to the bottom line, so no lines cross.
    """
    nodes, children = _flatten(tree)
    n = len(nodes)
    first, last, depth = list(range(n)), list(range(n)), [0] * n
    for i in range(n):
        for c in children[i]:
            depth[c] = depth[i] + 1
    for i in reversed(range(n)):  # parents stand before their children
        if children[i]:
            first[i], last[i] = first[children[i][0]], last[children[i][-1]]
    bottom = max(depth)
    width = {i: CHARACTER * len(_name(nodes[i])) for i in range(n) if not children[i]}
    for i in range(n):
        if children[i] and first[i] == last[i]:
            width[first[i]] = max(width[first[i]], LABEL * len(_name(nodes[i])))
    x, right = [0.0] * n, 0.0
    for i, wide in sorted(width.items()):
        x[i] = right + (wide + GAP) / 2
        right += wide + GAP
    for i in reversed(range(n)):
        if children[i]:
            x[i] = (x[children[i][0]] + x[children[i][-1]]) / 2
    y = [LEVEL * (depth[i] if children[i] else bottom) + 18 for i in range(n)]
    lines, texts = [], []
    for i in range(n):
        word, above_word = not children[i], any(not children[c] for c in children[i])
        kind = "t-word" if word else "t-pos" if above_word and len(children[i]) == 1 else "t-label"
        look = f'class="{kind}" style="{STYLES[kind]}"'
        texts.append(f'<text {look} x="{x[i]:.1f}" y="{y[i]:.1f}">{escape(_name(nodes[i]))}</text>')
        for c in children[i]:
            far = f' class="t-far" style="{FAR}"' if not children[c] and y[c] - y[i] > LEVEL + 1 else ""
            bend = y[i] + LEVEL - 14  # a word that hangs from a wide node first goes aside, then down
            path = f"M{x[i]:.1f} {y[i] + 6:.1f}L{x[c]:.1f} {bend:.1f}" + (f"V{y[c] - 14:.1f}" if far else "")
            lines.append(f'<path{far} d="{path}"/>')
    height = LEVEL * bottom + 30
    return (
        f'<svg class="tree" viewBox="0 0 {right:.0f} {height:.0f}" style="width:{right:.0f}px" role="img"'
        f' aria-label="{escape(str(tree))}" data-name="tree"><g style="{LINE}">{"".join(lines)}</g>'
        f'<g style="text-anchor: middle">{"".join(texts)}</g></svg>'
    )


def _flatten(tree: Tree) -> tuple[list[Tree | str], list[list[int]]]:
    """Nodes and words in pre-order, and the places of the children of each (none for a word)."""
    nodes: list[Tree | str] = []
    children: list[list[int]] = []
    stack: list[tuple[Tree | str, int]] = [(tree, -1)]
    while stack:
        node, parent = stack.pop()
        if parent >= 0:
            children[parent].append(len(nodes))
        nodes.append(node)
        children.append([])
        if isinstance(node, Tree):
            stack.extend((child, len(nodes) - 1) for child in reversed(node.children))
    return nodes, children


def _name(node: Tree | str) -> str:
    return node if isinstance(node, str) else node.label
