"""The evaluator `probing`."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from truesource.evaluation.core.evaluator import Evaluator
from truesource.evaluation.probing import Given, Kind, ProbeSettings, Truth


class ProbingSettings(ProbeSettings):
    """The settings of linear probes on the layers of networks; see docs/howto/probing.md."""

    advanced: ClassVar = frozenset({"right", "given", "checkpoints", "pieces", "correlations"})
    targets: tuple[Kind, ...] = Field(
        ("tag",),
        min_length=1,
        description="What probes predict: tag, state (nonterminal), span (phrase label).",
    )
    right: Truth = Field(
        "argmax",
        description="The right label: the most probable one, or the label of a tree from the posterior.",
    )
    given: Given = Field(
        "sentence", description="Posterior given the whole sentence, or (causal models) the words up to this one."
    )
    layers: tuple[Annotated[int, Field(ge=0)], ...] | None = Field(
        None, min_length=1, description="Layers to probe (default: all); 0: the word vectors."
    )
    checkpoints: Literal["last", "all"] = Field(
        "all", description="Probe only the finished model, or also its snapshots if it has any."
    )
    pieces: Literal["last", "mean"] = Field(
        "last", description="Representation of a word in models of pieces: its last piece, or the mean of all."
    )
    correlations: bool = Field(
        True, description="Correlate the probabilities that probes compute with the probabilities of the words."
    )
    sentences: int | None = Field(1000, ge=3, description="Number of sentences to use, from the first.")

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.given == "left" and "span" in self.targets:
            raise ValueError("given: spans only have a posterior given the whole sentence; use sentence")
        if self.layers is not None and len(set(self.layers)) < len(self.layers):
            raise ValueError("layers: name each layer once")
        return self


PROBING = Evaluator(
    name="probing",
    title="What the layers know",
    summary="Train linear probes on the layers of a network.",
    settings=ProbingSettings,
    code=f"{__package__}.report",
    help="""Train linear probes on the hidden states of a network, and measure how much of the grammar they recover.

    Probes learn the exact posterior of each label, and are compared with it.

    Example: truesource evaluate probing model/ corpus/ --targets tag,span
    """,
    of_truth=("parses",),
    draws=True,
    whole_models=False,
    applies=lambda model: model.is_network,
    then="evaluate dynamics {model} {corpus}{oracle}",
    width=130,
)
