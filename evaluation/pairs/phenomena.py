"""The phenomena of minimal pairs: agreement, subcategorisation, attachment of prepositional phrases, and word order."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from truesource.evaluation.pairs import FRAME_MARGIN, MOVED, SURE, PairSettings
from truesource.evaluation.pairs.lexicon import Lexicon
from truesource.evaluation.pairs.pair import Stratum, Words
from truesource.evaluation.pairs.sampled_sentence import (
    Constituents,
    PairChange,
    Phenomenon,
    SampledSentence,
    WordPosteriors,
)
from truesource.grammar.inference.posterior import Posterior
from truesource.grammar.support.arrays import IntArray

VERBS = ("VB", "VBD", "VBZ", "VBP", "VBN", "VBG")
NOUNS = ("NN", "NNS", "NNP", "NNPS")
PREPOSITIONS = ("IN", "TO")
LEAST = 1e-9  #: posterior below which its complement, or it, is not told from rounding
_COMMON_NOUNS = ("NN", "NNS")
_BETWEEN = ("JJ", "JJR", "JJS", "VBN", "VBG", "NNP", "NNPS")
WIDEST = 2  #: words between determiner and noun, where there are no tags to tell what they are
TAGS = ("VB", "VBD", "VBZ", "VBP", "VBN", "VBG")
_BE = ("be", "is", "are", "am", "was", "were", "been", "being", "'s", "'re", "'m")
_HAVE = ("have", "has", "had", "having", "'ve", "'d")
_DO = ("do", "does", "did", "done", "doing")
AUXILIARIES = frozenset((*_BE, *_HAVE, *_DO))
LONGEST = 3  #: constituents of a frame that are named
_SINGULAR, _PLURAL = ("NN", "NNP"), ("NNS", "NNPS")


class WordOrder(Phenomenon):
    """*the dog barks* / *dog the barks*.

    Stratum ``boundary``: *within*, the two are children of one constituent, or *across* the boundary of one.
    """

    name = "word-order"

    def missing(self, lexicon: Lexicon) -> str | None:
        """Any grammar with sentences of two words will do."""
        return None

    def change(self, sentence: SampledSentence, settings: PairSettings, rng: np.random.Generator) -> PairChange | None:
        """Two different neighbours, neither a mark, exchanged, at random; None: there are none."""
        words = sentence.words
        plain = [any(c.isalnum() for c in word) for word in words]
        places = [i for i in range(len(words) - 1) if words[i] != words[i + 1] and plain[i] and plain[i + 1]]
        if not places:
            return None
        at = places[int(rng.integers(len(places)))]
        return PairChange((*words[:at], words[at + 1], words[at], *words[at + 2 :]), (at, at + 1))

    def strata(self, tree: Constituents, words: Words, change: PairChange, lexicon: Lexicon) -> dict[str, Stratum]:
        """Strata of the more probable sentence."""
        left, right = (tree.nodes[tree.tags[i]].parent for i in change.positions)
        return {"boundary": "within" if left == right else "across"}


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
    attachment) / P(bad and this attachment), None where a posterior is below 1e-9.
    """

    name = "attachment"

    def missing(self, lexicon: Lexicon) -> str | None:
        """Why the grammar can have no such pairs; None: it may."""
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
        words_changed = sentence.with_word(at, sentence.lexicon.pcfg.terminals[word])
        return PairChange(words_changed, (at,), {"exchanged": name}, {"noun_drawn": noun, "noun_changed": moved})

    def strata(self, tree: Constituents, words: Words, change: PairChange, lexicon: Lexicon) -> dict[str, Stratum]:
        """Strata of the more probable sentence."""
        side = "noun_changed" if words == change.words else "noun_drawn"
        noun = change.facts[side]
        assert noun is not None
        return {"attached": "noun" if noun > 0.5 else "verb", "exchanged": change.strata["exchanged"]}

    def facts(self, change: PairChange, swapped: bool, log_odds: float | None) -> dict[str, float | None]:
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


