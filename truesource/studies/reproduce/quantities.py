"""Quantities with their values: one for each training seed, their mean, and a 95% interval."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from statistics import fmean
from typing import Any

import numpy as np
from scipy.stats import t as student

from truesource.evaluation.measures.bootstrap import TAILS
from truesource.evaluation.measures.correlation import spearman, spearman_ends
from truesource.grammar.support.arrays import FloatArray, IntArray
from truesource.grammar.support.errors import InputError
from truesource.studies.reproduce.rows import LAST, Claim, Quantity, Row
from truesource.studies.reproduce.run_records import RunRecord

SEEDS = "training seeds"
RECORD = "the data of one run"
PAIRS = "pairs of values"
_SAME = 1e-9  #: numbers this near to each other, relative to 1 and their size, are equal
_ENTIRE = frozenset({"name", "value", "low", "high", "signature", "sd", "no_interval"})  #: not about the subject
MOST_SEEDS = 1000


@dataclass(frozen=True)
class QuantityValue:
    """A quantity: its value, the mean over seeds if there are several, and its interval."""

    value: float | None  #: None: missing or infinite
    low: float | None = None
    high: float | None = None
    by_seed: Mapping[int, float] = field(default_factory=dict)  #: of several seeds
    over: str | None = None  #: source of the interval's variance: `SEEDS`, `RECORD`, `PAIRS`; None: no interval
    signature: str = ""
    missing: Sequence[int] = ()  #: seeds of its model without a value

    @property
    def interval(self) -> tuple[float, float] | None:
        """The ends, if there are both."""
        return None if self.low is None or self.high is None else (self.low, self.high)

    @property
    def bounds(self) -> tuple[float, float]:
        """The ends; without an interval, the value twice."""
        assert self.value is not None
        return self.interval or (self.value, self.value)


def constant(value: float) -> QuantityValue:
    """Return a number that a claim names."""
    return QuantityValue(value)


def mean_of_seeds(by_seed: Mapping[int, float], signature: str = "", missing: Sequence[int] = ()) -> QuantityValue:
    """Return the mean over training seeds with the interval of Student's t; of a single seed without one."""
    values = list(by_seed.values())
    mean = fmean(values)
    if len(values) < 2:
        return QuantityValue(mean, by_seed=by_seed, signature=signature, missing=missing)
    half = float(_half(float(np.std(values, ddof=1)), np.array(len(values))))
    return QuantityValue(mean, mean - half, mean + half, by_seed, SEEDS, signature, missing)


def _half(spread: float, seeds: IntArray) -> FloatArray:
    """Return half the 95% interval of the mean of so many values with this standard deviation, by Student's t."""
    return np.asarray(student.ppf(TAILS[1], seeds - 1) * spread / np.sqrt(seeds))


def measured(
    quantities: Mapping[str, Quantity],
    records: Mapping[str, Sequence[RunRecord]],
    compared: Mapping[tuple[str, str, str], Mapping[str, Any]],
) -> dict[str, QuantityValue]:
    """Return the values of all quantities of a row.

    Args:
        quantities: of the row.
        records: of each run by its name; of a command under the name of the row.
        compared: records of ``comparison.json``, by run, model and measure: the intervals of scores over sentences and
            seeds.

    Raises:
        InputError: no record matches a quantity, or several do.
    """
    values: dict[str, QuantityValue] = {}
    for name, quantity in quantities.items():
        parts = quantity.parts
        if quantity.rank is not None:
            values[name] = correlated(
                *([values[each] for each in names] for names in (quantity.rank.of, quantity.rank.by))
            )
        elif parts is not None:
            combine = minus if quantity.minus is not None else over
            values[name] = combine(*(values[part] for part in parts))
        else:
            values[name] = _read(name, quantity, records, compared)
    return values


def minus(one: QuantityValue, other: QuantityValue) -> QuantityValue:
    """Return a difference: paired by seed if both share two seeds or more, else of their intervals.

    Numbers that do not depend on networks, such as bounds, are the same in every seed: the interval of their difference
    then comes from their intervals, not from the seeds. If they are equal, the difference is exactly 0.
    """
    if one.value is None or other.value is None:
        return QuantityValue(None)
    paired = {seed: one.by_seed[seed] - other.by_seed[seed] for seed in _common(one, other)}
    fixed = _constant(one.by_seed) and _constant(other.by_seed)
    if paired and not (fixed and max(map(abs, paired.values())) > _SAME):
        return mean_of_seeds(paired)
    low, high = one.bounds[0] - other.bounds[1], one.bounds[1] - other.bounds[0]
    return _combined(one.value - other.value, low, high, one, other)


