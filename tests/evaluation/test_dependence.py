"""Custom models whose numbers depend on later words or other sentences are refused; honest ones pass."""

from __future__ import annotations

import gc
import logging
import math
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from truesource import FunctionModel
from truesource.evaluation.control.measure import KlDifference
from truesource.evaluation.core.comparison import compare_in, score_alone
from truesource.evaluation.core.oracle import Oracle
from truesource.evaluation.core.setting import Setting
from truesource.evaluation.core.signature import dependence_part
from truesource.evaluation.diffusion.measure import left_to_right
from truesource.evaluation.divergence.compare import compare_distributions
from truesource.evaluation.divergence.contexts import cache_truth
from truesource.evaluation.dynamics.oracle_monitor import OracleMonitor
from truesource.evaluation.memory.measure import ratios
from truesource.evaluation.pairs.odds import model_log_odds
from truesource.evaluation.pairs.pair import Pair
from truesource.evaluation.pplu.compare import compare_pplu
from truesource.generator import dependence
from truesource.generator.language_model import ScoringFrame, TokenScores, assemble_scores
from truesource.generator.model_checks import checked_scores
from truesource.generator.sampler import Sampler
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import random_state
from truesource.grammar.support.errors import InputError

PCFG_ = PCFG.from_text("""
S -> NP VP 1.0
NP -> the N 0.5 | a N 0.3 | NP PP 0.2
PP -> near NP 1.0
VP -> sleeps 0.4 | sees NP 0.4 | VP often 0.2
N -> dog 0.4 | cat 0.3 | bird 0.3
""")
WORDS = ("the", "a", "near", "sleeps", "sees", "often", "dog", "cat", "bird")
END, COLUMNS = "</s>", (*WORDS, "<unk>", "</s>")
TEXT = Sampler(PCFG_).sentences(Sampler(PCFG_).draw(300, random_state(4)))
FRAME = ScoringFrame()
Sentences = Sequence[Sequence[str]]


def bigrams() -> dict[str, dict[str, float]]:
    """Bigram probabilities of the text, smoothed, of `COLUMNS`."""
    counts = {before: Counter(dict.fromkeys(COLUMNS, 0.5)) for before in ("<s>", *WORDS, "<unk>")}
    for words in TEXT:
        for before, word in pairwise(["<s>", *words, END]):
            counts[before][word] += 1
    return {b: {word: n / sum(row.values()) for word, n in row.items()} for b, row in counts.items()}


BIGRAMS = bigrams()


def row(words: Sequence[str]) -> Any:
    """Log probabilities of a sentence by bigrams, (n+1,)."""
    read = [word if word in WORDS else "<unk>" for word in words]
    return np.log([BIGRAMS[b][word] for b, word in pairwise(["<s>", *read, END])])


def table(words: Sequence[str]) -> Any:
    """Log distributions of a sentence by bigrams, (n+1, V+2)."""
    read = [word if word in WORDS else "<unk>" for word in words]
    return np.log([[BIGRAMS[b][word] for word in COLUMNS] for b in ["<s>", *read]])


def shifted(by: Callable[[Sequence[str], int], float]) -> FunctionModel:
    """Bigrams with log probabilities shifted by something of the sentence and the position."""

    def log_probs(sentences: Sentences) -> list[Any]:
        return [row(s) + np.array([by(s, i) for i in range(len(s) + 1)]) - 0.3 for s in sentences]

    return FunctionModel(log_probs, vocabulary=WORDS, name="shifted")


def batched(by: Callable[[Sentences, int], float], objective: Any = "causal") -> FunctionModel:
    """Bigrams shifted by something of all sentences of a call and the number of the sentence."""
    end = None if objective == "causal" else -1

    def log_probs(sentences: Sentences) -> list[Any]:
        return [row(s)[:end] + by(sentences, i) - 0.3 for i, s in enumerate(sentences)]

    return FunctionModel(log_probs, vocabulary=WORDS, name="batched", objective=objective)


