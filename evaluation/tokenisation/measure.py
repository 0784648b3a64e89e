"""Choices that the verb and the stage of tokenisation share: which model, which cuts, which sums, which records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from truesource.generator.abilities import offers, require
from truesource.grammar.support.errors import InputError, NothingToMeasureError
from truesource.grammar.support.printable import ResultRecords

if TYPE_CHECKING:
    from truesource.evaluation.core.exclusion import Exclusion
    from truesource.evaluation.core.score import Score
    from truesource.evaluation.core.setting import Setting
    from truesource.evaluation.tokenisation import EstimatorSettings, Proposal
    from truesource.evaluation.tokenisation.decomposition import Decomposition, Shortfall
    from truesource.evaluation.tokenisation.documents import Documents
    from truesource.evaluation.tokenisation.lattice import LatticeBuilder
    from truesource.evaluation.tokenisation.results import Evaluation
    from truesource.evaluation.tokenisation.summaries import MarginalGaps
    from truesource.generator.language_model import LanguageModel
    from truesource.generator.piece_model import PieceTokenizer, TokenisedModel
    from truesource.generator.plan import Transform
    from truesource.grammar.conditioning import LengthRange
    from truesource.grammar.support.arrays import FloatArray
    from truesource.grammar.truth import Truth


#: the first of these that was run stands for log P(D) in gaps; estimates of all cuts first, then what bounds it best,
#: and last what falls short as a rule
MARGINAL: tuple[str, ...] = ("exact", "auto", "bracket", "dpf", "block", "wor1", "wr1")
MARGINAL += ("beam", "nbest", "distinct", "wor", "wr", "guided")


SUMMED = 100  #: sentences that `table_of_sums` sums over


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Measured(ResultRecords):
    """Everything that was measured of one model on some texts."""

    evaluation: Evaluation
    marginal: str  #: label of the run that stands for log P(D)
    ppl: Mapping[str, Mapping[str, Score]]  #: by label; see `truesource.evaluation.tokenisation.summaries`
    gaps: MarginalGaps | None  #: None where one cut is all that was asked for
    canonical: (
        Mapping[str, Score] | None
    )  #: the share of the tokeniser's own cut; None likewise, and where that is too low
    decomposition: Decomposition | None  #: against the truth, where it is known
    seed: int

    @property
    def model(self) -> str:
        """Name of the model."""
        return self.evaluation.model

    @property
    def too_low(self) -> Shortfall | None:
        """Distance of the total for log P(D) below what some run certainly reaches; None: it is not below."""
        from truesource.evaluation.tokenisation.decomposition import below_bounds

        return below_bounds(self.evaluation, self.marginal)

    @property
    def notes(self) -> dict[str, Shortfall]:
        """Runs by label whose standard errors cannot be believed."""
        from truesource.evaluation.tokenisation.decomposition import shortfalls

        return shortfalls(self.evaluation, self.marginal)

    @property
    def warning(self) -> str | None:
        """Warning about the run that stands for log P(D), where its total is certainly too low."""
        if (low := self.too_low) is None:
            return None
        return (
            f"ln P by {low.run}, {self.evaluation.total(low.run).log_p:.3f}, is {low.nats:.3g} nats below what"
            f" {low.below} certainly reaches: what one cut leaves out by it is too small by as much at least, and no"
            " shares are given"
        )

    def records(self) -> list[dict[str, Any]]:
        """One record a number, for JSON: model, run, name, value, low, high, signature; of estimates also ``bound``.

        ``error_too_small`` (nats) is there for runs in `notes`, with ``note`` and ``below``; ``below_bound`` (nats)
        where there is a `warning`, with ``warning`` and ``below``.
        """
        records = []
        notes, too_low = self.notes, self.too_low
        for label, scores in self.evaluation.scores().items():
            head = {"model": self.model, "run": label, "bound": self.evaluation.total(label).bound}
            records += [{**head, **score.as_record()} for score in (*scores, *self.ppl[label].values())]
            if (note := notes.get(label)) is not None:
                records.append({**head, "note": note.note, **self._below("error_too_small", note)})
        if too_low is not None:
            warned = {"model": self.model, "run": self.marginal, "warning": self.warning}
            records.append({**warned, **self._below("below_bound", too_low)})
        if self.gaps is not None:
            records += [
                {"model": self.model, "run": self.marginal, **score.as_record()} for score in self.gaps.scores.values()
            ]
        if self.canonical is not None:
            head = {"model": self.model, "run": self.marginal}
            records += [{**head, **score.as_record()} for score in self.canonical.values()]
        if self.decomposition is not None:
            records += self.decomposition.records(self.seed)
        return records

    def _below(self, name: str, shortfall: Shortfall) -> dict[str, Any]:
        from truesource.evaluation.core.score import Score

        score = Score(name, shortfall.nats, self.evaluation.signed(shortfall.run, below=shortfall.below, unit="nats"))
        return {"below": shortfall.below, **score.as_record()}

    def rows(self) -> list[dict[str, Any]]:
        """One row a document and run: all of the estimate, and the entropy of the document's cuts, nats."""
        rows = self.evaluation.records()
        if self.gaps is not None:
            entropy = dict(zip(self.evaluation.numbers.tolist(), self.gaps.entropy.tolist(), strict=True))
            rows = [{**row, "entropy": entropy[row["document"]]} for row in rows]
        return rows


