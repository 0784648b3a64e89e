"""The share of the tokeniser's own cut, of texts and of words in context, against all cuts one by one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from enumerated_cuts import log_sum
from piece_models import AB_PIECES, END, ToyPieceModel, cuts_of, toy_inventory

from truesource.evaluation.tokenisation import EstimatorSettings
from truesource.evaluation.tokenisation import canonical as module
from truesource.evaluation.tokenisation.canonical import caching, canonical_mass, local_canonicality, token_log_probs
from truesource.evaluation.tokenisation.documents import documents
from truesource.evaluation.tokenisation.lattice import LatticeBuilder
from truesource.evaluation.tokenisation.paths import Paths, sample
from truesource.evaluation.tokenisation.results import DOUBLE, evaluate_documents, seed_of
from truesource.grammar.support.arrays import FloatArray
from truesource.grammar.support.errors import InputError

INVENTORY = toy_inventory(AB_PIECES)
BUILDER = LatticeBuilder(INVENTORY)
MODEL = ToyPieceModel(INVENTORY, order=None)
TEXTS = ["abab b", "ab", "bab ba a", "aba"]


def test_the_share_is_the_posterior_of_the_own_cut() -> None:
    found = evaluate_documents(MODEL, documents(MODEL, TEXTS, BUILDER), ["exact"], EstimatorSettings())
    mass = canonical_mass(found, "exact")
    shares = []
    for document in found.documents:
        brute = MODEL.brute(document.text.spelling)
        shares.append(math.exp(brute[tuple(document.text.canonical.tolist())] - log_sum(brute.values())))
    assert mass["canonical_mass"].value == pytest.approx(np.mean(shares), abs=1e-10)
    per_word = math.prod(shares) ** (1 / (2 + 1 + 3 + 1))
    assert mass["canonical_mass_per_word"].value == pytest.approx(per_word, abs=1e-10)
    assert mass["canonical_capped"].value == 0.0
    for score in mass.values():
        assert score.low is score.high is None  # of four documents
        assert "ci:none/fewer-than-10-documents" in score.signature.split("|")


def test_an_estimate_below_the_own_cut_is_capped_and_counted() -> None:
    found = evaluate_documents(MODEL, documents(MODEL, TEXTS, BUILDER), ["exact"], EstimatorSettings())
    low = tuple(replace(e, log_p=e.log_p - (9.0 if i == 2 else 0.0)) for i, e in enumerate(found.estimates["exact"]))
    mass = canonical_mass(replace(found, estimates={**found.estimates, "exact": low}), "exact")
    assert mass["canonical_capped"].value == 0.25


def test_rounding_of_single_precision_is_not_counted() -> None:
    """An estimate below P(T*) by less than a millionth of ln P says nothing; n-grams count in double precision."""
    found = evaluate_documents(MODEL, documents(MODEL, TEXTS, BUILDER), ["exact"], EstimatorSettings())
    for share, capped, of_double in ((0.9e-6, 0, 1), (1.1e-6, 1, 1), (0.9e-13, 0, 0)):
        low = tuple(
            replace(e, log_p=own * (1.0 + share)) if i == 2 else e
            for i, (e, own) in enumerate(zip(found.estimates["exact"], found.one_best.tolist(), strict=True))
        )
        changed = replace(found, estimates={**found.estimates, "exact": low})
        assert canonical_mass(changed, "exact")["canonical_capped"].value == capped / 4
        assert canonical_mass(replace(changed, rounding=DOUBLE), "exact")["canonical_capped"].value == of_double / 4


@pytest.mark.parametrize("candidates", [2, 100])
def test_words_in_context(candidates: int) -> None:
    assert INVENTORY.scores is not None
    found = local_canonicality(MODEL, documents(MODEL, TEXTS, BUILDER), BUILDER, candidates=candidates)
    right, shares = 0, []
    for text in TEXTS:
        before: list[int] = []
        for word in text.split():
            cuts = sorted(cuts_of(INVENTORY, "▁" + word), key=lambda c: -math.fsum(INVENTORY.scores[list(c)]))
            log_p = []
            for cut in cuts[:candidates]:
                tokens = INVENTORY.ids[list(cut)].tolist()
                whole = [*before, *tokens]
                log_p.append(sum(MODEL.expects(whole[: len(before) + i])[t] for i, t in enumerate(tokens)))
            right += max(log_p) == log_p[0]  # the tokeniser's cut is the best of Q
            shares.append(math.exp(log_p[0] - log_sum(log_p)))
            before += INVENTORY.ids[list(cuts[0])].tolist()
    canonical, mass = found
    assert canonical["compared"] == 7  # every word here has two cuts at least
    assert (canonical["name"], canonical["value"]) == ("locally_canonical", pytest.approx(right / 7))
    assert (mass["name"], mass["value"]) == ("local_canonical_mass", pytest.approx(np.mean(shares), abs=1e-10))
    assert sum(times for _, times in mass["instead"]) == 7 - right
    assert f"candidates:{candidates}" in mass["signature"].split("|")


def test_the_own_cut_is_compared_where_q_ranks_it_low() -> None:
    assert INVENTORY.scores is not None
    builder = LatticeBuilder(INVENTORY, -INVENTORY.scores)  # long cuts are ranked first
    found = local_canonicality(MODEL, documents(MODEL, ["abab"], builder), builder, candidates=2)
    scores = INVENTORY.scores
    cuts = sorted(cuts_of(INVENTORY, "▁abab"), key=lambda cut: math.fsum(scores[list(cut)]))[:2]
    own = tuple(MODEL.pieces.read("abab").canonical.tolist())
    assert own not in cuts
    log_p = []
    for cut in (own, *cuts):
        tokens = INVENTORY.ids[list(cut)].tolist()
        log_p.append(sum(MODEL.expects(tokens[:i])[token] for i, token in enumerate(tokens)))
    share = math.exp(log_p[0] - log_sum(log_p))
    assert found[1]["value"] == pytest.approx(share, abs=1e-10)
    best = max(zip(log_p, (own, *cuts), strict=True))[1]
    assert found[1]["instead"] == ([] if best == own else [(" ".join(INVENTORY.pieces[i] for i in best), 1)])


def test_words_with_one_cut_are_not_compared() -> None:
    inventory = toy_inventory({"_a": -1.0, "_b": -1.0})
    model, builder = ToyPieceModel(inventory), LatticeBuilder(inventory)
    assert local_canonicality(model, documents(model, ["a b a"], builder), builder) == []
    with pytest.raises(InputError, match="at least 2 segmentations"):
        local_canonicality(model, documents(model, ["a"], builder), builder, candidates=1)


# -- losses of repeated words: worked out by hand, and against plain loops over the samples --


def values(found: list[dict[str, Any]], words: str) -> dict[str, float]:
    return {record["case"]: record["value"] for record in found if record["words"] == words}


# -- by hand ----------------------------------------------------------------------------------------


class Copier(ToyPieceModel):
    """-log P of a piece is 1 where the same piece came before in the text, else 5 (and P does not sum to 1)."""

    def expects(self, tokens: Sequence[int]) -> dict[int, float]:
        every = [*self.pieces.inventory.ids.tolist(), END]
        return {token: -1.0 if token in tokens else -5.0 for token in every}


def test_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """``ab b ab`` in four samples; the tokeniser cuts ``_ab`` and ``_b`` in one piece.

    | sample           | losses of the words | the second ab           |
    |------------------|---------------------|-------------------------|
    | _ab / _b / _ab   | 5 / 5 / 1           | as before               |
    | _ab / _b / _ a b | 5 / 5 / 5+5+5       | otherwise               |
    | _a b / _b / _a b | 5+5 / 5 / 1+1       | as before               |
    | _ab / _b / _ab   | 5 / 5 / 1           | as before               |

    first: (5 + 5 + 10 + 5) / 4; same: (1 + 2 + 1) / 3; other: 15 / 1. ``b`` occurs once and never counts.
    """
    drawn = ["_ab _b _ab", "_ab _b _ a b", "_a b _b _a b", "_ab _b _ab"]
    model = Copier(INVENTORY, order=None)
    read = documents(model, ["ab b ab"], BUILDER)
    lattice = read.documents[0].lattice
    index = {piece: i for i, piece in enumerate(AB_PIECES)}
    cuts = [np.array([index[piece] for piece in cut.split()], dtype=np.int64) for cut in drawn]
    arcs = [BUILDER.path(lattice, cut) for cut in cuts]

    def sampled(*_: object, **__: object) -> Paths:
        bounds = np.cumsum([0, *map(len, arcs)]).astype(np.int64)
        return Paths(np.concatenate(arcs).astype(np.int32), bounds, np.zeros(len(arcs)))

    monkeypatch.setattr(module, "sample", sampled)
    found = caching(model, read, BUILDER, EstimatorSettings(samples=4))
    assert values(found, "all") == pytest.approx({"first": 25 / 4, "same": 4 / 3, "other": 15.0}, abs=1e-12)
    assert (found[0]["occurrences"], found[0]["types"]) == (1, 1)
    assert "impossible:0" in found[0]["signature"].split("|")
    assert values(found, "multi-token") == {}  # the tokeniser's own _ab is one piece
    # only where both cases occur does a word count
    arcs = arcs[:1] * 4
    assert caching(model, read, BUILDER, EstimatorSettings(samples=4)) == []


# -- against plain loops ----------------------------------------------------------------------------


def by_loops(
    model: ToyPieceModel, texts: list[str], settings: EstimatorSettings, *, multiple: bool
) -> dict[str, float]:
    """Conditions (1) and (2) as printed, sample by sample, word by word."""
    read = documents(model, texts, BUILDER)
    losses: dict[str, list[float]] = {"first": [], "same": [], "other": []}
    for number, document in zip(read.numbers, read.documents, strict=True):
        words = ["▁" + word for word in document.text.original.split()]
        own = split([INVENTORY.pieces[i] for i in document.text.canonical])
        forms: list[list[tuple[str, ...]]] = []
        loss: list[list[float]] = []
        for path in sample(
            document.lattice, settings.samples, b=settings.b, seed=seed_of(settings.seed, number)
        ).each():
            indices = document.lattice.piece[path].tolist()
            tokens = INVENTORY.ids[indices].tolist()
            forms.append(split([INVENTORY.pieces[i] for i in indices]))
            each = iter([-model.expects(tokens[:i])[token] for i, token in enumerate(tokens)])
            loss.append([math.fsum(next(each) for _ in form) for form in forms[-1]])
        counting = set()
        for k, word in enumerate(words):
            earlier = [i for i in range(k) if words[i] == word]
            one = [i for i, cut in enumerate(forms) if any(cut[j] == cut[k] for j in earlier)]
            two = [i for i, cut in enumerate(forms) if earlier and all(cut[j] != cut[k] for j in earlier)]
            if one and two and (len(own[k]) > 1 or not multiple):
                losses["same"] += [loss[i][k] for i in one]
                losses["other"] += [loss[i][k] for i in two]
                counting.add(earlier[0])
        losses["first"] += [row[k] for k in counting for row in loss]
    return {case: math.fsum(found) / len(found) for case, found in losses.items() if found}


def split(pieces: list[str]) -> list[tuple[str, ...]]:
    words: list[list[str]] = []
    for piece in pieces:
        if piece.startswith("▁"):
            words.append([])
        words[-1].append(piece)
    return [tuple(word) for word in words]


@pytest.mark.long
@pytest.mark.parametrize("b", [0.5, 1.0])
def test_it_is_the_average_over_samples_and_words(b: float) -> None:
    model = ToyPieceModel(INVENTORY, order=3)
    texts = ["abab ba abab b abab", "aba ba aba ba", "b", "abab bab bab abab"]
    settings = EstimatorSettings(samples=7, b=b, seed=3)
    found = caching(model, documents(model, texts, BUILDER), BUILDER, settings)
    for multiple, words in ((False, "all"), (True, "multi-token")):
        expected = by_loops(model, texts, settings, multiple=multiple)
        assert len(expected) == 3
        assert values(found, words) == pytest.approx(expected, abs=1e-10)
    for record in found:
        assert record["low"] is record["high"] is None  # of few documents
        assert "ci:none/fewer-than-10-documents" in record["signature"].split("|")
    assert values(found, "all") != values(found, "multi-token")
    assert [(r["words"], r["case"]) for r in found[:3]] == [("all", "first"), ("all", "same"), ("all", "other")]
    assert {"samples:7", f"b:{b:g}", "seed:3", "unit:nats/word"} <= set(found[0]["signature"].split("|"))


def test_cuts_of_probability_zero_are_left_out_and_counted() -> None:
    model = ToyPieceModel(INVENTORY, forbidden={int(INVENTORY.ids[3]): INVENTORY.ids.tolist()})  # nothing follows _a
    found = caching(model, documents(model, ["ab ab ab ab"], BUILDER), BUILDER, EstimatorSettings(samples=30))
    (impossible,) = (part for part in found[0]["signature"].split("|") if part.startswith("impossible:"))
    assert 0 < int(impossible.removeprefix("impossible:")) < 30
    assert all(math.isfinite(record["value"]) for record in found)


def test_pieces_over_white_space_are_refused() -> None:
    inventory = toy_inventory({"_": -1.0, "a": -1.0, "a_": -2.0})
    model = ToyPieceModel(inventory)
    builder = LatticeBuilder(inventory)
    with pytest.raises(InputError, match="some pieces reach over white space"):
        caching(model, documents(model, ["a a"], builder), builder, EstimatorSettings())


# -- token scores -----------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [2, None])
def test_token_scores_are_those_of_the_model_and_share_beginnings(order: int | None) -> None:
    forbidden = {int(INVENTORY.ids[3]): [int(INVENTORY.ids[2])]}
    model = ToyPieceModel(INVENTORY, order=order, forbidden=forbidden)
    cuts = [[3, 2, 1], [3, 1, 2], [0], [3, 1, 2, 2], [8, 1]]
    rows = [INVENTORY.ids[cut] for cut in cuts]

    def truth(tokens: list[int]) -> FloatArray:
        found = np.array([model.expects(tokens[:i])[token] for i, token in enumerate(tokens)])
        return np.where(np.cumsum(np.isinf(found)) > 0, -np.inf, found)  # nothing is read after what cannot be

    for row, found in zip(rows, token_log_probs(model, rows), strict=True):
        assert found == pytest.approx(truth(row.tolist()), abs=1e-12)
    walks = []
    plain = model.incremental_scorer
    model.incremental_scorer = lambda: walks.append(plain()) or walks[-1]  # type: ignore[assignment, func-returns-value]
    token_log_probs(model, [INVENTORY.ids[[3, 1, 2]], INVENTORY.ids[[3, 1, 2, 2]], INVENTORY.ids[[3, 1, 2]]])
    assert walks[0].steps == 1 + 3  # <bos>, and each of the shared pieces once
