"""Comparisons in one vocabulary: coarsened and spelled predictions against enumeration, and what must hold of them."""

from __future__ import annotations

import logging
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from random_grammars import small_pcfgs
from reference_inference import all_strings, rules_of
from toy_models import END, Table, log

from truesource.evaluation.core.comparison import score_both
from truesource.evaluation.core.exclusion import Exclusion
from truesource.evaluation.core.oracle import UNKNOWN, Oracle
from truesource.evaluation.core.setting import Setting
from truesource.evaluation.core.signature import parts_of
from truesource.evaluation.core.vocabulary import (
    CoarsenedModel,
    ComparisonVocabulary,
    SpelledModel,
    comparison_vocabulary,
)
from truesource.evaluation.divergence import BY
from truesource.evaluation.divergence.compare import compare_distributions
from truesource.evaluation.pplu.compare import compare_pplu
from truesource.generator.language_model import LanguageModel, ScoringFrame, TokenScores
from truesource.generator.objectives import Objective, ranks
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.errors import InputError

LENGTHS = LengthRange(1, 3)
WORDS = ("a", "b", "c", "d")
OBJECTIVES: tuple[Objective, ...] = ("causal", "masked", "any-order")
TRUTH = PCFG.from_text("S -> S S 0.3 | A S 0.2 | 'a' 0.3 | 'b' 0.2\nA -> A A 0.2 | 'c' 0.5 | 'd' 0.3")
Row = Mapping[str, float]


def common(truth: PCFG, words: Sequence[str]) -> ComparisonVocabulary:
    return ComparisonVocabulary("common", truth, tuple(sorted(words)))


def full(truth: PCFG, counts: Mapping[str, int] | None = None) -> ComparisonVocabulary:
    return ComparisonVocabulary("full", truth, tuple(sorted(set(truth.vocabulary) - {UNKNOWN})), counts)


@st.composite
def tables(draw: st.DrawFn, objective: Objective, least: Sequence[str] = ()) -> Table:
    """Models of the word to the left; what is missing to 1 is lost. They know ``least``, and perhaps other words."""
    own = draw(st.sets(st.sampled_from((*WORDS, "zebra"))))
    vocabulary = tuple(draw(st.permutations(sorted({*own, *least}))))
    events = [*vocabulary, UNKNOWN, *([END] if objective == "causal" else [])]
    rows = {}
    for before in ("<s>", *vocabulary, UNKNOWN):
        weight = draw(st.lists(st.integers(1, 9), min_size=len(events) + 1, max_size=len(events) + 1))
        rows[before] = {event: w / sum(weight) for event, w in zip(events, weight, strict=False)}
    return Table(rows, vocabulary, objective)


def law_of(pcfg: PCFG) -> dict[tuple[str, ...], float]:
    """P(sentence | its length is in the range)."""
    strings = all_strings(rules_of(pcfg), LENGTHS.high)[pcfg.symbols[pcfg.start]]
    found = {s: p for n in range(LENGTHS.low, LENGTHS.high + 1) for s, p in strings[n].items()}
    total = math.fsum(found.values())
    assume(total > 0.0)
    return {s: p / total for s, p in found.items()}


def truth_rows(law: Mapping[tuple[str, ...], float], sentence: Sequence[str], objective: Objective) -> list[Row]:
    """P of each word, or of the end, at every position, given what the objective sees of the words themselves."""
    rows = []
    when = ranks(sentence)[0]
    for i in range(len(sentence) + (objective == "causal")):
        joint: dict[str, list[float]] = defaultdict(list)
        for s, p in law.items():
            if objective == "causal":
                agrees = list(s[:i]) == list(sentence[:i])
            else:
                seen = [j for j in range(len(sentence)) if (j != i if objective == "masked" else when[j] < when[i])]
                agrees = len(s) == len(sentence) and all(s[j] == sentence[j] for j in seen)
            if agrees:
                joint[s[i] if i < len(s) else END].append(p)
        total = math.fsum(p for ps in joint.values() for p in ps)
        rows.append({word: math.fsum(ps) / total for word, ps in joint.items()})
    return rows


def coarse(row: Row, words: Sequence[str]) -> dict[str, float]:
    found: dict[str, float] = defaultdict(float)
    for event, p in row.items():
        found[event if event in words or event == END else UNKNOWN] += p
    return dict(found)


