"""The outputs of one call: all or none, and its own after a kill."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from other_process import locked_elsewhere

from truesource.grammar.support.atomic_files import remove_leftovers, remove_leftovers_in, replace_path, write_text
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.locks import claimed


def contents(folder: Path) -> dict[str, str]:
    """Text of every file, hidden ones too."""
    return {
        str(path.relative_to(folder)): path.read_text(encoding="utf-8") for path in folder.rglob("*") if path.is_file()
    }


def write_both(folder: Path, call: str, text: str, *, force: bool = False, stop: bool = False) -> bool:
    """Write two files as one call does; whether it was resumed."""
    files = (folder / "a", folder / "b")
    with claimed(files, call, force=force) as outputs:
        with outputs.together():
            for file in files:
                write_text(file, text)
            if stop:
                raise KeyboardInterrupt
        return outputs.resumed


def test_two_files_appear_together(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        write_both(tmp_path, "call", "new", stop=True)
    assert contents(tmp_path) == {}
    assert not write_both(tmp_path, "call", "new")
    assert contents(tmp_path) == {"a": "new", "b": "new"}
    with pytest.raises(InputError, match="will not overwrite"):
        write_both(tmp_path, "call", "newer")
    with pytest.raises(KeyboardInterrupt):
        write_both(tmp_path, "call", "newer", force=True, stop=True)
    assert contents(tmp_path) == {"a": "new", "b": "new"}
    write_both(tmp_path, "call", "newer", force=True)
    assert contents(tmp_path) == {"a": "newer", "b": "newer"}


def test_new_and_old_never_stand_side_by_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_both(tmp_path, "call", "old")
    rename, seen = Path.replace, []

    def watched(self: Path, target: Path) -> Path:
        seen.append({name: text for name, text in contents(tmp_path).items() if name in ("a", "b")})
        if len(seen) == 2:
            raise OSError(errno.EIO, os.strerror(errno.EIO), str(target))
        return rename(self, target)

    monkeypatch.setattr(Path, "replace", watched)
    with pytest.raises(InputError, match=r"cannot write: Input/output error.*b\)"):
        write_both(tmp_path, "call", "new", force=True)
    assert seen == [{"a": "old"}, {"a": "new"}]
    monkeypatch.undo()
    assert write_both(tmp_path, "call", "new")  # its own, without force
    assert contents(tmp_path) == {"a": "new", "b": "new"}


def test_what_a_stopped_call_has_made_is_its_own(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), claimed([tmp_path / "a", tmp_path / "b"], "call", force=False):
        write_text(tmp_path / "b", "half")
        raise KeyboardInterrupt
    assert contents(tmp_path) == {"b": "half", ".b.unfinished": "call"}
    with pytest.raises(InputError, match="will not overwrite"):
        write_both(tmp_path, "another", "new")
    assert write_both(tmp_path, "call", "new")
    assert contents(tmp_path) == {"a": "new", "b": "new"}


def test_what_another_call_has_made_meanwhile_is_not(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), claimed([tmp_path / "a", tmp_path / "b"], "call", force=False):
        write_text(tmp_path / "b", "half")
        raise KeyboardInterrupt
    with claimed([tmp_path / "b"], "another", force=True):
        write_text(tmp_path / "b", "other")
    with pytest.raises(InputError, match="will not overwrite"):
        write_both(tmp_path, "call", "new")
    assert contents(tmp_path) == {"b": "other"}


def test_a_call_that_ends_in_an_exit_code_is_not_finished(tmp_path: Path) -> None:
    for code, left in ((2, {"a": "text", ".a.unfinished": "call"}), (0, {"a": "text"})):
        with pytest.raises(SystemExit), claimed([tmp_path / "a"], "call", force=False):
            write_text(tmp_path / "a", "text")
            raise SystemExit(code)
        assert contents(tmp_path) == left


def test_one_of_two_calls_is_refused(tmp_path: Path) -> None:
    with locked_elsewhere(tmp_path / "b"), pytest.raises(InputError, match="another process is writing this"):
        write_both(tmp_path, "call", "new")
    assert contents(tmp_path) == {}


def test_leftovers_of_kills_are_removed(tmp_path: Path) -> None:
    keep = {".b.lock": "", "b": "b", ".notes.partial": "", ".x.1-00c0ffee.partial": "x", "sub/.c.1.partial": ""}
    drop = {".b.12-0badcafe.partial": "half", "b.folder": None, ".b.77-deadbeef.partial": None}
    (tmp_path / "sub").mkdir()
    for name, text in {**keep, **drop}.items():
        if text is None:
            (tmp_path / name).mkdir()
        else:
            (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "b.folder").rmdir()
    remove_leftovers(tmp_path / "b")
    assert contents(tmp_path) == keep and not (tmp_path / ".b.77-deadbeef.partial").exists()
    (tmp_path / "sub" / ".c.1-00c0ffee.partial").write_text("half", encoding="utf-8")
    remove_leftovers_in(tmp_path, deep=False)
    assert contents(tmp_path).keys() == keep.keys() - {".x.1-00c0ffee.partial"} | {"sub/.c.1-00c0ffee.partial"}
    remove_leftovers_in(tmp_path, deep=True)
    assert contents(tmp_path).keys() == keep.keys() - {".x.1-00c0ffee.partial"}


def test_a_folder_that_was_moved_aside_goes_back(tmp_path: Path) -> None:
    """Killed between the two renames of `replace`: the old folder is there under another name."""
    old, new = tmp_path / "model", tmp_path / "new"
    for folder, text in ((old, "old"), (new, "new")):
        folder.mkdir()
        write_text(folder / "weights", text)
    old.replace(tmp_path / ".model.5-00c0ffee.retired")
    remove_leftovers(old)
    assert contents(tmp_path) == {"model/weights": "old", "new/weights": "new"}
    replace_path(new, old)
    assert contents(tmp_path) == {"model/weights": "new"}


def test_writing_one_file_twice_within_a_set(tmp_path: Path) -> None:
    with claimed([tmp_path / "a"], "call", force=False) as outputs, outputs.together():
        write_text(tmp_path / "a", "first")
        write_text(tmp_path / "a", "second")
        write_text(tmp_path / "elsewhere", "at once")
        assert contents(tmp_path)["elsewhere"] == "at once" and not (tmp_path / "a").exists()
    assert contents(tmp_path) == {"a": "second", "elsewhere": "at once"}
