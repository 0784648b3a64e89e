"""Random numbers of the kernels against the same generators in Python integers: seeds keep their promise."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
from scipy import stats

from truesource.generator._kernels import mixed_with, seeded, uniform, uniform_open
from truesource.grammar.support.arrays import random_state

MASK = 2**64 - 1


def xoshiro(state: list[int]) -> Iterator[tuple[int, int]]:
    """Words 0 and 3 of the state, step by step (Blackman & Vigna 2021)."""
    s = list(state)
    while True:
        yield s[0], s[3]
        t = (s[1] << 17) & MASK
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= t
        s[3] = ((s[3] << 45) | (s[3] >> 19)) & MASK


def splitmix(x: int) -> int:
    """One output of splitmix64 (Steele et al. 2014)."""
    z = (x + 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def test_uniform_is_xoshiro_with_added_words() -> None:
    state = random_state(1, 2, 3)
    words = xoshiro([int(x) for x in state])
    drawn = [uniform(state) for _ in range(20_000)]
    assert drawn[:500] == [((a >> 11) + (b >> 11)) % 2**53 / 2**53 for a, b in itertools.islice(words, 500)]
    assert stats.kstest(drawn, "uniform").pvalue > 1e-3
    assert abs(np.corrcoef(drawn[:-1], drawn[1:])[0, 1]) < 0.03


def test_the_open_interval_has_neither_end() -> None:
    state = random_state(4)
    words = xoshiro([int(x) for x in state])
    drawn = [uniform_open(state) for _ in range(500)]
    assert drawn == [(((a >> 12) + (b >> 12)) % 2**52 + 0.5) / 2**52 for a, b in itertools.islice(words, 500)]
    assert uniform_open(np.zeros(4, dtype=np.uint64)) == 2.0**-53
    assert uniform_open(np.array([MASK, 0, 0, 0], dtype=np.uint64)) == 1.0 - 2.0**-53


def test_states_are_made_by_splitmix() -> None:
    step, at = 0x9E3779B97F4A7C15, (7 + 3 * 0xBF58476D1CE4E5B9) & MASK
    assert seeded(7, 3).tolist() == [splitmix((at + i * step) & MASK) for i in range(4)]
    h = 0
    for value in (5, 0, MASK):
        assert int(mixed_with(np.uint64(h), np.uint64(value))) == splitmix(h ^ value)
        h = splitmix(h ^ value)
