"""The labelled brackets of a tree, by the conventions of evalb (Sekine & Collins 1997) with its COLLINS.prm.

* The root and preterminals are no brackets. Phrases that cover no word are none either. COLLINS.prm names only TOP as
  a root: evalb counts a ROOT as a bracket that every parse gets right, unless a line ``DELETE_LABEL ROOT`` is added.
* Traces are taken out, and so are the words that the treebank tags as punctuation.
* Labels are cut at the first ``-`` or ``=``; ADVP and PRT are the same label, of brackets as of tags.
* A bracket that stands n times in one tree and m times in the other matches min(n, m) times.
* A proposed bracket crosses if it overlaps some bracket of the treebank and neither contains the other. It counts once,
  however many it crosses.
* The length of a sentence is its number of words in the treebank, punctuation included, traces left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from truesource.grammar.tree import Tree

ROOTS = frozenset(["", "ROOT", "TOP", "S1", "VROOT"])  #: labels of a top node that says nothing
PUNCTUATION = frozenset([",", ":", "``", "''", "."])  #: tags of words that are not there, as in COLLINS.prm
EMPTY = "-NONE-"  #: tag of a trace, likewise
EQUAL = {"PRT": "ADVP"}  #: labels that count as another one

Bracket = tuple[int, int, str]


def tagged_words(tree: Tree) -> list[tuple[str, str]]:
    """Tags and words, traces left out."""
    return [
        (node.label, str(node.children[0])) for node in tree.subtrees() if node.is_preterminal and node.label != EMPTY
    ]


def is_punctuation(tag: str) -> bool:
    """Whether words of this tag do not count."""
    return tag in PUNCTUATION


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


def unlabelled(labelled: Counter[Bracket]) -> Counter[tuple[int, int]]:
    """The spans of brackets, each as often as it stands."""
    found: Counter[tuple[int, int]] = Counter()
    for (begin, end, _), times in labelled.items():
        found[begin, end] += times
    return found


def crossing_brackets(proposed: Counter[tuple[int, int]], gold: Counter[tuple[int, int]]) -> int:
    """Number of proposed spans that overlap a span of the treebank where neither contains the other."""
    found = 0
    for (begin, end), times in proposed.items():
        if (begin, end) not in gold:  # spans of one tree never cross each other
            crosses = any(b < begin < e < end or begin < b < end < e for b, e in gold)
            found += times if crosses else 0
    return found


def _label(label: str) -> str:
    for mark in "-=":
        label = label.partition(mark)[0]
    return EQUAL.get(label, label)
