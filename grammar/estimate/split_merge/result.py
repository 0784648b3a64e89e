"""The result of training: a checked PCFG over substates, and the record of its training."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, NotRequired

import numpy as np
from numpy.typing import NDArray
from pydantic import with_config
from typing_extensions import TypedDict

from truesource.grammar.estimate.split_merge.parameters import TINY, Layout, SparseRules
from truesource.grammar.inference.nonnegative_matrices import perron
from truesource.grammar.pcfg import PCFG
from truesource.grammar.restrict import pruning_cost
from truesource.grammar.support.arrays import BoolArray, FloatArray, Int32Array, IntArray
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.records import STRICT, Count


@with_config(STRICT)
class TraceRow(TypedDict):
    """One iteration, also a line of the trace that `truesource induce --trace` writes."""

    cycle: Count
    phase: str
    iteration: Count
    log_likelihood: float | None
    unsmoothed: NotRequired[float | None]
    held_out: NotRequired[float | None]
    held_out_impossible: NotRequired[Count | None]
    substates: NotRequired[Count]
    rules: NotRequired[Count]


@dataclass(frozen=True, eq=False)
class InducedGrammar:
    """A grammar induced from trees, and one record per EM iteration.

    Each record has ``cycle`` (0 is the relative-frequency grammar), ``phase`` (``start``, ``split``, ``merge``,
    ``smooth``), ``iteration`` (0 is before the first update of the phase), ``log_likelihood`` (nats per token of the
    training trees), ``unsmoothed`` (the same before the last smoothing of that phase; None elsewhere), ``held_out``
    (nats per token of the possible held-out trees; None without any), ``held_out_impossible`` (trees), ``substates``
    (of all symbols), ``rules`` (with a probability above zero). In lexicon mode ``parse`` the trees of the trace have
    rare words replaced by their classes; the likelihoods in the grammar's ``meta`` are of the words themselves, and of
    the classes of unseen held-out words.
    """

    pcfg: PCFG
    trace: tuple[TraceRow, ...]


def filtered(rules: SparseRules, threshold: float) -> SparseRules:
    """Return the grammar without rules less probable than ``threshold``, each row normalised again.

    A row that would lose all its rules is unchanged.
    """
    return rules.awake().maximised(np.where(rules.prob >= threshold, rules.prob, 0.0), TINY).awake()


def filter_cost(pcfg: PCFG, whole: SparseRules, threshold: float) -> dict[str, object]:
    """Measure the effect of the filter on a grammar, before rows were normalised again, as JSON values.

    Args:
        pcfg: result of `to_pcfg` for ``filtered(whole, threshold)``.
        whole: the grammar before the filter.
        threshold: threshold of the filter.

    Returns:
        A `truesource.grammar.restrict.PruningCost` (``rules`` are the rules dropped by the filter itself) and
        ``spectral_radius_before``.
    """
    names = _names(whole.layout)
    passed = whole.prob >= threshold
    left, total = (np.bincount(whole.rows, whole.prob * part, whole.layout.n_rows) for part in (passed, 1.0))
    row_of = {name: row for row, name in enumerate(names)}
    rows = [row_of[name] for name in pcfg.symbols]
    share = (left / total)[rows]
    share = np.where(share > 0.0, np.minimum(share, 1.0), 1.0)  # a row that would lose all its rules is unchanged
    dropped = int(np.count_nonzero(~passed))
    cost = pruning_cost(pcfg, share, threshold=threshold, rules=dropped, symbols=len(names) - len(pcfg.symbols))
    return {**asdict(cost), "spectral_radius_before": perron(_children(whole))[0]}


def _names(layout: Layout) -> list[str]:
    """Return the name of each row."""
    names: list[str] = []
    for i, (label, n) in enumerate(zip(layout.table.symbols, layout.substates, strict=True)):
        names += [label] if i == 0 else [f"{label}-{k}" for k in range(n)]
    return names


def _children(rules: SparseRules) -> FloatArray:
    """Return the expected number of children of each row's state, (rows, rows)."""
    layout = rules.layout
    expected = np.zeros(layout.n_rows**2)
    rule, pair = rules.places
    for side in range(2):
        child = layout.table.rules[rule, 1 + side]
        there = child >= 0
        state = layout.first_row[child[there]] + rules.entries.pair[pair[there], side]
        expected += np.bincount(rules.rows[there] * layout.n_rows + state, rules.prob[there], len(expected))
    return expected.reshape(layout.n_rows, -1)


