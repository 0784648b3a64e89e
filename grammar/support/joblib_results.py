"""Results of joblib as they come."""

from __future__ import annotations

import warnings
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from typing import TypeVar

Result = TypeVar("Result")


@contextmanager
def quiet_end(results: Generator[Result]) -> Iterator[Iterator[Result]]:
    """Close the results of joblib, without its warning where not all were taken."""
    try:
        yield results
    finally:
        with warnings.catch_warnings(), closing(results):
            warnings.simplefilter("ignore", UserWarning)
            results.close()
