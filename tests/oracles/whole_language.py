"""A language written out in full."""

from __future__ import annotations

import pytest
from reference_inference import all_strings, rules_of

from truesource.grammar.pcfg import PCFG


def whole_language(pcfg: PCFG, low: int, high: int, scale: int) -> list[list[str]]:
    """Every string of the range as often as its probability (a multiple of 1/scale) says."""
    strings = all_strings(rules_of(pcfg), high)[pcfg.symbols[pcfg.start]]
    found: list[list[str]] = []
    for s, p in ((s, p) for m in range(low, high + 1) for s, p in strings[m].items()):
        assert p * scale == pytest.approx(round(p * scale), abs=1e-9)
        found += [list(s)] * round(p * scale)
    return found
