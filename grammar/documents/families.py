"""Documents of languages that are given: the prior, and the pool that fits them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from truesource.grammar.documents.automata import Automata, LinearMoves
from truesource.grammar.documents.document import DocumentProcess, StringCount, WordPredictor
from truesource.grammar.documents.pool import predictor_of
from truesource.grammar.documents.truths import TruthsPool
from truesource.grammar.languages import is_process, load_language
from truesource.grammar.rules import GrammarRules
from truesource.grammar.support.errors import InputError
from truesource.grammar.truth import Truth, load_truth


def pool_of(
    languages: Sequence[str | Truth],
    *,
    count: StringCount,
    switch: float = 0.0,
    prior: Sequence[float] | None = None,
    name: str | None = None,
) -> DocumentProcess:
    """Documents of which each has one of some languages, that the reader does not know.

    Args:
        languages: K grammars or processes, or references of them.
        count: strings of a document.
        switch: P(the language is drawn again) before each string but the first.
        prior: (K,) P(language), divided by their sum; None: all alike.
        name: in signatures; None: of the digests of the languages.

    Raises:
        InputError: there is no language, no word that two of them have, not all strings of one end, or ``prior`` has
            other numbers than one for each language, 0 or more, and together more than 0.
    """
    if not languages:
        raise InputError("this pool has no language; name one or more")
    weight = np.ones(len(languages)) if prior is None else np.asarray(prior, dtype=np.float64)
    if weight.shape != (len(languages),) or not (weight >= 0.0).all() or not 0.0 < weight.sum() < np.inf:
        raise InputError(f"a prior has a number from 0 on for each of the {len(languages)} languages, not all 0")
    names = [each if isinstance(each, str) else each.identity for each in languages]
    automata = automata_of(languages)
    predictor: WordPredictor
    if automata is not None:
        predictor = predictor_of(names, automata, weight / weight.sum(), switch)
    else:
        truths = [load_truth(each) if isinstance(each, str) else each for each in languages]
        predictor = TruthsPool(names, truths, weight / weight.sum(), switch)
    if name is None:
        told = hashlib.sha256(repr([names, weight.tolist(), count, switch]).encode()).hexdigest()
        name = f"pool of {len(names)} languages {told[:8]}"
    return DocumentProcess(name, predictor, count)


def automata_of(languages: Sequence[str | Truth]) -> Automata | None:
    """The languages as automata; None where one is none, or is not right-linear."""
    found: list[LinearMoves] = []
    for language in languages:
        if isinstance(language, str):
            rules: object = None if is_process(language) else load_language(language)
        else:
            rules = language
        moves = LinearMoves.of(rules) if isinstance(rules, GrammarRules) else None
        if moves is None:
            return None
        found.append(moves)
    return Automata.join(found)