def spelled(row: Row, vocabulary: Sequence[str], truth: PCFG, counts: Mapping[str, int] | None) -> dict[str, float]:
    hidden = [word for word in truth.vocabulary if word not in vocabulary]
    weight = {word: 1 if counts is None else counts.get(word, 0) + 1 for word in hidden}
    shared = {word: row.get(UNKNOWN, 0.0) * n / sum(weight.values()) for word, n in weight.items()}
    return {**{event: p for event, p in row.items() if event in truth.vocabulary or event == END}, **shared}


def events(objective: Objective, words: Sequence[str]) -> list[str]:
    return [*words, UNKNOWN, *([END] if objective == "causal" else [])]


def sentences_of(law: Mapping[tuple[str, ...], float], most: int = 12) -> list[list[str]]:
    return [list(s) for s in sorted(law, key=law.__getitem__, reverse=True)[:most]]


def check(
    model: LanguageModel, sentences: Sequence[Sequence[str]], rows: Sequence[Sequence[Row]], words: Sequence[str]
) -> None:
    """Scores and distributions of a model are those of rows of probabilities by event."""
    scores = model.score(sentences, ScoringFrame())
    for number, (sentence, of_sentence) in enumerate(zip(sentences, rows, strict=True)):
        targets = [*(w if w in words else UNKNOWN for w in sentence), *([END] if model.objective == "causal" else [])]
        wanted = [log(row.get(target, 0.0)) for row, target in zip(of_sentence, targets, strict=True)]
        if -math.inf in wanted:
            assert number in scores.impossible
        else:
            assert scores.log_prob[scores.sentence == number] == pytest.approx(wanted, rel=1e-12, abs=1e-12)
        for block in model.distributions([sentence]):  # type: ignore[attr-defined]
            law = [of_sentence[block.position].get(event, 0.0) for event in events(model.objective, words)]
            assert np.exp(block.log_prob[0]) == pytest.approx(law, rel=1e-12, abs=1e-14)


# -- against enumeration ------------------------------------------------------------------------------


@pytest.mark.long
@given(st.data(), small_pcfgs(), st.sampled_from(OBJECTIVES))
def test_coarsened_truth_and_model_are_sums_over_enumerated_words(
    data: st.DataObject, pcfg: PCFG, objective: Objective
) -> None:
    words = sorted(data.draw(st.sets(st.sampled_from(pcfg.vocabulary), min_size=1)))
    model = data.draw(tables(objective, least=words))
    law = law_of(pcfg)
    sentences = sentences_of(law)
    adapted = common(pcfg, words).adapt(model)
    assert isinstance(adapted, CoarsenedModel)
    check(adapted, sentences, [[coarse(row, words) for row in model.rows(s)] for s in sentences], words)
    oracle = Setting(pcfg, sentences, LENGTHS).oracle(adapted)
    truth = [[coarse(row, words) for row in truth_rows(law, s, objective)] for s in sentences]
    check(oracle, sentences, truth, words)


@pytest.mark.long
@given(st.data(), small_pcfgs(), st.sampled_from(OBJECTIVES))
def test_spelled_models_share_unknown_words_out(data: st.DataObject, pcfg: PCFG, objective: Objective) -> None:
    model = data.draw(tables(objective))
    counts = data.draw(st.none() | st.dictionaries(st.sampled_from(WORDS), st.integers(0, 5)))
    sentences = sentences_of(law_of(pcfg))
    adapted = full(pcfg, counts).adapt(model)
    assert isinstance(adapted, SpelledModel)
    rows = [[spelled(row, model.vocabulary, pcfg, counts) for row in model.rows(s)] for s in sentences]
    check(adapted, sentences, rows, sorted(pcfg.vocabulary))
    hidden = set(pcfg.vocabulary) - set(model.vocabulary)
    assert adapted.compared == ("full" if not hidden else "full/uniform" if counts is None else "full/training+1")


