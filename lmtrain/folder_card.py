"""The card of any model folder, from the record of its training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from truesource.lmtrain.architectures.ngram.card import ngram_card
from truesource.lmtrain.card import network_card

if TYPE_CHECKING:
    from huggingface_hub import EvalResult


def folder_card(record: dict[str, Any], results: Sequence[EvalResult] = ()) -> str:
    """README of a model folder.

    Args:
        record: content of ``training.json``.
        results: what was measured of the model.

    Raises:
        KeyError: the record is of an earlier version and lacks something.
    """
    write = ngram_card if record["model"]["architecture"] == "ngram" else network_card
    return write(record, results)
