"""Agreement of determiners and nouns."""

from __future__ import annotations

import numpy as np

from truesource.evaluation.pairs import SURE, PairSettings
from truesource.evaluation.pairs.lexicon import Lexicon
from truesource.evaluation.pairs.pair import Stratum, Words
from truesource.evaluation.pairs.sampled_sentence import Constituents, PairChange, Phenomenon, SampledSentence

_COMMON_NOUNS = ("NN", "NNS")
_BETWEEN = ("JJ", "JJR", "JJS", "VBN", "VBG", "NNP", "NNPS")
WIDEST = 2  #: maximum number of words between determiner and noun without tags


class DeterminerNoun(Phenomenon):
    """*this dog* / *these dog*; *a dog* / *a dogs*.

    Strata: ``exchanged`` (determiner or noun), ``number`` and ``distance``, words between the two.
    """

    name = "determiner-noun"

    def missing(self, lexicon: Lexicon) -> str | None:
        """Return the reason why the grammar can have no such pairs; None: it may."""
        determiners, nouns = (lexicon.forms.table[kind] for kind in ("determiner", "noun"))
        if not determiners:
            return "the grammar has no determiner that shows number (this, these, that, those, a, an; tag DT)"
        if not any(form.other for form in (*determiners.values(), *nouns.values())):
            return "the grammar has no two forms of a determiner or noun that differ in number"
        return None

    def change(self, sentence: SampledSentence, settings: PairSettings, rng: np.random.Generator) -> PairChange | None:
        """Return one of its determiners or nouns in the other number, at random; None: it has none."""
        forms = sentence.lexicon.forms
        changes = []
        for i, word in enumerate(sentence.words):
            form = forms.of("determiner", word)
            if form is None or form.tag not in (None, sentence.tag(i, SURE)):
                continue
            noun = _noun(sentence, i, SURE)
            if noun is None:
                continue
            other = forms.of("noun", sentence.words[noun])
            if form.other is not None:
                changes.append((i, form.other, "determiner", noun - i - 1))
            elif other is not None and other.other is not None and other.number == form.number:
                changes.append((noun, other.other, "noun", noun - i - 1))
        if not changes:
            return None
        at, word, exchanged, distance = changes[int(rng.integers(len(changes)))]
        return PairChange(sentence.with_word(at, word), (at,), {"exchanged": exchanged, "distance": str(distance)})

    def strata(self, tree: Constituents, words: Words, change: PairChange, lexicon: Lexicon) -> dict[str, Stratum]:
        """Return strata of the more probable sentence; the tree is unused."""
        exchanged = change.strata["exchanged"]
        form = lexicon.forms.of("determiner" if exchanged == "determiner" else "noun", words[change.positions[0]])
        assert form is not None
        return {"exchanged": exchanged, "number": form.number, "distance": int(change.strata["distance"])}


def _noun(sentence: SampledSentence, determiner: int, sure: float) -> int | None:
    """Return the noun of a determiner: last of the first run of nouns after it, with only modifiers between."""
    forms = sentence.lexicon.forms
    if not forms.tagged:
        for j in range(determiner + 1, min(determiner + 2 + WIDEST, len(sentence))):
            if forms.of("noun", sentence.words[j]) is not None:
                return j
            if forms.of("determiner", sentence.words[j]) or forms.of("verb", sentence.words[j]):
                return None
        return None
    last = None
    for j in range(determiner + 1, len(sentence)):
        tag = sentence.tag(j, sure)
        if tag in _COMMON_NOUNS:
            last = j
        elif last is not None or tag not in _BETWEEN:
            break
    return last
