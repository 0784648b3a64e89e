"""A parser: the best tree of a sentence under a grammar, with treebank labels and the sentence's own words.

Coarse-to-fine pruning determines which symbols may cover which spans, level by level of a split grammar: a symbol may
cover a span if its parent symbol at the previous level has a large enough expected count there (Petrov & Klein 2007,
"Improved inference for unlexicalized parsing", section 3).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

import numpy as np

from truesource.grammar._kernels.kernel import WIDTH
from truesource.grammar._kernels.rules import LexicalRules, SpanPairs, SparseRows
from truesource.grammar.estimate.split_merge.projection import n_levels, projection
from truesource.grammar.inference.batch import NothingLeftError, TooLongError, require_memory
from truesource.grammar.inference.exact import viterbi_tree
from truesource.grammar.inference.posterior import Posterior, max_rule_tree, max_span_tree, posterior, tables
from truesource.grammar.parsing import ParseMethod, Search
from truesource.grammar.parsing import _kernels as kernels
from truesource.grammar.parsing.kbest import k_best_max_rule, k_best_viterbi
from truesource.grammar.parsing.samples import ScoredTree, posterior_samples, scored_trees
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import BoolArray, FloatArray, Int32Array, IntArray
from truesource.grammar.support.errors import InputError
from truesource.grammar.tree import Tree
from truesource.grammar.treebank.binarise import splice, surface
from truesource.grammar.unknown import put_words, read_words

log = logging.getLogger("truesource.grammar")
#: Expected number of nodes below which a symbol is pruned, by pass from the coarsest; the last applies to all further
#: passes. Chosen on development data (docs/howto/parsing.md).
THRESHOLDS = (3e-4, 1e-3, 1e-3)
LOOSER = 1e-3  #: factor on the thresholds if nothing is left of a sentence


@dataclass(frozen=True, eq=False)
class Level:
    """A grammar of S symbols, and their parents at the previous level."""

    pcfg: PCFG
    parent_of: IntArray  #: (S,) symbol at the previous level; -1 if no derivation uses the symbol


def parsing_levels(pcfg: PCFG) -> tuple[Level, ...]:
    """Return levels from the coarsest, the treebank labels, to the grammar itself; none if it cannot be projected.

    After the labels come the levels with four and two splits fewer than the grammar, which were the fastest for
    grammars of five splits (docs/howto/parsing.md). A warning names a split grammar that cannot be projected (with
    infinite expected counts, or damaged split trees).
    """
    if not pcfg.meta.get("split_trees"):
        return ()
    try:
        deepest = n_levels(pcfg) - 1
        passes = sorted({max(level, 0) for level in (0, deepest - 4, deepest - 2)} - {deepest})
        coarse = [projection(pcfg, level) for level in passes]
    except InputError as error:
        log.warning(f"Sentences are parsed without pruning, which is slower, because {error}")
        return ()
    if not coarse:
        return ()
    symbols = [*(result.symbol_of for result in coarse), np.arange(len(pcfg.symbols))]
    levels = []
    for k, grammar in enumerate([*(result.pcfg for result in coarse), pcfg]):
        parent_of = np.full(len(grammar.symbols), -1, dtype=np.int64)
        if k > 0:
            used = symbols[0] >= 0
            parent_of[symbols[k][used]] = symbols[k - 1][used]
        levels.append(Level(grammar, parent_of))
    return tuple(levels)


class CoarseToFine:
    """Prunes the charts of sentences with the levels of a grammar.

    Args:
        levels: from the coarsest to the grammar itself, two or more; see `truesource.grammar.parsing.parser`.
        thresholds: expected numbers of nodes, in (0, 1), by pass; the last applies to all further passes.

    Raises:
        InputError: a threshold is outside (0, 1), or there are none.
    """

    def __init__(self, levels: Sequence[Level], thresholds: Sequence[float] = THRESHOLDS) -> None:
        if not thresholds or not all(0.0 < threshold < 1.0 for threshold in thresholds):
            raise InputError(f"pruning thresholds must be between 0 and 1, got {tuple(thresholds)}")
        self._levels = tuple(levels)
        n_passes = len(levels) - 1
        self._thresholds = (*thresholds, *[thresholds[-1]] * n_passes)[:n_passes]
        coarsest = levels[0].pcfg
        self._coarsest = coarsest
        self._closure, self._pairs, self._lexicon = _single(coarsest)

    def expected(self, sentences: Sequence[Sequence[str]]) -> Iterator[tuple[int, FloatArray]]:
        """Yield the first pass: the number of each sentence and the expected numbers of coarse nodes, (spans, S).

        Sentences come in the order of their length; the result for one does not depend on the others.

        Raises:
            TooLongError: the chart of a sentence does not fit the memory of this machine.
        """
        require_memory(longest := max(map(len, sentences), default=0), self._bytes(longest))
        order = sorted(range(len(sentences)), key=lambda number: len(sentences[number]))
        for first in range(0, len(order), WIDTH):
            numbers = order[first : first + WIDTH]
            words, sizes = self._side_by_side([sentences[number] for number in numbers])
            chart = kernels.inside(words, self._closure, self._pairs, self._lexicon)
            expected = kernels.posterior(
                chart, sizes, self._coarsest.start, self._thresholds[0], self._closure, self._pairs
            )
            for lane, number in enumerate(numbers):
                yield number, expected[: sizes[lane] * (sizes[lane] + 1) // 2, :, lane]

    def fits(self, n: int) -> bool:
        """Return True if the first pass over a sentence of n words fits the memory of this machine."""
        try:
            require_memory(n, self._bytes(n))
        except TooLongError:
            return False
        return True

    def _bytes(self, n: int) -> int:
        """Return bytes of the first pass over a batch of length n: three float32, and an int32 for all lanes."""
        return n * (n + 1) // 2 * len(self._coarsest.symbols) * (3 * WIDTH + 1) * 4

    def _side_by_side(self, sentences: Sequence[Sequence[str]]) -> tuple[Int32Array, Int32Array]:
        longest = max(map(len, sentences))
        words, sizes = np.full((longest, WIDTH), -1, dtype=np.int32), np.zeros(WIDTH, dtype=np.int32)
        for lane, sentence in enumerate(sentences):
            sizes[lane] = len(sentence)
            words[: len(sentence), lane] = self._coarsest.encode(sentence)
        return words, sizes

    def allowed(self, sentence: Sequence[str], expected: FloatArray, looser: float = 1.0) -> BoolArray:
        """Return which symbols of the grammar may cover which spans, (spans, S).

        Args:
            sentence: its words.
            expected: expected numbers from its first pass.
            looser: factor on the thresholds, at most 1.

        Raises:
            NothingLeftError: no derivation of the sentence is left.
        """
        allowed: BoolArray = np.zeros((0, 0), dtype=np.bool_)
        n_spans = len(sentence) * (len(sentence) + 1) // 2
        last = len(self._levels) - 1
        for number, level in enumerate(self._levels[1:], start=1):
            threshold = self._thresholds[number - 1] * looser
            allowed = kernels.survivors(expected, n_spans, threshold, level.parent_of)
            if number < last:
                result = posterior(level.pcfg, sentence, allowed)
                expected = np.asarray(result.closed * result.chart.inside)
        return allowed


def _single(pcfg: PCFG) -> tuple[SparseRows, SpanPairs, LexicalRules]:
    """Return the rules of a grammar for the first pass, in float32."""
    exact, shared = pcfg.exact, tables(pcfg.exact)
    pairs, n_states = exact.pairs, len(pcfg.symbols)
    binary = np.zeros(n_states, dtype=np.bool_)
    binary[pcfg.binary[:, 0]] = True
    long = np.asarray((exact.unary_closure[:, binary] > 0.0).any(axis=1))  # can cover more than one word
    order = np.lexsort((pairs.right, ~long[pairs.right], pairs.left))
    place = np.empty(len(order), dtype=np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    start, end = pairs.by_left[:-1].copy(), pairs.by_left[1:].copy()
    until = (start + np.bincount(pairs.left[long[pairs.right]], minlength=n_states)).astype(np.int32)
    of_rule = place[np.repeat(np.arange(len(order)), np.diff(pairs.rule_start))]
    return (
        shared.closure._replace(value=shared.closure.value.astype(np.float32)),
        SpanPairs(start, until, end, pairs.right[order], of_rule, pairs.parent, pairs.prob.astype(np.float32)),
        exact.lexicon._replace(prob=exact.lexicon.prob.astype(np.float32)),
    )


Found = TypeVar("Found")


@dataclass(frozen=True)
class Parse:
    """A tree of a sentence, and its score."""

    tree: Tree  #: treebank labels, not binarised
    score: float  #: nats of the derivation, nats of the product of rule posteriors, or expected correct spans
    search: Search = Search.EXACT  #: part of the chart searched


class Parser:
    """Finds the trees of sentences.

    A split grammar is parsed coarse to fine: constituents that are improbable at its coarser levels are skipped. A
    sentence of which nothing is left is parsed again with lower thresholds, and then exactly. Other grammars are parsed
    exactly.

    Args:
        pcfg: the grammar; unknown words are read by their form if it was induced with lexicon mode ``parse``.
        method: criterion for the best tree.
        exact: never prune.
        thresholds: pruning thresholds; see `truesource.grammar.parsing.parser.CoarseToFine`.

    Raises:
        InputError: the method needs a posterior (all but ``VITERBI``), and the grammar's unary closure does not
            converge; or a threshold is outside (0, 1).
    """

    def __init__(
        self,
        pcfg: PCFG,
        method: ParseMethod = ParseMethod.VITERBI,
        *,
        exact: bool = False,
        thresholds: Sequence[float] = THRESHOLDS,
    ) -> None:
        self.pcfg, self.method = pcfg, method
        if method is not ParseMethod.VITERBI:
            tables(pcfg.exact)  # fails once here, not at every sentence
        levels = () if exact else parsing_levels(pcfg)
        self._pruning = CoarseToFine(levels, thresholds) if levels else None

    @property
    def prunes(self) -> bool:
        """True if sentences are parsed coarse to fine."""
        return self._pruning is not None

    def parse(self, sentence: Sequence[str]) -> Parse:
        """Return the best tree of a sentence.

        Raises:
            InputError: the sentence has probability 0; as `TooLongError`, its chart does not fit into memory.
        """
        (result,) = self.parse_all([sentence])
        if isinstance(result, InputError):
            raise result
        return result

    def parse_all(self, sentences: Sequence[Sequence[str]]) -> list[Parse | InputError]:
        """Return the best trees of sentences, in order, or the error that `parse` raises.

        Sentences of similar length share the first pass, so this is faster than `parse`; the trees are the same.
        """
        result: list[Parse | InputError] = [InputError("a sentence without tokens has no tree")] * len(sentences)
        encoded = [read_words(self.pcfg, sentence) for sentence in sentences]
        for number, expected in self._first_pass(encoded):
            try:
                find = partial(self._best, tuple(sentences[number]))
                (tree, score), search = self._search(encoded[number], expected, find)
            except InputError as error:
                result[number] = error
            else:
                result[number] = Parse(tree, score, search)
        return result

    def best(self, sentence: Sequence[str], k: int) -> list[ScoredTree]:
        """Return the k best trees of a sentence, best first, all distinct; fewer if there are no more.

        The most probable derivations (``VITERBI``) are searched in the whole chart, the greatest products of rule
        posteriors (``MAX_RULE``) in the part left by pruning, as in `parse`.

        Raises:
            InputError: as `parse`; k is below 1; or the method is ``MAX_SPAN``, which has no k-best trees.
        """
        words = read_words(self.pcfg, sentence)
        if self.method is ParseMethod.MAX_SPAN:
            raise InputError("the method max-span has no k-best trees; choose max-rule or viterbi")
        if self.method is ParseMethod.VITERBI:
            trees = k_best_viterbi(self.pcfg, words, k)
        else:
            expected = next((result for _, result in self._first_pass([words])), None)
            trees, _ = self._search(
                words, expected, lambda known, allowed: k_best_max_rule(posterior(self.pcfg, known, allowed), k)
            )
        return scored_trees(self.pcfg, trees, sentence)

    def samples(self, sentence: Sequence[str], k: int, rng: np.random.Generator) -> list[ScoredTree]:
        """Draw trees from the exact posterior of a sentence, each with its log probability; nothing is pruned.

        Raises:
            InputError: as `parse`; or k is below 1.
        """
        words = read_words(self.pcfg, sentence)
        return scored_trees(self.pcfg, posterior_samples(posterior(self.pcfg, words), k, rng), sentence)

    def _first_pass(self, sentences: list[list[str]]) -> Iterator[tuple[int, FloatArray | None]]:
        """Yield numbers of non-empty sentences, with the results of the first pruning pass, if there is one."""
        short: list[int] = []
        long: list[int] = []
        for number, words in enumerate(sentences):
            if words:
                fits = self._pruning is not None and self._pruning.fits(len(words))
                (short if fits else long).append(number)
        for number in long:
            yield number, None
        if self._pruning is not None:
            for place, expected in self._pruning.expected([sentences[number] for number in short]):
                yield short[place], expected

    def _search(
        self, words: list[str], expected: FloatArray | None, find: Callable[[list[str], BoolArray | None], Found]
    ) -> tuple[Found, Search]:
        """Search the chart left by the thresholds, then by lower ones, then the whole chart."""
        if self._pruning is not None and expected is not None:
            for search, looser in ((Search.PRUNED, 1.0), (Search.LOOSER, LOOSER)):
                try:
                    return find(words, self._pruning.allowed(words, expected, looser)), search
                except NothingLeftError:
                    continue
        return find(words, None), Search.EXACT

    def _best(self, words: tuple[str, ...], in_lexicon: list[str], allowed: BoolArray | None) -> tuple[Tree, float]:
        """Return the best tree among the allowed symbols over spans, or among all.

        Args:
            words: words of the tree.
            in_lexicon: the words as the grammar reads them.
            allowed: which symbols may cover which spans, (spans, S); None: all.

        Raises:
            InputError: there is no tree; as `NothingLeftError`, with the allowed symbols.
        """
        if self.method is ParseMethod.VITERBI:
            exact = self.pcfg.exact
            if allowed is None:
                derivation, score = exact.viterbi(in_lexicon)
            else:
                derivation, score = viterbi_tree(exact, exact.best_chains, in_lexicon, allowed)
            return put_words(surface(derivation, self.pcfg), words), score
        best: Callable[[Posterior], tuple[Tree, float]]
        best = max_rule_tree if self.method is ParseMethod.MAX_RULE else max_span_tree
        binarised, score = best(replace(posterior(self.pcfg, in_lexicon, allowed), sentence=words))
        return splice(binarised), score
