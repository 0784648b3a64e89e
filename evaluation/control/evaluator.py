"""The evaluator `control`: ways to make sentences satisfy an event, compared with the exact frontier."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from truesource.evaluation.core.evaluator import Evaluator
from truesource.grammar.support.settings import Settings

Number = Annotated[int, Field(ge=1)]
Price = Annotated[float, Field(gt=0.0)]


class ControlSettings(Settings):
    """Decoding and tuning towards events, and the cost in KL; see docs/howto/control.md."""

    repeated: ClassVar = frozenset({"events"})

    events: tuple[str, ...] = Field(
        ("the=3",), min_length=1, description="Events: counts such as the=3, and expressions such as '.* that .*'."
    )
    best_of: tuple[Number, ...] = Field(
        (2, 4, 16, 64), description="Numbers of samples of the truth from which the best is selected."
    )
    filters: tuple[Number, ...] = Field(
        (1, 8), description="Numbers of particles of a filter; one: locally masked decoding."
    )
    filtered: int = Field(100, ge=2, description="Number of sentences that each filter makes.")
    samples: int = Field(1000, ge=10, description="Number of sentences to sample from the model and its copies.")
    prices: tuple[Price, ...] = Field((), description="Prices of KL (beta) at which a copy of the model is tuned.")
    tuning_steps: int = Field(200, ge=1, description="Number of steps of each tuning.")


def check_call(settings: ControlSettings, **_: object) -> None:
    """Refuse wrong events before anything is computed.

    Raises:
        InputError: an event cannot be read.
    """
    from truesource.grammar.tilting.rewards import event_of

    for text in settings.events:
        event_of(text)


CONTROL = Evaluator(
    name="control",
    title="Steering to an event",
    summary="Compare steered models with the exact best trade-off between reward and KL.",
    settings=ControlSettings,
    code=f"{__package__}.report",
    help="""Compare ways to make sentences satisfy an event with the exact frontier of its probability and KL.

    The truth is steered by the best of some samples, by masking words that rule the event out, and by particle filters;
    the model, with --prices, is tuned by REINFORCE with a price on KL. No way can be below the frontier.

    Example: truesource evaluate control model/ corpus/ --events the=3 --events '.* that .*'
    """,
    prose=(
        "An event is a property that a sentence may satisfy or not. Every way to make sentences satisfy it more often"
        " moves away from the original distribution, by at least the KL of the frontier, which is the exact KL of the"
        " tilted truth. Best-of-n lies on the frontier, at the price of samples. Masking words that rule the event out,"
        " word by word, does not: it continues prefixes that make the event improbable. Particle filters correct"
        " this, better with more particles. A tuned model is compared with the model that it was tuned from."
    ),
    needs=("distributions", "words", "stepping"),
    of_truth=("parses",),
    corrected=False,
    draws=True,
    applies=lambda model: model.of_words and model.is_causal,
    then="tilt {grammar} --help",
)
