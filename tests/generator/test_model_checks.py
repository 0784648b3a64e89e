"""Scores and distributions of models that are not ours: what is no probability is refused, by code."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from truesource.generator.foreign_code import file_of
from truesource.generator.language_model import LogDistributions, ScoringFrame, TokenScores, assemble_scores
from truesource.generator.model_checks import checked_distributions, checked_scores
from truesource.grammar.support.errors import InputError

FRAME = ScoringFrame()
SENTENCES = [["a", "b"], ["a", "a"]]


class Given:
    """A model that answers what it was given."""

    name, objective, vocabulary = "given", "causal", ("a", "b")
    unchecked = True  # what it answers is of no use elsewhere

    def __init__(self, answer: Callable[[Sequence[Sequence[str]]], Any]) -> None:
        self.answer = answer

    def score(self, sentences: Sequence[Sequence[str]], frame: ScoringFrame) -> Any:
        return self.answer(sentences)

    def distributions(self, sentences: Sequence[Sequence[str]]) -> Any:
        return self.answer(sentences)


def flat(value: complex, frame: ScoringFrame = FRAME) -> Callable[[Sequence[Sequence[str]]], TokenScores]:
    def answer(sentences: Sequence[Sequence[str]]) -> TokenScores:
        rows = [np.full(len(s) + 1, value) for s in sentences]
        return assemble_scores(rows, [np.zeros(len(s), dtype=bool) for s in sentences], frame)

    return answer


def tables(*found: Any) -> Callable[[Sequence[Sequence[str]]], Iterator[Any]]:
    return lambda sentences: iter(found)


def blocks(value: complex = np.log(0.2), positions: int = 3, columns: int = 4, rows: int = 2) -> list[LogDistributions]:
    return [LogDistributions(i, np.full((rows, columns), value)) for i in range(positions)]


@pytest.mark.parametrize("value", [-1.0, 0.0, 1e-7])
def test_scores_of_probabilities_pass(value: float) -> None:
    assert len(checked_scores(Given(flat(value)), SENTENCES, FRAME).log_prob) == 6


def raises(sentences: Sequence[Sequence[str]]) -> Any:
    raise KeyError("nothing")


def infinite(sentences: Sequence[Sequence[str]]) -> TokenScores:
    scores = flat(-1.0)(sentences)
    scores.log_prob[0] = np.nan
    scores.__post_init__()
    return scores


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (flat(0.5), "not-log-probabilities"),
        (flat(1e-3), "not-log-probabilities"),
        (lambda sentences: [np.zeros(3)], "not-scores"),
        (lambda sentences: flat(-1.0)(sentences[:1]), "not-scores"),
        (flat(-1.0, ScoringFrame(eos=False)), "not-scores"),
        (raises, "code-failed"),
        (infinite, "code-failed"),
        (flat(-1.0 + 0.5j), "complex"),
    ],
)
def test_what_are_no_scores_is_refused(answer: Callable[[Any], Any], code: str) -> None:
    with pytest.raises(InputError) as caught:
        checked_scores(Given(answer), SENTENCES, FRAME)
    assert caught.value.code == code


def test_what_a_model_raises_has_its_file_and_line() -> None:
    with pytest.raises(InputError) as caught:
        checked_scores(Given(raises), SENTENCES, FRAME)
    assert caught.value.path is not None and caught.value.line is not None
    line = Path(caught.value.path).read_text().splitlines()[caught.value.line - 1]
    assert "KeyError" in line


@pytest.mark.parametrize("value", [np.log(0.25), np.log(0.2), -np.inf])
def test_distributions_pass(value: float) -> None:
    found = list(checked_distributions(Given(tables(*blocks(value))), SENTENCES))
    assert [block.position for block in found] == [0, 1, 2]


def test_what_exceeds_zero_by_rounding_is_zero() -> None:
    table = np.full((2, 4), -np.inf)
    table[:, 0] = 1e-9
    given = [LogDistributions(i, table) for i in range(3)]
    assert all(block.log_prob.max() == 0.0 for block in checked_distributions(Given(tables(*given)), SENTENCES))


@pytest.mark.parametrize(
    ("given", "code"),
    [
        (blocks(np.log(0.26)), "not-log-probabilities"),
        (blocks(0.3), "not-log-probabilities"),
        (blocks(np.nan), "not-log-probabilities"),
        (blocks(positions=2), "not-distributions"),
        (blocks(positions=4), "not-distributions"),
        (blocks(columns=3), "not-distributions"),
        (blocks(rows=1), "not-distributions"),
        (blocks()[::-1], "not-distributions"),
        ([np.zeros((2, 4))], "not-distributions"),
        (blocks(np.log(0.25) + 0.5j), "complex"),
    ],
)
def test_what_are_no_distributions_is_refused(given: list[Any], code: str) -> None:
    with pytest.raises(InputError) as caught:
        list(checked_distributions(Given(tables(*given)), SENTENCES))
    assert caught.value.code == code


def test_distributions_that_raise_are_refused() -> None:
    def halfway(sentences: Sequence[Sequence[str]]) -> Iterator[LogDistributions]:
        yield blocks()[0]
        raise ValueError("no more")

    for answer in (raises, halfway):
        with pytest.raises(InputError) as caught:
            list(checked_distributions(Given(answer), SENTENCES))
        assert caught.value.code == "code-failed"


def test_the_file_of_functions_objects_and_built_ins() -> None:
    assert file_of(raises) == file_of(Given(raises)) == Path(__file__)
    assert file_of(len) is None
