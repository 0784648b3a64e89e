"""Estimators of log P(D) from some cuts, against the truth by enumeration."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from enumerated_cuts import Cut, cuts, distribution, inventory, log_sum, score
from lattice_paths import AB_SCORES, Cutter, fit_p
from piece_models import AB_PIECES, BOS, ToyPieceModel, cuts_of, toy_inventory

from truesource.evaluation.tokenisation import EstimatorSettings
from truesource.evaluation.tokenisation import lattice as sums
from truesource.evaluation.tokenisation.documents import Document, documents
from truesource.evaluation.tokenisation.estimators.paths import ConsistentPaths
from truesource.evaluation.tokenisation.estimators.registry import ESTIMATORS, check_estimator
from truesource.evaluation.tokenisation.estimators.weights import log1mexp, mean_of_weights, sum_of_inclusions
from truesource.evaluation.tokenisation.lattice import LatticeBuilder, count_paths
from truesource.evaluation.tokenisation.paths import n_best, sample, sample_distinct
from truesource.generator.piece_model import PieceInventory
from truesource.grammar.support.errors import InputError

INVENTORY = toy_inventory(AB_PIECES)
BUILDER = LatticeBuilder(INVENTORY)
WORD = "abababa"  #: 80 cuts
FEW = EstimatorSettings(samples=5)
DRAWING = ("wr", "wr1", "wor", "wor1")


def document_of(model: ToyPieceModel, text: str = WORD) -> Document:
    return documents(model, [text], BUILDER).documents[0]


@pytest.fixture(scope="module")
def model() -> ToyPieceModel:
    return ToyPieceModel(INVENTORY, order=None, seed=4, spread=0.5)


def z(values: np.ndarray | list[float], expected: float = 0.0) -> float:
    values = np.asarray(values)
    return float((values.mean() - expected) / (values.std(ddof=1) / math.sqrt(len(values))))


# -- unbiased -----------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("name", DRAWING)
@pytest.mark.parametrize(("order", "b"), [(2, 1.0), (None, 0.5), (None, 1.0), (None, 2.0)])
def test_draws_are_unbiased_in_probability(order: int | None, b: float, name: str) -> None:
    model = ToyPieceModel(INVENTORY, order=order, seed=4, spread=0.5)
    document = document_of(model)
    truth = model.brute_log_p(document.text.spelling)
    settings = replace(FEW, b=b)
    found = [ESTIMATORS[name].run(model, document, replace(settings, seed=seed)) for seed in range(1000)]
    assert abs(z([math.exp(estimate.log_p - truth) for estimate in found], 1.0)) < 4.0
    assert all(estimate.log_lower <= truth + 1e-12 for estimate in found)
    assert {estimate.bound for estimate in found} == {ESTIMATORS[name].bound} == {"unbiased"}
    assert {estimate.estimator for estimate in found} == {name}


@pytest.mark.long
@pytest.mark.parametrize("best", [False, True])
@pytest.mark.parametrize("replacement", [False, True])
def test_the_estimate_of_the_variance_is_unbiased(model: ToyPieceModel, replacement: bool, best: bool) -> None:
    """Over many repeats it is what is seen, within four standard errors of the difference and within 3%."""
    document = document_of(model)
    lattice = document.lattice
    cuts = model.brute(document.text.spelling)
    log_p = {cut: p - log_sum(cuts.values()) for cut, p in cuts.items()}
    of_path: dict[bytes, float] = {}
    for path in n_best(lattice, len(cuts)).each():
        of_path[path.tobytes()] = log_p[tuple(lattice.piece[path].tolist())]
    avoid = document.best if best else None
    certain = of_path[document.best.astype(np.int32).tobytes()] if best else -math.inf
    n, k = 10_000, 4
    found = []
    if replacement:
        paths = sample(lattice, n * k, seed=1, avoid=avoid)
        log_w = np.array([of_path[path.tobytes()] for path in paths.each()]) - paths.log_q
        found = [mean_of_weights(row, certain) for row in log_w.reshape(n, k)]
    else:
        for seed in range(n):
            drawn = sample_distinct(lattice, k, seed=seed, avoid=avoid)
            logs = np.array([of_path[path.tobytes()] for path in drawn.paths.each()])
            found.append(sum_of_inclusions(logs, drawn.log_inclusion, certain))
    estimates = np.exp([one.log_p for one in found])
    estimated = np.array([one.relative_variance for one in found]) * estimates**2
    seen = (estimates - 1.0) ** 2
    assert abs(z(estimates, 1.0)) < 4.0
    assert abs(z(estimated - seen)) < 4.0
    assert estimated.mean() == pytest.approx(seen.mean(), rel=0.03)


def test_equal_cuts_are_drawn_by_equal_seeds(model: ToyPieceModel) -> None:
    document = document_of(model)
    for name in DRAWING:
        one, same, other = (ESTIMATORS[name].run(model, document, replace(FEW, seed=seed)) for seed in (1, 1, 2))
        assert one == same and one.log_p != other.log_p


# -- bounds -------------------------------------------------------------------------------------------


def test_sums_over_the_best_cuts_rise_to_the_truth(model: ToyPieceModel) -> None:
    document = document_of(model)
    cuts = model.brute(document.text.spelling)
    scores = INVENTORY.scores
    assert scores is not None
    ranked = sorted(cuts, key=lambda cut: -math.fsum(scores[list(cut)]))
    values = []
    for n in range(1, 81):
        found = ESTIMATORS["nbest"].run(model, document, EstimatorSettings(samples=n, b=0.3 * n))
        values.append(found.log_p)
        assert found.log_p == found.log_lower
        assert (found.bound, found.relative_variance) == (("exact", 0.0) if n == 80 else ("lower", None))
        assert (found.cuts, found.ess, found.max_share) == (n, None, None)
    assert all(low < high for low, high in itertools.pairwise(values))
    assert (
        values[0]
        == ESTIMATORS["one-best"].run(model, document, FEW).log_p
        == cuts[tuple(document.text.canonical.tolist())]
    )
    assert values[29] == pytest.approx(log_sum(cuts[cut] for cut in ranked[:30]), abs=1e-12)  # the next has less
    assert values[-1] == pytest.approx(model.brute_log_p(document.text.spelling), abs=1e-12)


def test_the_tokenisers_cut_is_among_the_best_under_any_scores(model: ToyPieceModel) -> None:
    """Under scores of the opposite sign the tokeniser's cut is among the worst."""
    assert INVENTORY.scores is not None
    document = documents(model, [WORD], LatticeBuilder(INVENTORY, -INVENTORY.scores)).documents[0]
    values = [ESTIMATORS["nbest"].run(model, document, EstimatorSettings(samples=n)) for n in range(1, 82)]
    assert values[0].log_p == ESTIMATORS["one-best"].run(model, document, FEW).log_p
    assert [found.cuts for found in values] == [*range(1, 81), 80]
    assert all(low.log_p <= high.log_p + 1e-12 for low, high in itertools.pairwise(values))


