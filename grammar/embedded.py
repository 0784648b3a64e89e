"""Where the data are that come with truesource."""

from __future__ import annotations

from pathlib import Path

from truesource.grammar.support.errors import InputError


def data_folder() -> Path:
    """`data/` beside this package: that of a checkout, or of an installed wheel.

    Raises:
        InputError: it is not there.
    """
    folder = Path(__file__).resolve().parents[1] / "data"
    if not (folder / "demo.yaml").is_file():
        raise InputError("the embedded data are missing; install truesource again", folder)
    return folder
