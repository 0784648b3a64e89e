"""Particle filters and best-of-n against enumeration, and estimators of KL against the exact one."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from reference_inference import all_strings, rules_of

from truesource.evaluation.control.measure import KlDifference, _EventSteering, control
from truesource.evaluation.control.steering import Steering, best_of
from truesource.evaluation.core.setting import Setting
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.errors import InputError
from truesource.grammar.tilting.rewards import Count, Pattern
from truesource.grammar.tilting.tilt import binary_kl

GRAMMAR = PCFG.from_text("S -> S S 0.2 | A 0.3 | b 0.5\nA -> a A 0.4 | c 0.6")
RANGE = LengthRange(1, 4)
EVENT = Count(("c",), 2, 2)


def law() -> dict[tuple[str, ...], float]:
    tables = all_strings(rules_of(GRAMMAR), RANGE.high)["S"][RANGE.low :]
    z = math.fsum(p for table in tables for p in table.values())
    return {s: p / z for table in tables for s, p in table.items()}


def holds(s: tuple[str, ...]) -> bool:
    return s.count("c") == 2


def masked_law() -> dict[tuple[str, ...], float]:
    """What locally masked decoding makes: each word by the law of those that leave the event possible."""
    p = law()

    def mass(prefix: tuple[str, ...], among: list[tuple[str, ...]]) -> float:
        return math.fsum(p[s] for s in among if s[: len(prefix)] == prefix)

    every, good = list(p), [s for s in p if holds(s)]
    result = {}
    for s in good:
        q = 1.0
        for i in range(len(s) + 1):
            here = s[:i]
            options = {w: mass((*here, w), every) for w in "abc" if mass((*here, w), good) > 0.0}
            if here in good:
                options["end"] = p[here]
            chosen = options[s[i]] if i < len(s) else options["end"]
            q *= chosen / math.fsum(options.values())
        result[s] = q
    assert math.fsum(result.values()) == pytest.approx(1.0)
    return result


@pytest.mark.long
def test_one_particle_is_locally_masked_decoding() -> None:
    steering, q, p = Steering(GRAMMAR, EVENT, RANGE), masked_law(), law()
    assert steering.probability == pytest.approx(math.fsum(v for s, v in p.items() if holds(s)), abs=1e-12)
    found = steering.filters(1, 3000, seed=4)
    seen = Counter(map(tuple, found.sentences))
    assert set(seen) <= set(q)
    for s, probability in q.items():
        assert abs(seen[s] / 3000 - probability) < 4.5 * math.sqrt(probability * (1 - probability) / 3000) + 1e-12
    kl = math.fsum(v * math.log(v / p[s]) for s, v in q.items())
    spread = found.log_z.std(ddof=1) / math.sqrt(3000)
    assert abs(-found.log_z.mean() - kl) < 4 * spread
    for s, estimate in zip(map(tuple, found.sentences), found.log_z, strict=True):
        assert math.log(q[s] / p[s]) == pytest.approx(-estimate, abs=1e-9)


@pytest.mark.long
@pytest.mark.parametrize(("particles", "nearer"), [(2, 0.9), (6, 0.6)])
def test_filters_are_unbiased_and_come_nearer_to_the_truth_given_the_event(particles: int, nearer: float) -> None:
    steering, p = Steering(GRAMMAR, EVENT, RANGE), law()
    found = steering.filters(particles, 1500, seed=7)
    z = np.exp(found.log_z)
    assert abs(z.mean() - steering.probability) < 4 * z.std(ddof=1) / math.sqrt(1500)
    right = {s: v / steering.probability for s, v in p.items() if holds(s)}
    seen = Counter(map(tuple, found.sentences))

    def distance(q: dict[tuple[str, ...], float]) -> float:
        return sum(abs(q.get(s, 0.0) - v) for s, v in right.items()) / 2

    assert distance({s: n / 1500 for s, n in seen.items()}) < nearer * distance(masked_law())
    assert -found.log_z.mean() > -math.log(steering.probability)


def test_best_of_n_is_on_the_frontier() -> None:
    """By enumeration of all pairs of samples; the first that satisfies the event is kept, else the first."""
    p = law()
    q: Counter[tuple[str, ...]] = Counter()
    for one, v in p.items():
        for two, w in p.items():
            q[two if holds(two) and not holds(one) else one] += v * w
    steering = Steering(GRAMMAR, EVENT, RANGE)
    found = best_of(2, steering.probability)
    assert found.probability == pytest.approx(math.fsum(v for s, v in q.items() if holds(s)), abs=1e-12)
    assert found.kl == pytest.approx(math.fsum(v * math.log(v / p[s]) for s, v in q.items()), abs=1e-12)
    tilted = steering.tilting.with_probability
    unconditioned = Steering(GRAMMAR, EVENT)
    again = best_of(5, unconditioned.probability)
    assert again.kl == pytest.approx(tilted(again.probability).kl(), abs=1e-12)
    assert best_of(3, 1.0) == (1.0, 0.0) and binary_kl(0.5, 0.0) == math.inf and binary_kl(0.0, 0.25) > 0.0


class Laws:
    """A model whose law of the next word depends on the last word alone."""

    objective, vocabulary = "causal", ("a", "b", "c")

    def __init__(self, name: str, seed: int, sharpness: float) -> None:
        rng = np.random.default_rng(seed)
        self.name = name
        table = rng.dirichlet(np.ones(5), 4) ** sharpness
        table[:, 3] = 0.0  # <unk>
        self.table = table / table.sum(axis=1, keepdims=True)

    def score(self, sentences, frame):
        raise NotImplementedError

    def distributions(self, sentences):
        from truesource.generator.language_model import LogDistributions

        before = [["", *s] for s in sentences]
        for t in range(len(sentences[0]) + 1):
            rows = [("abc".index(b[t]) if b[t] else 3) for b in before]
            with np.errstate(divide="ignore"):
                yield LogDistributions(t, np.log(np.maximum(self.table[rows], 1e-300)))

    def sample(self, n: int, seed: int) -> list[list[str]]:
        rng = np.random.default_rng(seed)
        result = []
        for _ in range(n):
            text: list[str] = []
            row = 3
            while len(text) < 30 and (k := int(rng.choice(5, p=self.table[row]))) != 4:
                text.append("abc"[k])
                row = k
            result.append(text)
        return [text for text in result if text]


@pytest.mark.long
def test_estimators_of_kl_have_the_mean_that_they_estimate() -> None:
    one, other = Laws("one", 1, 1.0), Laws("other", 2, 1.0)
    transition = one.table[:, :3][[0, 1, 2, 3]]
    visits = np.linalg.solve(np.eye(4) - np.pad(transition, ((0, 0), (0, 1))).T, np.array([0.0, 0, 0, 1]))
    here = np.where(
        one.table > 0, one.table * np.log(np.maximum(one.table, 1e-300) / np.maximum(other.table, 1e-300)), 0.0
    )
    kl = float(visits @ here.sum(axis=1))
    texts = one.sample(4000, seed=3)
    apart = KlDifference.between(one, other, texts)  # type: ignore[arg-type]
    empty = one.table[3, 4]  # of the empty sentence, which is left out
    missing = empty * (math.log(one.table[3, 4] / other.table[3, 4]))
    for values, lost in ((apart.k1, missing), (apart.expected, empty * here[3].sum())):
        mean, error = values.mean() * (1 - empty) + lost, values.std(ddof=1) / math.sqrt(len(values))
        assert abs(mean - kl) < 4 * error
    assert apart.expected.std() < apart.k1.std()


@pytest.mark.long
def test_a_model_and_its_tuned_copy_are_measured() -> None:
    model = Laws("model", 1, 1.0)
    setting = Setting(GRAMMAR, [["b"]], None)
    tuned = Laws("tuned", 1, 1.3)
    found = control(
        model,  # type: ignore[arg-type]
        setting,
        [EVENT],
        sample=lambda drawn, n, seed: drawn.sample(n, seed),  # type: ignore[attr-defined]
        candidates=(2,),
        particles=(1,),
        runs=40,
        samples=400,
        prices=(0.5,),
        tune=lambda rewards, beta: tuned,  # type: ignore[arg-type, return-value]
    )
    ways = {(way.name, way.at): way.scores for way in found.ways}
    assert set(ways) == {("frontier", None), ("best-of", 2), ("filter", 1), ("model", None), ("tuned", 0.5)}
    end = ways["frontier", None]
    assert end["kl"].value == pytest.approx(-math.log(end["probability"].value))
    assert ways["filter", 1]["kl"].low is not None and ways["tuned", 0.5]["kl"].value > 0.0
    exact = {each.name: each.scores for each in found.estimators if each.of == "tilted"}
    assert set(exact) == {"k1", "k2", "k3"}
    for name in ("k1", "k3"):  # unbiased: the interval of the bias holds 0, but one time in twenty
        bias = exact[name]["bias"]
        assert bias.low - 0.5 * (bias.high - bias.low) < 0.0 < bias.high + 0.5 * (bias.high - bias.low)
    assert len(found.records()) == len(
        {(r.get("way"), r.get("of"), r.get("estimator"), r["at"], r["name"]) for r in found.records()}
    )


def test_an_event_that_cannot_be_is_refused() -> None:
    with pytest.raises(InputError, match="no sentence"):
        Steering(GRAMMAR, Pattern("c c b b a"))
    with pytest.raises(InputError):
        Steering(GRAMMAR, Pattern("b b b b b"), LengthRange(1, 4))
    assert Steering(GRAMMAR, EVENT).satisfied([["c", "c"], ["c"], ["zebra", "c", "c"]]).tolist() == [True, False, False]


def test_an_event_below_the_smallest_float_has_its_logarithm() -> None:
    """Three times a rare word has ln p = 3 ln 1e-150 and a little."""
    grammar = PCFG.from_text("S -> a S 1e-150 | b 1.0")
    with pytest.raises(InputError, match="sentences of the event, or parts of them, have probabilities below 1e-308"):
        Steering(grammar, Count(("a",), 3, 3))
    steering = Steering(grammar, Count(("a",), 3, 3), LengthRange(1, 4))
    assert steering.log_probability == pytest.approx(3 * math.log(1e-150), abs=1e-10)
    assert steering.probability == 0.0
    steered = _EventSteering(steering, Laws("one", 1, 1.0), Setting(grammar, [["b"]], LengthRange(1, 4)))
    assert steered.frontier().scores["kl"].value == pytest.approx(-3 * math.log(1e-150), abs=1e-10)
    assert steered.best_of(4).scores["satisfied"].value == 0.0
    found = steered.filters(2, 5).scores
    assert found["log_z"].value == pytest.approx(3 * math.log(1e-150), abs=1e-10)
    assert found["excess"].value == pytest.approx(0.0, abs=1e-10)
    with pytest.raises(InputError, match=r"the event has probability exp\(-1036\.16\), too small for a frontier"):
        steering.tilting.frontier(LengthRange(1, 4))
