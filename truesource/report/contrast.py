"""Colours on light and dark paper: those of a figure for the dark page, with as much contrast."""

from __future__ import annotations

import colorsys

DARK_PAPER = "#14181f"  #: as in style.css
INK = 1.5  #: contrast on white from which a colour is one of marks or text, and not of the ground
LEAST = 4.6  #: contrast of marks and text on dark paper


def contrast(first: str, second: str) -> float:
    """The contrast of two colours (WCAG 2), from 1 to 21; text needs 4.5, marks need 3."""
    low, high = sorted((_luminance(first), _luminance(second)))
    return (high + 0.05) / (low + 0.05)


def on_dark(colour: str) -> str:
    """The colour (``#rrggbb``) that takes the place of one of light paper: as far from the paper, of the same hue."""
    hue, lightness, saturation = colorsys.rgb_to_hls(*_channels(colour))
    ink = contrast(colour, "#ffffff") >= INK
    calm = (0.75 if ink else 0.45) * saturation
    turned = 0.1 + 0.9 * (1.0 - lightness)
    made = _hex(hue, turned, calm)
    while ink and contrast(made, DARK_PAPER) < LEAST and turned < 1.0:
        turned = min(1.0, turned + 0.01)
        made = _hex(hue, turned, calm)
    return made


def _hex(hue: float, lightness: float, saturation: float) -> str:
    return "#" + "".join(f"{round(255 * channel):02x}" for channel in colorsys.hls_to_rgb(hue, lightness, saturation))


def _channels(colour: str) -> tuple[float, float, float]:
    red, green, blue = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    return red, green, blue


def _luminance(colour: str) -> float:
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in _channels(colour)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
