"""The exact quantities of one grammar, computed once and cached; and the most probable derivation of a sentence."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from numpy.typing import DTypeLike
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import dijkstra

from truesource.grammar._kernels.rules import ChildRules, LexicalRules, SparseRows
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.inference._kernels import posterior as kernels
from truesource.grammar.inference._kernels.linear import best_path
from truesource.grammar.inference.batch import Batch, Distributions, NothingLeftError, require_memory, run
from truesource.grammar.inference.charts import CausalCharts, Charts, Leaves, LinearCharts
from truesource.grammar.inference.next_token import NextToken
from truesource.grammar.inference.other_words import OtherWords
from truesource.grammar.inference.tables import GrammarTables, LinearRules
from truesource.grammar.rules import GrammarRules
from truesource.grammar.sentences import takes_sentence, takes_sentences
from truesource.grammar.support.arrays import BoolArray, FloatArray, Int32Array, IntArray, float_type
from truesource.grammar.support.errors import InputError
from truesource.grammar.tree import Tree

if TYPE_CHECKING:
    from truesource.grammar.inference.wide_charts import WideCharts


Variant = Literal["default", "paper"]


class Exact(GrammarTables):
    """Exact inference for one `PCFG`. All methods are pure; repeated quantities are cached.

    Every method that takes ``lengths`` conditions on ``lengths.low <= length <= lengths.high``, exactly. Methods that
    take ``dtype`` compute their charts in it: float32 is faster, and within 1e-4 nats a token. Sentences whose weights
    exceed the range of the type are detected (`truesource.grammar.inference.certificate`) and recomputed. Linear
    grammars need no charts: see `truesource.grammar.inference.charts`.
    """

    def __init__(self, pcfg: GrammarRules) -> None:
        super().__init__(pcfg)
        self._charts: dict[str, Charts | LinearCharts] = {}

    # -- once per grammar ---------------------------------------------------------------------------

    @cached_property
    def best_chains(self) -> BestChains:
        """Most probable unary chain between any two symbols."""
        return best_chains(self.pcfg)

    @cached_property
    def wide(self) -> WideCharts:
        """Charts of single sentences at any range of probabilities."""
        from truesource.grammar.inference.wide_charts import WideCharts

        return WideCharts(self)

    # -- batches ------------------------------------------------------------------------------------

    def charts(self, dtype: DTypeLike = np.float64) -> Charts | LinearCharts:
        """Return the chart kernels in one precision; for a linear grammar its automaton, always in float64.

        Raises:
            InputError: the type is neither float64 nor float32.
        """
        key = float_type(dtype).name
        if key not in self._charts:
            if self.linear is not None:
                self._charts[key] = LinearCharts(self, self.linear)
            else:
                double = None if key == "float64" else Charts(self, lambda: self.wide)
                self._charts[key] = Charts(self, lambda: self.wide, dtype, double=double)
        return self._charts[key]

    @takes_sentences
    def causal_log_probs(
        self, sentences: Sequence[Sequence[str]], lengths: LengthRange | None = None, *, dtype: DTypeLike = np.float64
    ) -> list[FloatArray]:
        """Return ln P(token | its left context) for each sentence, (n+1,): the words, then the end of the sentence.

        The sum over a sentence is its log probability (given ``lengths``). From the first token that is
        impossible in its context on, entries are -inf.
        """
        charts = self.charts(dtype)

        def task(batch: Batch) -> FloatArray:
            result = charts.causal(batch.words, lengths, first=len(batch.words) + 1)
            return np.concatenate([result.log_conditional, result.log_stop[-1:]])

        return _score(
            task,
            self.causal_batches(sentences, lengths, dtype=dtype),
            len(sentences),
            "exact next-word probabilities of sentences",
        )

    @takes_sentences
    def causal_batches(
        self, sentences: Sequence[Sequence[str]], lengths: LengthRange | None = None, *, dtype: DTypeLike = np.float64
    ) -> list[Batch]:
        """Return sentences in batches for `next_token_blocks`; equal sentences share a column.

        Raises:
            InputError: a sentence has no tokens.
            TooLongError: a sentence needs more memory than the machine has.
        """
        return self.charts(dtype).batches(sentences, lengths)

    def next_token_blocks(
        self, batch: Batch, lengths: LengthRange | None = None, *, first: int = 0, dtype: DTypeLike = np.float64
    ) -> Iterator[Distributions]:
        """Yield the next-token distributions of one batch, positions ``first`` to n, each computed on demand."""
        yield from self._blocks(batch, self.charts(dtype).causal(batch.words, lengths, first=first), first)

    def _blocks(self, batch: Batch, result: CausalCharts, first: int) -> Iterator[Distributions]:
        n, width = batch.words.shape
        whole = result.whole
        for j in range(first, n + 1):
            states = result.starts[j - first]
            table = np.empty((width, len(self.pcfg.vocabulary) + 1))
            table[:, :-1] = (self.emission_by_word @ states).T
            table[:, -1] = np.exp(result.log_stop[j])
            possible = np.isfinite(result.log_conditional[:j]).all(axis=0)
            table[~possible] = 0.0
            observed = batch.words[j].astype(np.int64) if j < n else np.full(width, table.shape[1] - 1)
            possible = np.asarray(possible & table.any(axis=1))
            logs = result.log_conditional[j] if j < n else np.where(whole, result.log_stop[n], -np.inf)
            yield Distributions(j, batch.members, observed, table, possible, whole, logs, states.T)

    def blocks_beside(
        self,
        batch: Batch,
        others: OtherWords,
        lengths: LengthRange | None = None,
        *,
        first: int = 0,
        dtype: DTypeLike = np.float64,
    ) -> tuple[Iterator[Distributions], IntArray, FloatArray]:
        """Return `next_token_blocks`, and distributions after other words: see `ExactCausal`."""
        result, after = self.charts(dtype).causal_beside(batch.words, others, lengths, first=first)
        return self._blocks(batch, result, first), after.number, after.table(self.emission_by_word)

    @takes_sentences
    def string_log_probs(
        self, sentences: Sequence[Sequence[str]], lengths: LengthRange | None = None, *, dtype: DTypeLike = np.float64
    ) -> FloatArray:
        """Return ln P(sentence), given ``lengths`` if any, (N,); -inf for an impossible sentence.

        A length condition needs no further pass: it subtracts ``ln Z`` from sentences of such lengths.
        """
        result = np.array([float(s.sum()) for s in self.causal_log_probs(sentences, dtype=dtype)])
        if lengths is not None:
            result -= self.log_range_mass(lengths)
            result[[len(s) not in lengths for s in sentences]] = -np.inf
        return result

    @takes_sentences
    def masked_log_probs(
        self, sentences: Sequence[Sequence[str]], *, variant: Variant = "default", dtype: DTypeLike = np.float64
    ) -> list[FloatArray]:
        """Return ln P(token | all other tokens and the length) for each sentence, (n,).

        Conditioning on a length range changes nothing. An impossible token given the others has
        -inf, never NaN, also if the other tokens alone are impossible. ``variant="paper"`` sums over
        every nonterminal of a one-token span as Jumelet & Zuidema (2023, eq. 12) print it, which counts a
        derivation with unary rules several times: for comparison only.
        """
        charts = self.charts(dtype)

        def task(batch: Batch) -> FloatArray:
            return self.log_observed(batch.words, charts, variant=variant)

        return _score(
            task,
            charts.batches(sentences, outside=True),
            len(sentences),
            "exact masked-word probabilities of sentences",
        )

    def log_observed(
        self,
        words: Int32Array,
        charts: Charts | LinearCharts,
        leaves: Leaves | None = None,
        variant: Variant = "default",
    ) -> FloatArray:
        """Return ln P(word | all others and the length) of ``words`` (n, W), from outside weights; (n, W) nats."""
        if isinstance(charts, LinearCharts):
            return charts.masked(words, None if variant == "default" else self.lexical_weights(variant))
        lexical = self.lexical_weights(variant)
        leaves = leaves or charts.leaves(words, whole_only=True)
        sums, table = np.asarray(lexical.sum(axis=1)).ravel(), np.full(words.shape, -np.inf)
        for w, logs in leaves.logs.items():
            if leaves.whole[w]:
                table[:, w] = self._log_observed_wide(words[:, w], logs, variant)
        plain = np.setdiff1d(np.flatnonzero(leaves.whole), list(leaves.logs))
        if plain.size:
            weights, flat = leaves.weights[:, :, plain], words[:, plain].ravel()
            rows = lexical.T.tocsr()[flat]
            place = np.repeat(np.arange(flat.size), np.diff(rows.indptr))
            weight_of_word = rows.data * weights[place // plain.size, rows.indices, place % plain.size]
            every = np.einsum("s,isw->iw", sums, weights)
            table[:, plain] = np.log(np.bincount(place, weight_of_word, flat.size).reshape(every.shape) / every)
        return table

    def _log_observed_wide(self, words: Int32Array, logs: FloatArray, variant: Variant) -> FloatArray:
        """Return masked log probabilities of one sentence, ``words`` (n,), from logarithms (n, S)."""
        lexical, row = self.lexical_weights(variant), np.empty(len(words))
        columns, sums = lexical.tocsc(), _log(np.asarray(lexical.sum(axis=1)).ravel())
        for i, word in enumerate(words):
            if variant == "default":
                rules = slice(*self.lexicon.start[word : word + 2])  # the order of the grammar's arrays
                log_weights = logs[i, self.lexicon.parent[rules]] + self.pcfg.lexical_logp[rules]
                every = logs[i] + self.log_lexical_sums
            else:
                rules = slice(columns.indptr[word], columns.indptr[word + 1])
                log_weights = logs[i, columns.indices[rules]] + _log(columns.data[rules])
                every = logs[i] + sums
            row[i] = np.logaddexp.reduce(log_weights) - np.logaddexp.reduce(every)
        return row

    def lexical_weights(self, variant: Variant = "default") -> csr_matrix[np.float64]:
        """Return factors of the outside weight of a symbol over one token, (S, V).

        ``default``: P(word | preterminal). ``paper``: the inside of every nonterminal, unary chains included.
        """
        if variant == "default":
            return self.emission
        return csr_matrix(csr_matrix(self.unary_closure) @ self.emission)

    # -- one sentence -------------------------------------------------------------------------------

    @takes_sentence
    def prefix_log_prob(self, prefix: Sequence[str], lengths: LengthRange | None = None) -> float:
        """Return ln P(a sentence starts with ``prefix``), given ``lengths`` if any; -inf if none does."""
        if not prefix:
            if lengths is not None:
                self.range_mass(lengths)  # raises if no sentence has such a length
                return 0.0
            return math.log(self.total_mass) if self.total_mass > 0.0 else -math.inf
        words = self.pcfg.encode(prefix).reshape(-1, 1)
        result = self.charts().causal(words, lengths, first=len(prefix) + 1)
        return float(result.log_conditional.sum())

    @takes_sentence
    def next_token(self, prefix: Sequence[str], lengths: LengthRange | None = None) -> NextToken:
        """Return the distribution of the next word or the end after ``prefix``.

        Raises:
            InputError: no sentence (in that length range) starts with ``prefix``.
        """
        result = self.charts().causal(self.pcfg.encode(prefix).reshape(-1, 1), lengths, first=len(prefix))
        if not np.isfinite(result.log_conditional).all():
            at = int(np.argmin(result.log_conditional[:, 0]))
            raise InputError(
                f"no sentence starts with {' '.join(prefix[: at + 1])!r}: {prefix[at]!r} is impossible there"
            )
        states = result.starts[-1, :, 0]
        return NextToken(
            self.pcfg.vocabulary, np.asarray(states @ self.emission), math.exp(result.log_stop[-1, 0]), states
        )

    @takes_sentence
    def masked(self, sentence: Sequence[str], position: int) -> FloatArray:
        """Return P(word at ``position`` | all other words and the length), (V,), for every word.

        Raises:
            InputError: ``position`` is outside the sentence, or no word fits there.
        """
        if not 0 <= position < len(sentence):
            raise InputError(f"position {position} is outside a sentence of {len(sentence)} tokens")
        leaves = self.charts().leaves(self.pcfg.encode(sentence).reshape(-1, 1)).weights
        outside = np.where(np.diff(self.emission.indptr) > 0, leaves[position, :, 0], 0.0)  # of symbols with words
        joint = np.asarray((outside / (outside.max() or 1.0)) @ self.emission)  # the largest is 1, so none is lost
        if not joint.sum() > 0.0:
            raise InputError(f"no word fits position {position} of {' '.join(sentence)!r}")
        result: FloatArray = joint / joint.sum()
        return result

    @takes_sentence
    def viterbi(self, sentence: Sequence[str]) -> tuple[Tree, float]:
        """Return the most probable derivation and its log probability, nats."""
        if self.linear is not None:
            return linear_viterbi_tree(self.linear, self.lexicon, self.best_chains, sentence)
        return viterbi_tree(self, self.best_chains, sentence)


def _score(
    task: Callable[[Batch], FloatArray], work: Sequence[Batch], n_sentences: int, description: str
) -> list[FloatArray]:
    """Return results of ``task`` for each column of a batch, in the order of the sentences."""
    scores: list[FloatArray] = [np.empty(0)] * n_sentences
    for batch, table in run(task, work, description, n_sentences):
        for column, members in enumerate(batch.members):
            for i in members:
                scores[i] = np.ascontiguousarray(table[:, column])
    return scores


def _log(p: FloatArray) -> FloatArray:
    """Return the natural logarithm, -inf at zero, without a warning."""
    with np.errstate(divide="ignore"):
        return np.log(p)


@dataclass(frozen=True, eq=False)
class BestChains:
    """Most probable unary chain between any two symbols."""

    rows: SparseRows  #: (S, S) log probabilities, 0 on the diagonal
    place: IntArray  #: (S,) index of each symbol among the K that have unary rules; -1 for others
    before: Int32Array  #: (K, K) index of the symbol before B on the best chain from A, negative for none
    touched: IntArray  #: (K,) the symbols that have unary rules

    def down(self, top: int, low: int) -> list[int]:
        """Return the states of the best chain from ``top`` to ``low``, both included."""
        path = [low]
        while path[-1] != top:
            path.append(int(self.touched[self.before[self.place[top], self.place[path[-1]]]]))
        return path[::-1]


def best_chains(pcfg: GrammarRules) -> BestChains:
    """Return the most probable unary chain between any two symbols."""
    n = len(pcfg.symbols)
    touched = np.unique(pcfg.unary).astype(np.int64)
    place = np.full(n, -1)
    place[touched] = np.arange(len(touched))
    # a rule of probability 1 must not count as "no edge"
    weight = np.maximum(-pcfg.unary_logp, 1e-300)
    above, below = place[pcfg.unary].T
    distance, before = dijkstra(
        csr_matrix((weight, (above, below)), shape=(len(touched),) * 2), return_predecessors=True
    )
    row, column = np.nonzero(np.isfinite(distance))
    alone = np.flatnonzero(place < 0)
    rows = csr_matrix(
        (
            np.append(-distance[row, column], np.zeros(len(alone))),
            (np.append(touched[row], alone), np.append(touched[column], alone)),
        ),
        shape=(n, n),
    )
    logs = SparseRows(rows.indptr.astype(np.int32), rows.indices.astype(np.int32), rows.data)
    return BestChains(logs, place, before, touched)


class ViterbiCharts(NamedTuple):
    """The best derivation of every symbol over every span, -1 for none."""

    words: Int32Array  #: (n,) numbers of the words
    best: FloatArray  #: (spans, S) its log probability, -inf for none
    chain: Int32Array  #: (spans, S) state at the lower end of its unary chain
    rule: Int32Array  #: (spans, S) rule of that state below its chains
    split: Int32Array  #: (spans, S) split of that rule


def viterbi_charts(
    tables: GrammarTables, chains: BestChains, sentence: Sequence[str], allowed: BoolArray | None = None
) -> ViterbiCharts:
    """Return the most probable derivation of each symbol over each span; arguments and errors as in `viterbi_tree`."""
    pcfg, pairs, lexicon = tables.pcfg, tables.pairs, tables.lexicon
    words = pcfg.encode(sentence)
    if len(words) == 0:
        raise InputError("a sentence without tokens has no tree; remove it")
    n = len(words)
    require_memory(n, n * (n + 1) // 2 * len(pcfg.symbols) * 20)  # a float64 and three int32
    charts = kernels.viterbi(
        words,
        np.zeros((0, 0), dtype=np.bool_) if allowed is None else allowed,
        chains.rows,
        pairs._replace(prob=pcfg.binary_logp),
        lexicon._replace(prob=pcfg.lexical_logp),
    )
    if not math.isfinite(charts[0][n * (n - 1) // 2, pcfg.start]):
        if allowed is not None:
            raise NothingLeftError(sentence)
        raise InputError(f"the sentence {' '.join(sentence)!r} has probability 0 under the grammar")
    return ViterbiCharts(words, *charts)


def viterbi_tree(
    tables: GrammarTables, chains: BestChains, sentence: Sequence[str], allowed: BoolArray | None = None
) -> tuple[Tree, float]:
    """Return the most probable derivation of the grammar itself (binarised, with its symbols), and its log probability.

    Args:
        tables: tables of the grammar.
        chains: result of `best_chains`.
        sentence: its words.
        allowed: which symbols may cover which span, (spans, S); None: all of them.

    Raises:
        InputError: the sentence has probability 0 (`NothingLeftError`: with the allowed symbols), or its chart does not
            fit the memory of this machine.
    """
    pcfg, n = tables.pcfg, len(sentence)
    _, best, chain, rule, split = viterbi_charts(tables, chains, sentence, allowed)

    def bottom(i: int, j: int, top: int) -> tuple[list[str], int]:
        """Return names down the best unary chain over (i, j) from ``top``, and the state at its lower end."""
        low = int(chain[j * (j - 1) // 2 + i, top])
        return [pcfg.symbols[s] for s in chains.down(top, low)], low

    # post-order over an explicit stack: (i, j, state, expanded)
    stack: list[tuple[int, int, int, bool]] = [(0, n, pcfg.start, False)]
    done: list[Tree] = []
    while stack:
        i, j, state, expanded = stack.pop()
        names, low = bottom(i, j, state)
        span = j * (j - 1) // 2 + i
        if j - i == 1:
            node = Tree(names[-1], (sentence[i],))
        elif not expanded:
            k, r = int(split[span, low]), int(rule[span, low])
            _, b, c = pcfg.binary[r]
            stack += [(i, j, state, True), (k, j, int(c), False), (i, k, int(b), False)]
            continue
        else:
            right, left = done.pop(), done.pop()
            node = Tree(names[-1], (left, right))
        for name in reversed(names[:-1]):
            node = Tree(name, (node,))
        done.append(node)
    return done[0], float(best[n * (n - 1) // 2, pcfg.start])


def linear_viterbi_tree(
    rules: LinearRules, lexicon: LexicalRules, chains: BestChains, sentence: Sequence[str]
) -> tuple[Tree, float]:
    """Return the result of `truesource.grammar.inference.exact.viterbi_tree` for a linear grammar.

    Raises:
        InputError: the sentence has probability 0.
    """
    pcfg, right = rules.pcfg, rules.side == "right"
    if not sentence:
        raise InputError("a sentence without tokens has no tree; remove it")
    n = len(pcfg.symbols)
    source, tag, target, logp = rules.moves()
    order = np.argsort(source, kind="stable")
    start = np.searchsorted(source[order], np.arange(n + 2)).astype(np.int32)
    moves = ChildRules(start, np.stack([tag[order], target[order]]), logp[order])
    above = _transposed(chains.rows)
    ends = (pcfg.start, n) if right else (n, pcfg.start)
    closing = _with_outer(chains.rows if right else above)
    score, *path = best_path(
        pcfg.encode(sentence), *ends, moves, closing, above, lexicon._replace(prob=pcfg.lexical_logp)
    )
    if not math.isfinite(score):
        raise InputError(f"the sentence {' '.join(sentence)!r} has probability 0 under the grammar")
    arrived, closed, tags, made_by = (part.tolist() for part in path)

    def chain(top: int, low: int, children: tuple[Tree | str, ...]) -> Tree:
        """Return the best chain of unary rules over ``children`` of its lower end."""
        for state in reversed(chains.down(top, low)):
            children = (Tree(pcfg.symbols[state], children),)
        (tree,) = children
        assert isinstance(tree, Tree)
        return tree

    done: tuple[Tree | str, ...] = ()
    for i in reversed(range(len(sentence))) if right else range(len(sentence)):
        top, low = (arrived[i], closed[i]) if right else (closed[i + 1], arrived[i + 1])
        if tags[i + 1] >= n:
            done = (chain(top, low, (sentence[i],)),)
        else:
            over_word = chain(tags[i + 1], made_by[i + 1], (sentence[i],))
            done = (chain(top, low, (over_word, *done) if right else (*done, over_word)),)
    (tree,) = done
    assert isinstance(tree, Tree)
    return tree, float(score)


def _transposed(rows: SparseRows) -> SparseRows:
    size = len(rows.start) - 1
    result = csr_matrix((rows.value, rows.column, rows.start), shape=(size, size)).T.tocsr()
    return SparseRows(result.indptr.astype(np.int32), result.indices.astype(np.int32), result.data)


def _with_outer(rows: SparseRows) -> SparseRows:
    """Add a row for the state outside all symbols, which has no chains."""
    size = len(rows.start) - 1
    column = np.append(rows.column, np.int32(size))
    return SparseRows(np.append(rows.start, rows.start[-1] + 1), column, np.append(rows.value, 0.0))
