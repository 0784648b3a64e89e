"""Estimators run over documents."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from truesource.evaluation.core.signature import digest_sentences
from truesource.evaluation.tokenisation.documents import Documents
from truesource.evaluation.tokenisation.estimators.estimate import Document, Estimate
from truesource.evaluation.tokenisation.estimators.exact import TooManyContextsError
from truesource.evaluation.tokenisation.estimators.registry import ESTIMATORS, ONE_BEST
from truesource.evaluation.tokenisation.results import Evaluation, LeftOut
from truesource.evaluation.tokenisation.settings import EstimatorRun, EstimatorSettings
from truesource.evaluation.tokenisation.window import check_window, every_segmentation_fits, window_part
from truesource.generator.language_model import TokenisedModel
from truesource.grammar.support.errors import InputError, NothingToMeasureError
from truesource.grammar.support.printable import meter

UNLIKELY = "the model gives probability zero to all segmentations seen"
NONE_FITS = "all segmentations seen have more tokens than the {longest} that the model reads, or probability zero"


def evaluate_documents(
    model: TokenisedModel,
    documents: Documents,
    estimators: Sequence[str],
    settings: EstimatorSettings,
) -> Evaluation:
    """Run some estimators with the same settings; the labels of the runs are their names.

    Arguments and errors are those of `evaluate_runs`.
    """
    return evaluate_runs(model, documents, {name: EstimatorRun(name, settings) for name in estimators})


def evaluate_runs(model: TokenisedModel, documents: Documents, runs: Mapping[str, EstimatorRun]) -> Evaluation:
    """Run estimators over documents, and T* besides.

    Every document has a seed of its own, made from that of the run and the document's number, so that the errors of
    documents are independent. A document to which some run gives probability zero, or which is too large for exact
    enumeration, is left out of all runs, with the reason: totals of different runs are over the same documents.

    Args:
        model: whose P is summed.
        documents: as `evaluation.tokenisation.documents.documents` reads them. Those whose canonical tokenisation is
            too long for the model are refused; `evaluation.tokenisation.documents.fitting` sets them aside. Where other
            segmentations are too long, the sum is over those that fit (`truesource.evaluation.tokenisation.window`).
        runs: by label; ``one-best`` is added.

    Raises:
        InputError: an estimator is unknown or refuses its settings, the canonical tokenisation of a text is longer than
            the model takes (before anything is scored), or no document is left.
    """
    runs = {ONE_BEST: EstimatorRun(ONE_BEST), **{label: run for label, run in runs.items() if label != ONE_BEST}}
    _check(runs)
    check_windows(model, documents)
    kept: list[int] = []
    estimates: dict[str, list[Estimate]] = {label: [] for label in runs}
    left_out = _set_aside(model, documents)
    with meter(f"summing over segmentations with {model.name}", total=len(documents)) as progress:
        for i, (number, document) in enumerate(zip(documents.numbers, documents.documents, strict=True)):
            with numbered(number):
                found = _estimates(model, document, number, runs)
            if isinstance(found, str):
                left_out.append(LeftOut(number, found))
            else:
                kept.append(i)
                for label, estimate in found.items():
                    estimates[label].append(estimate)
            progress.advance()
    left_out.sort(key=lambda text: text.number)
    if not kept:
        raise NothingToMeasureError(
            f"no document is left to evaluate: all {len(left_out)} are left out, the first because"
            f" {left_out[0].reason}",
            "no-document",
        )
    evaluated = tuple(documents.documents[i] for i in kept)
    return Evaluation(
        model=model.name,
        documents=evaluated,
        numbers=np.array([documents.numbers[i] for i in kept], dtype=np.int64),
        runs=runs,
        estimates={label: tuple(found) for label, found in estimates.items()},
        left_out=tuple(left_out),
        parts=_signed_parts(model, documents, evaluated, len(left_out)),
        end=bool(model.around[1]),
    )


def _signed_parts(
    model: TokenisedModel, documents: Documents, evaluated: Sequence[Document], left_out: int
) -> dict[str, object]:
    return {
        "model": model.name,
        **({} if model.chosen_before is None else {"before": model.chosen_before}),
        "eos": "in" if model.around[1] else "out",
        "documents": len(evaluated),
        "left-out": left_out,
        "altered": sum(document.text.altered for document in evaluated),
        "pieces": model.pieces.inventory.part,
        **window_part(model, evaluated),
        "q-scores": digest_scores(documents.documents),
        "data": digest_sentences([[document.text.original] for document in documents.documents]),
    }


def check_windows(model: TokenisedModel, documents: Documents) -> None:
    """Refuse documents whose canonical tokenisation the model cannot read.

    Raises:
        InputError: it is longer than the model's window; the message says which document.
    """
    for number, document in zip(documents.numbers, documents.documents, strict=True):
        with numbered(number):
            check_window(model, document)


def _set_aside(model: TokenisedModel, documents: Documents) -> list[LeftOut]:
    """The texts that no estimator can be run on."""
    long = f"the canonical tokenisation has more tokens than the {model.longest} that the model reads"
    found = [LeftOut(number, long) for number in documents.too_long]
    for text in documents.unreadable:
        found.append(LeftOut(text.number, f"no piece spells {', '.join(text.parts)}", unreadable=True))
    return found


def _check(runs: Mapping[str, EstimatorRun]) -> None:
    """Whether there are such estimators, and they have as many samples as they need."""
    for run in runs.values():
        if run.estimator not in ESTIMATORS:
            raise InputError(f"no estimator is called {run.estimator!r}; there are {', '.join(ESTIMATORS)}")
        fewest = ESTIMATORS[run.estimator].fewest
        if run.settings.samples < fewest:
            raise InputError(f"{run.estimator} needs at least {fewest} samples, got {run.settings.samples}")


@contextmanager
def numbered(number: int) -> Iterator[None]:
    """Say which text an error is about, counted from 1."""
    try:
        yield
    except InputError as error:
        raise InputError(f"text {number + 1}: {error}") from error


def _estimates(
    model: TokenisedModel, document: Document, number: int, runs: Mapping[str, EstimatorRun]
) -> dict[str, Estimate] | str:
    """What each run finds for one document, or why it is left out."""
    found = {}
    for label, run in runs.items():
        settings = replace(run.settings, seed=seed_of(run.settings.seed, number))
        try:
            found[label] = ESTIMATORS[run.estimator].run(model, document, settings)
        except TooManyContextsError as error:
            return f"{run.estimator}: {error}"
        if not math.isfinite(found[label].log_p):
            fit = every_segmentation_fits(model, document)
            return f"{run.estimator}: {UNLIKELY if fit else NONE_FITS.format(longest=model.longest)}"
    return found


def seed_of(seed: int, number: int) -> int:
    """Seed of one document, from that of the run and the document's number."""
    return int(np.random.SeedSequence([seed, number]).generate_state(1, np.uint32)[0])


def digest_scores(documents: Sequence[Document]) -> str:
    """Of the scores on the arcs, which say what Q is."""
    sha = hashlib.sha256()
    for document in documents:
        sha.update(np.ascontiguousarray(document.lattice.score).tobytes())
    return sha.hexdigest()[:8]
