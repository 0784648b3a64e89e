"""The distribution of the token after a prefix."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from truesource.grammar.support.arrays import FloatArray
from truesource.grammar.support.call_arguments import whole_number

SHOWN = 5  #: words in the one-line form of a distribution


@dataclass(frozen=True, repr=False)
class NextToken:
    """Distribution of the token after a prefix. ``probability`` and ``stop`` sum to one for a consistent grammar."""

    words: tuple[str, ...]  #: (V,)
    probability: FloatArray  #: (V,) probability of each word
    stop: float  #: probability that the sentence ends here
    states: FloatArray  #: (S,) expected number of each symbol starting here (Stolcke 1995)

    def __getitem__(self, word: str) -> float:
        """Return the probability of a word.

        Raises:
            KeyError: the word is not in the grammar.
        """
        if word not in self.words:
            raise KeyError(f"the grammar does not have the word {word!r}")
        return float(self.probability[self.words.index(word)])

    def top(self, k: int = 10) -> list[tuple[str, float]]:
        """Return the k most probable words.

        Raises:
            InputError: ``k`` is no whole number, or negative.
        """
        k = whole_number(k, "the number of words", 0)
        order = np.argsort(-self.probability, kind="stable")[:k]
        return [(self.words[i], float(self.probability[i])) for i in order]

    def __repr__(self) -> str:
        likely = ", ".join(f"{word!r}: {p:.4f}" for word, p in self.top(SHOWN))
        more = f", {len(self.words) - SHOWN:,} more" if len(self.words) > SHOWN else ""
        return f"NextToken({likely}{more}; stop: {self.stop:.4f})"
