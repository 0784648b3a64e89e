"""Processes: equal to the grammars of the same languages where these fit, and closed forms where they do not."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from truesource.grammar.conditioning import LengthRange
from truesource.grammar.inference.batch import Distributions
from truesource.grammar.inference.distributions import next_token_distributions
from truesource.grammar.pcfg import PCFG, language
from truesource.grammar.process import Process, save_process
from truesource.grammar.support.arrays import FloatArray, IntArray
from truesource.grammar.support.errors import InputError
from truesource.grammar.truth import Truth, load_truth, process, process_at, word_counts

SMALL = (
    "shuffle-dyck:k=1,depth=3,p_open=0.3",
    "shuffle-dyck:k=2,depth=2,p_open=0.6",
    "shuffle-dyck:k=3,depth=4",
    "copy:vocabulary=2,longest=3,p=0.6",
    "copy:vocabulary=3,longest=2,times=3",
    "copy:vocabulary=1,longest=4,marker=false",
    "copy:vocabulary=2,longest=3,times=3,p=0.4,marker=false",
)
RANGES = (None, LengthRange(2, 6), LengthRange(4, 7), LengthRange(1, 12))


def strings(truth: Truth, longest: int, most: int = 1500) -> list[tuple[str, ...]]:
    words = (*truth.vocabulary, "elsewhere")
    every = [s for n in range(1, longest + 1) for s in itertools.product(words, repeat=n)]
    kept = np.random.default_rng(1).choice(len(every), min(most, len(every)), replace=False)
    return [every[i] for i in sorted(kept)]


@pytest.mark.long
@pytest.mark.parametrize("lengths", RANGES)
@pytest.mark.parametrize("name", SMALL)
def test_a_process_is_the_grammar_of_the_same_settings(name: str, lengths: LengthRange | None) -> None:
    one, grammar = process(name), PCFG.load(name)
    if lengths is not None and one.length_pmf(lengths.high)[lengths.low :].sum() == 0.0:
        pytest.skip("there are no such lengths")
    drawn = [s for s in strings(one, 8) if np.isfinite(grammar.log_prob(s))]
    asked = [*drawn, *strings(one, 6)]
    pairs = zip(one.exact.causal_log_probs(asked, lengths), grammar.exact.causal_log_probs(asked, lengths), strict=True)
    for own, other in pairs:
        np.testing.assert_allclose(own, other, rtol=0.0, atol=1e-11)
    np.testing.assert_allclose(
        one.exact.string_log_probs(asked, lengths), grammar.exact.string_log_probs(asked, lengths), rtol=0, atol=1e-11
    )
    np.testing.assert_allclose(one.exact.length_pmf(15, lengths), grammar.exact.length_pmf(15, lengths), atol=1e-13)
    order = [one.word_ids[word] for word in grammar.vocabulary]
    np.testing.assert_allclose(word_counts(one, lengths)[order], word_counts(grammar, lengths), rtol=1e-10)
    if lengths is None:
        assert one.exact.mean_length == pytest.approx(grammar.exact.mean_length, rel=1e-12)
    else:
        assert one.exact.range_mass(lengths) == pytest.approx(grammar.exact.range_mass(lengths), rel=1e-12)
    for prefix in ((), asked[0][:1], asked[0][:2]):
        assert one.exact.prefix_log_prob(prefix, lengths) == pytest.approx(
            grammar.exact.prefix_log_prob(prefix, lengths), abs=1e-11
        )


def laws(
    truth: Truth, asked: Sequence[Sequence[str]], lengths: LengthRange | None
) -> dict[tuple[int, int], FloatArray]:
    """The law at each position of each string by words, the end last; and what stands there."""
    columns = [truth.word_ids[word] for word in sorted(truth.vocabulary)] + [len(truth.vocabulary)]
    found: dict[tuple[int, int], FloatArray] = {}

    def keep(block: Distributions) -> None:
        for row, members in enumerate(block.members):
            for i in members:
                own = [block.possible[row], block.whole[row], np.exp(block.log_observed[row])]
                found[i, block.position] = np.append(block.probability[row][columns], own)

    list(next_token_distributions(truth.exact, asked, keep, lengths))
    return found


@pytest.mark.long
@pytest.mark.parametrize("lengths", [None, LengthRange(3, 7)])
@pytest.mark.parametrize("name", SMALL)
def test_distributions_are_those_of_the_grammar(name: str, lengths: LengthRange | None) -> None:
    one, grammar = process(name), PCFG.load(name)
    asked = [*strings(one, 5, most=150), *[s for s in strings(one, 7) if np.isfinite(grammar.log_prob(s))]]
    own, other = laws(one, asked, lengths), laws(grammar, asked, lengths)
    assert own.keys() == other.keys()
    for key, row in own.items():
        np.testing.assert_allclose(row, other[key], rtol=0.0, atol=1e-12)


@pytest.mark.long
@settings(max_examples=40, deadline=None)
@given(
    k=st.integers(1, 3), depth=st.integers(1, 4), p=st.floats(0.05, 0.9), low=st.integers(1, 6), wide=st.integers(0, 5)
)
def test_shuffled_brackets_of_any_settings_and_range(k: int, depth: int, p: float, low: int, wide: int) -> None:
    given_settings = {"k": k, "depth": depth, "p_open": p}
    one, grammar = process("shuffle-dyck", **given_settings), language("shuffle-dyck", **given_settings)
    lengths = LengthRange(low, low + wide)
    if not any(n % 2 == 0 for n in range(low, low + wide + 1)):
        with pytest.raises(InputError, match=r"no string of shuffle-dyck.* has a length in"):
            one.exact.given(lengths)
        return
    first = (*["(1"] * min(2, depth), *["1)"] * min(2, depth))
    asked = [first, ("(1", "1)"), ("(1", "1)", "(1", "1)"), ("1)",), first[:-1]]
    pairs = zip(one.exact.causal_log_probs(asked, lengths), grammar.exact.causal_log_probs(asked, lengths), strict=True)
    for own, other in pairs:
        np.testing.assert_allclose(own, other, rtol=0.0, atol=1e-10)


def test_one_kind_of_brackets_is_dyck() -> None:
    one, dyck = process("shuffle-dyck", k=1, depth=4, p_open=0.5), language("dyck", k=1, depth=4)
    asked = [s for n in (2, 4, 6, 8) for s in itertools.product(("(1", "1)"), repeat=n)]
    np.testing.assert_allclose(one.exact.string_log_probs(asked), dyck.exact.string_log_probs(asked), atol=1e-12)


def test_probabilities_of_many_kinds_are_the_walk_of_their_number_times_the_choice_of_kinds() -> None:
    """64 kinds: each bracket that opens is one of 64, one that closes one of those that are open."""
    one = process("shuffle-dyck", k=64, depth=100, p_open=0.4)
    string = ("(7", "(9", "7)", "9)", "(64", "64)")
    wanted = [1 / 64, 0.4 / 64, 0.6 / 2, 0.6, 0.4 / 64, 0.6, 0.6]
    np.testing.assert_allclose(np.exp(one.exact.causal_log_probs([string])[0]), wanted, rtol=1e-14)
    pmf = one.length_pmf(4000)
    assert pmf[1::2].sum() == 0.0 and pmf.sum() == pytest.approx(1.0, abs=1e-12)
    assert one.exact.mean_length == pytest.approx(np.arange(4001) @ pmf, rel=1e-10)
    assert pytest.approx(one.exact.mean_length, rel=1e-9) == (1 + 1 / 0.2) / 0.6  # of the walk without a maximum


def test_a_copy_is_its_string_and_then_certain() -> None:
    one = process("copy", vocabulary=1000, longest=50, p=0.9)
    w = [f"w{i}" for i in (5, 1000, 5, 77)]
    row = one.exact.causal_log_probs([[*w, "#", *w]])[0]
    weight = 0.9 ** np.arange(1, 51)
    more = weight[::-1].cumsum()[::-1]
    wanted = [1e-3, *(more[n + 1] / more[n] * 1e-3 for n in range(3)), weight[3] / more[3]]
    np.testing.assert_allclose(np.exp(row[:5]), wanted, rtol=1e-12)
    assert row[5:].tolist() == [0.0] * 5
    assert one.log_prob([*w, "#", *w[:3], "w78"]) == -math.inf
    assert one.exact.mean_length == pytest.approx(2 * (np.arange(1, 51) @ weight) / weight.sum() + 1, rel=1e-12)


def test_without_a_marker_every_length_of_the_string_counts() -> None:
    """After ``a b a`` the string may have been ``a b`` or may be longer; after ``a b a a`` not the former."""
    one = process("copy", vocabulary=26, longest=30, p=0.5, marker=False)
    weight = 0.5 ** np.arange(1, 31)
    weight /= weight.sum()
    two, longer = weight[1] * 26.0**-2, weight[2:].sum() * 26.0**-3
    law = one.next_token(["w1", "w2", "w1"])
    assert law.probability[1] == pytest.approx((two + weight[3:].sum() * 26.0**-3 / 26) / (two + longer), rel=1e-12)
    assert law.stop == 0.0
    assert one.next_token(["w1", "w2", "w1", "w2"]).stop > 0.0
    assert one.next_token(["w1", "w2", "w1", "w1"]).stop == 0.0


COIN = """S -> H S 0.5 | T S 0.16666666666666666 | 'h' 0.25 | 't' 0.08333333333333333
H -> 'h' 1.0
T -> 't' 1.0"""


class Tossed(NamedTuple):
    n: IntArray


class Coin(Process):
    """Heads and tails until a third of all tosses ends it: a process of one's own, with the law alone."""

    def begin(self, n: int) -> Tossed:
        return Tossed(np.zeros(n, dtype=np.int64))

    def law(self, state: Tossed) -> FloatArray:
        end = np.where(state.n > 0, 1 / 3, 0.0)
        return np.stack([(1 - end) * 0.75, (1 - end) * 0.25, end], axis=1)

    def read(self, state: Tossed, words: IntArray) -> Tossed:
        return Tossed(state.n + 1)

    def length_pmf(self, high: int) -> FloatArray:
        n = np.arange(high + 1.0)
        return np.where(n > 0, (2 / 3) ** (n - 1) / 3, 0.0)

    def given(self, lengths: LengthRange) -> Process:
        raise InputError("its lengths cannot be chosen")

    def expected_words(self) -> FloatArray:
        return np.array([2.25, 0.75])


