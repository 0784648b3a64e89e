"""The grammar of an n-gram model gives the scores of the model, token by token."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from truesource.evaluation.core.oracle import Oracle
from truesource.generator.language_model import ScoringFrame
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.errors import InputError
from truesource.lmtrain.architectures.ngram import as_grammar as module
from truesource.lmtrain.architectures.ngram.as_grammar import as_grammar
from truesource.lmtrain.architectures.ngram.models import NgramModel, make_ngram
from truesource.lmtrain.architectures.ngram.trie import Smoothing, adjust, count_ngrams, read_stream
from truesource.lmtrain.subword_vocabulary import SubwordVocabulary
from truesource.lmtrain.subwords import build_subword_tokenizer
from truesource.lmtrain.tokenizer import UNK, build_tokenizer
from truesource.lmtrain.word_vocabulary import WordVocabulary

Sentences = list[list[str]]
CORPUS = st.lists(st.lists(st.sampled_from([*"aaabbc"]), max_size=5), min_size=1, max_size=12).filter(any)


def fit(corpus: Sentences, order: int, kind: Smoothing, min_count: int = 1) -> NgramModel:
    tokenizer = build_tokenizer(corpus, min_count=min_count)
    v = WordVocabulary(tokenizer)
    trie = count_ngrams(read_stream(corpus, v), order, n_tokens=len(v), bos=v.bos, eos=v.eos)
    return make_ngram(adjust(trie, kind), kind, tokenizer, "n")


@pytest.mark.long
@given(CORPUS, st.integers(1, 4), st.sampled_from(["mle", "kneser_ney"]), st.integers(1, 2))
@settings(max_examples=25, deadline=None)
def test_next_token_probabilities_are_those_of_the_model(
    corpus: Sentences, order: int, kind: Smoothing, min_count: int
) -> None:
    """After all prefixes of random sentences, unknown words read as ``<unk>`` by both; the start without the end."""
    if not any(sum(w == word for s in corpus for w in s) >= min_count for word in "abc"):
        min_count = 1
    model = fit(corpus, order, kind, min_count)
    grammar = PCFG.of(as_grammar(model))
    assert grammar.exact.total_mass == pytest.approx(1.0, abs=1e-9)
    assert grammar.exact.reached.all()
    empty = model.next_token([]).eos
    assert grammar.meta["empty"]["mass"] == pytest.approx(empty, rel=1e-10, abs=1e-300)
    rng = np.random.default_rng(7)
    words = [*model.vocabulary, UNK]
    for _ in range(8):
        sentence = [words[i] for i in rng.integers(len(words), size=rng.integers(0, 6))]
        for n in range(len(sentence) + 1):
            of_model = model.next_token(sentence[:n])
            p = np.array([*of_model.words, of_model.unk, of_model.eos])
            if not p.any() or not np.isfinite(grammar.prefix_log_prob(sentence[:n])):  # never seen, of mle
                assert model.score([sentence], ScoringFrame()).impossible.tolist() == [0]
                assert grammar.log_prob(sentence) == -np.inf
                break
            found = grammar.next_token(sentence[:n])
            of_word = dict(zip(found.words, found.probability.tolist(), strict=True))
            q = np.array([*(of_word.get(word, 0.0) for word in words), found.stop])
            if n == 0:
                p[-1] = 0.0
                p /= 1.0 - empty
            assert q == pytest.approx(p, rel=1e-10, abs=1e-15)


@pytest.mark.parametrize("kind", ["mle", "kneser_ney"])
def test_scores_are_those_of_the_model(kind: Smoothing) -> None:
    """A larger model: all tokens of all sentences, by the two ways in which models and truths are scored."""
    rng = np.random.default_rng(3)
    corpus = [[f"w{i}" for i in (12 * rng.random(rng.integers(1, 8)) ** 3).astype(int)] for _ in range(300)]
    model = fit(corpus, 3, kind, min_count=2)
    grammar = PCFG.of(as_grammar(model))
    assert (UNK in grammar.vocabulary) or kind == "mle"
    read = [[w if w in model.vocabulary else UNK for w in sentence] for sentence in corpus[:150]]
    frame = ScoringFrame()
    of_model, of_grammar = model.score(read, frame), Oracle(grammar).score(read, frame)
    assert not len(of_model.impossible) and not len(of_grammar.impossible)
    shift = np.where(of_model.position == 0, np.log1p(-grammar.meta["empty"]["mass"]), 0.0)
    assert of_grammar.log_prob == pytest.approx(of_model.log_prob - shift, abs=1e-10)


def test_too_large_a_grammar_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is looked up; ``mle`` is sparse, so the same counts make a smaller grammar."""
    corpus = [[*"abc"], [*"cab"], [*"bb"]]
    monkeypatch.setattr(module, "LARGEST", 60)
    with pytest.raises(InputError, match=r"up to \d+ rules \(\d+ contexts, 4 words\), more than the 60") as caught:
        as_grammar(fit(corpus, 3, "kneser_ney"))
    assert caught.value.code == "too-large"
    assert as_grammar(fit(corpus, 3, "mle")).n_rules <= 60


def test_a_model_of_pieces_is_refused() -> None:
    corpus = [["abc", "cab"], ["bb"]]
    tokenizer = build_subword_tokenizer(corpus, "bpe", 12)
    v = SubwordVocabulary(tokenizer)
    trie = count_ngrams(read_stream(corpus, v), 2, n_tokens=len(v), bos=v.bos, eos=v.eos)
    with pytest.raises(InputError, match="pieces of words"):
        as_grammar(make_ngram(trie, "mle", tokenizer, "n"))
