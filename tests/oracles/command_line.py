"""The command `truesource`, run within the process of the tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class Outcome(NamedTuple):
    """What a call of the command did."""

    code: int
    out: str
    err: str

    @property
    def last(self) -> str:
        """Last line on stdout."""
        return self.out.rstrip("\n").rpartition("\n")[2]


Command = Callable[..., Outcome]
