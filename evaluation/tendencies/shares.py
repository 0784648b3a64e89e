"""Shares of stopwords and of symbols in every sentence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from truesource.evaluation.measures.integer_corpus import Encoded
from truesource.grammar.support.arrays import FloatArray, IntArray

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
UNKNOWN = "<unk>"  #: neither a symbol nor a stopword: nobody knows what it stands for


def is_symbol(token: str) -> bool:
    """Whether a token has no letter: punctuation, numbers, and what treebanks write for them."""
    plain = ESCAPED.get(token.lower(), token)
    return token != UNKNOWN and not any(character.isalpha() for character in plain)


def symbols(words: Iterable[str]) -> list[str]:
    """The words that are symbols."""
    return [word for word in words if is_symbol(word)]


def stopwords_among(words: Iterable[str], stopwords: Iterable[str]) -> list[str]:
    """The words that are stopwords, whatever their case."""
    listed = {word.lower() for word in stopwords}
    return [word for word in words if word.lower() in listed]


def shares(corpus: Encoded, codes: Sequence[int] | IntArray) -> FloatArray:
    """Share of the tokens of every sentence that are of a class, (N,), in [0, 1].

    Equal fractions of sentences of different lengths are equal numbers, as those of
    `truesource.grammar.inference.expected.TokenClass.share_pmf`.

    Args:
        corpus: N sentences.
        codes: of the words of the class.
    """
    member = np.zeros(corpus.vocabulary, dtype=np.bool_)
    member[np.asarray(codes, dtype=np.int64)] = True
    found = np.bincount(corpus.sentence, weights=member[corpus.tokens], minlength=len(corpus.lengths))
    return found / corpus.lengths
