"""Drop improbable rules from a grammar, mend it, and say exactly what that cost."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from truesource.grammar.inference.expected import expected_counts
from truesource.grammar.pcfg import PCFG
from truesource.grammar.restrict import restrict
from truesource.grammar.support.arrays import FloatArray
from truesource.grammar.support.errors import InputError

MASS_TOLERANCE = 1e-9  #: probability that may be missing from the sentences of the mended grammar


@dataclass(frozen=True)
class PruningCost:
    """What dropping rules did to a grammar P; Q is what was left, each row divided by its sum."""

    threshold: float
    rules: int  #: rules dropped, those of dropped symbols included
    symbols: int  #: symbols dropped, as nothing could reach them, or they could make no sentence any more
    words: int  #: words dropped, as no rule made them any more
    largest_row_loss: float  #: most probability that the rules of a symbol lost, and were given back
    mass_lost: float  #: P(a derivation of P uses a dropped rule, given that it ends), in [0, 1]
    kl_per_sentence: float  #: KL(Q, P) of derivations, nats; KL(P, Q) is infinite when a rule that P uses is dropped
    kl_per_token: float  #: the same over the expected length under Q
    total_mass: float  #: P(a derivation of Q ends); 1 up to rounding
    spectral_radius: float  #: of Q, below 1

    def __str__(self) -> str:
        return (
            f"{self.rules:,} rules below {self.threshold:g} dropped: {self.mass_lost:.3g} of the probability of"
            f" derivations, {self.kl_per_token:.3g} nats per token"
        )


class Pruned(NamedTuple):
    """A pruned grammar and what it cost."""

    pcfg: PCFG
    cost: PruningCost


def prune(pcfg: PCFG, threshold: float) -> Pruned:
    """Drop the rules less probable than ``threshold``, then all that became useless, and divide rows by their sums.

    Useless are symbols that make no finite sentence or that the start does not reach, and words that no rule makes.
    ``meta["pruning"]`` of the result holds the cost.

    Args:
        pcfg: any grammar some of whose derivations end.
        threshold: 0 to below 1; 0 only drops what is useless.

    Raises:
        InputError: the threshold is out of range, no sentence is left, or derivations of the result may not end.
    """
    if not (isinstance(threshold, int | float) and 0.0 <= threshold < 1.0):
        raise InputError(f"a pruning threshold is 0 to below 1, got {threshold!r}")
    rest = restrict(pcfg, [np.exp(logp) >= threshold for _, logp in pcfg.tables()])
    if rest is None:
        raise InputError(f"without its rules below {threshold:g} the grammar makes no sentence; lower the threshold")
    pruned, share = rest
    cost = pruning_cost(
        pruned,
        share,
        threshold=float(threshold),
        rules=pcfg.n_rules - pruned.n_rules,
        symbols=len(pcfg.symbols) - len(pruned.symbols),
        words=len(pcfg.terminals) - len(pruned.terminals),
        original_mass=pcfg.exact.total_mass,
    )
    return Pruned(pruned.with_meta(pruning=asdict(cost)), cost)


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
    """The exact cost of pruning, from what is left: no dropped rule is needed.

    With ``s_A`` the share of A's probability that was kept, a kept rule had ``p = q s_A``. Hence
    ``KL(Q, P) = sum_A E_Q[count of A] ln(1 / s_A)``, and the mass lost is what is missing from the total mass of the
    grammar with the rules ``q s_A`` alone.

    Args:
        pruned: the grammar Q, rows divided by their sums.
        share: (S,) what was kept of the probability of each symbol's rules, in (0, 1].
        threshold: rules below it were dropped.
        rules: how many were dropped.
        symbols: the same of symbols.
        words: the same of words.
        original_mass: total mass of P.

    Raises:
        InputError: derivations of Q may not end.
    """
    radius = pruned.exact.spectral_radius
    mass = pruned.exact.total_mass
    if radius >= 1.0 or mass < 1.0 - MASS_TOLERANCE:
        raise InputError(
            f"without its rules below {threshold:g} the grammar makes infinite derivations"
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
    """The grammar with its rules at ``share`` of their probability; the rest goes to a symbol that never ends."""
    n = len(pcfg.symbols)
    leaking = np.flatnonzero(share < 1.0)
    name = "leak"
    while name in pcfg.symbol_ids:
        name += "'"
    log_share = np.log(share)
    changed: dict[str, Any] = {
        f"{kind}_logp": logp + log_share[rules[:, 0]]
        for kind, (rules, logp) in zip(("binary", "unary", "lexical"), pcfg.tables(), strict=True)
    }
    changed["unary"] = np.concatenate([pcfg.unary, np.column_stack([leaking, np.full(len(leaking), n)])])
    changed["unary_logp"] = np.concatenate([changed["unary_logp"], np.log1p(-share[leaking])])
    changed["binary"] = np.concatenate([pcfg.binary, [[n, n, n]]])
    changed["binary_logp"] = np.append(changed["binary_logp"], 0.0)
    return replace(pcfg, symbols=(*pcfg.symbols, name), labels=(*pcfg.labels, name), **changed)
