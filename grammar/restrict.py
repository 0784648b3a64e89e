"""Restriction of a grammar to some of its rules: useless parts are removed, and rows divided by their sums.

Improbable rules are pruned this way, with an exact account of the cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

from truesource.grammar.inference.expected import expected_counts
from truesource.grammar.inference.nonnegative_matrices import reachable_from
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import BoolArray, FloatArray, Int32Array
from truesource.grammar.support.errors import InputError

MASS_TOLERANCE = 1e-9  #: probability that may be missing from the sentences of the restricted grammar


class RestrictedGrammar(NamedTuple):
    """A restricted grammar, and the share of each symbol's probability that remains."""

    pcfg: PCFG
    share: FloatArray  #: (S,) for the remaining symbols: share of their rules' probability that was kept, in (0, 1]


def restrict(pcfg: PCFG, selected: Sequence[BoolArray]) -> RestrictedGrammar | None:
    """Return the grammar of the selected rules; None if they derive no sentence.

    Symbols that derive no finite string or are unreachable are removed, and so are words that no rule produces. The
    rest keeps its order. Derivations of the result may not end.

    Args:
        pcfg: any grammar.
        selected: (R,), (Q,) and (L,), which binary, unary and lexical rules to keep.
    """
    left = [keep.copy() for keep in selected]
    productive = _productive(pcfg, left)
    if not productive[pcfg.start]:
        return None
    for i, rules in enumerate((pcfg.binary, pcfg.unary)):
        left[i] &= productive[rules[:, 1:]].all(axis=1)
    reached = _reached(pcfg, left)
    sums = np.zeros(len(pcfg.symbols))
    for keep, (rules, logp) in zip(left, pcfg.tables(), strict=True):
        keep &= reached[rules[:, 0]]
        np.add.at(sums, rules[keep, 0], np.exp(logp[keep]))
    rest = _rest(pcfg, left, reached, sums)
    return RestrictedGrammar(rest, np.minimum(sums[reached] / pcfg.row_sums[reached], 1.0))


def _productive(pcfg: PCFG, selected: list[BoolArray]) -> BoolArray:
    """Return which symbols derive a finite string by the selected rules, (S,)."""
    binary, unary = pcfg.binary[selected[0]], pcfg.unary[selected[1]]
    result = np.zeros(len(pcfg.symbols), dtype=bool)
    result[pcfg.lexical[selected[2], 0]] = True
    before = -1
    while before < int(result.sum()):
        before = int(result.sum())
        for rules in (binary, unary):
            result[rules[result[rules[:, 1:]].all(axis=1), 0]] = True
    return result


def _reached(pcfg: PCFG, selected: list[BoolArray]) -> BoolArray:
    """Return which symbols are reachable by the selected rules, (S,)."""
    n = len(pcfg.symbols)
    binary, unary = pcfg.binary[selected[0]], pcfg.unary[selected[1]]
    rows = np.concatenate([binary[:, 0], binary[:, 0], unary[:, 0]])
    columns = np.concatenate([binary[:, 1], binary[:, 2], unary[:, 1]])
    edges = csr_matrix((np.ones(len(rows), dtype=bool), (rows, columns)), shape=(n, n))
    return reachable_from(edges.astype(np.int8), pcfg.start)


def _rest(pcfg: PCFG, selected: list[BoolArray], reached: BoolArray, sums: FloatArray) -> PCFG:
    """Return the selected rules, over reachable symbols and the words they produce, rows divided by ``sums``."""
    state = np.cumsum(reached) - 1
    produced = np.zeros(len(pcfg.vocabulary), dtype=bool)
    produced[pcfg.lexical[selected[2], 1]] = True
    tables: dict[str, Int32Array] = {}
    logps: dict[str, FloatArray] = {}
    for kind, keep, (rules, logp) in zip(("binary", "unary", "lexical"), selected, pcfg.tables(), strict=True):
        child = (np.cumsum(produced) - 1) if kind == "lexical" else state
        tables[kind] = np.column_stack([state[rules[keep, 0]], child[rules[keep, 1:]]]).astype(np.int32)
        logps[f"{kind}_logp"] = np.minimum(logp[keep] - np.log(sums[rules[keep, 0]]), 0.0)
    symbols = np.flatnonzero(reached)
    return replace(
        pcfg,
        symbols=tuple(pcfg.symbols[i] for i in symbols),
        labels=tuple(pcfg.labels[i] for i in symbols),
        vocabulary=tuple(word for word, ok in zip(pcfg.vocabulary, produced, strict=True) if ok),
        start=int(state[pcfg.start]),
        binary=tables["binary"],
        unary=tables["unary"],
        lexical=tables["lexical"],
        meta=pcfg.meta,
        **logps,
    )


