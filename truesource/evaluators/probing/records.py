"""What the stage of `probing` leaves in the folder of a run; keys that are not here are kept."""

from __future__ import annotations

from typing import Any

from pydantic import with_config
from typing_extensions import TypedDict

from truesource.grammar.support.records import STRICT


@with_config(STRICT)
class ProbingRecord(TypedDict):
    """``probing/<model>.json``."""

    model: str
    targets: Any
