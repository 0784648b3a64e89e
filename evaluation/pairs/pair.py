"""Two sentences that differ in one controlled thing, and what the grammar says of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

ALL = "all"  #: in tables, all phenomena together
Words = tuple[str, ...]
Stratum = str | int | bool | None


@dataclass(frozen=True)
class Pair:
    """Sentences ``a`` and ``b``; where the pair was made by the grammar, ``a`` is the more probable one.

    Log probabilities are of the grammar without a condition: two sentences within the range of lengths that a corpus
    was drawn under have the same odds given the range. None stands for a probability of zero.
    """

    a: Words
    b: Words
    phenomenon: str
    log_p_a: float | None  #: nats
    log_p_b: float | None
    unigram_log_odds: (
        float | None
    )  #: sum of ln u(w) over ``a`` less that over ``b``; None: the unigram of one side is zero
    positions: tuple[int, ...] = ()  #: where the two differ, from 0; empty if their lengths differ
    source: int = 0  #: pairs made from one sentence share this number; resampled together
    drawn: str | None = None  #: ``a`` or ``b``: the side that was sampled; None: not made by us
    strata: Mapping[str, Stratum] = field(default_factory=dict)  #: properties to report by; None is not known
    facts: Mapping[str, float | None] = field(default_factory=dict)  #: other exact numbers; None is not finite

    @property
    def possible(self) -> bool:
        """The grammar can make both."""
        return self.log_p_a is not None and self.log_p_b is not None

    @property
    def log_odds(self) -> float | None:
        """Ln P(a)/P(b), nats; None where a side is impossible."""
        if self.log_p_a is None or self.log_p_b is None:
            return None
        return self.log_p_a - self.log_p_b

    @property
    def impossible(self) -> str | None:
        """``a``, ``b`` or ``both``: what the grammar cannot make; None: it can make both."""
        sides = [side for side, value in (("a", self.log_p_a), ("b", self.log_p_b)) if value is None]
        return "both" if len(sides) == 2 else sides[0] if sides else None

    def as_record(self) -> dict[str, Any]:
        """Plain values for JSON, in the manner of BLiMP (Warstadt et al. 2020): good is ``a``, bad is ``b``."""
        return {
            "sentence_good": " ".join(self.a),
            "sentence_bad": " ".join(self.b),
            "phenomenon": self.phenomenon,
            "positions": list(self.positions),
            "log_p_good": self.log_p_a,
            "log_p_bad": self.log_p_b,
            "log_odds": self.log_odds,
            "impossible": {"a": "good", "b": "bad"}.get(self.impossible or "", self.impossible),
            "unigram_log_odds": self.unigram_log_odds,
            "drawn": {"a": "good", "b": "bad", None: None}[self.drawn],
            "source": self.source,
            "strata": dict(self.strata),
            "facts": dict(self.facts),
        }


def differing(a: Sequence[str], b: Sequence[str]) -> tuple[int, ...]:
    """Positions at which two sentences of one length differ; none if their lengths do."""
    if len(a) != len(b):
        return ()
    return tuple(i for i, (x, y) in enumerate(zip(a, b, strict=True)) if x != y)
