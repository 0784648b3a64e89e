"""Exact probabilities on an accelerator through torch: of strings, next and masked words, and any set of known words.

A chart cell is a table (symbols, sentences, places) of one span length, divided by its largest entry; the logarithms of
these divisors are kept with it, so that no sentence leaves the range of the number type, however long. All rules of a
span length are one sparse product. Outside weights are derivatives of the (divided) probability of the string.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.sparse import csr_matrix
from torch import Tensor

from truesource.grammar.inference.any_order import AnyOrder, Pattern
from truesource.grammar.inference.batch import BUDGET, MAX_WIDTH, Batch, batches
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import BoolArray, FloatArray, Int32Array
from truesource.grammar.support.errors import InputError

LOST = 1e-6  #: largest share of a probability that may have vanished below the range of float32
WIDEST = 2048  #: most sentences that a GPU computes together
SHARE = 0.25  #: of the memory of a GPU that the tables of a batch may take


class Accelerated:
    """The exact probabilities of a grammar, computed on a device.

    Sentences whose probability comes out as 0 or is no number are computed again on the CPU; with float32 also
    sentences that may have lost more than the share `LOST` below its range, to first order.

    Args:
        pcfg: the grammar.
        device: ``cpu``, ``cuda``, ``cuda:1`` or ``mps``; ``auto``: a GPU of CUDA if there is one.
        dtype: float64; or float32, within 1e-5 nats a token, for all but next words.

    Raises:
        InputError: the device is missing, or lacks this number type.
    """

    def __init__(self, pcfg: PCFG, device: str = "cpu", dtype: str = "float64") -> None:
        self.pcfg, exact, size = pcfg, pcfg.exact, len(pcfg.symbols)
        self._on = _Device.of(device, dtype)
        pairs = exact.pairs
        self._left, self._right = (self._on.numbers(each) for each in (pairs.left, pairs.right))
        place = np.repeat(np.arange(len(pairs.left)), np.diff(pairs.rule_start))
        self._rules = self._on.sparse(csr_matrix((pairs.prob, (pairs.parent, place)), shape=(size, len(pairs.left))))
        ones, at = np.ones(len(pairs.left)), np.arange(len(pairs.left))
        self._to_left, self._to_right = (
            self._on.sparse(csr_matrix((ones, (each, at)), shape=(size, len(at)))) for each in (pairs.left, pairs.right)
        )
        self._closure = self._on.sparse(csr_matrix(exact.unary_closure))
        self._emission = exact.emission.T.tocsr()  # (V, S)
        self._by_word = self._on.sparse(self._emission)
        self._sums = self._on.table(exact.lexical_sums)
        self._most = int(np.bincount(pairs.parent, minlength=1).max()) + size  #: terms of a sum over rules and chains

    # -- answers ------------------------------------------------------------------------------------

    def string_log_probs(self, sentences: Sequence[Sequence[str]]) -> FloatArray:
        """Compute what `Exact.string_log_probs` does, without a length condition, (N,) nats."""
        return self.log_probs(sentences)

    def log_probs(self, patterns: Sequence[Pattern]) -> FloatArray:
        """Compute what `AnyOrder.log_probs` does: ln P(all sentences that fit a pattern), (N,) nats."""

        def computed(batch: Batch) -> tuple[FloatArray, BoolArray]:
            chart = self._inside(self._leaves(batch))
            logs = chart.log_prob(self.pcfg.start)
            good = np.isfinite(logs)
            return logs, good if self._on.dtype == torch.float64 else good & (self._outside(chart).lost < LOST)

        return np.array(self._each(patterns, computed, AnyOrder(self.pcfg).log_probs))

    def marginals(self, patterns: Sequence[Pattern]) -> list[FloatArray]:
        """Compute what `AnyOrder.marginals` does: P(word at a place | known words, length), (n, V) a pattern."""

        def computed(batch: Batch) -> tuple[FloatArray, BoolArray]:
            chart = self._inside(self._leaves(batch))
            outside = self._outside(chart)
            tables = self._on.back(self._by_word(outside.words)).transpose(1, 2, 0)  # (W, n, V)
            fixed = len(self.pcfg.vocabulary) > batch.words.T
            tables[fixed] = np.eye(tables.shape[2])[batch.words.T[fixed]]
            with np.errstate(invalid="ignore", divide="ignore"):
                tables = tables / tables.sum(axis=2, keepdims=True)
            good = np.isfinite(chart.log_prob(self.pcfg.start)) & np.isfinite(tables).all(axis=(1, 2))
            return tables, np.asarray(good & (outside.lost < LOST))

        return self._each(patterns, computed, AnyOrder(self.pcfg).marginals)

    def masked_log_probs(self, sentences: Sequence[Sequence[str]]) -> list[FloatArray]:
        """Compute what `Exact.masked_log_probs` does: ln P(word | all other words, length), (n,) nats a sentence."""

        def computed(batch: Batch) -> tuple[FloatArray, BoolArray]:
            outside = self._outside(self._inside(self._leaves(batch)))
            here = (self._observed(batch) * outside.words).sum(dim=0)
            with np.errstate(divide="ignore", invalid="ignore"):
                logs = np.log(self._on.back(here / torch.einsum("s,swn->wn", self._sums, outside.words)))
            return logs, np.asarray(np.isfinite(logs).all(axis=1) & (outside.lost < LOST))

        return self._each(sentences, computed, self.pcfg.exact.masked_log_probs)

    def causal_log_probs(self, sentences: Sequence[Sequence[str]]) -> list[FloatArray]:
        """Compute what `Exact.causal_log_probs` does, without a length condition: (n+1,) nats a sentence, the end last.

        Raises:
            InputError: charts are float32.
        """
        if self._on.dtype != torch.float64:
            raise InputError("next words need float64; take dtype float64")

        def computed(batch: Batch) -> tuple[FloatArray, BoolArray]:
            logs = self._causal(batch).T
            return logs, np.asarray(np.isfinite(logs).all(axis=1))

        return self._each(sentences, computed, self.pcfg.exact.causal_log_probs)

    def _each(
        self,
        patterns: Sequence[Any],
        computed: Callable[[Batch], tuple[FloatArray, BoolArray]],
        again: Callable[[list[Any]], Iterable[Any]],
    ) -> list[Any]:
        """Return the ``computed`` row of each pattern, (W, ...), if it holds (W,), else the CPU's result."""
        results: dict[int, Any] = {}
        others: list[int] = []
        for batch in self._batches(patterns):
            rows, good = computed(batch)
            for row, holds, members in zip(rows, good, batch.members, strict=True):
                results |= dict.fromkeys(members, row)
                others += [] if holds else members
        if others:
            results |= dict(zip(others, again([patterns[i] for i in others]), strict=True))
        return [results[i] for i in range(len(patterns))]

    # -- charts -------------------------------------------------------------------------------------

    def _batches(self, patterns: Sequence[Pattern]) -> Iterator[Batch]:
        """Yield batches of patterns of one length; a gap has the number of words, an unknown word -1."""
        place, gap = self.pcfg.word_ids, len(self.pcfg.vocabulary)
        encoded: list[Int32Array] = []
        for number, pattern in enumerate(patterns, start=1):
            if not len(pattern):
                raise InputError(f"sentence {number} has no tokens; remove it")
            encoded.append(np.array([gap if w is None else place.get(w, -1) for w in pattern], dtype=np.int32))
        size = self._on.itemsize
        tables = 4 * len(self._left) + len(self.pcfg.symbols) * 4
        return batches(
            encoded, lambda n: n * size * (tables + n * len(self.pcfg.symbols)), self._on.budget, self._on.widest
        )

    def _observed(self, batch: Batch) -> Tensor:
        """Return P(word | symbol) of the known words, (S, W, n); zeros of unknown ones and at gaps."""
        words = batch.words.T
        in_vocabulary = np.asarray((words >= 0) & (words < len(self.pcfg.vocabulary)))
        rows = self._emission[np.where(in_vocabulary, words, 0).ravel()].toarray() * in_vocabulary.reshape(-1, 1)
        return self._on.table(rows.T.reshape(-1, *words.shape))

    def _leaves(self, batch: Batch) -> Tensor:
        """Return the weight of each symbol over each place, (S, W, n): at a gap, of all words."""
        gaps = self._on.table(np.equal(batch.words.T, len(self.pcfg.vocabulary)).astype(np.float64))
        return self._observed(batch) + self._sums[:, None, None] * gaps

    def _inside(self, leaves: Tensor) -> _Chart:
        chart = _Chart()
        chart.add(self._closure(leaves), torch.zeros_like(leaves[0]))
        for width in range(2, leaves.shape[2] + 1):
            splits = list(chart.splits(width))
            base = torch.stack([split.scale for split in splits]).amax(dim=0)
            total: Tensor | None = None
            for split in splits:
                part = (split.left * torch.exp(split.scale - base))[self._left] * split.right[self._right]
                total = part if total is None else total.add_(part)
            assert total is not None
            chart.add(self._closure(self._rules(total)), base)
        return chart

    def _outside(self, chart: _Chart) -> _Outside:
        """Return the derivatives of the largest cell's start symbol, a cell at a time from the longest."""
        n, tiny = len(chart.cells), torch.finfo(self._on.dtype).tiny
        outside = [torch.zeros_like(cell) for cell in chart.cells]
        outside[-1][self.pcfg.start] = 1.0
        lost = torch.zeros_like(chart.scale[-1][:, 0])
        for width in range(n, 1, -1):
            above = outside[width - 1] / chart.largest[width - 1]
            base = self._closure.transposed(above)
            lost += ((above + base) * (tiny * (3 * width + self._most))).sum(dim=(0, 2))
            pairs = self._rules.transposed(base)
            splits = list(chart.splits(width))
            scale = torch.stack([split.scale for split in splits]).amax(dim=0)
            for m, split in enumerate(splits, start=1):
                factor, places = torch.exp(split.scale - scale), split.left.shape[2]
                outside[m - 1][:, :, :places] += factor * self._to_left(pairs * split.right[self._right])
                right = (factor * split.left)[self._left]
                outside[width - m - 1][:, :, m : m + places] += self._to_right(pairs * right)
        words = self._closure.transposed(outside[0] / chart.largest[0])
        share = lost / chart.cells[-1][self.pcfg.start][:, 0]
        return _Outside(words, np.where(self._on.dtype == torch.float64, 0.0, self._on.back(share)))

    def _causal(self, batch: Batch) -> FloatArray:
        """Return ln P of each word given those before it, then of the end, (n+1, W) nats."""
        n = len(batch.words)
        chart, observed = self._inside(self._leaves(batch)), self._observed(batch)
        corners = self._on.table(self.pcfg.exact.left_corner_closure.T)
        begun = torch.zeros_like(observed[:, :, 0])  # (S, W) that a symbol begins here, and all before it
        begun[self.pcfg.start] = 1.0
        scale, predicted, rows = torch.zeros_like(begun[0]), [], []
        prefix = torch.full_like(scale, float(np.log(self.pcfg.exact.total_mass)))
        for j in range(n):
            hat = corners @ begun
            predicted.append((self._rules.transposed(hat), scale))
            joint = torch.log((hat * observed[:, :, j]).sum(dim=0)) + scale
            rows.append(joint - prefix)
            prefix = joint
            if j + 1 == n:
                break
            scales = torch.stack([s + chart.scale[j - i][:, i] for i, (_, s) in enumerate(predicted)])
            scale = scales.amax(dim=0)
            ahead = torch.zeros_like(predicted[0][0])
            for i, (weights, _) in enumerate(predicted):
                ahead += weights * (chart.cells[j - i][:, :, i] * torch.exp(scales[i] - scale))[self._left]
            begun = self._to_right(ahead)
            largest = _largest(begun)
            begun, scale = begun / largest, scale + torch.log(largest)
        end = torch.log(chart.cells[-1][self.pcfg.start][:, 0]) + chart.scale[-1][:, 0]
        return self._on.back(torch.stack([*rows, end - prefix]))