def test_a_process_of_ones_own_needs_a_law_and_no_more(tmp_path: Path) -> None:
    coin, grammar = (
        Coin("coin", ("h", "t")),
        PCFG.from_text(
            "S -> H S 0.5 | T S 0.16666666666666666 | 'h' 0.25 | 't' 0.0833333333333333333\nH -> 'h' 1.0\nT -> 't' 1.0"
        ),
    )
    asked = [("h",), ("t", "h", "h"), ("h",) * 9, ("x",)]
    np.testing.assert_allclose(coin.exact.string_log_probs(asked), grammar.exact.string_log_probs(asked), atol=1e-12)
    assert coin.exact.mean_length == 3.0
    assert coin.draw(coin.begin(4), np.array([0.0, 0.74, 0.76, 0.999])).tolist() == [0, 0, 1, 1]
    assert coin.identity == f"coin {coin.digest[:8]}" and repr(coin) == "Process(coin, 2 words)"
    with pytest.raises(InputError, match="a custom process, which cannot be saved"):
        coin.save(tmp_path / "coin.npz")
    assert not any(tmp_path.iterdir())


def test_a_truth_is_a_grammar_where_it_fits_and_comes_back_from_its_file(tmp_path: Path) -> None:
    assert isinstance(load_truth("copy:vocabulary=2,longest=3"), PCFG)
    large = load_truth("copy:vocabulary=100,longest=20")
    assert isinstance(large, Process) and large.meta["language"]["name"] == "copy"
    large.save(tmp_path / "c.npz")
    again = load_truth(tmp_path / "c.npz")
    assert again.digest == large.digest and again.vocabulary == large.vocabulary and again.meta == large.meta
    assert process_at(tmp_path / "c.npz") == "copy:vocabulary=100,longest=20,p=0.9,times=2,marker=true"
    language("dyck").save(tmp_path / "d.npz")
    assert process_at(tmp_path / "d.npz") is None and isinstance(load_truth(tmp_path / "d.npz"), PCFG)
    with pytest.raises(InputError) as caught:
        PCFG.load(tmp_path / "c.npz")
    assert caught.value.code == "missing-ability" and caught.value.path == tmp_path / "c.npz"
    for name in ("c.npz", "c.txt"):
        with pytest.raises(InputError):
            large.save(tmp_path / name)
    content = bytearray((tmp_path / "c.npz").read_bytes())
    content[len(content) // 2] ^= 255
    (tmp_path / "broken.npz").write_bytes(bytes(content))
    with pytest.raises(InputError, match="is damaged"):
        load_truth(tmp_path / "broken.npz")
    save_process(large.name, "0" * 64, tmp_path / "other.npz")
    with pytest.raises(InputError, match="another version of truesource wrote"):
        load_truth(tmp_path / "other.npz")


def test_what_a_process_cannot_do_is_said_in_one_sentence() -> None:
    one = process("shuffle-dyck", k=3, depth=50)
    assert one.collapse([*one.vocabulary, "more"]) is one
    with pytest.raises(
        InputError, match=r"whose words cannot be merged into <unk>: the model lacks \(1, 1\)"
    ) as caught:
        one.collapse(one.vocabulary[1:3])
    assert caught.value.code == "missing-ability"
    with pytest.raises(InputError, match="no string starts with '1\\)'"):
        one.next_token(["1)"])
    with pytest.raises(InputError, match="the language dyck has only a grammar; processes are context-tree, copy,"):
        process("dyck")
    with pytest.raises(InputError, match=r"no string of shuffle-dyck.* has a length in 3\.\.3"):
        one.exact.range_mass(LengthRange(3, 3))
