"""Attachment of prepositional phrases: one word exchanged that moves the posterior from noun to verb, or back."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from evaluation.pairs.constituents import Constituents
from evaluation.pairs.drawn import Change, Drawn
from evaluation.pairs.lexicon import Lexicon
from evaluation.pairs.pair import Stratum, Words
from evaluation.pairs.phenomenon import Phenomenon
from evaluation.pairs.settings import Settings
from grammar.inference.posterior import Posterior

VERBS = ("VB", "VBD", "VBZ", "VBP", "VBN", "VBG")
NOUNS = ("NN", "NNS", "NNP", "NNPS")
PREPOSITIONS = ("IN", "TO")
LEAST = 1e-9  #: posterior below which its complement, or it, is not told from rounding


class Site(NamedTuple):
    """Verb, object, preposition, its phrase: ``verb``, ``object`` = [verb+1, preposition), [preposition, end)."""

    verb: int
    preposition: int
    end: int  #: one past the phrase


class Attachment(Phenomenon):
    """*saw the man with a beard* / *saw the man with a telescope*.

    A verb, an object and a prepositional phrase, each tag and the phrase nearly sure, in both sentences. The phrase
    belongs to the noun when an NP covers object and phrase, to the verb otherwise. Exchanged is the preposition, or
    the noun at the end of the phrase. Strata: ``attached`` (of the more probable sentence) and ``exchanged``. Facts,
    ``good`` and ``bad`` the two sentences: ``noun_good`` and ``noun_bad``, the posterior of the noun;
    ``log_odds_noun`` and ``log_odds_verb``, ln P(good and this attachment) / P(bad and this attachment), None where a
    posterior is below 1e-9.
    """

    name = "attachment"

    def missing(self, lexicon: Lexicon) -> str | None:
        """Why the grammar can have no such pairs; None: it may."""
        labels = set(lexicon.pcfg.labels)
        for needed in (("NP",), ("PP",), PREPOSITIONS, VERBS, NOUNS):
            if not labels & set(needed):
                return f"the grammar has no label {' or '.join(needed)}"
        return None

    def change(self, drawn: Drawn, settings: Settings, rng: np.random.Generator) -> Change | None:
        """The first of some words, tried at random, that moves the attachment; None: none does."""
        found = sites(drawn, settings.sure)
        trials = []
        for site in found:
            noun = noun_attachment(drawn.posterior, site)
            if settings.attached > max(noun, 1.0 - noun):
                continue
            for at, name in ((site.preposition, "preposition"), (site.end - 1, "object")):
                tag = drawn.tag(at, settings.sure)
                if tag in PREPOSITIONS or (tag in NOUNS and at > site.preposition):
                    assert tag is not None
                    for word in self._candidates(drawn, at, tag, settings.tolerance):
                        trials.append((site, noun, at, name, word))
        for number in rng.permutation(len(trials))[: settings.candidates].tolist():
            site, noun, at, name, word = trials[number]
            other = Drawn(drawn.lexicon, drawn.with_word(at, word))
            moved = noun_attachment(other.posterior, site)
            stays = other.posterior.label_probs(site.preposition, site.end).get("PP", 0.0) >= settings.sure
            if stays and (1.0 - moved if noun > 0.5 else moved) > settings.moved:
                facts = {"noun_drawn": noun, "noun_changed": moved}
                return Change(other.words, (at,), {"exchanged": name}, facts)
        return None

    @staticmethod
    def _candidates(drawn: Drawn, at: int, tag: str, tolerance: float) -> list[str]:
        lexicon = drawn.lexicon
        near = lexicon.alike(drawn.words[at], tag, tolerance)
        possible = near[np.isfinite(drawn.log_odds(at)[near])]
        return [lexicon.pcfg.terminals[i] for i in possible.tolist()]

    def strata(self, tree: Constituents, words: Words, change: Change, lexicon: Lexicon) -> dict[str, Stratum]:
        """Of the more probable sentence."""
        side = "noun_changed" if words == change.words else "noun_drawn"
        noun = change.facts[side]
        assert noun is not None
        return {"attached": "noun" if noun > 0.5 else "verb", "exchanged": change.strata["exchanged"]}

    def facts(self, change: Change, swapped: bool, log_odds: float | None) -> dict[str, float | None]:
        """``ln P(a, noun) / P(b, noun) = ln P(a)/P(b) + ln q_a/q_b``, q the posterior of the noun; so for the verb."""
        sides = ("noun_changed", "noun_drawn") if swapped else ("noun_drawn", "noun_changed")
        good, bad = (change.facts[side] for side in sides)
        assert good is not None and bad is not None and log_odds is not None
        return {
            "noun_good": good,
            "noun_bad": bad,
            "log_odds_noun": _shifted(log_odds, good, bad),
            "log_odds_verb": _shifted(log_odds, 1.0 - good, 1.0 - bad),
        }


def sites(drawn: Drawn, sure: float) -> list[Site]:
    """Where a prepositional phrase follows the object of a verb, tags and phrase nearly sure.

    The verb stands directly before the object, which ends in a noun.
    """
    tags = [drawn.tag(i, sure) for i in range(len(drawn))]
    label = drawn.posterior.labels
    noun_phrase, phrase = label.index("NP"), label.index("PP")
    table = drawn.posterior.label_table
    found = []
    for p in range(2, len(drawn) - 1):
        if tags[p] not in PREPOSITIONS or tags[p - 1] not in NOUNS:
            continue
        ends = [e for e in range(p + 2, len(drawn) + 1) if table[drawn.posterior.span(p, e), phrase] >= sure]
        verbs = [v for v in range(p - 1) if tags[v] in VERBS]
        for end in ends[:1]:
            for v in verbs[-1:]:
                inner, whole = (table[drawn.posterior.span(v + 1, e), noun_phrase] for e in (p, end))
                if inner + whole >= sure:
                    found.append(Site(v, p, end))
    return found


def noun_attachment(found: Posterior, site: Site) -> float:
    """P(an NP covers object and prepositional phrase | sentence)."""
    noun_phrase = found.labels.index("NP")
    return float(found.label_table[found.span(site.verb + 1, site.end), noun_phrase])


def _shifted(log_odds: float, good: float, bad: float) -> float | None:
    """``log_odds + ln good/bad``; None where a posterior is so near 0 that rounding has eaten it."""
    return log_odds + math.log(good) - math.log(bad) if min(good, bad) > LEAST else None
