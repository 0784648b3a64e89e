"""Preparation of a measurement: a model of pieces, the lattices of a tokeniser, and the texts that fit the model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from truesource.generator.abilities import require
from truesource.grammar.support.errors import InputError, NothingToMeasureError

if TYPE_CHECKING:
    from truesource.evaluation.tokenisation import EstimatorSettings, Proposal
    from truesource.evaluation.tokenisation.documents import Documents
    from truesource.evaluation.tokenisation.lattice import LatticeBuilder
    from truesource.generator.piece_model import PieceTokenizer, TokenisedModel


def with_marks(model: Any, before: str | None, end: bool) -> Any:
    """Return the model with other tokens around a text, if requested.

    Args:
        model: any model.
        before: see `truesource.lmtrain.pieces.models.CausalPieceModel.around_texts`.
        end: True if P of a text includes its end.

    Raises:
        InputError: the model has no such token, or is not a causal network of pieces.
    """
    if before is None and end:
        return model
    return require(model, "marks", "--no-end" if before is None else "--before").around_texts(before=before, end=end)


def require_pieces(model: Any, where: str | Path) -> TokenisedModel:
    """Return the model if its probability of a text is a sum over segmentations.

    Args:
        model: any model.
        where: reference of the model, for messages.

    Raises:
        InputError: the model is masked, or of whole words, or its texts are not concatenations of pieces.
    """
    if model.objective != "causal":
        raise NothingToMeasureError(
            "a masked model gives no probability to a text, so sums are not defined; use a causal model",
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
    """Return the lattice builder with the scores that rank segmentations, and the kind of these scores.

    Args:
        tokenizer: tokeniser with the pieces.
        texts: texts whose words scores are fitted to.
        proposal: ``own``: scores of the tokeniser; ``fitted``: by EM on the words of the texts; ``uniform``: 0 for all
            pieces; None: scores of the tokeniser if it has some, else fitted ones.

    Raises:
        InputError: the tokeniser has no scores.
    """
    from truesource.evaluation.tokenisation.lattice import LatticeBuilder, fit_scores, uniform_scores

    inventory = tokenizer.inventory
    chosen = proposal or ("fitted" if inventory.scores is None else "own")
    if chosen == "own":
        if inventory.scores is None:
            raise InputError(f"a {inventory.kind} tokeniser has no scores; use fitted or uniform ones")
        return LatticeBuilder(inventory), chosen
    plain = LatticeBuilder(inventory, uniform_scores(inventory))
    if chosen == "uniform":
        return plain, chosen
    read = [tokenizer.read(text) for text in texts]
    words = Counter(word for text in read if not text.unreadable for word in plain.words(text.spelling))
    return LatticeBuilder(inventory, fit_scores(inventory, words)), chosen


def fitting_documents(model: TokenisedModel, documents: Documents, *, leave_out: bool = False) -> Documents:
    """Select the documents whose canonical tokenisation the model can read, once for all runs.

    Args:
        model: model with its window.
        documents: the documents.
        leave_out: exclude the others instead of refusing them.

    Raises:
        InputError: a document is too long and ``leave_out`` is false, or all are.
    """
    from truesource.evaluation.tokenisation.documents import check_window, fitting
    from truesource.evaluation.tokenisation.results import numbered

    if leave_out:
        return fitting(model, documents)
    for number, document in zip(documents.numbers, documents.documents, strict=True):
        with numbered(number):
            check_window(model, document, "divide the text, or exclude it with --leave-out-long")
    return documents


def partly_read(model: TokenisedModel, documents: Documents) -> str | None:
    """Describe how many documents have segmentations that do not fit the model's window; None if there are none."""
    from truesource.evaluation.tokenisation.documents import beyond_window

    if not (some := beyond_window(model, documents.documents)):
        return None
    return (
        f"{some:,} of {len(documents):,} documents have segmentations of over {model.longest} tokens, which"
        f" {model.name} cannot read; their sums are over the segmentations that fit, a lower bound of P"
    )


def impossible_exact(model: TokenisedModel, documents: Documents, settings: EstimatorSettings) -> int | None:
    """Return the number of the first text with too many segmentations to enumerate, from 0; None if all fit.

    For a model of finite memory (n-grams), only a run shows this, so the result is then empty.
    """
    from truesource.evaluation.tokenisation.estimators.exact import remembers_all, too_many_prefixes

    if not remembers_all(model):
        return None
    pairs = zip(documents.numbers, documents.documents, strict=True)
    return next((number for number, document in pairs if too_many_prefixes(document.lattice, settings)), None)
