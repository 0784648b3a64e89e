"""Each scheme against its law, enumerated draw by draw on a small tree of text."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from functools import cache

import numpy as np
import pytest
from enumerated_text import Law, Outcome, Tokens, TreeStepper, ancestral, best_of, hf_beams, paper_beams
from scipy.stats import chisquare

from truesource.grammar.support.errors import InputError
from truesource.lmtrain.decoding.alphabet import Alphabet
from truesource.lmtrain.decoding.decode import Samples, draw
from truesource.lmtrain.decoding.settings import Decoding

EOS = 2


@cache
def toy(text: Tokens) -> tuple[float, ...]:
    """Two words and the end: irregular probabilities of its own after every text, none of them tied."""
    rng = np.random.default_rng([7, len(text), *text])
    p = rng.dirichlet([1.5, 1.0, 0.8])
    return tuple(float(x) for x in p)


class ToyModel:
    """A law of text as a model."""

    name = "toy"

    def __init__(self, law: Law, size: int = 3, never: tuple[int, ...] = ()) -> None:
        self._law = law
        self.alphabet = Alphabet(size, EOS, never, None, lambda tokens: [str(token) for token in tokens])

    def stepper(self) -> TreeStepper:
        return TreeStepper(self._law)


def outcomes(samples: Samples) -> list[Outcome]:
    texts = [tuple(map(int, sentence)) for sentence in samples.sentences]
    return list(zip(texts, samples.finished.tolist(), strict=True))


def assert_follows(drawn: Sequence[Hashable], law: Mapping[Hashable, float]) -> None:
    """Chi-square at a fixed seed; nothing impossible is drawn, rare outcomes are pooled."""
    assert math.fsum(law.values()) == pytest.approx(1.0, abs=1e-12)
    counts, n = Counter(drawn), len(drawn)
    assert set(counts) <= set(law)
    common = [outcome for outcome, p in law.items() if n * p >= 8.0]
    observed = [counts[outcome] for outcome in common]
    expected = [n * law[outcome] for outcome in common]
    rest = math.fsum(p for p in law.values() if n * p < 8.0)
    if rest > 0.0:
        observed.append(n - sum(observed))
        expected.append(n * rest)
    assert len(expected) > 2
    assert chisquare(observed, np.array(expected) * (n / math.fsum(expected))).pvalue > 1e-3


def truncated(decoding: Decoding) -> Law:
    """The law of the next token after temperature and truncation, by definition."""

    def full(taken: list[float], following: float, entropy: float) -> bool:
        if decoding.scheme in ("nucleus", "typical"):
            return math.fsum(taken) >= (decoding.top_p or decoding.typical_p)
        if decoding.scheme == "top_k":
            return len(taken) == decoding.top_k
        if decoding.scheme == "eta":
            return following < min(decoding.eta, math.sqrt(decoding.eta) * math.exp(-entropy))
        return decoding.scheme == "epsilon" and following < decoding.epsilon

    def law(text: Tokens) -> list[float]:
        p = [x ** (1.0 / (decoding.temperature or 1.0)) for x in toy(text)]
        p = [x / math.fsum(p) for x in p]
        entropy = -math.fsum(x * math.log(x) for x in p)
        key = {"typical": lambda i: abs(-math.log(p[i]) - entropy)}.get(decoding.scheme, lambda i: -p[i])
        kept: list[int] = []
        for i in sorted(range(len(p)), key=key):
            if kept and full([p[j] for j in kept], p[i], entropy):
                break
            kept.append(i)
        total = math.fsum(p[i] for i in kept)
        return [p[i] / total if i in kept else 0.0 for i in range(len(p))]

    return law


@pytest.mark.parametrize(
    "decoding",
    [
        Decoding(max_tokens=3),
        Decoding(max_tokens=1),
        Decoding(temperature=0.6, max_tokens=3),
        Decoding(scheme="nucleus", top_p=0.7, max_tokens=3),
        Decoding(scheme="nucleus", top_p=0.85, temperature=1.7, max_tokens=3),
        Decoding(scheme="top_k", top_k=2, max_tokens=3),
        Decoding(scheme="typical", typical_p=0.6, max_tokens=3),
        Decoding(scheme="typical", typical_p=0.6, temperature=2.0, max_tokens=3),
        Decoding(scheme="eta", eta=0.4, max_tokens=3),
        Decoding(scheme="epsilon", epsilon=0.25, max_tokens=3),
    ],
    ids=str,
)
def test_samples_follow_the_law_of_the_scheme(decoding: Decoding) -> None:
    law = ancestral(truncated(decoding), EOS, decoding.most)
    drawn = draw(ToyModel(toy), 6000, decoding, seed=1)
    assert_follows(outcomes(drawn), law)
    if decoding.scheme != "ancestral":
        assert len(law) < len(ancestral(toy, EOS, decoding.most))  # something was left out


@pytest.mark.long
@pytest.mark.parametrize("penalty", [1.0, 0.0])
@pytest.mark.parametrize("keep", ["best", "all"])
@pytest.mark.parametrize("dedupe", [True, False])
def test_beam_sampling_follows_its_enumerated_law(penalty: float, keep: str, dedupe: bool) -> None:
    beams = paper_beams(toy, EOS, 3, 2, penalty, dedupe=dedupe)
    decoding = Decoding(scheme="beam_sampling", beams=2, length_penalty=penalty, keep=keep, dedupe=dedupe, max_tokens=3)
    assert_beams(decoding, beams)


@pytest.mark.long
@pytest.mark.parametrize("penalty", [1.0, 0.0])
@pytest.mark.parametrize("keep", ["best", "all"])
def test_sampling_from_beams_follows_its_enumerated_law(penalty: float, keep: str) -> None:
    beams = hf_beams(toy, EOS, 3, 2, penalty)
    decoding = Decoding(scheme="beam_sampling_hf", beams=2, length_penalty=penalty, keep=keep, max_tokens=3)
    assert_beams(decoding, beams)


def assert_beams(decoding: Decoding, beams: Mapping[tuple[Outcome, ...], float]) -> None:
    n = 6000
    drawn = draw(ToyModel(toy), n, decoding, seed=2)
    law: Counter[Hashable] = Counter()
    if decoding.keep == "best":
        for beam, p in beams.items():
            law[beam[0]] += p
        assert_follows(outcomes(drawn), law)
        assert drawn.group.tolist() == list(range(n))
        return
    found: dict[int, list[Outcome]] = {}
    for group, outcome in zip(drawn.group.tolist(), outcomes(drawn), strict=True):
        found.setdefault(group, []).append(outcome)
    del found[max(found)]  # perhaps cut short
    assert_follows([tuple(beam) for beam in found.values()], beams)


@pytest.mark.long
@pytest.mark.parametrize("penalty", [1.0, 0.0])
def test_fairseq_returns_the_best_of_independent_sentences(penalty: float) -> None:
    decoding = Decoding(scheme="beam_sampling_fairseq", beams=3, length_penalty=penalty, max_tokens=3)
    assert_follows(outcomes(draw(ToyModel(toy), 6000, decoding, seed=3)), best_of(toy, EOS, 3, 3, penalty))


def test_all_of_the_hypotheses_of_fairseq_are_plain_samples() -> None:
    decoding = Decoding(scheme="beam_sampling_fairseq", beams=3, keep="all", max_tokens=3)
    drawn = draw(ToyModel(toy), 6000, decoding, seed=4)
    assert_follows(outcomes(drawn), ancestral(toy, EOS, 3))
    assert Counter(Counter(drawn.group.tolist()).values()) == {3: 2000}


@pytest.mark.long
def test_the_schemes_that_share_a_name_are_three() -> None:
    """Exact laws of the best hypothesis, far from each other and from the truth."""

    def of_best(beams: Mapping[tuple[Outcome, ...], float]) -> Counter[Outcome]:
        law: Counter[Outcome] = Counter()
        for beam, p in beams.items():
            law[beam[0]] += p
        return law

    laws = [
        ancestral(toy, EOS, 3),
        of_best(paper_beams(toy, EOS, 3, 2, 1.0, dedupe=True)),
        best_of(toy, EOS, 3, 2, 1.0),
        of_best(hf_beams(toy, EOS, 3, 2, 1.0)),
    ]
    for one, two in itertools.combinations(laws, 2):
        assert sum(abs(one.get(x, 0.0) - two.get(x, 0.0)) for x in set(one) | set(two)) / 2 > 0.05


def test_beam_search_finds_the_best_sentences() -> None:
    """Wide enough to forget nothing, it sorts all sentences; and nothing is drawn."""
    texts = sorted(ancestral(toy, EOS, 3).items(), key=lambda item: -item[1])
    ended = [outcome for outcome, _ in texts if outcome[1]][:3]
    drawn = draw(
        ToyModel(toy), 3, Decoding(scheme="beam", beams=16, keep="all", length_penalty=0.0, max_tokens=9), seed=1
    )
    assert outcomes(drawn) == ended
    with pytest.raises(InputError, match="beam search draws nothing: it gives 1"):
        draw(ToyModel(toy), 2, Decoding(scheme="beam", max_tokens=3), seed=1)


@pytest.mark.parametrize(
    "decoding",
    [
        Decoding(max_tokens=2),
        Decoding(scheme="nucleus", top_p=0.8, temperature=1.5, max_tokens=2),
        *(Decoding(scheme=s, beams=3, keep="all", max_tokens=2) for s in ("beam_sampling", "beam_sampling_hf")),
        Decoding(scheme="beam_sampling_fairseq", beams=3, max_tokens=2),
        Decoding(scheme="beam", beams=2, max_tokens=2),
    ],
    ids=str,
)
def test_log_probabilities_are_those_of_the_model_itself(decoding: Decoding) -> None:
    """Whatever the scheme; with the end where there is one; with what went to tokens that are never drawn."""

    def leaky(text: Tokens) -> list[float]:
        return [0.9 * p for p in toy(text)] + [0.04, 0.06]

    n = 1 if decoding.scheme == "beam" else 50
    drawn = draw(ToyModel(leaky, 5, never=(3, 4)), n, decoding, seed=6)
    for (text, finished), value in zip(outcomes(drawn), drawn.log_prob, strict=True):
        whole = (*text, EOS) if finished else text
        assert value == pytest.approx(sum(math.log(leaky(whole[:i])[x]) for i, x in enumerate(whole)), abs=1e-12)
        assert not {3, 4} & set(text)
        assert finished or len(text) == 2
    assert drawn.special / drawn.contexts == pytest.approx(0.1, abs=1e-12)
    assert n == 1 or 0 < drawn.finished.sum() < 50


def test_what_is_never_drawn_leaves_the_rest_in_proportion() -> None:
    def leaky(text: Tokens) -> list[float]:
        return [0.3, *(0.7 * p for p in toy(text)[1:]), 0.7 * toy(text)[0]]

    def without(text: Tokens) -> list[float]:
        return [0.0, *(p / 0.7 for p in leaky(text)[1:])]

    drawn = draw(ToyModel(leaky, 4, never=(0,)), 6000, Decoding(max_tokens=2), seed=7)
    assert_follows(outcomes(drawn), ancestral(without, EOS, 2))


@pytest.mark.parametrize("scheme", ["ancestral", "beam_sampling", "beam_sampling_hf", "beam_sampling_fairseq"])
def test_one_seed_gives_the_same_text(scheme: str) -> None:
    decoding = Decoding(scheme=scheme, beams=None if scheme == "ancestral" else 2, max_tokens=3)
    one, two = (draw(ToyModel(toy), 200, decoding, seed=8, rows=50) for _ in range(2))
    assert one.sentences == two.sentences
    assert one.sentences != draw(ToyModel(toy), 200, decoding, seed=9, rows=50).sentences
    assert one.sentences != draw(ToyModel(toy), 200, decoding, seed=8, stream=(1,), rows=50).sentences
    assert one.sentences[:50] != one.sentences[50:100]
    assert len(draw(ToyModel(toy), 0, decoding, seed=8).sentences) == 0


def test_a_model_without_probabilities_is_refused() -> None:
    for law in (lambda text: [math.nan, 0.5, 0.5], lambda text: [0.0, 0.0, 0.0]):
        with pytest.raises(InputError, match="not finite, or 0 for all words"):
            draw(ToyModel(law), 3, Decoding(max_tokens=3), seed=1)
    with pytest.raises(InputError, match="not finite, or 0 for all words"):
        draw(ToyModel(lambda text: [1.0, 0.0, 0.0], never=(0,)), 3, Decoding(max_tokens=3), seed=1)
    with pytest.raises(InputError, match="-1 sentences"):
        draw(ToyModel(toy), -1, Decoding(max_tokens=3), seed=1)
