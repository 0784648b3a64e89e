"""Pairs of any grammar: a sampled sentence, and one that a single edit has made impossible or clearly less probable."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from truesource.evaluation.pairs.lexicon import Lexicon
from truesource.evaluation.pairs.neighbours import Neighbours
from truesource.evaluation.pairs.odds import with_truth
from truesource.evaluation.pairs.pair import Pair, Words, differing
from truesource.evaluation.pairs.sampled_sentence import SampledSentence, sampled_sentences
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import BoolArray
from truesource.grammar.support.printable import meter

SAME_LENGTH = ("swap", "replace")  #: two neighbours change places; one word becomes another
OTHER_LENGTH = ("delete", "insert")  #: of one word, where a sentence has no clear pair of one length
MARGIN = 1.0  #: least log odds, nats
TOLERANCE = 0.5  #: nats; how far a word's log frequency may lie from that of the word it replaces, where there is one
TRIES = 10  #: most sentences sampled for each pair
CANDIDATES = 8  #: places that an edit is tried at
WORDS = 4  #: of like frequency that are tried at each


def edited_pairs(pcfg: PCFG, lengths: LengthRange | None, *, number: int, seed: int, rarest: float = 0.0) -> list[Pair]:
    """Sample sentences of a grammar, and edit each in one place.

    The edited sentence, side ``b``, has lengths of the range too, and the sampled one is more probable by at least
    `MARGIN` nats; where a word is replaced, by as much beyond their frequencies. An edit that keeps the length is
    taken where there is one: a swap or a replacement, in random order. A swap leaves the words as they are; a
    replacement has a word of about the same frequency, or the nearest that was found. Of all these, an edit after which
    all neighbours can be neighbours comes first, since a model of bigrams decides the others. Each sentence gives at
    most one pair, and no pair comes twice.

    The strata say what decides a pair. ``decided``: ``beginning`` where the words alone, without the end of the
    sentence, are as clear as `MARGIN`; ``end`` elsewhere, where a model must be asked for the end too. ``bigrams``:
    ``possible`` where all neighbours of the edited sentence can be neighbours in some sentence. The fact
    ``log_odds_of_beginnings`` is that of sentences that begin with these words, given the range of lengths; None: it is
    infinite.

    Args:
        pcfg: the grammar.
        lengths: of the sentences, both of a pair.
        number: of pairs that are wanted; there may be fewer, or none.
        seed: of sentences and edits.
        rarest: least share of all tokens that a word of a pair has, as models may read rarer ones as ``<unk>``.

    Raises:
        InputError: the grammar cannot be sampled from.
    """
    lexicon, neighbours = Lexicon(pcfg, lengths), Neighbours(pcfg)
    common = common_words(lexicon, rarest)
    found: dict[tuple[Words, Words], Pair] = {}
    with meter("minimal pairs made by edits", number) as bar:
        for source, sentence in enumerate(sampled_sentences(lexicon, number * TRIES, seed)):
            if len(found) == number:
                break
            if not common[[pcfg.word_ids[word] for word in sentence.words]].all():
                continue
            made = _edit(sentence, neighbours, common, np.random.default_rng([seed, source]))
            if made is not None and (sentence.words, made[1]) not in found:
                kind, words = made
                a = sentence.words
                found[a, words] = Pair(a, words, kind, None, None, None, differing(a, words), source, "a")
                bar.advance()
    return with_reasons(with_truth(list(found.values()), lexicon), pcfg, lengths)


def common_words(lexicon: Lexicon, rarest: float) -> BoolArray:
    """Which words have at least this share of all tokens, and occur at all, (V,)."""
    share = np.exp(lexicon.unigram)
    return np.asarray((share > 0.0) & (share >= rarest))


def with_reasons(pairs: Sequence[Pair], pcfg: PCFG, lengths: LengthRange | None) -> list[Pair]:
    """The pairs with the strata and the fact that `edited_pairs` describes, besides what they have.

    Args:
        pairs: with log probabilities, ``a`` the more probable side.
        pcfg: the grammar.
        lengths: the range that the sentences are from.
    """
    if not pairs:
        return []
    sentences = list(dict.fromkeys(words for pair in pairs for words in (pair.a, pair.b)))
    scores = pcfg.exact.causal_log_probs(sentences, lengths)
    beginning = {words: float(score[:-1].sum()) for words, score in zip(sentences, scores, strict=True)}
    neighbours = Neighbours(pcfg)
    found = []
    for pair in pairs:
        odds = beginning[pair.a] - beginning[pair.b]
        reasons = {
            "decided": "beginning" if odds >= MARGIN else "end",
            "bigrams": "possible" if neighbours.possible(pair.b) else "impossible",
        }
        fact = {"log_odds_of_beginnings": odds if np.isfinite(odds) else None}
        found.append(replace(pair, strata={**pair.strata, **reasons}, facts={**pair.facts, **fact}))
    return found


def _edit(
    sentence: SampledSentence, neighbours: Neighbours, common: BoolArray, rng: np.random.Generator
) -> tuple[str, Words] | None:
    """The kind of an edit and what it makes; None: none that was tried makes a clear pair."""
    for kinds in (SAME_LENGTH, OTHER_LENGTH):
        order = [kinds[k] for k in rng.permutation(len(kinds)).tolist()]
        clear = [(kind, words) for kind in order for words in _EDITS[kind](sentence, common, rng)]
        if clear:
            return next((each for each in clear if neighbours.possible(each[1])), clear[0])
    return None


def _swapped(sentence: SampledSentence, _: BoolArray, rng: np.random.Generator) -> list[Words]:
    w = sentence.words
    places = [i for i in range(len(w) - 1) if w[i] != w[i + 1]]
    chosen = [places[k] for k in rng.permutation(len(places))[:CANDIDATES].tolist()]
    return _clear(sentence, [(*w[:i], w[i + 1], w[i], *w[i + 2 :]) for i in chosen])


def _replaced(sentence: SampledSentence, common: BoolArray, rng: np.random.Generator) -> list[Words]:
    unigram, ids = sentence.lexicon.unigram, sentence.lexicon.pcfg.word_ids
    near: list[Words] = []
    others: list[tuple[float, Words]] = []
    for i in rng.permutation(len(sentence))[:CANDIDATES].tolist():
        own = ids[sentence.words[i]]
        apart = unigram[own] - unigram
        clear = common & (sentence.log_odds(i) >= MARGIN + np.maximum(apart, 0.0))
        clear[own] = False
        words = np.flatnonzero(clear)
        distance = np.round(np.abs(apart[words]), 9)
        alike = rng.permutation(words[distance <= TOLERANCE])[:WORDS].tolist()
        near += [sentence.with_word(i, _word(sentence, word)) for word in alike]
        if len(words) and not alike:
            nearest = sentence.with_word(i, _word(sentence, int(words[distance.argmin()])))
            others.append((float(distance.min()), nearest))
    return near or [words for _, words in sorted(others)[:1]]


def _word(sentence: SampledSentence, number: int) -> str:
    return sentence.lexicon.pcfg.terminals[number]


def _shortened(sentence: SampledSentence, _: BoolArray, rng: np.random.Generator) -> list[Words]:
    w, n = sentence.words, len(sentence)
    if n == 1 or not _in_range(sentence, n - 1):
        return []
    return _clear(sentence, [(*w[:i], *w[i + 1 :]) for i in rng.permutation(n)[:CANDIDATES].tolist()])


def _lengthened(sentence: SampledSentence, common: BoolArray, rng: np.random.Generator) -> list[Words]:
    w, n = sentence.words, len(sentence)
    if not _in_range(sentence, n + 1):
        return []
    share = np.where(common, np.exp(sentence.lexicon.unigram), 0.0)
    places, words = (
        rng.integers(0, n + 1, CANDIDATES).tolist(),
        rng.choice(len(share), CANDIDATES, p=share / share.sum()).tolist(),
    )
    return _clear(sentence, [(*w[:i], _word(sentence, v), *w[i:]) for i, v in zip(places, words, strict=True)])


def _in_range(sentence: SampledSentence, n: int) -> bool:
    return sentence.lexicon.lengths is None or n in sentence.lexicon.lengths


def _clear(sentence: SampledSentence, changed: Sequence[Words]) -> list[Words]:
    """The changed sentences that are impossible, or less probable by `MARGIN`."""
    if not changed:
        return []
    values = sentence.lexicon.pcfg.exact.string_log_probs([sentence.words, *changed])
    return [changed[k] for k in np.flatnonzero(values[0] - values[1:] >= MARGIN).tolist()]


_EDITS: dict[str, Callable[[SampledSentence, BoolArray, np.random.Generator], list[Words]]] = {
    "swap": _swapped,
    "replace": _replaced,
    "delete": _shortened,
    "insert": _lengthened,
}