def check_estimators(names: Sequence[str], samples: int) -> None:
    """Refuse a list of estimators before any work is done.

    Raises:
        InputError: there are none, one is unknown or stands twice, or there are too few samples for one.
    """
    from truesource.evaluation.tokenisation.estimators.registry import ESTIMATORS, check_estimator

    if not names:
        raise InputError(f"name at least one estimator; there are {', '.join(ESTIMATORS)}")
    for name in names:
        check_estimator(name, samples)
    if len(set(names)) < len(names):
        raise InputError(f"an estimator stands twice in {','.join(names)}")


def with_marks(model: Any, before: str | None, end: bool) -> Any:
    """The model with other tokens around a text, where they are asked for.

    Args:
        model: any.
        before: see `truesource.lmtrain.pieces.models.CausalPieceModel.around_texts`.
        end: whether P of a text includes its end.

    Raises:
        InputError: it has no such token, or is no causal network of pieces.
    """
    if before is None and end:
        return model
    return require(model, "marks", "--no-end" if before is None else "--before").around_texts(before=before, end=end)


def require_pieces(model: Any, where: str | Path) -> TokenisedModel:
    """The model, if its probability of a text is a sum over ways to cut it.

    Args:
        model: any.
        where: its reference, for messages.

    Raises:
        InputError: it is masked, or of whole words, or its texts are no joinings of pieces.
    """
    if model.objective != "causal":
        raise NothingToMeasureError(
            "a masked model gives no probability to a text, so there is nothing to add up; use a causal one",
            "masked",
            where,
        )
    tokenised = require(model, "pieces", "evaluate tokenisation")
    try:
        _ = tokenised.pieces
    except InputError as error:
        raise InputError(str(error), where, code="missing-ability") from error
    return tokenised


def builder_for(
    tokenizer: PieceTokenizer, texts: Sequence[str], proposal: Proposal | None
) -> tuple[LatticeBuilder, Proposal]:
    """Lattices with the scores that cuts are drawn and ranked by, and what these scores are.

    Args:
        tokenizer: whose pieces they are.
        texts: scores are fitted to their words.
        proposal: ``own``: the tokeniser's; ``fitted``: by EM on the words of the texts; ``uniform``: 0, all cuts are
            alike; None: the tokeniser's own where it has some, else fitted ones.

    Raises:
        InputError: the tokeniser has no scores of its own.
    """
    from truesource.evaluation.tokenisation.lattice import LatticeBuilder, fit_scores, uniform_scores

    inventory = tokenizer.inventory
    chosen = proposal or ("fitted" if inventory.scores is None else "own")
    if chosen == "own":
        if inventory.scores is None:
            raise InputError(f"a {inventory.kind} tokeniser has no scores of its own; use fitted, or uniform")
        return LatticeBuilder(inventory), chosen
    plain = LatticeBuilder(inventory, uniform_scores(inventory))
    if chosen == "uniform":
        return plain, chosen
    read = [tokenizer.read(text) for text in texts]
    words = Counter(word for text in read if not text.unreadable for word in plain.words(text.spelling))
    return LatticeBuilder(inventory, fit_scores(inventory, words)), chosen


def fitting_documents(model: TokenisedModel, documents: Documents, *, leave_out: bool = False) -> Documents:
    """The documents whose own cut, the tokeniser's, the model can read, looked at once for everything that is run.

    Args:
        model: with its window.
        documents: documents.
        leave_out: set the others aside instead of refusing them.

    Raises:
        InputError: a document is too long and ``leave_out`` is false, or all are.
    """
    from truesource.evaluation.tokenisation.documents import check_window, fitting
    from truesource.evaluation.tokenisation.results import numbered

    if leave_out:
        return fitting(model, documents)
    for number, document in zip(documents.numbers, documents.documents, strict=True):
        with numbered(number):
            check_window(model, document, "divide the text, or leave it out with --leave-out-long")
    return documents


def partly_read(model: TokenisedModel, documents: Documents) -> str | None:
    """One sentence about the documents with cuts that do not fit the model's window; None: there are none."""
    from truesource.evaluation.tokenisation.documents import beyond_window

    if not (some := beyond_window(model, documents.documents)):
        return None
    return (
        f"{some:,} of {len(documents):,} documents have cuts of more than the {model.longest} tokens that {model.name}"
        " reads; their sums are over the cuts that fit, a lower bound of P"
    )