def tabled(by: Callable[[Sequence[str], int, Any], None], log_probs: Any = None, objective: Any = "causal") -> Any:
    """Bigrams whose distributions are changed in place, by sentence and position, and normalised again."""

    def distributions(sentences: Sentences) -> list[Any]:
        result = []
        for words in sentences:
            p = np.exp(table(words))
            for i in range(len(p)):
                by(words, i, p[i])
            result.append(np.log(p / p.sum(axis=1, keepdims=True)))
        return result

    return FunctionModel(log_probs, vocabulary=WORDS, name="tabled", distributions=distributions, objective=objective)


def hashed(words: Sequence[str]) -> float:
    """A number from -0.01 to 0.01 that every word of a sentence changes."""
    return (zlib.crc32(" ".join(words).encode()) % 2001 - 1000) / 1e5


def at(words: Sequence[str], i: int) -> str:
    """The word at a position, or the end."""
    return words[i] if 0 <= i < len(words) else END


def peek(words: Sequence[str], i: int, p: Any) -> None:
    """Add .05 to the probability of the word itself."""
    p[COLUMNS.index(at(words, i))] += 0.05


def peek_two(words: Sequence[str], i: int, p: Any) -> None:
    """Make the word after the next likelier by .01 nats."""
    p[COLUMNS.index(at(words, i + 1))] *= np.exp(0.05)


class PeekingClass:
    """A class of a user, which looks at the last word."""

    name, objective, vocabulary = "peeking", "causal", WORDS

    def score(self, sentences: Sentences, frame: ScoringFrame) -> TokenScores:
        rows = [row(words) - 0.3 * (words[-1] == "often") for words in sentences]
        return assemble_scores(rows, [np.zeros(len(words), dtype=bool) for words in sentences], frame)


LOOKING: dict[str, Callable[[], Any]] = {
    "next word": lambda: shifted(lambda s, i: 0.05 * (at(s, i + 1) in ("dog", "sleeps"))),
    "next word by .01": lambda: shifted(lambda s, i: 0.01 * (at(s, i + 1) in ("near", "sees", "often"))),
    "word after next": lambda: shifted(lambda s, i: 0.02 * (at(s, i + 2) == END)),
    "length": lambda: shifted(lambda s, i: 0.01 * len(s) / 3),
    "parity of the length": lambda: shifted(lambda s, i: 0.01 * (len(s) % 2)),
    "share of the sentence": lambda: shifted(lambda s, i: 0.1 * i / (len(s) + 1)),
    "last word": lambda: shifted(lambda s, i: 0.5 * (s[-1] == "often")),
    "last word at the first": lambda: shifted(lambda s, i: 0.02 * (i == 0 and s[-1] in ("often", "dog"))),
    "whole sentence": lambda: shifted(lambda s, i: hashed(s)),
    "repeated later": lambda: shifted(lambda s, i: 0.03 * (at(s, i) in s[i + 1 :])),
    "the word itself in distributions": lambda: tabled(peek),
    "two words on in distributions": lambda: tabled(peek_two),
    "the word itself in log_probs": lambda: FunctionModel(
        lambda sentences: [np.full(len(s) + 1, np.log(1 / 11 + 0.1)) for s in sentences], vocabulary=WORDS
    ),
    "a class": PeekingClass,
}
MIXING: dict[str, Callable[[], Any]] = {
    "size of the batch": lambda: batched(lambda batch, i: 0.01 * len(batch) / 20),
    "longest of the batch": lambda: batched(lambda batch, i: 0.01 * (max(map(len, batch)) - len(batch[i]))),
    "number in the batch": lambda: batched(lambda batch, i: 0.02 * (i % 3)),
    "neighbour": lambda: batched(lambda batch, i: 0.02 * (batch[i - 1][0] == "the")),
    "masked with neighbours": lambda: batched(lambda batch, i: 0.02 * (batch[i - 1][0] == "the"), "masked"),
    "masked with padding": lambda: batched(lambda b, i: 0.02 * (max(map(len, b)) - len(b[i])), "masked"),
}


