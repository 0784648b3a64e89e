"""Which child of a node is its head: rules for Penn Treebank labels, and a fallback for all others.

A rule is a list of steps, tried in order: a step names the side the search starts from and the labels it
accepts, and the first child it accepts is the head. The table is ours; what it encodes are the usual
choices for the Penn annotation (finite verb or its phrase heads a clause, rightmost noun a noun phrase,
preposition a prepositional phrase). Where no step applies the head is the first child, from the left,
labelled as its parent; else the outermost child that is not punctuation: the last one of noun phrases
and of unknown labels that start with ``N``, else the first one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

from grammar.bracketing import is_word_label

Step = tuple[Literal["left", "right"], str]

_NOUNS = "NN NNS NNP NNPS NX NML"
_VERBS = "VBD VBZ VBP VBN VBG VB MD TO"

_RULES: dict[str, tuple[Step, ...]] = {
    "ROOT": (("left", "S SINV SQ SBARQ SBAR FRAG NP VP"),),
    "S": (("left", "VP"), ("right", "S SINV SQ"), ("left", "SBAR ADJP UCP NP PP ADVP")),
    "SINV": (("left", "VP"), ("left", _VERBS), ("left", "S SINV NP ADJP PP")),
    "SQ": (("left", "VP"), ("left", _VERBS), ("left", "SQ S NP")),
    "SBARQ": (("left", "SQ S SINV SBARQ FRAG"),),
    "SBAR": (("left", "WHNP WHPP WHADVP WHADJP IN DT TO"), ("left", "S SQ SINV SBAR FRAG")),
    "VP": (("left", _VERBS), ("left", "VP"), ("left", "AUX ADJP NN NNS NP S")),
    "NP": (("right", _NOUNS + " POS"), ("left", "NP"), ("right", "$ ADJP PRN CD JJ JJS RB QP DT PRP EX")),
    "NX": (("right", _NOUNS), ("left", "NP")),
    "NML": (("right", _NOUNS), ("left", "NP")),
    "NAC": (("right", _NOUNS), ("left", "NP NAC")),
    "QP": (("left", "$"), ("right", "CD NN NNS JJ RB QP DT")),
    "WHNP": (("right", _NOUNS), ("left", "WDT WP WP$ WHNP WHADJP WHPP")),
    "PP": (("left", "IN TO VBG VBN RP FW PP"),),
    "WHPP": (("left", "IN TO FW"),),
    "ADJP": (("right", "JJ JJR JJS VBN VBG"), ("right", "ADJP NN NNS QP CD $ RB")),
    "WHADJP": (("right", "JJ ADJP"), ("left", "WRB CC")),
    "ADVP": (("right", "RB RBR RBS ADVP"), ("left", "FW IN TO CD JJ NP NN")),
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
_PUNCTUATION = frozenset([",", ":", ".", "``", "''", "-LRB-", "-RRB-", "HYPH", "NFP", "PUNCT"])
_BARE = re.compile(r"(.[^-=|]*)", re.DOTALL)


def head_index(label: str, children: Sequence[str]) -> int:
    """Position of the head among ``children`` (their labels, at least one), counted from 0.

    Function tags and the second half of ``ADVP|PRT`` are ignored.
    """
    own, names = _bare(label), [_bare(child) for child in children]
    forward = range(len(names))
    for side, accepted in _STEPS.get(own, ()):
        for i in forward if side == "left" else reversed(forward):
            if names[i] in accepted:
                return i
    if own in names:
        return names.index(own)
    order = list(reversed(forward) if own.startswith("N") else forward)
    return next((i for i in order if names[i] not in _PUNCTUATION), order[0])


@lru_cache(maxsize=100_000)
def _bare(label: str) -> str:
    match = None if label.startswith("-") or is_word_label(label) else _BARE.match(label)
    return label if match is None else match[0]