def test_distinct_cuts_of_a_sample_are_a_lower_bound(model: ToyPieceModel) -> None:
    document = document_of(model)
    truth = model.brute_log_p(document.text.spelling)
    few, many = (ESTIMATORS["distinct"].run(model, document, EstimatorSettings(samples=n, b=0.0)) for n in (10, 4000))
    assert few.log_p < truth and few.bound == "lower" and few.cuts <= 10
    assert many.log_p == pytest.approx(truth, abs=1e-12) and many.bound == "exact" and many.cuts == 80
    drawn = ESTIMATORS["wr"].run(model, document, EstimatorSettings(samples=10, b=0.0))
    assert (drawn.log_lower, drawn.cuts, drawn.steps) == (few.log_lower, few.cuts, few.steps)


@pytest.mark.parametrize("name", ["exact", "auto", "nbest", "wor", "wor1", "consistent-wor", "consistent-wor1"])
@pytest.mark.parametrize("samples", [80, 200])
def test_as_many_samples_as_cuts_are_exact(model: ToyPieceModel, name: str, samples: int) -> None:
    document = document_of(model)
    found = ESTIMATORS[name].run(model, document, EstimatorSettings(samples=samples))
    truth = model.brute_log_p(document.text.spelling)
    assert found.log_p == pytest.approx(truth, abs=1e-12)
    assert found.log_lower == pytest.approx(truth, abs=1e-12)
    assert (found.bound, found.relative_variance, found.ess, found.log_upper) == ("exact", 0.0, None, found.log_p)
    if name in ("wor", "wor1"):
        less = ESTIMATORS[name].run(model, document, EstimatorSettings(samples=79))
        assert less.bound == "unbiased" and less.cuts == 79 and 0.0 < less.relative_variance < 1e-3