def over(one: QuantityValue, other: QuantityValue) -> QuantityValue:
    """Return a ratio, as `minus`; None if the other is 0 or its interval includes 0."""
    if one.value is None or other.value is None or other.value == 0.0:
        return QuantityValue(None)
    common = _common(one, other)
    if common and all(other.by_seed[seed] != 0.0 for seed in common):
        return mean_of_seeds({seed: one.by_seed[seed] / other.by_seed[seed] for seed in common})
    if other.bounds[0] <= 0.0 <= other.bounds[1]:
        return QuantityValue(one.value / other.value)
    ends = [mine / theirs for mine in one.bounds for theirs in other.bounds]
    return _combined(one.value / other.value, min(ends), max(ends), one, other)


def correlated(ones: Sequence[QuantityValue], others: Sequence[QuantityValue]) -> QuantityValue:
    """Return Spearman's correlation of values with as many others; None if one is missing.

    With several seeds it is the mean of the correlations of each, with an interval over seeds. Else it is the
    correlation of the values, with an interval over the pairs if there are 10 or more.
    """
    sides, seeds = (ones, others), _shared([*ones, *others])
    if any(each.value is None for side in sides for each in side):
        return QuantityValue(None)
    if seeds:
        values = {s: [np.array([each.by_seed.get(s, each.value) for each in side]) for side in sides] for s in seeds}
        return mean_of_seeds({seed: spearman(*pair) for seed, pair in values.items()})
    x, y = (np.array([each.value for each in side], dtype=np.float64) for side in sides)
    low, high = spearman_ends(x, y, np.arange(len(x))).tolist()
    if not (math.isfinite(low) and math.isfinite(high)):
        return QuantityValue(spearman(x, y))
    return QuantityValue(spearman(x, y), low, high, over=PAIRS)


def _shared(values: Sequence[QuantityValue]) -> list[int]:
    """Return the seeds that all values with several seeds share, if there are two or more."""
    several = [set(each.by_seed) for each in values if len(each.by_seed) > 1]
    common = set.intersection(*several) if several else set()
    return sorted(common) if len(common) > 1 else []


def _common(one: QuantityValue, other: QuantityValue) -> list[int]:
    common = [seed for seed in one.by_seed if seed in other.by_seed]
    return common if len(common) > 1 else []


def _combined(value: float, low: float, high: float, *parts: QuantityValue) -> QuantityValue:
    kinds = [part.over for part in parts if part.over is not None]
    if not kinds:
        return QuantityValue(value)
    return QuantityValue(value, low, high, over=" and ".join(dict.fromkeys(kinds)))


def _read(
    name: str,
    quantity: Quantity,
    records: Mapping[str, Sequence[RunRecord]],
    compared: Mapping[tuple[str, str, str], Mapping[str, Any]],
) -> QuantityValue:
    run, fields = _source(name, quantity, records)
    matching = _latest([each for each in records[run] if _matches(each.fields, fields)], fields)
    if not matching:
        raise InputError(f"quantity {name}: {_nothing(records[run], fields)}", code="no-record")
    by_seed: dict[int | None, RunRecord] = {}
    for seed in sorted({each.seed for each in matching}, key=lambda seed: -1 if seed is None else seed):
        by_seed[seed] = _only(name, [each for each in matching if each.seed == seed])
    if None in by_seed and len(by_seed) > 1:
        raise InputError(f"quantity {name}: records of several seeds match, and one of none; name more fields")
    if None in by_seed:
        return _single(by_seed[None], quantity)
    return _of_seeds(run, by_seed, quantity, records[run], compared)


def _source(name: str, quantity: Quantity, records: Mapping[str, Sequence[RunRecord]]) -> tuple[str, dict[str, object]]:
    """Return which run a quantity is read from, and the fields that its record must have."""
    if len(records) == 1:
        return next(iter(records)), quantity.fields
    fields = {key: value for key, value in quantity.fields.items() if key != "run"}
    if quantity.run is None or quantity.run not in records:
        raise InputError(f"quantity {name}: give run, one of {', '.join(records)}")
    return quantity.run, fields


def _of_seeds(
    run: str,
    found: Mapping[Any, RunRecord],
    quantity: Quantity,
    records: Sequence[RunRecord],
    compared: Mapping[tuple[str, str, str], Mapping[str, Any]],
) -> QuantityValue:
    first = next(iter(found.values()))
    values = {seed: value for seed, each in found.items() if (value := _number(each, quantity)) is not None}
    of = first.fields.get("of")
    seeds = sorted({each.seed for each in records if each.seed is not None and each.fields.get("of") == of})
    missing = tuple(seed for seed in seeds if seed not in values)
    signature = str(first.fields.get("signature") or "")
    if len(found) == 1 and not missing:
        return _single(first, quantity)
    if not values:
        return QuantityValue(None, signature=signature, missing=missing)
    mean = compared.get((run, str(of), str(quantity.record)))
    if mean is not None and first.fields.get("evaluator") == "scores" and not missing and quantity.value is None:
        return QuantityValue(
            mean["value"], mean["low"], mean["high"], values, f"sentences and {SEEDS}", mean["signature"]
        )
    if not missing and _constant(values):  # it does not depend on the network
        single = _single(first, quantity)
        return QuantityValue(single.value, single.low, single.high, values, single.over, signature)
    return mean_of_seeds(values, signature, missing)


