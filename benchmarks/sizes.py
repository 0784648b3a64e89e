"""How often tests reject a true null hypothesis at .05, and a false one: simulation.

    python benchmarks/sizes.py [--repeats 2000]

Each row: a test, its rejections where there is no difference with the Monte Carlo interval that .05 should lie in, and
where there is a named one. Sentences have 10 tokens; in "recurring" ones every word comes twice.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
from scipy import stats

from truesource.evaluation.measures.discrete_tests import (
    against_exact,
    atoms,
    between,
    compare_words,
    mean_difference,
    permuted_words,
)
from truesource.evaluation.measures.integer_corpus import Encoded
from truesource.evaluation.measures.monte_carlo import p_value

LEVEL, WORDS, LENGTHS = 0.05, 50, np.arange(3, 13)
ZIPF = 1 / np.arange(1, WORDS + 1)
ZIPF /= ZIPF.sum()
PMF = stats.poisson.pmf(np.arange(10), 4.0)
PMF /= PMF.sum()
Draw = Callable[[np.random.Generator, bool], float]


def lengths(rng: np.random.Generator, n: int, shifted: bool) -> np.ndarray:
    """Lengths of sentences; the alternative is .3 tokens longer on average."""
    p = stats.poisson.pmf(np.arange(10), 4.3 if shifted else 4.0)
    return LENGTHS[rng.choice(10, n, p=p / p.sum())].astype(float)


def corpus(rng: np.random.Generator, n: int, times: int, shifted: bool) -> Encoded:
    """Sentences of 10 tokens; the alternative moves 3% of the words to the rarest one."""
    words = rng.choice(WORDS, (n, 10 // times), p=ZIPF)
    if shifted:
        words[rng.random(words.shape) < 0.03] = WORDS - 1
    return Encoded(np.repeat(words, times, axis=1).ravel(), np.full(n, 10), WORDS)


def one_sample(name: str) -> Draw:
    def draw(rng: np.random.Generator, shifted: bool) -> float:
        counts = np.bincount((lengths(rng, 500, shifted) - 3).astype(int), minlength=10)
        return against_exact(counts, PMF, draws=199, seed=int(rng.integers(2**31)))[name].p

    return draw


def scipys_ks(rng: np.random.Generator, shifted: bool) -> float:
    cdf = np.cumsum(PMF)
    return float(stats.ks_1samp(lengths(rng, 500, shifted), lambda x: cdf[np.clip(x.astype(int) - 3, 0, 9)]).pvalue)


def scipys_two_sample_ks(rng: np.random.Generator, shifted: bool) -> float:
    return float(stats.ks_2samp(lengths(rng, 500, False), lengths(rng, 500, shifted), method="asymp").pvalue)


def two_samples(name: str) -> Draw:
    def draw(rng: np.random.Generator, shifted: bool) -> float:
        values, (a, b) = atoms(lengths(rng, 500, False), lengths(rng, 500, shifted))
        seed = int(rng.integers(2**31))
        if name == "mean":
            return mean_difference(values, a, b, draws=199, seed=seed).test.p
        return between(a, b, draws=199, seed=seed)[name].p

    return draw


def words(name: str, times: int, unit: str) -> Draw:
    def draw(rng: np.random.Generator, shifted: bool) -> float:
        a, b = corpus(rng, 100, times, False), corpus(rng, 100, times, shifted)
        value = compare_words(a, b)[name]
        if unit == "sentences":
            return p_value(value, permuted_words(a, b, draws=99, seed=int(rng.integers(2**31)))[name])
        pooled = a.counts() + b.counts()
        dealt = rng.multivariate_hypergeometric(pooled, len(a.tokens), size=99, method="marginals")
        gap = np.abs(dealt / len(a.tokens) - (pooled - dealt) / len(b.tokens))
        return p_value(value, 0.5 * gap.sum(axis=1))

    return draw


TESTS: dict[str, Draw] = {
    "length, KS against the truth": one_sample("ks"),
    "length, total variation against the truth": one_sample("tv"),
    "length, KS of two samples": two_samples("ks"),
    "length, total variation of two samples": two_samples("tv"),
    "length, means of two samples": two_samples("mean"),
    "words, total variation, sentences permuted": words("tv", 1, "sentences"),
    "words, largest difference, sentences permuted": words("linf", 1, "sentences"),
    "rank-frequency KS, sentences permuted": words("rank_ks", 1, "sentences"),
    "recurring words, total variation, sentences permuted": words("tv", 2, "sentences"),
    "not ours: recurring words, tokens permuted": words("tv", 2, "tokens"),
    "not ours: scipy.stats.ks_1samp": scipys_ks,
    "not ours: scipy.stats.ks_2samp": scipys_two_sample_ks,
}


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--repeats", type=int, default=2000)
    repeats = arguments.parse_args().repeats
    low, high = (x / repeats for x in stats.binom.interval(0.95, repeats, LEVEL))
    print(f"95% Monte Carlo interval of a test of size {LEVEL}, {repeats:,} repeats: {low:.4f} to {high:.4f}\n")
    print("| test | rejects a true null | rejects the alternative |\n|---|---|---|")
    for number, (name, draw) in enumerate(TESTS.items()):
        shares = []
        for shifted in (False, True):
            rng = np.random.default_rng([number, shifted])
            shares.append(np.mean([draw(rng, shifted) <= LEVEL for _ in range(repeats)]))
        print(f"| {name} | {shares[0]:.4f} | {shares[1]:.3f} |", flush=True)


if __name__ == "__main__":
    main()