def sites(sentence: SampledSentence, sure: float) -> list[Site]:
    """Find where a prepositional phrase follows the object of a verb, tags and phrase nearly sure.

    The verb stands directly before the object, which ends in a noun.
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
    """P(an NP covers object and prepositional phrase | sentence)."""
    noun_phrase = posterior.labels.index("NP")
    return float(posterior.label_table[posterior.span(site.verb + 1, site.end), noun_phrase])


def _moving(
    sentence: SampledSentence, site: Site, at: int, words: IntArray, noun: float, settings: PairSettings
) -> list[tuple[int, float]]:
    """Words that move the attachment far enough and leave the phrase nearly sure, each with its noun attachment."""
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
    """``log_odds + ln good/bad``; None where a posterior is so near 0 that rounding has eaten it."""
    return log_odds + math.log(good) - math.log(bad) if min(good, bad) > LEAST else None


class DeterminerNoun(Phenomenon):
    """*this dog* / *these dog*; *a dog* / *a dogs*.

    Strata: ``exchanged`` (determiner or noun), ``number`` and ``distance``, words between the two.
    """

    name = "determiner-noun"

    def missing(self, lexicon: Lexicon) -> str | None:
        """Why the grammar can have no such pairs; None: it may."""
        determiners, nouns = (lexicon.forms.table[kind] for kind in ("determiner", "noun"))
        if not determiners:
            return "the grammar has no determiner that shows number (this, these, that, those, a, an; tag DT)"
        if not any(form.other for form in (*determiners.values(), *nouns.values())):
            return "the grammar has no two forms of a determiner or noun that differ in number"
        return None

    def change(self, sentence: SampledSentence, settings: PairSettings, rng: np.random.Generator) -> PairChange | None:
        """One of its determiners or nouns in the other number, at random; None: it has none."""
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
        """Strata of the more probable sentence; the tree is not looked at."""
        exchanged = change.strata["exchanged"]
        form = lexicon.forms.of("determiner" if exchanged == "determiner" else "noun", words[change.positions[0]])
        assert form is not None
        return {"exchanged": exchanged, "number": form.number, "distance": int(change.strata["distance"])}


def _noun(sentence: SampledSentence, determiner: int, sure: float) -> int | None:
    """The noun of a determiner: the last of the first run of nouns after it, with nothing but modifiers between."""
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


class Subcategorisation(Phenomenon):
    """*he devoured it* / *he slept it*.

    The other verb is drawn from those of the same tag (the most frequent of both) whose unigram log probability is
    within ``tolerance``, and to which the context gives odds of at least ``frame_margin`` nats less than their
    frequency: ``ln P(a)/P(b) - ln u(v)/u(v') >= frame_margin``. Strata: ``frame``, what follows the verb in its phrase,
    and ``tag``.
    """

    name = "subcategorisation"
    outside = True

    def missing(self, lexicon: Lexicon) -> str | None:
        """Why the grammar can have no such pairs; None: it may."""
        if all(len(lexicon.members.get(tag, ())) < 2 for tag in TAGS):
            return f"the grammar has no two words of one tag of verbs ({', '.join(TAGS)})"
        return None

    def change(self, sentence: SampledSentence, settings: PairSettings, rng: np.random.Generator) -> PairChange | None:
        """One of its verbs, no auxiliary, and a verb that does not fit there, at random; None: there is none."""
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
            near = near[[lexicon.pcfg.terminals[i].lower() not in AUXILIARIES for i in near]]
            own = lexicon.unigram[lexicon.pcfg.word_ids[sentence.words[at]]]
            odds = sentence.log_odds(at)[near]
            unfit = odds - (own - lexicon.unigram[near]) >= FRAME_MARGIN
            if settings.possible:
                unfit &= np.isfinite(odds)
            if unfit.any():
                other = lexicon.pcfg.terminals[int(rng.choice(near[unfit]))]
                return PairChange(sentence.with_word(at, other), (at,), {"tag": tag})
        return None

    def strata(self, tree: Constituents, words: Words, change: PairChange, lexicon: Lexicon) -> dict[str, Stratum]:
        """Strata of the more probable sentence."""
        return {"tag": change.strata["tag"], "frame": frame_of(tree, change.positions[0])}


def frame_of(tree: Constituents, verb: int) -> str:
    """Labels of what follows a verb under the same node, such as ``NP PP``; ``none`` where nothing does."""
    right = [tree.nodes[n].label for n in tree.siblings(tree.tags[verb])[1]]
    kept = [label for label in right if label[:1].isalpha() and label not in ("ADVP", "RB", "CC")]
    return " ".join(kept[:LONGEST]) or "none"


class SubjectVerb(Phenomenon):
    """*the dog barks* / *the dog bark*.

    Strata, where the best tree shows the subject: ``distance``, words between its head and the verb, ``attractor``, a
    noun of the other number between them, and ``order``, what stands first.
    """

    name = "subject-verb"

    def missing(self, lexicon: Lexicon) -> str | None:
        """Why the grammar can have no such pairs; None: it may."""
        if not any(form.other is not None for form in lexicon.forms.table["verb"].values()):
            return (
                "the grammar has no two forms of a verb that differ in number (tags VBZ and VBP, or was and were); in a"
                " grammar by hand, %label gives its symbols these tags"
            )
        return None

    def change(self, sentence: SampledSentence, settings: PairSettings, rng: np.random.Generator) -> PairChange | None:
        """One of its finite verbs in the other number, at random; None: it has none."""
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
        """Strata of the more probable sentence."""
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
    """Position of the head of a finite verb's subject; None where the tree (of Penn labels) does not show it.

    The last NP to the left of the verb's phrase within its clause; in a question, the first one after the verb; in a
    relative clause without one, the noun phrase that the clause stands in.
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
