"""Share of the tokeniser in the distance of a model to the known truth of sentences of a grammar."""

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

DOUBT = 3.0  #: number of standard errors, and multiple of the rounding error, that may be chance
_TAIL = float(ndtr(-DOUBT))  #: tail probability beyond; with few filters, Student's t has the same tail further out
STEP = 5  #: width of a band of lengths


@dataclass(frozen=True)
class Shortfall:
    """The distance of the total of one run below another."""

    run: str
    nats: float  #: shortfall of the total
    below: str  #: label of the other run
    certain: bool  #: True if it is below a certain lower bound, else below the best estimate
    standard_error: float | None  #: standard error of the run, nats

    @property
    def note(self) -> str:
        """Description of the shortfall for tables."""
        reason = "too low" if self.standard_error is None else "error bar too small"
        return f"{reason}: {self.nats:.3g} below {self.below}"


def below_bounds(evaluation: Evaluation, run: str) -> Shortfall | None:
    """Compare a run's total with all certain lower bounds; None unless it is lower by more than `chance` and rounding.

    Every sum over distinct segmentations is at most P(D), whichever run scored them. Without a standard error, the
    total is compared directly.
    """
    return _largest(run, evaluation.total(run), _bounds(evaluation))


def shortfalls(evaluation: Evaluation, marginal: str) -> dict[str, Shortfall]:
    """Find the unbiased runs, by label, whose standard errors are implausible.

    They are more than `chance` of both, and rounding, below the run that represents log P(D), or below what
    some run certainly reaches. If ``marginal`` has no standard error, only the latter counts.

    Args:
        evaluation: evaluation of all runs.
        marginal: label of the run that represents log P(D).
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
    """Compute the error of a total that may be chance, nats: three standard errors, or more if these are uncertain."""
    return student(_TAIL, total.degrees) * (total.standard_error or 0.0)


def _bounds(evaluation: Evaluation) -> list[tuple[float, str, bool, float]]:
    """List the totals that each run certainly reaches: nats, label, True (certain), and error 0."""
    return [(evaluation.total(label).log_lower, label, True, 0.0) for label in evaluation.runs]


def _largest(run: str, total: Total, others: list[tuple[float, str, bool, float]]) -> Shortfall | None:
    """Return the largest shortfall that is not chance."""
    tolerance = chance(total)
    gaps = [
        Shortfall(run, value - total.log_p, label, certain, total.standard_error)
        for value, label, certain, error in others
        if value - total.log_p > math.hypot(tolerance, error, DOUBT * total.rounding)
    ]
    return max(gaps, key=lambda one: one.nats, default=None)


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Decomposition(ResultRecords):
    """The distance of a model that reads one segmentation from the truth, in two parts, over M documents.

    One-best NLL - true NLL = (one-best NLL - marginal NLL) + (marginal NLL - true NLL): the tokenisation gap, at least
    0 if log P(D) is exact or its sum includes T*, and the model gap, whose expectation under the grammar is
    KL(truth || model), at least 0, if log P(D) is exact.
    """

    model: str
    run: str  #: label of the run that estimated log P(D)
    one_best: FloatArray  #: (M,) -log P(T*), nats
    marginal: FloatArray  #: (M,) -log P(D), nats
    truth: FloatArray  #: (M,) -log P(D) under the grammar, nats
    variance: FloatArray | None  #: (M,) variance of log P(D); 0 if exact, None if some estimate has no error bar
    sentences: tuple[tuple[tuple[str, ...], ...], ...]  #: (M,) the sentences of each document
    impossible: tuple[int, ...]  #: numbers, among the input texts, of sentences with probability 0 in the grammar
    altered: tuple[int, ...]  #: numbers of sentences that the tokeniser alters, so that the model reads another string
    evaluation: Evaluation
    grammar: Truth
    lengths: LengthRange | None
    per_document: int = 1  #: number of input texts in a document
    excluded: Exclusion | None = None  #: sentences that the texts and the truth exclude
    transform: Transform | None = None  #: transform of the texts; the truth is computed on the originals

    @property
    def tokenisation_gap(self) -> FloatArray:
        """Tokenisation gap of each document, (M,) nats."""
        return self.one_best - self.marginal

    @property
    def model_gap(self) -> FloatArray:
        """Model gap of each document, (M,) nats."""
        return self.marginal - self.truth

    @property
    def distance(self) -> FloatArray:
        """One-best NLL - true NLL of each document, (M,) nats."""
        return self.one_best - self.truth

    @property
    def rounding(self) -> float:
        """Approximate rounding error of the sum of log P(D), nats."""
        return self.evaluation.rounding * math.hypot(*self.marginal.tolist())

    @property
    def words(self) -> FloatArray:
        """Number of words of each document, (M,)."""
        return np.array([sum(map(len, sentences)) for sentences in self.sentences], dtype=np.float64)

    @property
    def n_sentences(self) -> FloatArray:
        """Number of sentences of each document, (M,)."""
        return np.array([len(sentences) for sentences in self.sentences], dtype=np.float64)

    def scores(self, seed: int = DEFAULT_SEED) -> dict[str, Score]:
        """Compute the NLLs, the gaps and their sum, per sentence and per word, in nats, and the shares of the sum.

        ``one_best_nll``, ``marginal_nll``, ``true_nll``, ``tokenisation_gap``, ``model_gap``, ``distance`` are means
        per sentence, with ``_per_word`` per word. ``tokenisation_share`` and ``model_share`` divide the pooled
        gaps by the pooled distance; they are missing unless the interval of the distance is above 0, and if the total
        of the run is certainly too low (`below_bounds`). Intervals are from a document
        bootstrap with the same resamples for all scores (paired). ``estimation_error_per_word``, without interval, is
        the standard error of both gaps from estimating log P(D), at least the rounding error, but 0 if
        it is exact; it is missing without error bars.
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
        """Return all scores, then the gaps and their sum per word, by mean sentence length.

        Scores by length also have ``by``, ``group`` and ``documents``, the shortest first.
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
        """Compute pooled means with intervals."""
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
    """Compare the probabilities that a model gives to sentences, one per text, with the exact truth.

    The truth is the grammar conditional on the range of lengths. It includes the end of the sentence if and only if the
    model does. Sentences with probability 0 in the grammar, and sentences that the tokeniser alters (the model then
    reads a string that comes from several sentences) are excluded and counted.

    Args:
        evaluation: evaluation of texts that are sentences, with words separated by single spaces.
        run: label of the run whose log P(D) is the marginal.
        grammar: grammar that the sentences were sampled from.
        lengths: length condition of the sample.
        per_document: join this many consecutive texts to one document; the model reads each sentence separately, so
            that probabilities multiply. Excluded sentences are missing in their documents.
        excluded: sentences that the texts exclude, such as sentences of earlier disjoint splits: the truth is then
            exactly the rest of the language.
        transform: transform of the texts.

    Raises:
        InputError: no sentence is left, or ``run`` is not among the runs.
    """
    if run not in evaluation.runs or per_document < 1:
        raise InputError(f"runs are {', '.join(evaluation.runs)}, and a document has a sentence; got {run!r}")
    sentences = [tuple(document.text.original.split()) for document in evaluation.documents]
    truth = true_log_probs(sentences, grammar, lengths, end=evaluation.end, excluded=excluded, transform=transform)
    selected, impossible, altered = _common_sentences(evaluation, truth)
    _, row = np.unique(evaluation.numbers[selected] // per_document, return_inverse=True)

    def sums(values: FloatArray) -> FloatArray:
        return np.bincount(row, values[selected]).astype(np.float64)

    errors = [estimate.variance for estimate in evaluation.estimates[run]]
    variance = None if None in errors else sums(np.array(errors, dtype=np.float64))
    joined: list[list[tuple[str, ...]]] = [[] for _ in range(int(row.max()) + 1)]
    for document, i in zip(row.tolist(), selected.tolist(), strict=True):
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
    """Return rows of sentences common to model and truth; numbers of impossible and of altered sentences."""
    altered = np.array([document.text.altered for document in evaluation.documents])
    possible = np.isfinite(truth)
    impossible, other = evaluation.numbers[~possible], evaluation.numbers[altered & possible]
    selected = np.flatnonzero(possible & ~altered)
    if len(selected) == 0:
        raise NothingToMeasureError(
            f"no sentence is left to compare with the truth: the grammar gives probability 0 to {len(impossible)} of"
            f" {len(truth)}, and the tokeniser alters {len(other)}",
            "no-common-sentence",
        )
    return selected, tuple(impossible.tolist()), tuple(other.tolist())


def true_log_probs(
    sentences: Sequence[Sequence[str]],
    grammar: Truth,
    lengths: LengthRange | None,
    *,
    end: bool,
    excluded: Exclusion | None = None,
    transform: Transform | None = None,
) -> FloatArray:
    """Compute the log probability of each sentence under a grammar, (N,) nats; -inf for probability 0.

    Args:
        sentences: sentences in the words of the grammar.
        grammar: the truth.
        lengths: length condition of the truth.
        end: True if the end of the sentence counts.
        excluded: sentences that are excluded from the language; they have probability 0.
        transform: transform of the sentences; it needs their end.
    """
    oracle = Oracle(grammar, lengths=lengths, excluded=excluded, transform=transform)
    scores = oracle.score(sentences, ScoringFrame(eos=end))
    log_probs = np.bincount(scores.sentence, scores.log_prob, minlength=len(sentences)).astype(np.float64)
    log_probs[scores.impossible] = -np.inf
    return log_probs
