"""Words of languages that look like English: nouns and verbs with two numbers, frequencies by Zipf's law."""

from __future__ import annotations

import numpy as np

Rule = tuple[str, tuple[str, ...], float]
NUMBERS = ("sg", "pl")


def zipf(size: int, exponent: float) -> list[float]:
    """Probabilities of ranks 1 to ``size``, in proportion to ``rank ** -exponent``."""
    weight = np.arange(1.0, size + 1.0) ** -exponent
    found: list[float] = (weight / weight.sum()).tolist()
    return found


def words(parent: str, stem: str, ending: str, probabilities: list[float]) -> list[Rule]:
    """A rule for each word of a symbol: ``noun1s``, ``noun2s`` and so on."""
    return [(parent, (f"{stem}{i}{ending}",), p) for i, p in enumerate(probabilities, start=1)]


def nouns_and_verbs(nouns: int, verbs: int, exponent: float) -> list[Rule]:
    """Rules of ``N-sg``, ``N-pl``, ``V-sg`` and ``V-pl``: ``noun1``, ``noun1s``; ``verb1s``, ``verb1``."""
    noun, verb = zipf(nouns, exponent), zipf(verbs, exponent)
    return [
        *words("N-sg", "noun", "", noun),
        *words("N-pl", "noun", "s", noun),
        *words("V-sg", "verb", "s", verb),
        *words("V-pl", "verb", "", verb),
    ]
