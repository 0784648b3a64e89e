"""Samples of processes against their exact distributions, and corpora of them."""

from __future__ import annotations

from collections import Counter
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from truesource.generator.corpus import Corpus
from truesource.generator.plan import BlockShuffle, Columns, Reversal, sentences_for
from truesource.generator.process_sampler import ProcessSampler, sampler_of
from truesource.generator.sampler import Sampler
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.pcfg import language
from truesource.grammar.support.arrays import random_state
from truesource.grammar.support.errors import InputError
from truesource.grammar.truth import load_truth, process

N = 60_000
CASES = (
    ("shuffle-dyck:k=2,depth=3,p_open=0.4", None),
    ("shuffle-dyck:k=2,depth=3,p_open=0.6", LengthRange(4, 6)),
    ("copy:vocabulary=2,longest=3,p=0.6", None),
    ("copy:vocabulary=2,longest=3", LengthRange(3, 5)),
    ("copy:vocabulary=2,longest=3,marker=false", None),
    ("copy:vocabulary=2,longest=3,marker=false", LengthRange(2, 4)),
)


@pytest.mark.long
@pytest.mark.parametrize(("name", "lengths"), CASES)
def test_strings_follow_the_exact_distribution(name: str, lengths: LengthRange | None) -> None:
    one = process(name)
    sampler = sampler_of(one, lengths)
    drawn = sampler.draw(N, random_state(11))
    sentences = sampler.sentences(drawn)
    exact = one.exact.string_log_probs(sentences[:500])
    np.testing.assert_allclose(drawn.log_prob[:500], exact, atol=1e-11)  # not conditioned
    every = [s for n in range(1, 7) for s in product(one.vocabulary, repeat=n)]
    probability = np.exp(one.exact.string_log_probs(every, lengths))
    counts = Counter(map(tuple, sentences))
    often = N * probability >= 8
    observed = [counts[s] for s, kept in zip(every, often, strict=True) if kept]
    expected = N * probability[often]
    rest = N - expected.sum()
    if rest > 1e-6:
        observed.append(N - sum(observed))
        expected = np.append(expected, rest)
    assert sum(observed) == N and len(observed) > 5
    assert stats.chisquare(observed, expected, sum_check=False).pvalue > 1e-3


@pytest.mark.long
def test_lengths_of_a_language_of_any_size() -> None:
    one, lengths = process("shuffle-dyck", k=64, depth=100), LengthRange(10, 40)
    sampler = sampler_of(one, lengths)
    drawn = sampler.draw(N, random_state(3))
    pmf = one.exact.length_pmf(40, lengths)
    assert stats.chisquare(np.bincount(drawn.n_tokens, minlength=41)[10::2], N * pmf[10::2]).pvalue > 1e-3
    np.testing.assert_allclose(sampler.log_mass, np.log(one.exact.range_mass(lengths)))


@pytest.mark.long
def test_a_corpus_is_the_same_on_any_number_of_workers_and_says_which_truth_made_it(tmp_path: Path) -> None:
    one = process("copy", vocabulary=50, longest=10)
    asked = {"splits": {"train": 300, "eval": 100}, "seed": 5, "lengths": LengthRange(3, 15), "shard_size": 100}
    first = Corpus.sample(one, path=tmp_path / "a", **asked)
    second = Corpus.sample(one, path=tmp_path / "b", workers=2, **asked)
    assert first.digest == second.digest and first.trees_as == "none"
    assert first.record["grammar"] == {"digest": one.digest, "sizes": {"words": 51}, "process": one.name}
    assert "process `copy:vocabulary=50,longest=10,p=0.9,times=2,marker=true`, 51 words" in (
        (tmp_path / "a" / "README.md").read_text()
    )
    truth = load_truth(tmp_path / "a" / "grammar.npz")
    assert Corpus.replay(tmp_path / "a" / "record.json", truth, tmp_path / "c").digest == first.digest
    assert all(
        len(s) in LengthRange(3, 15) and s[: len(s) // 2] == s[len(s) // 2 + 1 :] for s in first.sentences("train")
    )


def test_the_card_of_a_process_of_ones_own_names_no_file(tmp_path: Path) -> None:
    one = process("copy", vocabulary=5, longest=4)
    one.meta = {}
    Corpus.sample(one, {"train": 20}, seed=1, path=tmp_path / "c")
    card = (tmp_path / "c" / "README.md").read_text("utf-8")
    assert "The process is custom code" in card and "grammar.npz" not in card
    assert not (tmp_path / "c" / "grammar.npz").exists()


def test_disjoint_splits_have_an_exact_correction(tmp_path: Path) -> None:
    one, grammar = process("copy:vocabulary=2,longest=4"), language("copy", vocabulary=2, longest=4)
    asked = {"splits": {"train": 40, "test": 40}, "seed": 2, "overlap": "disjoint", "columns": Columns(trees="none")}
    corpus = Corpus.sample(one, path=tmp_path / "p", **asked)
    known = {tuple(s) for s in corpus.sentences("train")}
    assert known.isdisjoint(map(tuple, corpus.sentences("test")))
    mass = np.exp(grammar.exact.string_log_probs(sorted(known))).sum()
    assert corpus.record["splits"]["test"]["excluded"]["probability"] == pytest.approx(mass, rel=1e-12)


def test_what_needs_trees_is_refused(tmp_path: Path) -> None:
    one = process("copy", vocabulary=50, longest=10)
    splits = {"train": 10}
    for asked, what in (
        ({"columns": Columns(trees="text")}, "a corpus with bracketed trees"),
        ({"max_height": 5}, "a highest tree"),
        ({"transform": Reversal()}, "another order of words"),
        ({"transform": BlockShuffle()}, "another order of words"),
    ):
        with pytest.raises(InputError, match=f"^{what}.* needs trees") as caught:
            Corpus.sample(one, splits, seed=1, path=tmp_path / "x", **asked)
        assert caught.value.code == "missing-ability"
    assert not any(tmp_path.iterdir())
    with pytest.raises(InputError, match="words on average; specify a range of lengths"):
        sampler_of(process("shuffle-dyck", k=2, depth=200, p_open=0.7))


def test_the_sampler_is_that_of_the_truth() -> None:
    assert isinstance(sampler_of(language("dyck")), Sampler)
    assert isinstance(sampler_of(process("copy")), ProcessSampler)
    one = process("shuffle-dyck", k=64, depth=100, p_open=0.5)
    lengths = LengthRange(2, 20)
    mean = np.arange(21) @ one.exact.length_pmf(20, lengths)
    assert sentences_for(one, 10_000, lengths) == round(10_000 / mean)
    empty = sampler_of(one, lengths).draw(0, random_state(1))
    assert len(empty) == 0
    with pytest.raises(InputError, match=r"a string of shuffle-dyck:k=64,depth=100,p_open=0\.5 exceeded 3 words;"):
        sampler_of(one, lengths).draw(50, random_state(1), max_nodes=3)
