"""The evaluator `context`: a model compared with the best predictors that see k words."""

from __future__ import annotations

from pydantic import Field

from truesource.evaluation.core.evaluator import Evaluator, Measure
from truesource.grammar.support.settings import Settings

MEASURES = (
    Measure("loss", "loss of the model", meaning="mean of -ln Q of the tokens, nats a token"),
    Measure("loss_truth", "loss of the truth", meaning="the smallest possible, nats a token"),
    Measure(
        "excess_entropy",
        "excess entropy",
        meaning="sum over the lines of their loss above the truth, nats: a lower bound",
    ),
    Measure("words_passed", "line passed", ",", meaning="greatest k whose line the model is below, interval included"),
    Measure("effective_context", "effective context", ".0f", meaning="the k of the nearest predictor, by KL(P_k‖Q)"),
)


class ContextSettings(Settings):
    """The words that a model uses, by the best predictors that see 0, 1, 2, ... words; see docs/howto/context.md."""

    sentences: int | None = Field(300, ge=2, description="Number of sentences to use, from the first.")
    lines: int = Field(5, ge=1, le=21, description="Also show the best predictors that see 0, 1, ..., N - 1 words.")
    placed: bool = Field(False, description="The predictors know the position of the token, too (slower).")


CONTEXT = Evaluator(
    name="context",
    title="How many words a model uses",
    summary="Compare a model with the best predictors that see 0, 1, 2, ... words.",
    settings=ContextSettings,
    code=f"{__package__}.report",
    help="""Compare a model with the best possible predictors that see 0, 1, 2, ... words before a token, and no more.

    A model below the line of k words must use more than k; one above it makes no full use of k.

    Example: truesource evaluate context model/ corpus/ --lines 5 --figure context.svg
    """,
    prose=(
        "No predictor that sees k words before a token has a smaller loss than the line of k words. A model below that"
        " line uses more than k words; one above it does not make full use of them. KL(P_k‖Q) is the distance of the"
        " model from the best predictor of k words: it is smallest for the predictor that the model resembles most."
    ),
    measures=MEASURES,
    needs=("distributions",),
    in_words=True,
    of_truth=("windows",),
    corrected=False,
    draws=True,
    applies=lambda model: model.is_causal,
    then="evaluate divergence {model} {corpus}{oracle}",
)
