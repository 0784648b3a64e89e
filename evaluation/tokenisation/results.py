"""Runs of estimators over documents, their results and totals, and pooled sets of documents."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np

from truesource.evaluation.core.score import Score
from truesource.evaluation.core.signature import digest_sentences, signature
from truesource.evaluation.measures.bootstrap import ends, resampled_ratios
from truesource.evaluation.tokenisation import EstimatorRun, EstimatorSettings
from truesource.evaluation.tokenisation.documents import (
    Bound,
    Document,
    Documents,
    Estimate,
    check_window,
    degrees_of,
    every_segmentation_fits,
    log_interval,
    window_part,
)
from truesource.evaluation.tokenisation.estimators.exact import TooManyContextsError
from truesource.evaluation.tokenisation.estimators.registry import ESTIMATORS, ONE_BEST, check_estimator
from truesource.generator.piece_model import TokenisedModel
from truesource.grammar.support.arrays import FloatArray, IntArray
from truesource.grammar.support.errors import InputError, NothingToMeasureError
from truesource.grammar.support.printable import ResultRecords, meter
from truesource.grammar.support.room import require_items

#: usual relative rounding error of log P in single precision (networks) and double precision
SINGLE, DOUBLE = 1e-7, 1e-14
UNLIKELY = "the model gives probability zero to all segmentations seen"
NONE_FITS = "all segmentations seen have more tokens than the {longest} that the model reads, or probability zero"


@dataclass(frozen=True)
class LeftOut:
    """A text that is excluded from all sums."""

    number: int  #: number of the text in the input, from 0
    reason: str
    unreadable: bool = False  #: True if it has characters that no piece spells


@dataclass(frozen=True, kw_only=True)
class Total:
    """The sums of one run over all documents that count; documents are independent, so variances add."""

    estimator: str
    log_p: float  #: sum of the estimates of log P(D), nats
    bound: Bound  #: ``part`` also for a mixture of lower bounds and unbiased estimates
    standard_error: float | None  #: standard error of ``log_p``, nats; 0 if exact; None if a document has no error bar
    degrees: float  #: degrees of freedom of the standard error (Satterthwaite 1946); may be infinite
    low: float | None  #: lower end of the 95% interval of the sum of log P(D), nats; None without an error bar
    high: float | None  #: upper end of the interval
    shortfall: float | None  #: approximate downward bias of logarithms of unbiased estimates: half the variance, nats
    log_lower: float  #: certainly at most the sum of log P(D), nats
    log_upper: float | None  #: certainly at least the sum of log P(D), nats; None: unknown
    steps: int  #: token-steps of the model
    steps_per_piece: float  #: token-steps over the pieces of T*
    least_ess: float | None  #: the smallest effective sample size of a document
    largest_share: float | None  #: the largest share of one weight in a document
    cuts: int  #: distinct segmentations (or prefixes) scored
    rounding: float  #: approximate rounding error of ``log_p``, documents independent, nats


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Evaluation(ResultRecords):
    """The estimates of one model for N documents, by run. All runs count the same documents."""

    model: str
    documents: tuple[Document, ...]  #: (N,) documents with a finite value in every run
    numbers: IntArray  #: (N,) numbers of the documents in the input, from 0, ascending
    runs: Mapping[str, EstimatorRun]  #: runs by label; ``one-best`` is the first
    estimates: Mapping[str, tuple[Estimate, ...]]  #: estimates by label, (N,) each
    left_out: tuple[LeftOut, ...]
    parts: Mapping[str, object]  #: parts of every signature
    end: bool  #: True if P includes the end of the text
    rounding: float = SINGLE  #: usual relative rounding error of log P(D)

    def log_p(self, label: str) -> FloatArray:
        """Return the estimates of log P(D), (N,) nats."""
        return np.array([estimate.log_p for estimate in self.estimates[label]])

    @property
    def one_best(self) -> FloatArray:
        """Log P(T*) of each document, (N,) nats."""
        return self.log_p(ONE_BEST)

    @property
    def pieces(self) -> FloatArray:
        """Number of pieces of T*, (N,)."""
        return np.array([len(document.best) for document in self.documents], dtype=np.float64)

    @property
    def words(self) -> FloatArray:
        """Number of words between white space in the original texts, (N,)."""
        return np.array([document.text.n_words for document in self.documents], dtype=np.float64)

    @property
    def characters(self) -> FloatArray:
        """Number of Unicode code points of the original texts, (N,)."""
        return np.array([len(document.text.original) for document in self.documents], dtype=np.float64)

    @property
    def n_bytes(self) -> FloatArray:
        """Number of UTF-8 bytes of the original texts, (N,)."""
        return np.array([len(document.text.original.encode()) for document in self.documents], dtype=np.float64)

    def total(self, label: str) -> Total:
        """Sum over the documents."""
        estimates = self.estimates[label]
        errors = [estimate.variance for estimate in estimates]
        finite_errors = [error for error in errors if error is not None]
        variance = math.fsum(finite_errors) if len(finite_errors) == len(estimates) else None
        degrees = degrees_of(estimates)
        log_p, bound = (
            math.fsum(estimate.log_p for estimate in estimates),
            _bound({estimate.bound for estimate in estimates}),
        )
        low, high = None, None
        if variance is not None and bound in ("exact", "unbiased"):
            low, high = log_interval(log_p, variance, degrees)
        sizes = [estimate.ess for estimate in estimates if estimate.ess is not None]
        shares = [estimate.max_share for estimate in estimates if estimate.max_share is not None]
        uppers = [estimate.log_upper for estimate in estimates]
        steps = sum(estimate.steps for estimate in estimates)
        return Total(
            estimator=self.runs[label].estimator,
            log_p=log_p,
            bound=bound,
            standard_error=None if variance is None else math.sqrt(variance),
            degrees=degrees,
            low=low,
            high=high,
            shortfall=None if variance is None else variance / 2.0,
            log_lower=math.fsum(estimate.log_lower for estimate in estimates),
            log_upper=None if None in uppers else math.fsum(upper for upper in uppers if upper is not None),
            steps=steps,
            steps_per_piece=steps / float(self.pieces.sum()),
            least_ess=min(sizes, default=None),
            largest_share=max(shares, default=None),
            cuts=sum(estimate.cuts for estimate in estimates),
            rounding=self.rounding * math.hypot(*(estimate.log_p for estimate in estimates)),
        )

    def signed(self, label: str, **more: object) -> str:
        """Build the signature of a value of one run: every choice that could change it, and ``more`` for this value."""
        run = self.runs[label]
        estimator_parts: dict[str, object] = {"estimator": run.estimator, "sum": summed(run.estimator)}
        return signature(
            {
                **estimator_parts,
                **{key: getattr(run.settings, key) for key in ESTIMATORS[run.estimator].reads},
                **self.parts,
                **more,
            }
        )

    def scores(self) -> dict[str, list[Score]]:
        """Return scores by label: the parts of `Total`, and how many documents count and are excluded."""
        scores: dict[str, list[Score]] = {}
        for label in self.runs:
            total = self.total(label)
            sums = ("log_p", "standard_error", "shortfall", "rounding", "log_lower", "log_upper")
            values = {name: (getattr(total, name), "nats") for name in sums}
            values |= {"steps": (total.steps, "token-steps"), "steps_per_piece": (total.steps_per_piece, "token-steps")}
            values |= {"least_ess": (total.least_ess, "samples"), "largest_share": (total.largest_share, "share")}
            values |= {"cuts": (total.cuts, "cuts"), "documents": (len(self.documents), "documents")}
            values |= {"left_out": (len(self.left_out), "documents")}
            scores[label] = [
                Score(name, float(value), self.signed(label, bound=total.bound, unit=unit))
                for name, (value, unit) in values.items()
                if value is not None and math.isfinite(value)
            ]
            if total.low is not None:
                signed = self.signed(label, bound=total.bound, unit="nats", ci="filters-t95")
                scores[label][0] = Score("log_p", total.log_p, signed, total.low, total.high)
        return scores

    def rows(self) -> list[dict[str, object]]:
        """Return a row for each document and run: fields of `Estimate`, and the number of the document."""
        numbered_documents = enumerate(zip(self.numbers.tolist(), self.documents, strict=True))
        return [
            {
                "model": self.model,
                "document": number,
                "run": label,
                "words": document.text.n_words,
                "pieces": len(document.best),
                "altered": document.text.altered,
                **{key: _plain(value) for key, value in vars(self.estimates[label][i]).items()},
                "standard_error": self.estimates[label][i].standard_error,
                **dict(zip(("low", "high"), self.estimates[label][i].interval or (None, None), strict=True)),
            }
            for i, (number, document) in numbered_documents
            for label in self.runs
        ]

    def reasons(self, *, unreadable: bool = True) -> dict[str, int]:
        """Count excluded documents by reason; with ``unreadable``, also documents that no pieces spell."""
        return dict(Counter(text.reason for text in self.left_out if unreadable or not text.unreadable))


def summed(estimator: str) -> str:
    """Return what an estimator sums, for signatures: canonical tokenisation, consistent segmentations, or all."""
    if estimator == ONE_BEST:
        return "own-cut"
    return "all-cuts" if ESTIMATORS[estimator].target == "P" else "consistent-cuts"


def _bound(bounds: set[str]) -> Bound:
    if bounds <= {"exact"}:
        return "exact"
    if bounds <= {"exact", "lower"}:
        return "lower"
    return "unbiased" if bounds <= {"exact", "unbiased"} else "part"


def _plain(value: object) -> object:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def evaluate_documents(
    model: TokenisedModel,
    documents: Documents,
    estimators: Sequence[str],
    settings: EstimatorSettings,
) -> Evaluation:
    """Run estimators with the same settings; the labels of the runs are their names.

    See `evaluate_runs` for arguments and errors.
    """
    return evaluate_runs(model, documents, {name: EstimatorRun(name, settings) for name in estimators})


def evaluate_runs(model: TokenisedModel, documents: Documents, runs: Mapping[str, EstimatorRun]) -> Evaluation:
    """Run estimators and T* over documents.

    Every document has a different seed, computed from the seed of the run and its number, so that the errors of
    documents are independent. A document to which some run gives probability zero, or that is too large for exact
    enumeration, is excluded from all runs, with the reason: totals of different runs are over the same documents.

    Args:
        model: model whose P is summed.
        documents: result of `evaluation.tokenisation.documents.documents`. Texts with a canonical tokenisation that is
            too long for the model are refused; `evaluation.tokenisation.documents.fitting` excludes them. If other
            segmentations are too long, they are excluded from the sum.
        runs: runs by label; ``one-best`` is added.

    Raises:
        InputError: an estimator or its settings are invalid, the canonical tokenisation of a text is longer than
            the window (before anything is scored), or no document is left.
    """
    runs = {ONE_BEST: EstimatorRun(ONE_BEST), **{label: run for label, run in runs.items() if label != ONE_BEST}}
    for run in runs.values():
        check_estimator(run.estimator, run.settings.samples)
        for name, n in (("samples", run.settings.samples), ("particles", run.settings.particles)):
            if name in ESTIMATORS[run.estimator].reads:
                require_items(n, f"{name} of a text by {run.estimator}", 64)
        if "replicates" in ESTIMATORS[run.estimator].reads:
            require_items(run.settings.replicates, f"replicates of {run.estimator}", 64)
    check_windows(model, documents)
    rows: list[int] = []
    estimates: dict[str, list[Estimate]] = {label: [] for label in runs}
    left_out = _set_aside(model, documents)
    with meter(f"summing over segmentations with {model.name}", total=len(documents)) as progress:
        for i, (number, document) in enumerate(zip(documents.numbers, documents.documents, strict=True)):
            with numbered(number):
                result = _estimates(model, document, number, runs)
            if isinstance(result, str):
                left_out.append(LeftOut(number, result))
            else:
                rows.append(i)
                for label, estimate in result.items():
                    estimates[label].append(estimate)
            progress.advance()
    left_out.sort(key=lambda text: text.number)
    if not rows:
        raise NothingToMeasureError(
            f"no document is left to evaluate: all {len(left_out)} are excluded, the first because"
            f" {left_out[0].reason}",
            "no-document",
        )
    evaluated = tuple(documents.documents[i] for i in rows)
    return Evaluation(
        model=model.name,
        documents=evaluated,
        numbers=np.array([documents.numbers[i] for i in rows], dtype=np.int64),
        runs=runs,
        estimates={label: tuple(result) for label, result in estimates.items()},
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
        InputError: one is longer than the model's window; the message names the document.
    """
    for number, document in zip(documents.numbers, documents.documents, strict=True):
        with numbered(number):
            check_window(model, document)


