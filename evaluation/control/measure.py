"""Decoding and tuning towards an event: the KL of each way, compared with the exact frontier."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from typing_extensions import override

from truesource.evaluation.control.steering import Steering, best_of
from truesource.evaluation.core.score import Key, Score, keyed
from truesource.evaluation.core.setting import Setting
from truesource.evaluation.core.signature import signature
from truesource.evaluation.core.transformed import require_order
from truesource.evaluation.divergence.means import Column, mean_scores, rows_kl, share_of
from truesource.evaluation.measures.bootstrap import ci_part, resampled_ratio
from truesource.generator.language_model import DistributionModel
from truesource.generator.model_checks import checked_distributions
from truesource.generator.sampler import Sampler
from truesource.grammar.support.arrays import FloatArray, random_state
from truesource.grammar.support.printable import ResultRecords
from truesource.grammar.tilting.rewards import Event
from truesource.grammar.tilting.tilt import binary_kl

AT_ONCE = 64  #: sentences of one length whose distributions are held together
SMALLEST = 1e-290  #: means of exponentials below this are inexact
STREAM = 11  #: of random numbers, of samples of the tilted truth


Sentences = Sequence[Sequence[str]]
Sample = Callable[[DistributionModel, int, int], Sentences]
Tune = Callable[[Callable[[Sentences], FloatArray], float], DistributionModel]


@dataclass(frozen=True, eq=False)
class Way:
    """One way to steer a distribution to an event.

    Its scores are ``satisfied``, the probability of the event; ``kl``, from the steered distribution, nats a sentence;
    ``excess``, the part of it above the frontier. For particle filters ``kl`` is an upper bound, and ``log_z`` their
    estimate of ln p(E). For models ``invalid`` is the share of sentences that the truth cannot make.
    """

    event: str
    name: str  #: frontier, best-of, filter, model or tuned
    at: float | None  #: samples, particles or beta
    scores: dict[str, Score]


@dataclass(frozen=True, eq=False)
class KlEstimate:
    """An estimator of KL from sampled sentences (Schulman 2020), of a tilted truth or of a tuned model."""

    event: str
    of: str  #: ``tilted`` or ``tuned``
    beta: float
    name: str  #: ``k1``, ``k2``, ``k3``, or ``expected``: the sum of KL position by position along the sentence
    scores: dict[str, Score]  #: ``mean``, and ``bias`` from the exact KL or the KL of ``expected``
    spread: float  #: standard deviation of one sentence, nats


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class ControlReading(ResultRecords):
    """Result of `control` for one model."""

    model: str
    objective: str
    ways: list[Way]
    estimators: list[KlEstimate]

    @override
    def as_scores(self) -> list[Score]:
        scores: list[Score] = []
        for way in self.ways:
            line: dict[str, Key] = {"by": "way", "event": way.event, "way": way.name, "at": way.at}
            scores += keyed(way.scores.values(), **line)
        for each in self.estimators:
            line = {"by": "estimator", "event": each.event, "of": each.of, "at": each.beta, "estimator": each.name}
            scores += keyed(each.scores.values(), **line, spread=each.spread)
        return keyed(scores, model=self.model, objective=self.objective)


def control(
    model: DistributionModel,
    setting: Setting,
    events: Sequence[Event],
    *,
    sample: Sample,
    candidates: Sequence[int] = (2, 4, 16, 64),
    particles: Sequence[int] = (1, 8),
    runs: int = 100,
    samples: int = 1000,
    prices: Sequence[float] = (),
    tune: Tune | None = None,
) -> ControlReading:
    """Steer the truth, and a model, to events, each in several ways.

    The truth is steered by the best of ``candidates`` samples, exactly, by locally masked decoding (one particle) and
    by particle filters. The model is measured unchanged, and tuned with a price ``beta`` on KL from the model itself.

    Args:
        model: causal, of words.
        setting: the truth, and its length condition.
        events: to steer to.
        sample: draws a number of sentences from a model, given a seed.
        candidates: numbers of samples from which the best is selected.
        particles: of each filter.
        runs: sentences of each filter.
        samples: sentences of each model.
        prices: values of beta to tune at; empty: no tuning.
        tune: gives the tuned model, from rewards and beta; needed with ``prices``.

    Raises:
        InputError: no sentence satisfies an event, or it names a word that the truth does not have.
    """
    require_order(setting.transform, "evaluate control")
    language = setting.full_oracle(model).grammar
    reading = ControlReading(model=model.name, objective=model.objective, ways=[], estimators=[])
    texts = sample(model, samples, setting.seed)
    for event in events:
        steered = _EventSteering(Steering(language, event, setting.lengths), model, setting)
        reading.ways.append(steered.frontier())
        reading.ways.extend(steered.best_of(n) for n in candidates)
        reading.ways.extend(steered.filters(n, runs) for n in particles)
        itself = steered.of_model("model", None, texts)
        reading.ways.append(itself)
        for beta in prices:
            assert tune is not None, "prices need a function that tunes"
            reading.estimators.extend(steered.of_tilted(beta, samples))
            tuned = tune(steered.rewards, beta)
            tuned_texts = sample(tuned, samples, setting.seed + 1)
            kl = KlDifference.between(tuned, model, tuned_texts)
            reading.ways.append(steered.of_model("tuned", beta, tuned_texts, kl.expected, itself))
            reading.estimators.extend(steered.estimators("tuned", beta, kl, None))
    return reading


@dataclass(frozen=True, eq=False)
class KlDifference:
    """Divergence of one model from another along sentences that it made, (n,) nats a sentence.

    With d the difference of the log probabilities of a token: the sum of d, of d^2 / 2, of exp(-d) - 1 + d; and of the
    KL of the distribution of the next token. The first and the last two have the mean KL(model || other).
    """

    k1: FloatArray
    k2: FloatArray
    k3: FloatArray
    expected: FloatArray | None  #: None if it was not computed

    @classmethod
    def of_tokens(cls, difference: FloatArray, sentence: Any, n: int, expected: FloatArray | None) -> KlDifference:
        """Build from per-token differences (T,) and sentence numbers (T,)."""
        sums = [
            np.bincount(sentence, values, n).astype(np.float64)
            for values in (difference, difference**2 / 2.0, np.expm1(-difference) + difference)
        ]
        return cls(sums[0], sums[1], sums[2], expected)

    @classmethod
    def between(cls, model: DistributionModel, other: DistributionModel, sentences: Sentences) -> KlDifference:
        """Measure along sentences sampled from ``model``; both have the same vocabulary."""
        place = {word: i for i, word in enumerate(model.vocabulary or ())}
        unknown, end = len(place), len(place) + 1
        by_length: dict[int, list[int]] = {}
        for i, sentence in enumerate(sentences):
            by_length.setdefault(len(sentence), []).append(i)
        differences, numbers, expected = [], [], np.zeros(len(sentences))
        for n, members in sorted(by_length.items()):
            if n == 0:
                continue
            for at in range(0, len(members), AT_ONCE):
                some = members[at : at + AT_ONCE]
                texts = [sentences[i] for i in some]
                for one, two in zip(*(checked_distributions(q, texts) for q in (model, other)), strict=True):
                    log_p, log_q = (_renormalised(each.log_prob) for each in (one, two))
                    here = [place.get(text[one.position], unknown) if one.position < n else end for text in texts]
                    rows = np.arange(len(some)), here
                    differences.append((log_p - log_q)[rows])
                    numbers.append(np.array(some))
                    expected[some] += rows_kl(log_p, log_q)
        return cls.of_tokens(np.concatenate(differences), np.concatenate(numbers), len(sentences), expected)


def _renormalised(log_prob: FloatArray) -> FloatArray:
    """Renormalise rows over the tokens that a sampler draws."""
    return np.asarray(log_prob - np.logaddexp.reduce(log_prob, axis=1, keepdims=True))


class _EventSteering:
    """One event, and ways to steer the truth and a model to it."""

    def __init__(self, steering: Steering, model: DistributionModel, setting: Setting) -> None:
        self._steering, self._seed = steering, setting.seed
        self._spec = steering.event.spec
        self._parts: dict[str, object] = {
            "given": "none" if steering.lengths is None else str(steering.lengths),
            "event": self._spec,
            "grammar": steering.pcfg.identity,
        }
        self._model = {**self._parts, "model": model.name}

    def rewards(self, sentences: Sentences) -> FloatArray:
        """Return 1 for each sentence that satisfies the event, else 0, (n,)."""
        return self._steering.satisfied(sentences).astype(np.float64)

    def _exact(self, name: str, value: float, parts: Mapping[str, object]) -> Score:
        return Score(name, value, signature({**self._parts, **parts, "estimator": "exact"}))

    def frontier(self) -> Way:
        """Return the truth given the event: the end of the frontier."""
        p = self._steering.probability
        kl = max(0.0, -self._log_probability())
        scores = {"probability": p, "satisfied": 1.0, "kl": kl, "excess": 0.0}
        return Way(self._spec, "frontier", None, {name: self._exact(name, value, {}) for name, value in scores.items()})

    def _log_probability(self) -> float:
        p = self._steering.probability
        return math.log(p) if p > 0.0 else self._steering.log_probability

    def best_of(self, n: int) -> Way:
        """Return the best of n samples of the truth."""
        best = best_of(n, self._steering.probability)
        scores = {"satisfied": best.probability, "kl": best.kl, "excess": 0.0}
        parts = {"steered": f"best-of-{n}"}
        return Way(self._spec, "best-of", n, {name: self._exact(name, value, parts) for name, value in scores.items()})

    def filters(self, particles: int, runs: int) -> Way:
        """Run particle filters, each of which makes one sentence."""
        guided = self._steering.filters(particles, runs, self._seed)
        parts = {**self._parts, "steered": f"filter-{particles}", "samples": runs, "unit": "nats/sentence"}
        parts |= {"ci": ci_part(runs, self._seed)}
        estimator = {"estimator": "exact" if particles == 1 else "upper-bound"}
        columns = {
            "kl": Column(-guided.log_z, estimator),
            "excess": Column(-guided.log_z + self._log_probability(), {**estimator, "may": "negative"}),
        }
        scores = mean_scores(columns, np.arange(runs), parts, self._seed)
        scores["satisfied"] = self._exact("satisfied", 1.0, {"steered": f"filter-{particles}"})
        top = 0.0 if np.exp(guided.log_z).mean() > SMALLEST else float(guided.log_z.max())
        z = np.exp(guided.log_z - top)
        low, high = resampled_ratio(z, np.ones(runs), seed=self._seed)
        ends = (top + math.log(low), top + math.log(high)) if math.isfinite(low) and low > 0.0 else (None, None)
        scores["log_z"] = Score("log_z", top + math.log(z.mean()), signature({**parts, "estimator": "unbiased"}), *ends)
        return Way(self._spec, "filter", particles, scores)

    def of_model(
        self, name: str, beta: float | None, texts: Sentences, kl: FloatArray | None = None, before: Way | None = None
    ) -> Way:
        """Score sentences sampled from a model, and its distance from the model ``before`` tuning."""
        parts = {**self._model, "steered": name if beta is None else f"{name}-{beta:g}", "samples": len(texts)}
        scores = {"satisfied": share_of("satisfied", self._steering.satisfied(texts), parts)}
        truth = self._steering.pcfg.exact.string_log_probs([sentence or [""] for sentence in texts])
        scores["invalid"] = share_of("invalid", ~np.isfinite(truth), parts)
        if kl is not None and before is not None:
            nats = {**parts, "unit": "nats/sentence", "ci": ci_part(len(kl), self._seed)}
            columns = {"kl": Column(kl, {"estimator": "expected"})}
            scores |= mean_scores(columns, np.arange(len(kl)), nats, self._seed)
            least = binary_kl(scores["satisfied"].value, before.scores["satisfied"].value)
            if math.isfinite(least):
                value = scores["kl"].value - least
                how = {**nats, "ci": "none/of-two-samples", "estimator": "plug-in"}
                scores["excess"] = Score("excess", value, signature(how))
        return Way(self._spec, name, beta, scores)

    def of_tilted(self, beta: float, samples: int) -> list[KlEstimate]:
        """Estimate the KL of the tilted truth, which is known."""
        truth, lengths = self._steering.pcfg, self._steering.lengths
        tilted = self._steering.tilting.at(beta, lengths)
        sampler = Sampler(tilted.pcfg, lengths)
        texts = sampler.sentences(sampler.draw(samples, random_state(self._seed, STREAM)))
        logs = [np.concatenate(pcfg.exact.causal_log_probs(texts, lengths)) for pcfg in (tilted.pcfg, truth)]
        sentence = np.repeat(np.arange(samples), [len(s) + 1 for s in texts])
        kl = KlDifference.of_tokens(logs[0] - logs[1], sentence, samples, None)
        return self.estimators("tilted", beta, kl, tilted.kl(lengths))

    def estimators(self, of: str, beta: float, kl: KlDifference, exact: float | None) -> list[KlEstimate]:
        """Average estimators of KL, with their bias from the exact KL or, without it, from `KlDifference.expected`."""
        estimates = []
        for name in ("k1", "k2", "k3", "expected"):
            values = getattr(kl, name)
            if values is None:
                continue
            parts = {**self._model, "steered": f"{of}-{beta:g}", "samples": len(values), "unit": "nats/sentence"}
            parts |= {"ci": ci_part(len(values), self._seed), "reference": "exact" if exact is not None else "expected"}
            right = exact if exact is not None else kl.expected
            column_parts = {"estimator": name, "may": "negative"}
            columns = {"mean": Column(values, column_parts)}
            if name != "expected":
                columns["bias"] = Column(np.asarray(values - right), column_parts)
            scores = mean_scores(columns, np.arange(len(values)), parts, self._seed)
            estimates.append(KlEstimate(self._spec, of, beta, name, scores, float(values.std(ddof=1))))
        return estimates
