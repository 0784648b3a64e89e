"""Probabilities of words, summed over their cuts."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from guided_estimates import AB, THREE_WORDS, document_of
from piece_models import BOS, END, MARKER, ToyPieceModel, cuts_of, log_sum, toy_inventory
from reference_inference import all_strings, rules_of

from truesource.evaluation.core.exclusion import Exclusion
from truesource.evaluation.tokenisation import EstimatorSettings
from truesource.evaluation.tokenisation.documents import documents
from truesource.evaluation.tokenisation.estimators.sequential import particle_filter
from truesource.evaluation.tokenisation.lattice import LatticeBuilder
from truesource.evaluation.tokenisation.results import evaluate_documents, seed_of
from truesource.evaluation.tokenisation.words import canonical_log_probs, word_log_probs, word_surprisals
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.errors import InputError

ALL = EstimatorSettings(candidates=100, particles=10**4)
NETWORK = ToyPieceModel(AB, order=None, seed=2)
TRIGRAM = ToyPieceModel(AB, order=3, seed=2)

#: pieces of the words a, b, aa, ab, ba, bb (ab has two cuts); after the second letter of a word none can follow
SHORT = toy_inventory({"_a": -1.0, "_b": -1.5, "a": -2.0, "b": -1.2, "_ab": -1.8})
WORDS = ("a", "b", "aa", "ab", "ba", "bb")


def closed_model(order: int | None) -> ToyPieceModel:
    number = {piece: int(token) for piece, token in zip(SHORT.pieces, SHORT.ids, strict=True)}
    inner = [number["a"], number["b"]]
    forbidden = {BOS: inner, **{number[piece]: inner for piece in ("a", "b", MARKER + "ab")}}
    return ToyPieceModel(SHORT, order=order, seed=6, forbidden=forbidden)


def boundary(model: ToyPieceModel, tokens: Sequence[int]) -> float:
    """Log probability that what follows begins a word or ends the text."""
    inventory = model.pieces.inventory
    opening = [int(t) for piece, t in zip(inventory.pieces, inventory.ids, strict=True) if piece.startswith(MARKER)]
    expects = model.expects(tokens)
    return log_sum([expects[token] for token in opening] + ([expects[END]] if model.around[1] else []))


def whole_words(model: ToyPieceModel, words: Sequence[str]) -> float:
    """Log of the sum of P over all cuts of some words, with what follows beginning another or ending the text."""
    if not words:
        return 0.0
    ids = model.pieces.inventory.ids
    sums = []
    for cut in cuts_of(model.pieces.inventory, "".join(MARKER + word for word in words)):
        tokens = ids[list(cut)].tolist()
        sums.append(sum(model.expects(tokens[:i])[t] for i, t in enumerate(tokens)) + boundary(model, tokens))
    return log_sum(sums)


@pytest.mark.parametrize("model", [NETWORK, TRIGRAM], ids=["network", "trigram"])
def test_they_are_ratios_of_sums_over_all_cuts(model: ToyPieceModel) -> None:
    words = THREE_WORDS.split()
    found = word_log_probs(model, document_of(model, THREE_WORDS), ALL)
    sums = [whole_words(model, words[:t]) for t in range(4)]
    assert found.words == tuple(words)
    assert found.log_p == pytest.approx(np.diff(sums), abs=1e-11)
    assert found.log_end == pytest.approx(model.brute_log_p("▁abab▁ba▁aba") - sums[-1], abs=1e-11)
    assert found.exact


@pytest.mark.parametrize("order", [2, None])
def test_all_words_and_the_end_sum_to_one(order: int | None) -> None:
    model = closed_model(order)
    for before in ([], ["ab"], ["b", "ab"], ["ab", "ab", "aa"]):
        total = 0.0
        for word in WORDS:
            text = " ".join([*before, word])
            found = word_log_probs(model, document_of(model, text), ALL)
            assert found.exact
            total += math.exp(found.log_p[-1])
        if before:
            found = word_log_probs(model, document_of(model, " ".join(before)), ALL)
            assert found.log_end is not None
            total += math.exp(found.log_end)
        else:
            total += math.exp(model.expects([])[END])  # a text of no words
        assert total == pytest.approx(1.0, abs=1e-12)


def test_without_the_sum_over_cuts_words_do_not_sum_to_one() -> None:
    """One candidate a word and no tail: as if every word were cut in its best way."""
    model = closed_model(None)
    settings = EstimatorSettings(candidates=1, tail=False)
    found = [word_log_probs(model, document_of(model, f"ab {word}"), settings) for word in WORDS]
    end = word_log_probs(model, document_of(model, "ab"), settings).log_end
    assert end is not None
    assert not found[3].exact
    assert sum(math.exp(x.log_p[-1]) for x in found) + math.exp(end) < 0.99


@pytest.mark.parametrize(
    "model", [NETWORK, TRIGRAM, ToyPieceModel(AB, end=False)], ids=["network", "trigram", "no-end"]
)
def test_with_one_cut(model: ToyPieceModel) -> None:
    words = THREE_WORDS.split()
    found = canonical_log_probs(model, document_of(model, THREE_WORDS))
    read: list[int] = []
    sums = [0.0]
    for word in words:
        read += AB.ids[model.pieces.read(word).canonical].tolist()
        own = math.fsum(model.expects(read[:i])[token] for i, token in enumerate(read))
        sums.append(own + boundary(model, read))
    assert found.words == tuple(words)
    assert found.log_p == pytest.approx(np.diff(sums), abs=1e-11)
    if model.around[1]:
        assert found.log_end is not None
        assert found.log_p.sum() + found.log_end == pytest.approx(model.log_prob_of(read), abs=1e-11)
    else:
        assert found.log_end is None
    assert not found.exact
    assert (found.log_p[0], found.exact) < (word_log_probs(model, document_of(model, THREE_WORDS), ALL).log_p[0], True)


@pytest.mark.parametrize("replicates", [1, 3])
def test_words_and_end_add_up_to_the_filters_estimate(replicates: int) -> None:
    settings = EstimatorSettings(candidates=4, particles=3, seed=8, replicates=replicates)
    document = document_of(NETWORK, THREE_WORDS)
    found = word_log_probs(NETWORK, document, settings)
    assert not found.exact
    assert found.log_end is not None
    estimate = particle_filter(NETWORK, document, settings)
    assert found.log_p.sum() + found.log_end == pytest.approx(estimate.log_p, abs=1e-10)


@pytest.mark.long
def test_sums_from_few_particles_are_unbiased() -> None:
    document = document_of(NETWORK, THREE_WORDS)
    truth = np.cumsum(word_log_probs(NETWORK, document, ALL).log_p)
    three = EstimatorSettings(candidates=3, particles=3)
    values = np.exp([
        np.cumsum(word_log_probs(NETWORK, document, replace(three, seed=seed)).log_p) - truth for seed in range(150)
    ])  # fmt: skip
    error = values.std(axis=0, ddof=1) / math.sqrt(len(values))
    assert (np.abs(values.mean(axis=0) - 1.0) < 4.0 * error).all()


def test_a_model_without_an_end() -> None:
    model = ToyPieceModel(AB, order=None, end=False, seed=1)
    found = word_log_probs(model, document_of(model, "ab a"), ALL)
    assert found.log_end is None
    assert found.log_p.sum() == pytest.approx(whole_words(model, ["ab", "a"]), abs=1e-11)


def test_a_long_word_is_one_word() -> None:
    inventory = toy_inventory({"_": -1.0, "a": -1.0, "b": -1.0, "aaba": -1.5})
    model = ToyPieceModel(inventory, order=2, seed=1)
    words = ["aaba" * 6, "b"]
    document = document_of(model, " ".join(words))
    sums = [whole_words(model, words[:t]) for t in range(3)]
    found = word_log_probs(model, document, ALL)
    assert found.words == tuple(words)
    assert found.log_p == pytest.approx(np.diff(sums), abs=1e-11)


def test_words_that_are_not_cut_on_their_own_are_refused() -> None:
    inventory = toy_inventory({"_": -3.0, "a": -1.0, "_a": -1.2, "a_a": -2.5})
    model = ToyPieceModel(inventory)
    with pytest.raises(InputError, match="a piece reaches from one word into the next"):
        word_log_probs(model, document_of(model, "a a"), ALL)
    flat = replace(document_of(model, "a a"), best=np.array([2]))
    with pytest.raises(InputError, match="a piece reaches from one word into the next"):
        canonical_log_probs(model, flat)


def test_a_text_of_probability_zero_is_refused() -> None:
    model = ToyPieceModel(AB, order=2, forbidden={BOS: AB.ids.tolist()})
    with pytest.raises(InputError, match="probability zero"):
        word_log_probs(model, document_of(model, "ab a"), ALL)
    with pytest.raises(InputError, match="probability zero"):
        canonical_log_probs(model, document_of(model, "ab a"))


def test_words_of_the_closed_model_are_all_its_words() -> None:
    """The test above would be no test of a sum if the model could write others."""
    spelt = {a + b for a, b in itertools.product(["_a", "_b"], ["", "a", "b"])} | {"_ab"}
    assert {x.strip("_") for x in spelt} == set(WORDS)


# -- the table --------------------------------------------------------------------------------------

GRAMMAR = PCFG.from_text("S -> A B 0.5 | A S 0.5\nA -> ab 0.5 | ba 0.25 | abab 0.25\nB -> aba 0.75 | ba 0.25")
LENGTHS = LengthRange(2, 3)


def test_each_word_has_three_surprisals() -> None:
    texts = ["ab aba", "abab ab ba", "ba  aba", "aba aba", "ba ba"]  # one is altered, one the grammar cannot make
    read = documents(TRIGRAM, texts, LatticeBuilder(AB))
    found = word_surprisals(
        TRIGRAM, evaluate_documents(TRIGRAM, read, [], ALL), ALL, truth=GRAMMAR, lengths=LENGTHS, seed=4
    )
    rows = found.rows()
    assert [(row["document"], row["position"]) for row in rows] == [
        (number, i) for number, text in enumerate(texts) for i in range(len(text.split()))
    ]
    assert [row["word"] for row in rows] == " ".join(texts).split()
    strings = {s: p for table in all_strings(rules_of(GRAMMAR), 3)["S"] for s, p in table.items() if len(s) in LENGTHS}

    def begins(words: Sequence[str]) -> float:
        return math.log(math.fsum(p for s, p in strings.items() if s[: len(words)] == tuple(words)))

    for row in rows:
        words = texts[row["document"]].split()[: row["position"] + 1]
        sums = [whole_words(TRIGRAM, words[:t]) for t in (len(words) - 1, len(words))]
        assert row["surprisal_marginal"] == pytest.approx(sums[0] - sums[1], abs=1e-10)
        own = canonical_log_probs(TRIGRAM, read.documents[row["document"]])
        assert row["surprisal"] == -own.log_p[row["position"]]
        if row["document"] in (2, 3):
            assert row["surprisal_truth"] is None
        else:
            assert row["surprisal_truth"] == pytest.approx(begins(words[:-1]) - begins(words), abs=1e-10)
    means = {name: score.value for name, score in found.scores.items()}
    n, known = len(rows), [row for row in rows if row["surprisal_truth"] is not None]
    assert means["surprisal"] == pytest.approx(math.fsum(row["surprisal"] for row in rows) / n)
    assert means["surprisal_difference"] == pytest.approx(means["surprisal"] - means["surprisal_marginal"])
    assert means["surprisal_difference"] > 0.0
    excess = math.fsum(row["surprisal_marginal"] - row["surprisal_truth"] for row in known) / len(known)
    assert means["surprisal_excess"] == pytest.approx(excess)
    truth = found.scores["surprisal_truth"]
    assert truth.low is truth.high is None  # of five documents
    assert "ci:none/fewer-than-10-documents" in truth.signature.split("|")
    assert {"exact:5", "given:2..3", "eos:out"} <= set(truth.signature.split("|"))


def test_the_truth_of_words_leaves_out_what_the_split_leaves_out() -> None:
    texts, left_out = ["ab aba", "abab ab ba", "ab ba aba"], {("ab", "ba"), ("abab", "aba"), ("ab", "ba", "aba")}
    read = documents(TRIGRAM, texts, LatticeBuilder(AB))
    excluded = Exclusion.from_sentences(sorted(left_out), GRAMMAR, LENGTHS)
    evaluation = evaluate_documents(TRIGRAM, read, [], ALL)
    found = word_surprisals(TRIGRAM, evaluation, ALL, truth=GRAMMAR, lengths=LENGTHS, excluded=excluded)
    strings = {s: p for table in all_strings(rules_of(GRAMMAR), 3)["S"] for s, p in table.items() if len(s) in LENGTHS}
    rest = {s: p for s, p in strings.items() if s not in left_out}
    for row in found.rows():
        words = tuple(texts[row["document"]].split())[: row["position"] + 1]
        if row["document"] == 2:
            assert row["surprisal_truth"] is None
            continue
        before, after = (math.fsum(p for s, p in rest.items() if s[: len(w)] == w) for w in (words[:-1], words))
        assert row["surprisal_truth"] == pytest.approx(math.log(before / after), abs=1e-10)
    assert f"|given:2..3|disjoint:{excluded.part}|" in found.scores["surprisal_truth"].signature


def test_a_table_without_truth_and_with_few_particles() -> None:
    texts = ["ab aba abab", "abab"]
    read = documents(NETWORK, texts, LatticeBuilder(AB))
    few = EstimatorSettings(candidates=2, particles=2, seed=3)
    found = word_surprisals(NETWORK, evaluate_documents(NETWORK, read, [], few), few)
    assert list(found.scores) == ["surprisal", "surprisal_marginal", "surprisal_difference"]
    assert [record["model"] for record in found.records()] == ["toy"] * 3
    assert "exact:0" in found.scores["surprisal"].signature.split("|")
    assert "surprisal_truth" not in found.rows()[0]
    seeds = [seed_of(3, number) for number in range(2)]
    marginal = found.columns["surprisal_marginal"]
    for seed, document, values in zip(seeds, read.documents, (marginal[:3], marginal[3:]), strict=True):
        expected = word_log_probs(NETWORK, document, replace(few, seed=seed))
        assert values == (-expected.log_p).tolist()
