"""A section of the report: its title, its template, and what that shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Part:
    """A section; the page writes its number, its title and its notes."""

    name: str  #: id of the section
    title: str
    template: Path  #: the body, which finds ``content`` as ``section``
    content: Any
    notes: Sequence[str] = ()  #: sentences below the body
