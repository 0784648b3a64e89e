"""Binarise trees, reversibly, with horizontal and vertical Markov orders; and find heads of nodes.

A rule for heads is a list of steps, tried in order: a step names the side from which the search starts and the accepted
labels, and the first accepted child is the head. The table is ours; it encodes the usual choices for the Penn
annotation (finite verb or its phrase heads a clause, rightmost noun a noun phrase, preposition a prepositional phrase).
``V``, ``N``, ``P``, ``D`` and variants (``Vt``, ``Det``, ``Prep``) count as the corresponding tags.

`known_head` answers only for labels in the table: if no step applies, the head is the first child from the left with
the label of its parent, and for Penn's own labels else the outermost child that is not punctuation (the last one of
noun phrases, else the first one), as in published tables. `head_index` applies this to any labels, as a guess.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import is_
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from truesource.grammar.rules import GrammarRules
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.records import check_fields
from truesource.grammar.tree import Tree, fold, is_word_label

Step = tuple[Literal["left", "right"], str]

_NOUNS = "NN NNS NNP NNPS NX NML N PropN Noun"
_VERBS = "VBD VBZ VBP VBN VBG VB MD TO V Vi Vt IV TV Verb Aux"
_ADPOSITIONS = "IN TO P Prep"
_DETERMINERS = "DT D Det"

_RULES: dict[str, tuple[Step, ...]] = {
    "ROOT": (("left", "S SINV SQ SBARQ SBAR FRAG NP VP"),),
    "S": (("left", "VP"), ("left", _VERBS), ("right", "S SINV SQ"), ("left", "SBAR ADJP UCP NP PP ADVP")),
    "SINV": (("left", "VP"), ("left", _VERBS), ("left", "S SINV NP ADJP PP")),
    "SQ": (("left", "VP"), ("left", _VERBS), ("left", "SQ S NP")),
    "SBARQ": (("left", "SQ S SINV SBARQ FRAG"),),
    "SBAR": (("left", "WHNP WHPP WHADVP WHADJP WDT WP WP$ WRB IN DT TO Comp"), ("left", "S SQ SINV SBAR FRAG")),
    "VP": (("left", _VERBS), ("left", "VP"), ("left", "AUX ADJP NN NNS NP S")),
    "NP": (("right", _NOUNS + " POS"), ("left", "NP"), ("right", "$ ADJP PRN CD JJ JJS RB QP DT PRP EX Pron")),
    "DP": (("left", _DETERMINERS), ("left", "DP")),
    "NX": (("right", _NOUNS), ("left", "NP")),
    "NML": (("right", _NOUNS), ("left", "NP")),
    "NAC": (("right", _NOUNS), ("left", "NP NAC")),
    "QP": (("left", "$"), ("right", "CD NN NNS JJ RB QP DT")),
    "WHNP": (("right", _NOUNS), ("left", "WDT WP WP$ WHNP WHADJP WHPP")),
    "PP": (("left", _ADPOSITIONS + " VBG VBN RP FW PP"),),
    "WHPP": (("left", "IN TO FW"),),
    "AdjP": (("right", "Adj AdjP"),),
    "AP": (("right", "Adj AP"),),
    "AdvP": (("right", "Adv AdvP"),),
    "ADJP": (("right", "JJ JJR JJS VBN VBG Adj"), ("right", "ADJP NN NNS QP CD $ RB")),
    "WHADJP": (("right", "JJ ADJP"), ("left", "WRB CC")),
    "ADVP": (("right", "RB RBR RBS Adv ADVP"), ("left", "FW IN TO CD JJ NP NN")),
    "WHADVP": (("left", "WRB"), ("right", "RB IN CC")),
    "CONJP": (("right", "CC RB IN"),),
    "PRT": (("right", "RP"),),
    "INTJ": (("left", "UH INTJ"),),
    "LST": (("right", "LS CD"),),
    "FRAG": (("left", "NP VP PP SBAR ADJP ADVP S FRAG"),),
    "PRN": (("left", "S SBAR SINV SQ NP PP VP ADJP ADVP"),),
    "RRC": (("left", "VP NP ADVP ADJP PP RRC"),),
}

_STEPS = {label: tuple((side, frozenset(names.split())) for side, names in steps) for label, steps in _RULES.items()}
_PUNCTUATION = frozenset([",", ":", ".", "?", "!", "``", "''", "-LRB-", "-RRB-", "HYPH", "NFP", "PUNCT"])
#: labels in the table that Penn does not have
_SHORT = "N PropN Noun V Vi Vt IV TV Verb Aux P Prep D Det Adj Adv Conj Comp Pron DP AdjP AP AdvP"
_BY_HAND = frozenset(_SHORT.split())
#: labels of the Penn treebanks, and of those with the same annotation, without a rule
_OTHERS = "TOP S1 X UCP META CC EX FW JJR LS PDT PRP$ RBS RP SYM UH WDT WP WP$ WRB # $ ADD AFX GW XX"
_NAMED = frozenset(name for label, steps in _RULES.items() for _, names in steps for name in (label, *names.split()))
_PENN = (_NAMED | _PUNCTUATION | frozenset(_OTHERS.split())) - _BY_HAND
_BARE = re.compile(r"(.[^-=|]*)", re.DOTALL)
INTERMEDIATE = "@"  #: first character of every label of binarisation
_SPECIAL = re.compile(r"[\\^\[\]]")
_BASE = re.compile(r"(?:\\.|[^\\^\[])*", re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


def known_head(label: str, children: Sequence[str]) -> int | None:
    """Return the position of the head among ``children``, counted from 0; None if the table does not decide.

    Words among other children, labelled in quotes, are unknown unless they are punctuation.
    """
    parent, names = _bare(label), [_bare(child) for child in children]
    in_table = [name in _PENN or name in _BY_HAND or _is_punctuation(name) for name in (parent, *names)]
    if not all(in_table):
        return None
    result = _by_steps(parent, names)
    if result is None and parent in names:
        return names.index(parent)
    by_hand = parent in _BY_HAND or any(name in _BY_HAND for name in names)
    return head_index(label, children) if result is None and not by_hand else result


def head_index(label: str, children: Sequence[str]) -> int:
    """Return the position of the head among ``children`` (their labels, at least one), counted from 0.

    Function tags and the second half of ``ADVP|PRT`` are ignored.
    """
    parent, names = _bare(label), [_bare(child) for child in children]
    result = _by_steps(parent, names)
    if result is not None:
        return result
    if parent in names:
        return names.index(parent)
    order = range(len(names) - 1, -1, -1) if parent.startswith("N") else range(len(names))
    return next((i for i in order if not _is_punctuation(names[i])), order[0])


def _by_steps(parent: str, names: Sequence[str]) -> int | None:
    forward = range(len(names))
    for side, accepted in _STEPS.get(parent, ()):
        for i in forward if side == "left" else reversed(forward):
            if names[i] in accepted:
                return i
    return None


def _is_punctuation(name: str) -> bool:
    return name in _PUNCTUATION or (is_word_label(name) and not any(map(str.isalnum, name)))


@lru_cache(maxsize=100_000)
def _bare(label: str) -> str:
    match = None if label.startswith("-") or is_word_label(label) else _BARE.match(label)
    return label if match is None else match[0]


@dataclass(frozen=True, slots=True)
class Binarisation:
    r"""Binarisation of nodes with more than two children into chains of binary nodes, and back.

    ``direction`` is the side from which children are split off. For ``X -> A B C D``:

    * ``"right"`` splits off the last child first: ``X -> @X D``, ``@X -> @X C``, ``@X -> A B``, a
      left-branching chain. This is the Berkeley trainer's RIGHT, and the default.
    * ``"left"`` splits off the first child first: ``X -> A @X``, ``@X -> B @X``, ``@X -> C D``, a
      right-branching chain (what NLTK calls ``factor="right"``).
    * ``"head"`` splits off the children right of the head, last one first, then children left of it, first
      one first, so that every intermediate node contains the head (`truesource.grammar.treebank.binarise`). With B as
      head: ``X -> @X D``, ``@X -> @X C``, ``@X -> A B``.

    Nodes of one or two children keep their shape: unary chains and preterminals are untouched.

    An intermediate node of ``X`` is named ``@X``, followed by one ``[C]`` for each of the ``horizontal`` siblings that
    were split off last (in text order); order 0 gives one ``@X`` for each ``X``, order None (no limit) makes the
    relative-frequency grammar equal to the one of unbinarised trees. In direction ``head``, orders other than 0 also
    name the head, ``[=H]``, and mark the side of each sibling, ``[<C]`` or ``[>C]`` (in the order of splitting).

    A ``vertical`` order of 2 appends ``^P`` to every phrasal label but the top one, with P the parent's label
    in the original tree; order 3 the grandparent too, and so on. Preterminals are not annotated, and
    an intermediate node carries the annotation of its ``X``. When names carry any context, the characters
    ``^ [ ] \`` of treebank labels are escaped by a backslash, so that every label can be recovered.

    Orders as in Klein & Manning (2003), "Accurate Unlexicalized Parsing", section 2.

    Raises:
        InputError: an unknown direction, ``horizontal`` below 0 or ``vertical`` below 1.
    """

    advanced: ClassVar = frozenset({"direction"})
    direction: Annotated[
        Literal["left", "right", "head"],
        Field(description="Children split off first: the first (left), the last (right), or around the head."),
    ] = "right"
    horizontal: Annotated[
        int | None, Field(ge=0, description="Number of siblings in an intermediate label; none: all of them.")
    ] = 0
    vertical: Annotated[
        int, Field(ge=1, description="Number of ancestors in a label, itself included; 1: no parent.")
    ] = 1

    def __post_init__(self) -> None:
        check_fields(self, "binarisation")

    def binarise(self, tree: Tree) -> Tree:
        """Return the tree with at most two children a node; ``unbinarise`` recovers ``tree``.

        Raises:
            InputError: a label starts with ``@`` (the tree is binarised), or a word is not an only child.
        """
        names = self._names(tree) if self.vertical > 1 else []

        def combine(node: Tree, children: list[Tree]) -> Tree:
            name = names.pop() if names else self._escape(node.label)
            if len(node.children) > 1 and len(children) < len(node.children):
                raise InputError(f"a word is next to other children of {node.label!r}; give each word a preterminal")
            if not children:
                return node if name == node.label else Tree(name, node.children)
            if len(children) < 3:
                same = name == node.label and all(map(is_, children, node.children))
                return node if same else Tree(name, tuple(children))
            return self._chain(node, name, children)

        return fold(tree, combine)

    def unbinarise(self, tree: Tree) -> Tree:
        """Undo `binarise`: remove intermediate nodes and the context of labels.

        Raises:
            InputError: the top node is an intermediate one.
        """
        return splice(tree, self)

    def coarse(self, label: str) -> str:
        """Return the treebank label of a binarised one, context and escapes removed; ``@X...`` gives ``@X``."""
        return _unescaped_base(label) if self._annotates else label

    @property
    def _annotates(self) -> bool:
        return self.vertical > 1 or self.horizontal != 0

    def _escape(self, label: str) -> str:
        return _escaped(label, self._annotates)

    def _names(self, tree: Tree) -> list[str]:
        """Return the name of every node, ancestors included, in the order that `fold` reverses."""
        names: list[str] = []
        stack: list[tuple[Tree, tuple[str, ...]]] = [(tree, ())]
        while stack:
            node, ancestors = stack.pop()
            label = self._escape(node.label)
            if node.is_preterminal:
                names.append(label)
                below = ancestors
            else:
                names.append("^".join((label, *ancestors)))
                below = (label, *ancestors)[: self.vertical - 1]
            for child in node.children:
                if isinstance(child, Tree):
                    stack.append((child, below))
        return names

    def _chain(self, node: Tree, name: str, children: Sequence[Tree]) -> Tree:
        # Labels of the original children; annotation changes the labels of `children`.
        labels = [self._escape(child.label) for child in node.children if isinstance(child, Tree)]
        remembered = len(labels) if self.horizontal is None else self.horizontal
        order = self._splitting_order(node)
        last = order[-1]
        current = children[last]
        for depth in range(len(order) - 2, -1, -1):
            sibling = order[depth]
            pair = (children[sibling], current) if sibling < last else (current, children[sibling])
            label = name if depth == 0 else INTERMEDIATE + name
            if depth and remembered:
                label += self._context(labels, order[max(0, depth - remembered) : depth], last)
            current = Tree(label, pair)
        return current

    def _splitting_order(self, node: Tree) -> list[int]:
        """Return the order in which children are split off; the last one remains."""
        last = len(node.children) - 1
        if self.direction == "right":
            return list(range(last, -1, -1))
        if self.direction == "left":
            return list(range(last + 1))
        labels = [child.label for child in node.children if isinstance(child, Tree)]
        head = head_index(node.label, labels)
        return [*range(last, head, -1), *range(head + 1)]

    def _context(self, labels: Sequence[str], recent: Sequence[int], last: int) -> str:
        if self.direction == "head":
            sides = "".join(f"[{'<' if i < last else '>'}{labels[i]}]" for i in recent)
            return f"[={labels[last]}]{sides}"
        return "".join(f"[{labels[i]}]" for i in sorted(recent))


@lru_cache(maxsize=100_000)
def _escaped(label: str, annotates: bool) -> str:
    if label.startswith(INTERMEDIATE):
        raise InputError(f"the label {label!r} starts with @, which is reserved for binarised trees; rename it")
    return _SPECIAL.sub(r"\\\g<0>", label) if annotates else label


@lru_cache(maxsize=100_000)
def _unescaped_base(label: str) -> str:
    mark = INTERMEDIATE if label.startswith(INTERMEDIATE) else ""
    base = _BASE.match(label, len(mark))
    assert base is not None  # it matches the empty string
    return mark + _ESCAPED.sub(r"\1", base[0])


def category(label: str) -> str:
    """Return the category of a label: ``NP`` for ``NP``, ``NP^S``, ``@NP`` and ``@NP[DT]``."""
    return label if is_word_label(label) else _unescaped_base(label).removeprefix(INTERMEDIATE) or label


def splice(tree: Tree, binarisation: Binarisation | None = None) -> Tree:
    """Remove the nodes whose label starts with ``@``, replacing them by their children.

    Args:
        tree: any tree, binarised or not.
        binarisation: if given, the other labels become coarse, too.

    Raises:
        InputError: the top node is an intermediate one.
    """
    if tree.label.startswith(INTERMEDIATE):
        raise InputError(f"a whole tree cannot have the label {tree.label!r}: @ marks nodes of binarisation")
    coarse = (lambda label: label) if binarisation is None else binarisation.coarse
    # Children are gathered top-down: a chain of n intermediate nodes costs n steps, not n squared.
    done: list[Tree] = []
    nodes: list[tuple[Tree, int]] = []
    stack = [tree]
    while stack:
        node = stack.pop()
        children = _without_intermediates(node)
        nodes.append((node, len(children)))
        stack.extend(reversed(children))
    for node, n_children in reversed(nodes):
        label = coarse(node.label)
        if n_children:
            done.append(Tree(label, tuple(done.pop() for _ in range(n_children))))
        else:
            done.append(node if label == node.label else Tree(label, node.children))
    return done.pop()


def _without_intermediates(node: Tree) -> list[Tree]:
    children: list[Tree] = []
    stack = [child for child in reversed(node.children) if isinstance(child, Tree)]
    while stack:
        child = stack.pop()
        if child.label.startswith(INTERMEDIATE):
            stack.extend(grandchild for grandchild in reversed(child.children) if isinstance(grandchild, Tree))
        else:
            children.append(child)
    return children


def surface(tree: Tree, pcfg: GrammarRules, *, binarised: bool = False) -> Tree:
    """Project symbols to treebank labels and remove nodes of binarisation.

    Args:
        tree: a derivation, nodes named by the grammar's symbols.
        pcfg: the grammar, for its labels.
        binarised: keep the ``@`` nodes.
    """
    labels, ids = pcfg.labels, pcfg.symbol_ids

    def relabel(node: Tree, children: list[Tree]) -> Tree:
        return Tree(labels[ids[node.label]], tuple(children) or node.children)

    projected = fold(tree, relabel)
    return projected if binarised else splice(projected)