def _set_aside(model: TokenisedModel, documents: Documents) -> list[LeftOut]:
    """Return the texts that no estimator can score."""
    long = f"the canonical tokenisation has more tokens than the {model.longest} that the model reads"
    left_out = [LeftOut(number, long) for number in documents.too_long]
    for text in documents.unreadable:
        left_out.append(LeftOut(text.number, f"no piece spells {', '.join(text.parts)}", unreadable=True))
    return left_out


@contextmanager
def numbered(number: int) -> Iterator[None]:
    """Add the number of the text, from 1, to errors that are raised inside the block."""
    try:
        yield
    except InputError as error:
        raise InputError(f"text {number + 1}: {error}") from error


def _estimates(
    model: TokenisedModel, document: Document, number: int, runs: Mapping[str, EstimatorRun]
) -> dict[str, Estimate] | str:
    """Return the estimates of each run for one document, or the reason for its exclusion."""
    estimates = {}
    for label, run in runs.items():
        settings = replace(run.settings, seed=seed_of(run.settings.seed, number))
        try:
            estimates[label] = ESTIMATORS[run.estimator].run(model, document, settings)
        except TooManyContextsError as error:
            return f"{run.estimator}: {error}"
        if not math.isfinite(estimates[label].log_p):
            fit = every_segmentation_fits(model, document)
            return f"{run.estimator}: {UNLIKELY if fit else NONE_FITS.format(longest=model.longest)}"
    return estimates


