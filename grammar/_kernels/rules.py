"""Named tuples of arrays that hold the rules of a grammar, and charts, for kernels.

S is the number of symbols, V of words, and R, L and U the numbers of binary, lexical and unary rules. Kernels that
compute with float32 or with logarithms take the same tuples with other weights in ``prob`` and ``value``. In charts of
single sentences, cell by cell, n is the number of words of a sentence.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from truesource.grammar.support.arrays import BoolArray, FloatArray, Int32Array, IntArray


class PairRules(NamedTuple):
    """Binary rules grouped by their distinct child pairs (P of them, sorted by left, then right child)."""

    left: Int32Array  #: (P,) left child of each pair
    right: Int32Array  #: (P,) right child of each pair
    by_left: Int32Array  #: (S+1,) pairs with left child b are by_left[b]:by_left[b+1]
    rule_start: Int32Array  #: (P+1,) rules of pair p are rule_start[p]:rule_start[p+1]
    parent: Int32Array  #: (R,) left-hand side of each rule
    prob: FloatArray  #: (R,) probability of each rule


class PairBits(NamedTuple):
    """Child pairs as sets of right children, bit sets of W 64-bit integers."""

    partners: IntArray  #: (S, W) right children of each left child
    first: Int32Array  #: (S, W) the pair of the first partner in each integer


class RuleGroups(NamedTuple):
    """Binary rules grouped by two of their three symbols (G distinct pairs, sorted by the first symbol)."""

    group_start: Int32Array  #: (S+1,) groups with first symbol a are group_start[a]:group_start[a+1]
    second: Int32Array  #: (G,) second symbol of each group
    rule_start: Int32Array  #: (G+1,) rules of group g are rule_start[g]:rule_start[g+1]
    third: Int32Array  #: (R,) third symbol of each rule
    prob: FloatArray  #: (R,) probability of each rule


class ChildRules(NamedTuple):
    """Rules of one kind by parent: rules of state a are ``start[a]:start[a+1]``."""

    start: Int32Array  #: (S+1,)
    children: Int32Array  #: (children, rules), contiguous rows
    prob: FloatArray  #: (rules,)


class LexicalRules(NamedTuple):
    """Lexical rules grouped by word."""

    start: Int32Array  #: (V+1,) rules of word w are start[w]:start[w+1]
    parent: Int32Array  #: (L,)
    prob: FloatArray  #: (L,)


class UnaryRules(NamedTuple):
    """Unary rules in the order of the grammar."""

    parent: Int32Array  #: (U,)
    child: Int32Array  #: (U,)
    prob: FloatArray  #: (U,)


class SparseRows(NamedTuple):
    """A sparse (S, S) matrix by rows."""

    start: Int32Array  #: (S+1,)
    column: Int32Array  #: (nnz,)
    value: FloatArray  #: (nnz,), or (nnz, high) if each entry is a row by tokens owed


class ChartRules(NamedTuple):
    """Parts of a grammar for a left-to-right pass."""

    closure: SparseRows  #: unary, by rows
    pairs: PairRules
    groups: RuleGroups  #: by parent and left child
    lexicon: LexicalRules


class GapRules(NamedTuple):
    """Parts of a grammar for patterns with gaps; see `truesource.grammar.inference._kernels.gaps`."""

    closure: SparseRows  #: unary, by rows
    chains: SparseRows  #: the unary closure by columns
    pairs: PairRules
    below_start: Int32Array  #: (S+1,) child pairs of the rules of symbol a are below[below_start[a]:below_start[a+1]]
    below: Int32Array  #: (R,)
    lexicon: LexicalRules
    emission: SparseRows  #: P(word | symbol), by rows
    sums: FloatArray  #: (S,) sums of the rows of `emission`


class LaneLists(NamedTuple):
    """A list for each span, with the lanes of each item as bits."""

    item: Int32Array  #: items of a span are item[begin[span]:end[span]]
    lanes: IntArray
    begin: IntArray  #: (spans,)
    end: IntArray  #: (spans,)


class GapSpans(NamedTuple):
    """Symbols that derive spans of patterns of n words, as bits; see `truesource.grammar.inference._kernels.gaps`."""

    may: IntArray  #: (spans, S) lanes in which the symbol can derive the span
    need: IntArray  #: (spans, S) lanes in which it does so in a whole sentence, at the top of a unary chain
    ahead: IntArray  #: (n, S, parts) ends of spans of the symbol that begin at i
    back: IntArray  #: (n+1, S, parts) beginnings of spans of the symbol that end at j


class GapCells(NamedTuple):
    """The cells of `WIDTH` patterns of n words."""

    tops: LaneLists  #: symbols, each of them a cell
    lows: LaneLists  #: lower ends of their unary chains
    pairs: LaneLists  #: child pairs of the rules of these symbols
    place: Int32Array  #: (spans, S) number of the cell, -1 none
    ahead: IntArray  #: as in `GapSpans`, restricted to the cells
    back: IntArray


class CausalPass(NamedTuple):
    """Result of a left-to-right pass over W sentences of n words."""

    inside: FloatArray  #: (spans, S, W) inside weights, the column of each word multiplied by its scale
    present: BoolArray  #: (spans, S) which states of each span are not zero
    conditional: FloatArray  #: (n, W) P(word | its left context)
    stop: FloatArray  #: (n+1, W) P(end | first j words)
    #: (n+1, S, W) weight of each symbol starting after j words, relative to the probability of the prefix, summed over
    #: the numbers of tokens owed after it that the range of lengths allows
    starts: FloatArray
    scales: FloatArray  #: (n, W) factor of each column
    totals: FloatArray  #: (n+1, W) sum of all weights of symbols starting after j words
    capped: BoolArray  #: (2, W) whether any entry was capped, and any whose symbol can start there
    begun: FloatArray  #: (n+1, S, owed, W) weight of each symbol starting after j words by tokens owed after it

    def least(self, n: int, w: int) -> tuple[float, float]:
        """Return the smallest inside and starting weights of the first n words of sentence w; inf if there are none."""
        inside, begun = self.inside[: n * (n + 1) // 2, :, w], self.begun[: n + 1, :, :, w]
        return inside.min(initial=np.inf, where=inside > 0.0), begun.min(initial=np.inf, where=begun > 0.0)


class CellRules(NamedTuple):
    """Parts of a grammar that charts of single sentences take."""

    closure: SparseRows  #: unary, by rows
    chains: SparseRows  #: the unary closure by columns: entry e of row b is the chain from column[e] to b
    by_parent: RuleGroups  #: parent and left child; right child
    by_left: RuleGroups  #: left child and parent; right child
    by_right: RuleGroups  #: right and left child; parent
    lexicon: LexicalRules


class OwedSteps(NamedTuple):
    """Left-corner steps from a symbol to the left child of a rule, by the tokens that the right child then owes."""

    start: Int32Array  #: (S+1,) steps from symbol a are start[a]:start[a+1]
    child: Int32Array  #: (steps,)
    mass: FloatArray  #: (steps, high) of d tokens owed
    first: Int32Array  #: (steps,) fewest tokens that have mass
    last: Int32Array  #: (steps,) most tokens that have mass; below `first` where none have
    order: Int32Array  #: (S,) symbols, each after those that it is a left corner of, chains of unary rules included
    block: Int32Array  #: (blocks+1,) order[block[k]:block[k+1]] are left corners of each other, or one symbol
    loop: BoolArray  #: (blocks,) whether the block is a cycle


class OwedWindow(NamedTuple):
    """The range of lengths of a pass."""

    low: int  #: fewest tokens
    high: int  #: most tokens
    weight: float  #: the inverse of the probability of the range
    free: bool  #: sentences of any length: the other fields are unused, `weight` is 1


class CellPass(NamedTuple):
    """Result of passes over W sentences of n words, one at a time; undefined where `cells` is -1.

    The B branches are columns after the sentences, with what follows from their own word alone.
    """

    conditional: FloatArray  #: (n, W) P(word | its left context)
    stop: FloatArray  #: (n+1, W) P(end | first j words)
    starts: FloatArray  #: (W, n+1, S) as in `CausalPass`
    scales: FloatArray  #: (n, W) factor of each word
    totals: FloatArray  #: (n+1, W) as in `CausalPass`
    capped: BoolArray  #: (3, W) as in `CausalPass`; and whether an outside weight was capped
    smallest: FloatArray  #: (2, n+1, W) smallest inside weight that ends, and starting weight, after j words; inf: none
    cells: IntArray  #: (W,) of the inside chart; -1 if the pass gave up
    operations: IntArray  #: (W,) of the inside pass
    leaves: FloatArray  #: (W, n, S) outside weights of preterminals, unary chains included; (W, 0, S) if not asked for
    after: FloatArray  #: (B, S) as `starts`, after the word of each branch

    def columns(self, some: slice | IntArray) -> CellPass:
        """Return the pass with some of its columns; arrays by sentence and by branch stay whole."""
        names = ("conditional", "stop", "scales", "totals", "capped", "smallest", "cells", "operations")
        return self._replace(**{name: getattr(self, name)[..., some] for name in names})

    def least(self, n: int, w: int) -> tuple[float, float]:
        """Return the smallest inside and starting weights of the first n words of sentence w; inf if there are none."""
        inside, begun = self.smallest[:, : n + 1, w].min(axis=1).tolist()
        return inside, begun


class InsideChart(NamedTuple):
    """Inside weights of one sentence, ``entry * 2^shift``; see `truesource.grammar.inference._kernels.posterior`."""

    inside: FloatArray  #: (spans, S) unary chains included
    bare: FloatArray  #: (spans, S) without unary steps from the symbol
    shift: IntArray  #: (spans,) powers of two
    listed: Int32Array  #: (spans, S) states that are not zero
    n_listed: Int32Array  #: (spans,) number of listed states


class SpanPairs(NamedTuple):
    """Binary rules by child pair; the pairs of a left child begin with right children of more than one word."""

    start: Int32Array  #: (S,) pairs with left child b are start[b]:end[b]
    until: Int32Array  #: (S,) pairs whose right child can cover more than one word are start[b]:until[b]
    end: Int32Array  #: (S,)
    right: Int32Array  #: (P,) right child of each pair
    pair: Int32Array  #: (R,) pair of each rule
    parent: Int32Array  #: (R,) left-hand side of each rule
    prob: FloatArray  #: (R,)


class LaneChart(NamedTuple):
    """Inside weights of several sentences in lanes; see `truesource.grammar.parsing._kernels`."""

    inside: FloatArray  #: (spans * S * lanes,), ``entry * 2^shift``
    shift: IntArray  #: (spans, lanes) powers of two
    listed: Int32Array  #: (spans, S) states that are not zero in some lane
    n_listed: Int32Array  #: (spans,) number of listed states


class BatchChart(NamedTuple):
    """Inside weights of W sentences, ``entry * 2^shift``; see `truesource.grammar.estimate._kernels`."""

    inside: FloatArray  #: (spans, S, W) unary chains included; rows that are not present are undefined
    present: BoolArray  #: (spans, S) which states of each span are not zero
    shift: IntArray  #: (spans, W) powers of two


class CoarseRules(NamedTuple):
    """Rules of a grammar with symbols projected to labels.

    Rules of one child pair and one parent label make a group. The probability that coarse unary rule u is used over a
    span is the sum over its entries of ``closed[above] * weight * inside[below]``.
    """

    group_start: Int32Array  #: (P+1,) groups of each child pair
    group_coarse: Int32Array  #: (G,) coarse binary rule of each group
    member_start: Int32Array  #: (G+1,) rules of each group
    member_parent: Int32Array  #: (R,)
    member_prob: FloatArray  #: (R,)
    binary: Int32Array  #: (3, C) labels of parent, left and right child of the coarse binary rules
    chain_start: Int32Array  #: (Q+1,) entries of each coarse unary rule
    chain_states: Int32Array  #: (2, entries) states above and below
    chain_weight: FloatArray  #: (entries,)
    chains: Int32Array  #: (2, Q) labels of parent and child of the coarse unary rules


class LengthTable(NamedTuple):
    """Inside masses by number of tokens, 0 to N."""

    masses: FloatArray  #: (S, N+1) P(symbol yields n tokens)
    mirror: FloatArray  #: (S, N+1) the masses in reverse, longest first
    first: IntArray  #: (S,) shortest length of each symbol, N+1 if it has none up to N
    last: IntArray  #: (S,) longest length up to N, 0 if it has none


class WidePairs(NamedTuple):
    """`PairRules` with weights ``m * 2^(960 e)``."""

    left: Int32Array
    right: Int32Array
    by_left: Int32Array
    rule_start: Int32Array
    parent: Int32Array
    m: FloatArray
    e: IntArray


class WideRows(NamedTuple):
    """`SparseRows` with weights ``m * 2^(960 e)``."""

    start: Int32Array
    column: Int32Array
    m: FloatArray
    e: IntArray


class WideLexicon(NamedTuple):
    """`LexicalRules` with weights ``m * 2^(960 e)``."""

    start: Int32Array
    parent: Int32Array
    m: FloatArray
    e: IntArray


class WideSteps(NamedTuple):
    """Left-corner steps from ``parent`` to ``child``; weights (steps, owed) with d tokens owed after the child."""

    parent: Int32Array
    child: Int32Array
    m: FloatArray
    e: IntArray


class WideVector(NamedTuple):
    """A sparse vector with weights ``m * 2^(960 e)``."""

    m: FloatArray  #: zero without an entry
    e: IntArray
    listed: Int32Array  #: indices of its entries, in any order
    size: IntArray  #: (1,) number of entries


class WideTable(NamedTuple):
    """A table of weights ``m * 2^(960 e)``."""

    m: FloatArray
    e: IntArray


class StateMoves(NamedTuple):
    """The moves of an automaton of N states in one direction, and the chains of unary rules that follow each."""

    start: Int32Array  #: (N+1,) moves from state q are start[q]:start[q+1]
    tag: Int32Array  #: (moves,) what generates the token, see `LinearAutomaton`
    to: Int32Array  #: (moves,)
    m: FloatArray
    e: IntArray
    chains: WideRows  #: by the target state of a move


class LinearAutomaton(NamedTuple):
    """A linear grammar; see `truesource.grammar.inference.tables`.

    States are its S symbols, and S, the state before (after) a left- (right-) linear sentence. A
    token is read by tag a < S, any chain of unary rules from symbol a down to a word, or by tag S + a, a lexical rule
    of symbol a.
    """

    begin: int  #: state before the first token
    end: int  #: state after the last
    ahead: StateMoves
    back: StateMoves  #: moves from the last token to the first
    above: WideRows  #: transposed unary closure: symbols above each
    below: WideRows  #: unary closure


class Cells(NamedTuple):
    """The inside chart of one sentence, in the order in which its cells were made."""

    begin: Int32Array  #: first word of each cell's span
    end: Int32Array  #: the word after its last
    symbol: Int32Array
    value: FloatArray
    same_end: Int32Array  #: the cell made before it with the same end and symbol; -1 none
    same_begin: Int32Array  #: the cell made before it with the same beginning and symbol


class ColumnSums(NamedTuple):
    """Sums for the spans (i, j) with one end j."""

    sums: FloatArray  #: (n, S)
    listed: Int32Array  #: (n, S) symbols whose sum is not zero
    n_listed: Int32Array  #: (n,) number of listed symbols


class Begun(NamedTuple):
    """Weights of symbols that start after some words; each weight that is not zero is a row by tokens owed."""

    rows: FloatArray  #: (rows, owed)
    symbol: Int32Array  #: (rows,)
    row: Int32Array  #: (n+1, S) number of the row, -1 none
    until: IntArray  #: (n+1,) rows of position j are until[j-1]:until[j]
    omega: FloatArray  #: (S, owed) weights of what can start next, before the closure
    listed: Int32Array  #: (S,) symbols of `omega` that are not zero
    n_listed: IntArray  #: (1,) number of listed symbols
    marked: BoolArray  #: (S,) whether listed


class Waiting(NamedTuple):
    """Additions to spans whose column comes later."""

    before: Int32Array  #: the previous addition to the same column, -1 none
    begin: Int32Array  #: first word of the span
    symbol: Int32Array
    amount: FloatArray


class Space(NamedTuple):
    """Work arrays shared by all sentences of a call; each sentence restores them."""

    chart: Cells
    column: ColumnSums
    begun: Begun
    last_end: Int32Array  #: (n+1, S) last cell with this end and symbol, -1 none
    last_begin: Int32Array  #: (n, S) last cell with this beginning and symbol, -1 none
    closed: FloatArray  #: (S,) one span's weights, unary chains included
    listed: Int32Array  #: (S,) symbols that `closed` holds
    waiting: Waiting
    cells_after: IntArray  #: (n+1,) cells of the chart after j words
    used: IntArray  #: (n+1,) operations up to there


class Branches(NamedTuple):
    """Other words after the first words of sentences, by sentence; B of them, the longest beginnings first."""

    first: IntArray  #: (W+1,) branches of sentence w are first[w]:first[w+1]
    after: IntArray  #: (B,) number of words before it
    word: Int32Array  #: (B,)


class ForestNodes(NamedTuple):
    """The nodes of a forest; see `truesource.grammar.estimate.split_merge.estep.Forest`."""

    rule: Int32Array  #: (N,) base rule
    left: Int32Array  #: (N,)
    right: Int32Array  #: (N,)
    batches: IntArray  #: (M + 1,)
    offset: IntArray  #: (N,) where a node's vector starts


class Entries(NamedTuple):
    """Nonzero probabilities of a grammar with substates, by base rule and child pair.

    The child pairs (b, c) of base rule r are ``first_pair[r]`` to ``first_pair[r + 1]``, an absent child being
    substate 0; the parents' substates and probabilities of pair q are ``first_entry[q]`` to ``first_entry[q + 1]``,
    the dormant ones last.
    """

    first_pair: IntArray  #: (R + 1,)
    pair: Int32Array  #: (P, 2)
    first_entry: IntArray  #: (P + 1,)
    end_live: IntArray  #: (P,) one past the last entry of each pair that is not dormant
    substate: Int32Array  #: (E,)
    prob: NDArray[Any]  #: (E,) float64 or float32


class NumberedRules(NamedTuple):
    """Rules of all kinds, numbered consecutively: binary, then unary, then lexical."""

    left: Int32Array  #: (T,) left or only child, a word number for lexical rules
    right: Int32Array  #: (T,) right child of binary rules
    logp: FloatArray  #: (T,) nats
    n_binary: int
    n_unary: int


class Choices(NamedTuple):
    """Rules to choose from, by symbol: the options of A are ``options[bounds[A]:bounds[A + 1]]``."""

    options: Int32Array  #: (C,) rule numbers
    bounds: IntArray  #: (S + 1,)
    sums: FloatArray  #: (C,) running weights of each symbol's rules, or one row for each number of tokens
