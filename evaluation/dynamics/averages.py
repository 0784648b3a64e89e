"""Means and medians of groups that tokens belong to in part, with intervals from resampled sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from truesource.evaluation.measures.bootstrap import REPLICATES, TAILS, ratio_draws, resampled_times, studentised
from truesource.grammar.support.arrays import BoolArray, FloatArray, Int32Array, IntArray
from truesource.grammar.support.printable import FEWEST

CELLS = 2**20  #: numbers that an array of a resampling holds, unless a single resample has more
WINDOW = 6.0  #: standard deviations of a resampled median on either side of the median


class Members(NamedTuple):
    """The tokens of a group."""

    token: IntArray  #: (n,) numbers of tokens, ascending, at least one
    share: FloatArray  #: (n,) how much of each is in the group, above 0


class Means(NamedTuple):
    """Means of C columns in G groups; those that stand in too few sentences are NaN but for ``value``."""

    value: FloatArray  #: (C, G)
    low: FloatArray  #: (C, G) lower end of the 95% interval
    high: FloatArray  #: (C, G)
    resampled: FloatArray  #: (R, C, G) of each resample; NaN where the group does not occur in it
    total: FloatArray  #: (G, N) sum of the last column in each sentence
    tokens: FloatArray  #: (G, N) tokens of each sentence in the group


def enough_sentences(share: FloatArray) -> bool:
    """Whether a group stands in enough sentences for an interval: the effective number of them is `FEWEST` or more.

    It is ``(sum of s)^2 / sum of s^2`` (Kish 1965), the number of sentences where all have the same share s of tokens
    in the group; a sentence that is in it by a hair hardly counts.

    Args:
        share: (N,) tokens of each sentence in the group.
    """
    return bool(share.sum() ** 2 >= (FEWEST - 1e-9) * np.square(share).sum())


def group_means(values: FloatArray, groups: Sequence[Members], sentence: Int32Array, *, seed: int) -> Iterator[Means]:
    """Weighted means, a few groups at once, in order; all groups and columns share their resamples.

    Args:
        values: (T, C), finite.
        groups: of the tokens.
        sentence: (T,) sentence of each token, ascending.
        seed: of the bootstrap.
    """
    row = _rows(sentence)
    n, columns = int(row[-1]) + 1, values.shape[1]
    step = max(1, CELLS // (5 * columns * max(n, REPLICATES)))
    for start in range(0, len(groups), step):
        some = groups[start : start + step]
        sums = np.empty((n, columns + 1, len(some)))  # of each sentence; the last column counts tokens
        for g, (token, share) in enumerate(some):
            own = row[token]
            sums[:, columns, g] = _sums(own, share, n)
            for c in range(columns):
                sums[:, c, g] = _sums(own, share * values[token, c], n)
        few = [not enough_sentences(share) for share in sums[:, columns].T]
        total = sums[:, :columns].reshape(n, -1)
        count = np.tile(sums[:, columns], columns)
        draws = ratio_draws(total, count, seed=seed)
        shape = columns, len(some)
        low, high = studentised(draws).reshape(2, *shape)
        means = draws.drawn.reshape(-1, *shape)
        for numbers in (low, high, means):
            numbers[..., few] = np.nan
        yield Means(draws.value.reshape(shape), low, high, means, sums[:, columns - 1].T, sums[:, columns].T)


def group_medians(values: FloatArray, groups: Sequence[Members]) -> FloatArray:
    """Weighted median of each group, (G,): of equal weights the median, the middle of the two values if two are.

    Args:
        values: (T,) finite.
        groups: of the tokens.
    """
    found = np.empty(len(groups))
    for g, (token, share) in enumerate(groups):
        order = np.argsort(values[token], kind="stable")
        reached = np.cumsum(share[order])
        found[g] = _medians(values[token][order], reached[None], reached[-1:] / 2.0)[0]
    return found


def median_intervals(values: FloatArray, groups: Sequence[Members], sentence: Int32Array, *, seed: int) -> FloatArray:
    """Their 95% intervals, (2, G), NaN where a group stands in too few sentences.

    Values are sorted once. A resample counts how often each sentence is drawn, and only the few values near the median
    of all are looked at one by one; those below them count in sums by sentence. Where the median of a resample lies
    elsewhere, all values are looked at, so that intervals are exact.

    Args:
        values: (T,) finite.
        groups: of the tokens.
        sentence: (T,) sentence of each token, ascending.
        seed: of the bootstrap.
    """
    row = _rows(sentence)
    n = int(row[-1]) + 1
    near = [_near_median(values, own, row, n) for own in groups]
    drawn = np.full((REPLICATES, len(groups)), np.nan)
    done = 0
    for times in resampled_times(n, seed=seed):
        for g, (window, own) in enumerate(zip(near, groups, strict=True)):
            if window is None:
                continue
            found, known = window.medians(times)
            if not known.all():
                found[~known] = _sorted(values, own, row, n).medians(times[~known])[0]
            drawn[done : done + len(times), g] = found
        done += len(times)
    return np.stack(_ends(drawn))


@dataclass(frozen=True, eq=False)
class _Window:
    """Some neighbouring values of a group, rising, with the group's weight in every sentence."""

    values: FloatArray  #: (M,)
    share: FloatArray  #: (M,)
    row: IntArray  #: (M,) sentence of each
    below: FloatArray  #: (N,) weight of smaller values in each sentence
    total: FloatArray  #: (N,) weight of all values in each sentence

    def medians(self, times: FloatArray) -> tuple[FloatArray, BoolArray]:
        """The median where sentence i is drawn ``times[r, i]`` times, and whether it lies in the window, (R,) each."""
        found, known = np.full(len(times), np.nan), np.ones(len(times), dtype=bool)
        step = max(1, CELLS // len(self.values))
        for start in range(0, len(times), step):
            part = times[start : start + step]
            half, before = part @ self.total / 2.0, part @ self.below
            reached = part[:, self.row]
            reached *= self.share
            np.cumsum(reached, axis=1, out=reached)
            reached += before[:, None]
            slack = _slack(half)
            known[start : start + step] = ((before < half - slack) & (reached[:, -1] > half + slack)) | (half == 0.0)
            found[start : start + step] = _medians(self.values, reached, half)
        return found, known


def _sorted(values: FloatArray, own: Members, row: IntArray, n: int) -> _Window:
    """All values of a group."""
    order = np.argsort(values[own.token], kind="stable")
    at, share = row[own.token][order], own.share[order]
    return _Window(values[own.token][order], share, at, np.zeros(n), _sums(at, share, n))


def _near_median(values: FloatArray, own: Members, row: IntArray, n: int) -> _Window | None:
    """The values among which nearly every resampled median is; None: too few sentences."""
    whole = _sorted(values, own, row, n)
    if not enough_sentences(whole.total):
        return None
    reached = np.cumsum(whole.share)
    half = reached[-1] / 2.0
    middle = int(np.searchsorted(reached, half)) + 1
    lower = _sums(whole.row[:middle], whole.share[:middle], n)
    spread = WINDOW * float(np.sqrt(np.square(lower - whole.total / 2.0).sum()))
    start, stop = (int(i) for i in np.searchsorted(reached, (half - spread, half + spread)))
    kept = slice(max(0, start - 1), stop + 2)
    below = _sums(whole.row[: kept.start], whole.share[: kept.start], n)
    return _Window(whole.values[kept].copy(), whole.share[kept].copy(), whole.row[kept].copy(), below, whole.total)


def _medians(values: FloatArray, reached: FloatArray, half: FloatArray) -> FloatArray:
    """Where cumulated weights (R, M) of rising values (M,) reach half (R,), and pass it; NaN where there is none."""
    slack = _slack(half)
    low = np.argmax(reached >= (half - slack)[:, None], axis=1)
    high = np.argmax(reached > (half + slack)[:, None], axis=1)
    return np.where(half > 0.0, (values[low] + values[high]) / 2.0, np.nan)


def _sums(row: IntArray, values: FloatArray, n: int) -> FloatArray:
    """Sum of values in each of n sentences, (n,)."""
    return np.bincount(row, values, minlength=n).astype(np.float64, copy=False)


def _slack(half: FloatArray) -> FloatArray:
    return np.asarray(1e-12 * half)


def _rows(sentence: Int32Array) -> IntArray:
    """Sentences numbered from 0 without gaps, (T,)."""
    return np.asarray(np.cumsum(np.diff(sentence, prepend=-1) != 0) - 1, dtype=np.int64)


def _ends(drawn: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Quantiles over resamples (R, ...) that are not NaN; NaN where all are."""
    low, high = np.full((2, *drawn.shape[1:]), np.nan)
    missing = np.isnan(drawn)
    every, some = ~missing.any(axis=0), missing.any(axis=0) & ~missing.all(axis=0)
    low[every], high[every] = np.quantile(drawn[:, every], TAILS, axis=0)
    if some.any():
        low[some], high[some] = np.nanquantile(drawn[:, some], TAILS, axis=0)
    return low, high
