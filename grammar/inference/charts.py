"""Runs the chart kernels on batches: the rules of one grammar in the layout and precision that they take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from grammar.conditioning import LengthRange
from grammar.errors import InputError
from grammar.inference.batch import Batch, batches
from grammar.inference.rules import SparseRows, parent_rules, sparse_rows

if TYPE_CHECKING:
    from grammar.inference.exact import Exact

FloatArray = NDArray[np.float64]
BUDGET = 512 * 2**20  #: bytes of charts for one batch
OWED_BLOCK = 3  #: counts of tokens owed that are worked on together, so that what is added to stays in the cache
CAPS = {np.dtype(np.float64): 1e140, np.dtype(np.float32): 1e15}  #: most a chart entry holds: its square is finite
SMALLEST_MASS = {np.dtype(np.float64): 1e-290, np.dtype(np.float32): 1e-12}  #: of a length range, so that 1 / Z is


class CausalCharts(NamedTuple):
    """What one left-to-right pass finds for W sentences of n words; see `_kernels_causal.causal`."""

    inside: FloatArray  #: (spans, S, W), scaled by word
    present: NDArray[np.bool_]  #: (spans, S)
    conditional: FloatArray  #: (n, W) P(word | its left context)
    stop: FloatArray  #: (n+1, W) P(end | first j words)
    starts: FloatArray  #: (n+1, S, W) weight of each symbol starting after j words, given these


class Charts:
    """The chart kernels for one grammar and one precision.

    Args:
        exact: the grammar's quantities.
        dtype: float64 or float32, of charts; probabilities per token are float64 either way.
    """

    def __init__(self, exact: Exact, dtype: DTypeLike = np.float64) -> None:
        self.dtype = np.dtype(dtype)
        if self.dtype not in CAPS:
            raise InputError(f"charts are float64 or float32, not {self.dtype}")
        self._exact = exact
        self._start = exact.pcfg.start
        self._lexicon = exact.lexicon._replace(prob=self._cast(exact.lexicon.prob))
        self._pairs = exact.pairs._replace(prob=self._cast(exact.pairs.prob))
        groups = parent_rules(exact.pcfg)
        self._groups = groups._replace(prob=self._cast(groups.prob))
        self._closure = self._rows(sparse_rows(exact.unary_closure))
        self._free: SparseRows | None = None
        self._corners: dict[LengthRange, SparseRows] = {}

    def _cast(self, values: FloatArray) -> FloatArray:
        return values.astype(self.dtype)

    def _rows(self, rows: SparseRows) -> SparseRows:
        return rows._replace(value=self._cast(rows.value))

    def bytes_per_sentence(self, n: int, owed: int, outside: bool) -> int:
        """Memory that the charts of one sentence of n words take."""
        states, spans = len(self._exact.pcfg.symbols), n * (n + 1) // 2
        cells = spans * (2 if outside else 1) + (n + 1) * (owed + 1) + 2 * owed + n
        return self.dtype.itemsize * states * cells

    def batches(
        self, sentences: Sequence[Sequence[str]], lengths: LengthRange | None = None, *, outside: bool = False
    ) -> list[Batch]:
        """Sentences as batches whose charts fit the memory budget.

        Raises:
            InputError: a sentence has no tokens.
        """
        encoded = [self._exact.pcfg.encode(sentence) for sentence in sentences]
        for i, sentence in enumerate(encoded):
            if len(sentence) == 0:
                raise InputError(f"sentence {i + 1} has no tokens; remove it")
        owed = 1 if lengths is None else lengths.high
        return list(batches(encoded, lambda n: self.bytes_per_sentence(n, owed, outside), BUDGET))

    def causal(self, words: NDArray[np.int32], lengths: LengthRange | None = None) -> CausalCharts:
        """One pass over ``words`` (n, W), -1 unknown."""
        from grammar.inference import _kernels_causal

        if lengths is None:
            weight, high, low = 1.0, 0, 0
            corners = SparseRows(np.zeros(1, np.int32), np.zeros(1, np.int32), self._cast(np.zeros((1, 1))))
            if self._free is None:
                self._free = self._rows(sparse_rows(self._exact.left_corner_closure))
            chains = self._free
        else:
            weight, corners = self._conditioned(lengths)
            high, low, chains = lengths.high, lengths.low, self._closure
        p, g = self._pairs, self._groups
        return CausalCharts(
            *_kernels_causal.causal(
                words,
                self._start,
                weight,
                high,
                low,
                CAPS[self.dtype],
                lengths is None,
                OWED_BLOCK,
                *corners,
                *chains,
                *self._closure,
                p.by_left,
                p.right,
                p.rule_start,
                p.parent,
                p.prob,
                *g,
                *self._lexicon,
            )
        )

    def _conditioned(self, lengths: LengthRange) -> tuple[float, SparseRows]:
        """``1 / Z``, and the left-corner steps with the mass of d tokens owed after them."""
        z = self._exact.range_mass(lengths)
        if z < SMALLEST_MASS[self.dtype]:
            raise InputError(
                f"a length in {lengths} has probability {z:.3g}, too small for exact scores"
                + (" in float32" if self.dtype == np.float32 else "")
                + "; choose another range"
            )
        if lengths not in self._corners:
            self._corners[lengths] = self._rows(self._exact.owed_corners(lengths.high))
        return 1.0 / z, self._corners[lengths]

    def outside_leaves(self, words: NDArray[np.int32], charts: CausalCharts | None = None) -> FloatArray:
        """Outside weight of every preterminal position, unary chains above it included, (n, S, W), scaled."""
        from grammar.inference import _kernels_outside

        if charts is None:
            charts = self.causal(words)
        p = self._pairs
        leaves: FloatArray = _kernels_outside.outside_leaves(
            charts.inside,
            charts.present,
            len(words),
            self._start,
            CAPS[self.dtype],
            *self._closure,
            p.by_left,
            p.right,
            p.rule_start,
            p.parent,
            p.prob,
        )
        return leaves
