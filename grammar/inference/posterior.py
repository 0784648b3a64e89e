"""Posteriors of the derivation of a sentence, derivations sampled from them, and trees best in expectation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import scipy  # it imports `scipy.special` when that is first used

from truesource.grammar._kernels.rules import ChildRules, CoarseRules, InsideChart, PairBits, PairRules, SparseRows
from truesource.grammar.inference._kernels import posterior as kernels
from truesource.grammar.inference.batch import NothingLeftError, require_memory
from truesource.grammar.inference.rules import child_rules, sparse_rows
from truesource.grammar.support.arrays import BoolArray, FloatArray, Int32Array, IntArray
from truesource.grammar.support.errors import InputError
from truesource.grammar.tree import Tree

if TYPE_CHECKING:
    from truesource.grammar.inference.exact import Exact
    from truesource.grammar.pcfg import PCFG


LOST = 1e-10  #: largest share of a sentence's probability that charts may lose
_TABLES: WeakKeyDictionary[Exact, PosteriorTables] = WeakKeyDictionary()
SMALLEST_SPAN = 1e-6  #: less probable spans are excluded at first, and included if they could matter
_COARSE: WeakKeyDictionary[Exact, CoarseRules] = WeakKeyDictionary()


@dataclass(frozen=True)
class PosteriorTables:
    """Tables of a grammar for posteriors, computed once."""

    closure: SparseRows  #: columns of the unary closure
    bits: PairBits
    binary: ChildRules
    unary: ChildRules
    labels: tuple[str, ...]  #: (L,) distinct labels, in the order of the symbols
    state_label: Int32Array  #: (S,) label of each state
    states: tuple[IntArray, ...]  #: states of each label
    #: inverse of each label's block of the unary closure; None for the identity
    once: tuple[FloatArray | None, ...]


def tables(exact: Exact) -> PosteriorTables:
    """Return the tables of a grammar, cached as long as its `Exact`.

    Raises:
        InputError: the grammar's unary closure does not converge.
    """
    if exact not in _TABLES:
        pcfg = exact.pcfg
        closed = exact.unary_closure
        numbers = {label: i for i, label in enumerate(dict.fromkeys(pcfg.labels))}
        state_label = np.array([numbers[label] for label in pcfg.labels], dtype=np.int32)
        states = tuple(np.flatnonzero(state_label == i) for i in range(len(numbers)))
        blocks = [closed[np.ix_(members, members)] for members in states]
        _TABLES[exact] = PosteriorTables(
            sparse_rows(np.ascontiguousarray(closed.T)),
            _pair_bits(exact.pairs, len(pcfg.symbols)),
            child_rules(pcfg.binary, np.exp(pcfg.binary_logp), len(pcfg.symbols)),
            child_rules(pcfg.unary, np.exp(pcfg.unary_logp), len(pcfg.symbols)),
            tuple(numbers),
            state_label,
            states,
            tuple(
                None if np.array_equal(b, np.eye(len(b))) else np.asarray(np.linalg.inv(b), np.float64) for b in blocks
            ),
        )
    return _TABLES[exact]


def _pair_bits(pairs: PairRules, n_states: int) -> PairBits:
    word, bit = np.divmod(pairs.right.astype(np.int64), kernels.BITS)
    partners = np.zeros((n_states, -(-n_states // kernels.BITS)), dtype=np.int64)
    np.bitwise_or.at(partners, (pairs.left, word), np.left_shift(np.int64(1), bit))
    first = np.zeros(partners.shape, dtype=np.int32)
    entries, pair = np.unique(pairs.left * np.int64(partners.shape[1]) + word, return_index=True)
    first.flat[entries] = pair
    return PairBits(partners, first)


@dataclass(frozen=True, eq=False)
class Posterior:
    """The distribution over derivations of one sentence, from `posterior`.

    Spans are ``(i, j)``, covering tokens i to j-1; in tables they are numbered ``j (j-1) / 2 + i``. All unary chains
    are summed exactly, cycles included.
    """

    pcfg: PCFG = field(repr=False)
    sentence: tuple[str, ...]  #: (n,)
    log_prob: float  #: log probability of the sentence, nats
    chart: InsideChart = field(repr=False)
    closed: FloatArray = field(repr=False)  #: (spans, S) outside weight below unary chains

    def __len__(self) -> int:
        return len(self.sentence)

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the L distinct labels (``pcfg.labels``), in the order of every table by label."""
        return tables(self.pcfg.exact).labels

    @cached_property
    def leaves(self) -> IntArray:
        """Numbers of the spans of one token, (n,)."""
        i = np.arange(len(self.sentence))
        return np.asarray((i + 1) * i // 2 + i)

    def span(self, i: int, j: int) -> int:
        """Return the number of the span from token i to j-1.

        Raises:
            InputError: not ``0 <= i < j <= n``.
        """
        if not 0 <= i < j <= len(self.sentence):
            raise InputError(f"({i}, {j}) is no span of a sentence of {len(self.sentence)} tokens; use 0 <= i < j <= n")
        return j * (j - 1) // 2 + i

    # -- marginals ----------------------------------------------------------------------------------

    def expected_symbols(self, i: int, j: int) -> FloatArray:
        """Return the expected number of nodes of each symbol over a span, (S,); above 1 only with unary cycles."""
        span = self.span(i, j)
        return np.asarray(self.closed[span] * self.chart.inside[span])

    def symbols(self, i: int, j: int) -> FloatArray:
        """Return P(a node of this symbol covers the span), (S,) probabilities.

        A chain that contains A contains it ``U[A, A]`` times in expectation, so this is the expected number over ``U[A,
        A]``, the diagonal of the unary closure.
        """
        return np.minimum(self.expected_symbols(i, j) / self.pcfg.exact.unary_closure.diagonal(), 1.0)

    @cached_property
    def label_table(self) -> FloatArray:
        """P(a node of this label covers the span), every span, (spans, L) probabilities.

        For the states L of one label it is ``closed_L . (U_LL)^-1 . inside_L``: each derivation counts once, at the
        lowest of its nodes of that label, where the steps from L to L are removed.
        """
        labels_of = tables(self.pcfg.exact)
        table = np.empty((len(self.closed), len(labels_of.labels)))
        for number, (members, once) in enumerate(zip(labels_of.states, labels_of.once, strict=True)):
            below = self.chart.inside[:, members]
            table[:, number] = (self.closed[:, members] * (below if once is None else below @ once.T)).sum(axis=1)
        return np.clip(table, 0.0, 1.0)

    def label_probs(self, i: int, j: int) -> dict[str, float]:
        """Return P(a node of this label covers the span), for each label of nonzero probability."""
        row = self.label_table[self.span(i, j)]
        return {label: float(p) for label, p in zip(self.labels, row, strict=True) if p > 0.0}

    @cached_property
    def preterminals(self) -> FloatArray:
        """P(this symbol produces the word), every position, (n, S); rows sum to one.

        Symbols above it on a unary chain do not count.
        """
        return np.asarray(self.closed[self.leaves] * self.chart.bare[self.leaves])

    @cached_property
    def tags(self) -> FloatArray:
        """P(the symbol that produces the word has this label), every position, (n, L); rows sum to one."""
        labels_of = tables(self.pcfg.exact)
        table = np.zeros((len(self.sentence), len(labels_of.labels)))
        np.add.at(table.T, labels_of.state_label, self.preterminals.T)
        return table

    # -- derivations --------------------------------------------------------------------------------

    def sample(self, rng: np.random.Generator) -> Tree:
        """Draw a derivation with the grammar's symbols from the exact posterior.

        Top-down from the inside chart (Goodman 1998, section 4.4); unary chains step by step, any number of cycles.
        """
        rules = tables(self.pcfg.exact)
        states, arity = kernels.sample(rng, self.chart, len(self.sentence), self.pcfg.start, rules.binary, rules.unary)
        return tree_of([self.pcfg.symbols[a] for a in states.tolist()], arity.tolist(), self.sentence)


def posterior(pcfg: PCFG, sentence: Sequence[str], allowed: BoolArray | None = None) -> Posterior:
    """Return inside and outside charts of one sentence, in O(n^3 P + n^2 R) for P child pairs and R binary rules.

    Args:
        pcfg: the grammar.
        sentence: its words.
        allowed: which symbols may cover which span, (spans, S); None: all. With it, the posterior is over the allowed
            derivations only, and `Posterior.log_prob` is their log probability.

    Raises:
        InputError: the sentence has probability 0 (`NothingLeftError`: with the allowed symbols), its charts do not
            fit the memory of this machine, or, with everything allowed, more than 1e-10 of its probability is in
            derivations whose weights underflow.
    """
    exact = pcfg.exact
    shared = tables(exact)
    words = pcfg.encode(sentence)
    n = len(words)
    if n == 0:
        raise InputError("a sentence without tokens has no tree; remove it")
    require_memory(n, n * (n + 1) // 2 * len(pcfg.symbols) * 28)  # three float64 and an int32
    limits = np.zeros((0, 0), dtype=np.bool_) if allowed is None else allowed
    chart, lost = kernels.inside(words, limits, shared.closure, exact.pairs, shared.bits, exact.lexicon)
    root = n * (n - 1) // 2
    weight = float(chart.inside[root, pcfg.start])
    log_prob = math.log(weight) + int(chart.shift[root]) * math.log(2.0) if weight > 0.0 else -math.inf
    if allowed is not None and not weight > 0.0:
        raise NothingLeftError(sentence)
    exactly = float(exact.string_log_probs([sentence])[0]) if lost and allowed is None else log_prob
    if exactly == -math.inf:
        raise InputError(f"the sentence {' '.join(sentence)!r} has probability 0 under the grammar")
    if log_prob < exactly - LOST:
        raise InputError(
            f"sentence {' '.join(sentence)!r} has parts whose weights differ by a factor of more than 1e250, too"
            f" for a posterior (its log probability is {exactly:.6g} nats); remove the sentence"
        )
    closed = kernels.outside(chart, n, pcfg.start, shared.closure, exact.pairs, shared.bits)
    return Posterior(pcfg, tuple(sentence), log_prob, chart, closed)


def tree_of(names: Sequence[str], arity: Sequence[int], words: Sequence[str]) -> Tree:
    """Return the tree whose nodes in preorder have these names and numbers of child nodes (0 above a word)."""
    done: list[Tree] = []
    word = len(words)
    for name, children in zip(reversed(names), reversed(arity), strict=True):
        if children:
            done.append(Tree(name, tuple(done.pop() for _ in range(children))))
        else:
            word -= 1
            done.append(Tree(name, (words[word],)))
    return done.pop()


def coarse_rules(exact: Exact) -> CoarseRules:
    """Return the coarse rules of a grammar, cached as long as its `Exact`."""
    if exact not in _COARSE:
        shared = tables(exact)
        _COARSE[exact] = CoarseRules(*_coarse_binary(exact, shared), *_coarse_unary(exact, shared))
    return _COARSE[exact]


def _coarse_binary(
    exact: Exact, shared: PosteriorTables
) -> tuple[Int32Array, Int32Array, Int32Array, Int32Array, FloatArray, Int32Array]:
    pairs, n_labels = exact.pairs, len(shared.labels)
    pair = np.repeat(np.arange(len(pairs.left)), np.diff(pairs.rule_start))
    label = shared.state_label[pairs.parent].astype(np.int64)
    order = np.lexsort((label, pair))
    groups, first = np.unique(pair[order] * n_labels + label[order], return_index=True)
    of_pair, parent = groups // n_labels, groups % n_labels
    left, right = (shared.state_label[side[of_pair]].astype(np.int64) for side in (pairs.left, pairs.right))
    keys, coarse = np.unique((parent * n_labels + left) * n_labels + right, return_inverse=True)
    return (
        np.searchsorted(of_pair, np.arange(len(pairs.left) + 1)).astype(np.int32),
        coarse.astype(np.int32),
        np.append(first, len(order)).astype(np.int32),
        np.ascontiguousarray(pairs.parent[order]),
        np.ascontiguousarray(pairs.prob[order]),
        np.stack([keys // n_labels**2, keys // n_labels % n_labels, keys % n_labels]).astype(np.int32),
    )


def _coarse_unary(exact: Exact, shared: PosteriorTables) -> tuple[Int32Array, Int32Array, FloatArray, Int32Array]:
    """Return weights w such that ``closed . w . inside`` is the probability that the coarse rule is used over a span.

    With D the unary rules from label A to label B, the last use of one is followed by chains without any, of weight
    ``(I + U D)^-1 U``; so ``w = D (I + U_BA D)^-1``, which is D itself if no chain leads from B to A.
    """
    pcfg, closed = exact.pcfg, exact.unary_closure
    keys = np.unique(shared.state_label[pcfg.unary].reshape(-1, 2), axis=0)
    dense = np.zeros((len(pcfg.symbols),) * 2)
    dense[pcfg.unary[:, 0], pcfg.unary[:, 1]] = np.exp(pcfg.unary_logp)
    dense[:, exact.mass <= 0.0] = 0.0  # as in the unary closure
    starts, states, weights = [0], [np.zeros((2, 0), dtype=np.int64)], [np.zeros(0)]
    for a, b in keys.tolist():
        above, below = shared.states[a], shared.states[b]
        weight = dense[np.ix_(above, below)]
        back = closed[np.ix_(below, above)]
        if back.any():
            weight = weight @ np.asarray(np.linalg.inv(np.eye(len(below)) + back @ weight), np.float64)
        row, column = np.nonzero(weight)
        states.append(np.stack([above[row], below[column]]))
        weights.append(weight[row, column])
        starts.append(starts[-1] + len(row))
    return (
        np.array(starts, dtype=np.int32),
        np.concatenate(states, axis=1).astype(np.int32),
        np.concatenate(weights),
        np.ascontiguousarray(keys.T.astype(np.int32)),
    )


def max_rule_tree(posterior: Posterior) -> tuple[Tree, float]:
    """Return the coarse tree with the greatest product of posterior rule probabilities, and the log of the product.

    Petrov & Klein (2007), "Improved inference for unlexicalized parsing", section 4.2, max-rule-product. The factor of
    a coarse rule over given spans is its expected number of uses there, summed over all symbols with these labels. A
    unary rule can be used more than once over a span if there are cycles; its factor is then the probability that it is
    used at all, so no factor exceeds 1.

    Returns:
        A binarised tree with treebank labels (``@`` ones too), and nats, at most 0.

    Raises:
        NothingLeftError: the posterior is over a part of the derivations, and no tree has all its rules there.
    """
    shared, coarse, n = tables(posterior.pcfg.exact), coarse_rules(posterior.pcfg.exact), len(posterior)
    start = int(shared.state_label[posterior.pcfg.start])
    best, below, rule, split, _ = max_rule_charts(posterior)
    names: list[str] = []
    arity: list[int] = []
    stack = [(0, n, start)]
    while stack:
        i, j, label = stack.pop()
        span = posterior.span(i, j)
        names.append(shared.labels[label])
        if below[span, label] >= 0:
            arity.append(1)
            stack.append((i, j, int(below[span, label])))
        elif j - i == 1:
            arity.append(0)
        else:
            arity.append(2)
            k = int(split[span, label])
            _, left, right = coarse.binary[:, rule[span, label]].tolist()
            stack += [(k, j, right), (i, k, left)]
    return tree_of(names, arity, posterior.sentence), float(best[-n, start])


class RuleCharts(NamedTuple):
    """The best coarse tree of every label over every span; -inf and -1 for none, or if it was excluded."""

    best: FloatArray  #: (spans, L) log of its product, nats
    below: Int32Array  #: (spans, L) label under the unary step at the top, -1 for none
    rule: Int32Array  #: (spans, L) coarse binary rule of the label without unary steps
    split: Int32Array  #: (spans, L) split of that rule
    floor: float  #: nats; all trees with this log product or more are included


def max_rule_charts(posterior: Posterior, least: float = math.inf) -> RuleCharts:
    """Return charts of max-rule trees that include the best tree and all with a log product of ``least`` nats or more.

    No factor exceeds the probability that its span is a constituent, nor 1: a tree whose product is at least
    ``smallest`` is better than all trees with a less probable span, which are excluded.
    """
    exact, shared = posterior.pcfg.exact, tables(posterior.pcfg.exact)
    start = int(shared.state_label[posterior.pcfg.start])
    smallest = SMALLEST_SPAN if least == math.inf else min(SMALLEST_SPAN, 0.5 * math.exp(least))
    while True:
        best, below, rule, split = kernels.max_rule(
            *(posterior.chart, posterior.closed, len(posterior), smallest),
            *(shared.state_label, len(shared.labels), exact.pairs, shared.bits, coarse_rules(exact)),
        )
        score = float(best[-len(posterior), start])
        floor = math.log(smallest) if smallest > 0.0 else -math.inf
        if smallest == 0.0 and score == -math.inf:  # an included chain passes through an excluded span
            raise NothingLeftError(posterior.sentence)
        if score >= floor:
            return RuleCharts(best, below, rule, split, floor)
        smallest = 0.5 * math.exp(score) if score > -math.inf else 0.0


def max_span_tree(posterior: Posterior) -> tuple[Tree, float]:
    """Return the coarse tree with the greatest expected number of correct labelled spans, and that number.

    The labelled recall algorithm of Goodman (1996), "Parsing algorithms and metrics": a binary tree in which every span
    has its most probable label, tags included; the tree may use rules that are not in the grammar. For unary chains,
    his criterion is extended by subtracting wrong spans: a span has all labels of probability above 1/2, at least one
    label, and the bracketing is chosen by the sum of ``P - 1/2``. In a chain the label that is more often above another
    is put above it; the start label is on top, the tag (the most probable one) at the bottom.

    Returns:
        A binarised tree with treebank labels (``@`` ones too), and the expected number of its labelled spans in a
        derivation drawn from the posterior.
    """
    shared, n = tables(posterior.pcfg.exact), len(posterior)
    table, tags = posterior.label_table, posterior.tags
    likely = np.where(table > 0.5, table - 0.5, 0.0).sum(axis=1)
    top = table.max(axis=1)
    # only spans of possible derivations
    gain = np.where(top > 0.0, np.where(top > 0.5, likely, top - 0.5), -np.inf)
    gain[posterior.leaves] = 0.0  # every tree has these
    split = kernels.best_splits(gain, n)
    start = int(shared.state_label[posterior.pcfg.start])
    names: list[str] = []
    arity: list[int] = []
    total = 0.0
    whole = posterior.span(0, n)
    stack = [(0, n)]
    while stack:
        i, j = stack.pop()
        span = posterior.span(i, j)
        chosen = np.flatnonzero(table[span] > 0.5)
        if j - i == 1:
            tag = int(tags[i].argmax())
            total += float(tags[i, tag])
            chosen = chosen[chosen != tag]
        elif len(chosen) == 0:
            chosen = table[span].argmax(keepdims=True)
        total += float(table[span, chosen].sum())
        chain = _ordered(posterior, span, chosen)
        if span == whole and chain and chain[0] != start:
            if start not in chain:  # in a sentence of one word it is also the tag
                total += float(table[span, start])
            chain = [start, *(label for label in chain if label != start)]
        names += [shared.labels[label] for label in chain]
        arity += [1] * len(chain)
        if j - i == 1:
            names.append(shared.labels[tag])
            arity.append(0)
        else:
            arity[-1] = 2
            k = int(split[span])
            stack += [(k, j), (i, k)]
    return tree_of(names, arity, posterior.sentence), total


def _ordered(joint: Posterior, span: int, labels: IntArray) -> list[int]:
    """Return labels from top to bottom: by how many of the others they are above more often than below."""
    if len(labels) < 2:
        return [int(label) for label in labels]
    shared, closure = tables(joint.pcfg.exact), joint.pcfg.exact.unary_closure
    states = [shared.states[label] for label in labels]
    # expected number of pairs of nodes, a above b
    over = np.array(
        [[joint.closed[span, a] @ closure[np.ix_(a, b)] @ joint.chart.inside[span, b] for b in states] for a in states]
    )
    wins = (over > over.T).sum(axis=1)
    return [int(label) for label in labels[np.argsort(-wins, kind="stable")]]


def derivation_entropy(posterior: Posterior) -> float:
    """Return the exact entropy of the derivation given the sentence, nats; 0, up to rounding, if it has only one.

    It is ln P(sentence) less the expected sum of ln P(rule) over the rules of a derivation, and does not depend on a
    length condition. Unary chains count rule by rule: with cycles, there are infinitely many derivations. It costs
    about as much as the outside chart, in O(n^3 P + n^2 (R + Q)) for P child pairs, R binary and Q unary rules.
    """
    pcfg, chart, closed = posterior.pcfg, posterior.chart, posterior.closed
    exact = pcfg.exact
    weight = np.asarray(scipy.special.xlogy(exact.pairs.prob, exact.pairs.prob), dtype=np.float64)
    pairs = exact.pairs._replace(prob=weight)
    spent = float(kernels.expected_binary(chart, closed, len(posterior), pairs))
    above, below = pcfg.unary.T
    weight = np.exp(pcfg.unary_logp) * pcfg.unary_logp
    for outside, inside in zip(closed, chart.inside, strict=True):
        spent += float((outside[above] * inside[below]) @ weight)
    for leaf, word in zip(posterior.leaves.tolist(), pcfg.encode(posterior.sentence).tolist(), strict=True):
        rules = slice(*exact.lexicon.start[word : word + 2])
        tags = exact.lexicon.parent[rules]
        spent += float((closed[leaf, tags] * chart.bare[leaf, tags]) @ pcfg.lexical_logp[rules])
    return max(posterior.log_prob - spent, 0.0)
