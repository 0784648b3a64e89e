"""Documents of languages that are given: the prior, and the pool that fits them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from truesource.grammar.documents.automata import Automata, LinearMoves
from truesource.grammar.documents.document import DocumentProcess, StringCount
from truesource.grammar.documents.pool import predictor_of
from truesource.grammar.languages import load_language
from truesource.grammar.rules import GrammarRules
from truesource.grammar.support.errors import InputError


def pool_of(
    languages: Sequence[str | GrammarRules],
    *,
    count: StringCount,
    switch: float = 0.0,
    prior: Sequence[float] | None = None,
    name: str | None = None,
) -> DocumentProcess:
    """Documents of which each has one of some languages, that the reader does not know.

    Args:
        languages: K grammars, or references of them; each right-linear, as automata are.
        count: strings of a document.
        switch: P(the language is drawn again) before each string but the first.
        prior: (K,) P(language), divided by their sum; None: all alike.
        name: in signatures; None: of the digests of the languages.

    Raises:
        InputError: there is no language, no word that two of them have, a language is no automaton, or ``prior`` has
            other numbers than one for each language, 0 or more, and together more than 0.
    """
    if not languages:
        raise InputError("this pool has no language; name one or more")
    weight = np.ones(len(languages)) if prior is None else np.asarray(prior, dtype=np.float64)
    if weight.shape != (len(languages),) or not (weight >= 0.0).all() or not 0.0 < weight.sum() < np.inf:
        raise InputError(f"a prior has a number from 0 on for each of the {len(languages)} languages, not all 0")
    names: list[str] = []
    automata = Automata.join(_moves(language, names) for language in languages)
    predictor = predictor_of(names, automata, weight / weight.sum(), switch)
    if name is None:
        told = hashlib.sha256(repr([names, weight.tolist(), count, switch]).encode()).hexdigest()
        name = f"pool of {len(names)} languages {told[:8]}"
    return DocumentProcess(name, predictor, count)


def _moves(language: str | GrammarRules, names: list[str]) -> LinearMoves:
    """The automaton of a language, whose name is added to ``names``."""
    rules = load_language(language) if isinstance(language, str) else language
    names.append(language if isinstance(language, str) else language.digest[:8])
    moves = LinearMoves.of(rules)
    if moves is None:
        raise InputError(
            f"{names[-1]} is not right-linear, as the languages of a pool are: its next word depends on more than a"
            " state",
            code="missing-ability",
        )
    return moves
