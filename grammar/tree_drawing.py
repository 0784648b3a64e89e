"""Trees drawn as SVG: labels above, words below."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

ROW = 44  #: pixels from a node to its children
LETTER = 8.2  #: pixels of a letter, about
GAP = 18  #: pixels between two words


@dataclass
class DrawnNode:
    """A label or a word, with the number of its parent."""

    text: str
    depth: int
    parent: int | None = None
    is_word: bool = False
    x: float = 0.0


def tree_svg(nodes: list[DrawnNode], title: str) -> str:
    """A drawing of a tree.

    Args:
        nodes: its labels and words, parents before children, left to right.
        title: what a screen reader says.

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
    """Words side by side, each with room for the labels above it alone; a label over the middle of its children."""
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