class _Split(NamedTuple):
    """The two parts of all spans of one width, cut after the same number of words."""

    left: Tensor  #: (S, W, places)
    right: Tensor  #: (S, W, places)
    scale: Tensor  #: (W, places), logarithm of what both were divided by


@dataclass
class _Chart:
    """Inside weights of all spans of W sentences of n words; a list has an entry for each number of words, from 1."""

    cells: list[Tensor] = field(default_factory=list)  #: (S, W, places), divided
    scale: list[Tensor] = field(default_factory=list)  #: (W, places), logarithms of what they were divided by in all
    largest: list[Tensor] = field(default_factory=list)  #: (W, places), what they were divided by at last

    def add(self, cell: Tensor, scale: Tensor) -> None:
        """Add the spans of the next number of words, already divided by e to the ``scale``."""
        largest = _largest(cell)
        self.cells.append(cell / largest)
        self.scale.append(scale + torch.log(largest))
        self.largest.append(largest)

    def splits(self, width: int) -> Iterator[_Split]:
        """Yield the parts of spans of ``width`` words, the first cut first."""
        places = self.cells[0].shape[2] - width + 1
        for m in range(1, width):
            left, right = slice(0, places), slice(m, m + places)
            scale = self.scale[m - 1][:, left] + self.scale[width - m - 1][:, right]
            yield _Split(self.cells[m - 1][:, :, left], self.cells[width - m - 1][:, :, right], scale)

    def log_prob(self, start: int) -> FloatArray:
        """Return ln of the probability of each sentence, (W,) nats; -inf if it is 0."""
        logs = torch.log(self.cells[-1][start][:, 0].double()) + self.scale[-1][:, 0].double()
        return np.asarray(logs.cpu().numpy())


