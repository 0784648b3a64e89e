"""Lines about long work: how far it is, how long it will take, and how it ended."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from truesource.grammar.support import printable
from truesource.grammar.support.printable import meter, seconds_left
from truesource.grammar.treebank import Treebank


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, which goes on only by hand."""
    now = [0.0]
    monkeypatch.setattr(printable, "monotonic", lambda: now[0])
    return now


def test_no_time_is_told_before_five_steps_and_five_seconds() -> None:
    assert seconds_left(4, 60.0, 4.0, 30.0) is None
    assert seconds_left(50, 4.9, 50.0, 30.0) is None
    assert seconds_left(5, 10.0, 20.0, 30.0) == pytest.approx(15.0, abs=1e-12)


def test_a_slow_first_step_tells_no_time(clock: list[float]) -> None:
    with meter("train", 300) as bar:
        clock[0] = 20.0  # libraries are loaded
        bar.advance()
        assert "left" not in bar.state()
        for _ in range(99):
            clock[0] += 0.1
            bar.advance()
        assert bar.state() == "100 of 300 (33%), 3.34/s, 0:01:00 left"


def test_what_an_earlier_call_did_tells_no_time(clock: list[float]) -> None:
    with meter("train", 300) as bar:
        clock[0] = 20.0
        bar.skip(100)
        for _ in range(100):
            clock[0] += 0.1
            bar.advance()
        assert bar.state() == "200 of 300 (67%), 10/s, 0:00:10 left"


@pytest.mark.parametrize(
    ("stopped", "last"), [(False, "train: done, 109 in 0:00:11, 10/s"), (True, "train: stopped, 109 of 300 in 0:00:11")]
)
def test_work_that_is_stopped_in_order_is_not_done(
    stopped: bool, last: str, clock: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, logger="truesource.progress"), meter("train", 300) as bar:
        clock[0] = 10.9
        bar.advance(109)
        bar.stopped = stopped
    assert caplog.messages[-1].startswith(last)


def test_work_that_counts_nothing_says_its_time(clock: list[float], caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, logger="truesource.progress"), meter("lengths up to 90") as bar:
        clock[0] = 65.0
        assert bar.state() == "0:01:05 so far"
    assert caplog.messages[-1] == "lengths up to 90: done in 0:01:05"


def test_few_trees_are_counted_too(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "a.mrg").write_text("(S (N a))\n(S (N b))\n(S (N c))\n")
    with caplog.at_level(logging.DEBUG, logger="truesource.progress"):
        Treebank.read(tmp_path / "a.mrg")
    assert caplog.messages[-1].startswith("reading trees: done, 3 in ")