def impossible_exact(model: TokenisedModel, documents: Documents, settings: EstimatorSettings) -> int | None:
    """Number of the first text whose cuts are too many for exact enumeration, from 0; None: there is none.

    Of a model of finite memory (n-grams) that shows only when it is run, so that the answer is None.
    """
    from truesource.evaluation.tokenisation.estimators.exact import remembers_all, too_many_prefixes

    if not remembers_all(model):
        return None
    pairs = zip(documents.numbers, documents.documents, strict=True)
    return next((number for number, document in pairs if too_many_prefixes(document.lattice, settings)), None)


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
    """Run estimators over documents, and set them against the truth where it is known.

    Args:
        model: whose probabilities are summed.
        documents: documents, see `truesource.evaluation.tokenisation.documents`.
        estimators: names.
        settings: of all of them; its seed is that of the bootstraps too.
        proposal: what the scores on the lattices are, for signatures.
        truth: the grammar that the texts, a sentence each, were drawn from.
        lengths: the length condition that they were drawn under.
        per_document: so many consecutive texts are one document for the distance to the truth and its intervals.
        excluded: sentences that the texts leave out, and so does the truth.
        transform: of the texts.

    Raises:
        InputError: as `evaluation.tokenisation.results.evaluate_runs` and `evaluation.tokenisation.decomposition`.
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
    """Measure evaluations of one or several sets of texts, all documents together, without the truth.

    Args:
        evaluations: by name of the set, all of one model with the same runs.
        marginal: label of the run that stands for log P(D).
        settings: with the seed of the bootstraps, and the inverse temperature of entropies.
    """
    from truesource.evaluation.tokenisation.canonical import canonical_mass
    from truesource.evaluation.tokenisation.decomposition import below_bounds
    from truesource.evaluation.tokenisation.estimators.registry import ONE_BEST
    from truesource.evaluation.tokenisation.results import pool
    from truesource.evaluation.tokenisation.summaries import marginal_gaps, perplexities

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
    """Share of log P(D) by which it is off as a rule: n-grams count in double precision, networks in single."""
    from truesource.evaluation.tokenisation.estimators.exact import remembers_all
    from truesource.evaluation.tokenisation.results import DOUBLE, SINGLE

    return SINGLE if remembers_all(model) else DOUBLE


def table_of_sums(model: LanguageModel, setting: Setting, own: FloatArray, number: int = SUMMED) -> FloatArray | None:
    """Scores against the truth by the sum over all segmentations; `score_both` scores the canonical ones alone.

    Exact where segmentations can be enumerated, else by the particle filter, which is unbiased of P, so that its
    logarithms fall short a little. Summed are the first sentences only; what a token gains by it there is taken off
    all (two-phase sampling), so that means, and intervals over sentences, are those of the sum.

    Args:
        model: any.
        setting: text and truth to compare on.
        own: (3, N) the scores of the canonical segmentations, `truesource.evaluation.measures.paired.Paired.table`.
        number: of sentences to sum.

    Returns:
        (3, N) like ``own``. None of a model that is masked, or of whole words, or whose texts are no joinings of
        pieces, and where not all positions count.

    Raises:
        NothingToMeasureError: none of the first sentences has a sum.
    """
    from truesource.evaluation.tokenisation import EstimatorSettings
    from truesource.evaluation.tokenisation.documents import documents
    from truesource.evaluation.tokenisation.results import evaluate_documents
    from truesource.generator.language_model import ScoringFrame

    if not offers(model, "pieces") or setting.frame_of(model.objective) != ScoringFrame():
        return None
    try:
        pieces = require_pieces(model, model.name)
    except InputError:
        return None
    table = own.copy()
    texts = [" ".join(sentence) for sentence in setting.sentences]
    builder, _ = builder_for(pieces.pieces, texts, None)
    read = fitting_documents(pieces, documents(pieces, texts[:number], builder), leave_out=True)
    cheap = EstimatorSettings(seed=setting.seed, candidates=32, particles=16, replicates=2, most_prefixes=2000)
    found = evaluate_documents(pieces, read, ["auto"], cheap)
    scored = table[2, found.numbers] > 0.0
    if not scored.any():
        raise NothingToMeasureError("no sentence has a sum over its segmentations", "no-document")
    summed = found.numbers[scored]
    gain, tokens = (found.log_p("auto") - found.one_best)[scored], table[2, summed]
    rate = gain.sum() / tokens.sum()
    table[0] -= rate * table[2]
    table[0, summed] -= table[2].sum() / tokens.sum() * (gain - rate * tokens)
    return table
