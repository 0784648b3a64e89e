"""Texts made ready for sums over their cuts."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from enumerated_cuts import log_sum
from hypothesis import given, settings
from hypothesis import strategies as st
from piece_models import AB_PIECES, END, ToyPieceModel, cuts_of, toy_inventory

from truesource.evaluation.core.signature import parts_of
from truesource.evaluation.tokenisation import EstimatorSettings
from truesource.evaluation.tokenisation.canonical import caching, local_canonicality, token_log_probs
from truesource.evaluation.tokenisation.documents import (
    Document,
    Documents,
    Unreadable,
    WithinWindow,
    beyond_window,
    check_window,
    documents,
    every_segmentation_fits,
    fitting,
    longest_segmentation,
)
from truesource.evaluation.tokenisation.equal_cost import reference_log_p
from truesource.evaluation.tokenisation.estimators.exact import exact_sum
from truesource.evaluation.tokenisation.estimators.registry import ESTIMATORS
from truesource.evaluation.tokenisation.lattice import LatticeBuilder
from truesource.evaluation.tokenisation.results import evaluate_documents
from truesource.evaluation.tokenisation.summaries import order_curves
from truesource.evaluation.tokenisation.words import canonical_log_probs, word_log_probs
from truesource.grammar.support.errors import InputError

INVENTORY = toy_inventory(AB_PIECES)
BUILDER = LatticeBuilder(INVENTORY)
MODEL = ToyPieceModel(INVENTORY)


def test_texts_that_cannot_be_read_are_set_aside_and_counted() -> None:
    found = documents(MODEL, ["ab ba", "a cab, b", "  aba\t ab ", "é"], BUILDER)
    assert len(found) == 2
    assert found.numbers == (0, 2)
    assert found.unreadable == (Unreadable(1, (",", "c")), Unreadable(3, ("é",)))
    assert [document.text.spelling for document in found.documents] == ["▁ab▁ba", "▁aba▁ab"]
    assert found.documents[1].text.original == "  aba\t ab "


def test_the_best_cut_is_the_tokenisers_own() -> None:
    document = documents(MODEL, ["aba abab ab"], BUILDER).documents[0]
    assert document.lattice.piece[document.best].tolist() == document.text.canonical.tolist()
    pieces = [INVENTORY.pieces[piece] for piece in document.text.canonical]
    assert "".join(pieces) == document.text.spelling
    reversed_scores = LatticeBuilder(INVENTORY, -BUILDER.scores)  # what Q prefers is another matter
    other = documents(MODEL, ["aba abab ab"], reversed_scores).documents[0]
    assert np.array_equal(other.best, document.best)


def test_an_empty_text_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "texts.txt"
    with pytest.raises(InputError, match=r"^text 2: the text is empty$"):
        documents(MODEL, ["ab", " \t"], BUILDER)
    with pytest.raises(InputError, match=r"^the text is empty \(.*texts.txt:2\)$") as caught:
        documents(MODEL, ["ab", ""], BUILDER, path)
    assert (caught.value.path, caught.value.line) == (path, 2)


def test_there_must_be_something_to_read() -> None:
    with pytest.raises(InputError, match="there are no texts"):
        documents(MODEL, [], BUILDER)
    with pytest.raises(InputError, match="none of the 2 texts can be segmented into pieces: no piece spells 'c', 'd'"):
        documents(MODEL, ["abc", "da"], BUILDER)


def test_pieces_with_one_number_are_refused() -> None:
    """They would make one row of tokens of two cuts, which a sum must not count twice."""
    ids = INVENTORY.ids.copy()
    ids[[5, 9]] = 77
    model = ToyPieceModel(replace(INVENTORY, ids=ids))
    with pytest.raises(InputError, match="the pieces 'ab' and '▁aba' have the same number 77"):
        documents(model, ["ab"], LatticeBuilder(model.pieces.inventory))


def test_a_lattice_of_other_pieces_is_an_error() -> None:
    other = toy_inventory({**AB_PIECES, "c": -4.0})
    with pytest.raises(ValueError, match="pieces of the model's tokeniser"):
        documents(MODEL, ["ab"], LatticeBuilder(other))


def test_texts_that_do_not_fit_are_set_aside() -> None:
    found = documents(MODEL, ["abab", "x", "ab", "ababab", "a"], BUILDER)
    assert [len(document.best) for document in found.documents] == [2, 1, 3, 1]
    narrow = ToyPieceModel(INVENTORY, longest=3)  # one of them for the token before the text
    fit = fitting(narrow, found)
    assert (fit.numbers, fit.too_long, fit.unreadable) == ((0, 2, 4), (3,), found.unreadable)
    assert [document.text.original for document in fit.documents] == ["abab", "ab", "a"]
    assert fitting(MODEL, found) == found
    assert fitting(ToyPieceModel(INVENTORY, longest=2), fit).too_long == (0, 3)
    with pytest.raises(InputError, match="the window of toy, 1 tokens, is too short for all of the texts"):
        fitting(ToyPieceModel(INVENTORY, longest=1), found)


# -- texts with cuts that do not fit a model's window: sums over those that fit, against enumeration --

WORD = "abababa"  #: 80 cuts, of up to 8 pieces
ALL = EstimatorSettings(samples=80, candidates=80, particles=10_000, most_prefixes=10_000)
SUMS = ("exact", "auto", "nbest", "wor", "wor1", "beam", "dpf")  #: with these settings, over all cuts


def document_of(model: ToyPieceModel, text: str = WORD) -> Document:
    return documents(model, [text], BUILDER).documents[0]


def narrow(pieces: int, *, order: int | None = None, seed: int = 4, end: bool = True) -> ToyPieceModel:
    """A model that reads so many pieces after the token before the text."""
    return ToyPieceModel(INVENTORY, order=order, seed=seed, spread=0.5, longest=pieces + 1, end=end)


def fitting_sum(model: ToyPieceModel, document: Document) -> float:
    """Log of the sum of P over the cuts that fit, one by one."""
    assert model.longest is not None
    most = model.longest - model.around[0]
    return log_sum(p for cut, p in model.brute(document.text.spelling).items() if len(cut) <= most)


def full_sum(model: ToyPieceModel, document: Document) -> float:
    """Log of the sum of P over the different beginnings that fill the window before the text is over."""
    assert model.longest is not None
    most = model.longest - model.around[0]
    begun = {cut[:most] for cut in model.brute(document.text.spelling) if len(cut) > most}
    ids = INVENTORY.ids
    found = []
    for cut in begun:
        tokens = ids[list(cut)].tolist()
        found.append(sum(model.expects(tokens[:i])[token] for i, token in enumerate(tokens)))
    return log_sum(found)


# -- what fits ----------------------------------------------------------------------------------------


@given(st.lists(st.text("ab", min_size=1, max_size=6), min_size=1, max_size=2).map(" ".join))
@settings(max_examples=50, deadline=None)
def test_the_longest_cut_is_that_of_most_pieces(text: str) -> None:
    inventory = toy_inventory(
        {piece: score for piece, score in AB_PIECES.items() if piece not in ("_", "a")} | {"aa": -1}
    )
    spelling = "".join("▁" + word for word in text.split())
    lengths = [len(cut) for cut in cuts_of(inventory, spelling)]
    if lengths:
        assert longest_segmentation(LatticeBuilder(inventory).build(spelling)) == max(lengths)


def test_the_window_must_hold_the_own_cut_and_the_token_before_it() -> None:
    model = ToyPieceModel(INVENTORY)
    document = document_of(model, "abab")  # 5 characters, each a piece; two pieces in the own cut
    assert len(document.best) == 2
    for end in (True, False):
        for longest, every in ((None, True), (6, True), (5, False), (3, False)):
            wide = ToyPieceModel(INVENTORY, end=end, longest=longest)
            check_window(wide, document)
            assert every_segmentation_fits(wide, document) == every
            assert beyond_window(wide, [document, document]) == (0 if every else 2)
        with pytest.raises(InputError, match="of a text has 3 tokens, but the model reads 2; divide the text"):
            check_window(ToyPieceModel(INVENTORY, end=end, longest=2), document)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_no_estimator_goes_without_the_own_cut(name: str) -> None:
    model = narrow(len(document_of(ToyPieceModel(INVENTORY)).best) - 1)
    with pytest.raises(InputError, match="the window of toy is too short: the canonical tokenisation of a text has"):
        ESTIMATORS[name].run(model, document_of(model), EstimatorSettings(samples=5))


# -- sums ---------------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("name", SUMS)
@pytest.mark.parametrize(("order", "end"), [(None, True), (None, False), (3, True), (1, True)])
@pytest.mark.parametrize("text", [WORD, "abab ba"])
def test_sums_over_all_cuts_are_lower_bounds_of_those_that_fit(
    text: str, order: int | None, end: bool, name: str
) -> None:
    wide = ToyPieceModel(INVENTORY, order=order, seed=4, spread=0.5, end=end)
    document = document_of(wide, text)
    whole = ESTIMATORS[name].run(wide, document, ALL)
    for pieces in range(len(document.best), document.lattice.n + 1):
        model = narrow(pieces, order=order, end=end)
        found = ESTIMATORS[name].run(model, document, ALL)
        truth = fitting_sum(model, document)
        assert found.log_p == pytest.approx(truth, abs=1e-10)
        assert found.log_lower == pytest.approx(truth, abs=1e-10)
        if pieces == document.lattice.n:
            assert found == whole
            assert found.bound == "exact"
        else:
            assert found.bound == "lower"
            assert found.log_p < whole.log_p
            assert found.interval is None
            assert found.log_upper is None or found.log_upper >= whole.log_p - 1e-12


@pytest.mark.long
@given(
    st.lists(st.text("ab", min_size=1, max_size=6), min_size=1, max_size=2).map(" ".join),
    st.integers(1, 8),
    st.sampled_from([1, 2, 3, None]),
    st.integers(0, 99),
)
@settings(max_examples=60, deadline=None)
def test_one_pass_finds_the_sum_of_what_fits(text: str, more: int, order: int | None, seed: int) -> None:
    """What is missing is at most the probability of the beginnings that fill the window."""
    document = document_of(ToyPieceModel(INVENTORY), text)
    model = narrow(len(document.best) + more - 1, order=order, seed=seed)
    found = exact_sum(model, document, EstimatorSettings())
    assert found.log_p == pytest.approx(fitting_sum(model, document), abs=1e-10)
    assert found.log_dropped == pytest.approx(full_sum(model, document), abs=1e-10)
    assert found.log_p - 1e-12 <= model.brute_log_p(document.text.spelling) <= found.log_upper + 1e-12


@pytest.mark.parametrize("tolerance", [0.0, 1e-3, 0.5])
def test_the_bracket_holds_the_whole_sum(tolerance: float) -> None:
    model = narrow(5)
    document = document_of(model)
    found = ESTIMATORS["bracket"].run(model, document, replace(ALL, tolerance=tolerance))
    assert found.bound == "lower"
    assert found.log_upper is not None
    truth = fitting_sum(model, document)
    assert found.log_p <= truth + 1e-12
    assert model.brute_log_p(document.text.spelling) <= found.log_upper + 1e-12
    own = model.log_prob_of(INVENTORY.ids[document.text.canonical].tolist())
    left = math.exp(found.log_upper) - math.exp(found.log_p) - math.exp(full_sum(model, document))
    assert left <= tolerance * math.exp(own) * (1.0 + 1e-9) + 1e-15


@pytest.mark.long
@pytest.mark.parametrize("pieces", [4, 5])
@pytest.mark.parametrize("name", ["wr", "wr1", "wor", "wor1", "block", "dpf", "guided"])
def test_draws_that_do_not_fit_weigh_nothing(name: str, pieces: int) -> None:
    """Unbiased for the sum over the cuts that fit, which redrawn ones would exceed."""
    model = narrow(pieces)
    document = document_of(model, "abab ba")
    truth = fitting_sum(model, document)
    assert truth < model.brute_log_p(document.text.spelling) - 0.01
    few = EstimatorSettings(samples=4, candidates=2, particles=3, replicates=2)
    found = [ESTIMATORS[name].run(model, document, replace(few, seed=seed)) for seed in range(800)]
    ratios = np.exp([estimate.log_p - truth for estimate in found])
    assert abs((ratios.mean() - 1.0) / (ratios.std(ddof=1) / math.sqrt(len(ratios)))) < 4.0
    assert {estimate.bound for estimate in found} == {"part"}
    assert all(estimate.interval is None and estimate.log_upper is None for estimate in found)
    assert all(estimate.log_lower <= truth + 1e-12 for estimate in found)


@pytest.mark.parametrize("name", ["consistent-nbest", "consistent-wor"])
def test_cuts_that_are_alike_and_fit(name: str) -> None:
    wide = ToyPieceModel(INVENTORY, order=None, seed=4, spread=0.5)
    document = document_of(wide, "aba ba")  # no word twice: every cut is consistent
    assert ESTIMATORS[name].run(wide, document, ALL).bound == "exact"
    found = ESTIMATORS[name].run(narrow(5), document, ALL)
    assert found.bound == "lower"
    assert found.log_p == pytest.approx(fitting_sum(narrow(5), document), abs=1e-10)
    few = ESTIMATORS["consistent-wr"].run(narrow(5), document, EstimatorSettings(samples=5))
    assert few.bound == "part"


def test_cuts_that_are_not_read_cost_nothing() -> None:
    model = narrow(4)
    document = document_of(model)
    lengths = [len(cut) for cut in cuts_of(INVENTORY, document.text.spelling) if len(cut) <= 4]
    found = ESTIMATORS["nbest"].run(model, document, ALL)
    assert (found.cuts, found.steps) == (len(lengths), sum(lengths) + len(lengths))
    assert (model.rows_scored, model.tokens_scored) == (len(lengths), sum(lengths))


# -- words --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pieces", [4, 5, 6, 8])
def test_words_and_the_end_add_up_to_the_sum_of_what_fits(pieces: int) -> None:
    """Each word's sum is over the beginnings that fit, whether or not any cut goes on from them."""
    model = narrow(pieces)
    document = document_of(model, "abab ba")
    found = word_log_probs(model, document, ALL)
    assert found.log_end is not None
    assert found.log_p.sum() + found.log_end == pytest.approx(fitting_sum(model, document), abs=1e-10)
    assert found.exact == (pieces == 8)
    opening = [int(i) for piece, i in zip(INVENTORY.pieces, INVENTORY.ids, strict=True) if piece.startswith("▁")]
    sums = []
    for cut in cuts_of(INVENTORY, "▁abab"):
        tokens = INVENTORY.ids[list(cut)].tolist()
        if len(cut) <= pieces:
            after = model.expects(tokens)
            begun = sum(model.expects(tokens[:i])[token] for i, token in enumerate(tokens))
            sums.append(begun + log_sum([after[END], *(after[i] for i in opening)]))
    assert found.log_p[0] == pytest.approx(log_sum(sums), abs=1e-10)


