"""The truth of a text with its words in another order: see `truesource.generator.plan`."""

from __future__ import annotations

from truesource.generator.abilities import require
from truesource.generator.language_model import ScoringFrame
from truesource.generator.objectives import Objective
from truesource.generator.plan import Transform
from truesource.grammar.support.errors import NothingToMeasureError
from truesource.grammar.truth import Truth


def text_grammar(truth: Truth, transform: Transform | None) -> tuple[Truth, Transform | None]:
    """Return the truth of a transformed text and its remaining transform; None if the text has a grammar.

    Args:
        truth: that the original sentences were drawn from.
        transform: of the text; None: no transform.

    Raises:
        InputError: there is a transform, and the truth has no rules.
    """
    if transform is None:
        return truth, None
    pcfg = require(truth, "parses", "another order of words (transform)")
    mirrored = transform.grammar(pcfg)
    return (pcfg, transform) if mirrored is None else (mirrored, None)


def original_digest(truth: Truth) -> str:
    """Return the digest of the grammar that the original sentences were drawn from."""
    record = truth.meta.get("transform")
    return truth.digest if record is None else str(record["original"])


def of_sentences(transform: Transform | None, objective: Objective) -> bool:
    """Return True if only whole sentences have a truth, not each token."""
    return transform is not None and objective == "causal"


def transform_parts(truth: Truth, transform: Transform | None, objective: Objective) -> dict[str, object]:
    """Return parts of signatures on a transformed text; none for others."""
    record = truth.meta.get("transform")
    if record is not None:
        return {"transform": record["spec"], "truth": "token"}
    if transform is None:
        return {}
    return {"transform": str(transform), "truth": "sentence" if of_sentences(transform, objective) else "token"}


def require_tokens(transform: Transform | None, objective: Objective, what: str) -> None:
    """Refuse a measure of tokens if only whole sentences have a truth.

    Args:
        transform: of the text.
        objective: of the truth.
        what: name of the measure, for the message.

    Raises:
        NothingToMeasureError: ``sentence-truth``.
    """
    if of_sentences(transform, objective):
        raise NothingToMeasureError(
            f"{what} needs the exact probability of each token given those before it, but of text transformed by"
            f" {transform} only whole sentences and masked tokens have exact probabilities; use bound, score, evaluate"
            " pplu or a masked model, or take the transform reversal",
            "sentence-truth",
        )


def require_order(transform: Transform | None, what: str) -> None:
    """Refuse what is not defined on transformed text, whatever the objective.

    Raises:
        NothingToMeasureError: ``transformed``.
    """
    if transform is not None:
        raise NothingToMeasureError(
            f"{what} needs text in the order of a grammar, but this text is transformed by {transform}; use bound,"
            " score, evaluate pplu or evaluate divergence (masked models), or take the transform reversal",
            "transformed",
        )


def require_whole(transform: Transform | None, objective: Objective, frame: ScoringFrame) -> None:
    """Refuse a frame that excludes positions if only whole sentences have a truth.

    Raises:
        NothingToMeasureError: ``sentence-truth``.
    """
    if frame != ScoringFrame():
        require_tokens(transform, objective, "a frame that leaves out positions")
