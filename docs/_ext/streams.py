"""Output of programs on executed pages: plain text, put together as it was written."""

from __future__ import annotations

import re
from copy import copy
from typing import TYPE_CHECKING, Any

import myst_nb.core.render

if TYPE_CHECKING:
    from nbformat import NotebookNode
    from sphinx.application import Sphinx

ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
REWRITTEN = re.compile(r"[^\n]*\r(?!\n)")  #: part of a line that a progress bar wrote over


def joined(outputs: list[NotebookNode]) -> list[NotebookNode]:
    """Each stream of a cell in one piece, at its first place.

    A kernel sends the output of a program in pieces that end anywhere, so nothing may be added between them.
    """
    found: list[NotebookNode] = []
    streams: dict[str, NotebookNode] = {}
    for output in outputs:
        if output["output_type"] != "stream":
            found.append(output)
        elif output["name"] in streams:
            streams[output["name"]]["text"] += output["text"]
        else:
            streams[output["name"]] = copy(output)
            found.append(streams[output["name"]])
    for output in streams.values():
        output["text"] = REWRITTEN.sub("", ESCAPE.sub("", output["text"]).replace("\r\n", "\n"))
    return found


def setup(_app: Sphinx) -> dict[str, Any]:
    """Replace MyST-NB's own function, which ends each piece with a new line."""
    myst_nb.core.render.coalesce_streams = joined
    return {"parallel_read_safe": True, "parallel_write_safe": True}
