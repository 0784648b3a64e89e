"""The phases of split-merge training, and the record of every iteration.

A split replaces each substate by two nearly equal ones; a merge reunites the sibling pairs whose split gained least.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from truesource.grammar.estimate.split_merge import SplitMerge
from truesource.grammar.estimate.split_merge.estep import (
    Forest,
    Likelihood,
    each,
    expected_entries,
    likelihood,
    occurrences,
)
from truesource.grammar.estimate.split_merge.parameters import Layout, SparseRules, SplitTree, Weight
from truesource.grammar.estimate.split_merge.result import TraceRow
from truesource.grammar.support.arrays import FloatArray, IntArray
from truesource.grammar.support.printable import Meter

PHASES = ("split", "merge", "smooth")
SMALLEST = 1e-36  #: smaller probabilities count as zero in training; larger ones may still grow
WAKE = 8  #: dormant probabilities (see `sparse.DORMANT`) take part once in this many iterations


def pair_shares(rules: SparseRules, counts: FloatArray) -> FloatArray:
    """Return the weight of each substate in the mixture with its sibling, (rows,): its share of their expected count.

    Args:
        rules: the grammar.
        counts: expected count of each of its entries.
    """
    totals = np.asarray(np.bincount(rules.rows, counts, rules.layout.n_rows), dtype=np.float64)
    share = np.ones_like(totals)
    for row in _pair_rows(rules.layout):
        pair = totals[row : row + 2]
        share[row : row + 2] = pair / pair.sum() if pair.sum() > 0.0 else 0.5
    return share


def pair_losses(forests: Sequence[Forest], rules: SparseRules, share: FloatArray) -> FloatArray:
    """Approximate the log-likelihood lost by merging each sibling pair alone, (rows,), nats; 0 on other rows.

    At every occurrence of the symbol the pair's inside values are replaced by their mixture and their outside values by
    their sum, all else being equal (Petrov et al. 2006, section 2.2). The loss of substates ``2k`` and ``2k + 1`` is at
    the row of ``2k``. It is a logarithm per occurrence, so unlike expected counts it cannot be collected over equal
    subtrees.
    """
    loss = np.zeros(rules.layout.n_rows)
    for part in each(partial(_losses, share=share), forests, rules):
        loss += part  # in the order of the forests for any number of threads
    return loss


def _losses(forest: Forest, rules: SparseRules, share: FloatArray) -> FloatArray:
    from truesource.grammar.estimate.split_merge._kernels import merge_losses

    loss = np.zeros(rules.layout.n_rows)
    for some in occurrences(forest, rules):
        charts = (some.nodes, rules.sizes, some.vector, some.out, some.weight)
        merge_losses(*charts, rules.layout.rules[:, 4], share, loss)
    return loss


def merge(forests: Sequence[Forest], rules: SparseRules, fraction: float) -> SparseRules:
    """Merge ``fraction`` of the sibling pairs of the last split (rounded down), those with the smallest loss first.

    A merged substate's rules are the mixture of the pair's by expected count; as a child its probabilities add up. All
    symbols are in one ranking; ties go by symbol and substate.
    """
    _, counts = expected_entries(forests, rules)
    share = pair_shares(rules, counts)
    rows = _pair_rows(rules.layout)
    losses = pair_losses(forests, rules, share)[rows]
    chosen = rows[np.argsort(losses, kind="stable")[: int(fraction * len(rows))]]
    return merge_rows(rules, share, set(chosen.tolist()))


def merge_rows(rules: SparseRules, share: FloatArray, chosen: set[int]) -> SparseRules:
    """Merge the pairs whose first substates are at the rows ``chosen``."""
    old = rules.layout
    number = np.zeros(old.n_rows + 1, dtype=np.int64)  # new substate of each old row; the last: no child
    weight = np.ones(old.n_rows)
    sizes: list[int] = []
    trees: list[SplitTree] = []
    for symbol, (n, tree) in enumerate(zip(old.substates, rules.trees, strict=True)):
        row = int(old.first_row[symbol])
        merged = {k for k in range(0, n, 2) if row + k in chosen}
        remaining = [k for k in range(n) if k % 2 == 0 or k - 1 not in merged]
        number[row : row + n] = np.searchsorted(remaining, np.arange(n), side="right") - 1
        for k in merged:
            weight[row + k : row + k + 2] = share[row + k : row + k + 2]
        sizes.append(len(remaining))
        trees.append(_merge_tree(tree, {k: i for i, k in enumerate(remaining)}, merged))
    layout = Layout(old.table, tuple(sizes))
    rule, pair = rules.places
    left, right = (number[old.first_row[old.table.rules[rule, 1 + i]] + rules.entries.pair[pair, i]] for i in range(2))
    place, which = np.unique(layout.place(rule, left, right, number[rules.rows]), return_inverse=True)
    scores = np.asarray(np.bincount(which, rules.prob * weight[rules.rows]), dtype=np.float64)
    return SparseRules.at(layout, tuple(trees), place, scores).normalised()


def _pair_rows(layout: Layout) -> IntArray:
    """Return rows of the first substates of all pairs; every symbol but the start symbol has been split."""
    rows = [
        np.arange(first, first + n, 2)
        for first, n in zip(layout.first_row[1:-1].tolist(), layout.substates[1:], strict=True)
    ]
    return np.concatenate(rows) if rows else np.zeros(0, dtype=np.int64)


def _merge_tree(tree: SplitTree, new: dict[int, int], merged: set[int]) -> SplitTree:
    if isinstance(tree, int):
        return new[tree]
    if isinstance(tree[0], int) and tree[0] in merged:
        return new[tree[0]]
    return [_merge_tree(branch, new, merged) for branch in tree]


def split(rules: SparseRules, noise: float, generator: np.random.Generator) -> SparseRules:
    """Split every substate of every symbol but the start symbol in two.

    A rule's probability is shared equally among the copies of its children and changed by up to ``noise`` (relative),
    up for one member of a pair and down for the other: over the two copies of the first child that was split or, in a
    lexical rule, over the two copies of the parent. Substate ``k`` becomes ``2k`` and ``2k + 1``.

    Args:
        rules: the grammar before.
        noise: largest relative change, 0 to below 1.
        generator: draws the changes, uniformly, also for probabilities that are zero.
    """
    factor = [1] + [2] * (len(rules.trees) - 1)
    layout = Layout(rules.layout.table, tuple(n * f for n, f in zip(rules.layout.substates, factor, strict=True)))
    factor.append(1)  # for index -1: no child
    before = rules.place
    first = np.searchsorted(before, [*(block.start for block in rules.layout.blocks), rules.layout.size])
    places, scores = [], []
    for i, (block, new) in enumerate(zip(rules.layout.blocks, layout.blocks, strict=True)):
        here = slice(*first[i : i + 2])
        old = np.zeros(block.shape)
        old.ravel()[before[here] - block.start] = rules.prob[here]
        copies = (factor[block.left], factor[block.right], factor[block.parent])
        shared = old / (copies[0] * copies[1])
        for axis, n in enumerate(copies, start=1):
            shared = np.repeat(shared, n, axis=axis)
        if 2 in copies:
            axis = 1 + copies.index(2)
            shared = shared * (1.0 + noise * _antisymmetric(shared.shape, axis, generator))
        there = np.flatnonzero(shared)
        places.append(new.start + there)
        scores.append(shared.ravel()[there])
    trees = tuple(tree if i == 0 else _split_tree(tree) for i, tree in enumerate(rules.trees))
    return SparseRules.at(layout, trees, np.concatenate(places), np.concatenate(scores)).normalised()


def _antisymmetric(shape: tuple[int, ...], axis: int, generator: np.random.Generator) -> FloatArray:
    """Return numbers in (-1, 1), each the negative of its neighbour in the pairs along ``axis``."""
    half = generator.uniform(-1.0, 1.0, (*shape[:axis], shape[axis] // 2, *shape[axis + 1 :]))
    return np.stack([half, -half], axis=axis + 1).reshape(shape)


def _split_tree(tree: SplitTree) -> SplitTree:
    if isinstance(tree, int):
        return [2 * tree, 2 * tree + 1]
    return [_split_tree(branch) for branch in tree]


class Validation:
    """Held-out trees, ready to be scored."""

    def __init__(self, forests: Sequence[Forest], unknown: int) -> None:
        self._forests = forests
        self._unknown = unknown

    def score(self, rules: SparseRules) -> Likelihood:
        """Return the likelihood of the trees, impossible trees counted apart."""
        return likelihood(self._forests, rules, unknown=self._unknown)


class SplitMergeTrainer:
    """The grammar in training, and its trace."""

    def __init__(
        self,
        config: SplitMerge,
        forests: Sequence[Forest],
        validation: Validation,
        rules: SparseRules,
        progress: Meter,
    ) -> None:
        self.rules = rules  #: grammar after the last phase, or at the start
        self.trace: list[TraceRow] = []
        self._config = config
        self._forests = forests
        self._validation = validation
        self._progress = progress

    def iterations(self, phase: str) -> int:
        """Return the number of EM iterations of a phase."""
        return int(getattr(self._config, f"em_{phase}"))

    def start(self) -> None:
        """Record the grammar before the first cycle."""
        self._record(self.rules, (0, "start", 0), likelihood(self._forests, self.rules), None)

    def run(self, cycle: int, phase: str, generator: np.random.Generator) -> None:
        """Run one phase of one cycle; record 0 is the grammar that the phase starts from."""
        config, forests = self._config, self._forests
        if phase == "split":
            self.rules = split(self.rules, config.noise, generator)
        elif phase == "merge":
            self.rules = merge(forests, self.rules, config.merge_fraction)
        total = self.iterations(phase)
        rules = self.rules.astype(config.precision)
        unsmoothed: Likelihood | None = None
        reached = -np.inf
        for iteration in range(total):
            slept = 1 if phase == "smooth" or iteration == 0 else WAKE if iteration % WAKE == 0 else 0
            score, counts = expected_entries(forests, rules, asleep_too=slept > 0)
            self._record(rules, (cycle, phase, iteration), score, unsmoothed)
            before = rules
            relaxation = None if phase == "smooth" or score.total < reached else config.relaxation  # EM after a fall
            reached = score.total
            scores = counts if relaxation is None else rules.relaxed(counts, relaxation)
            rules = rules.maximised(scores, SMALLEST, slept=slept)
            if phase == "smooth":
                unsmoothed = likelihood(forests, rules) if iteration == total - 1 else None
                rules = rules.smoothed(*self.weights(before, counts), SMALLEST)
            self._progress.advance()
        self._record(rules, (cycle, phase, total), likelihood(forests, rules), unsmoothed)
        self.rules = rules.normalised()  # in the order of entries of a resumed run

    def weights(self, rules: SparseRules, counts: FloatArray) -> tuple[Weight, Weight]:
        """Return weights of the siblings' mean in the rules and in the lexicon, by the expected uses of each entry."""
        config = self._config
        if config.smoothing == "fixed":
            return config.smooth_rules, config.smooth_lexicon
        uses = np.asarray(np.bincount(rules.rows, counts, rules.layout.n_rows), dtype=np.float64)
        return config.prior_rules / (uses + config.prior_rules), config.prior_lexicon / (uses + config.prior_lexicon)

    def _record(
        self, rules: SparseRules, when: tuple[int, str, int], score: Likelihood, unsmoothed: Likelihood | None
    ) -> None:
        cycle, phase, iteration = when
        held_out = self._validation.score(rules)
        self.trace.append(
            {
                "cycle": cycle,
                "phase": phase,
                "iteration": iteration,
                "log_likelihood": score.per_token,
                "unsmoothed": None if unsmoothed is None else unsmoothed.per_token,
                "held_out": held_out.per_token,
                "held_out_impossible": held_out.impossible,
                "substates": rules.layout.n_rows,
                "rules": len(rules.prob),
            }
        )
        note = "" if score.per_token is None else f"cycle {cycle} {phase} {score.per_token:.4f} nats/token"
        if note:
            self._progress.advance(0, note)
