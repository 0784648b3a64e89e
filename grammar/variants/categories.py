"""Treebank categories of symbols: what binarisation and annotation added taken away."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from truesource.grammar.pcfg import PCFG
from truesource.grammar.treebank.binarise import category


def categories(pcfg: PCFG) -> tuple[str, ...]:
    """Category of every symbol, (S,), from ``PCFG.labels``; substates and intermediate nodes share one."""
    return tuple(category(label) for label in pcfg.labels)


def near(name: str, known: Iterable[str], most: int = 4) -> str:
    """A clause that lists known names: those spelled like ``name``, else the first ones in order."""
    every = sorted(set(known))
    alike = get_close_matches(name, every, most, 0.5) or get_close_matches(name.upper(), every, most, 0.5)
    if alike:
        return f"near: {', '.join(alike)}"
    listed = ", ".join(every[: 2 * most]) or "none"
    return f"known: {listed}{' ...' if len(every) > 2 * most else ''}"
