"""Figures that stages left in a run folder, on their way into the page: parsed, and refused if there is more in them.

What comes out is written anew from elements and attributes of the lists below, so no script, link, style sheet or
entity of the file can reach the page.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NotRequired
from xml.etree import ElementTree

from pydantic import TypeAdapter, with_config
from typing_extensions import TypedDict

from truesource.grammar.support.errors import InputError
from truesource.grammar.support.records import STRICT
from truesource.report.records import REMEDY

MOST_BYTES = 30_000_000
DEEPEST = 60  #: elements inside one another
ELEMENTS = frozenset({"svg", "g", "defs", "clipPath", "path", "rect", "use", "text", "tspan", "style"})
ATTRIBUTES = frozenset(
    {
        *("id", "d", "x", "y", "width", "height", "transform", "viewBox", "style", "fill", "clip-path", "type"),
        *("role", "aria-label", "xlink:href", "data-name", "data-marks"),
    }
)
SHEET = "*{stroke-linejoin: round; stroke-linecap: butt}"  #: the one style sheet: that of matplotlib
_NAMESPACES = {"{http://www.w3.org/2000/svg}": "", "{http://www.w3.org/1999/xlink}": "xlink:"}
_VALUE = re.compile(r"(?:[\w\s:;,.#%'()+-](?<!url\()|url\((?=#))*", re.ASCII | re.IGNORECASE)
_NAME = re.compile(r"[\w.-]+", re.ASCII)
_PROPERTY = re.compile(r"(?:fill|stroke|font|text-anchor|opacity|clip-path)[a-z-]*", re.ASCII)


@with_config(STRICT)
class MarkedSeries(TypedDict):
    """The marks of one kind in a panel, see `truesource.report.figures`."""

    name: str
    rows: list[list[float | None]]


@with_config(STRICT)
class MarkedPanel(TypedDict):
    """A panel of a figure."""

    name: str
    x: str
    y: str
    fx: tuple[float, float, float]
    fy: tuple[float, float, float]
    places: NotRequired[dict[str, dict[str, str]]]
    series: list[MarkedSeries]


_PANELS = TypeAdapter(list[MarkedPanel])


def read_svg(path: Path) -> str:
    """A figure as an ``<svg>`` element for the page.

    Raises:
        InputError: the file is no figure of this package: not well-formed, too large, or with an element, an attribute
            or a value that none of its figures has.
    """
    try:
        if path.stat().st_size > MOST_BYTES:
            raise ValueError(f"more than {MOST_BYTES:,} bytes")
        text = path.read_text(encoding="utf-8")
        if found := re.search(r"<[!?]", text):
            raise ValueError(f"it holds {found[0]!r}")
        root = ElementTree.fromstring(text)
        _rewrite(root)
    except (OSError, ValueError, ElementTree.ParseError) as error:
        raise InputError(f"this figure is damaged ({error}); {REMEDY}", path) from error
    if root.tag != "svg":
        raise InputError(f"this figure is damaged (it is no <svg>); {REMEDY}", path)
    root.set("xmlns:xlink", "http://www.w3.org/1999/xlink")
    return ElementTree.tostring(root, encoding="unicode")


def _rewrite(root: ElementTree.Element) -> None:
    """Take away the namespaces of all elements and attributes, and check each of them."""
    left = [(root, 1)]
    while left:
        element, depth = left.pop()
        element.tag = _local(element.tag)
        if element.tag not in ELEMENTS or depth > DEEPEST:
            raise ValueError(f"no figure has <{element.tag}> there")
        if element.tag == "style" and (element.text != SHEET or len(element)):
            raise ValueError("it has a style sheet of its own")
        attributes = {_local(name): value for name, value in element.attrib.items()}
        for name, value in attributes.items():
            _check(name, value)
        element.attrib.clear()
        element.attrib.update(attributes)
        left += [(child, depth + 1) for child in element]


def _local(name: str) -> str:
    for namespace, prefix in _NAMESPACES.items():
        if name.startswith(namespace):
            return prefix + name.removeprefix(namespace)
    return name


def _check(name: str, value: str) -> None:
    if name not in ATTRIBUTES:
        raise ValueError(f"no figure has the attribute {name}")
    if name == "aria-label":
        return
    if name == "data-marks":
        _PANELS.validate_json(value)
        return
    right = value == "text/css" if name == "type" else _VALUE.fullmatch(value) is not None
    if name == "data-name":
        right = _NAME.fullmatch(value) is not None
    if name == "xlink:href":
        right &= value.startswith("#")
    if name == "style":
        names = [part.partition(":")[0].strip() for part in value.split(";") if part.strip()]
        right &= all(_PROPERTY.fullmatch(part) for part in names)
    if not right:
        raise ValueError(f"no figure has such a value of {name}")
