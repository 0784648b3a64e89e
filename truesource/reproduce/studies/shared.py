"""The models of a run, and a record with its model and seed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from truesource.lmtrain.models import load_model
from truesource.reproduce.found import Found
from truesource.run.config import RunConfig

if TYPE_CHECKING:
    from truesource.chain.models import ModelEntry


def models_of(folder: Path, config: RunConfig) -> Iterator[tuple[ModelEntry, Any]]:
    """Each model of a run, with its entry."""
    for entry in config.entries:
        yield entry, load_model(folder / "models" / entry.name)


def found_of(entry: ModelEntry, record: Mapping[str, Any]) -> Found:
    """A record with the model as the configuration calls it, and its seed."""
    asked = getattr(entry, "replicate_of", entry.name)
    return Found({**record, "of": asked, "model": asked}, getattr(entry, "seed", None))
