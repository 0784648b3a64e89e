"""n-gram models against dictionaries: scores, distributions, next words, steppers, discounts, samples, files."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from nltk.lm import KneserNeyInterpolated
from reference_ngrams import EOS, UNK, KneserNey, Mle, log_probs
from scipy.stats import chisquare

from truesource.generator.columns import CodedSentences
from truesource.generator.language_model import DistributionModel, ScoringFrame, assemble_scores
from truesource.grammar.support.errors import InputError
from truesource.lmtrain.architectures.ngram.models import NgramModel, make_ngram
from truesource.lmtrain.architectures.ngram.trie import Smoothing, adjust, count_ngrams, discounts, read_stream
from truesource.lmtrain.decoding.decode import draw
from truesource.lmtrain.decoding.sampling import Stepper
from truesource.lmtrain.decoding.settings import Decoding
from truesource.lmtrain.tokenizer import build_tokenizer
from truesource.lmtrain.word_vocabulary import WordVocabulary

Sentences = list[list[str]]
WORDS = st.sampled_from([*"abcdef"])
CORPUS = st.lists(st.lists(WORDS, max_size=6), min_size=1, max_size=25).filter(any)
TEXTS = st.lists(st.lists(st.sampled_from([*"abcdefz"]), max_size=6), max_size=6)
FRAME = st.builds(ScoringFrame, eos=st.booleans(), first=st.booleans(), unk=st.sampled_from(["token", "skip"]))
SMOOTHING = st.sampled_from(["mle", "kneser_ney"])


def language(n: int, seed: int) -> Sentences:
    """Words of very different frequency, in no order."""
    rng = np.random.default_rng(seed)
    return [[f"w{i}" for i in (12 * rng.random(rng.integers(1, 8)) ** 3).astype(int)] for _ in range(n)]


def fit(
    corpus: Sentences,
    order: int,
    kind: Smoothing,
    min_count: int = 1,
    discount: np.ndarray[tuple[int, int], np.dtype[np.float64]] | None = None,
) -> NgramModel:
    tokenizer = build_tokenizer(corpus, min_count=min_count)
    v = WordVocabulary(tokenizer)
    trie = count_ngrams(read_stream(corpus, v), order, n_tokens=len(v), bos=v.bos, eos=v.eos)
    trie.check()
    model = make_ngram(adjust(trie, kind), kind, tokenizer, "n", discount=discount)
    assert isinstance(model, NgramModel)
    return model


def reference(model: NgramModel, corpus: Sentences) -> Mle:
    return (Mle if model.estimate.smoothing == "mle" else KneserNey)(
        corpus, model.estimate.trie.order, model.vocabulary
    )


def spelled(model: NgramModel) -> list[tuple[str, ...]]:
    """Every n-gram of the trie, in its order."""
    trie, tokens = model.estimate.trie, WordVocabulary(model.tokenizer).tokens
    found: list[tuple[str, ...]] = [()] * len(trie.word)
    for node in range(int(trie.level[-1])):
        for child in range(trie.start[node], trie.start[node + 1]):
            found[child] = (*found[node], tokens[int(trie.word[child])])
    return found


def assert_counts_are_exact(corpus: Sentences, order: int) -> None:
    model = fit(corpus, order, "mle")
    trie, ngrams = model.estimate.trie, spelled(model)
    expected = Mle(corpus, order, model.vocabulary).counts
    assert {x: int(c) for x, c in zip(ngrams, trie.count, strict=True) if c} == {
        x: c for counts in expected for x, c in counts.items()
    }
    assert model.n_ngrams == sum(map(len, expected))
    assert all(ngrams[trie.suffix[i]] == ngrams[i][1:] for i in range(1, len(ngrams)))
    for low, high in itertools.pairwise(trie.start):
        assert (np.diff(trie.word[low:high]) > 0).all()


@pytest.mark.long
@given(corpus=CORPUS, order=st.integers(1, 5))
@settings(max_examples=60)
def test_counts_are_those_of_a_dictionary(corpus: Sentences, order: int) -> None:
    assert_counts_are_exact(corpus, order)


@pytest.mark.long
def test_words_that_many_others_follow() -> None:
    """Such places are sorted digit by digit, and words of more than one byte need two digits."""
    rng = np.random.default_rng(0)
    assert_counts_are_exact([["a", *(f"w{i}" for i in rng.integers(700, size=3))] for _ in range(3000)], 3)


@pytest.mark.long
@given(corpus=CORPUS, texts=TEXTS, order=st.integers(1, 5), kind=SMOOTHING, min_count=st.integers(1, 2), frame=FRAME)
@settings(max_examples=150)
def test_scores_are_those_of_a_dictionary(
    corpus: Sentences, texts: Sentences, order: int, kind: Smoothing, min_count: int, frame: ScoringFrame
) -> None:
    if max(Counter(itertools.chain(*corpus)).values()) < min_count:
        min_count = 1
    model = fit(corpus, order, kind, min_count)
    texts += corpus[:3]
    truth = reference(model, corpus)
    unknown = [np.array([w not in truth.words for w in text], dtype=bool) for text in texts]
    expected = assemble_scores([np.array(log_probs(truth, text)) for text in texts], unknown, frame)
    found = model.score(texts, frame)
    assert found.log_prob == pytest.approx(expected.log_prob, abs=1e-12, rel=1e-12)
    for name in ("sentence", "position", "impossible"):
        assert np.array_equal(getattr(found, name), getattr(expected, name))
    assert (found.n_sentences, found.frame) == (len(texts), frame)
    if kind == "kneser_ney":
        assert not len(found.impossible)


@pytest.mark.long
@given(corpus=CORPUS, order=st.integers(1, 5), kind=SMOOTHING, data=st.data())
@settings(max_examples=80)
def test_expectations_agree_wherever_they_are_asked(
    corpus: Sentences, order: int, kind: Smoothing, data: st.DataObject
) -> None:
    """Distributions, next words and steppers give the reference's numbers, after seen and unseen contexts alike."""
    model = fit(corpus, order, kind)
    n = data.draw(st.integers(1, 5))
    texts = data.draw(st.lists(st.lists(st.sampled_from([*"abcdefz"]), min_size=n, max_size=n), min_size=1, max_size=4))
    truth = reference(model, corpus)
    events = [*model.vocabulary, UNK, EOS]
    v = WordVocabulary(model.tokenizer)
    columns = [*v.word_ids.tolist(), v.unk, v.eos]
    stepper: Stepper = model.stepper()
    stepped = stepper.start(len(texts))
    order_of = np.arange(len(texts))
    with np.errstate(divide="ignore"):
        for i, found in enumerate(model.distributions(texts)):
            expected = np.log([[truth.p(w, text[:i]) for w in events] for text in texts])
            assert (found.position, found.log_prob.shape) == (i, (len(texts), len(events)))
            assert found.log_prob == pytest.approx(expected, abs=1e-12, rel=1e-12)
            if kind == "kneser_ney":
                assert np.exp(found.log_prob).sum(axis=1) == pytest.approx(1.0, abs=1e-12)
            assert stepped.dtype == torch.float64
            assert np.array_equal(stepped[:, columns].numpy(), found.log_prob[order_of])
            assert (stepped[:, [v.pad, v.bos, v.mask]] == -torch.inf).all()
            after = model.next_token(texts[0][:i])
            assert np.log([*after.words, after.unk, after.eos]) == pytest.approx(expected[0], abs=1e-12, rel=1e-12)
            if i < n:
                parents = np.array(data.draw(st.permutations(range(len(texts)))))
                order_of = order_of[parents]
                tokens = [v.ids.get(texts[j][i], v.unk) for j in order_of]
                stepped = stepper.extend(torch.from_numpy(parents), torch.tensor(tokens))
    assert i == n


