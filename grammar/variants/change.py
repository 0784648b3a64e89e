"""A change of a grammar, what it makes, and several in a row."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from truesource.grammar.conditioning import LengthRange
from truesource.grammar.diagnostics import MASS_TOLERANCE, diagnose
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.errors import InputError
from truesource.grammar.variants.divergence import STRINGS, DerivationDivergence, divergence
from truesource.grammar.variants.measures import GrammarMeasures, measure
from truesource.grammar.variants.rule_map import RuleMap


class Changed(NamedTuple):
    """What one change did."""

    pcfg: PCFG
    rule_map: RuleMap
    details: dict[str, Any]  #: JSON values


@dataclass(frozen=True, eq=False)
class Variant:
    """A grammar Q made from a grammar P by a controlled change.

    ``divergence`` compares derivations as they stand, rules by name: it bounds the divergence of sentences. ``aligned``
    compares what ``rule_map`` makes of the derivations of P with those of Q: reordered, or with words merged, they
    correspond, and it says nothing about sentences. Where no rule changes its children the two are the same.
    """

    name: str  #: the change as text, which `parse_variant` reads
    pcfg: PCFG  #: Q; ``meta["variant"]`` is the description
    description: Mapping[str, Any]  #: ``spec``, digest of the ``original``, and ``details`` of each change
    divergence: DerivationDivergence  #: of derivations, rules by name
    aligned: DerivationDivergence  #: of derivations, rules by ``rule_map``
    rule_map: RuleMap  #: from the rules of P to those of Q
    original: GrammarMeasures  #: of P
    measures: GrammarMeasures  #: of Q

    @property
    def entropy_change_per_token(self) -> float | None:
        """Derivational entropy of Q less that of P, nats a token; None where one of them is not defined."""
        before, after = self.original.entropy_per_token, self.measures.entropy_per_token
        return None if before is None or after is None else after - before

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "variant": self.name,
            "digest": self.pcfg.digest,
            "description": dict(self.description),
            "lengths": None if self.measures.lengths is None else str(self.measures.lengths),
            **self.measures.as_dict(),
            "entropy_change_per_token": self.entropy_change_per_token,
            "divergence": self.divergence.as_dict(),
            "aligned_divergence": self.aligned.as_dict(),
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
    def apply(self, pcfg: PCFG) -> Changed:
        """The changed grammar alone, nothing measured."""

    def __call__(
        self, pcfg: PCFG, lengths: LengthRange | None = None, *, original: GrammarMeasures | None = None
    ) -> Variant:
        """The variant of a grammar, measured against it.

        Args:
            pcfg: the original P.
            lengths: what divergences and entropies are conditioned on; the grammars themselves never are.
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
    """Changes made one after the other; each sees what the ones before it made."""

    changes: tuple[Change, ...]  #: at least one

    def __post_init__(self) -> None:
        if not self.changes:
            raise InputError("a chain of changes needs at least one")

    @property
    def spec(self) -> str:
        """The changes, joined by commas."""
        return ",".join(change.spec for change in self.changes)

    def apply(self, pcfg: PCFG) -> Changed:
        """Apply all changes in order; ``details`` is keyed by their specs."""
        rule_map, details = RuleMap.identity(pcfg), []
        for change in self.changes:
            pcfg, after, found = change.apply(pcfg)
            rule_map = rule_map.then(after)
            details.append({"spec": change.spec, **found})
        return Changed(pcfg, rule_map, {"changes": details})


def require_ending(pcfg: PCFG, spec: str) -> None:
    """Refuse a variant whose derivations may not end.

    Raises:
        InputError: the spectral radius is 1 or more, or mass leaks; the message says through which rules.
    """
    if pcfg.exact.spectral_radius >= 1.0 - 1e-12 or pcfg.exact.total_mass < 1.0 - MASS_TOLERANCE:
        problems = diagnose(pcfg).serious
        raise InputError(f"{spec} makes a grammar whose derivations may not end: {'; '.join(problems)}")
