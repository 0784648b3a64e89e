"""A change of a grammar, its effect on rules, chains of changes, and the exact divergence between derivations."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from truesource.grammar.conditioning import LengthRange
from truesource.grammar.diagnostics import MASS_TOLERANCE, diagnose
from truesource.grammar.inference.expected import expected_counts
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import BoolArray, FloatArray, Int32Array, IntArray
from truesource.grammar.support.errors import InputError

#: what the divergence of derivations implies for sentences
STRINGS = (
    "The divergence of sentences is at most the divergence of their derivations (data processing). The two are equal"
    " exactly if every sentence has the same posterior over its derivations under both grammars, as when no sentence"
    " has two derivations; that only the lexicon differs is not enough."
)


@dataclass(frozen=True)
class DerivationDivergence:
    """KL of derivations both ways, nats; None if it or a count is infinite, with the reason.

    ``KL(P || Q) = sum_r E_P[count of r] ln(p_r / q_r)``. Given a length range, derivations have the probabilities
    ``p(d) / Z_P`` and ``q(d) / Z_Q``, hence counts are given the range, and ``ln Z_Q - ln Z_P`` is added.
    """

    forward_per_sentence: float | None  #: KL(P || Q)
    forward_per_token: float | None  #: KL(P || Q) over the mean length under P
    forward_reason: str | None  #: reason if it is undefined
    backward_per_sentence: float | None  #: KL(Q || P)
    backward_per_token: float | None  #: KL(Q || P) over the mean length under Q
    backward_reason: str | None  #: reason if it is undefined


def divergence(
    p: PCFG,
    q: PCFG,
    rule_map: RuleMap,
    *,
    original: GrammarMeasures | None = None,
    variant: GrammarMeasures | None = None,
) -> DerivationDivergence:
    """Return the divergence of the images of derivations of P under ``rule_map`` from derivations of Q.

    With `RuleMap.by_name` this is the divergence of the derivations themselves. With the map of a change of the
    grammar, derivations correspond: after merged rules, P is the grammar with the sums of their probabilities, whose
    derivations are the images of those in P.

    Args:
        p: the original.
        q: the variant.
        rule_map: map from the rules of P to the rules of Q.
        original: `measure` of P, under the lengths to condition on; without a condition by default.
        variant: `measure` of Q, under the same lengths.

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
    finite = np.isfinite(image)
    shift = right.log_mass - left.log_mass
    ratio = np.subtract(image, right.logp, where=finite, out=np.zeros(len(image)))

    forward = backward = None
    forward_reason = _infinite(left, "original")
    backward_reason = _infinite(right, "variant")
    if left.uses is not None and forward_reason is None:
        forward_reason = _missing(p, left.uses, target < 0, "the original", "the variant")
        pushed = np.bincount(target[mapped], weights=left.uses[mapped], minlength=rule_map.n_target)
        forward = float(pushed @ ratio) + shift
    if right.uses is not None and backward_reason is None:
        backward_reason = _missing(q, right.uses, ~finite, "the variant", "the original")
        backward = -float(right.uses @ ratio) - shift
    return DerivationDivergence(
        *_rates(forward, left.mean_length, forward_reason), *_rates(backward, right.mean_length, backward_reason)
    )


def _rates(
    value: float | None, length: float | None, reason: str | None
) -> tuple[float | None, float | None, str | None]:
    if value is None or length is None or reason is not None:
        return None, None, reason
    value = max(0.0, value)  # remove rounding, and -0.0
    return value, value / length, None


def _infinite(measures: GrammarMeasures, which: str) -> str | None:
    if measures.uses is not None:
        return None
    return f"the {which} has a spectral radius of 1 or more, so expected counts are infinite; use a range of lengths"


