"""Random grammars with the shape of an induced one, of any size: what benchmarks run on."""

from __future__ import annotations

import numpy as np

from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import FloatArray, Int32Array, IntArray

PUBLISHED = {"states": 718, "binary": 272_000, "unary": 13_000, "lexical": 2_220_000, "words": 54_497}
PHRASES, TAGS = 26, 44  #: coarse labels of each kind
COARSE_RULES = {3: 3500, 2: 160}  #: about what a treebank gives
MEAN_LENGTH = 13.0


def split_grammar(
    states: int, binary: int, unary: int, lexical: int, words: int, *, seed: int = 0, mean_length: float = MEAN_LENGTH
) -> PCFG:
    """A state-split grammar with about these sizes: coarse rules, each between most substates of its labels.

    Tags make words only, phrases never; substates are given out unevenly, as merging leaves them. Rules with
    phrasal children are made rarer until the mean sentence length is ``mean_length``.
    """
    rng = np.random.default_rng(seed)
    shares = rng.gamma(0.7, size=PHRASES + TAGS) + 0.05
    shares[0] = 0.0
    sizes = np.ones(PHRASES + TAGS, dtype=np.int64)
    sizes += rng.multinomial(states - len(sizes), shares / shares.sum())
    first = np.concatenate([[0], np.cumsum(sizes)])
    label = np.repeat(np.arange(len(sizes)), sizes)

    rules2 = _expand(rng, first, sizes, 3, binary)
    rules1 = _expand(rng, first, sizes, 2, unary)
    weight2, weight1 = (rng.gamma(0.4, size=len(r)) + 1e-6 for r in (rules2, rules1))
    weight1 *= 0.1
    tags = np.flatnonzero(label >= PHRASES)
    per_tag = rng.multinomial(lexical, (p := rng.gamma(0.6, size=len(tags)) + 0.02) / p.sum())
    zipf = 1.0 / (np.arange(words) + 2.7)
    lexicon, weight0 = [], []
    for tag, n in zip(tags, np.minimum(np.maximum(per_tag, 1), words), strict=True):
        drawn = np.unique(np.searchsorted(np.cumsum(zipf) / zipf.sum(), rng.random(4 * n)))
        known = np.union1d(drawn[rng.permutation(len(drawn))[:n]], rng.choice(words, size=n // 2, replace=False))[:n]
        lexicon.append(np.stack([np.full(len(known), tag), known], axis=1))
        weight0.append(zipf[known] * rng.gamma(0.5, size=len(known)) + 1e-9)
    table0, value0 = np.concatenate(lexicon), np.concatenate(weight0)

    def build(beta: float) -> PCFG:
        parts = [(rules2, weight2 * np.exp(beta * (label[rules2[:, 1:]] < PHRASES).sum(axis=1)))]
        parts += [(rules1, weight1 * np.exp(beta * (label[rules1[:, 1]] < PHRASES))), (table0, value0)]
        total = np.zeros(states)
        for rules, weight in parts:
            np.add.at(total, rules[:, 0], weight)
        arrays: list[Int32Array | FloatArray] = []
        for rules, weight in parts:
            arrays += [rules.astype(np.int32), np.log(weight / total[rules[:, 0]])]
        names = tuple(f"{'T' if k >= PHRASES else 'N'}{k}_{i - first[k]}" for i, k in enumerate(label))
        return PCFG(names, tuple(f"w{i}" for i in range(words)), 0, *arrays, tuple(n.split("_")[0] for n in names))

    low, high = -12.0, 4.0
    for _ in range(24):
        middle = (low + high) / 2
        exact = build(middle).exact
        if exact.spectral_radius < 1.0 and exact.mean_length < mean_length:
            low = middle
        else:
            high = middle
    return build(low)


def _expand(rng: np.random.Generator, first: IntArray, sizes: IntArray, arity: int, wanted: int) -> IntArray:
    """Substate rules, about ``wanted`` of them.

    Each coarse rule keeps some substates of each of its labels and all their combinations, as a filter on rule
    probabilities leaves them.
    """
    weight = sizes**0.3
    coarse = {(parent, *rng.integers(PHRASES, PHRASES + TAGS, arity - 1).tolist()) for parent in range(PHRASES)}
    n_coarse = min(COARSE_RULES[arity], wanted)
    while len(coarse) < n_coarse:
        parent = int(rng.choice(PHRASES, p=weight[:PHRASES] / weight[:PHRASES].sum()))
        children = rng.choice(PHRASES + TAGS, arity - 1, p=weight / weight.sum()).tolist()
        if 0 not in children and [parent] != children:  # nothing leads back to the start
            coarse.add((parent, *children))
    rules = sorted(coarse)
    share = min(1.0, wanted / sum(int(np.prod(sizes[list(rule)])) for rule in rules)) ** (1.0 / arity)
    found = []
    covered = np.zeros(first[-1], dtype=bool)
    for rule in rules:
        kept = []
        for place, k in enumerate(rule):
            n = max(1, int(rng.binomial(sizes[k], share)))
            some = first[k] + rng.permutation(sizes[k])[:n]
            if place == 0:
                some = np.union1d(some, (own := first[k] + np.arange(sizes[k]))[~covered[own]])
                covered[some] = True
            kept.append(some)
        found.append(np.stack(np.meshgrid(*kept, indexing="ij"), axis=-1).reshape(-1, arity))
    return np.concatenate(found)
