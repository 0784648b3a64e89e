"""Readers who are told the language: sums over languages by hand, and the posterior found again in first words."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logsumexp

from truesource.evaluation.core.oracle import Oracle
from truesource.evaluation.documents.informed_readers import expected_languages, told_divergence
from truesource.generator.process_sampler import sampler_of
from truesource.grammar.documents.document import SEPARATOR, DocumentProcess
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import random_state
from truesource.grammar.support.errors import InputError
from truesource.grammar.truth import load_truth

pytestmark = pytest.mark.long

AUTOMATA = "pool:family=ngram/order=2/vocabulary=4/mean_length=3,languages=3,strings=3"
ORDERS = "pool:family=" + "|".join(
    f"switches/switches={order}/nouns=3/verbs=2/adjectives=2/prepositions=2" for order in ("000000", "001001", "000110")
)


def read(reference: str, n: int) -> tuple[DocumentProcess, list[list[str]], np.ndarray, Oracle]:
    """A pool, documents with their languages, and its perfect reader."""
    truth = load_truth(reference)
    assert isinstance(truth, DocumentProcess)
    sampler = sampler_of(truth, None)
    drawn = sampler.draw(n, random_state(3))
    assert drawn.language is not None
    return truth, sampler.sentences(drawn), drawn.language, Oracle(truth, "causal", vocabulary=truth.vocabulary)


def test_what_a_language_costs_that_is_not_known_is_a_sum_by_hand() -> None:
    truth, documents, languages, reader = read(AUTOMATA, 12)
    found = told_divergence(reader, truth, documents, languages)
    members = [PCFG.load(name) for name in truth.languages or ()]
    at = 0
    for document, language in zip(documents, languages, strict=True):
        log_weight, prefix = np.zeros(len(members)), list[str]()
        for word in [*document, SEPARATOR]:
            after = [member.next_token(prefix) for member in members]
            laws = np.array([[*law.probability, law.stop] for law in after])
            mixed = np.exp(log_weight - logsumexp(log_weight)) @ laws
            told = laws[language]
            wanted = sum(p * np.log(p / q) for p, q in zip(told, mixed, strict=True) if p > 0.0)
            assert found[at] == pytest.approx(wanted, abs=1e-10)
            column = len(members[0].vocabulary) if word == SEPARATOR else members[0].vocabulary.index(word)
            log_weight = log_weight + np.log(laws[:, column])
            prefix = [] if word == SEPARATOR else [*prefix, word]
            at += 1
    assert len(found) == at and found.mean() > 0.01


def test_the_told_reader_pays_nothing() -> None:
    truth, documents, languages, _ = read(AUTOMATA, 40)
    own = [document for document, language in zip(documents, languages, strict=True) if language == 1]
    told = Oracle(truth.knowing(1), "causal", vocabulary=truth.vocabulary)
    assert told_divergence(told, truth, own, [1] * len(own)) == pytest.approx(0.0, abs=1e-12)
    assert told_divergence(told, truth, documents, languages).mean() > 0.1
    with pytest.raises(InputError, match="a document is impossible in the language"):
        pool, others, numbers, reader = read(ORDERS + ",strings=4", 20)
        told_divergence(reader, pool, others, (numbers + 1) % 3)


@pytest.mark.parametrize("reference", [AUTOMATA, ORDERS + ",strings=4"])
def test_the_posterior_is_found_again_in_what_the_perfect_reader_expects(reference: str) -> None:
    truth, documents, _, reader = read(reference, 20)
    found = expected_languages(reader, truth, documents)
    posterior = truth.posterior(documents)
    begins = [[i for i, word in enumerate([SEPARATOR, *document]) if word == SEPARATOR] for document in documents]
    wanted = np.concatenate([posterior[i][at] for i, at in enumerate(begins)])
    assert found.weight == pytest.approx(wanted, abs=1e-9)
    assert found.document.tolist() == [i for i, at in enumerate(begins) for _ in at]
    assert found.string.tolist() == [s for at in begins for s in range(len(at))]


def test_languages_that_begin_alike_are_refused() -> None:
    truth, documents, _, reader = read("pool:family=ngram/order=2/vocabulary=2,languages=3,strings=2", 4)
    with pytest.raises(InputError, match="first words do not distinguish these languages"):
        expected_languages(reader, truth, documents)
    family = load_truth("dirichlet-markov:vocabulary=4,mean_length=3,strings=3")
    with pytest.raises(InputError, match="have infinitely many"):
        expected_languages(reader, family, documents)  # type: ignore[arg-type]
