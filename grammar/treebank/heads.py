"""Which child of a node is its head: rules for Penn Treebank labels and for the short ones of grammars by hand.

A rule is a list of steps, tried in order: a step names the side the search starts from and the labels it
accepts, and the first child it accepts is the head. The table is ours; what it encodes are the usual
choices for the Penn annotation (finite verb or its phrase heads a clause, rightmost noun a noun phrase,
preposition a prepositional phrase). ``V``, ``N``, ``P``, ``D`` and their like (``Vt``, ``Det``, ``Prep``) count as
the tags they stand for.

`known_head` answers only for labels that the table knows: where no step applies, the head is the first child, from
the left, labelled as its parent, and of Penn's own labels else the outermost child that is not punctuation (the last
one of noun phrases, else the first one), as in published tables. `head_index` does so for any labels, as a guess.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

from truesource.grammar.bracketing import is_word_label

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
#: labels that the table knows and Penn does not have
_SHORT = "N PropN Noun V Vi Vt IV TV Verb Aux P Prep D Det Adj Adv Conj Comp Pron DP AdjP AP AdvP"
_BY_HAND = frozenset(_SHORT.split())
#: labels of the Penn treebanks, and of those annotated alike, that no rule names
_OTHERS = "TOP S1 X UCP META CC EX FW JJR LS PDT PRP$ RBS RP SYM UH WDT WP WP$ WRB # $ ADD AFX GW XX"
_NAMED = frozenset(name for label, steps in _RULES.items() for _, names in steps for name in (label, *names.split()))
_PENN = (_NAMED | _PUNCTUATION | frozenset(_OTHERS.split())) - _BY_HAND
_BARE = re.compile(r"(.[^-=|]*)", re.DOTALL)


def known_head(label: str, children: Sequence[str]) -> int | None:
    """Position of the head among ``children``, counted from 0; None where the table does not know.

    Words among other children, labelled in quotes, are unknown unless they are punctuation.
    """
    own, names = _bare(label), [_bare(child) for child in children]
    known = [name in _PENN or name in _BY_HAND or _is_punctuation(name) for name in (own, *names)]
    if not all(known):
        return None
    found = _by_steps(own, names)
    if found is None and own in names:
        return names.index(own)
    by_hand = own in _BY_HAND or any(name in _BY_HAND for name in names)
    return head_index(label, children) if found is None and not by_hand else found


def head_index(label: str, children: Sequence[str]) -> int:
    """Position of the head among ``children`` (their labels, at least one), counted from 0.

    Function tags and the second half of ``ADVP|PRT`` are ignored.
    """
    own, names = _bare(label), [_bare(child) for child in children]
    found = _by_steps(own, names)
    if found is not None:
        return found
    if own in names:
        return names.index(own)
    order = range(len(names) - 1, -1, -1) if own.startswith("N") else range(len(names))
    return next((i for i in order if not _is_punctuation(names[i])), order[0])


def _by_steps(own: str, names: Sequence[str]) -> int | None:
    forward = range(len(names))
    for side, accepted in _STEPS.get(own, ()):
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
