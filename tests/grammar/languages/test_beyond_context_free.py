"""Languages beyond context-free, bounded: closed forms, and all strings of up to 8 words from the rules of each."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest
from reference_inference import all_strings, rules_of

from truesource.grammar.conditioning import LengthRange
from truesource.grammar.inference.word_types import bigrams
from truesource.grammar.pcfg import PCFG, language
from truesource.grammar.support.errors import InputError

String = tuple[str, ...]


def probability(grammar: PCFG, words: String) -> float:
    return math.exp(float(grammar.exact.string_log_probs([words])[0]))


def every_string(grammar: PCFG, longest: int) -> dict[String, float]:
    tables = all_strings(rules_of(grammar), longest)[grammar.symbols[grammar.start]]
    return {s: p for table in tables for s, p in table.items()}


def geometric(p: float, longest: int) -> list[float]:
    """P(n) of n = 1 to longest, in proportion to p^n, first entry 0."""
    weights = [0.0] + [p**n for n in range(1, longest + 1)]
    return [w / math.fsum(weights) for w in weights]


def walks(k: int, depth: int, p: float, longest: int) -> Iterator[tuple[String, float]]:
    """Strings of shuffled brackets with their probabilities, by walking; P(empty) is taken out."""

    def go(words: String, opened: tuple[int, ...], weight: float) -> Iterator[tuple[String, float]]:
        total = sum(opened)
        if words and total == 0:
            yield words, weight * (1.0 - p)
        if len(words) == longest:
            return
        opens = 0.0 if total == depth else 1.0 if not words else p
        kinds = [i for i in range(k) if opened[i]]
        for i in range(k):
            step = tuple(n + (j == i) for j, n in enumerate(opened))
            if opens:
                yield from go((*words, f"({i + 1}"), step, weight * opens / k)
        for i in kinds:
            step = tuple(n - (j == i) for j, n in enumerate(opened))
            yield from go((*words, f"{i + 1})"), step, weight * (1.0 - opens) / len(kinds))

    yield from go((), (0,) * k, 1.0)


@pytest.mark.long
@pytest.mark.parametrize(("k", "depth", "p"), [(1, 3, 0.5), (2, 2, 0.4), (2, 6, 0.5), (3, 4, 0.7)])
def test_shuffled_brackets_are_those_of_the_walk(k: int, depth: int, p: float) -> None:
    grammar = language("shuffle-dyck", k=k, depth=depth, p_open=p)
    found, wanted = every_string(grammar, 8), dict(walks(k, depth, p, 8))
    assert found.keys() == wanted.keys()
    for words, weight in wanted.items():
        assert found[words] == pytest.approx(weight, abs=1e-14)
        opened: Counter[str] = Counter()
        for word in words:
            opened[word.strip("()")] += 1 if word[0] == "(" else -1
            assert min(opened.values()) >= 0 and sum(opened.values()) <= depth
        assert not any(opened.values())
    if k > 1:
        assert any("(1 (2 1) 2)" in " ".join(words) for words in wanted)  # which no Dyck string has


@pytest.mark.parametrize("depth", [1, 2, 5])
def test_shuffled_brackets_of_one_kind_are_dyck(depth: int) -> None:
    shuffled, dyck = language("shuffle-dyck", k=1, depth=depth), language("dyck", k=1, depth=depth)
    one, other = every_string(shuffled, 8), every_string(dyck, 8)
    assert one.keys() == other.keys()
    assert all(one[words] == pytest.approx(p, abs=1e-14) for words, p in other.items())
    assert shuffled.exact.mean_length == pytest.approx(dyck.exact.mean_length, rel=1e-10)


def test_three_equal_numbers() -> None:
    grammar, law = language("anbncn", longest=5, p=0.8), geometric(0.8, 5)
    wanted = {("a",) * n + ("b",) * n + ("c",) * n: law[n] for n in range(1, 6)}
    assert every_string(grammar, 16) == pytest.approx(wanted, abs=1e-14)
    after = grammar.next_token(["a", "a", "b"])
    assert after.top(1) == [("b", pytest.approx(1.0))]
    mean = 3 * sum(n * p for n, p in enumerate(law))
    assert grammar.exact.mean_length == pytest.approx(mean, rel=1e-12)
    one = grammar.next_token(["a"], LengthRange(6, 9))  # n is 2 or 3
    assert dict(one.top(2)) == {"a": pytest.approx(1.0), "b": 0.0}


def test_numbers_that_cross() -> None:
    grammar, law = language("cross-serial", longest=3, p=0.6), geometric(0.6, 3)
    wanted = {
        ("a",) * m + ("b",) * n + ("c",) * m + ("d",) * n: law[m] * law[n]
        for m, n in itertools.product(range(1, 4), repeat=2)
    }
    assert every_string(grammar, 12) == pytest.approx(wanted, abs=1e-14)


@pytest.mark.parametrize("marker", [True, False])
@pytest.mark.parametrize("times", [2, 3])
def test_copies(times: int, marker: bool) -> None:
    grammar = language("copy", vocabulary=2, longest=3, p=0.7, times=times, marker=marker)
    law, between = geometric(0.7, 3), ("#",) if marker else ()
    wanted: Counter[String] = Counter()
    for n in range(1, 4):
        for w in itertools.product(("w1", "w2"), repeat=n):
            wanted[w + (between + w) * (times - 1)] += law[n] / 2**n
    found = every_string(grammar, 3 * times + (times - 1))
    assert found == pytest.approx(dict(wanted), abs=1e-14)
    for words, p in wanted.items():
        assert probability(grammar, words) == pytest.approx(p, abs=1e-12)
        prefix = words[: len(words) // 2 + 1]
        behind = math.fsum(q for other, q in wanted.items() if other[: len(prefix)] == prefix)
        assert math.exp(grammar.prefix_log_prob(prefix)) == pytest.approx(behind, abs=1e-12)


def test_after_the_marker_all_is_certain_and_masked_words_are_known_from_their_copy() -> None:
    grammar = language("copy")
    words = ["w1", "w2", "w2", "#", "w1", "w2", "w2"]
    row = grammar.exact.causal_log_probs([words])[0]
    np.testing.assert_allclose(row[4:], 0.0, atol=1e-12)
    assert (row[:4] < -0.1).all()
    np.testing.assert_allclose(grammar.exact.masked_log_probs([words])[0], 0.0, atol=1e-12)
    assert bigrams(grammar).counts([("#", "#")])[0] == 0.0
    assert language("repeat").meta["language"]["reference"].startswith("copy:")


def test_languages_of_too_many_configurations_are_refused() -> None:
    refused = {
        "copy:vocabulary=50,longest=12": "missing-ability",
        "shuffle-dyck:k=64,depth=64": "missing-ability",
        "anbncn:longest=1000000": "too-large",
    }
    for text, code in refused.items():
        with pytest.raises(InputError) as caught:
            language(text)
        assert caught.value.code == code
