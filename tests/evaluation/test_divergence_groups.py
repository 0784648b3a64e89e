"""The divergence by ambiguity, by distance and by true probability, against enumeration and in constructed cases."""

from __future__ import annotations

import itertools
import json
import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from random_grammars import small_pcfgs
from reference_inference import all_strings, derivations, rules_of
from toy_models import END, Table

from truesource.evaluation.core.oracle import Oracle
from truesource.evaluation.core.setting import Setting
from truesource.evaluation.divergence import By
from truesource.evaluation.divergence.blocks import FLOORS, PROBABILITIES, divide_by_probability
from truesource.evaluation.divergence.compare import ModelDivergence, compare_distributions
from truesource.evaluation.divergence.contexts import DividedDivergence, measure_contexts
from truesource.evaluation.divergence.groups import AMBIGUITIES, NEAR, WORDS, ambiguity_bands, by_ambiguity, by_distance
from truesource.evaluation.divergence.tables import by_group
from truesource.generator.plan import OddEven
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.pcfg import PCFG, language
from truesource.grammar.support.errors import InputError, NothingToMeasureError
from truesource.grammar.truth import process

SHORT = LengthRange(1, 4)
OTHERS: tuple[By, ...] = ("ambiguity", "distance", "probability")
Row = dict[str, float]


@dataclass(frozen=True)
class Case:
    """A small grammar, some of its sentences, and a model over its words that loses some probability."""

    pcfg: PCFG
    sentences: list[list[str]]
    model: Table
    strings: dict[tuple[str, ...], float]  #: all of the range, with their probabilities given it

    @property
    def setting(self) -> Setting:
        return Setting(self.pcfg, self.sentences, lengths=SHORT)

    def after(self, prefix: Sequence[str]) -> Row:
        """P of what follows a prefix, summed over the strings one by one."""
        n = len(prefix)
        fits = [(s, p) for s, p in self.strings.items() if s[:n] == tuple(prefix)]
        return self.share([(s[n] if len(s) > n else END, p) for s, p in fits])

    def given_words(self, prefix: Sequence[str], k: int) -> Row:
        """What follows the last k words of a prefix anywhere in the language; the whole prefix if it is shorter."""
        if len(prefix) < k:
            return self.after(prefix)
        seen = tuple(prefix[len(prefix) - k :])
        places = [(s, j, p) for s, p in self.strings.items() for j in range(k, len(s) + 1) if s[j - k : j] == seen]
        return self.share([(s[j] if j < len(s) else END, p) for s, j, p in places])

    @staticmethod
    def share(weights: Sequence[tuple[str, float]]) -> Row:
        joint: dict[str, list[float]] = defaultdict(list)
        for word, p in weights:
            joint[word].append(p)
        sums = {word: math.fsum(each) for word, each in joint.items()}
        return {word: p / math.fsum(sums.values()) for word, p in sums.items()}

    def contexts(self) -> list[tuple[int, list[str], Row, Row]]:
        """(sentence, prefix, P, Q), every context counted."""
        return [
            (number, sentence[:i], self.after(sentence[:i]), dict(q))
            for number, sentence in enumerate(self.sentences)
            for i, q in enumerate(self.model.rows(sentence))
        ]


def kl(p: Row, q: Row) -> float:
    return math.fsum(x * math.log(x / q[w]) for w, x in p.items() if x > 0.0)


@st.composite
def made(draw: st.DrawFn, unary_cycles: bool = False) -> Case:
    pcfg = draw(small_pcfgs(max_symbols=4, unary_cycles=unary_cycles))
    tables = all_strings(rules_of(pcfg), SHORT.high)[pcfg.symbols[pcfg.start]]
    strings = {s: p for m in range(SHORT.low, SHORT.high + 1) for s, p in tables[m].items() if p > 0.0}
    assume(0 < len(strings) <= 120 and math.fsum(strings.values()) > 1e-6)
    rng = np.random.default_rng(draw(st.integers(0, 999)))
    words = (*pcfg.vocabulary, "<unk>", END)
    rows = {}
    for before in ("<s>", *pcfg.vocabulary, "<unk>"):
        weight = np.exp(rng.normal(0.0, 4.0, len(words)))
        rows[before] = dict(zip(words, (0.9 * weight / weight.sum()).tolist(), strict=True))
    total = math.fsum(strings.values())
    drawn = draw(st.lists(st.sampled_from(sorted(strings)), min_size=1, max_size=6))
    return Case(
        pcfg, [list(s) for s in drawn], Table(rows, pcfg.vocabulary), {s: p / total for s, p in strings.items()}
    )


