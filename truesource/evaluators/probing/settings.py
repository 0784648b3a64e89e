"""What can be set of the evaluator `probing`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from truesource.grammar.settings import Settings


class ProbingSettings(Settings):
    """Linear probes on the layers of the networks, against the exact posterior; see docs/probing.md."""

    targets: list[Literal["tag", "state", "span"]] = Field(["tag"], min_length=1)
    sentences: int | None = Field(1000, ge=3)  #: the first so many of the split that is evaluated; None: all
    checkpoints: Literal["last", "all"] = "all"  #: all: also the snapshots of models that kept some
    split_by: Literal["type", "position"] = "type"  #: no word type is in two parts; or 80/10/10 of the text
    soft: bool = True  #: train on the exact posterior; false: on the right label alone
    right: Literal["argmax", "sampled"] = "argmax"  #: the most probable label, or that of a tree drawn
    control: Literal["tokens", "split", "none"] = "tokens"  #: split on which selectivity is measured
    mdl: bool = True  #: also the minimum description length
    correlations: bool = True  #: of probe and word probabilities
    pieces: Literal["last", "mean"] = "last"  #: of models of pieces: what stands for a word
