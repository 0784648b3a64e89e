"""Tests of probes run on one thread."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="module", autouse=True)
def _always_one_thread(one_thread: None) -> None:
    """Tiny probes are slower on many threads."""
