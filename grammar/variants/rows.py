"""Sums over the rules of a symbol, in logarithms, and numbers that are checked."""

from __future__ import annotations

import math

import numpy as np

from truesource.grammar.support.arrays import FloatArray, Int32Array
from truesource.grammar.support.errors import InputError

SMALLEST_LOGP = -690.0  #: nats; below it a probability and its products leave float64


def log_sums(parents: Int32Array, logp: FloatArray, n_symbols: int) -> FloatArray:
    """``ln sum exp(logp)`` over the rules of each symbol, (S,); -inf for a symbol without any."""
    top = np.full(n_symbols, -np.inf)
    np.maximum.at(top, parents, logp)
    sums = np.zeros(n_symbols)
    np.add.at(sums, parents, np.exp(logp - top[parents]))
    found: FloatArray = np.full(n_symbols, -np.inf)
    some = sums > 0.0
    found[some] = top[some] + np.log(sums[some])
    return found


def require_representable(logp: FloatArray, spec: str) -> None:
    """Refuse probabilities that float64 cannot hold.

    Raises:
        InputError: one is below exp(-690).
    """
    if len(logp) and float(logp.min()) < SMALLEST_LOGP:
        raise InputError(f"{spec} makes probabilities below 1e-299, too small to compute with; choose a milder value")


def checked(value: float, name: str, *, zero: bool) -> float:
    """A finite number above zero, or from zero on where ``zero``.

    Raises:
        InputError: it is not.
    """
    plain = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not plain or value < 0.0 or (value == 0.0 and not zero):
        raise InputError(f"{name} wants a number {'from 0 on' if zero else 'above 0'}, got {value!r}")
    return float(value)


def number(value: float) -> str:
    """A number as short text, the same when read again."""
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)
