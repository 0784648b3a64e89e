"""Attachment of prepositional phrases, to the verb or to the object."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from truesource.evaluation.pairs import MOVED, SURE, PairSettings
from truesource.evaluation.pairs.lexicon import Lexicon
from truesource.evaluation.pairs.pair import Stratum, Words
from truesource.evaluation.pairs.sampled_sentence import Constituents, PairChange, Phenomenon, SampledSentence
from truesource.evaluation.pairs.word_posteriors import WordPosteriors
from truesource.grammar.inference.posterior import Posterior
from truesource.grammar.support.arrays import IntArray

VERBS = ("VB", "VBD", "VBZ", "VBP", "VBN", "VBG")
NOUNS = ("NN", "NNS", "NNP", "NNPS")
PREPOSITIONS = ("IN", "TO")
LEAST = 1e-9  #: posterior below which it, or its complement, may be rounding


class Site(NamedTuple):
    """Verb, object, preposition, its phrase: ``verb``, ``object`` = [verb+1, preposition), [preposition, end)."""

    verb: int
    preposition: int
    end: int  #: one past the phrase


class Attachment(Phenomenon):
    """*saw the man with a beard* / *saw the man with a telescope*.

    A verb, an object and a prepositional phrase, each tag and the phrase nearly sure, the phrase in both sentences. It
    belongs to the noun when an NP covers object and phrase, to the verb otherwise. Exchanged is the preposition, or
    the noun at the end of the phrase, for any word alike that moves the attachment far enough. Strata: ``attached``
    (of the more probable sentence) and ``exchanged``. Facts, ``good`` and ``bad`` the two sentences: ``noun_good``
    and ``noun_bad``, the posterior of the noun; ``log_odds_noun`` and ``log_odds_verb``, ln P(good and this
    attachment) / P(bad and this attachment), None if a posterior is below 1e-9.
    """

    name = "attachment"

    def missing(self, lexicon: Lexicon) -> str | None:
        """Return the reason why the grammar can have no such pairs; None: it may."""
        labels = set(lexicon.pcfg.labels)
        for needed in (("NP",), ("PP",), PREPOSITIONS, VERBS, NOUNS):
            if not labels & set(needed):
                return f"the grammar has no label {' or '.join(needed)}"
        return None

    def change(self, sentence: SampledSentence, settings: PairSettings, rng: np.random.Generator) -> PairChange | None:
        """Draw one of all exchanges of a word that move the attachment far enough; None: none does."""
        changes: list[tuple[int, str, int, float, float]] = []
        for site in sites(sentence, SURE):
            noun = noun_attachment(sentence.posterior, site)
            if settings.attached > max(noun, 1.0 - noun):
                continue
            for at, name in ((site.preposition, "preposition"), (site.end - 1, "object")):
                tag = sentence.tag(at, SURE)
                if tag in PREPOSITIONS or (tag in NOUNS and at > site.preposition):
                    assert tag is not None
                    words = sentence.lexicon.alike(sentence.words[at], tag, settings.tolerance)
                    for word, moved in _moving(sentence, site, at, words, noun, settings):
                        changes.append((at, name, word, noun, moved))
        if not changes:
            return None
        at, name, word, noun, moved = changes[int(rng.integers(len(changes)))]
        words_changed = sentence.with_word(at, sentence.lexicon.pcfg.vocabulary[word])
        return PairChange(words_changed, (at,), {"exchanged": name}, {"noun_drawn": noun, "noun_changed": moved})

    def strata(self, tree: Constituents, words: Words, change: PairChange, lexicon: Lexicon) -> dict[str, Stratum]:
        """Return strata of the more probable sentence."""
        side = "noun_changed" if words == change.words else "noun_drawn"
        noun = change.facts[side]
        assert noun is not None
        return {"attached": "noun" if noun > 0.5 else "verb", "exchanged": change.strata["exchanged"]}

    def facts(self, change: PairChange, swapped: bool, log_odds: float | None) -> dict[str, float | None]:
        """Use ``ln P(a, noun) / P(b, noun) = ln P(a)/P(b) + ln q_a/q_b``, q the posterior of the noun; so for verbs."""
        sides = ("noun_changed", "noun_drawn") if swapped else ("noun_drawn", "noun_changed")
        good, bad = (change.facts[side] for side in sides)
        assert good is not None and bad is not None and log_odds is not None
        return {
            "noun_good": good,
            "noun_bad": bad,
            "log_odds_noun": _shifted(log_odds, good, bad),
            "log_odds_verb": _shifted(log_odds, 1.0 - good, 1.0 - bad),
        }


def sites(sentence: SampledSentence, sure: float) -> list[Site]:
    """Find prepositional phrases after the object of a verb, with tags and phrase nearly sure.

    The verb is directly before the object, which ends in a noun.
    """
    tags = [sentence.tag(i, sure) for i in range(len(sentence))]
    label = sentence.posterior.labels
    noun_phrase, phrase = label.index("NP"), label.index("PP")
    table = sentence.posterior.label_table
    places = []
    for p in range(2, len(sentence) - 1):
        if tags[p] not in PREPOSITIONS or tags[p - 1] not in NOUNS:
            continue
        ends = [e for e in range(p + 2, len(sentence) + 1) if table[sentence.posterior.span(p, e), phrase] >= sure]
        verbs = [v for v in range(p - 1) if tags[v] in VERBS]
        for end in ends[:1]:
            for v in verbs[-1:]:
                inner, whole = (table[sentence.posterior.span(v + 1, e), noun_phrase] for e in (p, end))
                if inner + whole >= sure:
                    places.append(Site(v, p, end))
    return places


def noun_attachment(posterior: Posterior, site: Site) -> float:
    """Return P(an NP covers object and prepositional phrase | sentence)."""
    noun_phrase = posterior.labels.index("NP")
    return float(posterior.label_table[posterior.span(site.verb + 1, site.end), noun_phrase])


def _moving(
    sentence: SampledSentence, site: Site, at: int, words: IntArray, noun: float, settings: PairSettings
) -> list[tuple[int, float]]:
    """Return words that move the attachment far enough and keep the phrase nearly sure, with noun attachments."""
    if not len(words):
        return []
    by_word = WordPosteriors(sentence.posterior, at)
    moved = by_word.label_probs("NP", site.verb + 1, site.end)[words]
    far = (1.0 - moved if noun > 0.5 else moved) > MOVED  # NaN, an impossible sentence, is not
    if not far.any():
        return []
    far &= by_word.label_probs("PP", site.preposition, site.end)[words] >= SURE
    return list(zip(words[far].tolist(), moved[far].tolist(), strict=True))


def _shifted(log_odds: float, good: float, bad: float) -> float | None:
    """Return ``log_odds + ln good/bad``; None if a posterior is too near 0 for its precision."""
    return log_odds + math.log(good) - math.log(bad) if min(good, bad) > LEAST else None
