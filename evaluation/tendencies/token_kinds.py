"""Kinds of tokens: stopwords and symbols, and habits that show whether two texts were cut into tokens in the same way.

If they were not, every tendency differs for that reason alone.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

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
LOOKED_AT = 20_000  #: sentences of each text
RARE = 0.001  #: share of the tokens below which a habit is none
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


def differing_habits(first: Sentences, second: Sentences) -> list[str]:
    """Habits that one text has and the other hardly, as phrases with their shares of the tokens.

    A share counts as a habit from one token in a thousand on, and as differing if it is ten times the other.

    Args:
        first: sentences of one text; the first 20,000 are looked at.
        second: of the other.
    """
    shares = [_shares(text) for text in (first, second)]
    found = []
    for habit in HABITS:
        one, other = shares[0][habit], shares[1][habit]
        if max(one, other) >= RARE and max(one, other) > TIMES * min(one, other):
            found.append(f"{habit}: {one:.2%} of the tokens on one side, {other:.2%} on the other")
    return found


def _shares(text: Sentences) -> dict[str, float]:
    counts = Counter(token for sentence in text[:LOOKED_AT] for token in sentence)
    total = max(1, sum(counts.values()))
    return {habit: sum(n for token, n in counts.items() if has(token)) / total for habit, has in HABITS.items()}
