"""A file of results: measurements of models on the languages of a suite, from which all tables are made.

The baselines of truesource, the results of a benchmark and submissions of others are such files.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, with_config
from typing_extensions import TypedDict

from truesource.generator.objectives import Objective
from truesource.grammar.support.atomic_files import write_text
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import round_floats
from truesource.grammar.support.records import STRICT, Count, Positive, Probability, read_record
from truesource.grammar.truth import process_at

FORMAT: Literal["truesource-benchmark"] = "truesource-benchmark"
FORMAT_VERSION: Literal[1] = 1

#: the best predictors that see so many words before a token, and no more
WINDOWS = {"window-1": 1, "window-2": 2}
#: architectures that need no training: the ends of the scale, and marks on it
REFERENCES = {
    "oracle": "the truth",
    "unigram": "word frequencies",
    "window-1": "the best that a predictor can do that sees one word",
    "window-2": "the best that a predictor can do that sees two words",
}


def has_truth(language: str, objective: Objective) -> bool:
    """Return True if there is a truth for models of an objective; of processes there is one for causal models alone."""
    return objective == "causal" or process_at(language) is None


Nats = Annotated[float, Field(ge=-1e-9)]


@with_config(STRICT)
class SuiteRecord(TypedDict):
    """The suite of a file of results."""

    name: str
    version: Positive
    digest: str  #: `truesource.studies.benchmark.suite.Suite.digest`


@with_config(STRICT)
class TruthContexts(TypedDict):
    """The contexts of some test strings, in blocks: string i of the split is in block i modulo their number."""

    contexts: list[Count]  #: (B,) number of contexts
    #: (B,) nats: sum over contexts of the exact KL from the truth to its word frequencies, so of what the context says
    information: list[Nats]
    entropy: Nats  #: of the truth, nats, mean over contexts
    impossible: Probability  #: share of the vocabulary that is impossible there, mean over contexts


@with_config(STRICT)
class TruthRecord(TypedDict):
    """The quantities of the truth that models of one objective can learn."""

    test: TruthContexts
    longer: (
        TruthContexts | None
    )  #: positions beyond the longest string of training; None: the language has no such strings


@with_config(STRICT)
class LanguageRecord(TypedDict):
    """A language of the suite."""

    language: str  #: reference
    words: Positive  #: that are told apart
    train_sentences: Positive
    train_tokens: Positive  #: ends included
    truth: dict[Objective, TruthRecord]


@with_config(STRICT)
class Divergences(TypedDict):
    """A model in the contexts of the `TruthContexts` of its language."""

    kl: list[Nats]  #: (B,) nats: sum over contexts of the exact KL(truth || model)
    wrong: Probability  #: probability given to what cannot follow, mean over contexts


@with_config(STRICT)
class BenchmarkCell(TypedDict):
    """One model of one training seed on one language."""

    language: str
    seed: Count
    test: Divergences
    #: None: the language has no longer strings, or ``longer_refused`` says why the model reads none
    longer: Divergences | None
    longer_refused: str | None
    calibration: Probability  #: expected calibration error over all events, 0 to 1
    curve: list[tuple[Count, Nats]]  #: training tokens seen, KL in nats a token on strings of the split dev
    steps: Count  #: 0: the model counts
    tokens: Count  #: seen in training
    flops: Count | None  #: of the training; None: not counted


@with_config(STRICT)
class BenchmarkModel(TypedDict):
    """A model: one architecture with its settings."""

    name: str
    objective: Objective
    architecture: str  #: name, or reference to custom code
    settings: dict[str, object]  #: what was chosen: keys ``model`` and ``training``
    parameters: dict[str, Count]  #: by language, without word and position vectors
    cells: list[BenchmarkCell]


@with_config(STRICT)
class BenchmarkResults(TypedDict):
    """A whole file."""

    format: Literal["truesource-benchmark"]
    version: Literal[1]
    suite: SuiteRecord
    truesource: str  #: version
    languages: dict[str, LanguageRecord]
    models: list[BenchmarkModel]
    provenance: dict[str, object]  #: versions and machine, see `truesource.studies.benchmark.run.made_with`


def read_results(path: Path) -> BenchmarkResults:
    """Read a file of results.

    Raises:
        InputError: it cannot be read, has another format, or holds cells of other languages or blocks that do not fit.
    """
    results = read_record(
        path, BenchmarkResults, what="this file of results", remedy="run truesource benchmark to write a new one"
    )
    for model in results["models"]:
        for cell in model["cells"]:
            _check_cell(results, model, cell, path)
    return results


def _check_cell(results: BenchmarkResults, model: BenchmarkModel, cell: BenchmarkCell, path: Path) -> None:
    where = f"model {model['name']!r}, language {cell['language']!r}"
    truth = results["languages"].get(cell["language"], {"truth": {}})["truth"].get(model["objective"])
    if truth is None:
        raise InputError(f"{where}: the file has no truth about this language for {model['objective']} models", path)
    for part in ("test", "longer"):
        measured, there = cell[part], truth[part]
        if measured is not None and (there is None or len(measured["kl"]) != len(there["contexts"])):
            raise InputError(f"{where}: the sums of {part} strings do not fit the blocks of the truth", path)


def write_results(path: Path, results: BenchmarkResults) -> None:
    """Write a file of results, completely or not at all; a line for each language and each cell."""
    write_text(path, _text(results))


def _text(results: BenchmarkResults) -> str:
    """Return results as JSON, with numbers as `round_floats` leaves them."""
    head = _line({key: value for key, value in results.items() if key not in ("languages", "models")})
    languages = [f"{json.dumps(name)}: {_line(record)}" for name, record in results["languages"].items()]
    models = []
    for model in results["models"]:
        fields = _line({key: value for key, value in model.items() if key != "cells"})
        models.append(fields[:-1] + ', "cells": [' + _lines(map(_line, model["cells"]), 2) + "]}")
    return f'{head[:-1]},\n"languages": {{{_lines(languages, 1)}}},\n"models": [{_lines(models, 1)}]}}\n'


def _line(value: object) -> str:
    return json.dumps(round_floats(value), allow_nan=False, ensure_ascii=False)


def _lines(parts: Iterable[str], indent: int) -> str:
    """Return parts of an array or object, a line each."""
    start = "\n" + " " * indent
    return start + f",{start}".join(parts) + "\n" + " " * (indent - 1)