def test_auto_is_the_particle_filter_where_there_is_too_much_to_enumerate(model: ToyPieceModel) -> None:
    document = document_of(model)
    few = replace(FEW, most_prefixes=20)
    found = ESTIMATORS["auto"].run(model, document, few)
    assert found == ESTIMATORS["dpf"].run(model, document, few)
    assert found.estimator == "dpf"
    unigram = ToyPieceModel(INVENTORY, order=1)
    assert ESTIMATORS["auto"].run(unigram, document_of(unigram), few).estimator == "exact"


def test_a_text_with_one_cut_is_exact() -> None:
    inventory = toy_inventory({piece: AB_PIECES[piece] for piece in ("_", "a", "b")})
    model = ToyPieceModel(inventory)
    document = documents(model, ["abba"], LatticeBuilder(inventory)).documents[0]
    truth = model.brute_log_p(document.text.spelling)
    for name in ESTIMATORS:
        found = ESTIMATORS[name].run(model, document, FEW)
        assert found.log_p == pytest.approx(truth, abs=1e-12), name
        assert found.log_lower == pytest.approx(truth, abs=1e-12), name
        if name in ("auto", "exact", "bracket", "one-best", "nbest", "wr1", "wor", "wor1", "distinct"):
            assert found.bound == "exact", name


# -- consistent ---------------------------------------------------------------------------------------

REPEATED = "abab ab abab"


def consistent_log_p(model: ToyPieceModel) -> float:
    """Log of the sum of P over the cuts that cut equal words alike, by enumeration."""
    words = ["▁" + word for word in REPEATED.split()]
    types = list(dict.fromkeys(words))
    ids = INVENTORY.ids
    found = []
    for several in itertools.product(*(list(cuts_of(INVENTORY, word)) for word in types)):
        chosen = dict(zip(types, several, strict=True))
        pieces = [piece for word in words for piece in chosen[word]]
        found.append(model.log_prob_of(ids[pieces].tolist()))
    return log_sum(found)


@pytest.mark.long
def test_consistent_estimators_are_of_consistent_cuts(model: ToyPieceModel) -> None:
    document = document_of(model, REPEATED)
    truth = consistent_log_p(model)
    everything = ESTIMATORS["exact"].run(model, document, FEW).log_p
    assert truth < everything - 0.1
    for name in ("consistent-nbest", "consistent-wor", "consistent-wor1"):
        found = ESTIMATORS[name].run(model, document, EstimatorSettings(samples=10_000))
        assert found.log_p == pytest.approx(truth, abs=1e-12)
        assert (found.bound, found.relative_variance) == ("lower", None)
    for name in DRAWING:
        name = f"consistent-{name}"
        runs = [ESTIMATORS[name].run(model, document, replace(FEW, seed=seed)) for seed in range(400)]
        assert abs(z([math.exp(run.log_p - truth) for run in runs], 1.0)) < 4.0
        assert {run.bound for run in runs} == {ESTIMATORS[name].bound} == {"part"}
        assert ESTIMATORS[name].target == "P_cons"
        assert all(run.log_lower <= truth + 1e-12 for run in runs)


# -- what is scored -----------------------------------------------------------------------------------


def test_each_cut_is_scored_once(model: ToyPieceModel) -> None:
    document = document_of(model, "ab")  # 4 cuts
    before, tokens = model.rows_scored, model.tokens_scored
    found = ESTIMATORS["wr"].run(model, document, EstimatorSettings(samples=500))
    assert model.rows_scored - before == found.cuts == 4
    assert found.steps == model.tokens_scored - tokens + 4  # <bos> before each
    assert found.log_lower == pytest.approx(model.brute_log_p(document.text.spelling), abs=1e-12)


