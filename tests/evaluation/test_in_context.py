"""What is known of the language of documents, against sums over languages; and mixtures of predictors found again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from scipy.special import logsumexp

from truesource.evaluation.core.oracle import Oracle
from truesource.evaluation.core.setting import Setting
from truesource.evaluation.core.text import Text
from truesource.evaluation.documents.measure import TRUTH, DocumentReading, documents_read, strategy, what_is_known
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


@pytest.mark.long
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


@pytest.mark.long
def test_the_known_language_is_that_of_its_grammar() -> None:
    truth = load_truth(POOL)
    assert isinstance(truth, DocumentProcess) and truth.languages is not None
    document = ["w1", "w2", SEPARATOR, "w3", SEPARATOR, "w1"]
    wanted = sum(PCFG.load(truth.languages[2]).log_prob(s) for s in (["w1", "w2"], ["w3"], ["w1"]))
    assert truth.knowing(2).log_prob(document) == pytest.approx(wanted, abs=1e-10)
    with pytest.raises(InputError, match="has languages 0 to 3; got 4"):
        truth.knowing(4)
    with pytest.raises(InputError, match="have infinitely many"):
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


@pytest.mark.long
@pytest.mark.parametrize("weights", [(0.3, 0.7), (1.0, 0.0), (0.05, 0.95)])
def test_a_mixture_of_predictors_is_found_again(weights: tuple[float, float]) -> None:
    truths = {"pool": process(POOL), "family": process(FAMILY)}
    documents, _ = sample(truths["pool"], 50)  # type: ignore[arg-type]
    words = truths["pool"].vocabulary
    model = Mixed([Oracle(truth, "causal", vocabulary=words) for truth in truths.values()], weights)
    found = strategy(model, truths, documents)  # type: ignore[arg-type]
    assert found.weight["pool"] == pytest.approx(weights[0], abs=1e-8)
    three = strategy(model, {**truths, "same": truths["family"]}, documents)  # type: ignore[arg-type]
    assert three.weight["pool"] == pytest.approx(weights[0], abs=1e-8) and [*three.interval] == [*three.weight]
    assert three.interval["pool"] == pytest.approx(found.interval["pool"], abs=1e-3)
    assert sum(found.weight.values()) == pytest.approx(1.0, abs=1e-12)
    assert found.rest == pytest.approx(0.0, abs=1e-7)
    assert found.kl["family"] > 1e-4
    for name, weight in found.weight.items():
        low, high = found.interval[name]
        assert low - 1e-3 <= weight <= high + 1e-3 and high - low < 0.01  # every document has the same mixture
    if weights[0] == 1.0:
        assert found.kl["pool"] == pytest.approx(0.0, abs=1e-10)


@pytest.mark.long
def test_strategies_that_cannot_be_are_one_sentence() -> None:
    pool = process(POOL)
    model = Oracle(pool, "causal", vocabulary=pool.vocabulary)
    documents, _ = sample(pool, 3)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"^give one predictor or more"):
        strategy(model, {}, documents)
    other = process(FAMILY, strings=5)
    with pytest.raises(InputError, match="other cannot make 3 of 3 documents; give it the words and the number of"):
        strategy(model, {"pool": pool, "other": other}, documents)
    with pytest.raises(InputError, match="can make none of the 3"):
        strategy(model, {"other": other}, documents)
    with pytest.raises(InputError, match=r"^1 documents are impossible for pool; give possible ones"):
        strategy(model, {"pool": pool}, [*documents, ["w1"]])
    with pytest.raises(InputError, match=r"^a mixture has at most 8 predictors, not 9; leave some out"):
        strategy(model, {str(i): pool for i in range(9)}, documents)


@pytest.fixture(scope="module")
def setting(tmp_path_factory: pytest.TempPathFactory) -> Setting:
    """Documents of a corpus folder, with their languages."""
    folder = tmp_path_factory.mktemp("documents") / "corpus"
    corpus = Corpus.sample(load_truth(POOL), {"train": 20, "eval": 60}, seed=4, path=folder)
    return Setting.of(Text.of(corpus, "eval"), load_truth(POOL))


def read(setting: Setting, model: str, family: str | None = FAMILY) -> DocumentReading:
    """What is measured of an exact predictor."""
    truth = load_truth(model)
    return documents_read(
        Oracle(truth, "causal", vocabulary=truth.vocabulary),
        setting,
        families={} if family is None else {"family": load_truth(family)},
    )


@pytest.mark.long
def test_the_truth_as_model_is_the_truth(setting: Setting) -> None:
    found = read(setting, POOL)
    every = [found.scores, *(scores for groups in found.tables.values() for scores in groups.values())]
    for scores in (readers[TRUTH] for readers in every):
        assert scores["kl"].value == pytest.approx(0.0, abs=1e-10)
        assert scores["kl_paired"].value == pytest.approx(0.0, abs=1e-10)
    own, family = found.scores[TRUTH], found.scores["family"]
    assert family["kl_family"].value > 0.01 and family["family_above"].value > 0.01
    weight = own["weight_truth"]
    assert weight.value == pytest.approx(1.0, abs=1e-10) and weight.low == pytest.approx(1.0, abs=1e-6)
    assert own["rest"].value == pytest.approx(0.0, abs=1e-7)


@pytest.mark.long
def test_the_family_as_model_is_the_family(setting: Setting) -> None:
    found = read(setting, FAMILY)
    own, family = found.scores[TRUTH], found.scores["family"]
    assert family["kl_family"].value == pytest.approx(0.0, abs=1e-10)
    weight = family["weight_family"]
    assert weight.value == pytest.approx(1.0, abs=1e-10) and weight.low == pytest.approx(1.0, abs=1e-6)
    assert own["weight_truth"].high == pytest.approx(0.0, abs=1e-6)
    assert own["kl_paired"].value == pytest.approx(family["family_above"].value, abs=1e-12)


@pytest.mark.long
def test_a_model_runs_once_whatever_is_measured(setting: Setting) -> None:
    class Counted(Oracle):
        seen = 0
        unchecked = True  # the check asks for other sentences, too

        def distributions(self, sentences: Sequence[Sequence[str]]) -> Iterator[LogDistributions]:
            self.seen += len(sentences)
            return super().distributions(sentences)

    truth = load_truth(FAMILY)
    model = Counted(truth, "causal", vocabulary=truth.vocabulary)
    families = {"family": truth, "unigram": load_truth(f"{FAMILY},order=0")}
    documents_read(model, setting, families=families)
    assert model.seen == len({tuple(document) for document in setting.sentences})
    model.seen = 0
    found = documents_read(model, setting, families=families, along=[(3, model), (7, model)])
    assert model.seen == 3 * len({tuple(document) for document in setting.sentences})
    assert [*found.tables["step"]] == ["3", "7"]
    assert found.tables["step"]["7"]["unigram"]["kl_family"].value == found.scores["unigram"]["kl_family"].value


def test_a_great_concentration_is_the_uniform_strategy() -> None:
    truth = load_truth(f"{FAMILY},order=0,concentration=1e12")
    found = truth.next_token(["w1", "w1", "w2"])
    assert found.probability[:3] == pytest.approx(np.full(3, (1.0 - 1.0 / 3.0) / 3.0), abs=1e-11)


@pytest.mark.long
def test_entropy_and_regret_by_string_and_position_are_those_of_what_is_known(setting: Setting) -> None:
    found, text = read(setting, FAMILY, None), setting.text
    assert text is not None and text.corpus is not None and isinstance(setting.language, DocumentProcess)
    assert [*found.scores] == [TRUTH] and "weight_truth" not in found.scores[TRUTH]
    known = what_is_known(setting.language, setting.sentences, text.corpus.languages("eval"))
    for name, values in (("entropy", known.entropy), ("regret", known.regret)):
        score = found.scores[TRUTH][name]
        assert score.value == pytest.approx(values.mean(), abs=1e-12)
        assert score.low is not None and score.high is not None and score.low < score.value < score.high
        means = known.by(known.string, values)
        rows = found.tables["string"]
        assert [*rows] == ["1", "2", "3"]
        assert [row[TRUTH][name].value for row in rows.values()] == pytest.approx(means.tolist(), abs=1e-12)
        for group, row in found.tables["position"].items():
            low, high = (int(end) for end in (group.split("-") * 2)[:2])
            inside = (known.position >= low) & (known.position <= high)
            assert row[TRUTH][name].value == pytest.approx(values[inside].mean(), abs=1e-12)
    assert [*found.tables["position"]][:4] == ["0", "1", "2-3", "4-7"]
    assert found.tables["position"]["0"][TRUTH]["entropy"].value == pytest.approx(np.log(4), abs=1e-12)
    assert {r["name"] for r in found.records() if "group:2-3|" in r["signature"]} == {
        *("kl", "kl_infinite", "kl_paired", "kl_paired_infinite", "entropy", "regret")
    }


@pytest.mark.long
def test_kl_by_position_is_the_sum_over_words(setting: Setting) -> None:
    """Before the second word of a document, against the law of both sides."""
    found, pool, family = read(setting, FAMILY), load_truth(POOL), load_truth(FAMILY)
    kl = []
    for document in setting.sentences:
        p, q = (truth.next_token(document[:1]) for truth in (pool, family))
        sides = [np.append(side.probability, side.stop) for side in (p, q)]
        kl.append(sum(a * np.log(a / b) for a, b in zip(*sides, strict=True) if a > 0.0))
    score = found.tables["position"]["1"][TRUTH]["kl"]
    assert score.value == pytest.approx(np.mean(kl), abs=1e-10)


@pytest.mark.long
def test_what_is_not_known_is_left_out(setting: Setting) -> None:
    loose = Setting(setting.language, setting.sentences)  # nobody says which language
    found = read(loose, FAMILY, None)
    assert "entropy" in found.scores[TRUTH] and "regret" not in found.scores[TRUTH] and not found.informed
    of_family = read(Setting(load_truth(FAMILY), setting.sentences, text=setting.text), FAMILY, None)
    own = of_family.scores[TRUTH]
    assert not {"entropy", "regret"} & own.keys() and own["kl"].value < 1e-10


@pytest.mark.long
def test_readings_that_cannot_be_are_one_sentence(setting: Setting) -> None:
    dyck = PCFG.load("dyck:k=1")
    model = Oracle(dyck, "causal", vocabulary=dyck.vocabulary)
    with pytest.raises(InputError, match=r"^evaluate documents needs a truth of documents, which dyck:") as refused:
        documents_read(model, Setting(dyck, [["(1", ")1"]]))
    assert refused.value.code == "missing-ability"
    with pytest.raises(InputError, match=r"family cannot make 60 of 60 documents; give it the words and"):
        read(setting, POOL, f"{FAMILY.removesuffix(',strings=3')},strings=5")
    with pytest.raises(InputError, match=r"is the truth itself; leave the family out$"):
        read(setting, POOL, POOL)

    class Masked:
        objective, name, vocabulary = "masked", "mask", ("w1",)

    with pytest.raises(NothingToMeasureError, match="only a causal model learns"):
        documents_read(Masked(), setting)  # type: ignore[arg-type]