def seed_of(seed: int, number: int) -> int:
    """Compute the seed of one document from the seed of the run and the number of the document."""
    return int(np.random.SeedSequence([seed, number]).generate_state(1, np.uint32)[0])


def digest_scores(documents: Sequence[Document]) -> str:
    """Compute a digest of the scores on the arcs, which define Q."""
    sha = hashlib.sha256()
    for document in documents:
        sha.update(np.ascontiguousarray(document.lattice.score).tobytes())
    return sha.hexdigest()[:8]


def ratio_scores(
    columns: Mapping[str, tuple[FloatArray, FloatArray]],
    signed: str | Mapping[str, str],
    seed: int,
    within: tuple[float, float] = (-math.inf, math.inf),
) -> dict[str, Score]:
    """Compute ratios of sums over documents, with intervals of a document bootstrap with common resamples.

    Args:
        columns: numerators and denominators, (N,) each, by name of the score.
        signed: one signature, or signatures by name.
        seed: seed of the bootstrap.
        within: range that intervals are clipped to.
    """
    total, count = (np.stack([column[side] for column in columns.values()], axis=1) for side in (0, 1))
    intervals = np.clip(resampled_ratios(total, count, seed=seed), *within)
    value = total.sum(axis=0) / count.sum(axis=0)
    return {
        name: Score(name, float(value[i]), signed if isinstance(signed, str) else signed[name], *ends(*intervals[:, i]))
        for i, name in enumerate(columns)
    }


