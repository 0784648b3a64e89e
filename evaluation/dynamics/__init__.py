"""Learning dynamics: distance of a model's checkpoints from the truth, by kinds of words and of places."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from truesource.grammar.support.settings import Settings

#: ``expected``: a word is divided among tags by its exact posterior given the whole sentence. ``paper``: the tags
#: of the derivation that the sentence was sampled with (Jumelet & Zuidema 2023). ``drawn``: the tags of a sample from
#: the posterior.
Tags = Literal["expected", "paper", "drawn"]
CurvesBy = Literal["class", "length", "position", "frequency", "depth"]


class CurveSettings(Settings):
    """The settings of the curves, and when a group counts as learned."""

    advanced: ClassVar = frozenset({"tags", "threshold", "contexts"})
    by: tuple[CurvesBy, ...] = Field(
        ("class", "length", "position", "frequency", "depth"),
        description="Group tokens by class, sentence length, position, word frequency, depth in the tree.",
    )
    tags: Tags = Field(
        "expected",
        description="Tags of a word: expected (posterior), paper (its tree), drawn (a tree of the posterior).",
    )
    threshold: float = Field(
        0.2, gt=0.0, allow_inf_nan=False, description="Distance from the truth, nats a token, that counts as learned."
    )
    lines: int = Field(3, ge=0, le=20, description="Also show the best predictors that see 0, 1, ..., N - 1 words.")
    contexts: int = Field(
        2000, ge=0, description="Approximate number of positions for the exact KL divergence; 0: no KL."
    )
