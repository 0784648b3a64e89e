"""Numbers of a harness on the kit of known answers, with what each matches; the scripts next to this one use it."""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from truesource import diagnose, known_answers


class Measured(NamedTuple):
    """A number that a call of a harness gives on a twin and a text."""

    call: str
    twin: str
    text: str
    number: float


class Kit:
    """A kit on disk."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.answers = known_answers(folder, force=True).detail

    def twin(self, name: str) -> str:
        """Return the folder of a twin."""
        return str(self.folder / "twins" / name)

    def lines(self, text: str) -> list[str]:
        """Return the lines of a text."""
        return (self.folder / "texts" / f"{text}.txt").read_text(encoding="utf-8").splitlines()

    def words(self, text: str) -> int:
        """Return the number of words of a text."""
        size: int = self.answers.texts[text].sizes["words"]
        return size


def main(packages: str, measure: Callable[[Kit], Iterator[Measured]]) -> None:
    """Print a row for each number: versions, call, twin, text, number, the answer that it matches, digits.

    Args:
        packages: names of distributions, with a space between them.
        measure: yields the numbers.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="also write the rows to this file")
    options = parser.parse_args()
    versions = ", ".join(f"{name} {version(name)}" for name in packages.split())
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        kit = Kit(Path(folder) / "kit")
        print(versions)
        print("| call | twin | text | number | answer | digits |\n| --- | --- | --- | --- | --- | --- |")
        for row in measure(kit):
            match = _match(row)
            rows.append({"versions": versions, **row._asdict(), "answer": match[0], "digits": match[1]})
            print(f"| {row.call} | {row.twin} | {row.text} | {row.number:.7g} | {match[0]} | {match[1]} |", flush=True)
    if options.json is not None:
        options.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


def _match(row: Measured) -> tuple[str, int]:
    """Return the name and kind of the answer that a number matches, and the digits that agree."""
    if not 0.0 < row.number < float("inf"):
        return "no number", 0
    matches = diagnose(float(row.number), row.text).detail.matches
    if not matches:
        return "none", 0
    name = matches[0].name.split(" = ")[0]
    return name if matches[0].kind == "convention" else f"{name} ({matches[0].kind})", matches[0].digits
