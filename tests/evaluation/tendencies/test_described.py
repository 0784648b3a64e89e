"""Values of samples without a test: means, different words, Heaps' law of pairs, distances of types over lengths."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy import optimize

from truesource.evaluation.measures.monte_carlo import ChanceTest
from truesource.evaluation.tendencies import TendencySettings
from truesource.evaluation.tendencies.against_sample import against_sample
from truesource.evaluation.tendencies.measured import mean_distance
from truesource.evaluation.tendencies.truth import stopwords_among
from truesource.evaluation.tendencies.type_token import LengthDistances

FAST = TendencySettings({"stopwords": lambda words: stopwords_among(words, ["0", "1"])}, permutations=19, draws=19)


def text(seed: int, n: int, words: int = 25, high: int = 9) -> list[list[str]]:
    rng = np.random.default_rng(seed)
    p = 1 / np.arange(1, words + 1)
    return [[*map(str, rng.choice(words, int(rng.integers(3, high)), p=p / p.sum()))] for _ in range(n)]


@pytest.mark.long
def test_samples_and_the_text_they_are_compared_with_are_described() -> None:
    texts = {"mine": text(1, 300), "reference": text(2, 400, 30)}
    found = against_sample({"mine": texts["mine"]}, texts["reference"], FAST).findings
    for name, sentences in texts.items():
        value = {key: finding.score.value for key, finding in found[name].items()}
        assert value["length_mean"] == pytest.approx(np.mean([len(s) for s in sentences]))
        assert value["stopwords_mean"] == pytest.approx(np.mean([np.mean([w in "01" for w in s]) for s in sentences]))
        assert value["types_all"] == len({word for s in sentences for word in s})
        length = np.array([len(s) for s in sentences])
        pairs = np.array([len(set(pairwise(s))) for s in sentences])

        def slope(beta: float, u: np.ndarray = pairs, n: np.ndarray = length) -> float:
            return float(u @ np.log(n) - u.sum() / (n**beta).sum() * (n**beta @ np.log(n)))

        beta = optimize.brentq(slope, 0.1, 3.0)
        assert value["bigram_heaps_beta"] == pytest.approx(beta, abs=1e-6)
        assert value["bigram_heaps_alpha"] == pytest.approx(pairs.sum() / (length**beta).sum(), rel=1e-6)
        assert 0.0 < value["heaps_beta"] < 1.0 < value["heaps_alpha"]
    assert {"types_ks", "types_ks_growth", "types_ks_own_law"} <= found["mine"].keys()
    assert "types_ks" not in found["reference"]


def at(length: int, sentences: int, value: float, chance: float) -> LengthDistances:
    test = ChanceTest(value, 0.5, chance, 0.0, 1.0, 9)
    return LengthDistances(length, sentences, test, None, test)


def test_growth_is_over_what_chance_gives() -> None:
    rows = [at(3, 100, 0.2, 0.05), at(4, 300, 0.1, 0.05), at(5, 50, 0.4, 0.3), at(6, 25, 0.3, 0.3), at(7, 75, 0.5, 0.3)]
    mean, growth = mean_distance(rows, lambda row: row.to_reference)
    assert mean == pytest.approx((20 + 30 + 20 + 7.5 + 37.5) / 550)
    assert growth == pytest.approx(0.15 - (15 + 15) / 400)  # the middle length counts in neither half
    assert mean_distance(rows, lambda row: row.to_reference_law) == (None, None)
    assert mean_distance(rows[:1], lambda row: row.to_reference) == (0.2, None)
