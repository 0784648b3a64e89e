"""The exact tendencies of the sentences of a grammar, samples for null distributions, and kinds of tokens.

Kinds of tokens are stopwords and symbols, and habits that show whether two texts were cut into tokens in the same way;
if they were not, every tendency differs for that reason alone.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np

from truesource.evaluation.core.oracle import UNKNOWN, Oracle
from truesource.evaluation.measures.integer_corpus import Encoded
from truesource.evaluation.tendencies.rank_frequency import exponent_of
from truesource.generator.sampler import Sampler
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.inference.expected import expected_counts, token_class
from truesource.grammar.inference.word_types import (
    expected_types,
    occurrence_by_length,
    occurrence_probabilities,
    types_per_length,
)
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import FloatArray, IntArray, random_state
from truesource.grammar.support.errors import InputError, NothingToMeasureError

#: tokens that treebanks and tokenisers write for a symbol
ESCAPED: Mapping[str, str] = {
    "-lrb-": "(",
    "-rrb-": ")",
    "-lsb-": "[",
    "-rsb-": "]",
    "-lcb-": "{",
    "-rcb-": "}",
    "<apostrophe>": "'",
    "&apos;": "'",
    "&quot;": '"',
    "&amp;": "&",
    "&lt;": "<",
    "&gt;": ">",
    "&#91;": "[",
    "&#93;": "]",
    "&#124;": "|",
}
LOOKED_AT = 20_000  #: maximum number of sentences of each text
RARE = 0.001  #: least share of the tokens of a habit
TIMES = 10.0  #: how much more often one side must have a habit than the other
Sentences = Sequence[Sequence[str]]
_ATTACHED = re.compile(r"\w[.,;:!?)\]\"]+$")
_CLITIC = re.compile(r"^(n't|['\u2019](s|m|re|ve|ll|d))$", re.IGNORECASE)
_CONTRACTED = re.compile(r"\w(n't|['\u2019](s|m|re|ve|ll|d))$", re.IGNORECASE)
HABITS: Mapping[str, Callable[[str], bool]] = {
    "capital letters": lambda token: token != token.lower(),
    "punctuation joined to words": lambda token: bool(_ATTACHED.search(token)) and not token.isdigit(),
    "clitics as words of their own (n't, 's)": lambda token: bool(_CLITIC.match(token)),
    "clitics joined to words (don't)": lambda token: bool(_CONTRACTED.search(token)),
    "escaped brackets and quotes (-LRB-, &quot;)": lambda token: token.lower() in ESCAPED,
    "pieces of words (@@, ##, \u2581, \u0120)": lambda token: (
        token.endswith("@@") or token.startswith(("##", "\u2581", "\u0120"))
    ),
    "unknown words (<unk>)": lambda token: token in ("<unk>", "[UNK]", "UNK"),
}  #: what tokens show of how a text was cut, and what else was done to it
TOLERANCE = 1e-3  #: relative, of the probability that a rare word occurs in a sentence
COVERED = 1.0 - 1e-9  #: of sentences without a length range: share whose lengths are covered
HABIT_SENTENCES = 5000  #: sentences of the truth that show how its text is cut into tokens
LONGEST = 200  #: tokens; exact shares and types of longer sentences take too much time and memory


def is_symbol(token: str) -> bool:
    """Return True if a token has no letter: punctuation, numbers, and what treebanks write for them."""
    plain = ESCAPED.get(token.lower(), token)
    return token != UNKNOWN and not any(character.isalpha() for character in plain)


def symbols(words: Iterable[str]) -> list[str]:
    """Return the words that are symbols."""
    return [word for word in words if is_symbol(word)]


def stopwords_among(words: Iterable[str], stopwords: Iterable[str]) -> list[str]:
    """Return the words that are stopwords, whatever their case."""
    listed = {word.lower() for word in stopwords}
    return [word for word in words if word.lower() in listed]


def shares(corpus: Encoded, codes: Sequence[int] | IntArray) -> FloatArray:
    """Return the share of the tokens of every sentence that are of a class, (N,), in [0, 1].

    Equal fractions of sentences of different lengths are equal numbers, as in
    `truesource.grammar.inference.expected.TokenClass.share_pmf`.

    Args:
        corpus: N sentences.
        codes: of the words of the class.
    """
    member = np.zeros(corpus.vocabulary, dtype=np.bool_)
    member[np.asarray(codes, dtype=np.int64)] = True
    counts = np.bincount(corpus.sentence, weights=member[corpus.tokens], minlength=len(corpus.lengths))
    return counts / corpus.lengths


def differing_habits(first: Sentences, second: Sentences) -> list[str]:
    """Return habits that one text has and the other hardly, as phrases with their shares of the tokens.

    A share counts as a habit from one token in a thousand on, and as differing if it is ten times the other.

    Args:
        first: sentences of one text; the first 20,000 are used.
        second: of the other.
    """
    shares = [_shares(text) for text in (first, second)]
    differing = []
    for habit in HABITS:
        one, other = shares[0][habit], shares[1][habit]
        if max(one, other) >= RARE and max(one, other) > TIMES * min(one, other):
            differing.append(f"{habit}: {one:.2%} of the tokens on one side, {other:.2%} on the other")
    return differing


def _shares(text: Sentences) -> dict[str, float]:
    counts = Counter(token for sentence in text[:LOOKED_AT] for token in sentence)
    total = max(1, sum(counts.values()))
    return {habit: sum(n for token, n in counts.items() if has(token)) / total for habit, has in HABITS.items()}


class TrueText:
    """The exact distribution that sentences are compared with.

    Args:
        pcfg: the grammar.
        lengths: the condition that the corpus was drawn under.
        vocabulary: all other words are ``<unk>``. None: every word of the grammar.

    Raises:
        InputError: no sentence has such a length, or, without a range, sentences are too long.
    """

    def __init__(
        self, pcfg: PCFG, lengths: LengthRange | None = None, *, vocabulary: Iterable[str] | None = None
    ) -> None:
        self._oracle = Oracle(pcfg, lengths=lengths, vocabulary=vocabulary)
        self.pcfg = self._oracle.grammar
        self.lengths = lengths
        self._possible = frozenset(pcfg.vocabulary)
        self._shares: dict[tuple[str, ...], tuple[FloatArray, FloatArray]] = {}

    @property
    def words(self) -> tuple[str, ...]:
        """Words of the truth, with ``<unk>`` unless the vocabulary is whole; the codes of `unigram`, (V,)."""
        return self.pcfg.vocabulary

    @property
    def signature_part(self) -> str:
        """Part of signatures: digest of the grammar, condition, and size of the vocabulary."""
        return f"{self.pcfg.digest[:8]}/{self.lengths or 'none'}/{len(self.words)}words"

    def read(self, sentences: Iterable[Sequence[str]]) -> list[list[str]]:
        """Return sentences as this truth sees them: words outside a vocabulary that was given are ``<unk>``."""
        return [self._oracle.read(sentence) for sentence in sentences]

    def read_as_text(self, sentences: Iterable[Sequence[str]]) -> list[list[str]]:
        """Read sentences for a comparison with a text, where words that the grammar lacks are words like others."""
        return [
            [
                read if word in self._possible else word
                for word, read in zip(sentence, self._oracle.read(sentence), strict=True)
            ]
            for sentence in sentences
        ]

    @property
    def collapsed(self) -> bool:
        """True if some words are read as ``<unk>``."""
        return self._oracle.collapsed

    @cached_property
    def high(self) -> int:
        """Longest sentence that the exact distributions cover.

        Raises:
            NothingToMeasureError: it has more than `LONGEST` tokens.
        """
        if self.lengths is not None:
            if self.lengths.high > LONGEST:
                raise NothingToMeasureError(
                    f"exact shares and numbers of words go up to {LONGEST} words a sentence, not {self.lengths.high};"
                    " give a range that ends there or before, such as --lengths 6..25",
                    "long-sentences",
                )
            return self.lengths.high
        high = 50
        while high <= LONGEST:
            if float(self.pcfg.exact.length_pmf(high, None).sum()) >= COVERED:
                return high
            high *= 2
        raise NothingToMeasureError(
            f"more than one sentence in a billion of this grammar is longer than {LONGEST} words, too long for exact"
            " shares and numbers of words; give the length range that the samples have, such as --lengths 6..25",
            "long-sentences",
        )

    @cached_property
    def length_pmf(self) -> FloatArray:
        """Probability of each number of tokens, (high+1,)."""
        return np.asarray(self.pcfg.exact.length_pmf(self.high, self.lengths))

    @cached_property
    def unigram(self) -> FloatArray:
        """Probability of each word among the pooled tokens, ends of sentences not counted, (V,)."""
        words = expected_counts(self.pcfg, self.lengths).words
        return np.asarray(words / words.sum())

    @cached_property
    def known(self) -> FloatArray:
        """`unigram` of known words: without ``<unk>``, which is no word and has no rank, (V,); sums to 1.

        Raises:
            InputError: no word is known.
        """
        if self.unknown_code is None:
            return self.unigram
        unigram = self.unigram.copy()
        unigram[self.unknown_code] = 0.0
        if not unigram.any():
            raise InputError("no word of the vocabulary is in the grammar; name the model that the samples are from")
        return np.asarray(unigram / unigram.sum())

    @cached_property
    def ranked(self) -> FloatArray:
        """Probabilities above 0 of the known words in descending order."""
        return np.sort(self.known[self.known > 0])[::-1]

    @cached_property
    def zipf_exponent(self) -> float:
        """Exponent of Zipf's law fitted to `ranked`.

        Raises:
            InputError: there are fewer than 3 words.
        """
        return exponent_of(self.ranked)

    def share_pmf(self, words: Iterable[str]) -> tuple[FloatArray, FloatArray]:
        """Return shares of a class of words in a sentence, ascending, and their probabilities, (K,) each."""
        key = tuple(sorted(set(words)))
        if key not in self._shares:
            high = None if self.lengths is not None else self.high
            self._shares[key] = token_class(self.pcfg, key, self.lengths, high=high).share_pmf()
        return self._shares[key]

    @cached_property
    def types_by_length(self) -> FloatArray:
        """Expected number of different known words in a sentence of each length, (high+1,); 0 if impossible."""
        types = types_per_length(self.pcfg, self.high)
        if self.unknown_code is None:
            return types
        mass = np.asarray(self.pcfg.exact.length_pmf(self.high, None))
        unknown = occurrence_by_length(self.pcfg, self.high, [UNKNOWN])[0]
        share = np.divide(unknown, mass, out=np.zeros(len(mass)), where=mass > 0.0)
        return np.asarray(np.maximum(types - share, 0.0))

    @cached_property
    def occurrence(self) -> FloatArray:
        """Probability that each word occurs in a sentence, (V,), to a relative error of `TOLERANCE` for rare words."""
        return occurrence_probabilities(self.pcfg, self.lengths, tolerance=TOLERANCE)

    def vocabulary_size(self, sentences: Sequence[int]) -> FloatArray:
        """Return the expected number of different words in m sentences, for each m, (K,)."""
        return expected_types(self.occurrence, sentences)

    def samples(self, n: int, count: int, *, seed: int) -> Iterator[Encoded]:
        """Yield samples of ``n`` sentences each, in the codes of `words`; number k is the same whatever ``count`` is.

        Args:
            n: sentences.
            count: how many samples.
            seed: of all.
        """
        sampler = Sampler(self.pcfg, self.lengths)
        for k in range(count):
            sample = sampler.draw(n, random_state(seed, k))
            tokens = sampler.left[sample.rules[sample.rules >= sampler.first_lexical]]
            yield Encoded(tokens.astype(np.int64), sample.n_tokens.astype(np.int64), len(self.words))

    def outside(self, sentences: Iterable[Sequence[str]]) -> float:
        """Return the share of the tokens that are no words of the grammar, in [0, 1]; a model's ``<unk>`` is a word."""
        ids = self._oracle.truth.word_ids
        inside = [word in ids or (self.collapsed and word == UNKNOWN) for sentence in sentences for word in sentence]
        return 1.0 - float(np.mean(inside)) if inside else 0.0

    def habits(self, sentences: Sequence[Sequence[str]], *, seed: int, n: int = HABIT_SENTENCES) -> list[str]:
        """Return differences in tokenisation between the sentences and the grammar's, see `differing_habits`.

        ``<unk>`` is excluded on both sides, and so are words that this truth reads as ``<unk>``.

        Args:
            sentences: as their source has them.
            seed: of the sample of the truth that they are compared with.
            n: its size.
        """
        (sample,) = self.samples(n, 1, seed=seed)
        of_truth = [self.words[code] for code in sample.tokens.tolist() if code != self.unknown_code]
        read_ids, word_ids = self.pcfg.word_ids, self._oracle.truth.word_ids
        other = [[w for w in s if w != UNKNOWN and (w in read_ids or w not in word_ids)] for s in sentences]
        return differing_habits(other, [of_truth])

    @property
    def unknown(self) -> str:
        """Spelling of a word outside the vocabulary."""
        return UNKNOWN

    @property
    def unknown_code(self) -> int | None:
        """Code of ``<unk>`` among `words`; None if no word is read as ``<unk>``."""
        return self.pcfg.word_ids.get(UNKNOWN)
