"""Pairs of all phenomena from one stream of sampled sentences, reproducible from one seed; they need Penn tags."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from truesource.evaluation.pairs import PHENOMENA, PairSettings
from truesource.evaluation.pairs.lexicon import Lexicon
from truesource.evaluation.pairs.odds import unigram_log_odds
from truesource.evaluation.pairs.pair import Pair, Words
from truesource.evaluation.pairs.phenomena.attachment import Attachment
from truesource.evaluation.pairs.phenomena.determiner_noun import DeterminerNoun
from truesource.evaluation.pairs.phenomena.subcategorisation import Subcategorisation
from truesource.evaluation.pairs.phenomena.subject_verb import SubjectVerb
from truesource.evaluation.pairs.phenomena.word_order import WordOrder
from truesource.evaluation.pairs.sampled_sentence import (
    Constituents,
    PairChange,
    Phenomenon,
    SampledSentence,
    sampled_sentences,
)
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.errors import NothingToMeasureError
from truesource.grammar.support.printable import meter
from truesource.grammar.support.settings import DEFAULT_SEED
from truesource.grammar.treebank.binarise import surface

REGISTRY: dict[str, Phenomenon] = {
    p.name: p for p in (SubjectVerb(), DeterminerNoun(), Subcategorisation(), Attachment(), WordOrder())
}


assert tuple(REGISTRY) == PHENOMENA


@dataclass(frozen=True)
class GeneratedPairs:
    """The pairs of a grammar."""

    pairs: list[Pair]  #: by phenomenon, then in the order in which they were sampled
    notes: list[str]  #: sentences on missing or too few pairs


@dataclass(frozen=True)
class _Candidate:
    phenomenon: Phenomenon
    source: int
    sentence: SampledSentence
    change: PairChange


def make_pairs(
    pcfg: PCFG, lengths: LengthRange | None, settings: PairSettings | None = None, *, seed: int = DEFAULT_SEED
) -> GeneratedPairs:
    """Sample sentences, and change one thing in each.

    A sentence gives at most one pair to each phenomenon; no two pairs of a phenomenon are the same. Each sentence is
    changed by separate random numbers, so that one phenomenon does not depend on which others are requested.

    Args:
        pcfg: the grammar.
        lengths: the length condition of the sentences.
        settings: number of pairs, and phenomena.
        seed: of the sentences and changes.

    Raises:
        NothingToMeasureError: none of the phenomena can be found in this grammar.
        InputError: it cannot be sampled from.
    """
    settings = settings or PairSettings()
    lexicon = Lexicon(pcfg, lengths, settings.forms)
    notes, selected = [], []
    for name in settings.phenomena or PHENOMENA:
        reason = REGISTRY[name].missing(lexicon)
        if reason is None:
            selected.append(REGISTRY[name])
        else:
            notes.append(f"no pairs of {name}: {reason}")
    if not selected:
        raise NothingToMeasureError(f"this grammar has none of the phenomena asked for; {notes[0]}", "no-pairs")
    changes, sentences = _search(lexicon, selected, settings, seed)
    for phenomenon in selected:
        if len(changes[phenomenon.name]) < settings.size:
            notes.append(
                f"{len(changes[phenomenon.name])} of {settings.size} pairs of {phenomenon.name}"
                f" were found in {sentences:,} sentences"
            )
    flat = [entry for phenomenon in selected for entry in changes[phenomenon.name]]
    if not flat:
        raise NothingToMeasureError(
            f"no pair was found in {sentences:,} sentences of this grammar; ask for other phenomena", "no-pairs"
        )
    return GeneratedPairs(_finish(lexicon, flat), notes)


def _search(
    lexicon: Lexicon, wanted: Sequence[Phenomenon], settings: PairSettings, seed: int
) -> tuple[dict[str, list[_Candidate]], int]:
    changes: dict[str, list[_Candidate]] = {phenomenon.name: [] for phenomenon in wanted}
    seen: set[tuple[str, frozenset[Words]]] = set()
    number_sampled, most = 0, settings.size * settings.tries

    def wanted_outside() -> bool:
        return any(p.outside and len(changes[p.name]) < settings.size for p in wanted)

    with meter("minimal pairs", settings.size * len(wanted)) as bar:
        for number, sentence in enumerate(sampled_sentences(lexicon, most, seed, wanted_outside)):
            open_still = [p for p in wanted if len(changes[p.name]) < settings.size]
            if not open_still:
                break
            number_sampled, words = number + 1, sentence.words
            for phenomenon in open_still:
                rng = np.random.default_rng([seed, number, PHENOMENA.index(phenomenon.name)])
                change = phenomenon.change(sentence, settings, rng)
                if change is None or change.words == words:
                    continue
                key = (phenomenon.name, frozenset((words, change.words)))
                if key not in seen and not (settings.possible and np.isinf(lexicon.pcfg.log_prob(change.words))):
                    seen.add(key)
                    changes[phenomenon.name].append(_Candidate(phenomenon, number, sentence, change))
                    bar.advance()
    return changes, number_sampled


def _finish(lexicon: Lexicon, changes: Sequence[_Candidate]) -> list[Pair]:
    """Return log probabilities, the more probable sentence first, strata of its best tree."""
    pcfg = lexicon.pcfg
    sentences = list(dict.fromkeys(words for entry in changes for words in (entry.sentence.words, entry.change.words)))
    values = dict(zip(sentences, pcfg.exact.string_log_probs(sentences).tolist(), strict=True))

    @cache
    def tree(words: Words) -> Constituents:
        return Constituents(surface(pcfg.exact.viterbi(words)[0], pcfg))

    pairs = []
    with meter("most probable trees of minimal pairs", len(changes)) as bar:
        for entry in changes:
            change, phenomenon = entry.change, entry.phenomenon
            swapped = values[change.words] > values[entry.sentence.words]
            a, b = (change.words, entry.sentence.words) if swapped else (entry.sentence.words, change.words)
            log_p_a, log_p_b = (values[words] if np.isfinite(values[words]) else None for words in (a, b))
            log_odds = None if log_p_a is None or log_p_b is None else log_p_a - log_p_b
            pairs.append(
                Pair(
                    a,
                    b,
                    phenomenon.name,
                    log_p_a,
                    log_p_b,
                    unigram_log_odds(lexicon, a, b),
                    change.positions,
                    entry.source,
                    "b" if swapped else "a",
                    phenomenon.strata(tree(a), a, change, lexicon),
                    phenomenon.facts(change, swapped, log_odds),
                )
            )
            bar.advance()
    return pairs
