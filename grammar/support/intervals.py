"""The rule that all intervals share: of few independent units there is none, and a code says why."""

from __future__ import annotations

FEWEST = 10  #: independent units, such as sentences, that an interval needs; fewer say little of others
_FEW = f"fewer-than-{FEWEST}-"
_REASONS = {
    "no-power-law": "frequencies fall faster than a power law",
    "beta-at-bound": "beta is at its bound",
    "not-identified": "the sample does not determine the law",
    "one-seed": "this is a single seed of several",
    "last-step-only": "only the last step has one",
}


def too_few(units: int) -> bool:
    """Whether so many independent units have no interval."""
    return units < FEWEST


def few_code(unit: str = "sentence") -> str:
    """Why there is no interval of too few units, such as ``fewer-than-10-sentences``."""
    return f"{_FEW}{unit}s"


def reason_text(code: str) -> str:
    """The same in words; an unknown code as it is."""
    if code.startswith(_FEW):
        return f"fewer than {FEWEST} {code.removeprefix(_FEW).replace('-', ' ')}"
    return _REASONS.get(code, code)


def no_interval_text(codes: list[str]) -> str:
    """A sentence on values without an interval; empty for no codes."""
    return f"Without interval: {'; '.join(map(reason_text, dict.fromkeys(codes)))}." if codes else ""
