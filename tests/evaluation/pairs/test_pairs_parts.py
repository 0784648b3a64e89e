"""Forms, trees, files and sums of pairs, by hand."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from agreement_grammar import agreement_grammar
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from toy_models import Table

from truesource.evaluation.pairs import PairSettings
from truesource.evaluation.pairs.evaluate import NoPairsError, PairEvaluation, evaluate_pairs
from truesource.evaluation.pairs.generate import REGISTRY, make_pairs
from truesource.evaluation.pairs.lexicon import Form, Lexicon, english_forms, read_forms, spelled_with_s
from truesource.evaluation.pairs.odds import COLUMNS, by_source, measures, pair_sums, with_truth
from truesource.evaluation.pairs.pair import Pair, differing, filter_pairs, read_pairs, write_pairs
from truesource.evaluation.pairs.phenomena.determiner_noun import DeterminerNoun
from truesource.evaluation.pairs.phenomena.subcategorisation import frame_of
from truesource.evaluation.pairs.phenomena.subject_verb import SubjectVerb, subject_of
from truesource.evaluation.pairs.phenomena.word_order import WordOrder
from truesource.evaluation.pairs.sampled_sentence import Constituents, PairChange, SampledSentence
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.support.errors import InputError
from truesource.grammar.tree import Tree
from truesource.grammar.treebank.brackets import read_text

INFINITY = math.inf


def constituents(text: str) -> Constituents:
    (_, tree), *rest = read_text(text)
    assert not rest
    return Constituents(tree)


# -- forms -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("word", "noun", "spelled"),
    [
        ("walk", False, ["walks"]),
        ("try", False, ["tries"]),
        ("play", False, ["plays"]),
        ("fix", False, ["fixes"]),
        ("watch", False, ["watches"]),
        ("go", False, ["gos", "goes"]),
        ("policeman", True, ["policemen", "policemans"]),
        ("y", False, ["ys"]),
    ],
)
def test_spelling(word: str, noun: bool, spelled: list[str]) -> None:
    assert list(spelled_with_s(word, noun=noun)) == spelled


def test_english_forms_are_words_with_the_right_tags() -> None:
    tags = {
        "VBZ": ["is", "walks", "tries", "leaves", "Has"],
        "VBP": ["are", "walk", "try", "see", "Have"],
        "VBD": ["was", "were"],
        "NN": ["leaf", "man", "sheep", "try"],
        "NNS": ["leaves", "men", "tries", "walks"],
        "DT": ["this", "these", "That", "Those", "a", "An", "the"],
    }
    forms = english_forms({tag: dict.fromkeys(words, 1.0) for tag, words in tags.items()})
    assert forms.table["verb"] == {
        **{"is": Form("singular", "are", "VBZ"), "are": Form("plural", "is", "VBP")},
        **{"Has": Form("singular", "Have", "VBZ"), "Have": Form("plural", "Has", "VBP")},
        **{"was": Form("singular", "were", "VBD"), "were": Form("plural", "was", "VBD")},
        **{"walks": Form("singular", "walk", "VBZ"), "walk": Form("plural", "walks", "VBP")},
        **{"tries": Form("singular", "try", "VBZ"), "try": Form("plural", "tries", "VBP")},
    }
    assert forms.table["noun"] == {
        **{"leaf": Form("singular", "leaves", "NN"), "leaves": Form("plural", "leaf", "NNS")},
        **{"man": Form("singular", "men", "NN"), "men": Form("plural", "man", "NNS")},
        **{"try": Form("singular", "tries", "NN"), "tries": Form("plural", "try", "NNS")},
    }
    assert forms.table["determiner"] == {
        **{"this": Form("singular", "these", "DT"), "these": Form("plural", "this", "DT")},
        **{"That": Form("singular", "Those", "DT"), "Those": Form("plural", "That", "DT")},
        **{"a": Form("singular", None, "DT"), "An": Form("singular", None, "DT")},
    }


def test_forms_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "forms.txt"
    file.write_text(
        "# German\nverb schläft schlafen\n\ndeterminer ein -\nnoun Hund Hunde  # dog\nnoun Tag Tage\n", "utf-8"
    )
    forms = read_forms(file, ["schläft", "schlafen", "ein", "Hund", "Hunde", "Tag"])
    assert forms.of("verb", "schlafen") == Form("plural", "schläft", None)
    assert forms.of("determiner", "ein") == Form("singular", None, None)
    assert forms.of("noun", "Tag") == Form("singular", None, None)
    assert forms.of("noun", "ein") is None


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("verb is\n", 1, "a line is 'verb|determiner|noun SINGULAR PLURAL', with - for no form"),
        ("\nadverb a b\n", 2, "a line is 'verb|determiner|noun SINGULAR PLURAL'"),
        ("verb is are\nverb is were\n", 2, "the verb 'is' occurs twice"),
    ],
)
def test_bad_forms_are_named_with_their_line(tmp_path: Path, text: str, line: int, message: str) -> None:
    file = tmp_path / "forms.txt"
    file.write_text(text, "utf-8")
    with pytest.raises(InputError) as caught:
        read_forms(file, ["is", "are", "were"])
    assert message in str(caught.value)
    assert str(caught.value).endswith(f"({file}:{line})")


@pytest.mark.long
def test_a_file_of_forms_replaces_english_and_needs_no_tags(tmp_path: Path) -> None:
    bare = agreement_grammar(relabel={"VBZ": "V", "VBP": "V", "DT": "D", "NN": "N", "NNS": "N"})
    file = tmp_path / "forms.txt"
    file.write_text("verb sleeps sleep\ndeterminer this these\nnoun dog dogs\nnoun cat cats\nnoun man men\n", "utf-8")
    settings = PairSettings(number=8, phenomena=("subject-verb", "determiner-noun"), forms=file)
    pairs = make_pairs(bare, LengthRange(3, 8), settings).pairs
    changed = {frozenset((p.a[p.positions[0]], p.b[p.positions[0]])) for p in pairs}
    assert changed == {frozenset(("sleeps", "sleep")), frozenset(("this", "these"))}


# -- trees -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tree", "verb", "subject"),
    [
        ("(S (NP (DT the) (NN dog)) (VP (VBZ barks)))", 2, 1),
        ("(S (NP (NP (DT the) (NN key)) (PP (IN to) (NP (DT the) (NNS doors)))) (VP (VBZ is) (ADJP (JJ old))))", 5, 1),
        ("(S (PP (IN in) (NP (NN June))) (NP (PRP they)) (VP (MD can) (VP (VB be) (VP (VBG doing)))))", 5, 2),
        ("(SQ (VBZ is) (NP (DT the) (NN dog)) (ADJP (JJ old)))", 0, 2),
        ("(SBARQ (WHNP (WP what)) (SQ (VBP do) (NP (PRP they)) (VP (VB want))))", 1, 2),
        ("(NP (NP (NNS men)) (SBAR (WHNP (WP who)) (S (VP (VBP sleep)))))", 2, 0),
        ("(NP (NP (NNS men)) (SBAR (WHNP (WP who)) (S (NP (PRP he)) (VP (VBZ sees)))))", 3, 2),
        ("(SINV (ADVP (RB here)) (VP (VBZ comes)) (NP (DT the) (NN sun)))", 1, 3),
        ("(S (VP (VB go)))", 0, None),
        ("(X (Y go))", 0, None),
    ],
)
def test_the_subject_of_a_verb(tree: str, verb: int, subject: int | None) -> None:
    assert subject_of(constituents(tree), verb) == subject


def test_strata_of_agreement() -> None:
    lexicon = Lexicon(agreement_grammar(), None)
    tree = constituents("(S (NP (NP (DT the) (NN dog)) (PP (IN of) (NP (DT the) (NNS men)))) (VP (VBZ sleeps)))")
    words = ("the", "dog", "of", "the", "men", "sleeps")
    found = SubjectVerb().strata(tree, words, PairChange(words, (5,)), lexicon)
    assert found == {"number": "singular", "order": "subject first", "distance": 3, "attractor": True}
    same = constituents("(S (NP (NP (DT the) (NN dog)) (PP (IN of) (NP (DT the) (NN man)))) (VP (VBZ sleeps)))")
    assert SubjectVerb().strata(same, words, PairChange(words, (5,)), lexicon)["attractor"] is False
    change = PairChange(words, (0,), {"exchanged": "determiner", "distance": "2"})
    found = DeterminerNoun().strata(tree, ("these", *words[1:]), change, lexicon)
    assert found == {"exchanged": "determiner", "number": "plural", "distance": 2}


def test_boundaries_and_frames() -> None:
    tree = constituents("(S (NP (DT the) (NN dog)) (VP (VBZ sees) (NP (PRP him)) (PP (IN in) (NP (NNP May))) (. .)))")
    lexicon = Lexicon(agreement_grammar(), None)
    assert [WordOrder().strata(tree, (), PairChange((), (i, i + 1)), lexicon)["boundary"] for i in range(3)] == [
        "within",
        "across",
        "across",
    ]
    assert frame_of(tree, 2) == "NP PP"
    assert frame_of(constituents("(S (NP (NNS dogs)) (VP (VBP bark) (ADVP (RB now))))"), 1) == "none"
    with pytest.raises(ValueError, match="every word needs its own tag"):
        Constituents(Tree("S", (Tree("NN", ("dog",)), "barks")))


@pytest.mark.parametrize(
    ("sentence", "phenomenon", "others"),
    [
        ("the dog sleeps", "subject-verb", {"the dog sleep"}),
        ("this dog sees these cats", "determiner-noun", {"these dog sees these cats", "this dog sees this cats"}),
        ("a dog sees the cats", "determiner-noun", {"a dogs sees the cats"}),
        ("the dog sees the cats", "determiner-noun", set()),
    ],
)
def test_changes_by_hand(sentence: str, phenomenon: str, others: set[str]) -> None:
    drawn = SampledSentence(Lexicon(agreement_grammar(), None), tuple(sentence.split()))
    made = {
        " ".join(change.words)
        for seed in range(20)
        if (change := REGISTRY[phenomenon].change(drawn, PairSettings(), np.random.default_rng(seed))) is not None
    }
    assert made == others


# -- files -------------------------------------------------------------------------------------------


@pytest.mark.long
def test_pairs_come_back_from_their_file(tmp_path: Path) -> None:
    toy, lengths = agreement_grammar(), LengthRange(3, 9)
    pairs = make_pairs(toy, lengths, PairSettings(number=6, tries=60, tolerance=0.8)).pairs
    write_pairs(tmp_path / "pairs.jsonl", pairs)
    lines = (tmp_path / "pairs.jsonl").read_text("utf-8").splitlines()
    assert "Infinity" not in "".join(lines)
    first = json.loads(lines[0])
    assert first["sentence_good"] == " ".join(pairs[0].a)
    assert first["log_odds"] == pairs[0].log_odds
    assert {json.loads(line)["impossible"] for line in lines} == {None, "bad"}
    assert with_truth(read_pairs(tmp_path / "pairs.jsonl", toy.vocabulary, lengths), Lexicon(toy, lengths)) == pairs


def beside(bad: str | None) -> str:
    """A line with this as the bad sentence."""
    return json.dumps({"sentence_good": "the dog sleeps"} | ({} if bad is None else {"sentence_bad": bad}))


GOOD = beside("the dog sleep")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("the dog sleeps", "this line is not JSON: expected ident; a pair is"),
        ("[1, 2]", "this line is damaged: expected values by name, not [1, 2]; a pair is"),
        (beside(None), "this line lacks sentence_bad"),
        (beside(" "), "this line lacks sentence_bad"),
        (beside("the Dog sleep"), "the word 'Dog' is not one of the grammar"),
        (beside("the dog"), "a sentence of 2 words is outside the length range 3..9"),
        (beside("the  dog sleeps"), "the two sentences of the pair are the same"),
        (GOOD[:-1] + ', "phenomenon": 3}', "the phenomenon of a pair is a text"),
        (GOOD[:-1] + ', "phenomenon": "all"}', "the phenomenon of a pair is a text, not 'all'"),
        (GOOD[:-1] + ', "source": "x"}', "the source of a pair is a whole number"),
        (GOOD[:-1] + f', "source": {10**30}}}', "the source of a pair is a whole number of at most 18 digits"),
        (GOOD[:-1] + ', "facts": {"x": NaN}}', "this line is not JSON"),
        (GOOD[:-1] + ', "facts": {"y": 1, "x": -1e999}}', "this line holds a number that is too large"),
        (GOOD[:-1] + ', "strata": {"log_odds": "x"}}', "a stratum cannot be named 'log_odds'"),
        (GOOD[:-1] + ', "strata": {"choice": 3}}', "a stratum cannot be named 'choice'"),
        (GOOD[:-1] + r', "phenomenon": "\ud800"}', "this line is not JSON"),
        (GOOD[:-1] + r', "strata": {"x": "\udfff"}}', "this line is not JSON"),
        (GOOD[:-1] + ', "drawn": "left"}', "the drawn side of a pair is good, bad or null"),
        (GOOD[:-1] + ', "strata": ["x"]}', "strata are texts"),
    ],
)  # fmt: skip
def test_bad_lines_are_named(tmp_path: Path, line: str, message: str) -> None:
    file = tmp_path / "pairs.jsonl"
    file.write_text(f"{GOOD}\n\n{line}\n", "utf-8")
    with pytest.raises(InputError) as caught:
        read_pairs(file, agreement_grammar().vocabulary, LengthRange(3, 9))
    assert message in str(caught.value)
    assert str(caught.value).endswith(f"({file}:3)")


def test_a_file_without_pairs(tmp_path: Path) -> None:
    (tmp_path / "none").write_text("\n", "utf-8")
    with pytest.raises(InputError, match="the file holds no pairs"):
        read_pairs(tmp_path / "none", ["a"])
    with pytest.raises(InputError, match="no such file"):
        read_pairs(tmp_path / "nothing", ["a"])


def named(phenomenon: str, log_p_b: float | None = -2.0) -> Pair:
    return Pair(("a",), ("b",), phenomenon, -1.0, log_p_b, 0.0)


def test_pairs_of_a_file_are_filtered() -> None:
    x, y, z, other = named("x", None), named("x"), named("x"), named("o")
    pairs = [x, other, y, z]
    assert filter_pairs(pairs, "f") == pairs
    assert filter_pairs(pairs, "f", phenomena=["x"]) == [x, y, z]
    assert filter_pairs(pairs, "f", number=2) == [x, other, y]
    assert filter_pairs(pairs, "f", number=1, possible=True) == [other, y]
    with pytest.raises(InputError, match=r"the file has no pairs of 'w'; it has x, o \(f\)$"):
        filter_pairs(pairs, "f", phenomena=["x", "w"])
    with pytest.raises(InputError, match=r"both sentences of none of these pairs \(f\)$"):
        filter_pairs([x], "f", possible=True)


def test_where_sentences_differ() -> None:
    assert differing(["a", "b", "c"], ["a", "x", "c"]) == (1,)
    assert differing(["a", "b", "c"], ["a", "b"]) == ()


@pytest.mark.parametrize(
    "wrong",
    [
        {"number": 0},
        {"tolerance": 0.0},
        {"tolerance": math.nan},
        {"attached": 1.0},
        {"phenomena": ("island",)},
        {"phenomena": ("attachment", "attachment")},
        {"phenomena": ()},
        {"file": "pairs.jsonl", "tries": 11},
    ],
)
def test_bad_settings(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError) as caught:
        PairSettings(**wrong)  # type: ignore[arg-type]
    assert list(wrong)[-1] in str(caught.value)


# -- measures ----------------------------------------------------------------------------------------


def sigma(x: float) -> float:
    return 1.0 / (1.0 + math.exp(-x))


def value_of(truth: Sequence[float], model: Sequence[float], unigram: Sequence[float]) -> dict[str, float]:
    sums = pair_sums(np.array(truth), np.array(model), np.array(unigram))
    return {name: found.value for name, found in measures(by_source(sums, range(len(truth))), seed=0).items()}


def test_measures_by_hand() -> None:
    truth, model = [2.0, -1.0, INFINITY, 0.0, 4.0], [1.0, 0.5, 3.0, 2.0, -INFINITY]
    unigram = [-1.0, -0.5, math.nan, 0.0, 0.0]
    found = value_of(truth, model, unigram)
    assert found["accuracy"] == pytest.approx(2 / 4)
    assert found["unigram_accuracy"] == pytest.approx(1.5 / 3)
    assert found["slope"] == pytest.approx((2.0 - 0.5) / (4 + 1))
    assert found["correlation"] == pytest.approx(1.5 / math.sqrt(5 * (1 + 0.25 + 4)))
    assert found["log_odds_error"] == pytest.approx((1 + 1.5 + 2) / 3)
    assert found["choice"] == pytest.approx((sigma(1) + sigma(-0.5) + sigma(3) + 0.5 + 0) / 5)
    assert found["choice_truth"] == pytest.approx((sigma(2) + sigma(1) + 1 + 0.5 + sigma(4)) / 5)
    errors = [sigma(2) - sigma(1), sigma(0.5) - sigma(-1), 1 - sigma(3), sigma(2) - 0.5, sigma(4)]
    assert found["choice_error"] == pytest.approx(sum(errors) / 5)
    assert found["context"] == pytest.approx((1.0 + 1.0 - (0.5 + 0.5)) / 2)
    assert found["context_truth"] == pytest.approx((2.0 + 1.0 + (1.0 - 0.5)) / 2)


def test_no_preference_counts_half() -> None:
    """A tie, and a pair of which the model can make neither side."""
    found = value_of([2.0, 2.0, INFINITY, -1.0, 1.0], [0.0, math.nan, math.nan, 1e-10, 3.0], [math.nan] * 5)
    assert found["accuracy"] == pytest.approx(3 / 5)
    assert found["choice"] == pytest.approx((4 * 0.5 + sigma(3)) / 5)
    assert found["choice_truth"] == pytest.approx((2 * sigma(2) + 1 + 2 * sigma(1)) / 5)
    errors = [2 * (sigma(2) - 0.5), 0.5, sigma(1) - 0.5, sigma(3) - sigma(1)]
    assert found["choice_error"] == pytest.approx(sum(errors) / 5)
    assert found["slope"] == pytest.approx(3 / (4 + 1 + 1))
    assert found["log_odds_error"] == pytest.approx((2 + 1 + 2) / 3)


sizes = st.one_of(
    st.sampled_from([0.0, 1e-10, -1e-10, INFINITY, -INFINITY]), st.floats(-9, 9).filter(lambda x: abs(x) > 1e-3)
)
row = st.tuples(sizes, st.one_of(sizes, st.just(math.nan)), st.one_of(sizes, st.just(-INFINITY)), st.booleans())


@pytest.mark.long
@given(st.lists(row, min_size=1, max_size=9), st.integers(1, 9))
@settings(max_examples=40)
def test_which_side_is_named_first_does_not_matter(rows: list[tuple[float, float, float, bool]], sources: int) -> None:
    """Every number of the evaluation is the same when the sides of any pairs are exchanged."""

    def evaluation(exchanged: bool) -> PairEvaluation:
        signs = [-1.0 if exchanged and turned else 1.0 for *_, turned in rows]
        pairs = [
            Pair(("a",), ("b",), "pq"[i % 2], -1.0, -1.0, s * u if math.isfinite(u) else None, source=i % sources)
            for i, ((_, _, u, _), s) in enumerate(zip(rows, signs, strict=True))
        ]
        truth, odds = (np.array([s * r[k] for r, s in zip(rows, signs, strict=True)]) for k in (0, 1))
        return PairEvaluation(
            model="m", objective="causal", pairs=pairs, truth=truth, odds=odds, left_out={}, parts={}, seed=1
        )

    first, second = (evaluation(exchanged).scores() for exchanged in (False, True))
    assert [(of, s.name) for of, s in first] == [(of, s.name) for of, s in second]
    for (_, one), (_, other) in zip(first, second, strict=True):
        assert one.value == pytest.approx(other.value, abs=1e-9)
        assert (one.low, one.high) == (pytest.approx(other.low, abs=1e-9), pytest.approx(other.high, abs=1e-9))


def test_calibration_without_a_preference() -> None:
    """Ties, and pairs of which the model can make neither side, are chosen with one half, rightly."""
    pairs = [Pair(("a",), ("b",), "p", -1.0, -1.0, 0.0, source=i) for i in range(4)]
    truth, odds = np.array([3.0, -5.0, INFINITY, 0.4]), np.array([0.0, 1e-12, math.nan, -0.3])
    records = PairEvaluation(
        model="m", objective="causal", pairs=pairs, truth=truth, odds=odds, left_out={}, parts={}, seed=1
    ).records()
    values = {(r["by"], r["group"], r["name"]): r["value"] for r in records if r["phenomenon"] == "p" and "by" in r}
    assert values["choice", "0.5-0.6", "pairs"] == 4
    assert values["choice", "0.5-0.6", "choice_of_model"] == pytest.approx((3 * 0.5 + sigma(0.3)) / 4)
    assert values["choice", "0.5-0.6", "choice_of_truth"] == pytest.approx((3 * 0.5 + sigma(-0.4)) / 4)


def test_pairs_of_one_sentence_are_resampled_together() -> None:
    """Pairs that go against each other within every sentence leave nothing to vary between sentences."""
    model = np.tile([3.0, -1.0], 12)
    sums = pair_sums(np.full(24, 1.0), model, np.zeros(24))
    together = measures(by_source(sums, np.repeat(np.arange(12), 2).tolist()), ("slope",), seed=0)["slope"]
    apart = measures(by_source(sums, range(24)), ("slope",), seed=0)["slope"]
    assert tuple(together) == (1.0, 1.0, 1.0)
    assert apart.low is not None and apart.high is not None
    assert apart.high - apart.low == pytest.approx(2 * 2.07 * 2.0 / math.sqrt(23), rel=0.15)
    few = measures(by_source(sums[:18], np.repeat(np.arange(9), 2).tolist()), ("slope",), seed=0)["slope"]
    assert tuple(few) == (1.0, None, None)
    assert sums.shape == (24, len(COLUMNS))


def test_a_model_by_hand() -> None:
    """A table of next words: unknown words, impossible sentences, ties, and the odds of the rest."""
    toy = agreement_grammar()
    table = Table(
        {
            "<s>": {"the": 1.0},
            "the": {"dog": 0.5, "cat": 0.5},
            "dog": {"sleeps": 0.75, "sleep": 0.25},
            "cat": {"sleeps": 1.0},
            "sleeps": {"</s>": 1.0},
            "sleep": {"</s>": 1.0},
            "<unk>": {},
        },
        ("the", "dog", "cat", "sleeps", "sleep"),
    )
    texts = [
        ("the dog sleeps", "the dog sleep"),
        ("the cat sleeps", "the cat sleep"),
        ("the man sleeps", "the man sleep"),
        ("dog the sleeps", "sleeps dog the"),
        ("the cat dog", "the dog cat"),
        ("the dog dog sleeps", "dog dog"),
    ]
    pairs = [
        Pair(tuple(a.split()), tuple(b.split()), "p", None, None, None, source=i) for i, (a, b) in enumerate(texts)
    ]
    found = evaluate_pairs(table, with_truth(pairs, Lexicon(toy, None)), toy)
    assert found.left_out == {
        "a word is outside the model's vocabulary": 1,
        "the grammar can make neither sentence": 3,
    }
    assert found.odds.tolist() == [pytest.approx(math.log(3)), INFINITY]
    truth = toy.log_prob(texts[0][0].split()) - toy.log_prob(texts[0][1].split())
    assert found.truth[0] == pytest.approx(truth, abs=1e-12)
    names = {r["name"]: r["value"] for r in found.records() if r["phenomenon"] == "p" and "by" not in r}
    assert (names["pairs"], names["impossible"]) == (2, 0)
    assert (names["impossible_for_model"], names["infinite_for_model"]) == (0, 1)
    assert names["slope"] == pytest.approx(math.log(3) / truth)
    assert [point["model"] for point in found.points()] == [pytest.approx(math.log(3)), None]
    records = found.records()
    assert all("|grammar:" in r["signature"] and "objective:causal" in r["signature"] for r in records)
    json.dumps(records, allow_nan=False)
    choices = {
        (r["group"], r["name"]): r["value"] for r in records if r.get("by") == "choice" and r["phenomenon"] == "p"
    }
    assert choices["0.7-0.8", "choice_of_model"] == pytest.approx(0.75)
    assert choices["0.7-0.8", "choice_of_truth"] == pytest.approx(sigma(truth))
    assert choices["0.9-1", "choice_of_model"] == 1.0
    means = {r["name"]: r["value"] for r in records if r.get("by") == "log_odds" and r["phenomenon"] == "p"}
    assert means["truth_log_odds"] == pytest.approx(truth)  # the other has no finite odds
    assert means["model_log_odds"] == pytest.approx(math.log(3))


def test_a_model_that_can_make_neither_prefers_none() -> None:
    toy = agreement_grammar()
    table = Table({"<s>": {}, "the": {}, "dog": {}, "sleeps": {}, "sleep": {}}, ("the", "dog", "sleeps", "sleep"))
    pair = Pair(("the", "dog", "sleeps"), ("the", "dog", "sleep"), "p", -1.0, -2.0, 0.0)
    found = evaluate_pairs(table, [pair], toy)
    values = {r["name"]: r["value"] for r in found.records() if r["phenomenon"] == "p" and "by" not in r}
    assert (values["pairs"], values["impossible_for_model"], values["infinite_for_model"]) == (1, 1, 0)
    assert (values["accuracy"], values["choice"]) == (0.5, 0.5)
    assert not {"slope", "correlation", "log_odds_error", "context"} & values.keys()
    assert found.points() == [{"phenomenon": "p", "truth": 1.0, "model": None}]
    assert found.left_out == {}


def test_a_model_that_knows_no_pair_is_told() -> None:
    pair = Pair(("the", "dog", "sleeps"), ("the", "dog", "sleep"), "p", -1.0, -2.0, 0.0)
    both = Pair(("the", "the"), ("the", "the", "the"), "p", None, None, 0.0)
    with pytest.raises(NoPairsError) as caught:
        evaluate_pairs(Table({"<s>": {}, "the": {}}, ("the",)), [pair, both], agreement_grammar())
    assert caught.value.left_out == {
        "a word is outside the model's vocabulary": 1,
        "the grammar can make neither sentence": 1,
    }
    assert str(caught.value) == (
        "none of the 2 pairs can be compared: 1 where a word is outside the model's vocabulary;"
        " 1 where the grammar can make neither sentence"
    )


def test_numbers_are_reported_in_ranges() -> None:
    a, b = ("the", "dog", "sleeps"), ("the", "dog", "sleep")
    pairs = [
        Pair(a, b, "p", -1.0, -2.0, 0.0, (2,), i, "a", {"distance": distance, "x": x})
        for i, (distance, x) in enumerate([(0, True), (4, False), (5, None), (17, None)])
    ]
    table = Table(
        {"<s>": {"the": 1}, "the": {"dog": 1}, "dog": {"sleeps": 1}, "sleeps": {"</s>": 1}, "sleep": {}},
        ("the", "dog", "sleeps", "sleep"),
    )
    records = evaluate_pairs(table, pairs, agreement_grammar()).records()
    counted = [r for r in records if r["name"] == "pairs" and r.get("by") in ("distance", "x")]
    counts = {(r["by"], r["group"]): r["value"] for r in counted}
    assert counts == {
        **{("distance", "0"): 1, ("distance", "3-5"): 2, ("distance", "6+"): 1},
        **{("x", "no"): 1, ("x", "yes"): 1},
    }