def _constant(by_seed: Mapping[int, float]) -> bool:
    """Return True if a number is the same for all seeds."""
    values = list(by_seed.values())
    return not values or max(values) - min(values) <= _SAME * max(1.0, abs(values[0]))


def _single(found: RunRecord, quantity: Quantity) -> QuantityValue:
    """Return a number without seeds, or of a single one, with the interval that its record has."""
    value, fields = _number(found, quantity), found.fields
    signature = str(fields.get("signature") or "")
    seeds = {} if found.seed is None or value is None else {found.seed: value}
    if value is None or quantity.value is not None or fields.get("low") is None or fields.get("high") is None:
        return QuantityValue(value, by_seed=seeds, signature=signature)
    return QuantityValue(value, float(fields["low"]), float(fields["high"]), seeds, RECORD, signature)


def _number(found: RunRecord, quantity: Quantity) -> float | None:
    """Return the number of a record; None if it has none."""
    value = found.fields.get(quantity.value or "value")
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return None
    return float(value)


def _matches(fields: Mapping[str, Any], expected: Mapping[str, Any]) -> bool:
    return all(
        isinstance(fields.get(key), (int, float))
        if value == LAST and fields.get(key) != LAST
        else _same(fields.get(key), value)
        for key, value in expected.items()
    )


def _same(actual: Any, expected: Any) -> bool:
    """Return True if a field has the expected value; 1 is not true."""
    return bool(actual == expected) and isinstance(actual, bool) == isinstance(expected, bool)


def _latest(matching: list[RunRecord], expected: Mapping[str, Any]) -> list[RunRecord]:
    """Keep the records with the largest value of each field for which the row asks for the last."""
    for key in [key for key, value in expected.items() if value == LAST]:
        steps = {each.fields[key] for each in matching}
        if matching:
            last = LAST if LAST in steps else max(steps)
            matching = [each for each in matching if each.fields[key] == last]
    return matching


def _only(name: str, matching: Sequence[RunRecord]) -> RunRecord:
    """Return the matching record with the fewest fields: about the whole, not about a part."""
    least = min(len(_parts(each)) for each in matching)
    best = [each for each in matching if len(_parts(each)) == least]
    if len(best) > 1:
        differing = [
            key for key in _parts(best[0]) if any(each.fields.get(key) != best[0].fields.get(key) for each in best)
        ]
        values = ", ".join(
            f"{key} ({', '.join(dict.fromkeys(str(each.fields.get(key)) for each in best))[:80]})" for key in differing
        )
        raise InputError(
            f"quantity {name}: {len(best)} records match, which differ in {values or 'nothing'}; name more"
        )
    return best[0]


def _parts(found: RunRecord) -> set[str]:
    """Return the fields that say what a record is of."""
    return {key for key, value in found.fields.items() if key not in _ENTIRE and value is not None}


def _nothing(records: Sequence[RunRecord], expected: Mapping[str, Any]) -> str:
    """Return why no record matches: the first field whose value no record has, and the values that they have."""
    remaining = list(records)
    for key, value in expected.items():
        fitting = [each for each in remaining if _matches(each.fields, {key: value})]
        if not fitting:
            there = list(dict.fromkeys(str(each.fields.get(key)) for each in remaining))
            more = f" and {len(there) - 12} more" if len(there) > 12 else ""
            return f"no record has {key} {value}; there are {', '.join(there[:12]) or 'none'}{more}"
        remaining = fitting
    return "no record matches"


Contrasts = Callable[[str, str], QuantityValue | None]  #: a paired difference that the run knows, of two quantities


class Verdict(StrEnum):
    """Verdict on a claim or a row."""

    HOLDS = "holds"
    CORRECTED = "holds with a correction"
    PART = "holds in part"
    REVERSED = "does not hold here"
    UNDECIDED = "undecided here"
    UNTESTED = "cannot be tested"


