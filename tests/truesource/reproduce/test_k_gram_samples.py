"""Text of predictors that see k words: its law against chains of conditional probabilities, and its statistics."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from reproduction_pages import committed_result
from scipy import stats

from truesource.evaluation.evaluators import EVALUATORS
from truesource.grammar.inference.windows import Windows
from truesource.grammar.pcfg import PCFG, language
from truesource.grammar.support.arrays import FloatArray, Int32Array
from truesource.grammar.support.errors import InputError
from truesource.lmtrain.truth import endless
from truesource.run.config import checked_config
from truesource.run.experiment import execute
from truesource.studies.reproduce.rows import find_rows
from truesource.studies.reproduce.run_records import RunRecord
from truesource.studies.reproduce.studies import STUDIES
from truesource.studies.reproduce.studies.samples import continued

Sampled = Callable[..., list[RunRecord]]
SPINS = {"language": "broadcast", "depth": 3, "flip": 0.1}
COLOURS = {"language": "broadcast", "states": 3, "depth": 2, "children": 3, "flip": 1.0}


@pytest.fixture
def sampled(tmp_path: Path, quick_report: None, one_thread: None) -> Sampled:
    """Run a language without models, and make text from k words of it."""

    def made(grammar: dict[str, Any], number: int, **corpus: Any) -> list[RunRecord]:
        values: dict[str, Any] = {
            "name": "toy",
            "grammar": grammar,
            "corpus": {"splits": {"eval": 5}, "trees": "none", **corpus},
            "evaluation": {"sentences": number},
        }
        config = checked_config(values, "toy.yaml", EVALUATORS)
        folder = execute(config, base=tmp_path, runs=tmp_path / "runs").parent
        return STUDIES["k-gram-samples"](folder, config)

    return made


def first_words(grammar: PCFG, number: int) -> Int32Array:
    """Strings of the truth, as numbers."""
    return np.stack([grammar.encode(each) for each in next(endless(grammar, batch=number, seed=1))]).astype(np.int32)


def chain(grammar: PCFG, k: int) -> dict[tuple[int, ...], float]:
    """P(string) of the predictor that sees k words, by enumeration of the truth and of what it makes."""
    words = range(len(grammar.vocabulary))
    tokens = round(grammar.exact.mean_length)
    strings = list(itertools.product(words, repeat=tokens))
    truth = np.exp(grammar.exact.string_log_probs([[grammar.vocabulary[w] for w in s] for s in strings]))
    begin: Counter[tuple[int, ...]] = Counter()
    grams: Counter[tuple[int, ...]] = Counter()
    for string, p in zip(strings, truth.tolist(), strict=True):
        begin[string[:k]] += p
        for at in range(tokens - k):
            grams[string[at : at + k + 1]] += p
    goes_on: Counter[tuple[int, ...]] = Counter()
    for gram, p in grams.items():
        goes_on[gram[:-1]] += p
    made = {}
    for string in strings:
        p = begin[string[:k]]
        for at in range(tokens - k):
            p *= grams[string[at : at + k + 1]] / (goes_on[string[at : at + k]] or 1.0)
        made[string] = p
    return made


@pytest.mark.long
@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("reference", ["broadcast:depth=3,flip=0.1", "broadcast:states=3,depth=1,children=5,flip=1"])
def test_strings_are_drawn_from_the_chain_of_windows(reference: str, k: int) -> None:
    grammar, number = language(reference), 20_000
    wanted = chain(grammar, k)
    assert sum(wanted.values()) == pytest.approx(1.0, abs=1e-9)
    first = first_words(grammar, number)
    made = continued(Windows(grammar), first[:, :k], first.shape[1], np.random.default_rng(2))
    assert (made[:, :k] == first[:, :k]).all()
    drawn = Counter(map(tuple, made.tolist()))
    assert all(wanted[string] > 0.0 for string in drawn)
    likely = [string for string, p in wanted.items() if p * number >= 5.0]
    observed, expected = [drawn[s] for s in likely], [wanted[s] * number for s in likely]
    rest, missing = number - sum(observed), number - sum(expected)
    if missing >= 5.0:
        observed, expected = [*observed, rest], [*expected, missing]
    scale = sum(observed) / sum(expected)
    assert stats.chisquare(observed, [each * scale for each in expected]).pvalue > 0.001


def variance(grammar: PCFG, k: int, first: FloatArray, length: int) -> float:
    """Of the sum of spins of the predictor that sees k words, by the moments at every window, word by word.

    Args:
        grammar: of two words.
        k: words that it sees.
        first: (2^k,) probabilities of the first k words.
        length: of a string.
    """
    seen = np.array(list(itertools.product(range(2), repeat=k)))
    law = Windows(grammar).next_words(seen)[:, :2]
    law /= law.sum(axis=1, keepdims=True)
    spins = (1.0 - 2.0 * seen).sum(axis=1)
    moments = first * spins ** np.arange(3)[:, None]
    for _ in range(length - k):
        after = np.zeros_like(moments)
        for word, spin in enumerate((1.0, -1.0)):
            p, one, two = moments * law[:, word]
            into = (2 * np.arange(2**k) + word) % 2**k
            for row, each in zip(after, (p, one + spin * p, two + 2.0 * spin * one + p), strict=True):
                row += np.bincount(into, each, minlength=2**k)
        moments = after
    return float(moments[2].sum())


@pytest.mark.long
@pytest.mark.parametrize("k", [1, 2, 4, 8])
def test_the_row_of_spins_has_the_variance_of_a_sum_over_all_windows(k: int) -> None:
    row = find_rows("gaitonde-variance")[0]
    grammar = language("broadcast:depth=10,flip=0.05")
    begin = [[str(word + 1) for word in string] for string in itertools.product(range(2), repeat=max(k, 2))]
    blocks = language("broadcast", depth=max(k.bit_length() - 1, 1), flip=0.05)  # the first k words are its strings
    first = np.exp(blocks.exact.string_log_probs(begin)).reshape(2**k, -1).sum(axis=1)
    result = committed_result(row)
    assert result is not None
    found = result.quantities[f"words-{k}"]
    assert found.low is not None and found.high is not None
    assert found.low < variance(grammar, k, first, 1024) / 1024 < found.high


def value(found: list[RunRecord], **fields: Any) -> float:
    """The number of the one record with these fields."""
    (record,) = (each.fields for each in found if all(each.fields[key] == value for key, value in fields.items()))
    assert record["low"] <= record["value"] <= record["high"]
    return float(record["value"])


@pytest.mark.long
def test_spins_have_the_variance_of_the_tree_and_of_the_chain(sampled: Sampled) -> None:
    found = sampled(SPINS, 4000)
    assert [(each.fields["name"], each.fields["words"]) for each in found] == [
        (name, words) for words in ("all", 1, 2, 4) for name in ("variance", "kurtosis")
    ]
    assert all(each.seed is None for each in found)
    theta = 0.8
    tree = 1.0 + theta**2 + 2.0 * theta**4 + 4.0 * theta**6
    assert value(found, name="variance", words="all") == pytest.approx(tree, rel=0.1)
    grammar = language("broadcast:depth=3,flip=0.1")
    for words in (1, 2, 4):
        law = chain(grammar, words)
        second, fourth = (sum(p * (8 - 2 * sum(s)) ** power for s, p in law.items()) for power in (2, 4))
        assert value(found, name="variance", words=words) == pytest.approx(second / 8.0, rel=0.1)
        assert value(found, name="kurtosis", words=words) == pytest.approx(fourth / second**2 - 3.0, abs=0.15)


@pytest.mark.long
def test_colours_are_impossible_as_often_as_the_chain_says(sampled: Sampled) -> None:
    found = sampled(COLOURS, 500)
    assert {each.fields["name"] for each in found} == {"impossible"}
    assert value(found, name="impossible", words="all") == 0.0
    grammar = language("broadcast:states=3,depth=2,children=3,flip=1")
    for words in (1, 2, 4, 8):
        made = {s: p for s, p in chain(grammar, words).items() if p > 0.0}
        logs = grammar.exact.string_log_probs([[grammar.vocabulary[w] for w in s] for s in made])
        wanted = math.fsum(p for p, log in zip(made.values(), logs, strict=True) if log == -math.inf)
        assert value(found, name="impossible", words=words) == pytest.approx(wanted, abs=0.08)


@pytest.mark.long
def test_strings_of_several_lengths_are_refused(sampled: Sampled) -> None:
    with pytest.raises(InputError, match="strings have several lengths"):
        sampled({"language": "mess3"}, 50, lengths="4..6")


def test_a_window_after_which_no_string_goes_on_is_named() -> None:
    grammar = PCFG.from_text("S -> A B 1.0\nA -> 'a' 1.0\nB -> 'b' 1.0\n")
    with pytest.raises(InputError, match="no string continues after 'b'"):
        continued(Windows(grammar), np.array([[1]], dtype=np.int32), 2, np.random.default_rng(0))


def test_windows_that_cannot_be_numbered_are_refused() -> None:
    grammar = language("broadcast:depth=7")
    with pytest.raises(InputError, match="windows of 62 words of 2 cannot be numbered"):
        continued(Windows(grammar), np.zeros((1, 62), dtype=np.int32), 100, np.random.default_rng(0))
