"""Silencing the progress bars of transformers, which appear also where nobody watches."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from transformers.utils import logging


@contextmanager
def no_bars() -> Iterator[None]:
    """No bars of transformers inside the block; afterwards as before."""
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()