def pool(evaluations: Mapping[str, Evaluation]) -> Evaluation:
    """Pool the evaluations of several sets, in their order; of one set, return its evaluation.

    Numbers of documents continue from set to set. Signatures name the data of each set.

    Args:
        evaluations: evaluations of one model with the same runs, by name of the set.
    """
    first, *others = evaluations.values()
    if not others:
        return first
    if any(other.model != first.model or list(other.runs) != list(first.runs) for other in others):
        raise ValueError("pooled sets need one model and the same runs")
    numbers, left_out, begin = [], [], 0
    for evaluation in evaluations.values():
        numbers.append(evaluation.numbers + begin)
        left_out += [replace(text, number=text.number + begin) for text in evaluation.left_out]
        begin += 1 + max([*evaluation.numbers.tolist(), *(text.number for text in evaluation.left_out)])
    documents = tuple(document for evaluation in evaluations.values() for document in evaluation.documents)
    parts: dict[str, object] = {}
    for evaluation in evaluations.values():
        parts |= evaluation.parts  # includes the window if it excludes segmentations of some text
    parts |= {
        "documents": len(documents),
        "left-out": len(left_out),
        "altered": sum(document.text.altered for document in documents),
        "q-scores": digest_scores(documents),
        "data": "+".join(f"{name}:{evaluation.parts['data']}" for name, evaluation in evaluations.items()),
    }
    return replace(
        first,
        documents=documents,
        numbers=np.concatenate(numbers),
        estimates={
            label: sum((evaluation.estimates[label] for evaluation in evaluations.values()), ()) for label in first.runs
        },
        left_out=tuple(left_out),
        parts=parts,
    )
