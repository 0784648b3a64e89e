"""Measurement of one model on texts: runs of estimators, the choice of log P(D), and records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from truesource.evaluation.core.score import Key, keyed
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.printable import ResultRecords

if TYPE_CHECKING:
    from truesource.evaluation.core.exclusion import Exclusion
    from truesource.evaluation.core.score import Score
    from truesource.evaluation.tokenisation import EstimatorSettings
    from truesource.evaluation.tokenisation.decomposition import Decomposition, Shortfall
    from truesource.evaluation.tokenisation.documents import Documents
    from truesource.evaluation.tokenisation.marginal_gaps import MarginalGaps
    from truesource.evaluation.tokenisation.results import Evaluation
    from truesource.generator.piece_model import TokenisedModel
    from truesource.generator.plan import Transform
    from truesource.grammar.conditioning import LengthRange
    from truesource.grammar.truth import Truth


#: estimators that may represent log P(D), best first: unbiased or exact ones, then the tightest bounds,
#: then estimators that are usually too low
MARGINAL: tuple[str, ...] = ("exact", "auto", "bracket", "dpf", "block", "wor1", "wr1")
MARGINAL += ("beam", "nbest", "distinct", "wor", "wr", "guided")


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Measured(ResultRecords):
    """The results of one model on texts."""

    evaluation: Evaluation
    marginal: str  #: label of the run that represents log P(D)
    ppl: Mapping[str, Mapping[str, Score]]  #: by label; see `truesource.evaluation.tokenisation.summaries`
    gaps: MarginalGaps | None  #: None if only one segmentation was requested
    canonical: (
        Mapping[str, Score] | None
    )  #: share of the canonical tokenisation; None likewise, and if log P(D) is too low
    decomposition: Decomposition | None  #: decomposition of the distance to a known truth
    seed: int

    @property
    def model(self) -> str:
        """Name of the model."""
        return self.evaluation.model

    @property
    def too_low(self) -> Shortfall | None:
        """The shortfall of the total for log P(D) below what some run certainly reaches; None if it is not below."""
        from truesource.evaluation.tokenisation.decomposition import below_bounds

        return below_bounds(self.evaluation, self.marginal)

    @property
    def notes(self) -> dict[str, Shortfall]:
        """Runs by label whose standard errors are implausible."""
        from truesource.evaluation.tokenisation.decomposition import shortfalls

        return shortfalls(self.evaluation, self.marginal)

    @property
    def warning(self) -> str | None:
        """Warning about the run that represents log P(D), if its total is certainly too low."""
        if (low := self.too_low) is None:
            return None
        return (
            f"ln P by {low.run}, {self.evaluation.total(low.run).log_p:.3f}, is {low.nats:.3g} nats below what"
            f" {low.below} certainly reaches, so the gap is at least that much too small;"
            " shares are not reported"
        )

    def as_scores(self) -> list[Score]:
        """Return all scores with model, estimator (``run``) and, for estimates, ``bound``.

        ``error_too_small`` (nats) is added for runs in `notes`, with ``note`` and ``below``; ``below_bound`` (nats)
        for a `warning`, with ``warning`` and ``below``.
        """
        every: list[Score] = []
        notes, too_low = self.notes, self.too_low
        for label, scores in self.evaluation.scores().items():
            head: dict[str, Key] = {"run": label, "bound": self.evaluation.total(label).bound}
            every += keyed((*scores, *self.ppl[label].values()), **head)
            if (note := notes.get(label)) is not None:
                every.append(self._below("error_too_small", note).at(**head, note=note.note))
        if too_low is not None:
            every.append(self._below("below_bound", too_low).at(run=self.marginal, warning=self.warning))
        for scores_of_all in (self.gaps and self.gaps.scores, self.canonical):
            every += keyed((scores_of_all or {}).values(), run=self.marginal)
        if self.decomposition is not None:
            every += self.decomposition.as_scores(self.seed)
        return keyed(every, model=self.model)

    def _below(self, name: str, shortfall: Shortfall) -> Score:
        from truesource.evaluation.core.score import Score

        score = Score(name, shortfall.nats, self.evaluation.signed(shortfall.run, below=shortfall.below, unit="nats"))
        return score.at(below=shortfall.below)

    def rows(self) -> list[dict[str, object]]:
        """Return a row for each document and run: the estimate, and the entropy of segmentations, nats."""
        rows = self.evaluation.rows()
        if self.gaps is not None:
            entropy = dict(zip(self.evaluation.numbers.tolist(), self.gaps.entropy.tolist(), strict=True))
            rows = [{**row, "entropy": entropy[row["document"]]} for row in rows]
        return rows


def check_estimators(names: Sequence[str], samples: int) -> None:
    """Refuse a list of estimators before any work is done.

    Raises:
        InputError: the list is empty, one is unknown or repeated, or there are too few samples for one.
    """
    from truesource.evaluation.tokenisation.estimators.registry import ESTIMATORS, check_estimator

    if not names:
        raise InputError(f"no estimator is given; name at least one of {', '.join(ESTIMATORS)}")
    for name in names:
        check_estimator(name, samples)
    if len(set(names)) < len(names):
        raise InputError(f"an estimator is repeated in {','.join(names)}; remove it")


def measure(
    model: TokenisedModel,
    documents: Documents,
    estimators: Sequence[str],
    settings: EstimatorSettings,
    *,
    proposal: str,
    truth: Truth | None = None,
    lengths: LengthRange | None = None,
    per_document: int = 1,
    excluded: Exclusion | None = None,
    transform: Transform | None = None,
) -> Measured:
    """Run estimators over documents, and compare them with the truth if it is known.

    Args:
        model: model whose probabilities are summed.
        documents: documents, see `truesource.evaluation.tokenisation.documents`.
        estimators: names of estimators.
        settings: settings of all estimators; the seed is also used by the bootstraps.
        proposal: kind of scores on the lattices, for signatures.
        truth: grammar that the texts, one sentence each, were sampled from.
        lengths: length condition of the sample.
        per_document: number of consecutive texts in a document, for the distance to the truth and its intervals.
        excluded: sentences that the texts and the truth exclude.
        transform: transform of the texts.

    Raises:
        InputError: see `evaluation.tokenisation.results.evaluate_runs` and `evaluation.tokenisation.decomposition`.
    """
    from truesource.evaluation.tokenisation.decomposition import decompose
    from truesource.evaluation.tokenisation.estimators.registry import ONE_BEST
    from truesource.evaluation.tokenisation.results import evaluate_documents

    evaluation = evaluate_documents(model, documents, estimators, settings)
    parts = {**evaluation.parts, "proposal": proposal}
    evaluation = replace(evaluation, parts=parts, rounding=rounding_of(model))
    others = [name for name in estimators if name != ONE_BEST]
    marginal = next((name for name in (*MARGINAL, *others) if name in estimators), ONE_BEST)
    against = None
    if truth is not None:
        against = decompose(
            *(evaluation, marginal, truth, lengths),
            per_document=per_document,
            excluded=excluded,
            transform=transform,
        )
    return replace(measured_of({"text": evaluation}, marginal, settings), decomposition=against)


def measured_of(evaluations: Mapping[str, Evaluation], marginal: str, settings: EstimatorSettings) -> Measured:
    """Measure evaluations of one or several sets of texts, pooled, without the truth.

    Args:
        evaluations: evaluations of one model with the same runs, by name of the set.
        marginal: label of the run that represents log P(D).
        settings: settings with the seed of the bootstraps and the inverse temperature of entropies.
    """
    from truesource.evaluation.tokenisation.canonical import canonical_mass
    from truesource.evaluation.tokenisation.decomposition import below_bounds
    from truesource.evaluation.tokenisation.estimators.registry import ONE_BEST
    from truesource.evaluation.tokenisation.marginal_gaps import marginal_gaps
    from truesource.evaluation.tokenisation.results import pool
    from truesource.evaluation.tokenisation.summaries import perplexities

    evaluation = pool(evaluations)
    gaps, canonical = None, None
    if marginal != ONE_BEST:
        gaps = marginal_gaps(evaluations, marginal, b=settings.b, seed=settings.seed)
        if below_bounds(evaluation, marginal) is None:
            canonical = canonical_mass(evaluation, marginal, seed=settings.seed)
    return Measured(
        evaluation=evaluation,
        marginal=marginal,
        ppl=perplexities(evaluation, settings.seed),
        gaps=gaps,
        canonical=canonical,
        decomposition=None,
        seed=settings.seed,
    )


def rounding_of(model: TokenisedModel) -> float:
    """Return the usual relative rounding error of log P(D): n-grams use double precision, networks single."""
    from truesource.evaluation.tokenisation.estimators.exact import remembers_all
    from truesource.evaluation.tokenisation.results import DOUBLE, SINGLE

    return SINGLE if remembers_all(model) else DOUBLE
