"""What chance does to numbers of types at each length: samples of the truth beside all the others together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from truesource.evaluation.tendencies.type_token import LEAST, HeapsLaw, TypeCounts, fit_heaps, pooled, to_laws
from truesource.grammar.support.arrays import FloatArray
from truesource.grammar.support.errors import InputError

ENDS = (0.025, 0.975)


def floor(tables: Sequence[TypeCounts], law: HeapsLaw | None, *, least: int = LEAST) -> dict[str, FloatArray]:
    """Middle 95% of the distances that samples of the truth have at each length.

    Args:
        tables: of the samples.
        law: of the truth; None: it has none.
        least: sentences of a length that a distance is taken of, as in `length_distances`.

    Returns:
        ``own``, ``reference_law`` and ``reference``, the last to the other samples, (2, L+1) each; NaN where fewer than
        half of the samples have ``least`` sentences.
    """
    whole = pooled(tables)
    rows: dict[str, list[FloatArray]] = {"own": [], "reference_law": [], "reference": []}
    for types in tables:
        few = types.sentences < least
        try:
            own: HeapsLaw | None = fit_heaps(types)
        except InputError:  # all of one length
            own = None
        found = {
            "own": None if own is None else to_laws(types, own),
            "reference_law": None if law is None else to_laws(types, law),
            "reference": _apart(types, whole),
        }
        for name, values in found.items():
            rows[name].append(np.where(few, np.nan, np.nan if values is None else values))
    return {name: _ends(np.array(values)) for name, values in rows.items()}


def _apart(types: TypeCounts, whole: TypeCounts) -> FloatArray:
    """Distance at every length to the other sentences of ``whole``, (L+1,); NaN where either side has none."""
    found = np.full(types.high + 1, np.nan)
    for length in np.flatnonzero((types.sentences > 0) & (whole.sentences > types.sentences)).tolist():
        both = whole.row(length)
        own = types.row(length, len(both))
        one, other = (np.cumsum(row) / row.sum() for row in (own, both - own))
        found[length] = np.abs(one - other).max()
    return found


def _ends(values: FloatArray) -> FloatArray:
    """Quantiles of every column that is mostly there, (2, L+1)."""
    there = np.isfinite(values).mean(axis=0) >= 0.5
    found = np.full((2, values.shape[1]), np.nan)
    found[:, there] = np.nanquantile(values[:, there], ENDS, axis=0)
    return found
