"""Posteriors of the derivation of a sentence, derivations drawn from them, and trees best on average."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from scipy.special import xlogy

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


LOST = 1e-10  #: share of a sentence's probability that charts may lose
_TABLES: WeakKeyDictionary[Exact, PosteriorTables] = WeakKeyDictionary()
SMALLEST_SPAN = 1e-6  #: spans less probable than this are left out at first, and taken in where they could matter
_COARSE: WeakKeyDictionary[Exact, CoarseRules] = WeakKeyDictionary()


@dataclass(frozen=True)
class PosteriorTables:
    """Tables of a grammar for posteriors, made once."""

    closure: SparseRows  #: columns of the unary closure
    bits: PairBits
    binary: ChildRules
    unary: ChildRules
    labels: tuple[str, ...]  #: (L,) distinct labels, in the order of the symbols
    state_label: Int32Array  #: (S,) label of each state
    states: tuple[IntArray, ...]  #: states of each label
    #: of each label, the inverse of the block of the unary closure; None where it is the identity
    once: tuple[FloatArray | None, ...]


def tables(exact: Exact) -> PosteriorTables:
    """The tables of a grammar, kept as long as its `Exact`.

    Raises:
        InputError: the grammar's unary closure does not converge.
    """
    if exact not in _TABLES:
        pcfg = exact.pcfg
        closed = exact.unary_closure
        numbers = {label: i for i, label in enumerate(dict.fromkeys(pcfg.labels))}
        state_label = np.array([numbers[label] for label in pcfg.labels], dtype=np.int32)
        states = tuple(np.flatnonzero(state_label == i) for i in range(len(numbers)))
        blocks = [closed[np.ix_(own, own)] for own in states]
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
    """The distribution over derivations of one sentence; made by `posterior`.

    Spans are ``(i, j)``, covering tokens i to j-1; in tables they are numbered ``j (j-1) / 2 + i``. All unary
    chains are summed exactly, cycles included.
    """

    pcfg: PCFG = field(repr=False)
    sentence: tuple[str, ...]  #: (n,)
    log_prob: float  #: of the sentence, nats
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
        """Number of the span from token i to j-1.

        Raises:
            InputError: not ``0 <= i < j <= n``.
        """
        if not 0 <= i < j <= len(self.sentence):
            raise InputError(f"({i}, {j}) is no span of a sentence of {len(self.sentence)} tokens")
        return j * (j - 1) // 2 + i

    # -- marginals ----------------------------------------------------------------------------------

    def expected_symbols(self, i: int, j: int) -> FloatArray:
        """Expected number of nodes of each symbol over a span, (S,); above 1 only where unary rules go round."""
        span = self.span(i, j)
        return np.asarray(self.closed[span] * self.chart.inside[span])

    def symbols(self, i: int, j: int) -> FloatArray:
        """P(a node of this symbol stands over the span), (S,) probabilities.

        A chain that comes to A comes back to it ``U[A, A]`` times in the mean, so this is the expected number
        over ``U[A, A]``, the diagonal of the unary closure.
        """
        return np.minimum(self.expected_symbols(i, j) / self.pcfg.exact.unary_closure.diagonal(), 1.0)

    @cached_property
    def label_table(self) -> FloatArray:
        """P(a node of this label stands over the span), every span, (spans, L) probabilities.

        For the states L of one label it is ``closed_L . (U_LL)^-1 . inside_L``: each derivation counts once,
        at the lowest of its nodes of that label, where the steps from L to L are taken off.
        """
        known = tables(self.pcfg.exact)
        table = np.empty((len(self.closed), len(known.labels)))
        for number, (own, once) in enumerate(zip(known.states, known.once, strict=True)):
            below = self.chart.inside[:, own]
            table[:, number] = (self.closed[:, own] * (below if once is None else below @ once.T)).sum(axis=1)
        return np.clip(table, 0.0, 1.0)

    def label_probs(self, i: int, j: int) -> dict[str, float]:
        """P(a node of this label stands over the span), for each label where it is not zero."""
        row = self.label_table[self.span(i, j)]
        return {label: float(p) for label, p in zip(self.labels, row, strict=True) if p > 0.0}

    @cached_property
    def preterminals(self) -> FloatArray:
        """P(this symbol is the one that makes the word), every position, (n, S); rows sum to one.

        Symbols above it on a unary chain do not count.
        """
        return np.asarray(self.closed[self.leaves] * self.chart.bare[self.leaves])

    @cached_property
    def tags(self) -> FloatArray:
        """P(the symbol that makes the word has this label), every position, (n, L); rows sum to one."""
        known = tables(self.pcfg.exact)
        table = np.zeros((len(self.sentence), len(known.labels)))
        np.add.at(table.T, known.state_label, self.preterminals.T)
        return table

    # -- derivations --------------------------------------------------------------------------------

    def sample(self, rng: np.random.Generator) -> Tree:
        """A derivation with the grammar's own symbols, drawn from the exact posterior.

        Top-down from the inside chart (Goodman 1998, section 4.4); unary chains step by step, any number of rounds.
        """
        known = tables(self.pcfg.exact)
        states, arity = kernels.sample(rng, self.chart, len(self.sentence), self.pcfg.start, known.binary, known.unary)
        return tree_of([self.pcfg.symbols[a] for a in states.tolist()], arity.tolist(), self.sentence)


def posterior(pcfg: PCFG, sentence: Sequence[str], allowed: BoolArray | None = None) -> Posterior:
    """Inside and outside charts of one sentence, in O(n^3 P + n^2 R) for P child pairs and R binary rules.

    Args:
        pcfg: the grammar.
        sentence: its words.
        allowed: which symbols may cover which span, (spans, S); all of them if None. With it, the posterior is over the
            derivations that are left, and `Posterior.log_prob` is that of these only.

    Raises:
        InputError: the grammar cannot make the sentence (as `NothingLeftError`: with what is allowed), its charts do
            not fit the memory of this machine, or, with everything allowed, more than 1e-10 of its probability is in
            derivations that they have no room for.
    """
    exact = pcfg.exact
    known = tables(exact)
    words = pcfg.encode(sentence)
    n = len(words)
    if n == 0:
        raise InputError("a sentence without tokens has no tree")
    require_memory(n, n * (n + 1) // 2 * len(pcfg.symbols) * 28)  # three float64 and an int32
    limits = np.zeros((0, 0), dtype=np.bool_) if allowed is None else allowed
    chart, lost = kernels.inside(words, limits, known.closure, exact.pairs, known.bits, exact.lexicon)
    root = n * (n - 1) // 2
    kept = float(chart.inside[root, pcfg.start])
    log_prob = math.log(kept) + int(chart.shift[root]) * math.log(2.0) if kept > 0.0 else -math.inf
    if allowed is not None and not kept > 0.0:
        raise NothingLeftError(sentence)
    exactly = float(exact.string_log_probs([sentence])[0]) if lost and allowed is None else log_prob
    if exactly == -math.inf:
        raise InputError(f"the grammar cannot make the sentence {' '.join(sentence)!r}")
    if log_prob < exactly - LOST:
        raise InputError(
            f"the parts of the sentence {' '.join(sentence)!r} have weights further apart than 1e250, too far for a"
            f" posterior (its log probability, {exactly:.6g} nats, is known); leave it out"
        )
    closed = kernels.outside(chart, n, pcfg.start, known.closure, exact.pairs, known.bits)
    return Posterior(pcfg, tuple(sentence), log_prob, chart, closed)


def tree_of(names: Sequence[str], arity: Sequence[int], words: Sequence[str]) -> Tree:
    """The tree whose nodes in preorder have these names and numbers of child nodes (0 above a word)."""
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
    """The coarse rules of a grammar, kept as long as its `Exact`."""
    if exact not in _COARSE:
        known = tables(exact)
        _COARSE[exact] = CoarseRules(*_coarse_binary(exact, known), *_coarse_unary(exact, known))
    return _COARSE[exact]


def _coarse_binary(
    exact: Exact, known: PosteriorTables
) -> tuple[Int32Array, Int32Array, Int32Array, Int32Array, FloatArray, Int32Array]:
    pairs, n_labels = exact.pairs, len(known.labels)
    pair = np.repeat(np.arange(len(pairs.left)), np.diff(pairs.rule_start))
    label = known.state_label[pairs.parent].astype(np.int64)
    order = np.lexsort((label, pair))
    groups, first = np.unique(pair[order] * n_labels + label[order], return_index=True)
    of_pair, parent = groups // n_labels, groups % n_labels
    left, right = (known.state_label[side[of_pair]].astype(np.int64) for side in (pairs.left, pairs.right))
    keys, coarse = np.unique((parent * n_labels + left) * n_labels + right, return_inverse=True)
    return (
        np.searchsorted(of_pair, np.arange(len(pairs.left) + 1)).astype(np.int32),
        coarse.astype(np.int32),
        np.append(first, len(order)).astype(np.int32),
        np.ascontiguousarray(pairs.parent[order]),
        np.ascontiguousarray(pairs.prob[order]),
        np.stack([keys // n_labels**2, keys // n_labels % n_labels, keys % n_labels]).astype(np.int32),
    )


def _coarse_unary(exact: Exact, known: PosteriorTables) -> tuple[Int32Array, Int32Array, FloatArray, Int32Array]:
    """Weights w such that ``closed . w . inside`` is the probability that the coarse rule is used over a span.

    With D the unary rules from label A to label B, the last use of one is followed by chains without any, of
    weight ``(I + U D)^-1 U``; so ``w = D (I + U_BA D)^-1``, which is D itself where no chain leads from B to A.
    """
    pcfg, closed = exact.pcfg, exact.unary_closure
    keys = np.unique(known.state_label[pcfg.unary].reshape(-1, 2), axis=0)
    dense = np.zeros((len(pcfg.symbols),) * 2)
    dense[pcfg.unary[:, 0], pcfg.unary[:, 1]] = np.exp(pcfg.unary_logp)
    dense[:, exact.mass <= 0.0] = 0.0  # as in the unary closure
    starts, states, weights = [0], [np.zeros((2, 0), dtype=np.int64)], [np.zeros(0)]
    for a, b in keys.tolist():
        above, below = known.states[a], known.states[b]
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


def max_rule_tree(found: Posterior) -> tuple[Tree, float]:
    """The coarse tree with the greatest product of posterior rule probabilities, and the log of the product.

    Petrov & Klein (2007), "Improved inference for unlexicalized parsing", section 4.2, max-rule-product. The
    factor of a coarse rule over given spans is its expected number of uses there, sums over all the symbols
    that the labels stand for. A unary rule can be used more than once over a span where chains go round; its
    factor is then the probability that it is used at all, so no factor exceeds 1.

    Returns:
        A binarised tree with treebank labels (``@`` ones too), and nats, at most 0.

    Raises:
        NothingLeftError: the posterior is over a part of the derivations, and no tree has all its rules there.
    """
    known, coarse, n = tables(found.pcfg.exact), coarse_rules(found.pcfg.exact), len(found)
    start = int(known.state_label[found.pcfg.start])
    best, below, rule, split, _ = max_rule_charts(found)
    names: list[str] = []
    arity: list[int] = []
    stack = [(0, n, start)]
    while stack:
        i, j, label = stack.pop()
        span = found.span(i, j)
        names.append(known.labels[label])
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
    return tree_of(names, arity, found.sentence), float(best[-n, start])


class RuleCharts(NamedTuple):
    """The best coarse tree of every label over every span; -inf and -1 where there is none, or it is left out."""

    best: FloatArray  #: (spans, L) log of its product, nats
    below: Int32Array  #: (spans, L) label under its unary step on top, -1 where that is none
    rule: Int32Array  #: (spans, L) coarse binary rule of the label without unary steps
    split: Int32Array  #: (spans, L) its split
    floor: float  #: nats; trees with this log product or more are all there


def max_rule_charts(found: Posterior, least: float = math.inf) -> RuleCharts:
    """Charts of max-rule trees, in which the best tree is, and all those with a log product of ``least`` nats or more.

    No factor exceeds the probability that its span is a constituent, nor 1: a tree whose product is at least
    ``smallest`` is better than all those that use a less probable span, which are left out.
    """
    exact, known = found.pcfg.exact, tables(found.pcfg.exact)
    start = int(known.state_label[found.pcfg.start])
    smallest = SMALLEST_SPAN if least == math.inf else min(SMALLEST_SPAN, 0.5 * math.exp(least))
    while True:
        best, below, rule, split = kernels.max_rule(
            *(found.chart, found.closed, len(found), smallest),
            *(known.state_label, len(known.labels), exact.pairs, known.bits, coarse_rules(exact)),
        )
        score = float(best[-len(found), start])
        floor = math.log(smallest) if smallest > 0.0 else -math.inf
        if smallest == 0.0 and score == -math.inf:  # a chain of what is left passes through what is not
            raise NothingLeftError(found.sentence)
        if score >= floor:
            return RuleCharts(best, below, rule, split, floor)
        smallest = 0.5 * math.exp(score) if score > -math.inf else 0.0


def max_span_tree(found: Posterior) -> tuple[Tree, float]:
    """The coarse tree with the greatest expected number of correct labelled spans, and that number.

    The labelled recall algorithm of Goodman (1996), "Parsing algorithms and metrics": a binary tree in which every span
    has its most probable label, tags included; the tree may use rules that the grammar does not have. Unary chains are
    his criterion with wrong spans counted against right ones: a span has all labels of probability above 1/2, one label
    in any case, and the bracketing is chosen by the sum of ``P - 1/2``. In a chain the label that more often stands
    above another is put above it; the start label is on top, the tag (the most probable one) at the bottom.

    Returns:
        A binarised tree with treebank labels (``@`` ones too), and the expected number of its labelled spans
        that a derivation drawn from the posterior has.
    """
    known, n = tables(found.pcfg.exact), len(found)
    table, tags = found.label_table, found.tags
    likely = np.where(table > 0.5, table - 0.5, 0.0).sum(axis=1)
    top = table.max(axis=1)
    # only spans that some derivation has
    gain = np.where(top > 0.0, np.where(top > 0.5, likely, top - 0.5), -np.inf)
    gain[found.leaves] = 0.0  # every tree has these
    split = kernels.best_splits(gain, n)
    start = int(known.state_label[found.pcfg.start])
    names: list[str] = []
    arity: list[int] = []
    total = 0.0
    whole = found.span(0, n)
    stack = [(0, n)]
    while stack:
        i, j = stack.pop()
        span = found.span(i, j)
        chosen = np.flatnonzero(table[span] > 0.5)
        if j - i == 1:
            tag = int(tags[i].argmax())
            total += float(tags[i, tag])
            chosen = chosen[chosen != tag]
        elif len(chosen) == 0:
            chosen = table[span].argmax(keepdims=True)
        total += float(table[span, chosen].sum())
        chain = _ordered(found, span, chosen)
        if span == whole and chain and chain[0] != start:
            if start not in chain:  # it is the tag of a sentence of one word, too
                total += float(table[span, start])
            chain = [start, *(label for label in chain if label != start)]
        names += [known.labels[label] for label in chain]
        arity += [1] * len(chain)
        if j - i == 1:
            names.append(known.labels[tag])
            arity.append(0)
        else:
            arity[-1] = 2
            k = int(split[span])
            stack += [(k, j), (i, k)]
    return tree_of(names, arity, found.sentence), total


def _ordered(found: Posterior, span: int, labels: IntArray) -> list[int]:
    """Labels from top to bottom: by how many of the others they stand above more often than below."""
    if len(labels) < 2:
        return [int(label) for label in labels]
    known, closure = tables(found.pcfg.exact), found.pcfg.exact.unary_closure
    states = [known.states[label] for label in labels]
    # expected number of pairs of nodes, a above b
    over = np.array(
        [[found.closed[span, a] @ closure[np.ix_(a, b)] @ found.chart.inside[span, b] for b in states] for a in states]
    )
    wins = (over > over.T).sum(axis=1)
    return [int(label) for label in labels[np.argsort(-wins, kind="stable")]]


def derivation_entropy(found: Posterior) -> float:
    """Exact entropy of the derivation given the sentence, nats; 0 where it has only one, but for rounding.

    It is ln P(sentence) less the expected sum of ln P(rule) over the rules of a derivation, and does not depend on a
    length condition. Unary chains count rule by rule: where they go round, there are infinitely many derivations. It
    costs about as much as the outside chart, in O(n^3 P + n^2 (R + Q)) for P child pairs, R binary and Q unary rules.
    """
    pcfg, chart, closed = found.pcfg, found.chart, found.closed
    exact = pcfg.exact
    weight = np.asarray(xlogy(exact.pairs.prob, exact.pairs.prob), dtype=np.float64)
    pairs = exact.pairs._replace(prob=weight)
    spent = float(kernels.expected_binary(chart, closed, len(found), pairs))
    above, below = pcfg.unary.T
    weight = np.exp(pcfg.unary_logp) * pcfg.unary_logp
    for outside, inside in zip(closed, chart.inside, strict=True):
        spent += float((outside[above] * inside[below]) @ weight)
    for leaf, word in zip(found.leaves.tolist(), pcfg.encode(found.sentence).tolist(), strict=True):
        rules = slice(*exact.lexicon.start[word : word + 2])
        tags = exact.lexicon.parent[rules]
        spent += float((closed[leaf, tags] * chart.bare[leaf, tags]) @ pcfg.lexical_logp[rules])
    return max(found.log_prob - spent, 0.0)