@pytest.mark.long
@given(st.data(), small_pcfgs(), st.sampled_from(OBJECTIVES))
def test_the_divergence_is_that_of_the_coarsened_rows(data: st.DataObject, pcfg: PCFG, objective: Objective) -> None:
    words = sorted(data.draw(st.sets(st.sampled_from(pcfg.vocabulary), min_size=1)))
    model = data.draw(tables(objective, least=words))
    law = law_of(pcfg)
    sentences = sentences_of(law)
    adapted = common(pcfg, words).adapt(model)
    found = compare_distributions(adapted, Setting(pcfg, sentences, LENGTHS)).scores["kl"]  # type: ignore[arg-type]
    wanted = [
        math.fsum(x * math.log(x / q[w]) for w, x in p.items() if x > 0.0)
        for s in sentences
        for p, q in zip(
            [coarse(row, words) for row in truth_rows(law, s, objective)],
            [coarse(row, words) for row in model.rows(s)],
            strict=True,
        )
    ]
    assert found.value == pytest.approx(math.fsum(wanted) / len(wanted), rel=1e-11, abs=1e-13)


# -- what must hold -----------------------------------------------------------------------------------


@pytest.mark.long
@given(st.data(), small_pcfgs(), st.sampled_from(OBJECTIVES))
def test_the_truth_differs_from_itself_in_nothing(data: st.DataObject, pcfg: PCFG, objective: Objective) -> None:
    words = data.draw(st.sets(st.sampled_from(pcfg.vocabulary), min_size=1))
    sentences = sentences_of(law_of(pcfg))
    assume(sentences)
    setting = Setting(pcfg, sentences, LENGTHS)
    for vocabulary in (common(pcfg, sorted(words)), full(pcfg)):
        itself = vocabulary.adapt(Oracle(pcfg, objective, lengths=LENGTHS))
        scored, truth = itself.score(sentences, ScoringFrame()), setting.truth(itself)
        assert scored.log_prob == pytest.approx(truth.log_prob, rel=1e-12, abs=1e-12)
        paired = score_both(itself, setting).paired
        assert np.array_equal(paired.model, paired.oracle)  # which is not computed twice
        scores = compare_distributions(itself, setting).scores  # type: ignore[arg-type]
        assert scores["kl"].value == pytest.approx(0.0, abs=1e-12) and scores["tv"].value == pytest.approx(0, abs=1e-12)


@pytest.mark.long
@given(st.data(), small_pcfgs(), st.sampled_from(OBJECTIVES))
def test_coarser_words_never_give_a_larger_divergence(data: st.DataObject, pcfg: PCFG, objective: Objective) -> None:
    """The data processing inequality, and a model with fewer words of its own whose predictions are the same sums."""
    fine = data.draw(st.sets(st.sampled_from(pcfg.vocabulary), min_size=1))
    words = data.draw(st.sets(st.sampled_from(sorted(fine)), min_size=1))
    model = data.draw(tables(objective, least=sorted(fine)))
    setting = Setting(pcfg, sentences_of(law_of(pcfg)), LENGTHS)
    first = common(pcfg, sorted(fine)).adapt(model)
    once, twice = common(pcfg, sorted(words)).adapt(model), common(pcfg, sorted(words)).adapt(first)
    finer, coarser, composed = (compare_distributions(m, setting).scores["kl"].value for m in (first, once, twice))
    assert coarser <= finer + 1e-12
    assert composed == pytest.approx(coarser, rel=1e-11, abs=1e-13)
    sides = [score_both(each, setting).paired.model for each in (once, twice)]
    assert sides[1] == pytest.approx(sides[0], rel=1e-12, abs=1e-12)


@pytest.mark.long
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_every_table_divides_the_same_divergence(objective: Objective) -> None:
    """By class, frequency, true probability and phrase, parts sum to the whole, in each vocabulary."""
    model = TOY if objective == "causal" else Table(TOY.table, TOY.vocabulary, objective)
    setting = Setting(TRUTH, Oracle(TRUTH, lengths=LENGTHS).sample(30, 1), LENGTHS)
    by = [each for each in BY if objective == "causal" or each not in ("distance", "class")]
    for vocabulary in (common(TRUTH, ["a", "c"]), full(TRUTH)):
        found = compare_distributions(vocabulary.adapt(model), setting, by=by)  # type: ignore[arg-type]
        whole = found.scores["kl"].value * found.contexts
        for name, rows in found.tables.items():
            parts = [row.scores["kl"].value * row.tokens for row in rows if "kl" in row.scores]
            assert math.fsum(parts) == pytest.approx(whole, rel=1e-9), name


TOY = Table(
    {
        "<s>": {"a": 0.3, "c": 0.2, UNKNOWN: 0.3, END: 0.1},
        "a": {"a": 0.2, "c": 0.3, UNKNOWN: 0.3, END: 0.2},
        "c": {"a": 0.4, "c": 0.1, UNKNOWN: 0.4, END: 0.1},
        UNKNOWN: {"a": 0.1, "c": 0.1, UNKNOWN: 0.2, END: 0.5},
    },
    ("a", "c"),
)


