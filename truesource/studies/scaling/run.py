"""A sweep from its configuration: corpus, tokeniser, cells, scores."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from truesource.grammar.support.atomic_files import remove_leftovers_in, write_json
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import expand_user
from truesource.grammar.support.locks import exclusive
from truesource.grammar.support.parallel import Share, Workers
from truesource.lmtrain.device import computing
from truesource.lmtrain.model_registry import with_code
from truesource.run.named_grammar import grammar_at
from truesource.run.tasks import Failure, refuse_foreign
from truesource.studies.scaling.cells import SweepCells
from truesource.studies.scaling.config import EmbeddedGrammar, SweepConfig
from truesource.studies.scaling.plan import Data, PlannedCell

if TYPE_CHECKING:
    from truesource.generator.corpus import Corpus
    from truesource.grammar.truth import Truth


def execute(
    config: SweepConfig, truth: Truth, *, base: Path, runs: Path, share: Share
) -> tuple[Path, list[Path], list[Failure[PlannedCell]]]:
    """Train and score a job's share of the cells of a sweep in ``runs/<name>``; what is finished is kept.

    After Ctrl-C or a kill the same call resumes, within a cell from its last checkpoint. Several processes may be at
    work in one folder: no two take the same cell.

    Args:
        config: the sweep.
        truth: its grammar or process, from `truth_of`.
        base: folder that relative paths of the configuration start from.
        runs: folder of all runs.
        share: the part of the cells that this job makes.

    Returns:
        The folder of the sweep, folders of cells in it that belong to other configurations, and cells that failed.

    Raises:
        InputError: the folder holds something else, or the corpus is too small.
    """
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise InputError("a cell of a sweep is trained in one process; without torchrun, share them out with --shard")
    folder = runs / config.name
    message = "this exists and is not a sweep; choose another name in the configuration"
    refuse_foreign(folder, "sweep.json", message, allowed=("corpus",))
    for _, shape, _ in config.shapes():
        with_code(shape, base)  # before anything is sampled
    corpus = _corpus(config, base, folder, truth)
    data = Data(config, corpus, base)
    sweep = SweepCells(folder, config, truth, corpus, data)
    cells = data.cells()
    record = {
        "title": config.title or config.name,
        "seed": config.seed,
        "replicates": config.evaluation.replicates,
        "evaluation": sweep.digest,
        "cells": {cell.id: cell.shape for cell in cells},
        **({"lines": sweep.lines()} if config.evaluation.lines else {}),
    }
    with exclusive(folder, wait=True):  # several jobs write the same
        remove_leftovers_in(folder, deep=False)
        write_json(folder / "config.json", config.model_dump(mode="json"))
        write_json(folder / "sweep.json", record)

    with computing(config.device, threads=config.threads):
        failures = sweep.make_all(cells, share)
    return folder, sweep.strangers(cells), failures


def truth_of(config: SweepConfig, base: Path) -> Truth:
    """Return the grammar or process that a configuration names, relative to ``base``."""
    from truesource.grammar.embedded import english
    from truesource.grammar.truth import load_truth

    if isinstance(config.grammar, EmbeddedGrammar):
        return english()
    return load_truth(grammar_at(config.grammar, lambda name: str(_resolve(name, base))))


def corpus_folder(config: SweepConfig, base: Path) -> Path | None:
    """Return the corpus folder that a configuration names, relative to ``base``; None: it is sampled."""
    return _resolve(config.corpus, base) if isinstance(config.corpus, str) else None


def _resolve(name: str, base: Path) -> Path:
    return base / expand_user(os.path.expandvars(name))


def _corpus(config: SweepConfig, base: Path, folder: Path, truth: Truth) -> Corpus:
    """Return the corpus of the configuration: read, or sampled into the folder of the sweep."""
    from truesource.generator.corpus import Corpus

    if isinstance(config.corpus, str):
        return Corpus.load(_resolve(config.corpus, base))
    from truesource.generator.corpus_builder import make_corpus
    from truesource.grammar.diagnostics import require_consistent

    require_consistent(truth)
    sampled = config.corpus
    with exclusive(folder / "corpus", wait=True):  # of several jobs that start together, the first samples
        make_corpus(
            truth,
            sampled.plan(config.seed),
            folder / "corpus",
            workers=Workers(sampled.workers),
            share=Share(),
            force=True,
            exact_correction=True,
        )
    return Corpus.load(folder / "corpus")
