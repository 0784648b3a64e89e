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