@dataclass(frozen=True)
class PruningCost:
    """The effect of pruning rules of a grammar P; Q is the rest, each row divided by its sum."""

    threshold: float
    rules: int  #: rules dropped, including rules of dropped symbols
    symbols: int  #: symbols dropped, unreachable or without a finite string
    words: int  #: words dropped, which no rule produces any more
    largest_row_loss: float  #: largest probability that the rules of a symbol lost before renormalisation
    mass_lost: float  #: P(a derivation of P uses a dropped rule | it ends), in [0, 1]
    kl_per_sentence: float  #: KL(Q, P) of derivations, nats; KL(P, Q) is infinite when a rule that P uses is dropped
    kl_per_token: float  #: KL per sentence over the expected length under Q
    total_mass: float  #: P(a derivation of Q ends); 1 up to rounding
    spectral_radius: float  #: spectral radius of Q, below 1

    def __str__(self) -> str:
        return (
            f"{self.rules:,} rules below {self.threshold:g} dropped: {self.mass_lost:.3g} of the probability of"
            f" derivations, {self.kl_per_token:.3g} nats per token"
        )


class PrunedGrammar(NamedTuple):
    """A pruned grammar and the cost of pruning."""

    pcfg: PCFG
    cost: PruningCost


def prune(pcfg: PCFG, threshold: float) -> PrunedGrammar:
    """Drop the rules less probable than ``threshold`` and useless parts, and divide rows by their sums.

    Useless are symbols that derive no finite string or are unreachable, and words that no rule produces.
    ``meta["pruning"]`` of the result holds the cost.

    Args:
        pcfg: any grammar with some derivations that end.
        threshold: 0 to below 1; 0 drops only useless parts.

    Raises:
        InputError: the threshold is out of range, no sentence is left, or derivations of the result may not end.
    """
    if not (isinstance(threshold, int | float) and 0.0 <= threshold < 1.0):
        raise InputError(f"a pruning threshold must be 0 or more and below 1, got {threshold!r}")
    rest = restrict(pcfg, [np.exp(logp) >= threshold for _, logp in pcfg.tables()])
    if rest is None:
        raise InputError(f"without its rules below {threshold:g} the grammar has no sentence; lower the threshold")
    pruned, share = rest
    cost = pruning_cost(
        pruned,
        share,
        threshold=float(threshold),
        rules=pcfg.n_rules - pruned.n_rules,
        symbols=len(pcfg.symbols) - len(pruned.symbols),
        words=len(pcfg.vocabulary) - len(pruned.vocabulary),
        original_mass=pcfg.exact.total_mass,
    )
    return PrunedGrammar(pruned.with_meta(pruning=asdict(cost)), cost)


def pruning_cost(
    pruned: PCFG,
    share: FloatArray,
    *,
    threshold: float,
    rules: int,
    symbols: int = 0,
    words: int = 0,
    original_mass: float = 1.0,
) -> PruningCost:
    """Return the exact cost of pruning, without the dropped rules.

    With ``s_A`` the share of A's probability that was kept, a kept rule had ``p = q s_A``. Hence ``KL(Q, P) = sum_A
    E_Q[count of A] ln(1 / s_A)``, and the mass lost is the deficit of the total mass of the grammar with only the rules
    ``q s_A``.

    Args:
        pruned: the grammar Q, rows divided by their sums.
        share: (S,) share of the probability of each symbol's rules that was kept, in (0, 1].
        threshold: rules below it were dropped.
        rules: number of dropped rules.
        symbols: number of dropped symbols.
        words: number of dropped words.
        original_mass: total mass of P.

    Raises:
        InputError: derivations of Q may not end.
    """
    radius = pruned.exact.spectral_radius
    mass = pruned.exact.total_mass
    if radius >= 1.0 or mass < 1.0 - MASS_TOLERANCE:
        raise InputError(
            f"without its rules below {threshold:g} the grammar has infinite derivations"
            f" (spectral radius {radius:.6g}); lower the threshold"
        )
    counts = expected_counts(pruned)
    divergence = max(0.0, float(counts.symbols @ -np.log(share)))
    left = _with_leaks(pruned, share).exact.total_mass if (share < 1.0).any() else original_mass
    return PruningCost(
        threshold=threshold,
        rules=rules,
        symbols=symbols,
        words=words,
        largest_row_loss=float(1.0 - share.min()),
        mass_lost=min(1.0, max(0.0, 1.0 - left / original_mass)),
        kl_per_sentence=divergence,
        kl_per_token=divergence / counts.length,
        total_mass=mass,
        spectral_radius=radius,
    )


def _with_leaks(pcfg: PCFG, share: FloatArray) -> PCFG:
    """Return the grammar with its rules at ``share`` of their probability; a symbol that never ends gets the rest."""
    n = len(pcfg.symbols)
    leaking = np.flatnonzero(share < 1.0)
    name = "leak"
    while name in pcfg.symbol_ids:
        name += "'"
    log_share = np.log(share)
    binary_logp, unary_logp, lexical_logp = (logp + log_share[rules[:, 0]] for rules, logp in pcfg.tables())
    return replace(
        pcfg,
        symbols=(*pcfg.symbols, name),
        labels=(*pcfg.labels, name),
        binary=np.concatenate([pcfg.binary, [[n, n, n]]]),
        binary_logp=np.append(binary_logp, 0.0),
        unary=np.concatenate([pcfg.unary, np.column_stack([leaking, np.full(len(leaking), n)])]),
        unary_logp=np.concatenate([unary_logp, np.log1p(-share[leaking])]),
        lexical_logp=lexical_logp,
    )
