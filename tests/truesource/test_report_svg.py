"""Figures take names literally."""

import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from truesource.evaluation.show.figures import figure, to_svg

pytestmark = pytest.mark.long

HOSTILE = [
    "\x1b[31mred",
    "\x07",
    "[/red]",
    "$x$",
    "$x_{",
    "<script>alert(1)</script>",
    "]]>",
    "\u202e",
    "\ud800",
    "{{7*7}}",
]


def drawn(names=("one", "two")):
    with figure(6, 4, "toy") as made:
        above, below = made.subplots(2, 1)
        above.loglog([1, 10, 1000], [1e-3, 2, 3], marker="o", label="line")
        above.fill_between([1, 10], [1, 2], [2, 3], alpha=0.3)
        above.set_title(names[0])
        for name in names:
            above.plot([1, 1000], [1, 2], label=name)
        above.legend()
        below.bar(range(len(names)), np.arange(len(names)))
        below.set_xticks(range(len(names)), names)
        return to_svg(made, "toy", names[0])


def texts(svg):
    return ["".join(node.itertext()) for node in ElementTree.fromstring(svg).iter() if node.tag.endswith("text")]


@pytest.mark.long
def test_names_are_drawn_literally_and_leave_the_figure_well_formed(tmp_path):
    names = [*HOSTILE, "x" * 10_000]
    svg = drawn(names)
    svg.encode("utf-8")
    said = texts(svg)
    for literal in ("\\x1b[31mred", "\\x07", "[/red]", "$x$", "$x_{", "]]>", "\\u202e", "\\ud800", "{{7*7}}"):
        assert said.count(literal) >= 2, literal  # in the legend and on the axis
    assert max(map(len, said)) <= 40
