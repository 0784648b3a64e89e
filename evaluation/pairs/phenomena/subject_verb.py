"""Agreement of subjects and verbs."""

from __future__ import annotations

import numpy as np

from truesource.evaluation.pairs import SURE, PairSettings
from truesource.evaluation.pairs.lexicon import Lexicon
from truesource.evaluation.pairs.pair import Stratum, Words
from truesource.evaluation.pairs.sampled_sentence import Constituents, PairChange, Phenomenon, SampledSentence

_SINGULAR, _PLURAL = ("NN", "NNP"), ("NNS", "NNPS")


class SubjectVerb(Phenomenon):
    """*the dog barks* / *the dog bark*.

    Strata, if the best tree shows the subject: ``distance``, words between its head and the verb, ``attractor``, a
    noun of the other number between them, and ``order``, which comes first.
    """

    name = "subject-verb"

    def missing(self, lexicon: Lexicon) -> str | None:
        """Return the reason why the grammar can have no such pairs; None: it may."""
        if not any(form.other is not None for form in lexicon.forms.table["verb"].values()):
            return (
                "the grammar has no two forms of a verb that differ in number (tags VBZ and VBP, or was and were); in a"
                " grammar by hand, %label gives its symbols these tags"
            )
        return None

    def change(self, sentence: SampledSentence, settings: PairSettings, rng: np.random.Generator) -> PairChange | None:
        """Return one of its finite verbs in the other number, at random; None: it has none."""
        forms = sentence.lexicon.forms
        changes = []
        for i, word in enumerate(sentence.words):
            form = forms.of("verb", word)
            if form is not None and form.other is not None and form.tag in (None, sentence.tag(i, SURE)):
                changes.append((i, form.other))
        if not changes:
            return None
        at, other = changes[int(rng.integers(len(changes)))]
        return PairChange(sentence.with_word(at, other), (at,))

    def strata(self, tree: Constituents, words: Words, change: PairChange, lexicon: Lexicon) -> dict[str, Stratum]:
        """Return strata of the more probable sentence."""
        at = change.positions[0]
        form = lexicon.forms.of("verb", words[at])
        assert form is not None
        strata: dict[str, Stratum] = {"number": form.number, "order": None, "distance": None, "attractor": None}
        subject = subject_of(tree, at)
        if subject is None:
            return strata
        between = range(min(subject, at) + 1, max(subject, at))
        other = _PLURAL if form.number == "singular" else _SINGULAR
        return {
            **strata,
            "order": "subject first" if subject < at else "verb first",
            "distance": len(between),
            "attractor": any(tree.tag(i) in other for i in between),
        }


def subject_of(tree: Constituents, verb: int) -> int | None:
    """Return the position of the head of a finite verb's subject; None if the tree (of Penn labels) does not show it.

    It is the last NP to the left of the verb's phrase within its clause; in a question, the first one after the verb;
    in a relative clause without one, the noun phrase that contains the clause.
    """
    nodes = tree.nodes
    number = tree.tags[verb]
    while (clause := nodes[number].parent) >= 0 and nodes[clause].label in ("VP", "SQ"):
        if nodes[clause].label == "SQ":
            left, right = tree.siblings(number)
            ahead = [n for n in left if nodes[n].label == "NP"]
            after = [n for n in right if nodes[n].label == "NP"]
            if ahead or after:
                return tree.head(ahead[-1] if ahead else after[0])
        number = clause
    if clause < 0:
        return None
    left, right = tree.siblings(number)
    before = [n for n in left if nodes[n].label == "NP"]
    if before:
        return tree.head(before[-1])
    behind = [n for n in right if nodes[n].label == "NP"]
    if nodes[clause].label == "SINV" and behind:
        return tree.head(behind[0])
    above = nodes[clause].parent if nodes[clause].label == "S" else clause
    if above >= 0 and nodes[above].label == "SBAR":
        ahead = [n for n in tree.siblings(above)[0] if nodes[n].label.startswith(("NP", "NN"))]
        if ahead:
            return tree.head(ahead[-1])
    return None
