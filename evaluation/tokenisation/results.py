"""What runs of estimators found for documents, and their totals."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from truesource.evaluation.core.score import Score
from truesource.evaluation.core.signature import signature
from truesource.evaluation.tokenisation.estimators.estimate import Bound, Document, Estimate, degrees_of, log_interval
from truesource.evaluation.tokenisation.estimators.registry import ESTIMATORS, ONE_BEST
from truesource.evaluation.tokenisation.settings import EstimatorRun
from truesource.grammar.support.arrays import FloatArray, IntArray
from truesource.grammar.support.printable import ResultRecords

#: share of log P by which what is computed in single precision (networks) and double precision is off as a rule
SINGLE, DOUBLE = 1e-7, 1e-14


@dataclass(frozen=True)
class LeftOut:
    """A text that is in no sum."""

    number: int  #: among those given, from 0
    reason: str
    unreadable: bool = False  #: it holds what no piece spells


@dataclass(frozen=True, kw_only=True)
class Total:
    """What one run found over all documents that count; they are independent, so that variances add."""

    estimator: str
    log_p: float  #: sum of the estimates of log P(D), nats
    bound: Bound  #: ``part`` also where lower bounds and unbiased estimates of documents stand together
    standard_error: float | None  #: of ``log_p``, nats; 0 where exact; None where a document has no error bar
    degrees: float  #: of freedom of the standard error (Satterthwaite 1946); infinite where it is as good as known
    low: float | None  #: lower end of the 95% interval of the sum of log P(D), nats; None without an error bar
    high: float | None  #: its upper end
    shortfall: float | None  #: about how far logarithms of unbiased estimates fall short: half the variance, nats
    log_lower: float  #: certainly at most the sum of log P(D), nats
    log_upper: float | None  #: certainly at least the sum of log P(D), nats; None: nothing is known
    steps: int  #: token-steps of the model
    steps_per_piece: float  #: over the pieces of T*
    least_ess: float | None  #: the smallest effective sample size of a document
    largest_share: float | None  #: the largest share that one weight has in a document
    cuts: int  #: distinct segmentations (or prefixes) scored
    rounding: float  #: about how far ``log_p`` is off by rounding, documents independent, nats


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Evaluation(ResultRecords):
    """Estimates of one model for N documents, run by run. All runs count the same documents."""

    model: str
    documents: tuple[Document, ...]  #: (N,) those to which every run gives a finite value
    numbers: IntArray  #: (N,) of each among the texts given, from 0, ascending
    runs: Mapping[str, EstimatorRun]  #: by label; ``one-best`` is the first
    estimates: Mapping[str, tuple[Estimate, ...]]  #: by label, (N,) each
    left_out: tuple[LeftOut, ...]
    parts: Mapping[str, object]  #: of every signature
    end: bool  #: whether the end of the text is in P
    rounding: float = SINGLE  #: share of log P(D) by which it is off as a rule

    def log_p(self, label: str) -> FloatArray:
        """(N,) estimates of log P(D), nats."""
        return np.array([estimate.log_p for estimate in self.estimates[label]])

    @property
    def one_best(self) -> FloatArray:
        """(N,) log P(T*), nats."""
        return self.log_p(ONE_BEST)

    @property
    def pieces(self) -> FloatArray:
        """(N,) pieces of T*."""
        return np.array([len(document.best) for document in self.documents], dtype=np.float64)

    @property
    def words(self) -> FloatArray:
        """(N,) words between white space, of the original texts."""
        return np.array([document.text.n_words for document in self.documents], dtype=np.float64)

    @property
    def characters(self) -> FloatArray:
        """(N,) Unicode code points of the original texts."""
        return np.array([len(document.text.original) for document in self.documents], dtype=np.float64)

    @property
    def n_bytes(self) -> FloatArray:
        """(N,) bytes of UTF-8 of the original texts."""
        return np.array([len(document.text.original.encode()) for document in self.documents], dtype=np.float64)

    def total(self, label: str) -> Total:
        """Sums over the documents."""
        found = self.estimates[label]
        errors = [estimate.variance for estimate in found]
        known = [error for error in errors if error is not None]
        variance = math.fsum(known) if len(known) == len(found) else None
        degrees = degrees_of(found)
        log_p, bound = math.fsum(estimate.log_p for estimate in found), _bound({estimate.bound for estimate in found})
        low, high = None, None
        if variance is not None and bound in ("exact", "unbiased"):
            low, high = log_interval(log_p, variance, degrees)
        sizes = [estimate.ess for estimate in found if estimate.ess is not None]
        shares = [estimate.max_share for estimate in found if estimate.max_share is not None]
        uppers = [estimate.log_upper for estimate in found]
        steps = sum(estimate.steps for estimate in found)
        return Total(
            estimator=self.runs[label].estimator,
            log_p=log_p,
            bound=bound,
            standard_error=None if variance is None else math.sqrt(variance),
            degrees=degrees,
            low=low,
            high=high,
            shortfall=None if variance is None else variance / 2.0,
            log_lower=math.fsum(estimate.log_lower for estimate in found),
            log_upper=None if None in uppers else math.fsum(upper for upper in uppers if upper is not None),
            steps=steps,
            steps_per_piece=steps / float(self.pieces.sum()),
            least_ess=min(sizes, default=None),
            largest_share=max(shares, default=None),
            cuts=sum(estimate.cuts for estimate in found),
            rounding=self.rounding * math.hypot(*(estimate.log_p for estimate in found)),
        )

    def signed(self, label: str, **more: object) -> str:
        """Signature of a value of one run: every choice that could change it; ``more`` is particular to the value."""
        run = self.runs[label]
        own: dict[str, object] = {"estimator": run.estimator, "sum": summed(run.estimator)}
        return signature(
            {
                **own,
                **{key: getattr(run.settings, key) for key in ESTIMATORS[run.estimator].reads},
                **self.parts,
                **more,
            }
        )

    def scores(self) -> dict[str, list[Score]]:
        """By label: the parts of `Total` that there are, and how many documents count and are left out."""
        found: dict[str, list[Score]] = {}
        for label in self.runs:
            total = self.total(label)
            sums = ("log_p", "standard_error", "shortfall", "rounding", "log_lower", "log_upper")
            values = {name: (getattr(total, name), "nats") for name in sums}
            values |= {"steps": (total.steps, "token-steps"), "steps_per_piece": (total.steps_per_piece, "token-steps")}
            values |= {"least_ess": (total.least_ess, "samples"), "largest_share": (total.largest_share, "share")}
            values |= {"cuts": (total.cuts, "cuts"), "documents": (len(self.documents), "documents")}
            values |= {"left_out": (len(self.left_out), "documents")}
            found[label] = [
                Score(name, float(value), self.signed(label, bound=total.bound, unit=unit))
                for name, (value, unit) in values.items()
                if value is not None and math.isfinite(value)
            ]
            if total.low is not None:
                signed = self.signed(label, bound=total.bound, unit="nats", ci="filters-t95")
                found[label][0] = Score("log_p", total.log_p, signed, total.low, total.high)
        return found

    def records(self) -> list[dict[str, Any]]:
        """One record a document and run, for JSON: what `Estimate` holds, with the number of the document."""
        kept = enumerate(zip(self.numbers.tolist(), self.documents, strict=True))
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
            for i, (number, document) in kept
            for label in self.runs
        ]

    def reasons(self, *, unreadable: bool = True) -> dict[str, int]:
        """How many documents are left out for each reason; with ``unreadable``, also those that no pieces spell."""
        return dict(Counter(text.reason for text in self.left_out if unreadable or not text.unreadable))


def summed(estimator: str) -> str:
    """What an estimator sums, for signatures: the canonical tokenisation, consistent segmentations, or all."""
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
