"""A benchmark, run: corpora, cells in processes or by several jobs, and the file of results they make together."""

from __future__ import annotations

import logging
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from truesource.generator.computing import current
from truesource.generator.objectives import OBJECTIVES
from truesource.grammar.support.atomic_files import write_json
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import real_path
from truesource.grammar.support.locks import exclusive
from truesource.grammar.support.parallel import Share, Workers
from truesource.grammar.support.records import holds
from truesource.lmtrain.own.settings import OwnSettings
from truesource.run.tasks import Failure, refuse_foreign
from truesource.studies.benchmark.cells import SuiteCell, SuiteCells, planned_cells, read_cell, read_truth
from truesource.studies.benchmark.results import (
    FORMAT,
    FORMAT_VERSION,
    BenchmarkModel,
    BenchmarkResults,
    LanguageRecord,
)
from truesource.studies.benchmark.suite import Candidate, Suite
from truesource.studies.benchmark.truth import corpus_folder, corpus_of, make_corpora, require_corpora

log = logging.getLogger("truesource")

PACKAGES = ("numpy", "numba", "torch", "transformers", "tokenizers")
SUITE_FILE = "suite.json"


@dataclass(frozen=True)
class Selection:
    """The cells of a suite that a call asks for."""

    suite: Suite
    candidates: Sequence[Candidate]
    languages: Sequence[str]  #: names in the suite
    seeds: Sequence[int]

    @classmethod
    def of(
        cls,
        suite: Suite,
        candidates: Sequence[Candidate],
        languages: Sequence[str] | None = None,
        seeds: Sequence[int] | None = None,
    ) -> Selection:
        """Select cells of a suite; without names, all its languages and seeds.

        Raises:
            InputError: the suite has no such language or seed.
        """
        for what, named, there in (
            ("language", languages, list(suite.languages)),
            ("seed", seeds, suite.training.seeds),
        ):
            unknown = [each for each in named or [] if each not in there]
            if unknown:
                raise InputError(
                    f"suite {suite.label} has no {what} {unknown[0]}; it has {', '.join(map(str, there))}",
                    code=f"unknown-{what}",
                )
        return cls(suite, candidates, list(languages or suite.languages), list(seeds or suite.training.seeds))


@dataclass(frozen=True)
class Outcome:
    """The results of a call."""

    results: BenchmarkResults
    failures: Sequence[Failure[SuiteCell]]  #: cells that cannot be made
    missing: Sequence[SuiteCell]  #: missing cells: failed ones, and cells of other jobs


def execute(selection: Selection, folder: Path, *, workers: Workers, share: Share) -> Outcome:
    """Make a job's share of the selected cells; finished cells are kept, a begun training resumes.

    Args:
        selection: cells.
        folder: of the results.
        workers: processes that train and measure.
        share: the part of the cells that this job makes.

    Raises:
        InputError: the folder holds another suite or something else; settings of a model are wrong.
    """
    folder = real_path(folder)
    cells = planned_cells(selection.suite, selection.candidates, selection.languages, selection.seeds)
    _try_out(cells)
    languages = list(dict.fromkeys(cell.language for number, cell in enumerate(cells) if share.owns(number)))
    for name in languages:
        require_corpora(selection.suite, name, folder)
    _claim(selection.suite, folder)
    for name in languages:
        make_corpora(selection.suite, name, folder, workers)
    suite_cells = SuiteCells(selection.suite, folder, current().device)  # workers do not know it
    failures = suite_cells.make_all(cells, share, workers=workers, wait=True)
    missing = [cell for cell in cells if read_cell(folder, cell) is None]
    return Outcome(collected(selection, cells, folder), failures, missing)


def sample(selection: Selection, folder: Path, *, workers: Workers) -> list[Path]:
    """Make the corpora of the selected languages, keeping existing ones; return their folders.

    Raises:
        InputError: the folder holds another suite or something else.
    """
    _claim(selection.suite, folder)
    for name in selection.languages:
        make_corpora(selection.suite, name, folder, workers)
    return [corpus_folder(folder, name) for name in selection.languages]


def _try_out(cells: Sequence[SuiteCell]) -> None:
    """Build small networks of custom code, before anything is sampled or trained."""
    shapes = {cell.candidate.name: cell.shape for cell in cells if isinstance(cell.shape, OwnSettings)}
    if shapes:
        from truesource.lmtrain.own.architecture import try_out

        for shape in shapes.values():
            try_out(shape)


def _claim(suite: Suite, folder: Path) -> None:
    """Make the folder the one of this suite.

    Raises:
        InputError: it holds another suite, or something else.
    """
    record = {"name": suite.name, "version": suite.version, "digest": suite.digest}
    path = folder / SUITE_FILE
    with exclusive(folder, wait=True):
        if path.is_file():
            if not holds(path, record):
                raise InputError(
                    f"this folder holds results of another suite than {suite.label}; name another with -o",
                    folder,
                    code="other-suite",
                )
            return
        refuse_foreign(folder, SUITE_FILE, "this is no folder of results of a benchmark; name another with -o")
        write_json(path, record)


def collected(selection: Selection, cells: Sequence[SuiteCell], folder: Path) -> BenchmarkResults:
    """Return the finished cells as a file of results.

    Raises:
        InputError: a record is damaged.
    """
    records = [(cell, record) for cell in cells if (record := read_cell(folder, cell)) is not None]
    models: dict[tuple[str, str], BenchmarkModel] = {}
    for cell, record in records:
        model = models.setdefault(
            (cell.candidate.name, cell.objective),
            {
                "name": cell.candidate.name,
                "objective": cell.objective,
                "architecture": cell.candidate.architecture,
                "settings": cell.candidate.settings,
                "parameters": {},
                "cells": [],
            },
        )
        model["cells"].append(record["measured"])
        if record["parameters"] is not None:
            model["parameters"][cell.language] = record["parameters"]
    measured = {cell.language for cell, _ in records}
    return {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "suite": {"name": selection.suite.name, "version": selection.suite.version, "digest": selection.suite.digest},
        "truesource": version("truesource"),
        "languages": {
            name: _language(selection.suite, name, folder) for name in selection.suite.languages if name in measured
        },
        "models": list(models.values()),
        "provenance": made_with(),
    }


def _language(suite: Suite, name: str, folder: Path) -> LanguageRecord:
    corpus = corpus_of(folder, name)
    truths = {kind: truth for kind in OBJECTIVES if (truth := read_truth(folder, name, kind)) is not None}
    return {
        "language": suite.languages[name].language,
        "words": next(iter(truths.values()))["words"],
        "train_sentences": corpus.n_sentences("train"),
        "train_tokens": corpus.n_tokens("train") + corpus.n_sentences("train"),
        "truth": {kind: {"test": truth["test"], "longer": truth["longer"]} for kind, truth in truths.items()},
    }


def made_with() -> dict[str, object]:
    """Return the versions and the machine, without times: the same call on the same machine writes the same file."""
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "processor": platform.machine(),
        "packages": {name: version(name) for name in PACKAGES},
    }
