"""Splits that share no sentences, height caps, optional columns, several jobs: exact laws, same bytes."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from other_process import locked_elsewhere
from reference_inference import all_strings, derivations, rules_of
from scipy import stats

from truesource.generator import shard_writer
from truesource.generator.corpus import Corpus
from truesource.generator.corpus_builder import make_corpus
from truesource.generator.plan import Columns, Plan, plan_shards, sentences_for
from truesource.generator.sampler import Sampler
from truesource.generator.shard_writer import ShardSampler, Spelling, deal
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import digest_file
from truesource.grammar.support.parallel import Share, Workers, run_each

LENGTHS = LengthRange(1, 5)
GRAMMAR = """\
S -> S A 0.3
S -> A 0.3
S -> 'x' 0.4
A -> A A 0.2
A -> S 0.1
A -> 'a' 0.5
A -> 'b' 0.2
"""
ONE_JOB = Workers()


@pytest.fixture(scope="module")
def pcfg():
    return PCFG.from_text(GRAMMAR)


@pytest.fixture(scope="module")
def strings(pcfg):
    """P(string | length in range) of every string."""
    found = {s: p for table in all_strings(rules_of(pcfg), LENGTHS.high)["S"] for s, p in table.items()}
    total = math.fsum(found.values())
    return {s: p / total for s, p in found.items()}


def sample(pcfg, path, splits, **changes):
    call = {"seed": 3, "lengths": LENGTHS, "shard_size": 500, **changes}
    return Corpus.sample(pcfg, splits, path=path, **call)


def files(folder):
    return {str(f.relative_to(folder)): digest_file(f) for f in folder.rglob("*") if f.is_file()}


def chi_square_p(counts, probability, n):
    frequent = [s for s, p in probability.items() if n * p >= 8]
    observed, expected = [counts[s] for s in frequent], [n * probability[s] for s in frequent]
    observed.append(n - sum(observed))
    expected.append(n - sum(expected))
    if expected[-1] < 8:
        observed[-2:], expected[-2:] = [sum(observed[-2:])], [sum(expected[-2:])]
    assert len(observed) > 3
    return stats.chisquare(observed, expected, sum_check=False).pvalue


# -- disjoint -------------------------------------------------------------------------------------------


@pytest.mark.long
def test_disjoint_splits_and_their_exact_law(pcfg, strings, tmp_path):
    corpus = sample(pcfg, tmp_path / "c", {"train": 100, "dev": 300, "test": 8000}, overlap="disjoint")
    found = {split: [tuple(s) for s in corpus.sentences(split)] for split in corpus.splits}
    before = set()
    for split, own in found.items():
        assert not before & set(own)
        excluded = corpus.record["splits"][split]["excluded"]
        if split == "train":
            assert excluded is None
        else:
            mass = math.fsum(strings[s] for s in before)
            assert excluded["exact"]
            assert excluded["probability"] == pytest.approx(mass, abs=1e-12)
            assert excluded["log_correction"] == pytest.approx(-math.log(1 - mass), abs=1e-11)
            law = {s: p / (1 - mass) for s, p in strings.items() if s not in before}
            assert chi_square_p(Counter(own), law, len(own)) > 1e-3
            assert corpus.record["splits"][split]["overlap"] == {"types": 0.0, "tokens": 0.0}
        before |= set(own)
    card = (corpus.path / "README.md").read_text()
    assert "No split has a sentence of an earlier one" in card
    assert f"| test | {excluded['probability']:.8g} (exact) |" in card


@pytest.mark.long
def test_the_mass_of_large_splits_is_estimated(pcfg, strings, tmp_path, monkeypatch):
    splits = {"train": 3000, "test": 4000}
    with monkeypatch.context() as patch:
        patch.setattr("truesource.generator.corpus_builder.EXACT_UP_TO", 10)
        corpus = sample(pcfg, tmp_path / "c", splits, overlap="disjoint")
        exact = sample(pcfg, tmp_path / "d", splits, overlap="disjoint", exact_correction=True)
    excluded = corpus.record["splits"]["test"]["excluded"]
    mass = math.fsum(strings[s] for s in {tuple(s) for s in corpus.sentences("train")})
    assert not excluded["exact"]
    assert excluded["interval"][0] < mass < excluded["interval"][1]
    assert excluded["interval"][1] - excluded["interval"][0] < 0.02
    assert excluded["probability"] == pytest.approx((excluded["drawn"] - 4000) / excluded["drawn"])
    assert "95% interval" in (corpus.path / "README.md").read_text()
    assert exact.digest == corpus.digest
    assert exact.record["splits"]["test"]["excluded"]["probability"] == pytest.approx(mass, abs=1e-12)


def test_wilson_interval_holds():
    """Newcombe (1998), case 81/263."""
    probability, interval = shard_writer.estimated(263, 263 - 81)
    assert probability == pytest.approx(81 / 263)
    assert interval == pytest.approx((0.2553, 0.3662), abs=1e-4)
    assert shard_writer.estimated(9, 6) == (pytest.approx(1 / 3), None)
    assert shard_writer.estimated(10, 6)[1] is not None


def test_a_language_that_is_used_up(tmp_path):
    tiny = PCFG.from_text("S -> 'a' 0.5 | 'b' 0.5")
    for overlap, message in [
        ("disjoint", "sentences drawn for test, only 0 are not in earlier splits"),
        ("unique", r"only 2 distinct sentences in [\d,]+ draws, not 52"),
    ]:
        with pytest.raises(InputError, match=message):
            sample(tiny, tmp_path / "c", {"train": 50, "test": 2}, lengths=None, overlap=overlap)
        assert not (tmp_path / "c").exists()


def test_a_language_too_small_for_unique_sentences_says_so_after_few_draws(tmp_path, monkeypatch):
    tiny = PCFG.from_text("S -> A A A 1.0\nA -> " + " | ".join(f"'{word}' 0.2" for word in "abcde"))
    asked = []

    def spied(function, blocks, workers):
        asked.append((blocks.start, len(blocks)))
        assert blocks.stop <= 2000  # of 100 sentences each; the limit is 50,000
        return run_each(function, blocks, workers)

    monkeypatch.setattr("truesource.generator.shard_writer.run_each", spied)
    with pytest.raises(InputError, match=r"only 125 distinct sentences in [\d,]+ draws, not 5,000"):
        sample(tiny, tmp_path / "c", {"train": 5000}, overlap="unique", shard_size=100)
    assert all(more <= 2 * have for have, more in asked[1:])


@pytest.mark.parametrize("at_once", [1, 40, 2**24])
def test_unique_sentences_do_not_depend_on_how_many_are_drawn_at_once(pcfg, tmp_path, monkeypatch, at_once):
    """Against the first different ones of the stream, found one by one."""
    monkeypatch.setattr("truesource.generator.shard_writer.AT_ONCE", at_once)
    drawing = ShardSampler(Sampler(pcfg, LENGTHS), Spelling.of(pcfg), Columns(), tmp_path, 7, block=20)
    shards, found = deal(drawing, plan_shards({"train": 150}, 50), ONE_JOB)
    known, places = set(), []
    for block in range(1 + found["drawn"] // 20):
        for at, value in enumerate(drawing.hashes_of(drawing.pool(block)).tolist(), start=20 * block):
            if value not in known and len(known) < 150:
                known.add(value)
                places.append(at)
    picked = [b * 20 + at for shard in shards for b, kept in shard.picks for at in np.flatnonzero(kept)]
    assert picked == places
    assert found == {"drawn": places[-1] + 1, "repeated": places[-1] + 1 - 150}


# -- unique ---------------------------------------------------------------------------------------------


def test_unique_sentences(pcfg, tmp_path):
    corpus = sample(pcfg, tmp_path / "c", {"train": 150, "dev": 30, "test": 20}, overlap="unique", shard_size=64)
    own = [tuple(s) for split in corpus.splits for s in corpus.sentences(split)]
    assert len(set(own)) == len(own) == 200
    found = corpus.record["unique"]
    assert found["repeated"] == found["drawn"] - 200 > 200
    assert f"{found['repeated']:,} repeated an earlier one" in (corpus.path / "README.md").read_text()
    assert {split: counts["different"] for split, counts in corpus.record["splits"].items()} == corpus.splits
    assert len(list(corpus.trees("dev"))) == 30
    for tree, sentence in zip(corpus.trees("test"), corpus.sentences("test"), strict=True):
        assert tree.leaves() == sentence


@pytest.mark.long
def test_unique_splits_follow_successive_sampling(tmp_path):
    """P(set of train, set of test) in a language of four sentences, by enumeration of the order they first occur in."""
    p = {"a": 0.5, "b": 0.25, "c": 0.15, "d": 0.1}
    pcfg = PCFG.from_text("S -> " + " | ".join(f"'{w}' {q}" for w, q in p.items()))
    exact = Counter()
    for order in itertools.permutations(p, 3):
        probability, rest = 1.0, 1.0
        for word in order:
            probability *= p[word] / rest
            rest -= p[word]
        for test in order:  # one of the three goes to test, each with a third
            exact[frozenset(order) - {test}, test] += probability / 3
    assert math.fsum(exact.values()) == pytest.approx(1.0)
    n, counts = 3000, Counter()
    sampler, spelling = Sampler(pcfg), Spelling.of(pcfg)
    for seed in range(n):
        drawing = ShardSampler(sampler, spelling, Columns(), tmp_path, seed, block=2)
        shards, _ = deal(drawing, plan_shards({"train": 2, "test": 1}, 2), ONE_JOB)
        train, test = (sampler.sentences(drawing.draw(shard)[0]) for shard in shards)
        counts[frozenset(s[0] for s in train), test[0][0]] += 1
    assert chi_square_p(counts, exact, n) > 1e-3


# -- the same bytes -------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("overlap", ["iid", "disjoint", "unique"])
def test_jobs_and_workers_do_not_change_a_byte(pcfg, tmp_path, overlap):
    call = {"splits": {"train": 160, "test": 40}, "seed": 5, "lengths": LENGTHS, "shard_size": 30, "overlap": overlap}
    plan = Plan(**call)
    make_corpus(pcfg, plan, tmp_path / "one" / "c", workers=ONE_JOB)
    wanted = files(tmp_path / "one" / "c")
    make_corpus(pcfg, plan, tmp_path / "two" / "c", workers=Workers(2))
    assert files(tmp_path / "two" / "c") == wanted
    path = tmp_path / "jobs" / "c"
    assert [make_corpus(pcfg, plan, path, workers=ONE_JOB, share=Share(k, 3)) for k in (2, 0)] == [False, False]
    assert not path.exists()
    with pytest.raises(InputError, match="holds parts of another corpus"):
        make_corpus(pcfg, Plan(**{**call, "seed": 6}), path, workers=ONE_JOB, share=Share(1, 3))
    assert make_corpus(pcfg, plan, path, workers=ONE_JOB, share=Share(1, 3))
    assert files(path) == wanted
    assert [f.name for f in path.parent.iterdir()] == ["c"]
    assert make_corpus(pcfg, plan, path, workers=ONE_JOB, share=Share(0, 3))  # a job given again
    assert files(path) == wanted
    assert files(Corpus.replay(Corpus.load(path).record, pcfg, tmp_path / "again" / "c").path) == wanted


@pytest.mark.long
@pytest.mark.parametrize("overlap", ["disjoint", "unique"])
def test_interrupted_and_resumed(pcfg, tmp_path, monkeypatch, overlap):
    splits = {"train": 160, "test": 40}
    wanted = files(sample(pcfg, tmp_path / "a" / "c", splits, overlap=overlap, shard_size=30).path)
    write = ShardSampler.write
    for most in (1, 3, 6):
        written = []

        def interrupted(self, shard, written=written, most=most):
            if len(written) == most:
                raise KeyboardInterrupt
            written.append(shard)
            return write(self, shard)

        with monkeypatch.context() as patch:
            patch.setattr(ShardSampler, "write", interrupted)
            if len(list((tmp_path / ".c.partial").glob("data/*"))) + most < len(wanted) - 4:
                with pytest.raises(KeyboardInterrupt):
                    sample(pcfg, tmp_path / "c", splits, overlap=overlap, shard_size=30)
                assert len(written) == most
    assert files(sample(pcfg, tmp_path / "c", splits, overlap=overlap, shard_size=30).path) == wanted


def test_two_runs_at_once(pcfg, tmp_path):
    with locked_elsewhere(tmp_path / "c"), pytest.raises(InputError, match="another process is writing this"):
        sample(pcfg, tmp_path / "c", {"train": 10})
    sample(pcfg, tmp_path / "c", {"train": 10})


# -- what is written ------------------------------------------------------------------------------------


def test_optional_columns(pcfg, strings, tmp_path):
    columns = Columns(trees="none", string_logprob=True, ids=True)
    corpus = sample(pcfg, tmp_path / "c", {"train": 100}, columns=columns)
    import pandas as pd

    frame = pd.read_parquet(corpus.path / "data")
    assert list(frame) == ["text", "n_tokens", "logprob", "split", "string_logprob", "ids"]
    words = corpus._key["words"]
    total = pcfg.exact.range_mass(LENGTHS)
    for text, ids, joint, whole in zip(frame.text, frame.ids, frame.logprob, frame.string_logprob, strict=True):
        assert [words[i] for i in ids] == text.split()
        assert whole == pytest.approx(math.log(strings[tuple(text.split())] * total), abs=1e-10)
        assert joint <= whole + 1e-12
    assert "`string_logprob`" in (corpus.path / "README.md").read_text()


def test_the_grammar_is_in_the_folder(pcfg, tmp_path):
    corpus = sample(pcfg, tmp_path / "c", {"train": 10})
    assert PCFG.load(corpus.path / "grammar.npz").digest == corpus.grammar_digest == pcfg.digest


def test_brackets(pcfg, tmp_path):
    corpus = sample(pcfg, tmp_path / "c", {"train": 1200})
    for kind in ({}, {"coarse": False, "binarised": True}):
        assert list(corpus.brackets("train", **kind)) == [str(tree) for tree in corpus.trees("train", **kind)]


def test_sentences_for_tokens(pcfg, strings, tmp_path):
    mean = math.fsum(p * len(s) for s, p in strings.items())
    assert sentences_for(pcfg, 10_000, LENGTHS) == round(10_000 / mean)
    n = sentences_for(pcfg, 20_000, LENGTHS)
    assert sample(pcfg, tmp_path / "c", {"train": n}).n_tokens("train") == pytest.approx(20_000, rel=0.02)
    assert sentences_for(pcfg, 1, LENGTHS) == 1
    assert sentences_for(pcfg, 10_000) == round(10_000 / pcfg.exact.mean_length)
    with pytest.raises(InputError, match="at least one"):
        sentences_for(pcfg, 0)


# -- a cap on the height of trees -----------------------------------------------------------------------


def capped(pcfg, cap, lengths):
    """P(string, height within the cap), by all derivations of all strings."""
    rules = rules_of(pcfg)
    found = {}
    for n in range(lengths.low, lengths.high + 1):
        for s in itertools.product("abx", repeat=n):
            trees = derivations(rules, s)
            if trees:
                found[s] = math.fsum(p for tree, p in trees if tree.height() <= cap)
    return found


ACYCLIC = GRAMMAR.replace("A -> S 0.1\n", "A -> 'c' 0.1\n")


@pytest.mark.long
@pytest.mark.parametrize("cap", [3, 4])
def test_trees_under_a_cap(tmp_path, cap):
    pcfg = PCFG.from_text(ACYCLIC)
    lengths = LengthRange(1, 4)
    low = capped(pcfg, cap, lengths)
    total = math.fsum(low.values())
    n = 20_000
    corpus = sample(pcfg, tmp_path / "c", {"train": n}, lengths=lengths, max_height=cap, shard_size=n)
    found = corpus.record["height_cap"]
    assert max(t.height() for t in corpus.trees("train", coarse=False, binarised=True)) == cap
    without_c = [tuple(s) for s in corpus.sentences("train") if "c" not in s]
    law = {s: p / total for s, p in low.items() if p > 0.0}
    assert chi_square_p(Counter(without_c), law, len(without_c)) > 1e-3
    assert found["mean_tokens"] < found["mean_tokens_without"]
    assert found["mean_tokens"] == pytest.approx(corpus.n_tokens("train") / n, abs=4 * 1.2 / math.sqrt(n))
    assert f"Trees higher than {cap}" in (corpus.path / "README.md").read_text()


def test_the_share_of_trees_under_a_cap():
    """By hand: height up to 3 leaves one or two words, 0.7 and 0.3 x 0.49; mean length of those."""
    pcfg = PCFG.from_text("S -> S S 0.3 | 'a' 0.7")
    free = Sampler(pcfg, max_height=3)
    assert free.log_height_mass == pytest.approx(math.log(0.847))
    assert Sampler(pcfg, LengthRange(2, 3), max_height=3).log_height_mass == pytest.approx(
        math.log(0.147 / (0.147 + 2 * 0.3 * 0.147 * 0.7))
    )
    from truesource.generator.plan import mean_length

    assert mean_length(pcfg, None, 3) == pytest.approx((0.7 + 2 * 0.147) / 0.847)
    assert mean_length(pcfg, LengthRange(2, 3), 3) == pytest.approx(2.0)
    with pytest.raises(InputError, match="only 0 of the trees have a height up to 3, too few to sample; raise the cap"):
        Sampler(pcfg, LengthRange(3, 9), max_height=3)


def test_a_tiny_range_is_drawn_without_rejection():
    pcfg = PCFG.from_text("S -> 'a' S2 0.5 | 'a' 0.5\nS2 -> S S2 0.001 | 'b' 0.999".replace("'a' S2", "S S2"))
    lengths = LengthRange(40, 40)
    sampler = Sampler(pcfg, lengths)
    assert sampler.log_mass < math.log(1e-6)
    from truesource.grammar.support.arrays import random_state

    drawn = sampler.draw(200, random_state(1))
    assert set(np.unique(drawn.n_tokens)) == {40}


# -- parallel corpora -----------------------------------------------------------------------------------


@pytest.mark.long
def test_a_retold_sample_follows_the_variant(tmp_path):
    """Rules that become one when children are reordered: their derivations, by enumeration of the variant's strings."""
    from truesource.generator.parallel_corpora import is_reordering, sample_variants
    from truesource.grammar.variants import parse_variant

    pcfg = PCFG.from_text(
        "S -> NP VP 0.5 | VP NP 0.2 | VP 0.3\nNP -> 'n' 0.8 | NP NP 0.2\nVP -> VP NP 0.2 | 'v' 0.5 | 'w' 0.3"
    )
    change = parse_variant("head-final=S+VP")
    variant = change(pcfg)
    assert is_reordering(pcfg, variant)
    assert variant.pcfg.n_rules == pcfg.n_rules - 1
    assert not is_reordering(pcfg, parse_variant("mirror=VP,zipf=2")(pcfg))
    lengths, n = LengthRange(1, 4), 20_000
    plan = Plan({"train": n}, 4, lengths, shard_size=n)
    _, made = sample_variants(pcfg, [change], plan, tmp_path)
    corpus = made["head-final-S+VP"]
    strings = {s: p for t in all_strings(rules_of(variant.pcfg), 4)["S"] for s, p in t.items()}
    total = math.fsum(strings.values())
    counts = Counter(map(tuple, corpus.sentences("train")))
    assert chi_square_p(counts, {s: p / total for s, p in strings.items()}, n) > 1e-3
    rules = rules_of(variant.pcfg)
    for s, log_prob in list(zip(corpus.sentences("train"), corpus.log_probs("train"), strict=True))[:50]:
        assert any(math.isclose(math.log(p), log_prob, abs_tol=1e-9) for _, p in derivations(rules, s))
