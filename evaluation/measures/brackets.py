"""Labelled brackets of parses against those of a treebank, counted as evalb counts them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from truesource.grammar.support.errors import InputError
from truesource.grammar.tree import Tree

ROOTS = frozenset(["", "ROOT", "TOP", "S1", "VROOT"])  #: labels of a top node that says nothing
PUNCTUATION = frozenset([",", ":", "``", "''", "."])  #: tags of words that are not there, as in COLLINS.prm
EMPTY = "-NONE-"  #: tag of a trace, likewise
EQUAL = {"PRT": "ADVP"}  #: labels that count as another one

Bracket = tuple[int, int, str]


@dataclass(frozen=True, kw_only=True)
class Brackets:
    """Counts over a corpus, and the shares that follow from them (0 where there is nothing to count)."""

    matched: int  #: brackets that parse and treebank share
    gold: int  #: brackets of the treebank
    proposed: int  #: brackets of the parses
    exact: int  #: sentences with all brackets right and none too many
    tagged: int  #: words with the right tag
    words: int  #: words that count, punctuation left out
    sentences: int
    missing: int  #: sentences without a parse: their brackets and tags count as not found

    @property
    def precision(self) -> float:
        """Share of the proposed brackets that are right, in [0, 1]."""
        return self.matched / self.proposed if self.proposed else 0.0

    @property
    def recall(self) -> float:
        """Share of the treebank's brackets that were found, in [0, 1]."""
        return self.matched / self.gold if self.gold else 0.0

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall, pooled over the corpus, in [0, 1]."""
        return 2.0 * self.matched / (self.gold + self.proposed) if self.gold + self.proposed else 0.0

    @property
    def exact_match(self) -> float:
        """Share of the sentences that are right throughout, in [0, 1]."""
        return self.exact / self.sentences

    @property
    def tagging(self) -> float:
        """Share of the words with the right tag, in [0, 1]."""
        return self.tagged / self.words if self.words else 0.0

    def __str__(self) -> str:
        return (
            f"labelled F1 {self.f1:.2%} (precision {self.precision:.2%}, recall {self.recall:.2%}),"
            f" exact match {self.exact_match:.2%}, tags {self.tagging:.2%},"
            f" {self.sentences:,} sentences, {self.missing:,} without a parse"
        )


def punctuation(gold: Tree) -> list[bool]:
    """Which words a tree tags as punctuation, traces left out."""
    return [tag in PUNCTUATION for tag, _ in _tagged(gold)]


def brackets(tree: Tree, left_out: Sequence[bool]) -> tuple[Counter[Bracket], list[str]]:
    """Labelled spans of the phrases of a tree, and the tags of the words that count.

    Spans number the words that are left when traces and the words ``left_out`` (one truth value a word that is no
    trace) are taken out; phrases that cover no word and root labels are not listed. Labels are cut at the first
    ``-`` or ``=``.
    """
    found: Counter[Bracket] = Counter()
    tags: list[str] = []
    place = 0
    stack: list[tuple[Tree, int]] = [(tree, -1)]  # with the word it begins at, once its children are done
    while stack:
        node, begin = stack.pop()
        if begin >= 0:
            label = _label(node.label)
            if len(tags) > begin and label not in ROOTS:
                found[begin, len(tags), label] += 1
        elif node.is_preterminal:
            if node.label != EMPTY:
                if not left_out[place]:
                    tags.append(EQUAL.get(node.label, node.label))
                place += 1
        else:
            stack.append((node, len(tags)))
            stack.extend((child, -1) for child in reversed(node.children) if isinstance(child, Tree))
    return found, tags


def _tagged(tree: Tree) -> list[tuple[str, str]]:
    """Tags and words, traces left out."""
    return [
        (node.label, str(node.children[0])) for node in tree.subtrees() if node.is_preterminal and node.label != EMPTY
    ]


def _label(label: str) -> str:
    for mark in "-=":
        label = label.partition(mark)[0]
    return EQUAL.get(label, label)


def compare_brackets(gold: Sequence[Tree], parsed: Sequence[Tree | None]) -> Brackets:
    """Labelled precision, recall and F1, exact match and tagging accuracy, pooled over the corpus.

    The conventions of evalb (Sekine & Collins 1997) with its COLLINS.prm: the root and preterminals are no
    brackets; punctuation is taken out first; ADVP and PRT are the same label; a bracket that stands twice counts
    twice. Both sides are treebank trees (unbinarised, coarse). Other than in evalb, which leaves out sentences
    where it finds no parse or where the two sides disagree on what is punctuation, every sentence counts: the tags of
    the treebank say what is punctuation, and a missing parse (None) has no brackets and no tags.

    Raises:
        InputError: the two have different numbers of sentences, none at all, or a parse has other words.
    """
    if len(gold) != len(parsed) or not gold:
        raise InputError(f"the treebank has {len(gold):,} trees and there are {len(parsed):,} parses; give as many")
    matched = n_gold = proposed = exact = tagged = n_words = 0
    for number, (wanted, found) in enumerate(zip(gold, parsed, strict=True), start=1):
        left_out = punctuation(wanted)
        right, right_tags = brackets(wanted, left_out)
        n_gold += right.total()
        n_words += len(right_tags)
        if found is None:
            continue
        if [word for _, word in _tagged(found)] != [word for _, word in _tagged(wanted)]:
            raise InputError(f"parse {number:,} has other words than tree {number:,} of the treebank")
        ours, our_tags = brackets(found, left_out)
        matched += (right & ours).total()
        proposed += ours.total()
        exact += right == ours
        tagged += sum(a == b for a, b in zip(right_tags, our_tags, strict=True))
    missing = sum(tree is None for tree in parsed)
    return Brackets(
        matched=matched,
        gold=n_gold,
        proposed=proposed,
        exact=exact,
        tagged=tagged,
        words=n_words,
        sentences=len(gold),
        missing=missing,
    )