def _missing(pcfg: PCFG, uses: FloatArray, absent: BoolArray, one: str, other: str) -> str | None:
    """Return the reason for an infinite divergence: the most used rule that the other grammar lacks."""
    lost = np.flatnonzero(absent & (uses > 0.0))
    if not len(lost):
        return None
    worst = int(lost[np.argmax(uses[lost])])
    more = f" ({len(lost):,} such rules)" if len(lost) > 1 else ""
    return f"{one} uses {rule_name(pcfg, worst)}, which {other} does not have{more}"


def rule_name(pcfg: PCFG, number: int) -> str:
    """Return a rule in text, such as ``NP -> NP PP`` or ``NN -> 'dog'``; numbers as in `RuleMap`."""
    for kind, (rules, _) in enumerate(pcfg.tables()):
        if number < len(rules):
            parent, *children = rules[number].tolist()
            names = [repr(pcfg.vocabulary[children[0]])] if kind == 2 else [pcfg.symbols[c] for c in children]
            return f"{pcfg.symbols[parent]} -> {' '.join(names)}"
        number -= len(rules)
    raise IndexError("the grammar has no rule of this number")


@dataclass(frozen=True, eq=False)
class GrammarMeasures:
    """Exact figures of one grammar; None if the spectral radius is 1 or more and no length range is given."""

    rules: int
    words: int
    lengths: LengthRange | None  #: condition of the other figures
    mean_length: float | None  #: tokens
    entropy_per_sentence: float | None  #: entropy of derivations, nats
    entropy_per_token: float | None  #: entropy over the mean length
    log_mass: float  #: ln P(length in the range), nats; 0 without a range
    uses: FloatArray | None  #: (rules,) expected uses in a derivation: binary, unary, lexical
    logp: FloatArray  #: (rules,) nats, in the same order

    def as_dict(self) -> dict[str, float | int | None]:
        """Return the scalar figures, for JSON."""
        return {
            "rules": self.rules,
            "words": self.words,
            "mean_length": self.mean_length,
            "entropy_per_sentence": self.entropy_per_sentence,
            "entropy_per_token": self.entropy_per_token,
            "log_mass": self.log_mass,
        }


def measure(pcfg: PCFG, lengths: LengthRange | None = None) -> GrammarMeasures:
    """Return expected rule counts and derivational entropy (`grammar.inference.expected`), given ``lengths`` or not.

    Raises:
        InputError: no sentence has a length in the range.
    """
    logp = np.concatenate([pcfg.binary_logp, pcfg.unary_logp, pcfg.lexical_logp])
    sizes = pcfg.n_rules, len(pcfg.vocabulary), lengths
    if lengths is None and pcfg.exact.spectral_radius >= 1.0:
        return GrammarMeasures(*sizes, None, None, None, 0.0, None, logp)
    counts = expected_counts(pcfg, lengths)
    uses = np.concatenate([counts.binary, counts.unary, counts.lexical])
    entropy = max(math.log(counts.mass) - float(uses @ logp), 0.0)
    return GrammarMeasures(
        *sizes, counts.length, entropy, entropy / counts.length, math.log(counts.mass), np.maximum(uses, 0.0), logp
    )


