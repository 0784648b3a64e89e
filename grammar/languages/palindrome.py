"""A string and its mirror image, w w^R."""

from __future__ import annotations

from pydantic import Field

from truesource.grammar.building import grammar_of
from truesource.grammar.languages import Language, LanguageSettings
from truesource.grammar.rules import GrammarRules


class PalindromeSettings(LanguageSettings):
    """Parameters of w w^R."""

    k: int = Field(2, ge=1, le=10**9, description="Number of word types.")
    mean_length: float = Field(20.0, ge=2.1, le=1e6, description="Mean number of words of a string, without the mark.")
    marked: bool = Field(False, description="Put a special word (#) in the middle.")

    def n_rules(self) -> int:
        """Return the number of rules: at most five for each word, and one for the mark."""
        return 5 * self.k + 1


def build(settings: PalindromeSettings) -> GrammarRules:
    """Build strings w over k words, of geometric length from 1 on, then w backwards.

    P(w w^R) = (1 - p) p^(n - 1) / k^n for a w of n words, where p = 1 - 2 / ``mean_length``; with a mark in the middle,
    w # w^R, the same. The middle is visible only if it is marked.
    """
    k, end = settings.k, 2.0 / settings.mean_length
    middle = ("#",) if settings.marked else ()
    rules: list[tuple[str, tuple[str, ...], float]] = []
    for word in (f"w{i}" for i in range(1, k + 1)):
        rules += [("S", (word, "S", word), (1.0 - end) / k), ("S", (word, *middle, word), end / k)]
    return grammar_of(rules, start="S")


LANGUAGE = Language(
    title="a string and its mirror image",
    tests="a stack, and guessing the middle",
    citation=(
        "Chomsky (1956), Three models for the description of language, IRE Transactions on Information Theory; DuSell"
        " and Chiang (2020), Learning context-free languages with nondeterministic stack RNNs, CoNLL"
    ),
    settings=PalindromeSettings,
    build=build,
)