def test_samples_are_the_cuts_that_are_scored(model: ToyPieceModel) -> None:
    document = document_of(model)
    for name in ("nbest", "wor", "wor1"):
        assert ESTIMATORS[name].run(model, document, EstimatorSettings(samples=12)).cuts == 12


@pytest.mark.parametrize("name", ["nbest", *DRAWING])
def test_impossible_cuts_weigh_nothing(name: str) -> None:
    """`a` and `b` never begin what follows a `_` that stands alone, nor does anything begin with `_a`."""
    number = dict(zip(AB_PIECES, INVENTORY.ids.tolist(), strict=True))
    forbidden = {number["_"]: [number["a"], number["b"]], BOS: [number["_a"]]}
    model = ToyPieceModel(INVENTORY, forbidden=forbidden)
    document = document_of(model)
    cuts = model.brute(document.text.spelling)
    assert 0 < sum(p == -math.inf for p in cuts.values()) < len(cuts)
    truth = log_sum(cuts.values())
    found = [ESTIMATORS[name].run(model, document, replace(FEW, seed=seed)) for seed in range(400)]
    assert not any(math.isnan(run.log_p) or run.log_p == math.inf for run in found)
    if name == "nbest":
        assert found[0].log_p <= truth
    else:
        assert abs(z([math.exp(run.log_p - truth) for run in found], 1.0)) < 4.0
    for run in found:
        if run.log_p == -math.inf:
            assert (run.relative_variance, run.max_share) == (None, None)


@pytest.mark.parametrize("name", ["exact", "bracket", "one-best", "nbest", "distinct", *DRAWING, "consistent-wor"])
def test_a_text_the_model_thinks_impossible_has_probability_zero(name: str) -> None:
    model = ToyPieceModel(INVENTORY, forbidden={BOS: INVENTORY.ids.tolist()})
    document = document_of(model)
    found = ESTIMATORS[name].run(model, document, FEW)
    assert found.log_p == found.log_lower == -math.inf
    assert found.ess in (None, 0.0) and found.max_share is None


def test_effective_number_and_share_are_of_the_drawn_weights(model: ToyPieceModel) -> None:
    document = document_of(model)
    paths = sample(document.lattice, 5, seed=1)
    logs = np.array([model.log_prob_of(INVENTORY.ids[document.lattice.piece[path]].tolist()) for path in paths.each()])
    w = np.exp(logs - paths.log_q)
    found = ESTIMATORS["wr"].run(model, document, FEW)
    assert math.exp(found.log_p) == pytest.approx(w.mean(), rel=1e-12)
    assert found.ess == pytest.approx(w.sum() ** 2 / (w**2).sum(), rel=1e-12)
    assert found.max_share == pytest.approx(w.max() / w.sum(), rel=1e-12)
    assert found.relative_variance == pytest.approx(w.var(ddof=1) / 5 / w.mean() ** 2, rel=1e-12)
    assert found.standard_error == pytest.approx(w.std(ddof=1) / math.sqrt(5) / w.mean(), rel=1e-12)


def test_weights_are_summed_over_a_known_part() -> None:
    p, q = np.array([0.2, 0.05]), np.array([0.5, 0.25])
    found = sum_of_inclusions(np.log(p), np.log(q), math.log(0.1))
    assert math.exp(found.log_p) == pytest.approx(0.7)
    variance = sum(p**2 * (1 - q) / q**2)
    assert found.relative_variance == pytest.approx(variance / 0.7**2)
    assert found.max_share == pytest.approx(0.4 / 0.7)
    mean = mean_of_weights(np.log([0.3, 0.6, 0.9]), math.log(0.4))
    assert math.exp(mean.log_p) == pytest.approx(1.0)
    assert mean.relative_variance == pytest.approx(0.03)
    assert mean_of_weights(np.log([0.3])).relative_variance is None


@pytest.mark.parametrize("q", [1e-300, 1e-20, 1e-3, 0.5, 0.999])
def test_log1mexp(q: float) -> None:
    assert log1mexp(np.array([math.log(q), 0.0])) == pytest.approx([math.log1p(-q), -math.inf], rel=1e-12)
    assert log1mexp(np.array([-q])) == pytest.approx([math.log(-math.expm1(-q))], rel=1e-12)