def test_after_the_own_cut_the_end_is_as_without_a_window() -> None:
    """The own cut of the text fills the window: what follows it has a probability all the same."""
    wide = ToyPieceModel(INVENTORY, order=None, seed=4, spread=0.5)
    document = document_of(wide, "abab ba")
    model = narrow(len(document.best))
    expected, found = (canonical_log_probs(one, document) for one in (wide, model))
    assert found.log_end == pytest.approx(expected.log_end, abs=1e-12)
    assert found.log_p == pytest.approx(expected.log_p, abs=1e-12)


@pytest.mark.long
def test_particles_that_are_all_too_long_are_said_to_be() -> None:
    model = narrow(4)
    document = document_of(model, "abab ba")
    few = EstimatorSettings(particles=1, candidates=2, replicates=1)
    messages = set()
    for seed in range(50):
        try:
            word_log_probs(model, document, replace(few, seed=seed))
        except InputError as error:
            messages.add(str(error))
    assert len(messages) == 1
    assert messages.pop().startswith("all explored prefixes of segmentations are longer than the model reads")


# -- over documents -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def read() -> Documents:
    return documents(ToyPieceModel(INVENTORY), ["ab", WORD, "abab ba"], BUILDER)


def test_runs_say_that_there_is_a_window(read: Documents) -> None:
    model = narrow(5)
    found = evaluate_documents(
        model, read, ["exact", "wr", "dpf"], EstimatorSettings(samples=40, candidates=8, particles=16)
    )
    totals = {name: found.total(name) for name in found.runs}
    assert {name: total.bound for name, total in totals.items()} == {
        "one-best": "lower", "exact": "lower", "wr": "part", "dpf": "part",
    }  # fmt: skip
    assert [estimate.bound for estimate in found.estimates["exact"]] == ["exact", "lower", "lower"]
    assert totals["wr"].low is None
    assert totals["exact"].log_p == pytest.approx(sum(fitting_sum(model, one) for one in read.documents), abs=1e-10)
    assert "window:6" in found.signed("exact").split("|")
    assert "window" not in evaluate_documents(narrow(8), read, ["exact"], EstimatorSettings()).signed("exact")


