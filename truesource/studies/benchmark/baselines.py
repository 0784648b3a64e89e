"""Baselines of a suite: results that come with it, joined with results of a model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import data_folder
from truesource.studies.benchmark.results import (
    BenchmarkModel,
    BenchmarkResults,
    LanguageRecord,
    TruthContexts,
    read_results,
)
from truesource.studies.benchmark.suite import FOLDER, Suite

TOLERANCE = 1e-6  #: largest relative difference of the truth in two files


def baselines_file(suite: Suite) -> Path:
    """Return the path of the baselines of a suite that come with truesource."""
    return data_folder() / FOLDER / f"baselines-{suite.label}.json"


def baselines(suite: Suite) -> BenchmarkResults | None:
    """Return the baselines of a suite; None: none come with truesource."""
    path = baselines_file(suite)
    return read_for(suite, path) if path.is_file() else None


def read_for(suite: Suite, path: Path) -> BenchmarkResults:
    """Return a file of results of a suite.

    Raises:
        InputError: it cannot be read, or is of another suite or version.
    """
    results = read_results(path)
    if results["suite"]["digest"] != suite.digest:
        other = f"{results['suite']['name']}-v{results['suite']['version']} ({results['suite']['digest']})"
        raise InputError(
            f"these are results of suite {other}, not of {suite.label} ({suite.digest}); results of different suites"
            " do not compare; give their suite with --suite",
            path,
            code="other-suite",
        )
    return results


def joined(first: BenchmarkResults, others: Iterable[tuple[str, BenchmarkResults]]) -> BenchmarkResults:
    """Join several results of one suite; models of the first results keep their names.

    Args:
        first: results.
        others: a mark and results; the mark is added in brackets to the name of a model that an earlier one has.

    Raises:
        InputError: two of them know different truths about a language (code ``other-truth``).
    """
    languages, models = dict(first["languages"]), list(first["models"])
    for mark, results in others:
        for name, language in results["languages"].items():
            languages[name] = _same_truth(name, languages[name], language) if name in languages else language
        for model in results["models"]:
            models.append(_renamed(model, models, mark))
    return {**first, "languages": languages, "models": models}


def with_baselines(
    suite: Suite, own: BenchmarkResults | None, files: Sequence[Path]
) -> tuple[BenchmarkResults, list[str]]:
    """Join the baselines of a suite, own results and results of files; also return the new names of own models.

    Raises:
        InputError: there is nothing to show; a file cannot be read, or is of another suite or another truth.
    """
    shipped = baselines(suite)
    parts = [] if shipped is None else [("baseline", shipped)]
    first = sum(len(results["models"]) for _, results in parts)
    parts += [] if own is None else [("yours", own)]
    parts += [(path.stem, read_for(suite, path)) for path in files]
    if not parts:
        raise InputError(
            f"no baselines of suite {suite.label} come with truesource; name a model with --model", code="no-results"
        )
    all_results = joined(parts[0][1], parts[1:])
    mine = [] if own is None else all_results["models"][first : first + len(own["models"])]
    return all_results, [model["name"] for model in mine]


def _renamed(model: BenchmarkModel, models: Sequence[BenchmarkModel], mark: str) -> BenchmarkModel:
    taken = {(each["name"], each["objective"]) for each in models}
    name, number = model["name"], 1
    while (name, model["objective"]) in taken:
        name = f"{model['name']} ({mark})" if number == 1 else f"{model['name']} ({mark} {number})"
        number += 1
    return {**model, "name": name}


def _same_truth(name: str, one: LanguageRecord, other: LanguageRecord) -> LanguageRecord:
    """Merge two records of the truth about a language.

    Raises:
        InputError: they differ.
    """
    for objective in one["truth"].keys() & other["truth"].keys():
        pairs = [(one["truth"][objective][part], other["truth"][objective][part]) for part in ("test", "longer")]
        if not all(_agree(*pair) for pair in pairs):
            raise InputError(
                f"two files of results have different truths about {name}, so they do not compare; measure one of them"
                " again",
                code="other-truth",
            )
    return {**one, "truth": {**other["truth"], **one["truth"]}}


def _agree(one: TruthContexts | None, other: TruthContexts | None) -> bool:
    if one is None or other is None:
        return one is other
    return one["contexts"] == other["contexts"] and bool(
        np.allclose(one["information"], other["information"], rtol=TOLERANCE, atol=0.0)
    )
