"""The files that a call was asked for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from truesource.terminal.output import OutputFiles, call_scope


def test_files_are_written_and_named_in_the_order_of_the_options(tmp_path: Path) -> None:
    options = [f"option{number}" for number in range(8)]
    written = []

    def writer(option: str) -> Callable[[Path], None]:
        def write(path: Path) -> None:
            written.append(option)
            path.write_text(option, encoding="utf-8")

        return write

    asked = [option for option in options if option != "option3"]
    with call_scope([]):
        files = OutputFiles(force=False, **{each: tmp_path / each if each in asked else None for each in options})
        named = files.write(**{option: writer(option) for option in reversed(options)})
    assert written == asked
    assert named == [str(tmp_path / option) for option in asked]
    assert {file.name: file.read_text(encoding="utf-8") for file in tmp_path.iterdir()} == {
        each: each for each in asked
    }
