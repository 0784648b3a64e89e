"""What is known of the language of documents, against sums over languages; and mixtures of predictors found again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from scipy.special import logsumexp

from truesource.evaluation.core.oracle import Oracle
from truesource.evaluation.in_context import strategy, what_is_known
from truesource.generator.language_model import LogDistributions
from truesource.generator.process_sampler import sampler_of
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.documents.document import SEPARATOR, DocumentProcess
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import random_state
from truesource.grammar.support.errors import InputError
from truesource.grammar.truth import load_truth, process

POOL = "pool:family=ngram/order=2/vocabulary=3/mean_length=3,languages=4,strings=3"
FAMILY = "dirichlet-markov:vocabulary=3,mean_length=3,strings=3"


def sample(truth: DocumentProcess, n: int, lengths: LengthRange | None = None) -> tuple[list[list[str]], np.ndarray]:
    sampler = sampler_of(truth, lengths)
    drawn = sampler.draw(n, random_state(5))
    assert drawn.language is not None
    return sampler.sentences(drawn), drawn.language


@pytest.mark.parametrize("lengths", [None, LengthRange(6, 14)])
def test_regret_and_entropy_are_those_of_bayes_rule(lengths: LengthRange | None) -> None:
    truth = load_truth(POOL)
    assert isinstance(truth, DocumentProcess) and truth.languages is not None
    documents, languages = sample(truth, 60, lengths)
    found = what_is_known(truth, documents, languages, lengths)
    members = [PCFG.load(name) for name in truth.languages]
    at = 0
    for document, language in zip(documents, languages, strict=True):
        strings = [text.split() for text in " ".join(document).split(SEPARATOR)]
        logs = np.array([[member.log_prob(s) for s in strings] for member in members])
        rows = slice(at, at + len(document) + 1)
        wanted = logs[language].sum() - logsumexp(logs.sum(axis=1)) + np.log(4)
        assert found.regret[rows].sum() == pytest.approx(wanted, abs=1e-10)
        assert found.string[rows].max() == 2 and found.position[rows].tolist() == list(range(len(document) + 1))
        begins = at + 1 + document.index(SEPARATOR)
        weight = np.exp(logs[:, 0] - logsumexp(logs[:, 0]))
        assert found.entropy[begins] == pytest.approx(-(weight * np.log(weight)).sum(), abs=1e-10)
        at = rows.stop
    assert found.by(found.position, found.entropy)[0] == pytest.approx(np.log(4), abs=1e-12)
    assert len(found.regret) == at
    assert 0.0 < found.regret.sum() / len(documents) < np.log(4)


def test_the_known_language_is_that_of_its_grammar() -> None:
    truth = load_truth(POOL)
    assert isinstance(truth, DocumentProcess) and truth.languages is not None
    document = ["w1", "w2", SEPARATOR, "w3", SEPARATOR, "w1"]
    wanted = sum(PCFG.load(truth.languages[2]).log_prob(s) for s in (["w1", "w2"], ["w3"], ["w1"]))
    assert truth.knowing(2).log_prob(document) == pytest.approx(wanted, abs=1e-10)
    with pytest.raises(InputError, match="has the languages 0 to 3, not 4"):
        truth.knowing(4)
    with pytest.raises(InputError, match="are infinitely many"):
        process(FAMILY).knowing(0)  # type: ignore[attr-defined]
    with pytest.raises(InputError, match="may change within these documents"):
        process(POOL, switch=0.1).knowing(0)  # type: ignore[attr-defined]
    with pytest.raises(InputError, match="there are 1 documents, but 2 languages"):
        what_is_known(truth, [document], [0, 1])


class Mixed:
    """Two exact predictors in one."""

    objective, name = "causal", "mixed"

    def __init__(self, parts: Sequence[Oracle], weights: Sequence[float]) -> None:
        self.parts, self.weights = parts, weights
        self.vocabulary = parts[0].vocabulary

    def log_probs(self, sentences: Sequence[Sequence[str]]) -> list[np.ndarray]:
        raise NotImplementedError

    def distributions(self, sentences: Sequence[Sequence[str]]) -> Iterator[LogDistributions]:
        with np.errstate(divide="ignore"):
            for blocks in zip(*(part.distributions(sentences) for part in self.parts), strict=True):
                mixture = sum(w * np.exp(b.log_prob) for w, b in zip(self.weights, blocks, strict=True))
                yield LogDistributions(blocks[0].position, np.log(mixture))


@pytest.mark.parametrize("weights", [(0.3, 0.7), (1.0, 0.0), (0.05, 0.95)])
def test_a_mixture_of_predictors_is_found_again(weights: tuple[float, float]) -> None:
    truths = {"pool": process(POOL), "family": process(FAMILY)}
    documents, _ = sample(truths["pool"], 50)  # type: ignore[arg-type]
    words = truths["pool"].terminals
    model = Mixed([Oracle(truth, "causal", vocabulary=words) for truth in truths.values()], weights)
    found = strategy(model, truths, documents)  # type: ignore[arg-type]
    assert found.weight["pool"] == pytest.approx(weights[0], abs=1e-4)
    assert sum(found.weight.values()) == pytest.approx(1.0, abs=1e-12)
    assert found.rest == pytest.approx(0.0, abs=1e-7)
    assert found.kl["family"] > 1e-4
    if weights[0] == 1.0:
        assert found.kl["pool"] == pytest.approx(0.0, abs=1e-10)


def test_strategies_that_cannot_be_are_one_sentence() -> None:
    pool = process(POOL)
    model = Oracle(pool, "causal", vocabulary=pool.terminals)
    documents, _ = sample(pool, 3)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"^give one predictor or more"):
        strategy(model, {}, documents)
    with pytest.raises(InputError, match="a document is impossible for other; give documents"):
        strategy(model, {"other": process(FAMILY, strings=5)}, documents)
