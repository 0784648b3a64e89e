"""JSON values as they are kept in files."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from truesource.grammar.support import atomic_files
from truesource.grammar.support.files import round_floats


def test_floats_are_rounded_to_twelve_significant_digits() -> None:
    value = {"a": [0.1 + 0.2, 3], "b": ("x", None, True), "c": {"d": 123456789.0123456}, "e": 1.0e-8, "f": 2.5e-300 / 3}
    expected = {"a": [0.3, 3], "b": ["x", None, True], "c": {"d": 123456789.012}, "e": 1.0e-8, "f": 8.33333333333e-301}
    assert round_floats(value) == expected
    assert round_floats(0.5 - 1e-16) == round_floats(0.5)


def _killed_before(step: int, new: Path, target: Path, at_once: bool) -> bool:
    """Replace ``target`` in a process that is killed before its rename or removal number ``step``; whether it was."""
    child = os.fork()
    if child == 0:
        left = step
        patch = pytest.MonkeyPatch()

        def counted(owner: Any, name: str) -> None:
            function = getattr(owner, name)

            def call(*args: Any) -> Any:
                nonlocal left
                left -= 1
                if left < 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                return function(*args)

            patch.setattr(owner, name, call)

        if not at_once:
            patch.setattr(atomic_files, "_exchanged", lambda *_: False)
        for owner, name in ((Path, "replace"), (atomic_files, "_exchanged"), (atomic_files, "_remove")):
            counted(owner, name)
        atomic_files.replace_path(new, target)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0


@pytest.mark.parametrize("at_once", [True, False] if sys.platform == "linux" else [False])
@pytest.mark.parametrize("step", range(6))
def test_a_kill_during_a_replacement_loses_neither_folder_nor_leaves_a_third(
    step: int, at_once: bool, tmp_path: Path
) -> None:
    """Where the system cannot exchange two folders in one step, the next holder of the lock puts the old one back."""
    new, target = tmp_path / ".c.partial", tmp_path / "c"
    for folder, text in ((new, "new"), (target, "old")):
        folder.mkdir()
        (folder / "file").write_text(text)
    killed = _killed_before(step, new, target, at_once)
    changes = 3 if at_once else 5
    assert killed == (step < changes)
    assert target.is_dir() or not at_once
    atomic_files.remove_leftovers(target)
    assert (target / "file").read_text() == ("new" if step >= changes - 1 else "old")
    assert [path.name for path in sorted(tmp_path.iterdir())] == ([".c.partial"] if step == 0 else []) + ["c"]


def test_what_the_system_cannot_exchange_is_not_exchanged(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    assert not atomic_files._exchanged(tmp_path / "a", tmp_path / "missing")
    assert (tmp_path / "a").is_dir()
