"""Divergence of a model from the truth by full distributions, against enumeration of small languages."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from random_grammars import length_ranges, small_pcfgs
from reference_inference import all_strings, derivations, rules_of
from toy_models import END, Table
from whole_language import whole_language

from truesource.evaluation.core.comparison import compare_in
from truesource.evaluation.core.oracle import Oracle
from truesource.evaluation.core.setting import Setting
from truesource.evaluation.divergence import BY, By, blocks
from truesource.evaluation.divergence.compare import ModelDivergence, compare_distributions
from truesource.evaluation.divergence.means import variance_ratio
from truesource.generator.language_model import DistributionModel, LogDistributions, ScoringFrame
from truesource.generator.objectives import Objective
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.errors import InputError
from truesource.grammar.tree import Tree

TOY = PCFG.from_text("S -> S S 0.25 | a 0.5 | b 0.25")
SHORT = LengthRange(1, 3)
TAGGED = PCFG.from_text(
    "S -> NP VP 0.75 | VP 0.25\nNP -> NN 0.5 | DT NN 0.5\nVP -> VB 0.5 | VB NP 0.5\n"
    "NN -> a 0.5 | b 0.25 | c 0.25\nVB -> b 0.5 | a 0.25 | d 0.25\nDT -> c 1.0"
)
ROW = {"a": 0.3, "b": 0.2, "c": 0.1, "d": 0.05, "<unk>": 0.05, END: 0.25}  #: 0.05 is lost
MODEL = Table(
    {
        "<s>": ROW,
        "a": {**ROW, "a": 0.1, END: 0.45},
        "b": {**ROW, "b": 0.01, "c": 0.29},
        "c": {**ROW, "d": 0.1},
        "d": ROW,
        "<unk>": ROW,
    },
    ("d", "b", "a", "c"),
)
MASKED = replace(MODEL, objective="masked")
Row = dict[str, float]


def strings_of(pcfg: PCFG, lengths: LengthRange) -> dict[tuple[str, ...], float]:
    """Every string of the range with its probability given the range."""
    tables = all_strings(rules_of(pcfg), lengths.high)[pcfg.symbols[pcfg.start]]
    found = {s: p for m in range(lengths.low, lengths.high + 1) for s, p in tables[m].items() if p > 0.0}
    z = math.fsum(found.values())
    return {s: p / z for s, p in found.items()}


def others(sentence: Sequence[str], i: int) -> tuple[int, list[str]]:
    """All words but one, and how many there are."""
    return len(sentence), [*sentence[:i], *sentence[i + 1 :]]


def truth_rows(strings: dict[tuple[str, ...], float], sentence: Sequence[str], objective: Objective) -> list[Row]:
    """P of what can stand at each position, summed over the strings one by one."""
    rows = []
    for i in range(len(sentence) + (objective == "causal")):
        joint: dict[str, list[float]] = defaultdict(list)
        for s, p in strings.items():
            if objective == "causal" and list(s[:i]) == list(sentence[:i]):
                joint[s[i] if i < len(s) else END].append(p)
            elif objective == "masked" and others(s, i) == others(sentence, i):
                joint[s[i]].append(p)
        sums = {w: math.fsum(ps) for w, ps in joint.items()}
        total = math.fsum(sums.values())
        rows.append({w: p / total for w, p in sums.items()})
    return rows


def collapsed(strings: dict[tuple[str, ...], float], model: Table) -> dict[tuple[str, ...], float]:
    found: dict[tuple[str, ...], float] = defaultdict(float)
    for s, p in strings.items():
        found[tuple(model.read(s))] += p
    return dict(found)


def kl(p: Row, q: Row) -> float:
    terms = [math.inf if q.get(w, 0.0) == 0.0 else x * math.log(x / q[w]) for w, x in p.items() if x > 0.0]
    return math.inf if math.inf in terms else math.fsum(terms)


def contexts(pcfg: PCFG, model: Table, sentences: Sequence[Sequence[str]]) -> list[tuple[int, int, Row, Row, str]]:
    """(sentence, position, P, Q, what stands there), every context counted."""
    strings = collapsed(strings_of(pcfg, SHORT), model)
    found = []
    for number, sentence in enumerate(sentences):
        read = model.read(sentence)
        targets = [*read, END] if model.objective == "causal" else read
        truth = truth_rows(strings, read, model.objective)
        for i, (p, q, w) in enumerate(zip(truth, model.rows(sentence), targets, strict=True)):
            found.append((number, i, p, dict(q), w))
    return found


def tables_of(model: DistributionModel) -> list[By]:
    """All tables that such a model has."""
    return [by for by in BY if model.objective == "causal" or by != "distance"]


def corpus(pcfg: PCFG, n: int = 25, seed: int = 0) -> list[list[str]]:
    return Oracle(pcfg, lengths=SHORT).sample(n, seed)


CASES = [
    (TAGGED, MODEL),
    (TAGGED, MASKED),
    (TAGGED, replace(MODEL, vocabulary=("b", "zebra", "a"))),
    (TAGGED, replace(MASKED, vocabulary=("b", "a"))),
    (TOY, replace(MODEL, vocabulary=("b", "a"))),
]


# -- values -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("pcfg", "model"), CASES)
def test_means_over_contexts_are_those_of_plain_loops(pcfg: PCFG, model: Table) -> None:
    sentences = corpus(pcfg)
    found = compare_distributions(model, Setting(pcfg, sentences, lengths=SHORT), top=2).scores
    every = contexts(pcfg, model, sentences)
    columns = model.columns

    def mean(values: Sequence[float]) -> float:
        return math.fsum(values) / len(values)

    def tv(p: Row, q: Row) -> float:
        lost = 1.0 - math.fsum(q.get(w, 0.0) for w in columns)
        return 0.5 * (math.fsum(abs(p.get(w, 0.0) - q.get(w, 0.0)) for w in columns) + lost)

    assert found["kl"].value == pytest.approx(mean([kl(p, q) for *_, p, q, _ in every]), rel=1e-10)
    paired = [math.log(p[w] / q[w]) for *_, p, q, w in every]
    assert found["kl_paired"].value == pytest.approx(mean(paired), rel=1e-10)
    assert found["tv"].value == pytest.approx(mean([tv(p, q) for *_, p, q, _ in every]), rel=1e-10)
    outside = [math.fsum(q.get(w, 0.0) for w in columns if p.get(w, 0.0) == 0.0) for *_, p, q, _ in every]
    assert found["impossible_mass"].value == pytest.approx(mean(outside), rel=1e-10)
    entropies = [-math.fsum(x * math.log(x) for x in p.values()) for *_, p, _, _ in every]
    assert found["entropy_truth"].value == pytest.approx(mean(entropies), rel=1e-10, abs=1e-12)
    best = [
        max(columns, key=lambda w: p.get(w, 0.0)) == max(columns, key=lambda w: q.get(w, 0.0)) for *_, p, q, _ in every
    ]
    assert found["agreement"].value == pytest.approx(mean([float(x) for x in best]), rel=1e-12)
    infinite = mean([float(x > 0.0) for x in outside])
    assert found["reverse_kl_infinite"].value == pytest.approx(infinite, rel=1e-12)
    assert ("reverse_kl" in found) == (infinite == 0.0)
    assert found["kl_infinite"].value == 0.0


@pytest.mark.parametrize(("pcfg", "model"), CASES)
def test_position_and_length_tables_are_those_of_plain_loops(pcfg: PCFG, model: Table) -> None:
    sentences = corpus(pcfg)
    tables = compare_distributions(model, Setting(pcfg, sentences, lengths=SHORT), by=["position", "length"]).tables
    every = contexts(pcfg, model, sentences)
    for by, key in (("position", lambda s, i: i + 1), ("length", lambda s, i: len(sentences[s]))):
        wanted: dict[str, list[float]] = defaultdict(list)
        for s, i, p, q, _ in every:
            wanted[str(key(s, i))].append(kl(p, q))
        assert [row.group for row in tables[by]] == sorted(wanted)
        for row in tables[by]:
            assert row.tokens == len(wanted[row.group])
            assert row.scores["kl"].value == pytest.approx(math.fsum(wanted[row.group]) / row.tokens, rel=1e-10)
            assert row.infinite == 0


def test_the_frequency_table_is_that_of_plain_loops() -> None:
    sentences = corpus(TAGGED)
    rows = compare_distributions(MODEL, Setting(TAGGED, sentences, lengths=SHORT), by=["frequency"]).tables["frequency"]
    strings = strings_of(TAGGED, SHORT)
    tokens = math.fsum(p * (len(s) + 1) for s, p in strings.items())
    unigram = {w: math.fsum(p * s.count(w) for s, p in strings.items()) / tokens for w in "abcd"}
    band = {w: f"1/{10 ** -math.floor(math.log10(u))} to " for w, u in unigram.items()}
    found = {row.group: row for row in rows}
    share: dict[str, list[float]] = defaultdict(list)
    part: dict[str, list[float]] = defaultdict(list)
    for *_, p, q, _ in contexts(TAGGED, MODEL, sentences):
        for w, x in p.items():
            share[band.get(w, "(end)")].append(x)
            part[band.get(w, "(end)")].append(x * math.log(x / q[w]))
    assert len(found) == len(share)
    for name, row in found.items():
        (match,) = [key for key in share if name.startswith(key)]
        assert row.tokens == pytest.approx(math.fsum(share[match]), rel=1e-10)
        assert row.scores["kl"].value == pytest.approx(math.fsum(part[match]) / row.tokens, rel=1e-9)


def preterminals(tree: Tree) -> list[str]:
    if isinstance(tree.children[0], str):
        return [tree.label]
    return [tag for child in tree.children if isinstance(child, Tree) for tag in preterminals(child)]


@pytest.mark.parametrize("model", [MODEL, MASKED], ids=["causal", "masked"])
def test_the_class_table_is_that_of_all_derivations(model: Table) -> None:
    """P(word, class | context) by summing trees; Penn tags are put into classes."""
    classes = {"NN": "nouns", "VB": "verbs", "DT": "function words"}
    sentences = corpus(TAGGED)
    rules, trees = rules_of(TAGGED), []
    for s in strings_of(TAGGED, SHORT):
        trees += [(s, preterminals(tree), p) for tree, p in derivations(rules, s)]
    share: dict[str, list[float]] = defaultdict(list)
    part: dict[str, list[float]] = defaultdict(list)
    for number, i, p, q, _ in contexts(TAGGED, model, sentences):
        context = sentences[number]
        fits = [
            (s[i], classes[tags[i]], weight) if i < len(s) else (END, "(end)", weight)
            for s, tags, weight in trees
            if (model.objective == "causal" and list(s[:i]) == context[:i])
            or (model.objective == "masked" and others(s, i) == others(context, i))
        ]
        total = math.fsum(weight for *_, weight in fits)
        for w, name, weight in fits:
            share[name].append(weight / total)
            part[name].append(weight / total * math.log(p[w] / q[w]))
    rows = compare_distributions(model, Setting(TAGGED, sentences, lengths=SHORT), by=["class"]).tables["class"]
    assert {row.group for row in rows} == set(share)
    for row in rows:
        assert row.tokens == pytest.approx(math.fsum(share[row.group]), rel=1e-10)
        assert row.scores["kl"].value == pytest.approx(math.fsum(part[row.group]) / row.tokens, rel=1e-9)


def phrases(tree: Tree, above: str = "") -> list[str]:
    """The label of the phrase right above each symbol that makes a word; of the root its own."""
    if isinstance(tree.children[0], str):
        return [above or tree.label]
    return [found for child in tree.children if isinstance(child, Tree) for found in phrases(child, tree.label)]


@pytest.mark.parametrize("model", [MODEL, MASKED], ids=["causal", "masked"])
def test_the_phrase_table_is_that_of_all_derivations_of_each_sentence(model: Table) -> None:
    """The divergence of a context goes to the phrases over the word that stands there, as probable as they are."""
    sentences, rules = corpus(TAGGED), rules_of(TAGGED)
    share: dict[str, list[float]] = defaultdict(list)
    part: dict[str, list[float]] = defaultdict(list)
    for number, i, p, q, _ in contexts(TAGGED, model, sentences):
        trees = derivations(rules, sentences[number])
        total = math.fsum(weight for _, weight in trees)
        of_context = kl(p, q)
        for tree, weight in trees:
            name = "(end)" if i == len(sentences[number]) else phrases(tree)[i]
            share[name].append(weight / total)
            part[name].append(weight / total * of_context)
    rows = compare_distributions(model, Setting(TAGGED, sentences, lengths=SHORT), by=["phrase"]).tables["phrase"]
    assert {row.group for row in rows} == set(share)
    for row in rows:
        assert row.tokens == pytest.approx(math.fsum(share[row.group]), rel=1e-10)
        assert row.scores["kl"].value == pytest.approx(math.fsum(part[row.group]) / row.tokens, rel=1e-9)


@pytest.mark.long
@pytest.mark.parametrize(("pcfg", "model"), CASES)
def test_tables_add_up_to_the_whole(pcfg: PCFG, model: Table) -> None:
    found = compare_distributions(model, Setting(pcfg, corpus(pcfg), lengths=SHORT), by=tables_of(model))
    for by, rows in found.tables.items():
        assert sum(row.tokens for row in rows) == pytest.approx(found.contexts, rel=1e-10), by
        total = sum(row.tokens * row.scores["kl"].value for row in rows if "kl" in row.scores)
        assert total / found.contexts == pytest.approx(found.scores["kl"].value, rel=1e-9), by


# -- the estimator ----------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [replace(MODEL, vocabulary=("b", "a")), replace(MODEL, vocabulary=("a",))])
def test_over_the_whole_language_both_estimates_are_the_divergence_itself(model: Table) -> None:
    sentences = whole_language(TOY, 1, 3, 512)
    found = compare_distributions(model, Setting(TOY, sentences, lengths=SHORT)).scores
    strings = collapsed(strings_of(TOY, SHORT), model)
    frame = ScoringFrame()
    divergence = math.fsum(p * (math.log(p) - model.score([s], frame).log_prob.sum()) for s, p in strings.items())
    tokens = math.fsum(p * (len(s) + 1) for s, p in strings.items())
    assert found["kl"].value == pytest.approx(divergence / tokens, abs=1e-10)
    assert found["kl_paired"].value == pytest.approx(divergence / tokens, abs=1e-10)
    assert found["variance_ratio"].value > 1.0


def test_the_same_holds_for_a_masked_model() -> None:
    """Every word is independent given the length: 2/3 a, 1/3 b."""
    model = replace(MASKED, vocabulary=("b", "a"))
    found = compare_distributions(model, Setting(TOY, whole_language(TOY, 1, 3, 512), lengths=SHORT)).scores
    assert found["kl"].value == pytest.approx(found["kl_paired"].value, abs=1e-10)


def test_the_paired_estimate_and_its_interval_are_those_of_score() -> None:
    sentences = corpus(TAGGED)
    plain = compare_in(MODEL, Setting(TAGGED, sentences, lengths=SHORT, seed=4)).measures["kl"]
    found = compare_distributions(MODEL, Setting(TAGGED, sentences, lengths=SHORT, seed=4)).scores["kl_paired"]
    assert (found.value, found.low, found.high) == pytest.approx(tuple(plain), rel=1e-10)


@pytest.mark.long
def test_the_exact_estimate_varies_less_over_samples_and_as_much_as_it_says() -> None:
    """120 corpora: the ratio of the variances of the two estimates is the reported one, within chance."""
    runs = [
        compare_distributions(MODEL, Setting(TAGGED, corpus(TAGGED, 60, s), lengths=SHORT)).scores for s in range(120)
    ]
    spread = {name: float(np.var([run[name].value for run in runs])) for name in ("kl", "kl_paired")}
    reported = float(np.median([run["variance_ratio"].value for run in runs]))
    assert reported > 1.2
    assert spread["kl_paired"] / spread["kl"] == pytest.approx(reported, rel=0.35)


def test_the_variance_ratio_is_that_of_ratio_estimates() -> None:
    plain, exact, counts = np.array([1.0, 2.0, 6.0]), np.array([2.0, 3.0, 4.0]), np.array([1.0, 2.0, 3.0])
    residuals = [
        [float(x) - float(t.sum()) / 6 * float(n) for x, n in zip(t, counts, strict=True)] for t in (plain, exact)
    ]
    wanted = sum(x * x for x in residuals[0]) / sum(x * x for x in residuals[1])
    assert variance_ratio(plain, exact, counts) == pytest.approx(wanted)
    assert variance_ratio(plain, counts, counts) is None


# -- the oracle against itself ----------------------------------------------------------------------


@pytest.mark.long
@settings(max_examples=20)
@given(
    small_pcfgs(),
    st.sampled_from(["causal", "masked"]),
    length_ranges(4),
    st.none() | st.sets(st.sampled_from("abc")),
    st.integers(0, 99),
)
def test_the_oracle_differs_from_itself_in_nothing(
    pcfg: PCFG, objective: Objective, lengths: LengthRange, vocabulary: set[str] | None, seed: int
) -> None:
    assume(pcfg.exact.length_pmf(lengths.high)[lengths.low :].sum() > 1e-9)
    oracle = Oracle(pcfg, objective, lengths=lengths, vocabulary=vocabulary)
    sentences = Oracle(pcfg, lengths=lengths).sample(8, seed)
    found = compare_distributions(oracle, Setting(pcfg, sentences, lengths=lengths), by=tables_of(oracle))
    nothing = ("kl", "kl_paired", "reverse_kl", "reverse_kl_possible", "js", "tv", "impossible_mass")
    for name in (*nothing, "kl_infinite", "reverse_kl_infinite", "calibration_error", "calibration_error_top"):
        assert found.scores[name].value == 0.0, name
    for name in ("agreement", "top_k_overlap"):
        assert found.scores[name].value == 1.0, name
    assert found.scores["special_mass"].value == pytest.approx(0.0, abs=1e-12)
    assert found.scores["entropy_model"].value == pytest.approx(found.scores["entropy_truth"].value, abs=1e-10)
    assert "variance_ratio" not in found.scores
    for rows in found.tables.values():
        assert all(row.scores["kl"].value == 0.0 for row in rows)


# -- what cannot be averaged ------------------------------------------------------------------------


@pytest.mark.long
def test_infinite_divergences_are_counted_and_never_averaged_in() -> None:
    """After a the model never expects d, which the truth does not forbid there."""
    model = replace(MODEL, table={**MODEL.table, "a": {**ROW, "d": 0.0}})
    sentences = corpus(TAGGED, 60)
    found = compare_distributions(model, Setting(TAGGED, sentences, lengths=SHORT), by=BY)
    values = [kl(p, q) for *_, p, q, _ in contexts(TAGGED, model, sentences)]
    finite = [v for v in values if v < math.inf]
    assert 0 < len(finite) < len(values)
    assert "kl" not in found.scores
    assert found.scores["kl_infinite"].value == pytest.approx(1 - len(finite) / len(values))
    assert found.scores["kl_where_finite"].value == pytest.approx(math.fsum(finite) / len(finite), rel=1e-10)
    assert f"contexts:{len(finite)}/{len(values)}" in found.scores["kl_where_finite"].signature.split("|")
    for by in ("position", "length"):
        assert sum(row.infinite for row in found.tables[by]) == len(values) - len(finite)
    for rows in found.tables.values():
        assert sum(row.tokens for row in rows) == pytest.approx(len(values), rel=1e-10)
    by_class = {row.group: row.infinite for row in found.tables["class"]}
    assert by_class["verbs"] == len(values) - len(finite)
    assert by_class["nouns"] == by_class["(end)"] == 0
    json.dumps(found.records(), allow_nan=False)


def test_sentences_that_the_truth_cannot_make_are_left_out_and_counted() -> None:
    sentences = [["a"], ["d", "d"], ["c", "a", "b"], ["zebra"], ["b"] * 5]
    found = compare_distributions(MODEL, Setting(TAGGED, sentences, lengths=SHORT))
    alone = compare_distributions(MODEL, Setting(TAGGED, [["c", "a", "b"], ["a"]], lengths=SHORT))
    assert (found.excluded, alone.excluded) == (3, 0)
    assert found.contexts == alone.contexts == 6
    assert "excluded:3" in found.scores["kl"].signature
    assert found.scores["kl"].value == pytest.approx(alone.scores["kl"].value, rel=1e-12)
    assert found.scores["calibration_error"].value == pytest.approx(alone.scores["calibration_error"].value, rel=1e-12)
    with pytest.raises(InputError, match="can make none of the 1 sentences"):
        compare_distributions(MODEL, Setting(TAGGED, [["zebra"]], lengths=SHORT))


class Odd(Table):
    """Answers with the wrong columns, or values that are no log probabilities."""

    def distributions(self, sentences: Sequence[Sequence[str]]) -> Iterator[LogDistributions]:
        for block in super().distributions(sentences):
            yield replace(block, log_prob=block.log_prob[:, :-1] if self.name == "short" else block.log_prob + 3.0)


@pytest.mark.parametrize(("name", "code"), [("short", "not-distributions"), ("high", "not-log-probabilities")])
def test_distributions_that_are_none_are_refused(name: str, code: str) -> None:
    with pytest.raises(InputError) as caught:
        compare_distributions(Odd(MODEL.table, MODEL.vocabulary, name=name), Setting(TAGGED, [["a"]], lengths=SHORT))
    assert caught.value.code == code


def test_bad_calls_are_refused() -> None:
    with pytest.raises(InputError, match="tables are by position, length, class, frequency"):
        compare_distributions(MODEL, Setting(TAGGED, [["a"]], lengths=SHORT), by=["colour"])  # type: ignore[list-item]
    with pytest.raises(InputError, match="top must be at least 1"):
        compare_distributions(MODEL, Setting(TAGGED, [["a"]], lengths=SHORT), top=0)
    with pytest.raises(InputError, match="3 among them is not a sentence"):
        Setting(TAGGED, [["a"], 3], lengths=SHORT)  # type: ignore[list-item]
    assert Setting(TAGGED, "a b", lengths=SHORT).sentences == [["a", "b"]]


# -- batches, signatures, records -------------------------------------------------------------------


def values_of(found: ModelDivergence) -> dict[str, float]:
    return {name: score.value for name, score in found.scores.items()}


def test_results_depend_on_neither_batches_nor_the_order_of_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    sentences = corpus(TAGGED, 80)
    whole = values_of(compare_distributions(MODEL, Setting(TAGGED, sentences, lengths=SHORT)))
    shuffled = [sentences[i] for i in np.random.default_rng(0).permutation(80)]
    assert values_of(compare_distributions(MODEL, Setting(TAGGED, shuffled, lengths=SHORT))) == pytest.approx(
        whole, rel=1e-12
    )
    monkeypatch.setattr(blocks, "CELLS", 13)
    assert values_of(compare_distributions(MODEL, Setting(TAGGED, sentences, lengths=SHORT))) == pytest.approx(
        whole, rel=1e-12
    )


def test_signatures_differ_with_every_choice() -> None:
    sentences = corpus(TAGGED)
    other = PCFG.from_text(TAGGED.to_text().replace("VP 0.25", "VP 0.2").replace("NP VP 0.75", "NP VP 0.8"))
    variants = [
        compare_distributions(MODEL, Setting(TAGGED, sentences, lengths=SHORT)),
        compare_distributions(MODEL, Setting(other, sentences, lengths=SHORT)),
        compare_distributions(MODEL, Setting(TAGGED, sentences, lengths=None)),
        compare_distributions(MODEL, Setting(TAGGED, sentences[1:], lengths=SHORT)),
        compare_distributions(MODEL, Setting(TAGGED, sentences, lengths=SHORT, seed=2)),
        compare_distributions(replace(MODEL, vocabulary=("a",)), Setting(TAGGED, sentences, lengths=SHORT)),
        compare_distributions(MASKED, Setting(TAGGED, sentences, lengths=SHORT)),
    ]
    assert len({found.scores["kl"].signature for found in variants}) == len(variants)
    scores = variants[0].scores
    assert "estimator:rao-blackwell" in scores["kl"].signature
    assert "estimator:paired" in scores["kl_paired"].signature
    assert "given:1..3" in scores["kl"].signature
    assert "k:10" in scores["top_k_overlap"].signature
    assert "q:given-possible" in scores["reverse_kl_possible"].signature
    assert "eos:out" in variants[-1].scores["kl"].signature


def test_records_say_what_was_measured() -> None:
    found = compare_distributions(MODEL, Setting(TAGGED, corpus(TAGGED), lengths=SHORT), by=["position"])
    records = json.loads(json.dumps(found.records(), allow_nan=False))
    plain = [record for record in records if "by" not in record]
    assert [record["name"] for record in plain] == list(found.scores)
    assert all({"model", "objective", "value", "low", "high", "signature"} <= record.keys() for record in records)
    table = {(record["group"], record["name"]) for record in records if record.get("by") == "position"}
    assert ("1", "kl") in table
    assert len({record["signature"] for record in records if record.get("by") and record["name"] == "kl"}) == 4


# -- the oracle's own distributions -----------------------------------------------------------------


@pytest.mark.long
@settings(max_examples=25)
@given(
    small_pcfgs(),
    st.sampled_from(["causal", "masked"]),
    length_ranges(3),
    st.none() | st.sets(st.sampled_from("abcz")),
)
def test_the_oracles_distributions_are_those_of_enumeration(
    pcfg: PCFG, objective: Objective, lengths: LengthRange, vocabulary: set[str] | None
) -> None:
    assume(pcfg.exact.length_pmf(lengths.high)[lengths.low :].sum() > 1e-9)
    oracle = Oracle(pcfg, objective, lengths=lengths, vocabulary=vocabulary)
    reader = Table({}, oracle.words, objective)
    strings = strings_of(pcfg, lengths)
    merged = collapsed(strings, reader)
    longest = max(map(len, strings))
    sentences = [list(s) for s in strings if len(s) == longest][:5]
    for position, block in enumerate(oracle.distributions([*sentences, sentences[0]])):
        assert block.position == position
        assert np.array_equal(block.log_prob[0], block.log_prob[-1])
        for row, sentence in zip(block.log_prob, sentences, strict=False):
            wanted = truth_rows(merged, reader.read(sentence), objective)[position]
            assert np.exp(row) == pytest.approx([wanted.get(w, 0.0) for w in reader.columns], rel=1e-9, abs=1e-12)


def test_the_oracles_distributions_refuse_what_they_cannot_do() -> None:
    with pytest.raises(InputError, match="of one length"):
        list(Oracle(TOY).distributions([["a"], ["a", "a"]]))
    (first, *_) = Oracle(TOY, lengths=SHORT).distributions([["z", "a"], ["a", "a"]])
    assert np.exp(first.log_prob[:, -2:]).tolist() == [[0.0, 0.0]] * 2
    *_, last = Oracle(TOY, lengths=SHORT).distributions([["z", "a"], ["a", "a"]])
    assert np.isneginf(last.log_prob[0]).all()
    assert Fraction(float(np.exp(last.log_prob[1]).sum())).limit_denominator(10**9) == 1
