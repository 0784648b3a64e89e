"""Transforms: bijections of the sentences of each length, and corpora in another order of words."""

from __future__ import annotations

import json
from itertools import pairwise, permutations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from toy_english import TOY

from truesource.generator.corpus import Corpus
from truesource.generator.corpus_builder import make_corpus
from truesource.generator.corpus_record import plan_of
from truesource.generator.plan import (
    TRANSFORMS,
    BlockShuffle,
    Columns,
    LengthShuffle,
    OddEven,
    Overlap,
    Reversal,
    Transform,
    parse_transform,
    shuffled,
    text_order,
)
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.parallel import Workers

SEEDS = st.integers(0, 99)
EVERY = st.one_of(
    st.just(Reversal()),
    st.sampled_from(["odd", "even"]).map(lambda first: OddEven(first=first)),
    st.builds(BlockShuffle, size=st.integers(2, 9), seed=SEEDS),
    st.builds(LengthShuffle, seed=SEEDS),
)
PCFG_TOY = PCFG.from_text(TOY)
COLUMNS = Columns(string_logprob=True, ids=True)


@given(EVERY, st.integers(0, 40))
def test_each_length_has_a_bijection(transform: Transform, n: int) -> None:
    order = transform.permutation(n)
    assert sorted(order.tolist()) == list(range(n))
    words = [f"w{i}" for i in range(n)]
    assert transform.apply(words) == [words[i] for i in order]
    assert transform.undo(transform.apply(words)) == transform.apply(transform.undo(words)) == words
    assert parse_transform(str(transform)) == transform


@given(EVERY, st.lists(st.integers(1, 12), max_size=8))
def test_a_text_has_the_order_of_its_sentences(transform: Transform, lengths: list[int]) -> None:
    words = np.arange(sum(lengths))
    bounds = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    wanted = [w for a, b in pairwise(bounds) for w in transform.apply(words[a:b].tolist())]
    assert words[text_order(transform, np.array(lengths, dtype=np.int32))].tolist() == wanted


def test_orders_are_those_of_their_names() -> None:
    assert Reversal().apply("abcde") == list("edcba")
    assert OddEven().apply("abcde") == list("acebd")
    assert OddEven(first="even").apply("abcde") == list("bdace")
    first, second, rest = (BlockShuffle(size=3, seed=7).apply("abcabcab")[i : i + 3] for i in (0, 3, 6))
    assert first == second == list("cba") and rest == list("ba")


def test_seeds_make_the_same_order_on_every_machine() -> None:
    assert LengthShuffle(seed=7).permutation(10).tolist() == [4, 6, 2, 9, 7, 0, 3, 5, 8, 1]
    assert LengthShuffle(seed=7).permutation(7).tolist() == [1, 2, 5, 3, 4, 0, 6]
    assert LengthShuffle(seed=0).permutation(10).tolist() == [5, 8, 1, 7, 3, 9, 4, 6, 2, 0]
    assert BlockShuffle(size=3, seed=7).permutation(10).tolist() == [2, 1, 0, 5, 4, 3, 8, 7, 6, 9]


@pytest.mark.long
def test_shuffles_are_uniform_among_all_orders_but_the_old_one() -> None:
    counts = dict.fromkeys(permutations(range(4)), 0)
    for seed in range(4600):
        counts[tuple(shuffled(4, seed).tolist())] += 1
    assert counts.pop((0, 1, 2, 3)) == 0
    assert stats.chisquare(list(counts.values())).pvalue > 0.01


@pytest.mark.parametrize(
    ("text", "code", "says"),
    [
        ("shuffle", "no-transform", "choose one of reversal, odd-even"),
        ("block-shuffle:size=1", "bad-setting", "size"),
        ("block-shuffle:width=3", "bad-setting", "width"),
        ("block-shuffle:size=3,size=4", "bad-setting", "each once"),
        ("length-shuffle:", "bad-setting", "key=value"),
        ("length-shuffle:seed=-1", "bad-setting", "seed"),
        ("odd-even:first=both", "bad-setting", "first"),
    ],
)
def test_what_is_no_transform_is_refused(text: str, code: str, says: str) -> None:
    with pytest.raises(InputError, match=says) as caught:
        parse_transform(text)
    assert caught.value.code == code