@dataclass(frozen=True, eq=False)
class RuleMap:
    """A map of the rules of P to rules of Q, numbered as in derivations: binary, unary, lexical, in array order.

    A derivation of P in preorder becomes one of Q: every rule is mapped by ``target``, and if ``swapped`` the right
    subtree comes before the left one.
    """

    target: IntArray  #: (n,) rule of Q for each rule of P; -1 for a dropped one
    swapped: BoolArray  #: (R,) binary rules of P whose two children are in reverse order in Q
    n_target: int  #: number of rules of Q

    @classmethod
    def identity(cls, pcfg: PCFG) -> RuleMap:
        """Return the map of every rule to itself."""
        return cls(np.arange(pcfg.n_rules), np.zeros(len(pcfg.binary), dtype=bool), pcfg.n_rules)

    @classmethod
    def by_name(cls, p: PCFG, q: PCFG) -> RuleMap:
        """Return the map of rules of P to rules of Q with the same parent and children by name, if there are any."""
        symbol = _numbers(p.symbols, q.symbol_ids)
        word = _numbers(p.vocabulary, q.word_ids)
        lexical = np.column_stack([symbol[p.lexical[:, 0]], word[p.lexical[:, 1]]])
        target = locate(q, symbol[p.binary], symbol[p.unary], lexical)
        return cls(target, np.zeros(len(p.binary), dtype=bool), q.n_rules)

    @property
    def bijective(self) -> bool:
        """True if every rule of Q comes from exactly one of P and none is dropped, and hence derivations correspond."""
        return self.n_target == len(self.target) and np.array_equal(np.unique(self.target), np.arange(self.n_target))

    def then(self, after: RuleMap) -> RuleMap:
        """Return the composition of this map and ``after``."""
        swapped = self.swapped.copy()
        remaining = np.flatnonzero(self.target[: len(swapped)] >= 0)
        swapped[remaining] ^= after.swapped[self.target[remaining]]
        target = np.where(self.target >= 0, after.target[self.target], -1)
        swapped[target[: len(swapped)] < 0] = False
        return RuleMap(target, swapped, after.n_target)


def locate(pcfg: PCFG, binary: IntArray, unary: IntArray, lexical: IntArray) -> IntArray:
    """Return numbers of the given rules in a grammar, -1 for rules that it lacks.

    Args:
        pcfg: the grammar.
        binary: (n, 3) parent, left child, right child, as its numbers; -1 for a symbol that it lacks.
        unary: (n, 2) parent, child.
        lexical: (n, 2) parent, word.
    """
    result: list[IntArray] = []
    first = 0
    base = max(len(pcfg.symbols), len(pcfg.vocabulary))
    for (rules, _), rows in zip(pcfg.tables(), (binary, unary, lexical), strict=True):
        keys, sought = _keys(rules, base), _keys(rows, base)
        place = np.minimum(np.searchsorted(keys, sought), max(len(keys) - 1, 0))
        here = (rows >= 0).all(axis=1) & (keys[place] == sought if len(keys) else False)
        result.append(np.where(here, first + place, -1))
        first += len(rules)
    return np.concatenate(result)


def _keys(rules: Int32Array | IntArray, base: int) -> IntArray:
    """Return one number a rule, ascending in the order of a grammar's arrays: by children, then parent."""
    key = np.zeros(len(rules), dtype=np.int64)
    for column in (*range(1, rules.shape[1]), 0):
        key = key * base + rules[:, column]
    return key


def _numbers(names: Sequence[str], ids: Mapping[str, int]) -> IntArray:
    return np.array([ids.get(name, -1) for name in names], dtype=np.int64)


class ChangeResult(NamedTuple):
    """Result of one change."""

    pcfg: PCFG
    rule_map: RuleMap
    details: Mapping[str, object]  #: JSON values


@dataclass(frozen=True, eq=False)
class Variant:
    """A grammar Q obtained from a grammar P by a controlled change.

    ``divergence`` compares the derivations themselves, rules by name: it bounds the divergence of sentences.
    ``aligned`` compares the images of derivations of P under ``rule_map`` with derivations of Q: reordered, or with
    words merged, they correspond, but nothing follows for sentences. If no rule changes its children the two are equal.
    """

    name: str  #: the change as text, which `parse_variant` reads
    pcfg: PCFG  #: Q; ``meta["variant"]`` is the description
    description: Mapping[str, Any]  #: ``spec``, digest of the ``original``, and ``details`` of each change
    divergence: DerivationDivergence  #: divergence of derivations, rules by name
    aligned: DerivationDivergence  #: divergence of derivations, rules by ``rule_map``
    rule_map: RuleMap  #: map from the rules of P to the rules of Q
    original: GrammarMeasures  #: figures of P
    measures: GrammarMeasures  #: figures of Q

    @property
    def entropy_change_per_token(self) -> float | None:
        """Derivational entropy of Q less that in P, nats a token; None if either is undefined."""
        before, after = self.original.entropy_per_token, self.measures.entropy_per_token
        return None if before is None or after is None else after - before

    def as_dict(self) -> dict[str, object]:
        """Return values for JSON."""
        return {
            "variant": self.name,
            "digest": self.pcfg.digest,
            "description": dict(self.description),
            "lengths": None if self.measures.lengths is None else str(self.measures.lengths),
            **self.measures.as_dict(),
            "entropy_change_per_token": self.entropy_change_per_token,
            "divergence": asdict(self.divergence),
            "aligned_divergence": asdict(self.aligned),
            "derivations_one_to_one": self.rule_map.bijective,
            "rules_swapped": int(self.rule_map.swapped.sum()),
            "strings": STRINGS,
        }


