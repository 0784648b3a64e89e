"""The lock of what a call writes: held by one process, freed by its end, and gone without a trace."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from other_process import locked_elsewhere

from truesource.grammar.support.errors import InputError
from truesource.grammar.support.locks import BusyError, exclusive, lock_file


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("kill", [False, True])
def test_one_process_holds_it(kill: bool, tmp_path: Path) -> None:
    target = tmp_path / "results"
    with locked_elsewhere(target, kill=kill), pytest.raises(BusyError, match=r"another process is writing.*results"):
        exclusive(target).__enter__()
    assert lock_file(target).exists() == kill
    with exclusive(target):
        assert names(tmp_path) == [".results.lock"]
    assert names(tmp_path) == []


def test_who_waits_gets_it_next(tmp_path: Path) -> None:
    target = tmp_path / "results"
    got = threading.Event()

    def wait() -> None:
        with exclusive(target, wait=True):
            got.set()

    with locked_elsewhere(target):
        waiting = threading.Thread(target=wait)
        waiting.start()
        assert not got.is_set()
    waiting.join()
    assert got.is_set() and names(tmp_path) == []


def test_a_thread_may_take_it_again_and_another_thread_may_not(tmp_path: Path) -> None:
    refused = []

    def other() -> None:
        try:
            exclusive(tmp_path / "results").__enter__()
        except BusyError as error:
            refused.append(error)

    with exclusive(tmp_path / "results"):
        with exclusive(tmp_path / "." / "results"):
            pass
        assert names(tmp_path) == [".results.lock"]  # the inner block has not let it go
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert len(refused) == 1


def test_links_to_one_folder_have_one_lock(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "runs")
    with locked_elsewhere(tmp_path / "link"), pytest.raises(BusyError):
        exclusive(tmp_path / "runs").__enter__()


def test_folders_above_are_made_and_go_if_nothing_came(tmp_path: Path) -> None:
    with exclusive(tmp_path / "a" / "b" / "results"):
        assert names(tmp_path / "a" / "b") == [".results.lock"]
    assert names(tmp_path) == []
    with exclusive(tmp_path / "a" / "b" / "results"):
        (tmp_path / "a" / "b" / "results").write_text("numbers", encoding="utf-8")
    assert names(tmp_path / "a" / "b") == ["results"]


def test_where_nothing_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    for target in (tmp_path / "file" / "results", tmp_path / ("n" * 300) / "results"):
        with pytest.raises(InputError, match="cannot write here"):
            exclusive(target).__enter__()
    with pytest.raises(InputError, match="this path has no name"):
        exclusive("/").__enter__()
