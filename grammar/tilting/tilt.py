"""Tilted truths: p(x) exp(r(x) / beta) / Z as a grammar, with Z and the exact gain and cost of the tilt.

With h_A the total weight of the strings of A under the tilted weights, p(A -> B C) h_B h_C / h_A is again a grammar
(Chi 1999; Nederhof & Satta 2003), so that sampling, bounds and all exact inference apply to it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix, identity

from truesource.grammar.conditioning import LengthRange
from truesource.grammar.inference.expected import SMALLEST_MASS, expected_counts
from truesource.grammar.inference.heights import ending_mass
from truesource.grammar.inference.log_masses import log_length_masses, log_sums
from truesource.grammar.inference.masses import SumConstraints, least_solution
from truesource.grammar.pcfg import PCFG
from truesource.grammar.rules import rule_order
from truesource.grammar.support.arrays import FloatArray
from truesource.grammar.support.errors import InputError
from truesource.grammar.tilting.patterns import expression_text
from truesource.grammar.tilting.product import BUDGET, Product, by_length, product
from truesource.grammar.tilting.rewards import Event, Reward, RewardAutomaton

SMALL = 1e-4  #: step of 1 / beta for derivatives


@dataclass(frozen=True, eq=False)
class TiltedGrammar:
    """A tilted grammar p*, with its reward and its divergence from p."""

    original: PCFG  #: p
    pcfg: PCFG  #: p*; ``meta["tilt"]`` is the `description`
    description: dict[str, object]  #: JSON values: kind, reward, beta, digest of the original
    log_z: float  #: ln of the sum of p(x) exp(r(x) / beta), nats; for an event, its log probability
    beta: float | None  #: None if an event is required, the limit of small beta
    _gain: tuple[FloatArray, FloatArray, FloatArray]  # gain of each rule of p*
    lengths: LengthRange | None = None  #: p* has only sentences of these lengths; None: all lengths of p

    def condition(self, lengths: LengthRange | None) -> LengthRange | None:
        """Return the range to condition p* on; None if it has only sentences of ``lengths``."""
        if lengths is None or self.lengths is None:
            return lengths
        return None if self.lengths.low in lengths and self.lengths.high in lengths else lengths

    def expected_reward(self, lengths: LengthRange | None = None) -> float:
        """Return E*[r], under p*, given ``lengths`` or not.

        Raises:
            InputError: as `expected_counts`.
        """
        if not any(gain.any() for gain in self._gain):
            return 0.0
        counts = expected_counts(self.pcfg, self.condition(lengths))
        uses = counts.binary, counts.unary, counts.lexical
        return float(sum(use @ gain for use, gain in zip(uses, self._gain, strict=True)))

    def log_partition(self, lengths: LengthRange | None = None) -> float:
        """Return ln E[exp(r / beta)] under p (given ``lengths``), nats: `log_z` if p sums to one."""
        before, after = _log_mass(self.original, lengths), _log_mass(self.pcfg, self.condition(lengths))
        return self.log_z + after - before

    def kl(self, lengths: LengthRange | None = None) -> float:
        """Return KL(p* || p), nats a sentence, given ``lengths`` or not: E*[r] / beta - ln E[exp(r / beta)].

        No distribution with the same expected reward is nearer to p (Kullback 1959; Korbak et al. 2022).

        Raises:
            InputError: as `expected_reward`.
        """
        earned = 0.0 if self.beta is None else self.expected_reward(lengths) / self.beta
        return max(0.0, earned - self.log_partition(lengths))

    def log_twists(self, prefixes: Sequence[Sequence[str]], lengths: LengthRange | None = None) -> FloatArray:
        """Return ln E[exp(r / beta) | prefix] under p, (n,) nats: the optimal twist of sequential Monte Carlo.

        It is -inf if p* has no sentence with the prefix. Twists are the values of an ideal value function (Zhao et al.
        2024).

        Raises:
            InputError: p has no sentence that begins with one of the prefixes.
        """
        below = np.array([self.original.prefix_log_prob(prefix, lengths) for prefix in prefixes])
        if not np.isfinite(below).all():
            wrong = prefixes[int(np.flatnonzero(~np.isfinite(below))[0])]
            raise InputError(f"no sentence of the grammar begins with {' '.join(wrong)!r}; choose another prefix")
        condition = self.condition(lengths)
        above = np.array([self.pcfg.prefix_log_prob(prefix, condition) for prefix in prefixes])
        return np.asarray(above - below + (self.log_z if lengths is None else self.log_partition(lengths)))


def _log_mass(pcfg: PCFG, lengths: LengthRange | None) -> float:
    """Return ln P(a sentence in the range), nats.

    Raises:
        InputError: there is no such sentence.
    """
    return math.log(pcfg.exact.total_mass) if lengths is None else pcfg.exact.log_range_mass(lengths)


class FrontierPoint(NamedTuple):
    """A point of the frontier: the largest reward at its divergence from p, or the least divergence at its reward."""

    beta: float | None  #: beta of the tilted grammar with both; None without a tilt, and if an event is required
    reward: float  #: E*[r]
    kl: float  #: KL(p* || p), nats a sentence


@dataclass(frozen=True, eq=False)
class Tilting:
    """A grammar and a reward, to be tilted by any beta; the product is built once.

    Raises:
        InputError: the reward names a word that is not in the grammar, the product has more than ``budget`` rules
            (code ``too-many-rules``), or no sentence satisfies the event.
    """

    pcfg: PCFG
    reward: Reward
    budget: int = BUDGET

    @cached_property
    def automaton(self) -> RewardAutomaton:
        """Reward over the words of the grammar."""
        return self.reward.automaton(self.pcfg)

    @cached_property
    def whole(self) -> Product:
        """All sentences."""
        ending_mass(self.pcfg)
        result = product(self.pcfg, self.automaton, budget=self.budget)
        assert result is not None, "a grammar has some sentence"
        return result

    def at(self, beta: float, lengths: LengthRange | None = None) -> TiltedGrammar:
        """Return p(x) exp(r(x) / beta) / Z; a negative beta favours sentences of little reward.

        If Z is infinite or beyond float64, or if sentences of ``lengths`` have almost no probability under p*, the
        result has only sentences of ``lengths``.

        Raises:
            InputError: beta is 0 or not finite; Z is infinite, too near to that, or beyond float64 (code
                ``infinite-sum``); or the grammar of ``lengths`` has too many rules (code ``too-many-rules``).
        """
        if not (math.isfinite(beta) and beta != 0.0):
            raise InputError(f"beta must be a finite number other than 0, got {beta}; to require an event, omit beta")
        description = {"kind": "reward", "reward": self.reward.spec, "beta": beta}
        return self._tilted(self.whole, 1.0 / beta, beta, description, lengths)

    def given(self, *, holds: bool = True, lengths: LengthRange | None = None) -> TiltedGrammar:
        """Return p(x | the event), or given that it does not hold; ln Z is its log probability.

        If the event is much less probable in sentences of ``lengths`` than in others, the result has only sentences of
        ``lengths``.

        Raises:
            InputError: the reward is no event, or has probability 0.
        """
        if not isinstance(self.reward, Event):
            raise InputError("only an event can be required (a count, a regular expression); give beta for a reward")
        rules = product(self.pcfg, self.automaton, (self.automaton.end > 0.0) == holds, self.budget)
        if rules is None:
            raise self._never("of the grammar", holds)
        description = {"kind": "event", "reward": self.reward.spec, "holds": holds}
        try:
            return self._tilted(rules, 0.0, None, description, lengths)
        except _NoSentenceError as error:
            raise self._never(f"with a length in {error.lengths}", holds) from error

    def _tilted(
        self, rules: Product, scale: float, beta: float | None, about: dict[str, object], lengths: LengthRange | None
    ) -> TiltedGrammar:
        constraints = _known_sums(self.pcfg, rules) if scale == 0.0 or not _earns_inside(rules) else None
        return _tilted_given(self.pcfg, rules, scale, beta, about, lengths, constraints, self.budget)

    def event_probability(self, lengths: LengthRange | None = None) -> float:
        """Return the exact probability of the event, given ``lengths`` or not.

        Raises:
            InputError: as `given`.
        """
        return min(1.0, math.exp(self._log_probability(True, lengths)))

    def _log_probability(self, holds: bool, lengths: LengthRange | None) -> float:
        """Return ln P(the event holds, or does not, given ``lengths``), nats."""
        return self.given(holds=holds, lengths=lengths).log_partition(lengths)

    def _never(self, where: str, holds: bool) -> InputError:
        verb = "satisfies" if holds else "fails"
        return InputError(f"no sentence {where} {verb} {expression_text(self.reward.spec)}; choose another event")

    def with_probability(self, probability: float, lengths: LengthRange | None = None) -> TiltedGrammar:
        """Return the tilt under which the event has this probability, given ``lengths`` or not.

        It is the distribution nearest to p with this property.

        Raises:
            InputError: the probability is not between 0 and 1, the event is certain, or as `given`.
        """
        if not 0.0 < probability < 1.0:
            raise InputError(f"a probability must be between 0 and 1, got {probability}; omit it to require the event")
        now, rest = (self._log_probability(holds, lengths) for holds in (True, False))
        log_odds = math.log(probability) - math.log1p(-probability) - (now - rest)
        if log_odds == 0.0:
            raise InputError(f"the event already has probability {probability}; choose another")
        description = {
            "kind": "probability",
            "reward": self.reward.spec,
            "beta": 1.0 / log_odds,
            "probability": probability,
            "lengths": None if lengths is None else str(lengths),
        }
        return self._tilted(self.whole, log_odds, 1.0 / log_odds, description, lengths)

    def frontier(self, lengths: LengthRange | None = None, points: int = 41) -> list[FrontierPoint]:
        """Return the exact frontier of reward and KL, from p itself upwards; no distribution is below it.

        For an event it ends at probability 1. For other rewards it ends where Z is infinite, which it never is given
        ``lengths``, or at 6 standard deviations of the reward by the first order of beta.

        Raises:
            InputError: as `at` and `TiltedGrammar.kl`.
        """
        if isinstance(self.reward, Event):
            odds = self.event_probability(lengths)
            if odds <= 0.0:
                log_odds = self._log_probability(True, lengths)
                raise InputError(f"the event has probability exp({log_odds:.6g}), too small for a frontier in float64")
            if odds >= 1.0:
                return [FrontierPoint(None, 1.0, 0.0)]
            return [_of_event(float(e), odds) for e in np.linspace(odds, 1.0, points)]
        mean, above = (self.at(1.0 / scale, lengths).expected_reward(lengths) for scale in (-SMALL, SMALL))
        spread = math.sqrt(max(above - mean, 0.0) / (2.0 * SMALL))
        if spread == 0.0:
            return [FrontierPoint(None, mean, 0.0)]
        frontier_points = [FrontierPoint(None, (mean + above) / 2.0, 0.0)]
        for scale in np.linspace(0.0, 6.0 / spread, points)[1:].tolist():
            try:
                tilted = self.at(1.0 / scale, lengths)
                frontier_points.append(FrontierPoint(tilted.beta, tilted.expected_reward(lengths), tilted.kl(lengths)))
            except InputError as error:
                if error.code not in ("infinite-sum", "too-many-rules", "input"):
                    raise
                break
        return frontier_points


def _of_event(probability: float, before: float) -> FrontierPoint:
    """Return the nearest distribution that gives an event a probability, from one with another probability."""
    kl, no, rest = binary_kl(probability, before), 1.0 - probability, 1.0 - before
    log_odds = math.log(probability / no) - math.log(before / rest) if no > 0.0 else 0.0
    return FrontierPoint(1.0 / log_odds if log_odds else None, probability, kl)


def binary_kl(one: float, other: float) -> float:
    """Return the KL of an event with two probabilities, nats; the frontier at q(E) = ``one``, p(E) = ``other``."""
    parts = ((one, other), (1.0 - one, 1.0 - other))
    if any(p > 0.0 and q <= 0.0 for p, q in parts):
        return math.inf
    return max(0.0, math.fsum(p * math.log(p / q) for p, q in parts if p > 0.0))


def tilt(pcfg: PCFG, reward: Reward, beta: float | None = None) -> TiltedGrammar:
    """Return a grammar tilted by a reward, or given an event if there is no ``beta``: see `Tilting`."""
    tilting = Tilting(pcfg, reward)
    return tilting.given() if beta is None else tilting.at(beta)


def power(pcfg: PCFG, exponent: float, lengths: LengthRange | None = None) -> TiltedGrammar:
    """Return derivations in proportion to p(derivation)^exponent; so are sentences, if they are unambiguous.

    The temperature of a decoder is different: it sharpens each next-word distribution separately. ``lengths`` are as in
    `Tilting.at`.

    Raises:
        InputError: the exponent is not above 0, or the sum is infinite (code ``infinite-sum``), as for many exponents
            below 1 without ``lengths``.
    """
    if not (math.isfinite(exponent) and exponent > 0.0):
        raise InputError(f"the exponent must be above 0, got {exponent}")
    same = Product(
        names=pcfg.symbols,
        copied=np.arange(len(pcfg.symbols)),
        binary=pcfg.binary,
        unary=pcfg.unary,
        lexical=pcfg.lexical,
        rule=(np.arange(len(pcfg.binary)), np.arange(len(pcfg.unary)), np.arange(len(pcfg.lexical))),
        gain=(pcfg.binary_logp, pcfg.unary_logp, pcfg.lexical_logp),
        start=pcfg.start,
    )
    beta = None if exponent == 1.0 else 1.0 / (exponent - 1.0)
    sums = (
        (lambda: SumConstraints(csr_matrix(identity(len(pcfg.symbols))), pcfg.exact.mass)) if exponent == 1.0 else None
    )
    description = {"kind": "power", "exponent": exponent}
    return _tilted_given(pcfg, same, exponent - 1.0, beta, description, lengths, sums, BUDGET)


class _NoSentenceError(Exception):
    """The rules have no sentence of some lengths."""

    def __init__(self, lengths: LengthRange) -> None:
        super().__init__(str(lengths))
        self.lengths = lengths


Constraints = Callable[[], SumConstraints]


def _tilted_given(
    pcfg: PCFG,
    rules: Product,
    scale: float,
    beta: float | None,
    description: dict[str, object],
    lengths: LengthRange | None,
    constraints: Constraints | None,
    budget: int,
) -> TiltedGrammar:
    """Return the grammar of all sentences if it has sentences of ``lengths``, else of those lengths only.

    Raises:
        InputError: as `_tilted`, and the grammar of those lengths has more rules than ``budget``.
        _NoSentenceError: the rules have no sentence of those lengths.
    """
    if lengths is None:
        return _tilted(pcfg, rules, scale, beta, description, constraints)
    try:
        tilted = _tilted(pcfg, rules, scale, beta, description, constraints)
        if _reaches(tilted.pcfg, lengths):
            return tilted
    except InputError as error:
        if error.code != "infinite-sum":
            raise
    logs = _log_weights(pcfg, rules, scale)
    lexical = log_sums(rules.lexical[:, 0], logs[2], len(rules.names))
    masses = log_length_masses(lengths.high, lexical, rules.binary, logs[0], rules.unary, logs[1])
    if masses is None:
        raise InputError(
            f"the sum of p(x) exp(r(x) / beta) is infinite also for sentences of {lengths} words, by unary rules that"
            " return to their symbol; choose weights nearer to the grammar's",
            code="infinite-sum",
        )
    layers = by_length(rules, masses, lengths, budget)
    if layers is None:
        pcfg.exact.log_range_mass(lengths)  # refuses lengths without sentences
        raise _NoSentenceError(lengths)
    assert layers.layers is not None, "products by length have layers"
    description = {**description, "lengths": str(lengths)}
    length, symbol = layers.layers
    log_mass = np.append(np.logaddexp.reduce(masses[lengths.low :, rules.start]), masses[length, symbol])
    logs = _log_weights(pcfg, layers, scale)
    return replace(_normalised(pcfg, layers, logs, log_mass, beta, description), lengths=lengths)


def _reaches(pcfg: PCFG, lengths: LengthRange) -> bool:
    """Return True if the lengths have a probability that float64 can divide by."""
    try:
        return pcfg.exact.range_mass(lengths) >= SMALLEST_MASS
    except InputError:
        return False


def _log_weights(pcfg: PCFG, rules: Product, scale: float) -> list[FloatArray]:
    """Return ln of p exp(scale gain) of each rule, of the three kinds, nats."""
    return [
        logp[rule] + scale * gain for (_, logp), rule, gain in zip(pcfg.tables(), rules.rule, rules.gain, strict=True)
    ]


def _tilted(
    pcfg: PCFG,
    rules: Product,
    scale: float,
    beta: float | None,
    description: dict[str, object],
    constraints: Constraints | None,
) -> TiltedGrammar:
    """Return the grammar of a product whose rules weigh p exp(scale gain).

    Raises:
        InputError: the total weight is infinite, or outside the range of float64.
    """
    logs = _log_weights(pcfg, rules, scale)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        weights = [np.exp(log) for log in logs]
        lexical = np.bincount(rules.lexical[:, 0], weights[2], len(rules.names)).astype(np.float64)
        mass = least_solution(lexical, rules.binary, weights[0], rules.unary, weights[1], constraints=constraints)
    if mass is None or not np.isfinite(mass).all():
        raise InputError(
            "the sum of p(x) exp(r(x) / beta) is infinite, or too large for float64; choose rewards nearer to 0, a beta"
            " further from it, or a range of lengths",
            code="infinite-sum",
        )
    if not (mass > 0.0).all():
        raise InputError(
            "parts of the sum of p(x) exp(r(x) / beta) are below 1e-308, too small for float64; choose rewards nearer"
            " to 0, a beta further from it, or a range of lengths"
            if scale != 0.0
            else "sentences of the event, or parts of them, have probabilities below 1e-308, too small for float64;"
            " choose another event, or a range of lengths",
            code="infinite-sum",
        )
    return _normalised(pcfg, rules, logs, np.log(mass), beta, description)


def _normalised(
    pcfg: PCFG,
    rules: Product,
    logs: list[FloatArray],
    log_mass: FloatArray,
    beta: float | None,
    description: dict[str, object],
) -> TiltedGrammar:
    """Return the grammar whose rules are weights divided by what their parents make; ``logs`` are changed."""
    a, b, c = rules.binary.T
    above, below = rules.unary.T
    for log, change in zip(
        logs,
        (log_mass[b] + log_mass[c] - log_mass[a], log_mass[below] - log_mass[above], -log_mass[rules.lexical[:, 0]]),
        strict=True,
    ):
        log += change
    produced = np.unique(rules.lexical[:, 1])
    words = np.stack([rules.lexical[:, 0], np.searchsorted(produced, rules.lexical[:, 1])], axis=1).astype(np.int32)
    description = {**description, "original": pcfg.digest}
    tilted = replace(
        pcfg,
        symbols=rules.names,
        labels=tuple(pcfg.labels[i] for i in rules.copied),
        vocabulary=tuple(pcfg.vocabulary[i] for i in produced),
        start=rules.start,
        binary=rules.binary,
        unary=rules.unary,
        lexical=words,
        **{
            f"{kind}_logp": np.minimum(log, 0.0) for kind, log in zip(("binary", "unary", "lexical"), logs, strict=True)
        },
        meta={**pcfg.meta, "tilt": description},
    )
    return TiltedGrammar(pcfg, tilted, description, float(log_mass[rules.start]), beta, _in_order(tilted, rules, words))


def _earns_inside(rules: Product) -> bool:
    """Return True if a rule below the start has a gain."""
    return any(
        gain[table[:, 0] != rules.start].any()
        for table, gain in zip((rules.binary, rules.unary, rules.lexical), rules.gain, strict=True)
    )


def _known_sums(pcfg: PCFG, rules: Product) -> Constraints:
    """Return the constraint that masses of copies sum to the mass of their symbol, if rules keep probabilities."""

    def constraints() -> SumConstraints:
        members = rules.partitions()
        first = members.indices[members.indptr[:-1]]
        return SumConstraints(members, pcfg.exact.mass[rules.copied[first]])

    return constraints


def _in_order(tilted: PCFG, rules: Product, words: Any) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the gain of each rule, in the order of the arrays of the tilted grammar, which sorts them."""
    gains = []
    for table, gain in zip((rules.binary, rules.unary, words), rules.gain, strict=True):
        gains.append(gain[rule_order(table)])
    return gains[0], gains[1], gains[2]
