"""Scores against the truth from sums over all segmentations of the first sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from truesource.evaluation.tokenisation.preparation import builder_for, fitting_documents, require_pieces
from truesource.generator.abilities import offers
from truesource.grammar.support.arrays import FloatArray, IntArray
from truesource.grammar.support.errors import InputError, NothingToMeasureError

if TYPE_CHECKING:
    from truesource.evaluation.core.setting import Setting
    from truesource.generator.language_model import LanguageModel


SUMMED = 100  #: number of sentences that `table_of_sums` sums over


class Gains(NamedTuple):
    """The gains of log probability of sentences from sums over all segmentations."""

    sentence: IntArray  #: (N,) number of each
    nats: FloatArray  #: (N,) at least 0, but for the error of a particle filter


def gains_of_sums(model: LanguageModel, setting: Setting, number: int = SUMMED) -> Gains | None:
    """Sum the first sentences over all their segmentations.

    Sums are exact if segmentations can be enumerated, else from the particle filter, which is unbiased for P, so its
    logarithms are slightly low.

    Args:
        model: any model.
        setting: its first sentences are summed.
        number: number of sentences to sum.

    Returns:
        None if the model is masked, or of whole words, or its texts are not concatenations of pieces.
    """
    from truesource.evaluation.tokenisation import EstimatorSettings
    from truesource.evaluation.tokenisation.documents import documents
    from truesource.evaluation.tokenisation.results import evaluate_documents

    if not offers(model, "pieces"):
        return None
    try:
        pieces = require_pieces(model, model.name)
    except InputError:
        return None
    texts = [" ".join(sentence) for sentence in setting.sentences]
    builder, _ = builder_for(pieces.pieces, texts, None)
    read = fitting_documents(pieces, documents(pieces, texts[:number], builder), leave_out=True)
    cheap = EstimatorSettings(seed=setting.seed, candidates=32, particles=16, replicates=2, most_prefixes=2000)
    evaluation = evaluate_documents(pieces, read, ["auto"], cheap)
    return Gains(evaluation.numbers, evaluation.log_p("auto") - evaluation.one_best)


def table_of_sums(model: LanguageModel, setting: Setting, own: FloatArray, number: int = SUMMED) -> FloatArray | None:
    """Score against the truth by sums over all segmentations; `score_both` scores only canonical ones.

    Only the first sentences are summed, see `gains_of_sums`; their mean gain per token is subtracted from
    all tokens (two-phase sampling), so means, and intervals over sentences, estimate the sum.

    Args:
        model: any model.
        setting: text and truth to compare on.
        own: scores of the canonical segmentations, (3, N), `truesource.evaluation.measures.paired.Paired.table`.
        number: number of sentences to sum.

    Returns:
        Scores (3, N) like ``own``. None if the model is masked, or of whole words, or its texts are not concatenations
        of pieces, or if not all positions count.

    Raises:
        NothingToMeasureError: none of the first sentences has a sum.
    """
    from truesource.generator.language_model import ScoringFrame

    if setting.frame_of(model.objective) != ScoringFrame():
        return None
    gains = gains_of_sums(model, setting, number)
    if gains is None:
        return None
    table = own.copy()
    scored = table[2, gains.sentence] > 0.0
    if not scored.any():
        raise NothingToMeasureError("no sentence has a sum over its segmentations", "no-document")
    summed, gain = gains.sentence[scored], gains.nats[scored]
    tokens = table[2, summed]
    rate = gain.sum() / tokens.sum()
    table[0] -= rate * table[2]
    table[0, summed] -= table[2].sum() / tokens.sum() * (gain - rate * tokens)
    return table