def compared(case: Case, *by: By) -> ModelDivergence:
    return compare_distributions(case.model, case.setting, by=by)


@pytest.mark.long
@settings(max_examples=25)
@given(made(unary_cycles=True))
def test_parts_sum_to_the_divergence(case: Case) -> None:
    found = compared(case, *OTHERS)
    for by, rows in found.tables.items():
        total = math.fsum(row.tokens * row.scores["kl"].value for row in rows if "kl" in row.scores)
        assert math.fsum(row.tokens for row in rows) == pytest.approx(found.contexts, rel=1e-9), by
        assert total / found.contexts == pytest.approx(found.scores["kl"].value, rel=1e-9, abs=1e-9), by
    parts = [row.scores for row in found.tables["probability"]]
    assert math.fsum(s["kl_part"].value for s in parts) == pytest.approx(found.scores["kl"].value, rel=1e-9, abs=1e-9)
    assert math.fsum(s["true_mass"].value for s in parts) == pytest.approx(1.0, abs=1e-9)
    special = found.scores["special_mass"].value
    assert math.fsum(s["model_mass"].value for s in parts) == pytest.approx(1.0 - special, abs=1e-9)
    invalid = [row.scores["model_mass"].value for row in found.tables["probability"] if row.group == "impossible"]
    assert math.fsum(invalid) == pytest.approx(found.scores["impossible_mass"].value, abs=1e-12)


def check(case: Case, by: By, group_of: Callable[[int, list[str], Row], str]) -> None:
    """A table by groups of contexts, against plain loops."""
    wanted: dict[str, list[float]] = defaultdict(list)
    for number, prefix, p, q in case.contexts():
        wanted[group_of(number, prefix, p)].append(kl(p, q))
    rows = compared(case, by).tables[by]
    assert {row.group for row in rows} == set(wanted)
    for row in rows:
        assert row.tokens == len(wanted[row.group])
        mean = math.fsum(wanted[row.group]) / row.tokens
        assert row.scores["kl"].value == pytest.approx(mean, rel=1e-9, abs=1e-10)


@pytest.mark.long
@settings(max_examples=25)
@given(made())
def test_by_ambiguity_against_all_derivations(case: Case) -> None:
    rules = rules_of(case.pcfg)
    bands = {}
    for number, sentence in enumerate(case.sentences):
        weights = [p for _, p in derivations(rules, sentence)]
        total = math.fsum(weights)
        entropy = -math.fsum(p / total * math.log(p / total) for p in weights)
        assume(abs(entropy - round(entropy)) > 1e-8 or entropy < 1e-12)
        limits = {1e-9: "0 (one tree)", 1.0: "up to 1", 2.0: "1 to 2", 4.0: "2 to 4", 8.0: "4 to 8"}
        bands[number] = next((name for limit, name in limits.items() if entropy <= limit), "over 8")
    check(case, "ambiguity", lambda number, prefix, p: bands[number])


@pytest.mark.long
@settings(max_examples=25)
@given(made(unary_cycles=True))
def test_by_distance_against_all_strings(case: Case) -> None:
    def smallest(_: int, prefix: list[str], p: Row) -> str:
        apart = [kl(p, case.given_words(prefix, k)) for k in range(WORDS + 1)]
        assume(all(abs(value - NEAR) > 1e-9 for value in apart))
        return next((str(k) for k, value in enumerate(apart) if value <= NEAR), f"over {WORDS}")

    check(case, "distance", smallest)


