"""The embedded grammar of everyday English, whole or in one of two smaller sizes."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from pydantic import Field

from truesource.grammar.languages import Language, LanguageSettings
from truesource.grammar.rules import GrammarRules

if TYPE_CHECKING:
    from truesource.grammar.pcfg import PCFG


class Size(NamedTuple):
    """The part of the grammar that a smaller size keeps."""

    symbols: float  #: least expected number of a symbol in a sentence
    words: int  #: most words of each preterminal
    rules: int  #: upper bound on rules


SIZES = {"small": Size(0.01, 6, 5_000), "medium": Size(0.005, 8, 10_000), "full": Size(0.0, 10**6, 20_000)}


class EnglishSettings(LanguageSettings):
    """Parameters of the embedded English grammar."""

    size: Literal["small", "medium", "full"] = Field("full", description="Size of the grammar and its lexicon.")

    def n_rules(self) -> int:
        """Return an upper bound that a test compares with the grammar."""
        return SIZES[self.size].rules


@cache
def _full() -> PCFG:
    from truesource.grammar.support.files import data_folder
    from truesource.grammar.template import compile_template

    return compile_template(data_folder() / "english")


def build(settings: EnglishSettings) -> GrammarRules:
    """Build the grammar of ``data/english``, or a part of it without rare symbols and words.

    A smaller size has the symbols that the full grammar has at least 0.005 (``medium``) or 0.01 (``small``) times in a
    sentence, on average, and the 8 or 6 most probable words of each preterminal (of equal ones, the first). All rules
    of these symbols and words are kept, and the probabilities of each symbol divided by their sum. So every sentence of
    a smaller size is a sentence of the full grammar, with the same agreement and selection.
    """
    full, size = _full(), SIZES[settings.size]
    if settings.size == "full":
        return full
    from truesource.grammar.restrict import restrict

    frequent = full.exact.expected_symbols >= size.symbols
    parents, words = full.lexical.T
    order = np.lexsort((words, -full.lexical_logp, parents))
    first = np.searchsorted(parents[order], parents[order])  # first of the same parent
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order)) - first
    tables: tuple[Any, ...] = (
        frequent[full.binary].all(axis=1),
        frequent[full.unary].all(axis=1),
        frequent[parents] & (rank < size.words),
    )
    rest = restrict(full, tables)
    assert rest is not None, "frequent symbols derive sentences"
    return rest.pcfg


LANGUAGE = Language(
    title="a phrase-structure grammar of everyday English",
    tests="many phenomena of syntax at once, with readable words",
    citation="the truesource developers, A phrase-structure grammar of everyday English (data/english/README.md)",
    settings=EnglishSettings,
    build=build,
)