@pytest.mark.parametrize("name", LOOKING)
def test_models_that_look_ahead_are_refused(name: str) -> None:
    with pytest.raises(InputError) as caught:
        score_alone(LOOKING[name](), TEXT)
    expected = "not-log-probabilities" if "log_probs" in name else "looks-ahead"
    assert caught.value.code == expected
    assert caught.value.path == Path(__file__)
    if expected == "looks-ahead":
        assert "token" in caught.value.reason or "the end" in caught.value.reason


@pytest.mark.parametrize("name", MIXING)
def test_models_that_mix_sentences_are_refused(name: str) -> None:
    with pytest.raises(InputError) as caught:
        score_alone(MIXING[name](), TEXT)
    assert caught.value.code == "mixes-rows"


def test_the_sentence_and_the_position_are_named() -> None:
    text = [["the", "dog", "sleeps"], ["the", "cat", "sleeps"], ["a", "bird", "sleeps", "often"]]
    with pytest.raises(InputError) as caught:
        score_alone(shifted(lambda s, i: 0.25 * (i == 1 and at(s, 2) == "sleeps" and at(s, 3) == END)), text)
    assert caught.value.code == "looks-ahead"
    assert "token 2 (" in caught.value.reason and "0.25 nats" in caught.value.reason
    assert any(f"of sentence {n} {' '.join(text[n - 1])!r}" in caught.value.reason for n in (1, 2))


class Cached:
    """A class that remembers the rows of sentences that it has read."""

    name, objective, vocabulary = "cached", "causal", WORDS

    def __init__(self) -> None:
        self.known: dict[tuple[str, ...], Any] = {}

    def score(self, sentences: Sentences, frame: ScoringFrame) -> TokenScores:
        rows = [self.known.setdefault(tuple(words), row(words)) for words in sentences]
        return assemble_scores(rows, [np.zeros(len(words), dtype=bool) for words in sentences], frame)


class Slots(Cached):
    """A class without weak references or a hash."""

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]


class OfTruth:
    """A class of a user around the truth, with sentences of probability 0."""

    name, objective, vocabulary = "truth", "causal", None

    def __init__(self, lengths: LengthRange | None = None) -> None:
        self.oracle = Oracle(PCFG_, lengths=lengths)

    def score(self, sentences: Sentences, frame: ScoringFrame) -> TokenScores:
        return self.oracle.score(sentences, frame)


def running(words: Sequence[str], i: int) -> float:
    """A number of all words so far, the position and the word itself."""
    return -0.1 * (sum(len(word) for word in words[: i + 1]) % 7) - 0.01 * i


def rounded(batch: Sentences, i: int) -> float:
    """What float32 does to a sum of logits near 30 in another batch."""
    return float(np.float32(30.0 + 1e-6 * len(batch)) - np.float32(30.0)) + 3e-4 * math.sin(len(batch) + i)


HONEST: dict[str, Callable[[], Any]] = {
    "uniform": lambda: FunctionModel(lambda s: [np.full(len(x) + 1, -np.log(11)) for x in s], vocabulary=WORDS),
    "bigrams": lambda: shifted(lambda s, i: 0.3),
    "open vocabulary": lambda: FunctionModel(lambda s: [row(words) for words in s], vocabulary=None),
    "distributions": lambda: tabled(lambda s, i, p: None),
    "both": lambda: tabled(lambda s, i, p: None, lambda s: [row(words) for words in s]),
    "all words before": lambda: shifted(running),
    "float32 noise": lambda: batched(rounded),
    "a cache": Cached,
    "a cache with slots": Slots,
    "impossible words": lambda: FunctionModel(
        lambda s: [np.where(np.append(np.array(x) == "often", False), -np.inf, row(x)) for x in s], vocabulary=WORDS
    ),
    "the truth": OfTruth,
    "the truth of some lengths": lambda: OfTruth(LengthRange(3, 12)),
    "masked": lambda: FunctionModel(
        lambda s: [row(x)[:-1] - 0.02 * len(x) for x in s], vocabulary=WORDS, objective="masked"
    ),
    "mass on nothing": lambda: tabled(lambda s, i, p: None, None),
    "longest so far": lambda: shifted(lambda s, i: -0.05 * max(map(len, s[: i + 1]), default=0)),
}


