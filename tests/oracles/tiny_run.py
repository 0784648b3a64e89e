"""A run of a few tiny models, made by `truesource run`, in a folder with its configuration."""

from __future__ import annotations

import json
from pathlib import Path

from truesource.experiment import execute, load_config

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


def run(folder: Path, *overrides: str) -> list[str]:
    """Run ``toy.yaml`` into ``runs/toy``; the stages that were made, not skipped."""
    execute(load_config(folder / "toy.yaml", list(overrides)), base=folder, runs=folder / "runs")
    stages = json.loads((folder / "runs" / "toy" / "stages.json").read_text(encoding="utf-8"))["stages"]
    return [name for name, entry in stages.items() if not entry["skipped"]]
