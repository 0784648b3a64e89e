"""What is known of the language of documents, against sums over languages; and mixtures of predictors found again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp

from truesource.evaluation.core.oracle import Oracle
from truesource.evaluation.core.setting import Setting
from truesource.evaluation.in_context import (
    GRID,
    DocumentReading,
    _crossings,
    _slopes,
    documents_read,
    strategy,
    what_is_known,
)
from truesource.evaluation.measures.bootstrap import resampled_times
from truesource.generator.corpus import Corpus
from truesource.generator.language_model import LogDistributions
from truesource.generator.process_sampler import sampler_of
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.documents.document import SEPARATOR, DocumentProcess
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import random_state
from truesource.grammar.support.errors import InputError, NothingToMeasureError
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
    assert found.weight["pool"] == pytest.approx(weights[0], abs=1e-8)
    three = strategy(model, {**truths, "same": truths["family"]}, documents)  # type: ignore[arg-type]
    assert three.weight["pool"] == pytest.approx(weights[0], abs=1e-4) and not three.interval
    assert sum(found.weight.values()) == pytest.approx(1.0, abs=1e-12)
    assert found.rest == pytest.approx(0.0, abs=1e-7)
    assert found.kl["family"] > 1e-4
    for name, weight in found.weight.items():
        low, high = found.interval[name]
        assert low - 1e-3 <= weight <= high + 1e-3 and high - low < 0.01  # every document has the same mixture
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


def test_weights_of_resampled_documents_are_those_of_a_search() -> None:
    """Of two predictors with events that only one allows, and documents that differ in what they are nearest to."""
    random = np.random.default_rng(2)
    exact, q = random.dirichlet(np.full(5, 0.5), (2, 60)), random.dirichlet(np.full(5, 0.8), 60)
    exact[0, ::7, 0] = exact[1, 1::7, 1] = 0.0
    exact /= exact.sum(axis=2, keepdims=True)
    starts = np.array([0, 4, 9, 20, 23, 31, 40, 44, 52, 57])
    times = np.concatenate([np.eye(10)[:3], next(iter(resampled_times(10, seed=3, replicates=20)))])
    found = _crossings(times @ _slopes(exact, q, starts))
    of_position = np.repeat(np.arange(10), np.diff([*starts, 60]))

    for each, weight in zip(times, found, strict=True):

        def loss(w: float, each: np.ndarray = each) -> float:
            return -float((each[of_position, None] * q * np.log(w * exact[0] + (1.0 - w) * exact[1])).sum())

        wanted = minimize_scalar(loss, bounds=(0.0, 1.0), method="bounded", options={"xatol": 1e-9}).x
        assert weight == pytest.approx(wanted, abs=2e-4)
    assert np.ptp(found) > 0.1
    assert _crossings(np.array([np.full(len(GRID), -1.0), np.full(len(GRID), 1.0)])).tolist() == [0.0, 1.0]


@pytest.fixture(scope="module")
def setting(tmp_path_factory: pytest.TempPathFactory) -> Setting:
    """Documents of a corpus folder, with their languages."""
    folder = tmp_path_factory.mktemp("documents") / "corpus"
    corpus = Corpus.sample(load_truth(POOL), {"train": 20, "eval": 60}, seed=4, path=folder)
    return Setting(load_truth(POOL), corpus.sentences("eval"), source=(folder, "eval"))


def read(setting: Setting, model: str, family: str | None = FAMILY) -> DocumentReading:
    """What is measured of an exact predictor."""
    truth = load_truth(model)
    return documents_read(
        Oracle(truth, "causal", vocabulary=truth.terminals),
        setting,
        family=None if family is None else load_truth(family),
    )


def test_the_truth_as_model_is_the_truth(setting: Setting) -> None:
    found = read(setting, POOL)
    every = [found.scores, *(scores for groups in found.tables.values() for scores in groups.values())]
    for scores in every:
        assert scores["kl"].value == pytest.approx(0.0, abs=1e-10)
        assert scores["kl_paired"].value == pytest.approx(0.0, abs=1e-10)
    assert found.scores["kl_family"].value > 0.01 and found.scores["family_above"].value > 0.01
    weight = found.scores["weight_truth"]
    assert weight.value == pytest.approx(1.0, abs=1e-10) and weight.low == pytest.approx(1.0, abs=1e-6)
    assert found.scores["rest"].value == pytest.approx(0.0, abs=1e-7)


def test_the_family_as_model_is_the_family(setting: Setting) -> None:
    found = read(setting, FAMILY)
    assert found.scores["kl_family"].value == pytest.approx(0.0, abs=1e-10)
    weight = found.scores["weight_family"]
    assert weight.value == pytest.approx(1.0, abs=1e-10) and weight.low == pytest.approx(1.0, abs=1e-6)
    assert found.scores["weight_truth"].high == pytest.approx(0.0, abs=1e-6)
    assert found.scores["kl_paired"].value == pytest.approx(found.scores["family_above"].value, abs=1e-12)


def test_entropy_and_regret_by_string_and_position_are_those_of_what_is_known(setting: Setting) -> None:
    found, folder = read(setting, FAMILY, None), setting.source
    assert folder is not None and isinstance(setting.language, DocumentProcess)
    assert not {"kl_family", "weight_truth"} & found.scores.keys()
    known = what_is_known(setting.language, setting.sentences, Corpus.load(folder[0]).languages("eval"))
    for name, values in (("entropy", known.entropy), ("regret", known.regret)):
        score = found.scores[name]
        assert score.value == pytest.approx(values.mean(), abs=1e-12)
        assert score.low is not None and score.high is not None and score.low < score.value < score.high
        means = known.by(known.string, values)
        rows = found.tables["string"]
        assert [*rows] == ["1", "2", "3"]
        assert [row[name].value for row in rows.values()] == pytest.approx(means.tolist(), abs=1e-12)
        for group, row in found.tables["position"].items():
            low, high = (int(end) for end in (group.split("-") * 2)[:2])
            inside = (known.position >= low) & (known.position <= high)
            assert row[name].value == pytest.approx(values[inside].mean(), abs=1e-12)
    assert [*found.tables["position"]][:4] == ["0", "1", "2-3", "4-7"]
    assert found.tables["position"]["0"]["entropy"].value == pytest.approx(np.log(4), abs=1e-12)
    assert {r["name"] for r in found.records() if "group:2-3|" in r["signature"]} == {
        *("kl", "kl_infinite", "kl_paired", "kl_paired_infinite", "entropy", "regret")
    }


def test_kl_by_position_is_the_sum_over_words(setting: Setting) -> None:
    """Before the second word of a document, against the law of both sides."""
    found, pool, family = read(setting, FAMILY), load_truth(POOL), load_truth(FAMILY)
    kl = []
    for document in setting.sentences:
        p, q = (truth.next_token(document[:1]) for truth in (pool, family))
        sides = [np.append(side.probability, side.stop) for side in (p, q)]
        kl.append(sum(a * np.log(a / b) for a, b in zip(*sides, strict=True) if a > 0.0))
    score = found.tables["position"]["1"]["kl"]
    assert score.value == pytest.approx(np.mean(kl), abs=1e-10)


def test_what_is_not_known_is_left_out(setting: Setting) -> None:
    loose = Setting(setting.language, setting.sentences)  # nobody says which language
    found = read(loose, FAMILY, None)
    assert "entropy" in found.scores and "regret" not in found.scores and not found.told
    of_family = read(Setting(load_truth(FAMILY), setting.sentences, source=setting.source), FAMILY, None)
    assert not {"entropy", "regret"} & of_family.scores.keys() and of_family.scores["kl"].value < 1e-10


def test_readings_that_cannot_be_are_one_sentence(setting: Setting) -> None:
    dyck = PCFG.load("dyck:k=1")
    model = Oracle(dyck, "causal", vocabulary=dyck.terminals)
    with pytest.raises(InputError, match=r"^evaluate documents needs a truth of documents, which dyck:") as refused:
        documents_read(model, Setting(dyck, [["(1", ")1"]]))
    assert refused.value.code == "missing-ability"
    with pytest.raises(InputError, match=r"cannot make 60 of 60 documents; give it the words and"):
        read(setting, POOL, f"{FAMILY.removesuffix(',strings=3')},strings=5")
    with pytest.raises(InputError, match=r"is the truth itself; leave the family out$"):
        read(setting, POOL, POOL)

    class Masked:
        objective, name, vocabulary = "masked", "mask", ("w1",)

    with pytest.raises(NothingToMeasureError, match="only a causal model learns"):
        documents_read(Masked(), setting)  # type: ignore[arg-type]