def band(p: float) -> str:
    return PROBABILITIES[next((i for i, floor in enumerate(FLOORS) if p >= floor * (1 - 1e-9)), len(FLOORS))]


@pytest.mark.long
@settings(max_examples=25)
@given(made(unary_cycles=True))
def test_by_probability_against_all_strings(case: Case) -> None:
    share, part, mass = (defaultdict[str, float](float) for _ in range(3))
    every = case.contexts()
    for _, _, p, q in every:
        for word in case.model.columns:
            name = band(p[word]) if p.get(word, 0.0) > 0.0 else "impossible"
            mass[name] += q[word] / len(every)
            if name != "impossible":
                share[name] += p[word]
                part[name] += p[word] * math.log(p[word] / q[word])
    rows = compared(case, "probability").tables["probability"]
    assert {row.group for row in rows} == set(mass)
    for row in rows:
        assert row.tokens == pytest.approx(share[row.group], rel=1e-9, abs=1e-10)
        assert row.scores["model_mass"].value == pytest.approx(mass[row.group], rel=1e-9)
        assert row.scores["true_mass"].value == pytest.approx(share[row.group] / len(every), rel=1e-9, abs=1e-10)
        assert row.scores["kl_part"].value == pytest.approx(part[row.group] / len(every), rel=1e-9, abs=1e-10)
        if row.group != "impossible":
            assert row.scores["kl"].value == pytest.approx(part[row.group] / share[row.group], rel=1e-9, abs=1e-9)
    assert "kl" not in {name for row in rows if row.group == "impossible" for name in row.scores}


@pytest.mark.long
@given(st.integers(0, 99))
def test_events_are_divided_as_by_plain_loops(seed: int) -> None:
    rng = np.random.default_rng(seed)
    p = np.exp(rng.normal(0.0, 6.0, (5, 30))) * (rng.random((5, 30)) < 0.7)
    p[:, 0] += 1e-9
    q = np.exp(rng.normal(0.0, 6.0, (5, 30))) * (rng.random((5, 30)) < 0.95)
    p, q = p / p.sum(axis=1, keepdims=True), 0.9 * q / q.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore"):
        share, part, mass = divide_by_probability(np.log(p), np.log(q))
    for w, b in itertools.product(range(5), range(len(PROBABILITIES))):
        events = [e for e in range(30) if (band(p[w, e]) if p[w, e] else "impossible") == PROBABILITIES[b]]
        assert share[w, b] == pytest.approx(math.fsum(p[w, e] for e in events), abs=1e-12)
        assert mass[w, b] == pytest.approx(math.fsum(q[w, e] for e in events), abs=1e-12)
        terms = [p[w, e] * math.log(p[w, e] / q[w, e]) if q[w, e] else math.inf for e in events if p[w, e]]
        assert part[w, b] == pytest.approx(math.inf if math.inf in terms else math.fsum(terms), abs=1e-10)


def test_round_probabilities_are_at_the_lower_end_of_a_band_however_they_are_computed() -> None:
    p = np.array([[0.9, 0.1 * (1 - 1e-15), 1e-3, 1e-6, 9e-7]])
    share, _, _ = divide_by_probability(np.log(p), np.log(p))
    assert share[0].tolist() == pytest.approx([1.0, 0.0, 1e-3, 0.0, 0.0, 1e-6, 9e-7, 0.0])


# -- constructed cases ------------------------------------------------------------------------------


@pytest.mark.long
def test_the_truth_has_zero_in_every_group() -> None:
    grammar, lengths = language("english", size="small"), LengthRange(4, 9)
    oracle = Oracle(grammar, lengths=lengths)
    found = compare_distributions(oracle, Setting(grammar, oracle.sample(8, 1), lengths=lengths), by=OTHERS)
    for by in OTHERS:
        assert found.tables[by]
        for row in found.tables[by]:
            assert row.scores["kl"].value == 0.0
            assert row.scores.get("kl_part", row.scores["kl"]).value == 0.0
    assert all(r.scores["true_mass"].value == r.scores["model_mass"].value for r in found.tables["probability"])
    assert {row.group for row in found.tables["distance"]} > {"1", "2"}


