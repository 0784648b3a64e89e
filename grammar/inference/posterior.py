"""What a sentence says about its derivation: posterior of symbols, labels and tags, and derivations drawn from it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np

from truesource.grammar._kernels.rules import ChildRules, InsideChart, SparseRows
from truesource.grammar.inference.batch import NothingLeftError, require_memory
from truesource.grammar.inference.rules import child_rules, sparse_rows
from truesource.grammar.support.arrays import BoolArray, FloatArray, Int32Array, IntArray
from truesource.grammar.support.errors import InputError
from truesource.grammar.tree import Tree

if TYPE_CHECKING:
    from truesource.grammar.inference.exact import Exact
    from truesource.grammar.pcfg import PCFG

LOST = 1e-10  #: share of a sentence's probability that charts may lose


@dataclass(frozen=True)
class PosteriorTables:
    """What the posterior needs of a grammar, made once."""

    closure: SparseRows  #: columns of the unary closure
    binary: ChildRules
    unary: ChildRules
    labels: tuple[str, ...]  #: (L,) distinct labels, in the order of the symbols
    state_label: Int32Array  #: (S,) label of each state
    states: tuple[IntArray, ...]  #: states of each label
    #: of each label, the inverse of the block of the unary closure; None where it is the identity
    once: tuple[FloatArray | None, ...]


_TABLES: WeakKeyDictionary[Exact, PosteriorTables] = WeakKeyDictionary()


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
        from truesource.grammar.inference._kernels import posterior as kernels

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
    from truesource.grammar.inference._kernels import posterior as kernels

    exact = pcfg.exact
    known = tables(exact)
    words = pcfg.encode(sentence)
    n = len(words)
    if n == 0:
        raise InputError("a sentence without tokens has no tree")
    require_memory(n, n * (n + 1) // 2 * len(pcfg.symbols) * 28)  # three float64 and an int32
    limits = np.zeros((0, 0), dtype=np.bool_) if allowed is None else allowed
    chart, lost = kernels.inside(words, limits, known.closure, exact.pairs, exact.lexicon)
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
    closed = kernels.outside(chart, n, pcfg.start, known.closure, exact.pairs)
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