def _largest(table: Tensor) -> Tensor:
    """Return the largest weight of a symbol, 1 where all are 0: what a table (S, ...) is divided by."""
    largest = table.amax(dim=0)
    return torch.where(largest > 0.0, largest, torch.ones_like(largest))


class _Outside(NamedTuple):
    """Derivatives of the probability of W sentences, up to a factor of each place."""

    words: Tensor  #: (S, W, n) in the weight of each symbol over a place
    lost: FloatArray  #: (W,) share of the probability that may have vanished


class _Sparse:
    """A constant sparse matrix on a device, and its transpose."""

    def __init__(self, matrix: Tensor, transposed: Tensor) -> None:
        self._matrix, self._transposed = matrix, transposed

    def __call__(self, dense: Tensor) -> Tensor:
        """Return the product with a table (columns, ...)."""
        return _times(self._matrix, dense)

    def transposed(self, dense: Tensor) -> Tensor:
        """Return the product of the transposed matrix with a table (rows, ...)."""
        return _times(self._transposed, dense)


def _times(matrix: Tensor, dense: Tensor) -> Tensor:
    flat = dense.reshape(len(dense), math.prod(dense.shape[1:]))
    return (matrix @ flat).reshape(len(matrix), *dense.shape[1:])


@dataclass(frozen=True)
class _Device:
    """Device of tables, and the type of their numbers."""

    device: torch.device
    dtype: torch.dtype
    budget: int  #: bytes for the tables of a batch
    widest: int  #: most sentences in a batch

    @classmethod
    def of(cls, name: str, dtype: str) -> _Device:
        """Return the device of a name.

        Raises:
            InputError: as for `Accelerated`.
        """
        if dtype not in ("float64", "float32"):
            raise InputError(f"charts are float64 or float32, not {dtype}")
        if name == "auto":
            name = "cuda" if torch.cuda.is_available() else "cpu"
        try:
            device, kind = torch.device(name), getattr(torch, dtype)
            torch.zeros(1, device=device, dtype=kind)
        except (RuntimeError, TypeError, AssertionError) as error:
            reason = str(error).partition("\n")[0]
            raise InputError(f"the device {name} cannot be used with {dtype} ({reason}); take another") from error
        cuda = device.type == "cuda"
        budget = int(SHARE * torch.cuda.get_device_properties(device).total_memory) if cuda else BUDGET
        return cls(device, kind, budget, WIDEST if cuda else MAX_WIDTH)

    @property
    def itemsize(self) -> int:
        """Bytes of a number."""
        return int(self.dtype.itemsize)

    def table(self, values: FloatArray) -> Tensor:
        """Return an array on the device."""
        return torch.from_numpy(np.ascontiguousarray(values)).to(self.device, self.dtype)

    def numbers(self, values: Int32Array) -> Tensor:
        """Return the indices as a tensor on the device."""
        return torch.from_numpy(values.astype(np.int64)).to(self.device)

    def sparse(self, matrix: csr_matrix[np.float64]) -> _Sparse:
        """Return a sparse matrix on the device."""
        return _Sparse(self._rows(matrix), self._rows(matrix.T.tocsr()))

    def _rows(self, matrix: csr_matrix[np.float64]) -> Tensor:
        heads, columns = (torch.from_numpy(each.astype(np.int64)) for each in (matrix.indptr, matrix.indices))
        values = torch.from_numpy(matrix.data).to(self.dtype)
        with warnings.catch_warnings():  # of changes in torch; only products are used here, which tests compare
            warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta state")
            csr = torch.sparse_csr_tensor(heads, columns, values, size=matrix.shape, check_invariants=True)
        return csr.to(self.device)

    def back(self, table: Tensor) -> FloatArray:
        """Return an array of a table."""
        return np.asarray(table.double().cpu().numpy())
