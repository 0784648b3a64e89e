"""Data made safe to print: words, labels, names and notes, for each place that they are printed to.

Words and names come from files that anybody may have written. A word may hold a terminal's escape sequence, markup, or
a line break. Each function here is for one target and returns text that the target shows and does not obey. None of
them can be undone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

LONGEST_RUN = 60  #: characters without a blank that `shortened` leaves as they are
LONGEST_QUOTE = 400  #: characters without a blank in a message
LONGEST_MESSAGE = 1200  #: characters

#: what a terminal obeys, what turns the reading direction of the text around it, and what XML and UTF-8 cannot hold;
#: line breaks and tabs are no part of it
_OBEYED = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufff9-\ufffb\ufffe\uffff\ud800-\udfff]"
)
_MARKDOWN = re.compile(r"[\\`*\[\]<>&|$~]|(?<!\w)_|_(?!\w)|^(?=[#+-])")


def terminal(text: str) -> str:
    r"""Text of one or more lines without control characters: ``\x1b`` is shown, not obeyed.

    Also of use for HTML and SVG, after their own escapes: what is left is legal in XML and in UTF-8.

    >>> print(terminal("a" + chr(27) + "[31m"))
    a\x1b[31m
    """
    return _OBEYED.sub(_shown, text)


def one_line(text: str) -> str:
    """As `terminal`, with line breaks and tabs shown too, so that data cannot add a line."""
    return terminal(text).replace("\n", "\\n").replace("\t", "\\t")


def shortened(text: str, most: int = LONGEST_RUN) -> str:
    """The text with the middle of long runs without a blank left out; each run has at most ``most`` characters."""
    head = most // 2
    tail = most - 1 - head
    return re.sub(rf"\S{{{most + 1},}}", lambda run: f"{run[0][:head]}\N{HORIZONTAL ELLIPSIS}{run[0][-tail:]}", text)


def message(text: str) -> str:
    """One line for the person who gave the input, of which it quotes no more than is needed to know it again."""
    text = shortened(one_line(text), LONGEST_QUOTE)
    half = LONGEST_MESSAGE // 2
    return text if len(text) <= LONGEST_MESSAGE else f"{text[:half]}\N{HORIZONTAL ELLIPSIS}{text[-half:]}"


def markdown(text: str) -> str:
    """Text inside a line, a heading or a table cell of Markdown; characters of its syntax are taken literally."""
    return _MARKDOWN.sub(lambda found: f"\\{found[0]}", one_line(text))


def markdown_code(text: str) -> str:
    """A code span of Markdown, with a fence that the text does not hold."""
    line = one_line(text)
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", line)), default=0))
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{pad}{line}{pad}{fence}"


def _shown(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def list_lines(numbers: Sequence[int], most: int = 5, *, what: str = "line") -> str:
    """``line 3``, or ``lines 3, 4, 5, 6, 7, ...``; ``what`` names what is numbered."""
    listed = ", ".join(map(str, numbers[:most])) + (", ..." if len(numbers) > most else "")
    return f"{what}{'s' if len(numbers) > 1 else ''} {listed}"
