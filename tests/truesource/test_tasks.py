"""Tasks: each is made once, by the job that owns it; failures do not stop the others; what others are at is left."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from truesource.grammar.support.errors import InputError
from truesource.grammar.support.locks import BusyError
from truesource.grammar.support.parallel import Share, Workers
from truesource.run.tasks import Failure, make_tasks, refuse_foreign

NAMES = ("a", "b", "c", "d", "e")


def make(folder: Path, task: str, *, wait: bool) -> None:
    """Write a file; ``c`` cannot be made, and another process is at work on ``b`` for those that do not wait."""
    if task == "c":
        raise InputError("this one is wrong")
    if task == "b" and not wait:
        raise BusyError("b")
    with (folder / task).open("x", encoding="utf-8") as file:
        file.write(task)


def made(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@dataclass(frozen=True)
class Finished:
    folder: Path

    def __call__(self, task: str) -> bool:
        return (self.folder / task).is_file()


@pytest.mark.long
@pytest.mark.parametrize("workers", [1, 2])
def test_each_is_made_once_and_failures_do_not_stop_the_others(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, workers: int
) -> None:
    caplog.set_level(logging.INFO, "truesource")
    call = partial(
        make_tasks, NAMES, partial(make, tmp_path), finished=Finished(tmp_path), share=Share(), workers=Workers(workers)
    )
    assert call(wait=False) == [Failure("c", "this one is wrong")]
    assert made(tmp_path) == ["a", "d", "e"]
    assert "b: another process is working on it" in caplog.text and "c failed: this one is wrong" in caplog.text
    assert "finished already" not in caplog.text
    caplog.clear()
    assert call(wait=True) == [Failure("c", "this one is wrong")]
    assert made(tmp_path) == ["a", "b", "d", "e"]
    assert "finished already: 3 of 5 cells" in caplog.text
    assert "[2/2] b: done" in caplog.text and "waiting for another process" in caplog.text


def test_jobs_share_them_out(tmp_path: Path) -> None:
    for index in range(3):
        make_tasks(
            [name for name in NAMES if name != "c"],
            partial(make, tmp_path),
            finished=Finished(tmp_path),
            share=Share(index, 3),
            wait=True,
        )
        assert len(made(tmp_path)) == (2, 3, 4)[index]


def test_lines_say_how_many_are_left(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "truesource")
    make_tasks(["x", "y"], partial(make, tmp_path), finished=Finished(tmp_path), share=Share())
    assert "[1/2] x: done; 1 to go" in caplog.text and caplog.messages[-1] == "[2/2] y: done"


def test_folders_of_others_are_refused(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    refuse = partial(refuse_foreign, folder, "tasks.json", "choose another name")
    refuse()  # absent
    folder.mkdir()
    (folder / ".lock").touch()
    (folder / "corpus").mkdir()
    refuse(allowed=("corpus",))
    with pytest.raises(InputError, match=r"choose another name .*work"):
        refuse()
    (folder / "tasks.json").touch()
    refuse()
    with pytest.raises(InputError, match="choose another name"):
        refuse_foreign(folder / "corpus" / ".." / "tasks.json", "x", "choose another name")
