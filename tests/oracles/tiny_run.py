"""A run of a few tiny models, made by `truesource run`, in a folder with its configuration."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO
from unittest.mock import patch

from matplotlib.figure import Figure

from truesource.run.experiment import execute, load_config

#: a name, and what fills a folder with a finished run, to a copy of that folder: the fixture `finished_run`
RunCopies = Callable[[str, Callable[[Path], object]], Path]
#: trees of a few words
BANK = """\
( (S (NP (D the) (N dog)) (VP (V sees) (NP (D a) (N cat)))) )
( (S (NP (N man)) (VP (V walks))) )
( (S (NP (D the) (N cat)) (VP (V walks) (PP (P in) (NP (D the) (N park))))) )
( (S (NP (D a) (N dog)) (VP (V sees) (NP (N man)))) )
"""


def prepare(folder: Path, config: str, grammar: str) -> Path:
    """Write ``toy.yaml`` and the grammar ``toy.txt`` that it names."""
    (folder / "toy.txt").write_text(grammar, encoding="utf-8")
    (folder / "toy.yaml").write_text(config, encoding="utf-8")
    return folder


@contextmanager
def empty_figures() -> Iterator[None]:
    """Figures are made, but not drawn, which is half of the time of a page."""

    def savefig(figure: Figure, file: TextIO, **_: object) -> None:
        file.write('<svg viewBox="0 0 1 1"></svg>')

    with patch.object(Figure, "savefig", savefig):
        yield


def run(folder: Path, *overrides: str) -> list[str]:
    """Run ``toy.yaml`` into ``runs/toy``, with a page of empty figures; the stages that were made, not skipped."""
    with empty_figures():
        execute(load_config(folder / "toy.yaml", list(overrides)), base=folder, runs=folder / "runs")
    stages = json.loads((folder / "runs" / "toy" / "stages.json").read_text(encoding="utf-8"))["stages"]
    return [name for name, entry in stages.items() if not entry["skipped"]]