# -- refusals -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "samples"), [("wor", 1), ("wor1", 2), ("wr1", 1), ("wr", 0), ("nbest", 0)])
def test_too_few_samples_are_refused(model: ToyPieceModel, name: str, samples: int) -> None:
    for kind in (name, f"consistent-{name}"):
        with pytest.raises(InputError, match=f"{kind} needs at least {samples + 1} samples, got {samples}"):
            check_estimator(kind, samples)
        assert math.isfinite(
            ESTIMATORS[kind].run(model, document_of(model), EstimatorSettings(samples=samples + 1)).log_p
        )


def test_every_estimator_is_described(model: ToyPieceModel) -> None:
    document = document_of(model, "ab")
    for name, method in ESTIMATORS.items():
        assert method.summary and not method.summary.endswith(".")
        assert method.target == ("P_cons" if name.startswith("consistent-") else "P")
        found = method.run(model, document, FEW)
        assert found.estimator == name or name == "auto"
        assert found.bound in (method.bound, "exact", "unbiased")


# -- paths that cut all tokens of a word in the same way --


TEXT = "▁aba▁b▁ab▁aba▁ab▁b▁aba"
WORDS = ("▁aba", "▁b", "▁ab")
OF_TEXT = (0, 1, 2, 0, 2, 1, 0)
AB = inventory(AB_SCORES)
ENDS = {(piece[1:] + "▁" if piece.startswith("▁") else piece): score for piece, score in AB_SCORES.items()}


def enumerated(
    words: tuple[str, ...], of_text: tuple[int, ...], scores: dict[str, float], b: float
) -> dict[Cut, float]:
    """Q_cons of every consistent cut: the product over different words."""
    found: dict[Cut, float] = {}
    for chosen in itertools.product(*(distribution(word, scores, b).items() for word in words)):
        whole = tuple(piece for w in of_text for piece in chosen[w][0])
        found[whole] = math.prod(q for _, q in chosen)
    return found


@pytest.fixture(scope="module")
def whole() -> Cutter:
    return Cutter(AB, TEXT)


@pytest.fixture(scope="module")
def consistent(whole: Cutter) -> ConsistentPaths:
    return ConsistentPaths(whole.lattice, AB)


def test_all_of_them_sum_to_one_and_products_over_tokens_do_not(whole: Cutter, consistent: ConsistentPaths) -> None:
    truth = enumerated(WORDS, OF_TEXT, AB_SCORES, 1.0)
    assert consistent.words == WORDS
    assert count_paths(consistent.lattice) == len(truth)
    found = consistent.expanded(n_best(consistent.lattice, 10_000))
    assert dict(zip(whole.cuts(found), np.exp(found.log_q).tolist(), strict=True)) == pytest.approx(truth, abs=1e-12)
    assert math.fsum(np.exp(found.log_q)) == pytest.approx(1.0, abs=1e-12)
    log_z = sums.log_partition(whole.lattice)
    over_tokens = math.fsum(math.exp(score(cut, AB_SCORES) - log_z) for cut in whole.cuts(found))
    assert over_tokens < 0.5
    shares = (
        sum(q ** OF_TEXT.count(w) for q in distribution(word, AB_SCORES).values()) for w, word in enumerate(WORDS)
    )
    assert over_tokens == pytest.approx(math.prod(shares), abs=1e-12)


def test_its_lattice_is_that_of_the_different_words(consistent: ConsistentPaths) -> None:
    built = LatticeBuilder(AB).build("".join(WORDS))
    assert consistent.lattice.spelling == built.spelling
    for name in ("first", "source", "piece", "score"):
        np.testing.assert_array_equal(getattr(consistent.lattice, name), getattr(built, name))


def test_the_best_path_of_the_text_is_consistent(whole: Cutter, consistent: ConsistentPaths) -> None:
    best = sums.best_path(whole.lattice)
    np.testing.assert_array_equal(consistent.expanded(n_best(consistent.lattice, 1)).each()[0], best)
    np.testing.assert_array_equal(consistent.reduced(best), sums.best_path(consistent.lattice))


