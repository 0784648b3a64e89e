"""What a model has memorised, against known answers: ratios, AUROC, intervals, repetitions, and the truth as model."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from random_grammars import length_ranges, small_pcfgs
from reference_inference import all_strings, rules_of
from scipy.stats import mannwhitneyu

from truesource.evaluation.core.oracle import Oracle
from truesource.evaluation.core.setting import Setting
from truesource.evaluation.core.text import Text
from truesource.evaluation.memory.measure import MEASURES, auroc, group_name, memory, repeated, two_samples
from truesource.generator.corpus import Corpus
from truesource.generator.language_model import ScoringFrame, TokenScores
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.errors import InputError, NothingToMeasureError

TOY = PCFG.from_text("S -> A S 0.6 | A B 0.4\nA -> 'a' 0.5 | 'b' 0.5\nB -> 'c' 0.7 | 'd' 0.3")
LENGTHS = LengthRange(4, 7)
TEXT = [tuple(s) for s in Oracle(TOY, lengths=LENGTHS).sample(900, 3)]
DIFFERENT = list(dict.fromkeys(TEXT))
FRESH, OWN = DIFFERENT[:60], DIFFERENT[60:120]
ratio = st.integers(-4, 4).map(float)


class Remembers:
    """The truth, with so many more bits of log probability for some sentences, and fewer for all."""

    unchecked = True  # the bits are of whole sentences

    def __init__(self, more: dict[tuple[str, ...], float], truth: Oracle, less: float = 0.0) -> None:
        self.name, self.objective, self.vocabulary = "remembers", truth.objective, None
        self.more, self.truth, self.less = more, truth, less

    def score(self, sentences: list[list[str]], frame: ScoringFrame) -> TokenScores:
        scores = self.truth.score(sentences, frame)
        length = Counter(scores.sentence.tolist())
        rise = {i: (self.more.get(tuple(s), 0.0) - self.less) * math.log(2.0) for i, s in enumerate(sentences)}
        added = np.array([rise[i] / length[i] for i in scores.sentence.tolist()])
        lost = np.array([i for i, s in enumerate(sentences) if rise[i] == -math.inf], dtype=np.int32)
        kept = ~np.isin(scores.sentence, lost)
        return TokenScores(
            scores.log_prob[kept] + added[kept],
            scores.sentence[kept],
            scores.position[kept],
            np.union1d(scores.impossible, lost).astype(np.int32),
            scores.n_sentences,
            frame,
        )


def setting(sentences: list[tuple[str, ...]] = FRESH) -> Setting:
    return Setting(TOY, sentences, LENGTHS)


def strings_of(pcfg: PCFG, lengths: LengthRange) -> dict[tuple[str, ...], float]:
    """Every string of the range with its probability given the range, by enumeration."""
    tables = all_strings(rules_of(pcfg), lengths.high)[pcfg.symbols[pcfg.start]]
    found = {s: p for m in range(lengths.low, lengths.high + 1) for s, p in tables[m].items() if p > 0.0}
    return {s: p / math.fsum(found.values()) for s, p in found.items()}


@pytest.mark.long
@settings(max_examples=25, deadline=None)
@given(small_pcfgs(), small_pcfgs(), length_ranges(4), st.integers(0, 99))
def test_all_numbers_are_those_of_enumerated_probabilities(
    pcfg: PCFG, other: PCFG, lengths: LengthRange, seed: int
) -> None:
    """The model is another random grammar, which cannot make some of the sentences."""
    for each in (pcfg, other):
        assume(each.exact.length_pmf(lengths.high)[lengths.low :].sum() > 1e-6)
    p, q = strings_of(pcfg, lengths), strings_of(other, lengths)
    fresh, own = (Oracle(pcfg, lengths=lengths).sample(12, seed + i) for i in range(2))
    sides = [[s for s in dict.fromkeys(map(tuple, text)) if s in q] for text in (own, fresh)]
    assume(all(sides))
    x, y = (np.array([math.log2(q[s] / p[s]) for s in side]) for side in sides)
    model = Oracle(other, lengths=lengths)
    found = memory(model, Setting(pcfg, fresh, lengths), own)
    assert found.members.excluded == len({tuple(s) for s in own} - q.keys())
    assert found.fresh.excluded == len({tuple(s) for s in fresh} - q.keys())
    wanted = {
        "memorised": np.maximum(x - y.mean(), 0.0).mean(),
        "memorised_fresh": np.maximum(y - y.mean(), 0.0).mean(),
        "gap": x.mean() - y.mean(),
        "ratio_members": x.mean(),
        "ratio_fresh": y.mean(),
        "memorised_total": np.maximum(x - y.mean(), 0.0).sum(),
    }
    for name, value in wanted.items():
        assert found.scores[name].value == pytest.approx(value, abs=1e-10), name
    pairs = [(a > b + 1e-9) + 0.5 * (abs(a - b) <= 1e-9) for a in x for b in y]
    assert found.scores["auroc"].value == pytest.approx(sum(pairs) / len(pairs), abs=1e-12)


@pytest.mark.long
@given(st.lists(ratio, min_size=1, max_size=12), st.lists(ratio, min_size=1, max_size=12))
def test_auroc_is_the_share_of_pairs_in_order(members: list[float], fresh: list[float]) -> None:
    pairs = [(x > y) + 0.5 * (x == y) for x in members for y in fresh]
    found = auroc(np.array(members), np.array(fresh))
    assert found == pytest.approx(sum(pairs) / len(pairs), abs=1e-12)
    u = mannwhitneyu(members, fresh).statistic
    assert found == pytest.approx(u / len(pairs), abs=1e-12)


@pytest.mark.long
@given(st.lists(ratio, min_size=10, max_size=25), st.lists(ratio, min_size=10, max_size=25))
def test_measures_are_their_definitions_and_errors_are_finite(members: list[float], fresh: list[float]) -> None:
    x, y = np.array(members), np.array(fresh)
    found = two_samples(x, y, 3)
    wanted = {
        "auroc": np.mean([(a > y).mean() + 0.5 * (a == y).mean() for a in x]),
        "memorised": np.maximum(x - y.mean(), 0.0).mean(),
        "memorised_fresh": np.maximum(y - y.mean(), 0.0).mean(),
        "gap": x.mean() - y.mean(),
        "ratio_members": x.mean(),
        "ratio_fresh": y.mean(),
    }
    assert tuple(found) == MEASURES
    for name, value in wanted.items():
        assert found[name].value == pytest.approx(value, abs=1e-12)
        low, high = found[name].low, found[name].high
        assert low is not None and high is not None and low <= value + 1e-12 and high >= value - 1e-12


@pytest.mark.long
def test_errors_are_those_of_delong_and_of_the_difference_of_means() -> None:
    """Large samples of the normal distribution, whose intervals are known in the limit."""
    rng = np.random.default_rng(1)
    x, y = rng.normal(0.4, 1.0, 900), rng.normal(0.0, 1.5, 800)
    found = two_samples(x, y)
    gap, area = found["gap"], found["auroc"]
    half = 1.96 * math.sqrt(x.var() / 900 + y.var() / 800)
    assert gap.low == pytest.approx(gap.value - half, abs=0.08 * half)
    assert gap.high == pytest.approx(gap.value + half, abs=0.08 * half)
    place = [np.array([(a > y).mean() for a in x]), np.array([(x > b).mean() for b in y])]
    half = 1.96 * math.sqrt(place[0].var() / 900 + place[1].var() / 800)
    assert area.low == pytest.approx(area.value - half, abs=0.08 * half)
    assert area.high == pytest.approx(area.value + half, abs=0.08 * half)


@pytest.mark.long
def test_the_interval_of_auroc_holds_about_as_often_as_it_says() -> None:
    rng, hits, truth = np.random.default_rng(5), 0, 0.5 * (1 + math.erf(0.7 / 2))
    for seed in range(200):
        found = two_samples(rng.normal(0.7, 1.0, 40), rng.normal(0.0, 1.0, 60), seed)["auroc"]
        assert found.low is not None and found.high is not None
        hits += found.low <= truth <= found.high
    assert 180 <= hits <= 199  # 95%


def test_samples_apart_altogether_have_an_interval_all_the_same() -> None:
    found = two_samples(np.ones(20), np.zeros(30))["auroc"]
    assert found.value == found.high == 1.0
    assert found.low == pytest.approx(0.8389, abs=1e-3)  # Wilson's, of 20 trials
    few = two_samples(np.ones(9), np.zeros(30))
    assert all(each.low is None for each in few.values())


@pytest.mark.parametrize("objective", ["causal", "masked"])
def test_the_truth_has_memorised_nothing(objective: str) -> None:
    truth = Oracle(TOY, objective, lengths=LENGTHS)  # type: ignore[arg-type]
    for model in (truth, Remembers({}, truth)):
        found = memory(model, setting(), [*OWN, *OWN, *OWN[:20]])  # type: ignore[arg-type]
        assert {name: found.scores[name].value for name in MEASURES} == pytest.approx(
            dict.fromkeys(MEASURES, 0.0) | {"auroc": 0.5}, abs=1e-12
        )
        assert found.scores["auroc"].value == 0.5
        assert [scores["auroc"].value for scores in found.groups.values()] == [0.5]


@pytest.mark.parametrize("objective", ["causal", "masked"])
def test_bits_added_to_training_sentences_are_found(objective: str) -> None:
    """By repetitions: 1 bit for what stands there once, 3 for what stands there four times."""
    truth = Oracle(TOY, objective, lengths=LENGTHS)  # type: ignore[arg-type]
    more = dict.fromkeys(OWN[:30], 1.0) | dict.fromkeys(OWN[30:], 3.0)
    text = [*OWN[:30], *(4 * OWN[30:])]
    found = memory(Remembers(more, truth, 9.0), setting(), text)  # type: ignore[arg-type]
    assert found.scores["auroc"].value == 1.0
    assert found.scores["memorised"].value == pytest.approx(2.0, abs=1e-10)
    assert found.scores["memorised_total"].value == pytest.approx(120.0, abs=1e-8)
    assert found.scores["memorised_fresh"].value == pytest.approx(0.0, abs=1e-10)
    gaps = {name: scores["gap"].value for name, scores in found.groups.items()}
    assert gaps == pytest.approx({"1": 1.0, "4-15": 3.0}, abs=1e-10)
    assert found.repetitions == {"1": 30, "4-15": 30}
    records = found.records()
    assert {r["group"] for r in records if "by" in r} == {"1", "4-15"}
    assert all(f"members:{30 if 'by' in r else 60}/" in r["signature"] for r in records)


def test_a_model_worse_than_the_truth_everywhere_has_memorised_nothing() -> None:
    truth = Oracle(TOY, lengths=LENGTHS)
    worse = Remembers(dict.fromkeys([*FRESH, *OWN], -2.0), truth)
    found = memory(worse, setting(), OWN)  # type: ignore[arg-type]
    assert found.scores["ratio_members"].value == pytest.approx(-2.0, abs=1e-10)
    assert found.scores["memorised"].value == pytest.approx(0.0, abs=1e-10)
    assert found.scores["auroc"].value == 0.5


def test_what_a_model_cannot_make_is_left_out_and_counted() -> None:
    truth = Oracle(TOY, lengths=LENGTHS)
    never = dict.fromkeys([*FRESH[:7], *OWN[:5]], -math.inf)
    found = memory(Remembers(never, truth), setting(), [*OWN, ("unicorn", "c")])  # type: ignore[arg-type]
    assert (len(found.fresh.values), len(found.fresh.impossible_model)) == (53, 7)
    assert (len(found.members.values), found.members.excluded) == (55, 6)
    assert found.members.impossible_truth.tolist() == [60]
    assert "sentences:53|excluded:7" in found.scores["auroc"].signature


def test_sentences_of_both_texts_are_counted_and_left_out_when_asked() -> None:
    truth = Oracle(TOY, lengths=LENGTHS)
    model = Remembers(dict.fromkeys(OWN, 1.0), truth, 9.0)
    both = [*FRESH[:20], *OWN[:20]]
    kept = memory(model, setting(both), OWN)  # type: ignore[arg-type]
    assert kept.shared == 20
    assert kept.scores["auroc"].value == pytest.approx(0.75)
    without = memory(model, setting(both), OWN, unseen=True)  # type: ignore[arg-type]
    assert without.scores["auroc"].value == 1.0
    assert "fresh:unseen" in without.scores["auroc"].signature
    with pytest.raises(NothingToMeasureError, match="all fresh sentences"):
        memory(model, setting(OWN), OWN, unseen=True)  # type: ignore[arg-type]


def test_the_first_sentences_are_scored_and_repetitions_counted_in_all() -> None:
    truth = Oracle(TOY, lengths=LENGTHS)
    found = memory(truth, setting(), [*OWN[:12], *OWN], sentences=12)
    assert found.repetitions == {"2-3": 12}


def test_groups_have_names() -> None:
    assert [group_name(i) for i in range(5)] == ["1", "2-3", "4-15", "16-63", "64+"]


def test_bad_calls_are_refused(tmp_path: Path) -> None:
    truth = Oracle(TOY, lengths=LENGTHS)
    with pytest.raises(InputError, match="no training sentences"):
        memory(truth, setting(), [])
    with pytest.raises(InputError, match="no split of a corpus"):
        setting().other_split("train")
    corpus = Corpus.sample(TOY, {"train": 5}, seed=1, path=tmp_path / "corpus")
    with pytest.raises(InputError, match="itself"):
        Setting.of(Text.of(corpus, "train"), TOY).other_split("train")


@given(st.integers(4, 60), st.lists(st.integers(1, 9), min_size=1, max_size=4, unique=True), st.integers(0, 5))
def test_a_repeated_text_has_each_sentence_as_often_as_it_says(size: int, times: list[int], seed: int) -> None:
    sentences = [[f"w{i}"] for i in range(size)]
    text = repeated([*sentences, *sentences[:3]], times, seed)
    counts = Counter(sentence[0] for sentence in text.sentences)
    assert {n: len(part) for n, part in text.parts.items()} == dict.fromkeys(times, size // len(times))
    assert counts == {sentence[0]: n for n, part in text.parts.items() for sentence in part}
    assert text == repeated(sentences, times, seed)


def test_repetitions_that_make_no_sense_are_refused() -> None:
    for times in ((), (0, 2), (2, 2)):
        with pytest.raises(InputError, match="repetitions are"):
            repeated([["a"], ["b"]], times)
    with pytest.raises(InputError, match="too few for 4 parts"):
        repeated([["a"], ["b"], ["a"]])
