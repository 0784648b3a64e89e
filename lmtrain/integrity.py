"""Digests of the files of a trained model, so that a changed byte is noticed when the file is read."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import digest_file
from truesource.lmtrain.times import TIMES
from truesource.lmtrain.training_record import FILE, read_training


def file_digests(folder: Path) -> dict[str, str]:
    """SHA-256 of each file directly in a model folder but the times; goes into ``training.json`` as ``files``."""
    files = sorted(path for path in folder.iterdir() if path.is_file() and path.name != TIMES)
    return {path.name: digest_file(path) for path in files}


def require_unchanged(folder: Path, names: Iterable[str]) -> None:
    """Stop where a file is not the one that training wrote.

    Files that ``training.json`` does not list, and folders without one, are taken as they are.

    Args:
        folder: of the model.
        names: files directly in it.

    Raises:
        InputError: a digest differs, or ``training.json`` is damaged.
    """
    if not (folder / FILE).is_file():
        return
    recorded = read_training(folder).files
    for name in names:
        path = folder / name
        if name in recorded and path.is_file() and digest_file(path) != recorded[name]:
            raise InputError(
                f"this file is not the one that training wrote ({FILE} has its digest), it was damaged or edited;"
                f" train the model again, or delete {FILE} if you changed it on purpose",
                path,
            )