def corpus(path: Path, transform: Transform | None, overlap: Overlap = "iid", workers: int = 1) -> Corpus:
    return Corpus.sample(
        PCFG_TOY,
        {"train": 90, "eval": 40},
        seed=5,
        path=path,
        lengths=LengthRange(2, 9),
        overlap=overlap,
        columns=COLUMNS,
        shard_size=35,
        transform=transform,
        workers=workers,
    )


@pytest.mark.parametrize("transform", [kind() for kind in TRANSFORMS.values()], ids=str)
def test_corpora_that_differ_in_the_transform_have_the_same_sentences_and_trees(
    tmp_path: Path, transform: Transform
) -> None:
    plain, other = corpus(tmp_path / "plain", None), corpus(tmp_path / "other", transform)
    assert plain.transform is None and other.transform == transform
    for split in plain.splits:
        sentences = plain.sentences(split)
        assert other.sentences(split) == [transform.apply(s) for s in sentences] != sentences
        assert list(other.originals(split)) == list(plain.originals(split)) == sentences
        assert list(other.trees(split)) == list(plain.trees(split))
        assert list(other.brackets(split)) == list(plain.brackets(split))
        assert other.log_probs(split).tolist() == plain.log_probs(split).tolist()
        assert list(other.coded(split)) == other.sentences(split)
    words = other._key["words"]
    read = [
        [words[i] for i in row] for table in other._tables("eval", ["ids"]) for row in table.column("ids").to_pylist()
    ]
    assert read == other.sentences("eval")


def test_the_record_and_the_card_say_what_is_exact(tmp_path: Path) -> None:
    plain = corpus(tmp_path / "plain", None)
    assert "transform" not in {**plain.record, **plain.record["call"]}
    made = corpus(tmp_path / "shuffled", LengthShuffle(seed=3))
    assert made.record["transform"] == {
        "spec": "length-shuffle:seed=3",
        "exact": ["sentence", "masked token"],
        "trees": "original order",
    }
    card = (made.path / "README.md").read_text(encoding="utf-8")
    assert "`length-shuffle:seed=3`" in card and "previous ones is unknown" in card
    mirrored = corpus(tmp_path / "reversed", Reversal())
    assert mirrored.record["transform"]["exact"] == ["sentence", "masked token", "causal token"]
    assert "previous ones is unknown" not in (mirrored.path / "README.md").read_text(encoding="utf-8")


@pytest.mark.long
def test_workers_jobs_and_replays_write_the_same_bytes(tmp_path: Path) -> None:
    transform = BlockShuffle(size=4, seed=2)
    one = corpus(tmp_path / "one", transform)
    assert corpus(tmp_path / "two", transform, workers=2).digest == one.digest
    again = Corpus.replay(one.path / "record.json", PCFG_TOY, tmp_path / "again")
    assert again.digest == one.digest and again.record["call"] == one.record["call"]
    plan = plan_of(json.loads((one.path / "record.json").read_text("utf-8"))["call"])
    assert plan.transform == transform
    assert make_corpus(PCFG_TOY, plan, tmp_path / "one", workers=Workers(1), keep=True)
    assert corpus(tmp_path / "three", BlockShuffle(size=4, seed=3)).digest != one.digest


@pytest.mark.parametrize("overlap", ["disjoint", "unique"])
def test_splits_share_no_sentence_after_the_transform_either(tmp_path: Path, overlap: Overlap) -> None:
    made = corpus(tmp_path / "made", OddEven(), overlap)
    train, held_out = ({tuple(s) for s in made.sentences(split)} for split in ("train", "eval"))
    assert not train & held_out
