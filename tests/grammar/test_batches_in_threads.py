"""Batches at work in threads: their order, their errors, and how many there are at once."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from truesource import PCFG, LengthRange
from truesource.grammar.inference import batch as batches
from truesource.grammar.inference.batch import Batch, in_threads, run
from truesource.grammar.inference.next_words import next_words

WORK = [Batch(np.full((2, 1), number, np.int32), ((number,),)) for number in range(12)]
GRAMMAR = PCFG.from_text("S -> A S 0.3 | S B 0.2 | A 0.2 | c 0.3\nA -> a 0.6 | A B 0.1 | b 0.3\nB -> b 0.7 | S 0.3")
SENTENCES = [[*word * (1 + k % 7), *"cb" * (k % 3)] for k, word in enumerate(["a", "ab", "ac", "cb", "b"] * 9)]


@pytest.fixture(params=(1, 2, 5))
def cores(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """So many threads, whatever this machine has."""
    monkeypatch.setattr(batches, "threads", lambda: request.param)
    return int(request.param)


def number_of(batch: Batch) -> int:
    return int(batch.words[0, 0])


@pytest.mark.usefixtures("cores")
def test_results_come_in_the_order_of_the_batches() -> None:
    later_done = threading.Event()

    def task(batch: Batch) -> int:
        if number_of(batch) == 0 and batches.threads() > 1:
            assert later_done.wait(10)
        if number_of(batch) == 1:
            later_done.set()
        return number_of(batch) ** 2

    found = list(run(task, WORK, "squares", len(WORK)))
    assert [(number_of(batch), square) for batch, square in found] == [(i, i * i) for i in range(12)]


def test_an_exception_is_raised_and_no_other_batch_begins(cores: int) -> None:
    begun: list[int] = []

    def task(batch: Batch) -> int:
        begun.append(number_of(batch))
        if number_of(batch) == 3:
            raise ZeroDivisionError("the third")
        return number_of(batch)

    found = []
    with pytest.raises(ZeroDivisionError, match="the third"):
        for _, number in run(task, WORK, "numbers", len(WORK)):
            found.append(number)
    assert found == [0, 1, 2]
    assert 4 <= len(begun) <= 3 + cores


def test_what_is_not_taken_does_not_pile_up(cores: int) -> None:
    begun: list[int] = []
    results = in_threads(lambda number: begun.append(number) or number, iter(range(100)))
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    results.close()
    assert 3 <= len(begun) <= 2 + cores


def test_one_batch_needs_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(batches, "ThreadPoolExecutor")
    ((batch, name),) = run(lambda batch: threading.current_thread().name, WORK[:1], "names", 1)
    assert (batch, name) == (WORK[0], threading.current_thread().name)


def test_next_words_are_the_same_bytes_on_any_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for cores in (1, 2, 4):
        monkeypatch.setattr(batches, "threads", lambda cores=cores: cores)
        found.append(next_words(GRAMMAR, SENTENCES, LengthRange(1, 20)))
    assert found[0].possible.any() and not found[0].possible.all()
    assert len({words.probability.tobytes() for words in found}) == 1
    rounded = next_words(GRAMMAR, SENTENCES, LengthRange(1, 20), dtype=np.float32).probability
    assert rounded.dtype == np.float32
    np.testing.assert_array_equal(rounded, found[0].probability.astype(np.float32))
