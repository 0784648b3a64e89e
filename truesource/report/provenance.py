"""What the last section shows: the files of the run, and what to cite."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import quote

from truesource.cli.works import bibtex, topics_of
from truesource.report.finished_run import COMPARISON, FinishedRun

#: of a run, and what stands in them; a star is the name of each model
FILES = (
    ("results.json", "every model against its bound"),
    (COMPARISON, "means over seeds, and paired differences"),
    ("config.json", "the resolved configuration"),
    ("provenance.json", "versions, machine and command"),
    ("stages.json", "what each stage depended on and made"),
    ("grammar/grammar.npz", "the grammar, which is the truth"),
    ("corpus/README.md", "the corpus"),
    ("scores/*.parquet", "ln Q and ln P of every token"),
    ("next_words/*.parquet", "the most likely words of truth and model in the first sentences"),
    ("models/*", "the trained model"),
)


def files_and_works(run: FinishedRun) -> dict[str, Any]:
    """Links, relative to the page, to the files that are there; and BibTeX entries of what the run has used."""
    names = [*run.names, "oracle-causal", "oracle-masked"]
    found = []
    for pattern, what in FILES:
        for name in [pattern.replace("*", each) for each in names] if "*" in pattern else [pattern]:
            path = run.path / name
            if path.exists():
                shown = f"{name}/" if path.is_dir() else name
                found.append((shown, quote(shown), what))
    return {"files": found, "bibtex": _bibtex(run)}


def _bibtex(run: FinishedRun) -> str:
    language = run.pcfg.meta.get("language")
    name = run.pcfg.identity.removeprefix("changed ").partition(":")[0]
    sources = {} if language is None else {name: str(language["citation"])}
    return bibtex(topics_of(Path(run.path), run.pcfg.meta), sources, version("truesource"))