@pytest.mark.parametrize("order", [1, 2, 3, 4, 5])
def test_modified_discounts_on_a_corpus_that_has_them(order: int) -> None:
    """No length falls back here, and three discounts differ from one another."""
    corpus, held_out = language(600, 0), language(40, 1)
    model = fit(corpus, order, "kneser_ney", min_count=2)
    truth = KneserNey(corpus, order, model.vocabulary)
    assert model.estimate.discount == pytest.approx(np.array(truth.discount), abs=1e-15)
    assert all(len(set(row)) == 3 for row in model.estimate.discount.tolist()[1:])
    expected = [x for text in held_out for x in log_probs(truth, text)]
    assert model.score(held_out, ScoringFrame()).log_prob == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("counts_of_counts", "expected"),
    [
        ((100, 40, 20, 10), (5 / 9, 2 - 3 * 5 / 9 / 2, 3 - 4 * 5 / 9 / 2)),  # Y = 100 / 180
        ((100, 40, 20, 0), (5 / 9,) * 3),
        ((10, 1, 9, 9), (10 / 12,) * 3),  # the second discount would be below 0
        ((0, 40, 20, 10), (0.5,) * 3),
        ((100, 0, 20, 10), (0.5,) * 3),
    ],
)
def test_discounts_by_hand(counts_of_counts: tuple[int, ...], expected: tuple[float, ...]) -> None:
    counts = np.repeat(np.arange(1, 7, dtype=np.int32), [*counts_of_counts, 3, 2])
    assert discounts(counts) == pytest.approx(expected, abs=1e-15)