@dataclass(frozen=True)
class Difference:
    """A number that a claim is about, and the range in which it must lie."""

    what: str
    measured: QuantityValue
    low: float  #: of the range
    high: float
    closed: bool = False  #: whether the ends of the range belong to it; else a tie is undecided

    @property
    def verdict(self) -> Verdict:
        """The verdict: whether the interval lies in the range, outside of it, or on both sides."""
        if self.measured.value is None:
            return Verdict.UNDECIDED
        low, high = self.measured.bounds
        if self.low < low and high < self.high:
            return Verdict.HOLDS
        if self.closed and self.low <= low and high <= self.high:
            return Verdict.HOLDS
        return Verdict.REVERSED if high < self.low or low > self.high else Verdict.UNDECIDED


@dataclass(frozen=True)
class TestedClaim:
    """A claim with its differences."""

    verdict: Verdict
    differences: Sequence[Difference]

    @property
    def exact(self) -> bool:
        """True if some difference has no interval, so that numbers were compared as they are."""
        return any(each.measured.value is not None and each.measured.interval is None for each in self.differences)


def judged(
    claim: Claim, quantities: Mapping[str, QuantityValue], known: Contrasts = lambda one, other: None
) -> TestedClaim:
    """Return the verdict on a claim.

    Args:
        claim: of the row.
        quantities: their values.
        known: better intervals of differences than from `minus`, if the run has some.
    """
    differences = _differences(claim, quantities, known)
    return TestedClaim(all_of([each.verdict for each in differences]), differences)


def all_of(verdicts: Sequence[Verdict]) -> Verdict:
    """Combine the verdicts on statements that must all hold."""
    if Verdict.REVERSED in verdicts:
        return Verdict.REVERSED
    return Verdict.HOLDS if all(each is Verdict.HOLDS for each in verdicts) else Verdict.UNDECIDED


def verdict_of(row: Row, claims: Sequence[Verdict]) -> Verdict:
    """Return the verdict on a row: on all its claims together; in part where some hold and others are reversed."""
    if not row.runs:
        return Verdict.UNTESTED
    verdict = all_of(claims)
    if verdict is Verdict.REVERSED and Verdict.HOLDS in claims:
        return Verdict.PART
    return Verdict.CORRECTED if verdict is Verdict.HOLDS and row.correction is not None else verdict


def range_of(claim: Claim) -> tuple[float, float]:
    """Return the range in which every number that a claim is about must lie."""
    if claim.equal is not None:
        return -claim.equal.within, claim.equal.within
    if claim.between is not None:
        low, high = claim.between.low, claim.between.high
        return -math.inf if low is None else low, math.inf if high is None else high
    return (-math.inf, 0.0) if claim.negative is not None else (0.0, math.inf)


def seeds_to_decide(claim: Claim, by_seed: Sequence[float]) -> int | None:
    """Return how many training seeds would decide an undecided claim, if further seeds are like the present ones.

    Args:
        claim: of a row.
        by_seed: the number that it is about, of two seeds or more.

    Returns:
        The least number for which the 95% interval of the mean (Student's t) would include no end of the claim's range;
        None if that is more than `MOST_SEEDS`.
    """
    mean, spread = fmean(by_seed), float(np.std(by_seed, ddof=1))
    distance = min(abs(mean - end) for end in range_of(claim) if math.isfinite(end))
    seeds = np.arange(len(by_seed), MOST_SEEDS + 1)
    enough = seeds[_half(spread, seeds) < distance]
    return int(enough[0]) if len(enough) else None


def _differences(claim: Claim, values: Mapping[str, QuantityValue], known: Contrasts) -> list[Difference]:
    def below(small: str, large: str) -> Difference:
        difference = known(large, small) or minus(values[large], values[small])
        return Difference(f"{large} - {small}", difference, *range_of(claim))

    if claim.less is not None:
        return [below(*claim.less)]
    if claim.increasing is not None:
        return [below(*pair) for pair in zip(claim.increasing, claim.increasing[1:], strict=False)]
    if claim.decreasing is not None:
        return [below(small, large) for large, small in zip(claim.decreasing, claim.decreasing[1:], strict=False)]
    if claim.smallest is not None:
        return [below(claim.smallest.of, other) for other in claim.smallest.among]
    if claim.largest is not None:
        return [below(other, claim.largest.of) for other in claim.largest.among]
    if claim.between is not None:
        return [Difference(claim.between.of, values[claim.between.of], *range_of(claim), closed=True)]
    if claim.equal is not None:
        return [_equal(claim, values)]
    signed = claim.positive if claim.positive is not None else claim.negative
    assert signed is not None
    return [Difference(signed, values[signed], *range_of(claim))]


def _equal(claim: Claim, values: Mapping[str, QuantityValue]) -> Difference:
    assert claim.equal is not None
    of, to = claim.equal.of, claim.equal.to
    difference = minus(values[of], values[to] if isinstance(to, str) else constant(to))
    return Difference(f"{of} - {to}", difference, *range_of(claim), closed=True)
