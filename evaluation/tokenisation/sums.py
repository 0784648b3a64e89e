"""Scores against the truth by the sum over all segmentations of the first sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from truesource.evaluation.tokenisation.preparation import builder_for, fitting_documents, require_pieces
from truesource.generator.abilities import offers
from truesource.grammar.support.errors import InputError, NothingToMeasureError

if TYPE_CHECKING:
    from truesource.evaluation.core.setting import Setting
    from truesource.generator.language_model import LanguageModel
    from truesource.grammar.support.arrays import FloatArray


SUMMED = 100  #: sentences that `table_of_sums` sums over


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
