"""The evaluator `beliefs`: beliefs of a perfect predictor, read from the layers of a network."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from truesource.evaluation.core.evaluator import Evaluator
from truesource.grammar.support.settings import Settings

Target = Literal["state", "preterminal", "open", "depth", "next-word", "outside", "inside-outside"]


class BeliefSettings(Settings):
    """Exact beliefs read from the layers of networks by linear maps; see docs/howto/beliefs.md."""

    advanced: ClassVar = frozenset({"untrained", "pairs"})
    kinds: tuple[Target, ...] | None = Field(
        None,
        min_length=1,
        description="Beliefs: state, preterminal, open, depth, next-word; outside, inside-outside.",
    )
    layers: tuple[Annotated[int, Field(ge=0)], ...] | None = Field(
        None, min_length=1, description="Layers to probe (default: all); 0: the word vectors."
    )
    last_words: int = Field(2, ge=1, le=6, description="Compare with the mean belief after the same 1, 2, ... words.")
    untrained: bool = Field(True, description="Compare with the same network with random weights.")
    pairs: int = Field(200, ge=0, description="Pairs of prefixes, one of which gets the belief of the other; 0: none.")
    sentences: int | None = Field(1000, ge=10, description="Number of sentences to use, from the first.")

    @model_validator(mode="after")
    def _named_once(self) -> Self:
        for name in ("kinds", "layers"):
            values = getattr(self, name)
            if values is not None and len(set(values)) < len(values):
                raise ValueError(f"{name}: name each once")
        return self


BELIEFS = Evaluator(
    name="beliefs",
    title="Beliefs in the layers",
    summary="Read from the layers of a network what a perfect predictor knows.",
    settings=BeliefSettings,
    code=f"{__package__}.report",
    help="""Read from the layers of a network what a perfect predictor knows, by linear maps.

    R2 is the share of the variance of the exact belief that a map explains in other sentences. It is compared with an
    untrained network, the last words, and the model's own probabilities of the next word.

    Example: truesource evaluate beliefs model/ corpus/ --oracle mess3 --figure beliefs.svg
    """,
    of_truth=("parses",),
    draws=True,
    applies=lambda model: model.is_network,
    needs=("hidden-states",),
    then="evaluate probing {model} {corpus}{oracle}",
)