def test_a_text_none_of_whose_draws_fits_is_left_out() -> None:
    model = narrow(2)
    read = documents(model, ["a", "abab"], BUILDER)
    assert [every_segmentation_fits(model, one) for one in read.documents] == [True, False]
    found = evaluate_documents(model, read, ["wr"], EstimatorSettings(samples=1, b=0.0))
    assert [(text.number, text.reason) for text in found.left_out] == [
        (1, "wr: all segmentations seen have more tokens than the 3 that the model reads, or probability zero")
    ]


def test_tables_are_of_what_fits(read: Documents) -> None:
    model, wide = narrow(5), ToyPieceModel(INVENTORY, order=None, seed=4, spread=0.5)
    reference, _ = reference_log_p(model, read, ALL)
    assert reference == pytest.approx([fitting_sum(model, one) for one in read.documents], abs=1e-10)
    curve = [record["log_p"] for record in order_curves(model, read, 200) if record["order"] == "tokeniser"]
    assert curve[-1] == pytest.approx(reference.sum(), abs=1e-10)
    found, whole = (local_canonicality(one, read, BUILDER)[0] for one in (model, wide))
    assert found["compared"] == whole["compared"]
    assert "window:6" in found["signature"].split("|")


def test_losses_of_words_leave_out_draws_that_do_not_fit() -> None:
    read = documents(ToyPieceModel(INVENTORY), ["ab ba ab"], BUILDER)
    model = narrow(5)
    few = EstimatorSettings(samples=40)
    found, whole = (parts_of(caching(one, read, BUILDER, few)[0]["signature"]) for one in (model, narrow(8)))
    assert int(whole["impossible"]) == 0 < int(found["impossible"]) < 40
    rows = [INVENTORY.ids[list(cut)] for cut in cuts_of(INVENTORY, "▁ab▁ba▁ab")]
    for values in token_log_probs(model, rows):
        assert np.isfinite(values[:5]).all() and not np.isfinite(values[5:]).any()


def test_the_scorer_is_the_model_within_the_window() -> None:
    model = narrow(2, order=1)  # it remembers nothing: all of its contexts are one
    scorer = WithinWindow.of(model)
    begin = np.full(2, scorer.begin())
    one = scorer.extend(begin, INVENTORY.ids[:2])
    two = scorer.extend(one, INVENTORY.ids[:2])
    assert len(set(begin.tolist()) | set(one.tolist()) | set(two.tolist())) == 3
    expected = [model.expects([])[int(token)] for token in INVENTORY.ids[:2]]
    assert scorer.log_prob(one, INVENTORY.ids[:2]).tolist() == expected
    assert scorer.log_prob(two, INVENTORY.ids[:2]).tolist() == [-math.inf] * 2
    assert scorer.log_any(two, INVENTORY.ids[:2]) == pytest.approx([log_sum(expected)] * 2, abs=1e-12)
    assert np.isfinite(scorer.log_end(two)).all()
    assert scorer.full(np.concatenate([one, two])).tolist() == [False, False, True, True]
    with pytest.raises(ValueError, match="longer than the window"):
        scorer.extend(two, INVENTORY.ids[:2])
    assert not len(scorer.log_prob(two[:0], two[:0]))
