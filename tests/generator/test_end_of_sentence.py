"""The end of a sentence has one name among tokens."""

from __future__ import annotations

from pathlib import Path

from truesource.generator.language_model import END

ROOT = Path(__file__).resolve().parents[2]


def test_the_name_of_the_end_stands_once() -> None:
    found = {
        path.relative_to(ROOT).as_posix()
        for folder in ("evaluation", "generator")
        for path in (ROOT / folder).rglob("*.py")
        if f'"{END}"' in path.read_text(encoding="utf-8")
    }
    assert found == {"generator/language_model.py"}