@pytest.mark.long
def test_all_sentences_of_an_unambiguous_grammar_have_one_tree() -> None:
    grammar, lengths = language("dyck", k=2, depth=3), LengthRange(2, 12)
    oracle = Oracle(grammar, lengths=lengths)
    sentences = oracle.sample(30, 2)
    rows = compare_distributions(oracle, Setting(grammar, sentences, lengths=lengths), by=["ambiguity"]).tables
    assert [(row.group, row.tokens) for row in rows["ambiguity"]] == [
        ("0 (one tree)", sum(len(sentence) + 1 for sentence in sentences))
    ]


@pytest.mark.long
def test_a_language_in_which_the_next_word_depends_on_the_last_one_alone_has_no_distance_above_one() -> None:
    grammar = PCFG.from_text(
        "S -> X A 0.7 | Y B 0.3\nA -> X A 0.2 | Y B 0.5 | E 0.3\nB -> X A 0.6 | Y B 0.1 | E 0.3\n"
        "X -> 'x' 1.0\nY -> 'y' 1.0\nE -> 'z' 1.0"
    )
    oracle = Oracle(grammar)
    found = compare_distributions(oracle, Setting(grammar, oracle.sample(60, 3)), by=["distance"]).tables["distance"]
    assert {row.group for row in found} <= {"0", "1"}
    assert "1" in {row.group for row in found}


@pytest.mark.long
def test_matching_brackets_are_as_far_as_they_are() -> None:
    """After a long palindrome's middle mark, each word is that of the first half, further and further back."""
    grammar = PCFG.from_text(
        "S -> A T 0.45 | B U 0.45 | 'm' 0.1\nT -> S A 1.0\nU -> S B 1.0\nA -> 'a' 1.0\nB -> 'b' 1.0"
    )
    oracle, sentence = Oracle(grammar), list("abbmbba")
    measured = measure_contexts(oracle, oracle, [sentence])
    found = by_distance(measured, oracle, [sentence])
    names = [found.names[g] for g in found.group.tolist()]
    assert names[4:7] == ["2", "4", "over 4"]  # b after m: the word before m; and so on
    assert by_ambiguity(measured, oracle, [sentence]).group.tolist() == [0] * 8


def test_bands_of_ambiguity() -> None:
    found = ambiguity_bands(np.array([0.0, 1e-12, 1e-8, 1.0, 1.0 + 1e-12, 1.5, 2.0, 3.0, 4.5, 8.0, 8.1, 100.0]))
    assert [AMBIGUITIES[i] for i in found.tolist()] == [
        *("0 (one tree)", "0 (one tree)", "up to 1", "up to 1", "up to 1", "1 to 2", "1 to 2", "2 to 4"),
        *("4 to 8", "4 to 8", "over 8", "over 8"),
    ]


@pytest.mark.long
def test_unknown_words_are_one_word_for_all_groups() -> None:
    grammar = PCFG.from_text("S -> A S 0.5 | 'a' 0.2 | 'b' 0.2 | 'c' 0.1\nA -> 'a' 0.4 | 'b' 0.3 | 'c' 0.3")
    sentences = Oracle(grammar, lengths=SHORT).sample(30, 1)
    row = {"a": 0.4, "<unk>": 0.3, END: 0.3}
    model = Table({"<s>": row, "a": row, "<unk>": row}, ("a",))
    found = compare_distributions(model, Setting(grammar, sentences, lengths=SHORT), by=OTHERS)
    for rows in found.tables.values():
        total = math.fsum(each.tokens * each.scores["kl"].value for each in rows if "kl" in each.scores)
        assert total / found.contexts == pytest.approx(found.scores["kl"].value, rel=1e-9)


