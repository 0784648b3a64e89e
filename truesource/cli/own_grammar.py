"""The grammar that a corpus or a run holds."""

from __future__ import annotations

import shlex
from pathlib import Path

PLACES = ("grammar.npz", "grammar/grammar.npz")  #: in a corpus, and in a run


def grammar_inside(folder: Path) -> Path | None:
    """Its file; None for a folder without one."""
    return next((folder / place for place in PLACES if (folder / place).is_file()), None)


def oracle_option(folder: Path) -> str:
    """`--oracle` with that grammar, for the command that a message names; with a word in capitals if there is none."""
    inside = grammar_inside(folder)
    return f"--oracle {'GRAMMAR' if inside is None else shlex.quote(str(inside))}"