def to_pcfg(rules: SparseRules, meta: Mapping[str, Any]) -> PCFG:
    """Return a PCFG with one state per substate that is reachable from the start.

    Substate ``k`` of ``NP`` is named ``NP-k``; the start symbol keeps its name.

    Raises:
        InputError: derivations are infinite with positive probability (the spectral radius of the expected-children
            matrix is not below one).
    """
    table = rules.layout.table
    symbols = _names(rules.layout)
    labels = [label for label, n in zip(table.symbols, rules.layout.substates, strict=True) for _ in range(n)]
    parts = _rules(rules)
    (binary, _), (unary, _), _ = parts
    state = _reached(len(symbols), np.concatenate([binary[:, [0, 1]], binary[:, [0, 2]], unary]))
    keep = np.flatnonzero(state)
    number = np.cumsum(state, dtype=np.int32) - 1
    arrays: list[NDArray[Any]] = []
    for n_states, (some, prob) in zip((3, 2, 1), parts, strict=True):
        used = state[some[:, 0]]
        numbered = some[used]
        numbered[:, :n_states] = number[numbered[:, :n_states]]
        arrays += [numbered, np.log(prob[used])]
    del parts, binary, unary  # large
    length = _expected_length(len(keep), arrays)
    unreached = [name for name, reached in zip(symbols, state, strict=True) if not reached]
    return PCFG(
        symbols=tuple(symbols[i] for i in keep),
        vocabulary=table.words,
        start=0,
        binary=arrays[0],
        binary_logp=arrays[1],
        unary=arrays[2],
        unary_logp=arrays[3],
        lexical=arrays[4],
        lexical_logp=arrays[5],
        labels=tuple(labels[i] for i in keep),
        meta={**meta, "expected_length": length, "unreached": unreached},
    )


def _rules(rules: SparseRules) -> list[tuple[Int32Array, FloatArray]]:
    """Return binary, unary and lexical fine rules: rows (or word) and probabilities."""
    base, first = rules.layout.table.rules, rules.layout.first_row
    binary, lexical = base[:, 2] >= 0, base[:, 3] >= 0
    rule, pair = rules.places
    result: list[tuple[Int32Array, FloatArray]] = []
    for kind, n_children in ((binary, 2), (~binary & ~lexical, 1), (lexical, 0)):
        there = np.flatnonzero(kind[rule])
        columns = [rules.rows[there], *([] if n_children else [base[rule[there], 3]])]
        for i in range(n_children):
            columns.append(first[base[rule[there], 1 + i]] + rules.entries.pair[pair[there], i])
        result.append((np.stack(columns, axis=1, dtype=np.int32, casting="same_kind"), rules.prob[there]))
    return result


def _reached(n: int, edges: IntArray) -> BoolArray:
    """Return states that a derivation from state 0 can visit, (n,)."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import breadth_first_order

    graph = coo_array((np.ones(len(edges)), (edges[:, 0], edges[:, 1])), shape=(n, n)).tocsr()
    state = np.zeros(n, dtype=bool)
    state[breadth_first_order(graph, 0, return_predecessors=False)] = True
    return state


def _expected_length(n: int, arrays: list[NDArray[Any]]) -> float:
    """Return the mean sentence length, tokens: solve ``(I - M) x = P(lexical)``, M the expected children of each state.

    M is non-negative, so its spectral radius is below one exactly if the solution for positive right-hand sides is
    positive.
    """
    from scipy.sparse import coo_array, eye_array
    from scipy.sparse.linalg import splu

    binary, binary_logp, unary, unary_logp, lexical, lexical_logp = arrays
    rows = np.concatenate([binary[:, 0], binary[:, 0], unary[:, 0]])
    columns = np.concatenate([binary[:, 1], binary[:, 2], unary[:, 1]])
    weights = np.exp(np.concatenate([binary_logp, binary_logp, unary_logp]))
    children = coo_array((weights, (rows, columns)), shape=(n, n))
    solver = splu((eye_array(n) - children).tocsc())
    size = solver.solve(np.ones(n))  # expected nodes of a derivation from each state
    if not (np.isfinite(size).all() and (size >= 1.0 - 1e-9).all()):
        raise InputError("the induced grammar has infinite derivations; lower the filter or use more trees")
    emitted = np.bincount(lexical[:, 0], weights=np.exp(lexical_logp), minlength=n)
    return float(solver.solve(emitted)[0])