class Change(ABC):
    """One controlled change. Call it with a grammar to get a `Variant`."""

    @property
    @abstractmethod
    def spec(self) -> str:
        """The change as text, which `parse_variant` reads."""

    @abstractmethod
    def apply(self, pcfg: PCFG) -> ChangeResult:
        """Return the changed grammar, without measures."""

    def __call__(
        self, pcfg: PCFG, lengths: LengthRange | None = None, *, original: GrammarMeasures | None = None
    ) -> Variant:
        """Return the variant of a grammar, measured against it.

        Args:
            pcfg: the original P.
            lengths: condition of divergences and entropies; the grammars themselves are never conditioned.
            original: ``measure(pcfg, lengths)`` if at hand, to save time.

        Raises:
            InputError: the change cannot be made, or no sentence of P or Q has a length in the range.
        """
        before = original or measure(pcfg, lengths)
        changed = self.apply(pcfg)
        description = {"spec": self.spec, "original": pcfg.digest, "details": changed.details}
        if "variant" in pcfg.meta:
            description["before"] = pcfg.meta["variant"]
        result = changed.pcfg.with_meta(variant=description)
        try:
            after = measure(result, lengths)
        except InputError as error:
            raise InputError(f"after {self.spec}: {error}") from error
        names = RuleMap.by_name(pcfg, result)
        by_name = divergence(pcfg, result, names, original=before, variant=after)
        same = (names.target == changed.rule_map.target).all()
        aligned = by_name if same else divergence(pcfg, result, changed.rule_map, original=before, variant=after)
        return Variant(self.spec, result, description, by_name, aligned, changed.rule_map, before, after)


@dataclass(frozen=True)
class Chain(Change):
    """Changes made one after the other; each applies to the result of the previous one."""

    changes: tuple[Change, ...]  #: at least one

    def __post_init__(self) -> None:
        if not self.changes:
            raise InputError("a chain of changes needs at least one")

    @property
    def spec(self) -> str:
        """Changes as text, joined by commas."""
        return ",".join(change.spec for change in self.changes)

    def apply(self, pcfg: PCFG) -> ChangeResult:
        """Apply all changes in order; ``details`` is keyed by their specs."""
        rule_map, details = RuleMap.identity(pcfg), []
        for change in self.changes:
            pcfg, after, result = change.apply(pcfg)
            rule_map = rule_map.then(after)
            details.append({"spec": change.spec, **result})
        return ChangeResult(pcfg, rule_map, {"changes": details})


def require_ending(pcfg: PCFG, spec: str) -> None:
    """Refuse a variant whose derivations may not end.

    Raises:
        InputError: the spectral radius is 1 or more, or mass leaks; the message names the rules responsible.
    """
    if pcfg.exact.spectral_radius >= 1.0 - 1e-12 or pcfg.exact.total_mass < 1.0 - MASS_TOLERANCE:
        problems = diagnose(pcfg).serious
        raise InputError(f"{spec} gives a grammar whose derivations may not end: {'; '.join(problems)}")
