"""How often 95% intervals of the difference of two models hold, and how often equal models are told apart.

    python benchmarks/coverage_models.py [--replications 300] [--seeds 1 2 3 5] [--sizes 100 1000 5000] [--only TEXT]

Every replication samples sentences of an unambiguous grammar, and K seeds of two models: the grammar with other
probabilities, which a seed draws from a Dirichlet distribution around the centre of its model. So ln P - ln Q of a
sentence is linear in its counts of rules, and the difference of the expected KL is known in closed form: for given
seeds from the expected counts, over all seeds with E ln q = digamma(c q) - digamma(c). For the size, both models have
one centre; with one seed, the second has the probabilities of the first with equally probable words exchanged.

Holds: share of intervals with the true difference. Size: share of tests at 0.05 that find one where there is none.
Cells of the method in use (marked *) that are certainly (95%) outside 0.93 to 0.97, or above 0.07, have (!).
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import digamma
from scipy.stats import binomtest

from truesource.evaluation.measures.bootstrap import resampled_ratio, resampled_sums
from truesource.evaluation.measures.contrast import SeedSums, difference
from truesource.generator.sampler import Sampler
from truesource.grammar.inference.expected import expected_counts
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import FloatArray, IntArray, random_state

METHODS = ("sentences", "clusters", "parts *")
WANTED, LARGEST_SIZE = (0.93, 0.97), 0.07
REPLICATES = 500  #: of the bootstrap of clusters
NOUNS = 24


def grammar() -> PCFG:
    """Rules of which each sentence has one derivation; nouns are equally probable in pairs."""

    def words(letter: str, n: int, mass: float = 1.0, twins: bool = False) -> str:
        weights = [1.0 / (1 + i // 2 if twins else 1 + i) for i in range(n)]
        return " | ".join(f"{letter}{i} {mass * w / sum(weights):.17g}" for i, w in enumerate(weights))

    return PCFG.from_text(
        f"""
        S -> NP VP 1
        VP -> V NP 0.6 | {words("i", 6, 0.4)}
        NP -> D N 0.7 | D M 0.3
        M -> N R 1
        R -> P NP 1
        D -> {words("d", 4)}
        N -> {words("n", NOUNS, twins=True)}
        V -> {words("v", 10)}
        P -> {words("p", 4)}
        """,
        normalise=True,
    )


@dataclass(frozen=True)
class World:
    """The grammar with its rules numbered as in derivations, R in all."""

    pcfg: PCFG
    sampler: Sampler
    groups: list[IntArray]  #: rules of each symbol that has several
    expected: FloatArray  #: (R,) of each rule in a sentence
    tokens: float  #: expected, the end counted
    twins: IntArray  #: (R,) the rule that each is exchanged with

    @classmethod
    def of(cls, pcfg: PCFG) -> World:
        sampler, counts = Sampler(pcfg), expected_counts(pcfg)
        groups = [np.flatnonzero(sampler.parent == symbol) for symbol in np.unique(sampler.parent)]
        twins = np.arange(len(sampler.parent))
        names = {f"n{i}": i for i in range(NOUNS)}
        at = {names[pcfg.vocabulary[w]]: k for k, w in enumerate(sampler.left) if k >= sampler.first_lexical
              and pcfg.vocabulary[w] in names}  # fmt: skip
        for i, rule in at.items():
            twins[rule] = at[i ^ 1]
        expected = np.concatenate([counts.binary, counts.unary, counts.lexical])
        return cls(pcfg, sampler, [g for g in groups if len(g) > 1], expected, counts.length + 1.0, twins)

    def sentences(self, n: int, seed: int, number: int) -> tuple[FloatArray, FloatArray]:
        """Counts of rules (N, R) and of tokens (N,) of sampled sentences."""
        drawn = self.sampler.draw(n, random_state(seed, number))
        r = len(self.twins)
        rows = np.repeat(np.arange(n), np.diff(drawn.ends))
        counts = np.bincount(rows * r + drawn.rules, minlength=n * r).reshape(n, r)
        return counts.astype(np.float64), drawn.n_tokens + 1.0

    def centre(self, noise: float, seed: int) -> FloatArray:
        """Probabilities of the rules (R,), disturbed."""
        q = np.exp(self.sampler.logp + noise * np.random.default_rng(seed).normal(size=len(self.twins)))
        for group in self.groups:
            q[group] /= q[group].sum()
        return q

    def seeds(self, centre: FloatArray, c: float, k: int, rng: np.random.Generator) -> FloatArray:
        """ln p - ln q of each rule for K seeds, (K, R)."""
        gap = np.zeros((k, len(centre)))
        for group in self.groups:
            gap[:, group] = self.sampler.logp[group] - np.log(rng.dirichlet(c * centre[group], k))
        return gap

    def kl(self, gap: FloatArray) -> float:
        """KL a token of given seeds, mean over them."""
        return float((gap @ self.expected).mean()) / self.tokens

    def expected_kl(self, centre: FloatArray, c: float) -> float:
        """KL a token, the mean over all seeds."""
        gap = np.zeros(len(centre))
        for group in self.groups:
            gap[group] = self.sampler.logp[group] - digamma(c * centre[group]) + digamma(c)
        return self.kl(gap)


@dataclass(frozen=True)
class Source:
    name: str
    noise: tuple[float, float]  #: of the centres of two models
    concentration: tuple[float, float]  #: of their seeds: the larger, the more alike


SOURCES = (
    Source("alike", (0.2, 0.35), (4000.0, 4000.0)),
    Source("differ", (0.2, 0.35), (600.0, 600.0)),
    Source("differ unequally", (0.2, 0.35), (3000.0, 400.0)),
)


def intervals(model: SeedSums, baseline: SeedSums, seed: int) -> dict[str, tuple[float, float]]:
    """The interval of each method."""
    total = model.total.mean(axis=0) - baseline.total.mean(axis=0)
    low, high = resampled_ratio(total, model.count[0], seed=seed)
    found = difference(model, baseline, seed=seed)
    assert found.low is not None and found.high is not None and found.p is not None
    assert (found.p < 0.05) == (found.low > 0.0 or found.high < 0.0)
    values = {"sentences": (low, high), "parts *": (found.low, found.high)}
    if model.seeds > 1:
        values["clusters"] = clusters(model, baseline, seed)
    return values


def clusters(model: SeedSums, baseline: SeedSums, seed: int) -> tuple[float, float]:
    """Percentiles of differences where sentences, and the seeds of each model, are drawn with replacement."""
    rng = np.random.default_rng([seed, 1])
    columns = np.concatenate([model.total, baseline.total, model.count[:1]]).T
    sums = resampled_sums(columns, seed=seed, replicates=REPLICATES)
    ratios = sums[:, :-1] / sums[:, -1:]
    first, second = ratios[:, : model.seeds], ratios[:, model.seeds :]
    means = [
        np.take_along_axis(side, rng.integers(0, side.shape[1], side.shape), axis=1).mean(axis=1)
        for side in (first, second)
    ]
    low, high = np.quantile(means[0] - means[1], (0.025, 0.975))
    return float(low), float(high)


def cell(world: World, source: Source, k: int, n: int, replications: int, seed: int) -> dict[str, list[list[float]]]:
    """For each method: whether intervals hold, whether equal models differ, and widths."""
    centres = [world.centre(noise, 11 + i) for i, noise in enumerate(source.noise)]
    c = source.concentration
    known = [world.expected_kl(centre, c[i]) for i, centre in enumerate(centres)]
    found: dict[str, list[list[float]]] = defaultdict(lambda: [[], [], []])
    rng = np.random.default_rng([seed, k, n])
    for number in range(replications):
        counts, tokens = world.sentences(n, seed, k * replications + number)
        gaps = [world.seeds(centre, c[i], k, rng) for i, centre in enumerate(centres)]
        equal = gaps[0][:, world.twins] if k == 1 else world.seeds(centres[0], c[0], k, rng)
        truth = world.kl(gaps[0]) - world.kl(gaps[1]) if k == 1 else known[0] - known[1]
        sums = [SeedSums(gap @ counts.T, np.tile(tokens, (k, 1))) for gap in (*gaps, equal)]
        for method, (low, high) in intervals(sums[0], sums[1], number).items():
            found[method][0].append(low <= truth <= high)
            found[method][2].append(high - low)
        for method, (low, high) in intervals(sums[0], sums[2], number).items():
            found[method][1].append(low > 0.0 or high < 0.0)
    return found


def row(head: list[object], method: str, held: list[float], wrong: list[float], widths: list[float]) -> str:
    coverage, size = (binomtest(int(sum(hits)), len(hits)) for hits in (held, wrong))
    low, high = coverage.proportion_ci(method="wilson")
    bad = low > WANTED[1] or high < WANTED[0] or size.proportion_ci(method="wilson")[0] > LARGEST_SIZE
    mark = "(!)" if bad and method.endswith("*") else ""
    cells = [*head, method, f"{coverage.statistic:.3f}", f"{size.statistic:.3f}", f"{np.mean(widths):.4f}", mark]
    return f"| {' | '.join(map(str, cells))} |"


def main(say: Callable[[str], None] = lambda line: print(line, flush=True)) -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--replications", type=int, default=300)
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--seeds", type=int, nargs="*", default=[1, 2, 3, 5], help="of a model")
    arguments.add_argument("--sizes", type=int, nargs="*", default=[100, 1000, 5000], help="sentences of a sample")
    arguments.add_argument("--only", default="", metavar="TEXT", help="sources in whose name this text is")
    given = arguments.parse_args()
    world = World.of(grammar())
    say("| seeds of a model | K | sentences | method | holds | size | width, nats a token | |")
    say("|---|---|---|---|---|---|---|---|")
    for source in SOURCES:
        for k in given.seeds if given.only in source.name else ():
            for n in given.sizes:
                found = cell(world, source, k, n, given.replications, given.seed)
                for method in METHODS:
                    if method in found:
                        say(row([source.name, k, f"{n:,}"], method, *found[method]))


if __name__ == "__main__":
    main()
