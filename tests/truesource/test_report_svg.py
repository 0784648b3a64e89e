"""Figures of a run folder go into the page only if they are figures of this package."""

import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from truesource.grammar.support.errors import InputError
from truesource.report.figures import figure, standalone, to_svg
from truesource.report.finished_run import read_svg

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


@pytest.mark.parametrize("whole", [str, standalone])
def test_a_figure_is_read_back_as_it_was_drawn(tmp_path, whole):
    (tmp_path / "a.svg").write_text(whole(drawn()), encoding="utf-8")
    found = read_svg(tmp_path / "a.svg")
    assert texts(found) == texts(drawn()) and "10²" in texts(found)
    shapes = [node.get("d") for node in ElementTree.fromstring(found).iter("path")]
    assert shapes and shapes == [node.get("d") for node in ElementTree.fromstring(drawn()).iter("path")]


@pytest.mark.parametrize(
    "inside",
    [
        "<script>alert(1)</script>",
        "<image xlink:href='data:,x'/>",
        "<foreignObject><p/></foreignObject>",
        "<a xlink:href='#x'><text/></a>",
        "<set attributeName='x'/>",
        "<g onclick='alert(1)'/>",
        "<use xlink:href='https://x.org/y.svg#z'/>",
        "<use xlink:href='javascript:x'/>",
        "<g style='fill: url(https://x.org/y)'/>",
        "<g style='fill: URL(y.svg)'/>",
        "<g style='position: fixed; top: 0'/>",
        "<g style='fill: \\75rl(y)'/>",
        "<style>@import 'https://x.org'</style>",
        "<style type='text/css'>*{stroke-linejoin: round; stroke-linecap: butt}<g/></style>",
        "<!-- --><g/>",
        "<![CDATA[<script>]]>",
        "<?xml-stylesheet href='x'?>",
        "<g xmlns='http://www.w3.org/1999/xhtml'/>",
        "<g>" * 100 + "</g>" * 100,
        "<g>",
        "\x1b",
    ],
)
def test_what_no_figure_has_is_refused(tmp_path, inside):
    path = tmp_path / "a.svg"
    path.write_text(drawn().replace("</svg>", inside + "</svg>"), encoding="utf-8")
    with pytest.raises(InputError, match=r"this figure is damaged \(.*\); delete it and run the experiment again"):
        read_svg(path)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff<svg/>",
        b"<html/>",
        b"<g/>",
        b'<!DOCTYPE svg [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><svg>&b;</svg>',
        b"<svg>&b;</svg>",
    ],
)
def test_files_that_are_no_figure_are_refused(tmp_path, content):
    (tmp_path / "a.svg").write_bytes(content)
    with pytest.raises(InputError, match="damaged"):
        read_svg(tmp_path / "a.svg")


def test_names_are_drawn_literally_and_leave_the_figure_well_formed(tmp_path):
    names = [*HOSTILE, "x" * 10_000]
    svg = drawn(names)
    svg.encode("utf-8")
    said = texts(svg)
    for literal in ("\\x1b[31mred", "\\x07", "[/red]", "$x$", "$x_{", "]]>", "\\u202e", "\\ud800", "{{7*7}}"):
        assert said.count(literal) >= 2, literal  # in the legend and on the axis
    assert max(map(len, said)) <= 40
    (tmp_path / "a.svg").write_text(svg, encoding="utf-8")
    assert texts(read_svg(tmp_path / "a.svg")) == said
