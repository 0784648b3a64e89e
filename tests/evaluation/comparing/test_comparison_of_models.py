"""Many models against one truth: rows, common sentences, differences, adjusted p-values, refusals."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
from toy_models import Table

from truesource.evaluation.comparing import ModelComparison, ModelScores, SeedScores, compare_models, grouped
from truesource.evaluation.core.comparison import compare_in
from truesource.evaluation.core.oracle import Oracle
from truesource.evaluation.core.setting import Setting
from truesource.evaluation.core.signature import parts_of
from truesource.evaluation.measures.contrast import difference
from truesource.evaluation.measures.monte_carlo import holm
from truesource.evaluation.measures.paired import NothingToCompareError
from truesource.generator.language_model import LanguageModel
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.errors import InputError

TOY = PCFG.from_text("S -> A S 0.3 | B S 0.2 | a 0.3 | b 0.2\nA -> a 1\nB -> b 1")  #: words are independent, and S ends
TEXT = [list(sentence) for sentence in ["a", "ba", "aab", "b", "ab", "aba", "bb", "abba", "aa", "bab", "a", "aaaa"]]
WORDS = ("a", "b")


@dataclass(frozen=True)
class Chain:
    """A unigram model of words and ends."""

    a: float
    b: float
    name: str = "chain"

    @property
    def table(self) -> Table:
        row = {"a": self.a, "b": self.b, "</s>": 1.0 - self.a - self.b}
        return Table(dict.fromkeys(("<s>", *WORDS), row), WORDS)


def scored(a: float, b: float, label: str = "chain", text: list[list[str]] = TEXT) -> SeedScores:
    return scores_of(Chain(a, b).table, label, text)


def scores_of(model: LanguageModel, label: str, text: list[list[str]] = TEXT) -> SeedScores:
    found = compare_in(model, Setting(TOY, text, seed=3))
    return SeedScores(label=label, paired=found.paired, parts=found.parts, resampling=3)


def of(name: str, *seeds: tuple[float, float]) -> ModelScores:
    return ModelScores(name=name, seeds=[scored(*seed, label=f"{name}-{i}") for i, seed in enumerate(seeds, 1)])


@pytest.fixture(scope="module")
def found() -> ModelComparison:
    models = [
        of("one", (0.4, 0.3)),
        of("three", (0.35, 0.25), (0.3, 0.3), (0.3, 0.2)),
        of("two", (0.2, 0.2), (0.2, 0.3)),
    ]
    return compare_models(models, seed=3)


def test_a_model_of_one_seed_has_the_numbers_and_signature_of_its_score(found: ModelComparison) -> None:
    alone = compare_in(Chain(0.4, 0.3).table, Setting(TOY, TEXT, seed=3))
    row = found.rows[0]
    assert row.measures == {name: alone.measures[name] for name in row.measures}
    assert list(row.measures) == ["ppl", "bound", "relative_ppl", "kl"]
    assert (row.deviations, row.by_seed) == ({}, [])
    scores = {score.name: score.as_record() for score in alone.as_scores()}
    assert row.parts == alone.parts
    records = [record for record in found.records() if record["model"] == "one"]
    assert len(records) == 4
    for record in records:
        assert {key: record[key] for key in scores["kl"]} == {**scores[record["name"]], "model": "one"}


def test_several_seeds_have_means_and_deviations(found: ModelComparison) -> None:
    row = found.rows[1]
    kl = [compare_in(Chain(*seed).table, Setting(TOY, TEXT)).measures["kl"].value for seed in
          ((0.35, 0.25), (0.3, 0.3), (0.3, 0.2))]  # fmt: skip
    assert [seed["kl"] for seed in row.by_seed] == pytest.approx(kl, abs=1e-12)
    assert row.measures["kl"].value == pytest.approx(np.mean(kl), abs=1e-12)
    assert row.deviations["kl"] == pytest.approx(np.std(kl, ddof=1), abs=1e-12)
    assert row.deviations["relative_ppl"] == pytest.approx(np.std(np.exp(kl), ddof=1), abs=1e-12)
    assert row.deviations["bound"] == pytest.approx(0.0, abs=1e-12)
    for name, interval in row.measures.items():
        assert interval.low is not None and interval.high is not None
        assert interval.low < interval.value < interval.high, name
    assert math.log(row.measures["relative_ppl"].value) == pytest.approx(row.measures["kl"].value, abs=1e-12)
    assert row.measures["ppl"].value == pytest.approx(
        row.measures["bound"].value * row.measures["relative_ppl"].value, rel=1e-12
    )
    assert (row.parts["seeds"], row.parts["sentences"]) == (3, len(TEXT))
    assert str(row.parts["ci"]).endswith("+seeds-satterthwaite")


def test_the_oracle_stands_beside_with_no_divergence(found: ModelComparison) -> None:
    assert found.oracle.measures["kl"] == (0.0, 0.0, 0.0)
    assert found.oracle.measures["relative_ppl"] == (1.0, 1.0, 1.0)
    assert found.oracle.measures["ppl"] == found.oracle.measures["bound"] == found.rows[0].measures["bound"]


def test_differences_are_adjusted_together(found: ModelComparison) -> None:
    assert [(d.model, d.baseline) for d in found.differences] == [("three", "one"), ("two", "one")]
    everywhere = np.ones(len(TEXT), dtype=bool)
    sums = [row.model.sums("kl", everywhere) for row in found.rows]
    for d, model in zip(found.differences, sums[1:], strict=True):
        assert d.contrast == difference(model, sums[0], seed=3)
        assert d.contrast.value == pytest.approx(model.values.mean() - sums[0].values.mean(), abs=1e-12)
    pairs = [*found.differences, *found.other_pairs]
    assert [(d.model, d.baseline) for d in found.other_pairs] == [("two", "three")]
    p = [d.contrast.p for d in pairs]
    assert None not in p
    assert [d.p_adjusted for d in pairs] == holm([value for value in p if value is not None])
    turned = found.pair("three", "two")
    assert (turned.contrast.value, turned.p_adjusted) == (-pairs[2].contrast.value, pairs[2].p_adjusted)
    assert (turned.model, turned.baseline, turned.parts["baseline"]) == ("three", "two", "two")
    assert [(d.parts["seeds"], d.parts["baseline"], d.parts["adjusted"]) for d in found.differences] == [
        ("3/1", "one", "holm/3"),
        ("2/1", "one", "holm/3"),
    ]


def test_another_baseline_turns_the_sign(found: ModelComparison) -> None:
    again = compare_models([row.model for row in found.rows], baseline="three", seed=3)
    assert (again.baseline, [d.model for d in again.differences]) == ("three", ["one", "two"])
    first, back = found.differences[0].contrast, again.differences[0].contrast
    assert first.low is not None and first.high is not None
    assert (back.value, back.low, back.high, back.p) == pytest.approx(
        (-first.value, -first.high, -first.low, first.p), abs=1e-12
    )


def test_the_oracle_as_a_model_differs_by_the_divergence() -> None:
    models = [ModelScores(name="truth", seeds=[scores_of(Oracle(TOY), "truth")]), of("one", (0.2, 0.3))]
    found = compare_models(models, seed=3)
    contrast, kl = found.differences[0].contrast, found.rows[1].measures["kl"]
    assert (contrast.value, contrast.low, contrast.high) == pytest.approx(tuple(kl), abs=1e-12)


def test_differences_are_taken_where_all_models_can_make_the_sentence() -> None:
    blind = [row for row in TEXT if "b" not in row]
    models = [of("one", (0.4, 0.3)), of("two", (0.3, 0.3)), of("blind", (0.7, 0.0))]
    found = compare_models(models)
    assert (found.sentences, found.n_sentences) == (len(blind), len(TEXT))
    assert found.differences[0].parts["sentences"] == len(blind)
    assert found.rows[0].parts["sentences"] == len(TEXT)  # a row is of all that the model can make
    same = compare_models([of_text("one", (0.4, 0.3), blind), of_text("two", (0.3, 0.3), blind)])
    assert found.differences[0].contrast.value == pytest.approx(same.differences[0].contrast.value, abs=1e-12)


def of_text(name: str, seed: tuple[float, float], text: list[list[str]]) -> ModelScores:
    return ModelScores(name=name, seeds=[scored(*seed, text=text)])


def test_models_that_share_no_sentence_do_not_compare() -> None:
    with pytest.raises(NothingToCompareError, match="possible for the oracle and all models") as refused:
        compare_models([of("a", (0.7, 0.0)), of("b", (0.0, 0.7))])
    assert refused.value.code == "no-common-sentence"


def test_names_and_texts_that_do_not_compare_are_refused() -> None:
    one, two = of("one", (0.4, 0.3)), of("two", (0.3, 0.3))
    for models, baseline, code in [
        ([one, two], "three", "unknown-baseline"),
        ([one, replace(two, name="one")], None, "repeated-name"),
        ([one, of_text("two", (0.3, 0.3), TEXT[:-1])], None, "different-texts"),
    ]:
        with pytest.raises(InputError) as refused:
            compare_models(models, baseline=baseline)
        assert refused.value.code == code


def test_models_of_one_text_form_a_group() -> None:
    one, two, other = of("one", (0.4, 0.3)), of("two", (0.3, 0.3)), of_text("one", (0.4, 0.3), TEXT[:-1])
    assert grouped([one, other, two]) == [[one, two], [other]]


def test_records_have_a_signature_each_and_all_seeds(found: ModelComparison) -> None:
    records = found.records()
    assert all(parts_of(record["signature"])["data"] == found.rows[0].parts["data"] for record in records)
    seeds = [r for r in records if "seed_of" in r and r["name"] == "kl"]
    assert [r["seed_of"] for r in seeds] == ["three-1", "three-2", "three-3", "two-1", "two-2"]
    means = {r["model"]: r for r in records if r["name"] == "kl" and "seeds" in r}
    assert means["three"]["value"] == pytest.approx(np.mean([r["value"] for r in seeds[:3]]), abs=1e-12)
    assert means["three"]["sd"] == pytest.approx(np.std([r["value"] for r in seeds[:3]], ddof=1), abs=1e-12)
    assert (means["one"]["sd"], means["one"]["seeds"]) == (None, 1)
    differences = [r for r in records if r["name"] == "kl_difference"]
    pairs = [("three", "one"), ("two", "one"), ("two", "three")]
    assert [(r["model"], r["baseline"]) for r in differences] == pairs
    assert all(r["p"] <= r["p_adjusted"] for r in differences)
