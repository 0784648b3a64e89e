"""A parser: the best tree of a sentence under a grammar, with treebank labels and the sentence's own words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from truesource.grammar.inference.batch import NothingLeftError
from truesource.grammar.inference.max_rule import max_rule_tree, max_span_tree
from truesource.grammar.inference.posterior import posterior, tables
from truesource.grammar.inference.viterbi import viterbi_tree
from truesource.grammar.parsing.kbest import k_best_max_rule, k_best_viterbi
from truesource.grammar.parsing.levels import parsing_levels
from truesource.grammar.parsing.method import ParseMethod, Search
from truesource.grammar.parsing.pruning import THRESHOLDS, CoarseToFine
from truesource.grammar.parsing.samples import ScoredTree, posterior_samples, scored_trees
from truesource.grammar.support.errors import InputError
from truesource.grammar.surface import surface
from truesource.grammar.tree import Tree
from truesource.grammar.treebank.binarise import splice
from truesource.grammar.unknown import put_words, read_words

if TYPE_CHECKING:
    import numpy as np

    from truesource.grammar.inference.posterior import Posterior
    from truesource.grammar.pcfg import PCFG
    from truesource.grammar.support.arrays import BoolArray, FloatArray

Found = TypeVar("Found")
LOOSER = 1e-3  #: what thresholds are multiplied by where nothing is left of a sentence


@dataclass(frozen=True)
class Parse:
    """A tree of a sentence, and how good it is."""

    tree: Tree  #: treebank labels, not binarised
    score: float  #: nats of the derivation, nats of the product of rule posteriors, or expected correct spans
    search: Search = Search.EXACT  #: where the tree was looked for


class Parser:
    """Finds the trees of sentences.

    A grammar made by splitting symbols is parsed coarse to fine: what its coarser levels find improbable is not looked
    at. A sentence of which nothing is left is parsed again with lower thresholds, and then exactly. Other grammars are
    parsed exactly.

    Args:
        pcfg: the grammar; words outside its lexicon are read by their form if it was induced with lexicon mode
            ``parse``.
        method: what makes a tree the best one.
        exact: never prune.
        thresholds: of pruning; see `truesource.grammar.parsing.pruning.CoarseToFine`.

    Raises:
        InputError: a posterior is asked for (every method but ``VITERBI``), and the grammar's unary closure does not
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
            tables(pcfg.exact)  # fails here, not at every sentence
        levels = () if exact else parsing_levels(pcfg)
        self._pruning = CoarseToFine(levels, thresholds) if levels else None

    @property
    def prunes(self) -> bool:
        """Whether sentences are parsed coarse to fine."""
        return self._pruning is not None

    def parse(self, sentence: Sequence[str]) -> Parse:
        """The best tree of a sentence.

        Raises:
            InputError: the grammar cannot make the sentence; as `TooLongError`, its chart does not fit into memory.
        """
        (found,) = self.parse_all([sentence])
        if isinstance(found, InputError):
            raise found
        return found

    def parse_all(self, sentences: Sequence[Sequence[str]]) -> list[Parse | InputError]:
        """The best trees of sentences, in their order; what `parse` raises in place of a tree.

        Sentences of similar length share the first pass, so this is faster than `parse`; the trees are the same.
        """
        found: list[Parse | InputError] = [InputError("a sentence without tokens has no tree")] * len(sentences)
        known = [read_words(self.pcfg, sentence) for sentence in sentences]
        for number, expected in self._first_pass(known):
            try:
                find = partial(self._best, tuple(sentences[number]))
                (tree, score), search = self._search(known[number], expected, find)
            except InputError as error:
                found[number] = error
            else:
                found[number] = Parse(tree, score, search)
        return found

    def best(self, sentence: Sequence[str], k: int) -> list[ScoredTree]:
        """The k best trees of a sentence, best first, all different; fewer if there are no more.

        The most probable derivations (``VITERBI``) are looked for in the whole chart, the greatest products of rule
        posteriors (``MAX_RULE``) in what pruning leaves, where `parse` looks.

        Raises:
            InputError: as `parse`; k is below 1; or the method is ``MAX_SPAN``, which has no k-best trees.
        """
        words = read_words(self.pcfg, sentence)
        if self.method is ParseMethod.MAX_SPAN:
            raise InputError("the method max-span has no k-best trees; choose max-rule or viterbi")
        if self.method is ParseMethod.VITERBI:
            trees = k_best_viterbi(self.pcfg, words, k)
        else:
            expected = next((found for _, found in self._first_pass([words])), None)
            trees, _ = self._search(
                words, expected, lambda known, allowed: k_best_max_rule(posterior(self.pcfg, known, allowed), k)
            )
        return scored_trees(self.pcfg, trees, sentence)

    def samples(self, sentence: Sequence[str], k: int, rng: np.random.Generator) -> list[ScoredTree]:
        """Trees drawn from the exact posterior of a sentence, each with its log probability; nothing is pruned.

        Raises:
            InputError: as `parse`; or k is below 1.
        """
        words = read_words(self.pcfg, sentence)
        return scored_trees(self.pcfg, posterior_samples(posterior(self.pcfg, words), k, rng), sentence)

    def _first_pass(self, sentences: list[list[str]]) -> Iterator[tuple[int, FloatArray | None]]:
        """Numbers of the sentences that have words, with what the first pass of pruning finds, if there is one."""
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
        """What is found in what is left at the thresholds, at lower ones, or in all of the chart."""
        if self._pruning is not None and expected is not None:
            for search, looser in ((Search.PRUNED, 1.0), (Search.LOOSER, LOOSER)):
                try:
                    return find(words, self._pruning.allowed(words, expected, looser)), search
                except NothingLeftError:
                    continue
        return find(words, None), Search.EXACT

    def _best(self, words: tuple[str, ...], known: list[str], allowed: BoolArray | None) -> tuple[Tree, float]:
        """The best tree with what is allowed, (spans, S), or with everything.

        Args:
            words: to stand in the tree.
            known: the words as the grammar reads them.
            allowed: which symbols may cover which spans.

        Raises:
            InputError: there is none; as `NothingLeftError`, with what is allowed.
        """
        if self.method is ParseMethod.VITERBI:
            exact = self.pcfg.exact
            if allowed is None:
                derivation, score = exact.viterbi(known)
            else:
                derivation, score = viterbi_tree(exact, exact.best_chains, known, allowed)
            return put_words(surface(derivation, self.pcfg), words), score
        best: Callable[[Posterior], tuple[Tree, float]]
        best = max_rule_tree if self.method is ParseMethod.MAX_RULE else max_span_tree
        binarised, score = best(replace(posterior(self.pcfg, known, allowed), sentence=words))
        return splice(binarised), score
