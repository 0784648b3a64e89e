"""Tilted truths: p(x) exp(r(x) / beta) / Z as a grammar, with Z, what the tilt earns and what it costs, all exact.

With h_A the total weight of what A makes under the tilted weights, p(A -> B C) h_B h_C / h_A is a grammar again
(Chi 1999; Nederhof & Satta 2003), so that sampling, bounds and every other exact question work on it unchanged.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from truesource.grammar.conditioning import LengthRange
from truesource.grammar.inference.expected import ending_mass, expected_counts
from truesource.grammar.inference.masses import least_solution
from truesource.grammar.pcfg import PCFG
from truesource.grammar.rules import rule_order
from truesource.grammar.support.arrays import FloatArray
from truesource.grammar.support.errors import InputError
from truesource.grammar.tilting.product import BUDGET, Product, product
from truesource.grammar.tilting.rewards import Event, Reward, RewardAutomaton

SMALL = 1e-4  #: of 1 / beta, for derivatives


@dataclass(frozen=True, eq=False)
class Tilted:
    """A tilted grammar p*, and what it is worth beside p."""

    original: PCFG  #: p
    pcfg: PCFG  #: p*; ``meta["tilt"]`` is the `description`
    description: dict[str, Any]  #: JSON values: kind, reward, beta, digest of the original
    log_z: float  #: ln of the sum of p(x) exp(r(x) / beta), nats; of an event, its log probability
    beta: float | None  #: None where an event is required, which is the limit of small beta
    _gain: tuple[FloatArray, FloatArray, FloatArray]  # what each rule of p* earns

    def expected_reward(self, lengths: LengthRange | None = None) -> float:
        """E*[r], under p*, given ``lengths`` or not.

        Raises:
            InputError: as `expected_counts`.
        """
        if not any(gain.any() for gain in self._gain):
            return 0.0
        counts = expected_counts(self.pcfg, lengths)
        uses = counts.binary, counts.unary, counts.lexical
        return float(sum(use @ gain for use, gain in zip(uses, self._gain, strict=True)))

    def log_partition(self, lengths: LengthRange | None = None) -> float:
        """Ln E[exp(r / beta)] under p (given ``lengths``), nats: `log_z` where p sums to one."""
        before, after = (_log_mass(pcfg, lengths) for pcfg in (self.original, self.pcfg))
        return self.log_z + after - before

    def kl(self, lengths: LengthRange | None = None) -> float:
        """KL(p* || p), nats a sentence, given ``lengths`` or not: E*[r] / beta - ln E[exp(r / beta)].

        No distribution with the same expected reward is nearer to p (Kullback 1959; Korbak et al. 2022).

        Raises:
            InputError: as `expected_reward`.
        """
        earned = 0.0 if self.beta is None else self.expected_reward(lengths) / self.beta
        return max(0.0, earned - self.log_partition(lengths))

    def log_twists(self, prefixes: Sequence[Sequence[str]], lengths: LengthRange | None = None) -> FloatArray:
        """Ln E[exp(r / beta) | prefix] under p, (n,) nats: the optimal twist of sequential Monte Carlo.

        It is -inf where no sentence that p* can make begins so. Twists are what an ideal value function knows
        (Zhao et al. 2024).

        Raises:
            InputError: p makes no sentence that begins with one of the prefixes.
        """
        below = np.array([self.original.prefix_log_prob(prefix, lengths) for prefix in prefixes])
        if not np.isfinite(below).all():
            wrong = prefixes[int(np.flatnonzero(~np.isfinite(below))[0])]
            raise InputError(f"no sentence of the grammar begins with {' '.join(wrong)!r}; choose another prefix")
        above = np.array([self.pcfg.prefix_log_prob(prefix, lengths) for prefix in prefixes])
        return np.asarray(above - below + (self.log_z if lengths is None else self.log_partition(lengths)))


def _log_mass(pcfg: PCFG, lengths: LengthRange | None) -> float:
    """Ln P(a sentence of the range), nats.

    Raises:
        InputError: there is none.
    """
    return math.log(pcfg.exact.total_mass if lengths is None else pcfg.exact.range_mass(lengths))


class FrontierPoint(NamedTuple):
    """The most reward that a distribution can have at its distance from p, or the least distance at its reward."""

    beta: float | None  #: of the tilted grammar that has both; None without a tilt, and where an event is required
    reward: float  #: E*[r]
    kl: float  #: KL(p* || p), nats a sentence


@dataclass(frozen=True, eq=False)
class Tilting:
    """A grammar and a reward, ready to be tilted by any beta: the product is made once.

    Raises:
        InputError: the reward names a word that the grammar does not have, the product has more than ``budget`` rules
            (code ``too-many-rules``), or no sentence satisfies the event.
    """

    pcfg: PCFG
    reward: Reward
    budget: int = BUDGET

    @cached_property
    def automaton(self) -> RewardAutomaton:
        """The reward over the words of the grammar."""
        return self.reward.automaton(self.pcfg)

    @cached_property
    def whole(self) -> Product:
        """All sentences."""
        ending_mass(self.pcfg)
        result = product(self.pcfg, self.automaton, budget=self.budget)
        assert result is not None, "a grammar makes some sentence"
        return result

    def at(self, beta: float) -> Tilted:
        """p(x) exp(r(x) / beta) / Z; negative where sentences of little reward are wanted.

        Raises:
            InputError: beta is 0 or not finite, or Z is infinite or beyond float64 (code ``infinite-sum``).
        """
        if not (math.isfinite(beta) and beta != 0.0):
            raise InputError(f"beta is a number other than 0, got {beta}; require an event by leaving beta out")
        description = {"kind": "reward", "reward": self.reward.spec, "beta": beta}
        return _tilted(self.pcfg, self.whole, 1.0 / beta, beta, description)

    def given(self, *, holds: bool = True) -> Tilted:
        """p(x | the event), or given that it does not hold; ln Z is its log probability.

        Raises:
            InputError: the reward is no event, or has probability 0.
        """
        if not isinstance(self.reward, Event):
            raise InputError("only an event can be required (a count, a regular expression); give beta for a reward")
        found = product(self.pcfg, self.automaton, (self.automaton.end > 0.0) == holds, self.budget)
        if found is None:
            raise self._never("of the grammar", holds)
        return _tilted(self.pcfg, found, 0.0, None, {"kind": "event", "reward": self.reward.spec, "holds": holds})

    def event_probability(self, lengths: LengthRange | None = None) -> float:
        """Exact probability of the event, given ``lengths`` or not.

        Raises:
            InputError: as `given`.
        """
        return min(1.0, math.exp(self._log_probability(True, lengths)))

    def _log_probability(self, holds: bool, lengths: LengthRange | None) -> float:
        """Ln P(the event holds, or does not, given ``lengths``), nats."""
        given = self.given(holds=holds)
        if lengths is not None and not given.pcfg.exact.length_pmf(lengths.high)[lengths.low :].any():
            self.pcfg.exact.range_mass(lengths)
            raise self._never(f"with a length in {lengths}", holds)
        return given.log_partition(lengths)

    def _never(self, where: str, holds: bool) -> InputError:
        wanted = "satisfies" if holds else "fails"
        return InputError(f"no sentence {where} {wanted} {self.reward.spec!r}; choose another event")

    def with_probability(self, probability: float, lengths: LengthRange | None = None) -> Tilted:
        """The tilt under which the event has this probability, given ``lengths`` or not.

        It is the nearest distribution to p of which that is true.

        Raises:
            InputError: the probability is not between 0 and 1, the event is certain, or as `given`.
        """
        if not 0.0 < probability < 1.0:
            raise InputError(f"a probability is between 0 and 1, got {probability}; leave it out to require the event")
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
        return _tilted(self.pcfg, self.whole, log_odds, 1.0 / log_odds, description)

    def frontier(self, lengths: LengthRange | None = None, points: int = 41) -> list[FrontierPoint]:
        """The exact frontier of reward and KL, from p itself upwards; no distribution lies below it.

        Of an event it ends where the event is certain. Of other rewards it ends where Z is infinite, or at 6 standard
        deviations of the reward by the first order of beta.

        Raises:
            InputError: as `at` and `Tilted.kl`.
        """
        if isinstance(self.reward, Event):
            odds = self.event_probability(lengths)
            if odds >= 1.0:
                return [FrontierPoint(None, 1.0, 0.0)]
            return [_of_event(float(e), odds) for e in np.linspace(odds, 1.0, points)]
        mean, above = (self.at(1.0 / scale).expected_reward(lengths) for scale in (-SMALL, SMALL))
        spread = math.sqrt(max(above - mean, 0.0) / (2.0 * SMALL))
        if spread == 0.0:
            return [FrontierPoint(None, mean, 0.0)]
        found = [FrontierPoint(None, (mean + above) / 2.0, 0.0)]
        for scale in np.linspace(0.0, 6.0 / spread, points)[1:].tolist():
            try:
                tilted = self.at(1.0 / scale)
                found.append(FrontierPoint(tilted.beta, tilted.expected_reward(lengths), tilted.kl(lengths)))
            except InputError as error:
                if error.code not in ("infinite-sum", "input"):
                    raise
                break
        return found


def _of_event(probability: float, before: float) -> FrontierPoint:
    """The nearest distribution that gives an event a probability, from one that gives it another."""
    kl, no, rest = binary_kl(probability, before), 1.0 - probability, 1.0 - before
    log_odds = math.log(probability / no) - math.log(before / rest) if no > 0.0 else 0.0
    return FrontierPoint(1.0 / log_odds if log_odds else None, probability, kl)


def binary_kl(one: float, other: float) -> float:
    """KL of an event with two probabilities, nats; the frontier at q(E) = ``one`` where p(E) = ``other``."""
    parts = ((one, other), (1.0 - one, 1.0 - other))
    if any(p > 0.0 and q <= 0.0 for p, q in parts):
        return math.inf
    return max(0.0, math.fsum(p * math.log(p / q) for p, q in parts if p > 0.0))


def tilt(pcfg: PCFG, reward: Reward, beta: float | None = None) -> Tilted:
    """A grammar tilted by a reward, or given an event where there is no ``beta``: see `Tilting`."""
    tilting = Tilting(pcfg, reward)
    return tilting.given() if beta is None else tilting.at(beta)


def power(pcfg: PCFG, exponent: float) -> Tilted:
    """Derivations in proportion to p(derivation)^exponent; sentences so, where none has two derivations.

    That is not what the temperature of a decoder does, which sharpens each next word by itself.

    Raises:
        InputError: the exponent is not above 0, or the sum is infinite (code ``infinite-sum``), as it is for many
            exponents below 1.
    """
    if not (math.isfinite(exponent) and exponent > 0.0):
        raise InputError(f"an exponent is a number above 0, got {exponent}")
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
    return _tilted(pcfg, same, exponent - 1.0, beta, {"kind": "power", "exponent": exponent})


def _tilted(pcfg: PCFG, rules: Product, scale: float, beta: float | None, description: dict[str, Any]) -> Tilted:
    """The grammar of a product whose rules weigh p exp(scale gain).

    Raises:
        InputError: the total weight is infinite, or outside the range of float64.
    """
    logs = [
        logp[rule] + scale * gain for (_, logp), rule, gain in zip(pcfg.tables(), rules.rule, rules.gain, strict=True)
    ]
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        weights = [np.exp(log) for log in logs]
        lexical = np.bincount(rules.lexical[:, 0], weights[2], len(rules.names)).astype(np.float64)
        mass = least_solution(lexical, rules.binary, weights[0], rules.unary, weights[1])
    if mass is None or not ((mass > 0.0) & np.isfinite(mass)).all():
        raise InputError(
            "the sum of p(x) exp(r(x) / beta) is infinite, or too large or small for float64; choose rewards"
            " nearer to 0, or a beta further from it",
            code="infinite-sum",
        )
    log_mass = np.log(mass)
    a, b, c = rules.binary.T
    above, below = rules.unary.T
    for log, change in zip(
        logs,
        (log_mass[b] + log_mass[c] - log_mass[a], log_mass[below] - log_mass[above], -log_mass[rules.lexical[:, 0]]),
        strict=True,
    ):
        log += change
    made = np.unique(rules.lexical[:, 1])
    words = np.stack([rules.lexical[:, 0], np.searchsorted(made, rules.lexical[:, 1])], axis=1).astype(np.int32)
    description = {**description, "original": pcfg.digest}
    tilted = replace(
        pcfg,
        symbols=rules.names,
        labels=tuple(pcfg.labels[i] for i in rules.copied),
        terminals=tuple(pcfg.terminals[i] for i in made),
        start=rules.start,
        binary=rules.binary,
        unary=rules.unary,
        lexical=words,
        **{
            f"{kind}_logp": np.minimum(log, 0.0) for kind, log in zip(("binary", "unary", "lexical"), logs, strict=True)
        },
        meta={**pcfg.meta, "tilt": description},
    )
    return Tilted(pcfg, tilted, description, float(log_mass[rules.start]), beta, _in_order(tilted, rules, words))


def _in_order(tilted: PCFG, rules: Product, words: Any) -> tuple[FloatArray, FloatArray, FloatArray]:
    """What each rule earns, in the order of the arrays of the tilted grammar, which sorts them."""
    gains = []
    for table, gain in zip((rules.binary, rules.unary, words), rules.gain, strict=True):
        gains.append(gain[rule_order(table)])
    return gains[0], gains[1], gains[2]
