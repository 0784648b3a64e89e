"""Figures in a page: named, legible on a phone, and with colours that the page can change for dark paper."""

from __future__ import annotations

import colorsys
import re
from html import unescape

from markupsafe import Markup

DARK_PAPER = "#14181f"  #: as in style.css
INK = 1.5  #: contrast on white from which a colour is one of marks or text, and not of the ground
LEAST = 4.6  #: contrast of marks and text on dark paper
LEGIBLE = 9.0  #: pixels of the smallest text; a narrower page scrolls the figure
SMALLEST = 8.0  #: points of the smallest text where a figure does not say it
_STYLE = re.compile(r' style="[^"]*"')
_COLOUR = re.compile(r"#([0-9a-fA-F]{6})\b")
_FONT = re.compile(r"font(?:-size)?: (?:[a-z0-9]+ )*([\d.]+)px")
_WIDTH = re.compile(r'viewBox="0 0 ([\d.]+) ')
_NAME = re.compile(r'data-name="([^"]*)"')
_ON_PAGE = re.compile(r'data-figure="([^"]*)"><div[^>]*>(<svg[^>]*>)')


def contrast(first: str, second: str) -> float:
    """Return the contrast of two colours (WCAG 2), from 1 to 21; text needs 4.5, marks need 3."""
    low, high = sorted((_luminance(first), _luminance(second)))
    return (high + 0.05) / (low + 0.05)


def on_dark(colour: str) -> str:
    """Return the colour (``#rrggbb``) that replaces one of light paper: same distance from the paper, same hue."""
    hue, lightness, saturation = colorsys.rgb_to_hls(*_channels(colour))
    ink = contrast(colour, "#ffffff") >= INK
    calm = (0.75 if ink else 0.45) * saturation
    turned = 0.1 + 0.9 * (1.0 - lightness)
    dark = _hex(hue, turned, calm)
    while ink and contrast(dark, DARK_PAPER) < LEAST and turned < 1.0:
        turned = min(1.0, turned + 0.01)
        dark = _hex(hue, turned, calm)
    return dark


def _hex(hue: float, lightness: float, saturation: float) -> str:
    return "#" + "".join(f"{round(255 * channel):02x}" for channel in colorsys.hls_to_rgb(hue, lightness, saturation))


def _channels(colour: str) -> tuple[float, float, float]:
    red, green, blue = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    return red, green, blue


def _luminance(colour: str) -> float:
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in _channels(colour)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def figures_on_page(page: str) -> dict[str, str]:
    """Return the titles of the figures of a page, as `ShownFigures` puts them there, by name and in their order."""
    titles = {unescape(name): title_of(head) for name, head in _ON_PAGE.findall(page)}
    return {name: "A tree of the corpus" if name == "tree" else title for name, title in titles.items()}


def title_of(svg: str) -> str:
    """Return the title of a figure; for a tree, its bracketing."""
    match = re.search(r'aria-label="([^"]*)"', svg[: svg.index(">")])
    return unescape(match[1]) if match else ""


class ShownFigures:
    """A collector of the figures of one page and of their colours on dark paper."""

    def __init__(self) -> None:
        self._colours: dict[str, str] = {}
        self.svgs: dict[str, str] = {}  #: of each name

    def __call__(self, text: str) -> Markup:
        """Return a figure for the page; any other markup as it is."""
        if not text.startswith("<svg"):
            return Markup(text)
        head = text[: text.index(">")]
        name, width = _NAME.search(head), _WIDTH.search(head)
        fonts = [float(size) for size in _FONT.findall(text)] or [SMALLEST]
        least = round(float(width[1]) * LEGIBLE / min(fonts)) if width else 0
        if name:
            self.svgs[unescape(name[1])] = text
        plain = "<image" in text  # its pixels are for white paper
        coloured = text if plain else _STYLE.sub(lambda style: _COLOUR.sub(self._variable, style[0]), text)
        named = f' data-figure="{name[1]}"' if name else ""
        return Markup(
            f'<div class="plot{" plate" if plain else ""}"{named}><div class="wide" style="--least:{least}px">'
            f"{coloured}</div></div>"
        )

    def _variable(self, found: re.Match[str]) -> str:
        colour = found[1].lower()
        self._colours.setdefault(colour, on_dark(f"#{colour}"))
        return f"var(--x{colour},#{colour})"

    @property
    def dark(self) -> Markup:
        """The colours of dark paper, as properties of a style sheet."""
        return Markup("".join(f"--x{name}:{colour};" for name, colour in sorted(self._colours.items())))
