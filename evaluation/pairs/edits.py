"""Pairs by single edits, which make the other sentence impossible or clearly less probable.

`edited_pairs` takes any grammar. `Neighbours` knows the possible bigrams of its sentences.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
from scipy.sparse import csc_matrix, csr_matrix

from truesource.evaluation.pairs.lexicon import Lexicon
from truesource.evaluation.pairs.odds import with_truth
from truesource.evaluation.pairs.pair import Pair, Words, differing
from truesource.evaluation.pairs.sampled_sentence import SampledSentence, sampled_sentences
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import BoolArray, IntArray
from truesource.grammar.support.printable import meter

SAME_LENGTH = ("swap", "replace")  #: two neighbours change places; one word becomes another
OTHER_LENGTH = ("delete", "insert")  #: of one word, if a sentence has no clear pair of one length
MARGIN = 1.0  #: least log odds, nats
TOLERANCE = 0.5  #: nats; difference in log frequency between a word and its replacement, if possible
TRIES = 10  #: most sentences sampled for each pair
CANDIDATES = 8  #: places that an edit is tried at
WORDS = 4  #: of similar frequency that are tried at each


class Neighbours:
    """Possible bigrams, from the words that each symbol can begin and end with; probabilities play no part.

    Args:
        pcfg: the grammar, whose symbols all occur in sentences and have an end.
    """

    def __init__(self, pcfg: PCFG) -> None:
        parent, left, right = pcfg.binary.T.astype(np.int64)
        above, below = pcfg.unary.T.astype(np.int64)
        n, words = len(pcfg.symbols), len(pcfg.vocabulary)
        symbol, word = pcfg.lexical.T.astype(np.int64)
        lexical = _boolean(symbol, word, (n, words))
        self._ids = pcfg.word_ids
        self._start = pcfg.start
        self._left, self._right = left, right
        together = np.concatenate([parent, above])
        self._first = _closed(_boolean(together, np.concatenate([left, below]), (n, n)), lexical)  #: (S, V)
        self._last = _closed(_boolean(together, np.concatenate([right, below]), (n, n)), lexical)  #: (S, V)
        self._known: dict[tuple[int, int], bool] = {}

    def possible(self, sentence: Sequence[str]) -> bool:
        """Return True if all neighbours in a sentence can be neighbours, and its ends the ends of one."""
        first, last = self._ids[sentence[0]], self._ids[sentence[-1]]
        ends = _has(self._first, first, self._start) and _has(self._last, last, self._start)
        return ends and all(self.can_follow(before, after) for before, after in pairwise(sentence))

    def can_follow(self, before: str, after: str) -> bool:
        """Return True if one word can directly follow another."""
        key = self._ids[before], self._ids[after]
        if key not in self._known:
            ends, begins = (np.zeros(self._last.shape[0], dtype=bool) for _ in range(2))
            ends[_column(self._last, key[0])] = True
            begins[_column(self._first, key[1])] = True
            self._known[key] = bool((ends[self._left] & begins[self._right]).any())
        return self._known[key]


def _boolean(row: IntArray, column: IntArray, shape: tuple[int, int]) -> csr_matrix[np.float64]:
    return _signs(csr_matrix((np.ones(len(row)), (row, column)), shape=shape))


def _signs(matrix: csr_matrix[np.float64]) -> csr_matrix[np.float64]:
    """Return 1 at positive entries of a matrix."""
    matrix.sum_duplicates()
    matrix.data[:] = 1.0
    return matrix


def _closed(steps: csr_matrix[np.float64], reached: csr_matrix[np.float64]) -> csc_matrix[np.float64]:
    """Return words that symbols reach by any number of steps, (S, V), from steps (S, S) and their words (S, V)."""
    while True:
        more = _signs(csr_matrix(steps @ reached + reached))
        if more.nnz == reached.nnz:
            return csc_matrix(more)
        reached = more


def _column(matrix: csc_matrix[np.float64], word: int) -> IntArray:
    return np.asarray(matrix.indices[matrix.indptr[word] : matrix.indptr[word + 1]], dtype=np.int64)


def _has(matrix: csc_matrix[np.float64], word: int, symbol: int) -> bool:
    return bool((_column(matrix, word) == symbol).any())


def edited_pairs(pcfg: PCFG, lengths: LengthRange | None, *, number: int, seed: int, rarest: float = 0.0) -> list[Pair]:
    """Sample sentences of a grammar, and edit each in one place.

    The edited sentence, side ``b``, has lengths of the range too, and the sampled one is more probable by at least
    `MARGIN` nats, or for a replaced word, by as much beyond their frequencies. Edits that keep the length are
    preferred: a swap or a replacement, in random order. A swap does not change the words; a replacement has a word of
    about the same frequency, or the nearest one. Of all these, edits with possible bigrams alone are preferred, since
    a model of bigrams decides the others. Each sentence gives at most one pair, and no pair occurs twice.

    The strata tell what decides a pair. ``decided``: ``beginning`` if the words alone, without the end of the
    sentence, are as clear as `MARGIN`; otherwise ``end``, and a model must predict the end too. ``bigrams``:
    ``possible`` if all bigrams of the edited sentence occur in some sentence. The fact
    ``log_odds_of_beginnings`` is the log odds of sentences that begin with these words, given the range of lengths;
    None: it is infinite.

    Args:
        pcfg: the grammar.
        lengths: of the sentences, both of a pair.
        number: requested number of pairs; there may be fewer, or none.
        seed: of sentences and edits.
        rarest: least share of all tokens that a word of a pair has, as models may read rarer ones as ``<unk>``.

    Raises:
        InputError: the grammar cannot be sampled from.
    """
    lexicon, neighbours = Lexicon(pcfg, lengths), Neighbours(pcfg)
    common = common_words(lexicon, rarest)
    pairs: dict[tuple[Words, Words], Pair] = {}
    with meter("minimal pairs made by edits", number) as bar:
        for source, sentence in enumerate(sampled_sentences(lexicon, number * TRIES, seed)):
            if len(pairs) == number:
                break
            if not common[[pcfg.word_ids[word] for word in sentence.words]].all():
                continue
            edit = _edit(sentence, neighbours, common, np.random.default_rng([seed, source]))
            if edit is not None and (sentence.words, edit[1]) not in pairs:
                kind, words = edit
                a = sentence.words
                pairs[a, words] = Pair(a, words, kind, None, None, None, differing(a, words), source, "a")
                bar.advance()
    return with_reasons(with_truth(list(pairs.values()), lexicon), pcfg, lengths)


def common_words(lexicon: Lexicon, rarest: float) -> BoolArray:
    """Return the mask of the words with at least this share of all tokens that occur at all, (V,)."""
    share = np.exp(lexicon.unigram)
    return np.asarray((share > 0.0) & (share >= rarest))


def with_reasons(pairs: Sequence[Pair], pcfg: PCFG, lengths: LengthRange | None) -> list[Pair]:
    """Add the strata and the fact that `edited_pairs` describes to pairs.

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
    result = []
    for pair in pairs:
        odds = beginning[pair.a] - beginning[pair.b]
        reasons = {
            "decided": "beginning" if odds >= MARGIN else "end",
            "bigrams": "possible" if neighbours.possible(pair.b) else "impossible",
        }
        fact = {"log_odds_of_beginnings": odds if np.isfinite(odds) else None}
        result.append(replace(pair, strata={**pair.strata, **reasons}, facts={**pair.facts, **fact}))
    return result


def _edit(
    sentence: SampledSentence, neighbours: Neighbours, common: BoolArray, rng: np.random.Generator
) -> tuple[str, Words] | None:
    """Return the kind of an edit and the edited words; None if no tried edit makes a clear pair."""
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
        replaced = ids[sentence.words[i]]
        apart = unigram[replaced] - unigram
        clear = common & (sentence.log_odds(i) >= MARGIN + np.maximum(apart, 0.0))
        clear[replaced] = False
        words = np.flatnonzero(clear)
        distance = np.round(np.abs(apart[words]), 9)
        alike = rng.permutation(words[distance <= TOLERANCE])[:WORDS].tolist()
        near += [sentence.with_word(i, _word(sentence, word)) for word in alike]
        if len(words) and not alike:
            nearest = sentence.with_word(i, _word(sentence, int(words[distance.argmin()])))
            others.append((float(distance.min()), nearest))
    return near or [words for _, words in sorted(others)[:1]]


def _word(sentence: SampledSentence, number: int) -> str:
    return sentence.lexicon.pcfg.vocabulary[number]


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
    """Return the changed sentences that are impossible, or less probable by `MARGIN`."""
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
