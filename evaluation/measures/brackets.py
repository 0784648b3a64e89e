"""Labelled brackets of parses against those of a treebank, counted as evalb counts them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from grammar.errors import InputError
from grammar.tree import Tree

ROOTS = frozenset(["", "ROOT", "TOP", "S1", "VROOT"])  #: labels of a top node that says nothing
PUNCTUATION = frozenset([",", ":", "``", "''", "."])  #: tags of words that are not there, as in COLLINS.prm
EMPTY = "-NONE-"  #: tag of a trace, likewise
EQUAL = {"PRT": "ADVP"}  #: labels that count as another one

Bracket = tuple[int, int, str]


@dataclass(frozen=True)
class Brackets:
    """Counts over a corpus, and the shares that follow from them (0 where there is nothing to count)."""

    matched: int  #: brackets that parse and treebank share
    gold: int  #: brackets of the treebank
    proposed: int  #: brackets of the parses
    exact: int  #: sentences with all brackets right and none too many
    tagged: int  #: words with the right tag
    words: int  #: words that count, punctuation left out
    sentences: int  #: sentences that count
    skipped: tuple[int, ...]  #: numbers, from 0, of sentences without a parse or with other words than the treebank's

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
            f" {self.sentences:,} sentences, {len(self.skipped):,} skipped"
        )


def brackets(tree: Tree) -> tuple[Counter[Bracket], list[str], list[str]]:
    """Labelled spans of the phrases of a tree, the tags and the words that count.

    Spans number the words that are left when punctuation and traces are taken out; phrases that cover no word
    and root labels are not listed. Labels are cut at the first ``-`` or ``=``.
    """
    found: Counter[Bracket] = Counter()
    tags: list[str] = []
    words: list[str] = []
    stack: list[tuple[Tree, int]] = [(tree, -1)]  # with the word it begins at, once its children are done
    while stack:
        node, begin = stack.pop()
        if begin >= 0:
            label = _label(node.label)
            if len(words) > begin and label not in ROOTS and label not in PUNCTUATION:
                found[begin, len(words), label] += 1
        elif node.is_preterminal:
            if node.label not in PUNCTUATION and node.label != EMPTY:
                tags.append(EQUAL.get(node.label, node.label))
                words.append(str(node.children[0]))
        else:
            stack.append((node, len(words)))
            stack.extend((child, -1) for child in reversed(node.children) if isinstance(child, Tree))
    return found, tags, words


def _label(label: str) -> str:
    for mark in "-=":
        label = label.partition(mark)[0]
    return EQUAL.get(label, label)


def compare_brackets(gold: Sequence[Tree], parsed: Sequence[Tree | None]) -> Brackets:
    """Labelled precision, recall and F1, exact match and tagging accuracy, pooled over the corpus.

    The conventions of evalb (Sekine & Collins 1997) with its COLLINS.prm: the root and preterminals are no
    brackets; words that their own tree tags as punctuation are taken out first; ADVP and PRT are the same
    label; a bracket that stands twice counts twice. Both sides are treebank trees (unbinarised, coarse).
    A sentence is skipped where there is no parse (None) or where the words left differ. (evalb moves
    quotes whose tags disagree back in before it skips; that is not done here.)

    Raises:
        InputError: the two have different numbers of sentences, or all are skipped.
    """
    if len(gold) != len(parsed):
        raise InputError(f"the treebank has {len(gold):,} trees and there are {len(parsed):,} parses; give as many")
    matched = n_gold = proposed = exact = tagged = n_words = 0
    skipped: list[int] = []
    for number, (wanted, found) in enumerate(zip(gold, parsed, strict=True)):
        right, right_tags, right_words = brackets(wanted)
        ours, our_tags, our_words = brackets(found) if found is not None else (Counter[Bracket](), [], [])
        if right_words != our_words or not right_words:
            skipped.append(number)
            continue
        matched += (right & ours).total()
        n_gold += right.total()
        proposed += ours.total()
        exact += right == ours
        tagged += sum(a == b for a, b in zip(right_tags, our_tags, strict=True))
        n_words += len(right_words)
    if len(skipped) == len(gold):
        raise InputError(
            f"no parse can be compared: all {len(gold):,} are missing or have other words than the gold trees"
        )
    return Brackets(matched, n_gold, proposed, exact, tagged, n_words, len(gold) - len(skipped), tuple(skipped))
