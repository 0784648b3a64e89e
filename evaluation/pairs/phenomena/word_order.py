"""Word order: two neighbours exchanged."""

from __future__ import annotations

import numpy as np

from truesource.evaluation.pairs import PairSettings
from truesource.evaluation.pairs.lexicon import Lexicon
from truesource.evaluation.pairs.pair import Stratum, Words
from truesource.evaluation.pairs.sampled_sentence import Constituents, PairChange, Phenomenon, SampledSentence


class WordOrder(Phenomenon):
    """*the dog barks* / *dog the barks*.

    Stratum ``boundary``: *within*, the two are children of one constituent, or *across* the boundary of one.
    """

    name = "word-order"

    def missing(self, lexicon: Lexicon) -> str | None:
        """Any grammar with sentences of two words will do."""
        return None

    def change(self, sentence: SampledSentence, settings: PairSettings, rng: np.random.Generator) -> PairChange | None:
        """Return two different neighbours, neither a mark, exchanged, at random; None: there are none."""
        words = sentence.words
        plain = [any(c.isalnum() for c in word) for word in words]
        places = [i for i in range(len(words) - 1) if words[i] != words[i + 1] and plain[i] and plain[i + 1]]
        if not places:
            return None
        at = places[int(rng.integers(len(places)))]
        return PairChange((*words[:at], words[at + 1], words[at], *words[at + 2 :]), (at, at + 1))

    def strata(self, tree: Constituents, words: Words, change: PairChange, lexicon: Lexicon) -> dict[str, Stratum]:
        """Return strata of the more probable sentence."""
        left, right = (tree.nodes[tree.tags[i]].parent for i in change.positions)
        return {"boundary": "within" if left == right else "across"}
