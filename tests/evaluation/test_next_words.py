"""The most likely words are those of the exact next-word distributions, and of masked ones."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from truesource.evaluation.core.oracle import Oracle
from truesource.evaluation.core.setting import Setting
from truesource.evaluation.divergence.blocks import next_words, read_next_words, write_next_words
from truesource.generator.language_model import END
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.errors import InputError

GRAMMAR = """
S -> NP V 0.6 | NP VP 0.4
NP -> D N 0.7 | N 0.3
VP -> V NP 1
D -> 'the' 0.7 | 'a' 0.3
N -> 'dog' 0.5 | 'cat' 0.3 | 'cow' 0.2
V -> 'sees' 0.6 | 'likes' 0.4
"""
SENTENCES = [["the", "dog", "sees"], ["cat", "likes", "a", "cow"], ["the", "the"], ["cow", "sees"]]
LENGTHS = LengthRange(2, 5)


class OnlyScores:
    """An oracle without its full distributions."""

    def __init__(self, oracle: Oracle) -> None:
        self.name, self.objective, self.vocabulary = "scores", oracle.objective, oracle.vocabulary
        self.score = oracle.score


def by_place(rows: list[dict[str, Any]], side: str) -> dict[tuple[int, int], dict[str, float]]:
    found: dict[tuple[int, int], dict[str, float]] = {}
    for row in rows:
        if row["side"] == side:
            found.setdefault((row["sentence"], row["position"]), {})[row["word"]] = row["log_prob"]
    return found


@pytest.mark.parametrize("vocabulary", [None, ("the", "dog", "sees", "cat")])
def test_causal_words_are_those_of_next_token(vocabulary: tuple[str, ...] | None) -> None:
    pcfg = PCFG.from_text(GRAMMAR)
    oracle = Oracle(pcfg, "causal", lengths=LENGTHS, vocabulary=vocabulary)
    rows = next_words(oracle, Setting(pcfg, SENTENCES, lengths=LENGTHS), top=4)
    assert by_place(rows, "truth") == by_place(rows, "model")
    found = by_place(rows, "truth")
    assert {sentence for sentence, _ in found} == {0, 1, 3}  # the grammar cannot make the other
    assert len(found) == 4 + 5 + 3
    for (sentence, position), words in found.items():
        exact = oracle.next_token(SENTENCES[sentence][:position])
        expected = {word: p for word, p in zip(exact.words, exact.probability.tolist(), strict=True) if p > 0.0}
        expected |= {END: exact.stop} if exact.stop > 0.0 else {}
        best = sorted(expected.values(), reverse=True)[:4]
        assert [math.exp(p) for p in words.values()] == pytest.approx(best)
        assert all(math.exp(p) == pytest.approx(expected[word]) for word, p in words.items())


@pytest.mark.long
def test_masked_words_are_proportional_to_whole_sentences() -> None:
    pcfg = PCFG.from_text(GRAMMAR)
    rows = next_words(Oracle(pcfg, "masked"), Setting(pcfg, SENTENCES, lengths=None))
    for (sentence, position), words in by_place(rows, "truth").items():
        given = SENTENCES[sentence]
        filled = {w: pcfg.log_prob([*given[:position], w, *given[position + 1 :]]) for w in pcfg.vocabulary}
        total = math.fsum(math.exp(p) for p in filled.values())
        assert words == pytest.approx({w: p - math.log(total) for w, p in filled.items() if p > -math.inf})


def test_classes_are_those_of_the_words_and_rows_are_in_order() -> None:
    pcfg = PCFG.from_text(GRAMMAR)
    rows = next_words(Oracle(pcfg, "causal", lengths=LENGTHS), Setting(pcfg, SENTENCES, lengths=LENGTHS))
    classes = {(row["sentence"], row["position"]): row["class"] for row in rows}
    assert [classes[1, at] for at in range(5)] == ["N", "V", "D", "N", ""]
    keys = [(row["sentence"], row["position"], row["side"] == "model", row["rank"]) for row in rows]
    assert keys == sorted(keys)


def test_a_model_without_distributions_has_the_truth_beside_it(tmp_path: Path) -> None:
    pcfg = PCFG.from_text(GRAMMAR)
    oracle = Oracle(pcfg, "causal", lengths=LENGTHS)
    rows = next_words(OnlyScores(oracle), Setting(pcfg, SENTENCES, lengths=LENGTHS))
    assert rows == [
        row for row in next_words(oracle, Setting(pcfg, SENTENCES, lengths=LENGTHS)) if row["side"] == "truth"
    ]
    write_next_words(tmp_path / "x.parquet", rows)
    assert read_next_words(tmp_path / "x.parquet") == rows
    (tmp_path / "x.parquet").write_bytes(b"PAR1")
    with pytest.raises(InputError, match="likely words"):
        read_next_words(tmp_path / "x.parquet")
