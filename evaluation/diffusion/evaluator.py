"""The evaluator `diffusion`: the cost of a model that fills gaps, and of filling several at once."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from truesource.evaluation.core.evaluator import Evaluator, Measure
from truesource.grammar.support.settings import Settings

Steps = Annotated[int, Field(ge=1)]
MEASURES = (
    Measure("kl", "KL, one word at a time", meaning="nats a sentence; of diffusion the gap of its ELBO"),
    Measure("invalid", "impossible sentences", meaning="share of sampled sentences that the grammar cannot make"),
    Measure("kl_short", "KL of short sentences", meaning="exact likelihood over all orders, nats a sentence"),
    Measure("elbo_gap_short", "ELBO above it", meaning="what the ELBO adds to the exact KL, nats a sentence"),
)


class DiffusionSettings(Settings):
    """Sentences filled in 1, 2, 4, ... steps, by a model and by the truth; see docs/howto/diffusion.md."""

    sentences: int | None = Field(100, ge=2, description="Number of sentences to use, from the first.")
    steps: tuple[Steps, ...] = Field(
        (1, 2, 4, 8), description="Numbers of steps in which a sentence is filled; one word a step is always measured."
    )
    orders: tuple[Literal["random", "confidence", "blocks"], ...] = Field(
        ("random", "confidence", "blocks"),
        min_length=1,
        description="Which words a step fills: any; the surest; or neighbours, from left to right.",
    )
    samples: int = Field(100, ge=0, description="Number of sentences to sample in each way.")
    short: int = Field(
        6, ge=0, le=10, description="Most words of a sentence whose likelihood is summed over all orders."
    )


DIFFUSION = Evaluator(
    name="diffusion",
    title="Sentences filled in step by step",
    summary="Compare a diffusion model with the truth for each number of filling steps.",
    settings=DiffusionSettings,
    code=f"{__package__}.report",
    help="""Compare a diffusion model with the truth, by the number of steps in which a sentence is filled.

    Words that are filled in one step do not see each other, so few steps cost something even with exact probabilities.
    The table has that cost, and the one that the model adds to it. Of a causal model: what compares with both.

    Example: truesource evaluate diffusion model/ corpus/ --figure diffusion.svg
    """,
    prose=(
        "A sampler begins with gaps alone and fills some of them in each step. Words of one step do not see each other:"
        " this has a price even for a perfect model, which is 0 only with one word a step. The rest of the distance"
        " from the truth is the cost of the model itself. All numbers are given the number of words of the sentence;"
        " a causal model also predicts that number, and its KL includes the cost."
    ),
    measures=MEASURES,
    needs=("words",),
    of_truth=("any-order",),
    corrected=False,
    draws=True,
    applies=lambda model: model.of_words and (model.fills_gaps or model.is_causal),
    then="score {model} {corpus}{oracle}",
)
