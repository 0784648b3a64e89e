"""The embedded default: where `data/` is, and the English grammar in it."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from grammar.errors import InputError

if TYPE_CHECKING:
    from grammar.pcfg import PCFG


def data_folder() -> Path:
    """`data/` of a checkout, or of an installed wheel.

    Raises:
        InputError: neither is there.
    """
    package = Path(__file__).resolve().parent
    for folder in (package / "data", package.parent / "data"):
        if (folder / "demo.yaml").is_file():
            return folder
    raise InputError("the embedded data are missing; install truesource again", package)


@cache
def english() -> PCFG:
    """The embedded English grammar; see ``data/english/README.md``."""
    from grammar.formats.template import compile_template

    return compile_template(data_folder() / "english")