def test_pplu_normalises_by_the_frequencies_of_the_comparison() -> None:
    setting = Setting(TRUTH, Oracle(TRUTH, lengths=LENGTHS).sample(40, 2), LENGTHS)
    whole = compare_pplu(full(TRUTH).adapt(TOY), setting).unigram.log_prob
    found = compare_pplu(common(TRUTH, ["a"]).adapt(TOY), setting)
    rest = math.fsum(math.exp(whole[word]) for word in ("b", "c", "d"))
    assert math.exp(found.unigram.log_prob[UNKNOWN]) == pytest.approx(rest, rel=1e-12)
    assert set(found.tokens) == {"a", UNKNOWN, END}
    scores = found.scores
    assert scores["share_learned"].value == pytest.approx(
        1.0 - math.log(scores["ppl"].value / scores["bound"].value) / scores["mutual_information"].value, rel=1e-10
    )


@pytest.mark.long
@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("kind", ["common", "full"])
def test_frames_count_the_same_positions_on_both_sides(objective: Objective, kind: str) -> None:
    model = Table(TOY.table, TOY.vocabulary, objective)
    sentences = [["a", "b"], ["b"], ["c", "a", "b"]]
    vocabulary = common(TRUTH, ["a"]) if kind == "common" else full(TRUTH)
    for frame in (ScoringFrame(unk="skip"), ScoringFrame(first=False), ScoringFrame(eos=False, unk="skip")):
        paired = score_both(vocabulary.adapt(model), Setting(TRUTH, sentences, LENGTHS, frame)).paired
        hidden = frame.unk == "skip" and kind == "common"
        for at, number in zip(paired.position.tolist(), paired.sentence.tolist(), strict=True):
            assert at == len(sentences[number]) or not hidden or sentences[number][at] == "a"
        ends = objective == "causal" and frame.eos
        wanted = sum(
            sum((not hidden or w == "a") and (frame.first or i > 0) for i, w in enumerate(s)) + ends for s in sentences
        )
        assert paired.tokens == wanted


def test_words_that_the_truth_lacks_are_impossible_in_full() -> None:
    scores = full(TRUTH).adapt(TOY).score([["a"], ["zebra"], ["b"]], ScoringFrame())
    assert scores.impossible.tolist() == [1] and sorted(set(scores.sentence.tolist())) == [0, 2]


# -- signatures, defaults, refusals -------------------------------------------------------------------


def test_signatures_name_the_vocabulary() -> None:
    setting = Setting(TRUTH, [["a", "b"], ["c"]], LENGTHS)
    parts = [score_both(each, setting).parts for each in (TOY, common(TRUTH, ["a"]).adapt(TOY), full(TRUTH).adapt(TOY))]
    assert [part.get("compared") for part in parts] == [None, "common", "full/uniform"]
    assert parts[1]["vocab"] != parts[0]["vocab"] and parts[2]["vocab"] == "4/all"
    of = compare_distributions(full(TRUTH, {"b": 3}).adapt(TOY), setting).scores["kl"]  # type: ignore[arg-type]
    assert parts_of(of.signature)["compared"] == "full/training+1"


def test_the_default_is_common_with_distributions_and_full_without() -> None:
    other = Table(TOY.table, ("c",))
    assert comparison_vocabulary([TOY, TOY], TRUTH) is None
    assert comparison_vocabulary([TOY, other], TRUTH, "own") is None
    found = comparison_vocabulary([TOY, other], TRUTH)
    assert found is not None and (found.kind, found.words) == ("common", ("c",))
    spelling = comparison_vocabulary([TOY, Spelling()], TRUTH, counts=lambda: {"a": 2})
    assert spelling is not None and (spelling.kind, spelling.counts) == ("full", {"a": 2})
    forced = comparison_vocabulary([TOY, TOY], TRUTH, "full")
    assert forced is not None and (forced.kind, forced.words) == ("full", WORDS)
    again = ComparisonVocabulary.of_record(spelling.as_record(), TRUTH)
    assert (again.kind, again.words, again.counts) == (spelling.kind, spelling.words, spelling.counts)


