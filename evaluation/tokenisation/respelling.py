"""A lexicon that a tokeniser has not seen: words of a grammar with new spellings, everything else as it was."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.errors import InputError

TRIES = 10_000  #: draws for one new word


def respell(grammar: PCFG, share: float, seed: int) -> PCFG:
    """A grammar in which a share of the words is spelt otherwise, one to one.

    The words are drawn among those of two letters or more that are letters only; their new spellings from the chain of
    letter pairs of these words, each different from every word of the grammar. A sentence of the result has exactly
    the probability of the one it stands for, and one seed samples corresponding sentences from both grammars.

    Args:
        grammar: the original.
        share: of the words of letters, more than 0 and at most 1.
        seed: of both draws.

    Raises:
        InputError: the share is out of range, there is no word to respell, or the letter pairs give no new words.
    """
    check_share(share)
    able = [i for i, word in enumerate(grammar.terminals) if word.isalpha() and len(word) > 1]
    if not able:
        raise InputError("the grammar has no word of letters to respell")
    rng = np.random.default_rng(seed)
    chosen = rng.permutation(able)[: max(1, round(share * len(able)))]
    chain = _Chain([grammar.terminals[i] for i in able])
    words, taken = list(grammar.terminals), set(grammar.terminals)
    for i in chosen.tolist():
        words[i] = next((word for word in (chain.draw(rng) for _ in range(TRIES)) if word not in taken), "")
        if not words[i]:
            raise InputError("the letters of the words allow too few new words; respell a smaller share")
        taken.add(words[i])
    return replace(grammar, terminals=tuple(words), meta={**grammar.meta, "respelt": {"share": share, "seed": seed}})


def check_share(share: float) -> None:
    """Whether it is a share of words.

    Raises:
        InputError: it is not.
    """
    if not 0.0 < share <= 1.0:
        raise InputError(f"a share of words to respell is above 0 and at most 1, got {share:g}")


class _Chain:
    """Draws words letter by letter, each given the one before, in the proportions of some words."""

    def __init__(self, words: Sequence[str]) -> None:
        pairs: dict[str, Counter[str]] = defaultdict(Counter)
        for word in words:
            for before, after in zip(" " + word, word + " ", strict=True):
                pairs[before][after] += 1
        self._next = {
            before: (list(counts), np.cumsum(list(counts.values())) / counts.total())
            for before, counts in pairs.items()
        }

    def draw(self, rng: np.random.Generator) -> str:
        """A word of two letters or more."""
        while True:
            word, letter = "", " "
            while True:
                letters, cumulative = self._next[letter]
                letter = letters[min(int(np.searchsorted(cumulative, rng.random(), side="right")), len(letters) - 1)]
                if letter == " ":
                    break
                word += letter
            if len(word) > 1:
                return word
