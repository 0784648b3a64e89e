"""Provenance names the commit of a checkout, and of an installed package none."""

from __future__ import annotations

import subprocess
from pathlib import Path

from truesource.run.runner import commit


def git(folder: Path, *arguments: str) -> str:
    call = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b", *arguments]
    return subprocess.run(call, check=True, capture_output=True, text=True).stdout.strip()


def test_the_commit_of_a_checkout(tmp_path: Path) -> None:
    assert commit(tmp_path) is None
    git(tmp_path, "init", "-q")
    assert commit(tmp_path) is None  # no commit yet
    (tmp_path / "a.py").write_text("1", "utf-8")
    git(tmp_path, "add", "a.py")
    git(tmp_path, "commit", "-qm", "one")
    head = git(tmp_path, "rev-parse", "HEAD")
    assert commit(tmp_path) == head
    (tmp_path / "a.py").write_text("2", "utf-8")
    assert commit(tmp_path) == f"{head}+"
