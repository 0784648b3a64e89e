"""Exact Kullback-Leibler divergence between the derivations of two grammars, rule by rule."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import BoolArray, FloatArray
from truesource.grammar.variants.measures import GrammarMeasures, measure
from truesource.grammar.variants.rule_map import RuleMap

#: what the divergence of derivations says about sentences
STRINGS = (
    "The divergence of sentences is at most that of their derivations (data processing). The two are equal exactly"
    " when every sentence has the same posterior over its derivations under both grammars, as where no sentence has"
    " two derivations; that only the lexicon differs is not enough."
)


@dataclass(frozen=True)
class DerivationDivergence:
    """KL of derivations both ways, nats; None where it is infinite or a count is, with the reason.

    ``KL(P || Q) = sum_r E_P[count of r] ln(p_r / q_r)``. Given a length range, derivations have the probabilities
    ``p(d) / Z_P`` and ``q(d) / Z_Q``, hence the counts are given the range, and ``ln Z_Q - ln Z_P`` is added.
    """

    forward_per_sentence: float | None  #: KL(P || Q)
    forward_per_token: float | None  #: the same over the mean length under P
    forward_reason: str | None  #: why it is None
    backward_per_sentence: float | None  #: KL(Q || P)
    backward_per_token: float | None  #: the same over the mean length under Q
    backward_reason: str | None  #: why it is None

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)


def divergence(
    p: PCFG,
    q: PCFG,
    rule_map: RuleMap,
    *,
    original: GrammarMeasures | None = None,
    variant: GrammarMeasures | None = None,
) -> DerivationDivergence:
    """Divergence of what ``rule_map`` makes of derivations of P, and derivations of Q.

    With `RuleMap.by_name` that is the divergence of derivations as they stand. With the map that a change of the
    grammar made, derivations correspond: where rules were merged, P stands for the grammar with the sums of their
    probabilities, whose derivations are the images of those of P.

    Args:
        p: the original.
        q: the variant.
        rule_map: from the rules of P to those of Q.
        original: `measure` of P, under the lengths to condition on; without a condition by default.
        variant: the same of Q, under the same lengths.

    Raises:
        ValueError: the two were measured under different lengths.
    """
    left, right = original or measure(p), variant or measure(q)
    if left.lengths != right.lengths:
        raise ValueError(f"one grammar is measured given {left.lengths}, the other given {right.lengths}")
    target = rule_map.target
    mapped = np.flatnonzero(target >= 0)
    image = np.full(rule_map.n_target, -np.inf)
    np.logaddexp.at(image, target[mapped], left.logp[mapped])
    made = np.isfinite(image)
    shift = right.log_mass - left.log_mass
    ratio = np.subtract(image, right.logp, where=made, out=np.zeros(len(image)))

    forward = backward = None
    forward_reason = _infinite(left, "original")
    backward_reason = _infinite(right, "variant")
    if left.uses is not None and forward_reason is None:
        forward_reason = _missing(p, left.uses, target < 0, "the original", "the variant")
        pushed = np.bincount(target[mapped], weights=left.uses[mapped], minlength=rule_map.n_target)
        forward = float(pushed @ ratio) + shift
    if right.uses is not None and backward_reason is None:
        backward_reason = _missing(q, right.uses, ~made, "the variant", "the original")
        backward = -float(right.uses @ ratio) - shift
    return DerivationDivergence(
        *_rates(forward, left.mean_length, forward_reason), *_rates(backward, right.mean_length, backward_reason)
    )


def _rates(
    value: float | None, length: float | None, reason: str | None
) -> tuple[float | None, float | None, str | None]:
    if value is None or length is None or reason is not None:
        return None, None, reason
    value = max(0.0, value)  # rounding; and no -0.0
    return value, value / length, None


def _infinite(measures: GrammarMeasures, which: str) -> str | None:
    if measures.uses is not None:
        return None
    return f"the {which} has a spectral radius of 1 or more, so expected counts are infinite; give a length range"


def _missing(pcfg: PCFG, uses: FloatArray, absent: BoolArray, one: str, other: str) -> str | None:
    """Why a divergence is infinite: the most used rule that the other grammar does not have."""
    lost = np.flatnonzero(absent & (uses > 0.0))
    if not len(lost):
        return None
    worst = int(lost[np.argmax(uses[lost])])
    more = f" ({len(lost):,} such rules)" if len(lost) > 1 else ""
    return f"{one} uses {rule_name(pcfg, worst)}, which {other} does not have{more}"


def rule_name(pcfg: PCFG, number: int) -> str:
    """A rule in text, such as ``NP -> NP PP`` or ``NN -> 'dog'``; numbers as in `RuleMap`."""
    for kind, (rules, _) in enumerate(pcfg.tables()):
        if number < len(rules):
            parent, *children = rules[number].tolist()
            names = [repr(pcfg.terminals[children[0]])] if kind == 2 else [pcfg.symbols[c] for c in children]
            return f"{pcfg.symbols[parent]} -> {' '.join(names)}"
        number -= len(rules)
    raise IndexError("the grammar has no rule of this number")