@pytest.mark.parametrize("b", [0.3, 1.0])
@pytest.mark.parametrize("avoiding", [False, True])
def test_draws_follow_the_distribution(whole: Cutter, consistent: ConsistentPaths, b: float, avoiding: bool) -> None:
    best = sums.best_path(whole.lattice)
    truth = enumerated(WORDS, OF_TEXT, AB_SCORES, b)
    if avoiding:
        rest = 1.0 - truth.pop(whole.cut(best))
        truth = {cut: q / rest for cut, q in truth.items()}
    drawn = consistent.expanded(
        sample(consistent.lattice, 20_000, b=b, seed=2, avoid=consistent.reduced(best) if avoiding else None)
    )
    assert fit_p(whole.counts(drawn), truth) > 1e-3
    expected = [math.log(truth[cut]) for cut in whole.cuts(drawn)[:200]]
    np.testing.assert_allclose(drawn.log_q[:200], expected, atol=1e-10)


@pytest.mark.long
@pytest.mark.parametrize("avoiding", [False, True])
def test_weighted_sums_without_replacement_are_unbiased(
    whole: Cutter, consistent: ConsistentPaths, avoiding: bool
) -> None:
    best = sums.best_path(whole.lattice)
    truth = enumerated(WORDS, OF_TEXT, AB_SCORES, 1.0)
    value = {cut: q**1.4 for cut, q in truth.items()}
    exact = math.fsum(v for cut, v in value.items() if not (avoiding and cut == whole.cut(best)))
    avoid = consistent.reduced(best) if avoiding else None
    found = np.empty(2000)
    for seed in range(len(found)):
        d = sample_distinct(consistent.lattice, 4, seed=seed, avoid=avoid)
        drawn = whole.cuts(consistent.expanded(d.paths))
        assert len(set(drawn)) == 4
        found[seed] = sum(value[cut] / q for cut, q in zip(drawn, np.exp(d.log_inclusion).tolist(), strict=True))
    assert abs(found.mean() - exact) < 4.0 * found.std() / math.sqrt(len(found))
    everything = sample_distinct(consistent.lattice, len(truth), seed=1, avoid=avoid)
    assert everything.method == "all"
    assert len(everything.paths) == len(truth) - avoiding


@pytest.mark.parametrize(
    ("inventory_", "text", "words"),
    [
        (inventory(ENDS, marker_ends=True), "aba▁b▁aba▁b", ("aba▁", "b▁", "b")),
        (AB, "aba▁b▁aba▁b", ("aba", "▁b", "▁aba")),
        (AB, "▁▁b▁b▁▁b▁▁", ("▁▁b", "▁b", "▁▁")),
    ],
    ids=["marker ends words", "no marker at the beginning", "runs of markers"],
)
def test_where_words_begin_and_end(inventory_: PieceInventory, text: str, words: tuple[str, ...]) -> None:
    cutter = Cutter(inventory_, text)
    found = ConsistentPaths(cutter.lattice, inventory_)
    assert found.words == words
    paths = found.expanded(n_best(found.lattice, 1000))
    assert len(paths) == math.prod(len(cuts(word, inventory_.pieces)) for word in words)
    assert math.fsum(np.exp(paths.log_q)) == pytest.approx(1.0, abs=1e-12)
    for path in paths.each():
        assert "".join(cutter.cut(path)) == text
        found.reduced(path)


def test_a_piece_across_words_is_refused() -> None:
    joined = inventory({**AB_SCORES, "b▁a": -1.0})
    cutter = Cutter(joined, "▁b▁a")
    with pytest.raises(InputError, match="'b▁a' joins two words"):
        ConsistentPaths(cutter.lattice, joined)


def test_a_path_with_two_cuts_of_a_word_cannot_be_avoided(whole: Cutter, consistent: ConsistentPaths) -> None:
    one, other = (
        LatticeBuilder(AB).path(whole.lattice, np.array([AB.pieces.index(p) for p in pieces]))
        for pieces in (
            ("▁aba", "▁b", "▁ab", "▁aba", "▁ab", "▁b", "▁aba"),
            ("▁aba", "▁b", "▁ab", "▁aba", "▁ab", "▁", "b", "▁aba"),
        )
    )
    consistent.reduced(one)
    with pytest.raises(InputError, match="two ways"):
        consistent.reduced(other)