@pytest.mark.parametrize("name", HONEST)
def test_honest_models_pass_without_a_note(name: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="truesource"):
        model = HONEST[name]()
        assert len(score_alone(model, TEXT).scores.log_prob)
        assert len(score_alone(model, TEXT[:1] + TEXT[-2:]).scores.log_prob)
    assert not caplog.records


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_honest_models_pass_on_short_texts(size: int) -> None:
    for make in HONEST.values():
        if make is not OfTruth:
            checked_scores(make(), [["the"], ["the", "dog", "sleeps"], *TEXT][:size], FRAME)


def test_empty_texts_and_sentences_are_no_sample() -> None:
    model = HONEST["both"]()
    assert len(checked_scores(model, [], FRAME).log_prob) == 0
    assert len(checked_scores(model, [[], []], FRAME).log_prob) == 2


MEASURES: dict[str, Callable[[Any], Any]] = {
    "compare": lambda model: compare_in(model, Setting(PCFG_, TEXT)),
    "divergence": lambda model: compare_distributions(model, Setting(PCFG_, TEXT, seed=1)),
    "memory": lambda model: ratios(model, Setting(PCFG_, TEXT, seed=1), [tuple(words) for words in TEXT]),
    "pplu": lambda model: compare_pplu(model, Setting(PCFG_, TEXT, seed=1)),
    "control": lambda model: KlDifference.between(model, HONEST["distributions"](), TEXT),
    "diffusion": lambda model: left_to_right(model, Setting(PCFG_, TEXT, seed=1), samples=0),
    "training": lambda model: OracleMonitor(Setting(PCFG_, TEXT, seed=1))(model),
    "log odds": lambda model: model_log_odds(
        model, [Pair(tuple(a), tuple(b), "word-order", -1.0, -1.0, None) for a, b in pairwise(TEXT)]
    ),
    "a kept truth": lambda model: cache_truth(model, Setting(PCFG_, TEXT, seed=1), contexts=200).compare(model),
}


@pytest.mark.parametrize("measure", MEASURES)
def test_every_measure_refuses_models_that_look_ahead(measure: str) -> None:
    with pytest.raises(InputError) as caught:
        MEASURES[measure](tabled(peek))
    assert caught.value.code == "looks-ahead"
    MEASURES[measure](tabled(lambda s, i, p: None))


@pytest.mark.parametrize("by", [0.01, 0.5])
def test_scores_that_are_not_those_of_the_distributions_are_refused(by: float) -> None:
    for measure in ("compare", "divergence"):
        with pytest.raises(InputError) as caught:
            MEASURES[measure](tabled(lambda s, i, p: None, lambda s: [row(words) - by for words in s]))
        assert caught.value.code == "scores-disagree"


def noisy(scale: float, ahead: float = 0.0) -> FunctionModel:
    """Bigrams with other noise is not deterministic, which may look at the last word."""
    generator = np.random.default_rng(1)
    return shifted(lambda s, i: float(generator.normal(0.0, scale)) + ahead * (s[-1] == "often"))


def test_what_is_random_is_said_to_be_random(caplog: pytest.LogCaptureFixture) -> None:
    model = noisy(0.02)
    with caplog.at_level(logging.WARNING, logger="truesource"):
        score_alone(model, TEXT)
        score_alone(model, TEXT)
    (record,) = caplog.records
    assert "is not deterministic" in record.getMessage() and "ahead" not in record.getMessage()