def test_infinite_parts_are_counted_by_band_and_left_out() -> None:
    """The model never expects b, whose probability is 0.05 at the start."""
    grammar = PCFG.from_text("S -> 'a' 0.95 | 'b' 0.05")
    row = {"a": 0.5, "b": 0.0, "<unk>": 0.0, END: 0.5}
    model = Table({"<s>": row, "a": row, "b": row, "<unk>": row}, ("a", "b"))
    found = compare_distributions(model, Setting(grammar, [["a"]] * 12), by=["probability"])
    rows = {each.group: each for each in found.tables["probability"]}
    assert rows["0.01 to 0.1"].infinite == 12 and rows["0.1 to 1"].infinite == 0
    assert rows["0.01 to 0.1"].scores.keys() == {"true_mass", "model_mass"}
    assert rows["0.01 to 0.1"].scores["true_mass"].value == pytest.approx(0.025)
    assert rows["impossible"].scores["model_mass"].value == pytest.approx(0.5)  # the end at first, then a
    assert rows["0.1 to 1"].scores["kl_part"].value == pytest.approx((0.95 * math.log(1.9) + math.log(2.0)) / 2)
    json.dumps(found.records(), allow_nan=False)


# -- what has no such groups ------------------------------------------------------------------------


@pytest.mark.parametrize("by", ["phrase", "ambiguity", "distance"])
def test_a_process_has_no_groups_that_need_rules(by: By) -> None:
    truth = process("shuffle-dyck", k=2, depth=3)
    oracle = Oracle(truth, lengths=LengthRange(2, 6))
    setting = Setting(truth, oracle.sample(5, 1), lengths=LengthRange(2, 6))
    with pytest.raises(InputError, match=f"the divergence by {by} needs") as caught:
        compare_distributions(oracle, setting, by=[by])
    assert caught.value.code == "missing-ability"
    assert compare_distributions(oracle, setting, by=["probability"]).tables["probability"]


def test_masked_models_have_no_distance_but_the_others() -> None:
    grammar = PCFG.from_text("S -> S S 0.25 | 'a' 0.5 | 'b' 0.25")
    oracle = Oracle(grammar, "masked")
    setting = Setting(grammar, [["a", "b", "a"]])
    with pytest.raises(NothingToMeasureError, match="it has no divergence by distance") as caught:
        compare_distributions(oracle, setting, by=["distance"])
    assert caught.value.code == "masked"
    found = compare_distributions(oracle, setting, by=["ambiguity", "probability"]).tables
    assert [row.group for row in found["ambiguity"]] == ["up to 1"]  # two bracketings, ln 2


def test_text_in_another_order_has_no_trees_and_no_distances() -> None:
    grammar = PCFG.from_text("S -> S S 0.25 | 'a' 0.5 | 'b' 0.25")
    setting = replace(Setting(grammar, [["a", "b", "a"]]), transform=OddEven())
    tables: tuple[By, ...] = ("phrase", "ambiguity")
    for by in tables:
        with pytest.raises(NothingToMeasureError, match=f"the divergence by {by} needs text in the order"):
            compare_distributions(Oracle(grammar, "masked", transform=setting.transform), setting, by=[by])


def test_an_interval_of_a_divergence_by_phrase_never_ends_below_zero() -> None:
    """Groups that few sentences have a little of; those of words by class may be negative, as their parts are."""
    names = ("rare", "usual")
    share = np.array([[1.0, 1.0], [0.7, 1.0]] + [[0.01, 1.0]] * 14)
    part = np.array([[5.0, 0.2], [6.0, 0.2]] + [[0.0, 0.1]] * 14)
    measured = DividedDivergence(names, share, part, np.zeros(2, dtype=np.int64), share.sum(axis=0))
    free, bounded = (
        by_group(replace(measured, of_contexts=of), {"ci": "c"}, 1)[0].scores["kl"] for of in (False, True)
    )
    assert free.low is not None and free.low < 0.0
    assert bounded.low == 0.0 and (bounded.value, bounded.high) == (free.value, free.high)
