"""What rows measure beside the evaluators, on runs of toy size, beside other ways to the same numbers."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from itertools import chain, product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from truesource.evaluation.core.setting import Setting
from truesource.evaluation.divergence.contexts import measure_contexts
from truesource.evaluation.dynamics.oracle_monitor import OracleMonitor
from truesource.evaluation.evaluators import EVALUATORS
from truesource.generator.corpus import Corpus
from truesource.generator.plan import parse_transform
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.pcfg import PCFG
from truesource.grammar.tilting.rewards import event_of
from truesource.grammar.tilting.tilt import Tilting
from truesource.grammar.truth import load_truth, process
from truesource.lmtrain.models import load_model
from truesource.lmtrain.training_record import FILE, weights_digest
from truesource.lmtrain.truth import endless
from truesource.run.config import RunConfig, checked_config
from truesource.run.experiment import execute
from truesource.studies.reproduce.run_records import RunRecord
from truesource.studies.reproduce.studies import STUDIES
from truesource.studies.reproduce.studies.first_phase import _texts
from truesource.studies.reproduce.studies.orders import conditional_entropy, pair_counts

pytestmark = pytest.mark.long

FAMILY = "dirichlet-markov:vocabulary=3,mean_length=3,strings=3,concentration=1"
POOL = "pool:family=ngram/order=2/vocabulary=3/mean_length=3/concentration=1,languages=3,strings=3"
NETWORK = {
    "name": "net",
    "model": {"architecture": "lstm", "layers": 1, "dim": 8},
    "training": {"max_steps": 4, "batch_tokens": 64, "eval_every": 4},
}
Study = Callable[[str], tuple[Path, RunConfig, list[RunRecord]]]


@pytest.fixture
def studied(tmp_path: Path, quick_report: None, one_thread: None) -> Study:
    """Run a pool with a network of two seeds, and study it."""

    def made(study: str) -> tuple[Path, RunConfig, list[RunRecord]]:
        values: dict[str, Any] = {
            "name": "toy",
            "seeds": [3, 4],
            "grammar": {"language": POOL},
            "corpus": {"lengths": "6..20", "splits": {"train": 80, "dev": 10, "eval": 20}, "trees": "none"},
            "models": [NETWORK],
            "evaluation": {"documents": {"sentences": 20, "family": FAMILY}},
        }
        config = checked_config(values, "toy.yaml", EVALUATORS)
        folder = execute(config, base=tmp_path, runs=tmp_path / "runs").parent
        return folder, config, STUDIES[study](folder, config)

    return made


TOY = "S -> S S 0.2 | A 0.3 | 'b' 0.5\nA -> 'a' A 0.4 | 'c' 0.5 | 'd' 0.08 | 'e' 0.02\n"


@pytest.fixture
def counted(tmp_path: Path, quick_report: None, one_thread: None) -> Callable[[dict[str, Any]], list[RunRecord]]:
    """Run a toy grammar, tilted or not, with a network, and study how well constructions are known."""

    def made(grammar: dict[str, Any]) -> list[RunRecord]:
        (tmp_path / "g.txt").write_text(TOY, encoding="utf-8")
        values: dict[str, Any] = {
            "name": "toy",
            "grammar": {"method": "file", "file": "g.txt", **grammar},
            "corpus": {"lengths": "2..8", "splits": {"train": 400, "dev": 20, "eval": 20}},
            "models": [NETWORK],
            "evaluation": {"sentences": 40},
        }
        values["corpus"]["stratified"] = bool(grammar)
        config = checked_config(values, "toy.yaml", EVALUATORS)
        folder = execute(config, base=tmp_path, runs=tmp_path / "runs").parent
        return STUDIES["construction-frequency"](folder, config)

    return made


def test_a_construction_has_the_frequency_of_the_configuration_and_kl_by_its_place(
    counted: Callable[[dict[str, Any]], list[RunRecord]], tmp_path: Path
) -> None:
    found = counted({"tilt": {"event": "c=1", "probability": 0.05}})
    assert [each.fields["name"] for each in found] == ["kl_at", "kl_within", "kl_elsewhere"]
    assert all(each.fields["per_100000"] == pytest.approx(5000.0) for each in found)
    folder = tmp_path / "runs" / "toy"
    assert sum(words.count("c") == 1 for words in Corpus.load(folder / "corpus").sentences("train")) == 20
    truth, model = PCFG.load(folder / "grammar" / "grammar.npz"), load_model(folder / "models" / "net")
    lengths = LengthRange(2, 8)
    given = Tilting(truth, event_of("c=1")).given().pcfg
    words_and_end = [*map(list(model.vocabulary).index, truth.vocabulary), len(model.vocabulary) + 1]  # type: ignore
    wanted: dict[str, list[float]] = {"kl_at": [], "kl_within": []}
    for words in next(endless(given, batch=40, seed=1, lengths=lengths)):
        expected = list(model.distributions([words]))  # type: ignore[attr-defined]
        for place in range(words.index("c"), len(words) + 1):
            exact = truth.next_token(words[:place], lengths)
            p = np.array([*exact.probability, exact.stop])
            log_q = expected[place].log_prob[0, words_and_end]
            kl = float(np.sum(np.where(p > 0.0, p * (np.log(np.where(p > 0.0, p, 1.0)) - log_q), 0.0)))
            wanted["kl_at" if place == words.index("c") else "kl_within"].append(kl)
    for name, values in wanted.items():
        assert value(found, None, name=name) == pytest.approx(np.mean(values), abs=1e-6)


def test_words_of_a_natural_corpus_are_correlated_with_their_frequency(
    counted: Callable[[dict[str, Any]], list[RunRecord]],
) -> None:
    found = counted({})
    within = [each.fields for each in found if each.fields["name"] == "kl_within"]
    assert [each["event"] for each in within] == ["e>=1", "d>=1"], "the others are in more than 16,384 of 100,000"
    assert 0 < within[0]["per_100000"] < within[1]["per_100000"] < 16_384
    line = np.polyfit(np.log([e["per_100000"] for e in within]), np.log([e["value"] for e in within]), 1)
    assert value(found, None, name="slope") == pytest.approx(line[0], abs=1e-10)
    assert value(found, None, name="kl_correlated", times=64) == pytest.approx(np.exp(np.polyval(line, np.log(64.0))))


def test_networks_that_learn_another_language_first(
    tmp_path: Path, quick_report: None, one_thread: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "g.txt").write_text(TOY, encoding="utf-8")
    values: dict[str, Any] = {
        "name": "toy",
        "seeds": [3, 4],
        "grammar": {"method": "file", "file": "g.txt"},
        "corpus": {"lengths": "2..8", "splits": {"train": 100, "dev": 10, "eval": 20}},
        "models": [NETWORK],
        "evaluation": {"sentences": 20},
    }
    config = checked_config(values, "toy.yaml", EVALUATORS)
    folder = execute(config, base=tmp_path, runs=tmp_path / "runs").parent
    found = STUDIES["first-languages"](folder, config)
    firsts = ["none", "shuffle-dyck", "words", "dyck", "language"]
    assert [(each.seed, each.fields["first"]) for each in found] == [(seed, name) for seed in (3, 4) for name in firsts]
    for seed in (3, 4):
        monitor = OracleMonitor.on_corpus(
            PCFG.load(folder / "grammar" / "grammar.npz"), Corpus.load(folder / "corpus"), split="eval", sentences=20
        )
        wanted = monitor(load_model(folder / "models" / f"net-seed{seed}"))["kl"]
        assert value(found, seed, name="kl", first="none") == pytest.approx(wanted, abs=1e-12)
    made = {place.name.rpartition("-")[0]: place for place in (folder / "first" / "net-seed3").iterdir()}
    assert set(made) == {name + end for name in firsts[1:] for end in ("", "-first")}
    for name in firsts[1:]:
        records = [json.loads((made[name + end] / FILE).read_text("utf-8")) for end in ("-first", "")]
        assert [record["steps"] for record in records] == [2, 4]
        assert records[1]["weights_digest"] == weights_digest(made[f"{name}-first"])
        assert records[1]["corpus_digest"] == Corpus.load(folder / "corpus").digest
    monkeypatch.setattr("truesource.studies.reproduce.studies.first_phase.train", None)
    assert [each.fields for each in STUDIES["first-languages"](folder, config)] == [each.fields for each in found]


def test_first_texts_have_the_same_words_as_often_in_sentences_of_the_same_lengths() -> None:
    truth = load_truth("anbn")
    config = checked_config({"name": "toy", "grammar": {"language": "anbn"}}, "toy.yaml", EVALUATORS)
    texts = dict(_texts(truth, config, 5000))
    assert list(texts) == ["shuffle-dyck", "words", "dyck", "language"]
    for text in texts.values():
        sizes = [len(sentence) + 1 for sentence in text]
        assert sum(sizes[:-1]) < 5000 <= sum(sizes)
    brackets, words = texts["shuffle-dyck"], texts["words"]
    assert [*map(len, brackets)] == [*map(len, words)] and brackets != words
    assert Counter(chain(*brackets)) == Counter(chain(*words))
    assert {*chain(*brackets)} == {*chain(*texts["dyck"])}
    opened = [Counter(word.strip("()") for word in sentence) for sentence in brackets]
    assert all(number % 2 == 0 for counts in opened for number in counts.values())


def value(found: list[RunRecord], seed: int | None, **fields: Any) -> float:
    """The number of the one record of a seed with these fields, and of no group."""
    (record,) = (
        each for each in found if each.seed == seed and all(each.fields.get(k) == v for k, v in fields.items())
    )
    return float(record.fields["value"])


def test_documents_of_new_languages_have_the_family_as_their_truth(studied: Study) -> None:
    folder, config, found = studied("fresh-documents")
    documents = next(endless(process(FAMILY), batch=20, seed=config.seed, lengths=config.corpus.lengths))
    for seed in (3, 4):
        model = load_model(folder / "models" / f"net-seed{seed}")
        oracle = Setting(process(FAMILY), documents, config.corpus.lengths).full_oracle(model)  # type: ignore[arg-type]
        wanted = measure_contexts(model, oracle, documents, top=1).column("kl").mean()  # type: ignore[arg-type]
        assert value(found, seed, name="kl", model="net", on="fresh", by=None) == pytest.approx(wanted, abs=1e-10)
        pool = {"model": "net", "on": "fresh", "by": "reader", "group": "pool"}
        assert value(found, seed, name="kl_family", **pool) > 0.0 < value(found, seed, name="family_above", **pool)


def test_the_perfect_reader_begins_without_knowing_and_models_pay_more(studied: Study) -> None:
    _, _, found = studied("sentences-until-known")
    assert value(found, None, model="reader", name="weight_own", sentence=1) == pytest.approx(1 / 3, abs=1e-9)
    for seed in (3, 4):
        for sentence in (1, 2, 3):
            told = {"name": "kl_told", "sentence": sentence}
            above = value(found, seed, model="net", **told) - value(found, None, model="reader", **told)
            assert value(found, seed, model="net", name="kl_above", sentence=sentence) == pytest.approx(above)
            assert above > 0.0


@pytest.mark.parametrize("transform", [None, "reversal", "length-shuffle:seed=3", "block-shuffle:size=2"])
def test_pairs_of_words_in_another_order_are_counted_as_by_enumeration(transform: str | None) -> None:
    pcfg, lengths = PCFG.from_text(TOY), LengthRange(2, 5)
    order = None if transform is None else parse_transform(transform)
    sentences = {
        s: float(np.exp(pcfg.exact.string_log_probs([s])[0]))
        for n in range(2, 6)
        for s in product(pcfg.vocabulary, repeat=n)
    }
    total = sum(sentences.values())
    size, place = len(pcfg.vocabulary), pcfg.word_ids
    expected = np.zeros((size + 1, size + 1))
    for sentence, probability in sentences.items():
        numbers = [place[word] for word in (sentence if order is None else order.apply(sentence))]
        for before, after in zip([size, *numbers], [*numbers, size], strict=True):
            expected[before, after] += probability / total
    counts = pair_counts(pcfg, lengths, order)
    assert counts == pytest.approx(expected, abs=1e-12)
    loss = -sum(c * np.log(c / row.sum()) for row in expected for c in row if c) / expected.sum()
    assert conditional_entropy(counts) == pytest.approx(loss, abs=1e-12)


@pytest.mark.parametrize("drawn", [[["b"], ["b", "c"], ["b"], ["x"], []], [[], ["x"]]])
def test_generated_strings_are_right_where_the_grammar_makes_them(
    drawn: list[list[str]], tmp_path: Path, quick_report: None, one_thread: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "g.txt").write_text(TOY, encoding="utf-8")
    values: dict[str, Any] = {
        "name": "toy",
        "grammar": {"method": "file", "file": "g.txt"},
        "corpus": {"lengths": "1..8", "splits": {"train": 40, "dev": 5, "eval": 5}},
        "models": [NETWORK],
        "evaluation": {"sentences": len(drawn)},
    }
    config = checked_config(values, "toy.yaml", EVALUATORS)
    folder = execute(config, base=tmp_path, runs=tmp_path / "runs").parent
    monkeypatch.setattr(
        "truesource.studies.reproduce.studies.samples.draw", lambda *given, **named: SimpleNamespace(sentences=drawn)
    )
    found = {each.fields["name"]: each.fields["value"] for each in STUDIES["generated-strings"](folder, config)}
    assert found == ({"accuracy": 3 / 5, "distinct": 2 / 3} if len(drawn) == 5 else {"accuracy": 0.0})
