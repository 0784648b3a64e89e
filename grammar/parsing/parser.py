"""A parser: the best tree of a sentence under a grammar, with treebank labels and the sentence's own words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from truesource.grammar.inference.max_rule import max_rule_tree, max_span_tree
from truesource.grammar.inference.posterior import posterior, tables
from truesource.grammar.parsing.method import ParseMethod
from truesource.grammar.surface import surface
from truesource.grammar.tree import Tree
from truesource.grammar.treebank.binarise import splice
from truesource.grammar.unknown import put_words, read_words

if TYPE_CHECKING:
    from truesource.grammar.inference.posterior import Posterior
    from truesource.grammar.pcfg import PCFG


@dataclass(frozen=True)
class Parse:
    """A tree of a sentence, and how good it is."""

    tree: Tree  #: treebank labels, not binarised
    score: float  #: nats of the derivation, nats of the product of rule posteriors, or expected correct spans


class Parser:
    """Finds the trees of sentences.

    Args:
        pcfg: the grammar; words outside its lexicon are read by their form if it was induced with lexicon mode
            ``parse``.
        method: what makes a tree the best one.

    Raises:
        InputError: the posterior is asked for (every method but ``VITERBI``), and the grammar's unary closure does not
            converge.
    """

    def __init__(self, pcfg: PCFG, method: ParseMethod = ParseMethod.VITERBI) -> None:
        self.pcfg, self.method = pcfg, method
        if method is not ParseMethod.VITERBI:
            tables(pcfg.exact)  # fails here, not at every sentence

    def parse(self, sentence: Sequence[str]) -> Parse:
        """The best tree of a sentence.

        Raises:
            InputError: the grammar cannot make the sentence; as `TooLongError`, its chart does not fit into memory.
        """
        known = read_words(self.pcfg, sentence)
        if self.method is ParseMethod.VITERBI:
            derivation, score = self.pcfg.viterbi(known)
            tree = surface(derivation, self.pcfg)
        else:
            best: Callable[[Posterior], tuple[Tree, float]]
            best = max_rule_tree if self.method is ParseMethod.MAX_RULE else max_span_tree
            binarised, score = best(posterior(self.pcfg, known))
            tree = splice(binarised)
        return Parse(put_words(tree, sentence), score)
