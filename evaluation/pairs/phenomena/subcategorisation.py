"""Subcategorisation: verbs and the constituents they take."""

from __future__ import annotations

import numpy as np

from truesource.evaluation.pairs import FRAME_MARGIN, SURE, PairSettings
from truesource.evaluation.pairs.lexicon import Lexicon
from truesource.evaluation.pairs.pair import Stratum, Words
from truesource.evaluation.pairs.sampled_sentence import Constituents, PairChange, Phenomenon, SampledSentence

TAGS = ("VB", "VBD", "VBZ", "VBP", "VBN", "VBG")
_BE = ("be", "is", "are", "am", "was", "were", "been", "being", "'s", "'re", "'m")
_HAVE = ("have", "has", "had", "having", "'ve", "'d")
_DO = ("do", "does", "did", "done", "doing")
AUXILIARIES = frozenset((*_BE, *_HAVE, *_DO))
LONGEST = 3  #: constituents of a frame that are named


class Subcategorisation(Phenomenon):
    """*he devoured it* / *he slept it*.

    The other verb is sampled from verbs of the same tag (the most frequent of both) with a log frequency within
    ``tolerance``, and with odds from the context at least ``frame_margin`` nats below their frequency:
    ``ln P(a)/P(b) - ln u(v)/u(v') >= frame_margin``. Strata: ``frame``, constituents after the verb in its phrase, and
    ``tag``.
    """

    name = "subcategorisation"
    outside = True

    def missing(self, lexicon: Lexicon) -> str | None:
        """Return the reason why the grammar can have no such pairs; None: it may."""
        if all(len(lexicon.members.get(tag, ())) < 2 for tag in TAGS):
            return f"the grammar has no two words of one tag of verbs ({', '.join(TAGS)})"
        return None

    def change(self, sentence: SampledSentence, settings: PairSettings, rng: np.random.Generator) -> PairChange | None:
        """Exchange one of its verbs, no auxiliary, for a verb that does not fit, at random; None without such verbs."""
        lexicon = sentence.lexicon
        tags = [sentence.tag(i, SURE) for i in range(len(sentence))]
        places = [
            i
            for i, (word, tag) in enumerate(zip(sentence.words, tags, strict=True))
            if tag in TAGS and lexicon.main_tag.get(word) == tag and word.lower() not in AUXILIARIES
        ]
        for at in rng.permutation(places).tolist():
            tag = tags[at]
            assert tag is not None
            near = lexicon.alike(sentence.words[at], tag, settings.tolerance)
            near = near[[lexicon.pcfg.vocabulary[i].lower() not in AUXILIARIES for i in near]]
            frequency = lexicon.unigram[lexicon.pcfg.word_ids[sentence.words[at]]]
            odds = sentence.log_odds(at)[near]
            unfit = odds - (frequency - lexicon.unigram[near]) >= FRAME_MARGIN
            if settings.possible:
                unfit &= np.isfinite(odds)
            if unfit.any():
                other = lexicon.pcfg.vocabulary[int(rng.choice(near[unfit]))]
                return PairChange(sentence.with_word(at, other), (at,), {"tag": tag})
        return None

    def strata(self, tree: Constituents, words: Words, change: PairChange, lexicon: Lexicon) -> dict[str, Stratum]:
        """Return strata of the more probable sentence."""
        return {"tag": change.strata["tag"], "frame": frame_of(tree, change.positions[0])}


def frame_of(tree: Constituents, verb: int) -> str:
    """Return the labels after a verb under the same node, such as ``NP PP``; ``none`` without any."""
    right = [tree.nodes[n].label for n in tree.siblings(tree.tags[verb])[1]]
    labels = [label for label in right if label[:1].isalpha() and label not in ("ADVP", "RB", "CC")]
    return " ".join(labels[:LONGEST]) or "none"