def test_noise_hides_no_look_ahead() -> None:
    with pytest.raises(InputError) as caught:
        score_alone(noisy(0.002, 0.25), TEXT)
    assert caught.value.code == "looks-ahead"


def test_a_model_of_one_text_remains_usable_with_a_note(caplog: pytest.LogCaptureFixture) -> None:
    scores = {tuple(words): row(words) for words in TEXT}
    model = FunctionModel(lambda s: [scores[tuple(words)] for words in s], vocabulary=WORDS, name="file")
    fixed = FunctionModel(lambda s: list(map(row, TEXT)), vocabulary=WORDS, name="whole text")
    for each in (model, fixed):
        caplog.clear()
        with caplog.at_level(logging.WARNING, logger="truesource"):
            found = [score_alone(each, TEXT).ppl.value for _ in range(2)]
        assert found[0] == found[1] == pytest.approx(math.exp(-np.concatenate(list(map(row, TEXT))).mean()))
        (record,) = caplog.records
        assert "not checked" in record.getMessage() and each.name in record.getMessage()


class Unchecked(PeekingClass):
    """A class that says so itself."""

    unchecked = True


def test_a_model_that_says_that_it_is_not_causal_is_noted_once(caplog: pytest.LogCaptureFixture) -> None:
    function = FunctionModel(lambda s: [row(x) - 0.3 * len(x) for x in s], vocabulary=WORDS, unchecked=True)
    models: list[Any] = [Unchecked(), function]
    for model in models:
        caplog.clear()
        with caplog.at_level(logging.WARNING, logger="truesource"):
            score_alone(model, TEXT)
            score_alone(model, TEXT)
        (record,) = caplog.records
        assert "unchecked" in record.getMessage()
        assert dependence_part(model) == {"dependence": "unchecked"}


def test_a_model_is_checked_once_and_forgotten_with_the_object() -> None:
    sizes: list[int] = []

    def log_probs(sentences: Sentences) -> list[Any]:
        sizes.append(len(sentences))
        return [row(words) for words in sentences]

    model = FunctionModel(log_probs, vocabulary=WORDS)
    score_alone(model, TEXT)
    assert sizes[-1] == len(TEXT) and sum(sizes[:-1]) < 0.2 * len(TEXT)
    sizes.clear()
    score_alone(model, TEXT)
    assert sizes == [len(TEXT)]
    key = id(model)
    assert key in dependence._states
    del model
    gc.collect()
    assert key not in dependence._states


def test_a_larger_text_is_checked_after_a_small_one() -> None:
    model = shifted(lambda s, i: 0.05 * (len(s) > 3))
    score_alone(model, [["the", "dog", "sleeps"]])
    with pytest.raises(InputError) as caught:
        score_alone(model, TEXT)
    assert caught.value.code == "looks-ahead"


@pytest.mark.parametrize("kind", [set, frozenset])
def test_a_vocabulary_without_order_is_refused(kind: Any) -> None:
    with pytest.raises(InputError) as caught:
        FunctionModel(lambda s: [row(words) for words in s], vocabulary=kind(WORDS))
    assert caught.value.code == "vocabulary"

    class Unordered(Cached):
        """A class whose words have no order."""

        vocabulary = kind(WORDS)

    with pytest.raises(InputError) as caught:
        checked_scores(cast(Any, Unordered()), TEXT, FRAME)
    assert caught.value.code == "vocabulary"


def test_long_documents_are_read_in_part() -> None:
    words: list[int] = []

    def log_probs(sentences: Sentences) -> list[Any]:
        words.append(sum(map(len, sentences)))
        return [row(document) for document in sentences]

    documents = [[word for sentence in TEXT[i::20] for word in sentence] * 20 for i in range(20)]
    score_alone(FunctionModel(log_probs, vocabulary=WORDS), documents)
    assert sum(words[:-1]) < 0.15 * words[-1]
