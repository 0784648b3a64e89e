"""Samples of documents against their exact law, and the languages that corpora of them record."""

from __future__ import annotations

from collections import Counter
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from truesource.generator.corpus import Corpus
from truesource.generator.process_sampler import sampler_of
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.documents.document import SEPARATOR, DocumentProcess
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import random_state
from truesource.grammar.support.errors import InputError
from truesource.grammar.truth import load_truth, process

N = 40_000
CASES = (
    ("pool:family=pfsa/states=3/vocabulary=2/mean_length=2,languages=5,strings=2", None),
    ("pool:family=pfsa/states=3/vocabulary=2/mean_length=3,languages=5,strings=2", LengthRange(3, 5)),
    ("pool:family=hmm/states=3/vocabulary=2/mean_length=2,languages=3,strings=2,switch=0.5", None),
    ("pool:family=palindrome/k=2/mean_length=2.2|pfsa/states=2/vocabulary=2/mean_length=2,strings=2,switch=0.4", None),
    (
        "pool:family=palindrome/k=2/mean_length=2.2|pfsa/states=2/vocabulary=2/mean_length=2,strings=2,number=geometric",
        None,
    ),
    ("dirichlet-markov:vocabulary=2,mean_length=2,strings=2", None),
    ("dirichlet-markov:order=0,vocabulary=2,mean_length=9,strings=1", LengthRange(4, 6)),
    ("dirichlet-automaton:states=2,vocabulary=2,transitions=2,mean_length=2,strings=2", None),
    ("context-tree:vocabulary=2,mean_length=2,strings=2,number=geometric", None),
)


@pytest.mark.long
@pytest.mark.parametrize(("name", "lengths"), CASES)
def test_documents_follow_the_exact_distribution(name: str, lengths: LengthRange | None) -> None:
    one = process(name)
    sampler = sampler_of(one, lengths)
    n = N if "|" not in name else N // 10  # charts take longer
    drawn = sampler.draw(n, random_state(7))
    documents = sampler.sentences(drawn)
    np.testing.assert_allclose(drawn.log_prob[:300], one.exact.string_log_probs(documents[:300]), atol=1e-10)
    every = [d for n in range(1, 7) for d in product(one.vocabulary, repeat=n)]
    probability = np.exp(one.exact.string_log_probs(every, lengths))
    counts = Counter(map(tuple, documents))
    often = n * probability >= 8
    observed = [counts[d] for d, kept in zip(every, often, strict=True) if kept]
    expected = n * probability[often]
    rest = n - expected.sum()
    if rest > 1e-6:
        observed.append(n - sum(observed))
        expected = np.append(expected, rest)
    assert len(observed) > 10
    assert stats.chisquare(observed, expected, sum_check=False).pvalue > 1e-3


@pytest.mark.long
def test_languages_are_drawn_with_their_documents() -> None:
    """The pairs of language and document against P(language) P(document | language)."""
    one = process(CASES[0][0])
    assert isinstance(one, DocumentProcess) and one.languages is not None
    sampler = sampler_of(one)
    drawn = sampler.draw(N, random_state(8))
    assert drawn.language is not None
    pairs = Counter(zip(drawn.language.tolist(), map(tuple, sampler.sentences(drawn)), strict=True))
    strings = [s for n in (1, 2) for s in product(("w1", "w2"), repeat=n)]
    observed, expected = [], []
    for k, name in enumerate(one.languages):
        p = np.exp(PCFG.load(name).exact.string_log_probs(strings))
        for (a, p_a), (b, p_b) in product(zip(strings, p, strict=True), repeat=2):
            if N * p_a * p_b / 5 >= 8:
                observed.append(pairs[k, (*a, SEPARATOR, *b)])
                expected.append(N * p_a * p_b / 5)
    observed.append(N - sum(observed))
    expected.append(N - sum(expected))
    assert len(observed) > 50
    assert stats.chisquare(observed, expected).pvalue > 1e-3


@pytest.mark.long
def test_a_corpus_of_documents_says_the_language_of_each(tmp_path: Path) -> None:
    one = load_truth("pool:languages=6,strings=4")
    asked = {"splits": {"train": 300, "eval": 50}, "seed": 3, "shard_size": 100}
    first = Corpus.sample(one, path=tmp_path / "a", **asked)
    second = Corpus.sample(one, path=tmp_path / "b", workers=2, **asked)
    assert first.digest == second.digest
    assert first.record["grammar"]["sizes"] == {"words": 17, "languages": 6}
    assert "number, from 0 on, of the language of the document" in (tmp_path / "a" / "README.md").read_text()
    numbers = first.languages("train")
    assert len(numbers) == 300 and set(numbers) == set(range(6))
    documents = first.sentences("train")
    assert all(d.count(SEPARATOR) == 3 for d in documents)
    assert isinstance(one, DocumentProcess)
    last = np.array([p[-1] for p in one.posterior(documents[:100])])
    assert last[np.arange(100), numbers[:100]].mean() > 0.8, "the text tells the language"
    truth = load_truth(tmp_path / "a" / "grammar.npz")
    assert Corpus.replay(tmp_path / "a" / "record.json", truth, tmp_path / "c").digest == first.digest
    unique = Corpus.sample(one, {"train": 40, "eval": 40}, seed=1, overlap="unique", path=tmp_path / "u")
    assert len(unique.languages("eval")) == 40


def test_other_corpora_have_no_languages(tmp_path: Path) -> None:
    corpus = Corpus.sample(load_truth("dirichlet-markov"), {"train": 20}, seed=1, path=tmp_path / "d")
    with pytest.raises(InputError, match="are no documents of a pool of languages"):
        corpus.languages("train")
    assert "`language`" not in (tmp_path / "d" / "README.md").read_text()
