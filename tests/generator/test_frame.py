"""Which positions of a sentence count, against a rule written for one position at a time."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from truesource.generator.language_model import ScoringFrame, assemble_scores
from truesource.grammar.support.errors import InputError

YES_NO, UNKNOWN = (True, False), ("token", "skip")
FRAMES: list[ScoringFrame] = [ScoringFrame(*values) for values in itertools.product(YES_NO, YES_NO, UNKNOWN)]


def counts(frame: ScoringFrame, position: int, unknown: list[bool]) -> bool:
    if position == 0 and not frame.first:
        return False
    if position == len(unknown):
        return frame.eos
    return frame.unk == "token" or not unknown[position]


@pytest.mark.parametrize("ends", [True, False])
@pytest.mark.parametrize("frame", FRAMES, ids=str)
def test_positions_that_count(frame: ScoringFrame, ends: bool) -> None:
    unknown = [[False, True, False], [], [True], [False], [False, False], []]
    rows = [[-1.0 - i - 10 * j for i in range(len(row) + ends)] for j, row in enumerate(unknown)]
    rows[4][0] = -np.inf
    found = assemble_scores([np.array(row) for row in rows], [np.array(row, dtype=bool) for row in unknown], frame)
    expected = [
        (j, i, value)
        for j, row in enumerate(rows)
        for i, value in enumerate(row)
        if j != 4 and counts(frame, i, unknown[j])
    ]
    assert list(zip(found.sentence, found.position, found.log_prob, strict=True)) == expected
    assert (found.impossible.tolist(), found.n_sentences) == ([4], 6)


def test_nothing_to_score() -> None:
    found: Any = assemble_scores([], [], ScoringFrame())
    assert (len(found.log_prob), found.n_sentences) == (0, 0)
    assert (found.sentence.dtype, found.position.dtype, found.impossible.dtype) == (np.int32,) * 3


def test_a_log_probability_that_is_nan_is_refused() -> None:
    rows = [np.array([-1.0, -2.0]), np.array([-1.0, np.nan, -1.0])]
    with pytest.raises(InputError, match="token 2 of sentence 2") as refused:
        assemble_scores(rows, [np.zeros(1, dtype=bool), np.zeros(2, dtype=bool)], ScoringFrame())
    assert refused.value.code == "not-log-probabilities"
