"""Share of the tokeniser in a model's distance to the truth: sentences of a grammar, whose truth is known."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr
from typing_extensions import override

from truesource.evaluation.core.exclusion import Exclusion, disjoint_part
from truesource.evaluation.core.oracle import Oracle
from truesource.evaluation.core.score import Score, keyed
from truesource.evaluation.core.transformed import transform_parts
from truesource.evaluation.measures.bootstrap import ci_part
from truesource.evaluation.tokenisation.documents import student
from truesource.evaluation.tokenisation.estimators.registry import ONE_BEST
from truesource.evaluation.tokenisation.results import Evaluation, Total, ratio_scores
from truesource.generator.language_model import ScoringFrame
from truesource.generator.plan import Transform
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.support.arrays import FloatArray, IntArray
from truesource.grammar.support.errors import InputError, NothingToMeasureError
from truesource.grammar.support.printable import ResultRecords
from truesource.grammar.support.settings import DEFAULT_SEED
from truesource.grammar.truth import Truth

DOUBT = 3.0  #: standard errors that are known, and times the rounding, that may be chance
_TAIL = float(ndtr(-DOUBT))  #: what lies beyond them; of errors over a few filters, Student's t has as much further out
STEP = 5  #: lengths in a band


@dataclass(frozen=True)
class Shortfall:
    """Distance of the total of one run below another."""

    run: str
    nats: float  #: of the total
    below: str  #: label of the other run
    certain: bool  #: whether it lies below a certain lower bound, else below the best estimate
    standard_error: float | None  #: of the run, nats

    @property
    def note(self) -> str:
        """The shortfall in a few words, for tables."""
        reason = "too low" if self.standard_error is None else "error bar too small"
        return f"{reason}: {self.nats:.3g} below {self.below}"


def below_bounds(evaluation: Evaluation, run: str) -> Shortfall | None:
    """Find whether a run's total lies below what some run certainly reaches, by more than `chance` and rounding.

    Every sum over distinct segmentations is at most P(D), whatever run scored them. A run without a standard error has
    none to hide behind: its total is compared as it is.
    """
    return _largest(run, evaluation.total(run), _bounds(evaluation))


def shortfalls(evaluation: Evaluation, marginal: str) -> dict[str, Shortfall]:
    """Find the unbiased runs, by label, whose standard errors cannot be believed.

    These lie more than `chance` of both, and rounding, below the run that stands for log P(D), or below what
    some run certainly reaches. Where ``marginal`` has no standard error, only the latter counts.

    Args:
        evaluation: of all runs.
        marginal: label of the run that stands for log P(D).
    """
    best, bounds = evaluation.total(marginal), _bounds(evaluation)
    doubtful = {}
    for label in evaluation.runs:
        total = evaluation.total(label)
        if total.bound != "unbiased":
            continue
        others = list(bounds)
        if label != marginal and None not in (total.standard_error, best.standard_error):
            others.append((best.log_p, marginal, False, chance(best)))
        if (one := _largest(label, total, others)) is not None:
            doubtful[label] = one
    return doubtful


def chance(total: Total) -> float:
    """Error of a total that may be chance, nats: three standard errors, more where these are uncertain."""
    return student(_TAIL, total.degrees) * (total.standard_error or 0.0)


def _bounds(evaluation: Evaluation) -> list[tuple[float, str, bool, float]]:
    """Totals that each run certainly reaches: nats, label, that it is certain, and no error."""
    return [(evaluation.total(label).log_lower, label, True, 0.0) for label in evaluation.runs]


def _largest(run: str, total: Total, others: list[tuple[float, str, bool, float]]) -> Shortfall | None:
    """The largest shortfall that is no chance."""
    own = chance(total)
    gaps = [
        Shortfall(run, value - total.log_p, label, certain, total.standard_error)
        for value, label, certain, error in others
        if value - total.log_p > math.hypot(own, error, DOUBT * total.rounding)
    ]
    return max(gaps, key=lambda one: one.nats, default=None)


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Decomposition(ResultRecords):
    """Distance of a model that reads one segmentation from the truth, in two parts, over M documents of sentences.

    One-best NLL - true NLL = (one-best NLL - marginal NLL) + (marginal NLL - true NLL): the tokenisation gap, at least
    0 where log P(D) is exact or sums T* among others, and the model gap, whose expectation under the grammar is
    KL(truth || model), at least 0, where log P(D) is exact.
    """

    model: str
    run: str  #: label of the run that estimated log P(D)
    one_best: FloatArray  #: (M,) -log P(T*), nats
    marginal: FloatArray  #: (M,) -log P(D), nats
    truth: FloatArray  #: (M,) -log P(D) under the grammar, nats
    variance: FloatArray | None  #: (M,) of the estimates of log P(D); 0 where exact, None where some have no error bar
    sentences: tuple[tuple[tuple[str, ...], ...], ...]  #: (M,) the sentences of each document
    impossible: tuple[int, ...]  #: numbers, among the texts given, of sentences that the grammar cannot make
    altered: tuple[int, ...]  #: of sentences that the tokeniser alters, so that the model reads another string
    evaluation: Evaluation
    grammar: Truth
    lengths: LengthRange | None
    per_document: int = 1  #: texts given that are one document
    excluded: Exclusion | None = None  #: sentences that the texts leave out, and so does the truth
    transform: Transform | None = None  #: of the texts; the truth of sentences is that of their originals

    @property
    def tokenisation_gap(self) -> FloatArray:
        """(M,) nats."""
        return self.one_best - self.marginal

    @property
    def model_gap(self) -> FloatArray:
        """(M,) nats."""
        return self.marginal - self.truth

    @property
    def distance(self) -> FloatArray:
        """(M,) one-best NLL - true NLL, nats."""
        return self.one_best - self.truth

    @property
    def rounding(self) -> float:
        """About how far the sum of log P(D) is off by rounding, nats."""
        return self.evaluation.rounding * math.hypot(*self.marginal.tolist())

    @property
    def words(self) -> FloatArray:
        """(M,) words of each document."""
        return np.array([sum(map(len, sentences)) for sentences in self.sentences], dtype=np.float64)

    @property
    def n_sentences(self) -> FloatArray:
        """(M,) sentences of each document."""
        return np.array([len(sentences) for sentences in self.sentences], dtype=np.float64)

    def scores(self, seed: int = DEFAULT_SEED) -> dict[str, Score]:
        """The NLLs, the gaps and their sum, for a sentence and for a word, nats, and shares of the sum.

        ``one_best_nll``, ``marginal_nll``, ``true_nll``, ``tokenisation_gap``, ``model_gap``, ``distance`` are means of
        a sentence, those with ``_per_word`` of a word. ``tokenisation_share`` and ``model_share`` divide the pooled
        gaps by the pooled distance; there are none unless the interval of the distance is above 0, nor where the total
        of the run is certainly too low (`below_bounds`). Intervals are of a document
        bootstrap with the same resamples throughout (paired). ``estimation_error_per_word``, without one, is the
        standard error of both gaps that comes from estimating log P(D), and not less than the rounding, but 0 where
        that is exact; it is not there without error bars.
        """
        columns = {
            "one_best_nll": self.one_best,
            "marginal_nll": self.marginal,
            "true_nll": self.truth,
            "tokenisation_gap": self.tokenisation_gap,
            "model_gap": self.model_gap,
            "distance": self.distance,
        }
        scores = self._ratios(columns, self.n_sentences, "nats/sentence", seed)
        per_word = {f"{name}_per_word": values for name, values in columns.items()}
        scores |= self._ratios(per_word, self.words, "nats/word", seed)
        low = scores["distance"].low
        certain = low is not None and low > 1e-9 * abs(scores["true_nll"].value)
        if certain and below_bounds(self.evaluation, self.run) is None:
            shares = {"tokenisation_share": self.tokenisation_gap, "model_share": self.model_gap}
            scores |= self._ratios(shares, self.distance, "share", seed)
        if self.variance is not None:
            error = max(math.sqrt(variance), self.rounding) if (variance := float(self.variance.sum())) else 0.0
            error /= float(self.words.sum())
            signed = scores["tokenisation_gap_per_word"].signature
            scores["estimation_error_per_word"] = Score("estimation_error_per_word", error, signed)
        return scores

    @override
    def as_scores(self, seed: int = DEFAULT_SEED) -> list[Score]:
        """Return all scores, then the gaps and their sum for a word, by mean length of the sentences.

        Those of lengths have ``by``, ``group`` and ``documents`` as well, the shortest first.
        """
        every = list(self.scores(seed).values())
        gaps = {"tokenisation_gap": self.tokenisation_gap, "model_gap": self.model_gap, "distance": self.distance}
        key = -(-self.words // (self.n_sentences * STEP)).astype(np.int64)
        for k in np.unique(key).tolist():
            at, band = key == k, f"{STEP * (k - 1) + 1} to {STEP * k} words"
            inside = {f"{gap}_per_word": values[at] for gap, values in gaps.items()}
            scores = self._ratios(inside, self.words[at], "nats/word", seed, by="length", band=band)
            every += keyed(scores.values(), by="length", group=band, documents=int(at.sum()))
        return keyed(every, model=self.model, run=self.run)

    def _ratios(
        self, columns: Mapping[str, FloatArray], count: FloatArray, unit: str, seed: int, **more: object
    ) -> dict[str, Score]:
        """Pooled means with intervals."""
        signed = self.evaluation.signed(
            self.run,
            unit=unit,
            bound=self.evaluation.total(self.run).bound,
            given=self.lengths or "none",
            **transform_parts(self.grammar, self.transform, "causal"),
            **disjoint_part(self.excluded),
            grammar=self.grammar.identity,
            impossible=len(self.impossible),
            **({} if self.per_document == 1 else {"sentences-a-document": self.per_document}),
            **{"set-aside-as-altered": len(self.altered), "ci": ci_part(len(count), seed, "document"), **more},
        )
        return ratio_scores({name: (total, count) for name, total in columns.items()}, signed, seed)


def decompose(
    evaluation: Evaluation,
    run: str,
    grammar: Truth,
    lengths: LengthRange | None,
    *,
    per_document: int = 1,
    excluded: Exclusion | None = None,
    transform: Transform | None = None,
) -> Decomposition:
    """Set what a model gives to sentences, one text each, against the exact truth.

    The truth is that of the grammar given the range of lengths, with the end of the sentence counted exactly if the
    model counts it. Sentences that the grammar cannot make, and those that the tokeniser alters (the model then reads
    another string, of which the sentence is one source among several) are set aside and counted.

    Args:
        evaluation: of texts that are sentences, words separated by single spaces.
        run: label of the run whose log P(D) is the marginal.
        grammar: that the sentences were drawn from.
        lengths: the length condition that they were drawn under.
        per_document: join so many consecutive texts to one document; the model reads each sentence anew, so that
            probabilities multiply. Sentences set aside are left out of theirs.
        excluded: sentences that the texts leave out, such as those of earlier disjoint splits: the truth is then
            exactly that of the rest of the language.
        transform: of the texts.

    Raises:
        InputError: nothing is left, or ``run`` is not among the runs.
    """
    if run not in evaluation.runs or per_document < 1:
        raise InputError(f"runs are {', '.join(evaluation.runs)}, and a document has a sentence; got {run!r}")
    sentences = [tuple(document.text.original.split()) for document in evaluation.documents]
    truth = true_log_probs(sentences, grammar, lengths, end=evaluation.end, excluded=excluded, transform=transform)
    kept, impossible, altered = _common_sentences(evaluation, truth)
    _, row = np.unique(evaluation.numbers[kept] // per_document, return_inverse=True)

    def sums(values: FloatArray) -> FloatArray:
        return np.bincount(row, values[kept]).astype(np.float64)

    errors = [estimate.variance for estimate in evaluation.estimates[run]]
    variance = None if None in errors else sums(np.array(errors, dtype=np.float64))
    joined: list[list[tuple[str, ...]]] = [[] for _ in range(int(row.max()) + 1)]
    for document, i in zip(row.tolist(), kept.tolist(), strict=True):
        joined[document].append(sentences[i])
    return Decomposition(
        model=evaluation.model,
        run=run,
        one_best=sums(-evaluation.log_p(ONE_BEST)),
        marginal=sums(-evaluation.log_p(run)),
        truth=sums(-truth),
        variance=variance,
        sentences=tuple(map(tuple, joined)),
        impossible=impossible,
        altered=altered,
        evaluation=evaluation,
        grammar=grammar,
        lengths=lengths,
        per_document=per_document,
        excluded=excluded,
        transform=transform,
    )


def _common_sentences(evaluation: Evaluation, truth: FloatArray) -> tuple[IntArray, tuple[int, ...], tuple[int, ...]]:
    """Rows of the sentences that model and truth both read; numbers of those impossible for the truth, and altered."""
    altered = np.array([document.text.altered for document in evaluation.documents])
    possible = np.isfinite(truth)
    impossible, other = evaluation.numbers[~possible], evaluation.numbers[altered & possible]
    kept = np.flatnonzero(possible & ~altered)
    if len(kept) == 0:
        raise NothingToMeasureError(
            f"no sentence is left to set against the truth: the grammar cannot make {len(impossible)} of"
            f" {len(truth)}, and the tokeniser alters {len(other)}",
            "no-common-sentence",
        )
    return kept, tuple(impossible.tolist()), tuple(other.tolist())


def true_log_probs(
    sentences: Sequence[Sequence[str]],
    grammar: Truth,
    lengths: LengthRange | None,
    *,
    end: bool,
    excluded: Exclusion | None = None,
    transform: Transform | None = None,
) -> FloatArray:
    """(N,) log probability of each sentence under a grammar, nats; -inf where it cannot make it.

    Args:
        sentences: in the words of the grammar.
        grammar: the truth.
        lengths: its length condition.
        end: whether the end of the sentence counts.
        excluded: sentences that are left out of the language; one of them has probability 0.
        transform: of the sentences; it needs their end.
    """
    oracle = Oracle(grammar, lengths=lengths, excluded=excluded, transform=transform)
    scores = oracle.score(sentences, ScoringFrame(eos=end))
    log_probs = np.bincount(scores.sentence, scores.log_prob, minlength=len(sentences)).astype(np.float64)
    log_probs[scores.impossible] = -np.inf
    return log_probs