class Spelling:
    """A model that spells any word, uniformly over letters."""

    name, objective, vocabulary, reading = "spelling", "causal", None, "letters"
    has_distributions = False

    def score(self, sentences: Sequence[Sequence[str]], frame: ScoringFrame) -> TokenScores:
        return Oracle(TRUTH, lengths=LENGTHS).score(sentences, frame)


def test_models_that_spell_any_word_are_scored_as_they_are() -> None:
    model = Spelling()
    adapted = full(TRUTH).adapt(model)  # type: ignore[arg-type]
    assert adapted.reading == "letters"
    parts = score_both(adapted, Setting(TRUTH, [["a", "b"]], LENGTHS)).parts
    assert (parts["compared"], parts["vocab"], parts["reading"]) == ("full", "4/all", "letters")


def test_what_cannot_be_compared_is_refused() -> None:
    spelling, shouting = Spelling(), Table(TOY.table, ("A", "C"), name="shouting")
    with pytest.raises(InputError, match="spelling has no") as error:
        comparison_vocabulary([TOY, spelling], TRUTH, "common")  # type: ignore[list-item]
    assert error.value.code == "missing-ability"
    for call in (
        lambda: comparison_vocabulary([TOY, shouting], TRUTH),
        lambda: score_both(shouting, Setting(TRUTH, [["a"]], LENGTHS)),
        lambda: compare_distributions(shouting, Setting(TRUTH, [["a"]], LENGTHS)),
        lambda: comparison_vocabulary([Table(TOY.table, ("a",)), Table(TOY.table, ("c",))], TRUTH),
        lambda: common(TRUTH, ["b"]).adapt(TOY),
    ):
        with pytest.raises(InputError) as error:
            call()
        assert error.value.code == "no-shared-word"


def test_a_vocabulary_that_has_few_of_the_words_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    setting = Setting(TRUTH, [["a", "b", "b"], ["b", "d", "b"]], LENGTHS)
    with caplog.at_level(logging.WARNING, "truesource.evaluation"):
        score_both(TOY, setting)
        score_both(TOY, setting)
    (warning,) = caplog.messages
    assert "table knows 2 of the 4 words of the truth, 17% of the words of this text" in warning
    caplog.clear()
    with caplog.at_level(logging.WARNING, "truesource.evaluation"):
        for model in (TOY, Table(TOY.table, ("c", "a"), name="other")):
            score_both(common(TRUTH, ["a"]).adapt(model), setting)
            compare_distributions(common(TRUTH, ["a"]).adapt(model), setting.first(1))  # type: ignore[arg-type]
    (warning,) = caplog.messages
    assert "all models know 1 of the 4 words of the truth, 17%" in warning
    caplog.clear()
    score_both(TOY, Setting(TRUTH, [["a", "c", "a"]], LENGTHS))
    assert not caplog.messages


def test_what_the_text_leaves_out_is_not_corrected_in_common() -> None:
    excluded = Exclusion.from_sentences([["b", "a"]], TRUTH, LENGTHS)
    setting = Setting(TRUTH, [["a", "b"], ["d", "a"]], LENGTHS, excluded=excluded)
    adapted = common(TRUTH, ["a"]).adapt(TOY)
    assert score_both(adapted, setting).parts["disjoint"] == "uncorrected"
    plain = Setting(TRUTH, [["a", "b"], ["d", "a"]], LENGTHS)
    np.testing.assert_array_equal(score_both(adapted, setting).paired.oracle, score_both(adapted, plain).paired.oracle)
    assert score_both(full(TRUTH).adapt(TOY), setting).parts["disjoint"] != "uncorrected"


@pytest.mark.long
@given(small_pcfgs())
def test_one_unknown_word_everywhere_is_only_a_length(pcfg: PCFG) -> None:
    """A model without words of its own knows the law of lengths at most."""
    assume(len(pcfg.vocabulary) > 1)
    row = {UNKNOWN: 0.5, END: 0.5}
    blind = Table({"<s>": row, UNKNOWN: row}, ())
    sentences = sentences_of(law_of(pcfg))
    found = full(pcfg).adapt(blind).score(sentences, ScoringFrame())
    n = len(pcfg.vocabulary)
    wanted = [len(s) * math.log(0.5 / n) + math.log(0.5) for s in sentences]
    assert np.bincount(found.sentence, found.log_prob) == pytest.approx(wanted, rel=1e-12)
