"""Zipf's law on known laws, the numbers of the corrected paper, and slow references."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special, stats

from truesource.evaluation.tendencies.rank_frequency import by_own_rank, by_rank_of, fit_infinite, rank_frequency
from truesource.grammar.support.errors import InputError


def test_ranks() -> None:
    assert by_own_rank(np.array([2, 0, 7, 3])).tolist() == [7, 3, 2]
    counts, known = np.array([5, 0, 9, 1]), np.array([0.3, 0.6, 0.0, 0.1])
    assert by_rank_of(counts, known).tolist() == [0, 5, 1]


def test_a_perfect_law_of_10000_words_fits_the_finite_law_and_not_the_infinite_one() -> None:
    """s = 1 over 10,000 ranks: the published recipe gives s = 1.2055 and D = .153 (the finite law 1 and 0)."""
    law = 1.0 / np.arange(1, 10_001)
    law /= law.sum()
    exact = rank_frequency(law, law)
    assert exact.exponent == pytest.approx(1.0, abs=1e-8)
    assert exact.to_own_law == pytest.approx(0.0, abs=1e-8)
    assert exact.to_reference == 0.0
    paper = rank_frequency(law, law, variant="paper")
    assert paper.exponent == pytest.approx(1.2055, abs=5e-5)
    assert paper.to_own_law == pytest.approx(0.153, abs=5e-4)


def test_mass_beyond_rank_10000_of_the_published_exponent() -> None:
    """.14214 for s = 1.1997: five cells of the published table are this number."""
    beyond = special.zeta(1.1997, 10_001) / special.zeta(1.1997)
    assert beyond == pytest.approx(0.14214, abs=5e-6)


def test_the_infinite_law_is_found_again() -> None:
    sample = stats.zipf(1.7).rvs(40_000, random_state=np.random.default_rng(0))
    counts = np.bincount(sample[sample < 10**6])[1:]
    s = fit_infinite(counts)
    log = np.log(np.arange(1, len(counts) + 1)) @ counts / counts.sum()
    derivative = (np.log(special.zeta(s + 1e-6)) - np.log(special.zeta(s - 1e-6))) / 2e-6
    assert derivative == pytest.approx(-log, rel=1e-4)
    assert s == pytest.approx(1.7, abs=0.03)


def test_distances_by_loops() -> None:
    sample, reference = np.array([9, 4, 0, 2]), np.array([0.5, 0.25, 0.15, 0.07, 0.03])
    found = rank_frequency(sample, reference)
    weight = [k**-found.reference_exponent for k in range(1, 6)]
    far = own = 0.0
    for r in range(1, 6):
        f = sum(sample[:r]) / 15
        own = max(own, abs(f - sum(reference[:r])))
        far = max(far, abs(f - sum(weight[:r]) / sum(weight)))
    assert found.to_reference == pytest.approx(own, abs=1e-12)
    assert found.to_reference_law == pytest.approx(far, abs=1e-12)
    assert found.ranks == 5


def test_one_word_has_no_law() -> None:
    with pytest.raises(InputError, match="two different words"):
        fit_infinite(np.array([5]))
    with pytest.raises(InputError, match="different words"):
        rank_frequency(np.array([5]), np.array([5, 4, 3]))
