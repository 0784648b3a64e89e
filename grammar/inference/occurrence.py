"""Mass of the sentences that have a word: by length, or of all."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from truesource.grammar._kernels.rules import LengthTable, LexicalRules
from truesource.grammar.inference.closure import closure
from truesource.grammar.inference.rules import mean_matrix, sparse_rows
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import FloatArray, IntArray
from truesource.grammar.support.errors import InputError

WIDTH = 32  #: words a batch where lengths are told apart
POOL = 128  #: words a batch where they are not
ROUNDS = 500  #: most Newton steps; ten or so is usual
CRITICAL = 1e-9  #: nearer to 1, the spectral radius leaves the total mass with half its digits


def masses_by_length(pcfg: PCFG, table: LengthTable, ids: IntArray) -> FloatArray:
    """P(a sentence has m tokens and word w among them) for m = 0..N of ``table``, (W, N+1)."""
    found = np.zeros((len(ids), table.masses.shape[1]))
    for at, part in tables_by_length(pcfg, table, ids):
        found[at : at + part.shape[1]] = part.T
    return found


def tables_by_length(pcfg: PCFG, table: LengthTable, ids: IntArray) -> Iterator[tuple[int, FloatArray]]:
    """Batches of `masses_by_length` as they come: place of the first word, and masses (N+1, words of the batch)."""
    from joblib import Parallel, delayed

    from truesource.grammar.inference._kernels.types import occurrence
    from truesource.grammar.inference.batch import threads
    from truesource.grammar.support.progress import meter

    exact = pcfg.exact
    chains, emission = sparse_rows(exact.unary_closure), exact.emission.tocsc()

    def task(some: IntArray) -> FloatArray:
        words = emission[:, some]
        lexical = LexicalRules(words.indptr.astype(np.int32), words.indices.astype(np.int32), words.data)
        found: FloatArray = occurrence(table, pcfg.start, lexical, exact.pairs, chains)
        return found

    parts = [ids[at : at + WIDTH] for at in range(0, len(ids), WIDTH)]
    parallel = Parallel(n_jobs=threads(), prefer="threads", return_as="generator")
    with meter("probability that a sentence has a word, by word", len(ids)) as progress:
        at = 0
        for part, found in zip(parts, parallel(delayed(task)(p) for p in parts), strict=True):
            progress.advance(len(part))
            yield at, found
            at += len(part)


def total_masses(pcfg: PCFG, ids: IntArray) -> FloatArray:
    """P(a derivation ends and its sentence has word w), (W,).

    The mass d of what has the word, of the total mass t, solves ``d = e_w + J d - Bi(d, d)`` with J the Jacobian of
    the mass equations at t. Newton's steps for the mass ``t - d`` without the word rise monotonically to it from any
    start below that rises, with the Jacobian at any lower bound (Etessami & Yannakakis 2009). The start is Markov's
    bound ``d <= E c``; the Jacobian is that of the least mass in the batch, taken anew while words are left.

    Raises:
        InputError: no derivation ends, or the spectral radius is 1.
    """
    from truesource.grammar.support.progress import meter

    exact = pcfg.exact
    if not exact.total_mass > 0.0:
        raise InputError("no derivation of this grammar ends; mend it")
    if abs(exact.spectral_radius - 1.0) < CRITICAL:
        raise InputError("the spectral radius is 1: masses are not known precisely; condition on a range of lengths")
    inner = np.flatnonzero(exact.reached & (exact.mass > 0.0))
    mass = exact.mass[inner][:, None]
    jacobian = mean_matrix(pcfg, exact.mass)[np.ix_(inner, inner)]
    counts = closure(jacobian, "mean matrix")
    found = np.zeros(len(ids))
    emission = exact.emission[inner].tocsc()[:, ids]
    rarest_last = np.argsort(-(emission.T @ counts[np.searchsorted(inner, pcfg.start)]))
    with meter("probability that a sentence has a word, by word", len(ids)) as progress:
        for at in range(0, len(ids), POOL):
            some = rarest_last[at : at + POOL]
            direct = emission[:, some].toarray()
            found[some] = _solve(pcfg, inner, mass, jacobian, counts, direct)
            progress.advance(len(some))
    return found


def _solve(
    pcfg: PCFG, inner: IntArray, mass: FloatArray, jacobian: FloatArray, counts: FloatArray, direct: FloatArray
) -> FloatArray:
    """Mass of the start symbol with each word of ``direct`` (S', W), (W,)."""
    from truesource.grammar.inference._kernels.types import products

    n = len(pcfg.symbols)
    start = int(np.searchsorted(inner, pcfg.start))
    value = np.minimum(counts @ direct, mass)
    result = np.zeros(direct.shape[1])
    active = np.arange(direct.shape[1])
    inverse = counts
    for turn in range(ROUNDS):
        if turn % 6 == 0 and len(active):
            full = np.zeros(n)
            full[inner] = mass[:, 0] - value.max(axis=1)
            inverse = closure(mean_matrix(pcfg, full)[np.ix_(inner, inner)], "mean matrix")
        square = np.zeros((n, len(active)))
        square[inner] = value
        residual = value - direct[:, active] - jacobian @ value + products(square, pcfg.exact.pairs)[inner]
        step = inverse @ residual
        value = np.clip(value - step, 0.0, mass)
        settled = (np.abs(step) <= 1e-13 * value + 1e-300).all(axis=0) | (turn == ROUNDS - 1)
        result[active] = value[start]
        active, value = active[~settled], value[:, ~settled]
        if not len(active):
            break
    return result