def test_bigrams_with_one_discount_are_those_of_nltk() -> None:
    """NLTK discounts bigrams only and has no ``<unk>`` below; it counts no bigram that ends in ``<s>``."""
    corpus = language(150, 2)
    model = fit(corpus, 2, "kneser_ney", discount=np.array([[0.0] * 3, [0.7] * 3]))
    peer = KneserNeyInterpolated(2, discount=0.7)
    marked = [["<s>", *sentence, "</s>"] for sentence in corpus]
    bigrams = [[*itertools.pairwise(s)] for s in marked]
    peer.fit([[*((w,) for w in s), *b] for s, b in zip(marked, bigrams, strict=True)], {w for s in marked for w in s})
    for previous in (None, *model.vocabulary):
        after = model.next_token([] if previous is None else ["w0", previous])
        context = ("<s>" if previous is None else previous,)
        expected = [peer.score(w, context) for w in (*model.vocabulary, "</s>")]
        assert [*after.words, after.eos] == pytest.approx(expected, abs=1e-12)


def test_the_order_of_sentences_and_their_form_do_not_matter() -> None:
    corpus = language(200, 3)
    one, two = fit(corpus, 4, "mle").estimate.trie, fit(corpus[::-1], 4, "mle").estimate.trie
    coded = CodedSentences.of(corpus)
    v = WordVocabulary(build_tokenizer(corpus))
    three = count_ngrams(read_stream(coded, v), 4, n_tokens=len(v), bos=v.bos, eos=v.eos)
    for name in ("level", "start", "word", "suffix", "count"):
        assert np.array_equal(getattr(one, name), getattr(two, name))
        assert np.array_equal(getattr(one, name), getattr(three, name))


@pytest.mark.long
@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("kind", ["mle", "kneser_ney"])
def test_samples_follow_the_exact_distribution(order: int, kind: Smoothing) -> None:
    """All sentences of up to two words from a model of three, and the rest together: chi-square."""
    corpus = [[*s] for s in ("ab", "ab", "abc", "ba", "a", "a", "cab", "bb", "bca", "c")]
    model = fit(corpus, order, kind)
    n = 20_000
    drawn = draw(model, n, Decoding(), seed=5)
    truth = reference(model, corpus)
    events = [*model.vocabulary, UNK]
    short = [list(s) for k in range(3) for s in itertools.product(events, repeat=k)]
    p = np.array([np.exp(sum(log_probs(truth, s))) for s in short])
    p = np.append(p, 1.0 - p.sum())
    counts = Counter(tuple(s) for s in drawn.sentences)
    found = np.array([counts[tuple(s)] for s in short])
    found = np.append(found, n - found.sum())
    assert not found[p <= 0.0].any()
    large = n * p >= 5.0
    pooled = [np.append(x[large], x[~large].sum()) for x in (found, n * p)]
    if pooled[1][-1] == 0.0:
        pooled = [x[:-1] for x in pooled]
    assert chisquare(*pooled).pvalue > 1e-3
    if kind == "kneser_ney":
        assert any(UNK in s for s in drawn.sentences)


def test_it_is_a_distribution_model() -> None:
    model: DistributionModel = fit([["a", "b"]], 2, "kneser_ney")
    assert (model.name, model.objective, model.vocabulary) == ("n", "causal", ("a", "b"))
    assert list(model.distributions([])) == []
    assert model.score([], ScoringFrame()).n_sentences == 0
    with pytest.raises(InputError, match="one length"):
        list(model.distributions([["a"], ["a", "b"]]))


def test_an_order_beyond_the_longest_sentence_adds_nothing() -> None:
    corpus = [["a", "b"], ["b"]]
    texts = [["a", "b"], ["b", "a", "b", "a"]]
    for kind in ("mle", "kneser_ney"):
        at_most, beyond = (fit(corpus, order, kind) for order in (4, 9))  # 4 is <bos> a b <eos>
        assert beyond.n_ngrams == at_most.n_ngrams
        assert beyond.score(texts[:1], ScoringFrame()).log_prob == pytest.approx(
            at_most.score(texts[:1], ScoringFrame()).log_prob
        )
    assert fit(corpus, 9, "mle").score(texts, ScoringFrame()).impossible.tolist() == [1]


def test_too_much_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = language(20, 0)
    monkeypatch.setattr("truesource.lmtrain.architectures.ngram.trie.MOST_NODES", 30)
    with pytest.raises(InputError, match="more than 30 different n-grams"):
        fit(corpus, 3, "mle")
    monkeypatch.setattr("truesource.lmtrain.architectures.ngram.trie.MOST_TOKENS", 30)
    with pytest.raises(InputError, match="n-gram counts take 30 tokens"):
        fit(corpus, 3, "mle")


def test_decoding_schemes_run_on_it() -> None:
    """Always the most probable token is what next words say."""
    corpus = language(200, 6)
    model = fit(corpus, 3, "kneser_ney")
    text: list[str] = []
    events = [*model.vocabulary, UNK, EOS]
    while True:
        after = model.next_token(text)
        best = events[int(np.argmax([*after.words, after.unk, after.eos]))]
        if best == EOS or len(text) == 20:
            break
        text.append(best)
    greedy = draw(model, 2, Decoding(scheme="top_k", top_k=1, max_tokens=20), seed=0)
    assert greedy.sentences == [text, text]
