"""What training and scoring need to know of an architecture."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from transformers import PreTrainedModel

from truesource.generator.language_model import Objective
from truesource.lmtrain.config import ModelConfig
from truesource.lmtrain.tokenizer import Encoder


def positions(config: Any) -> int | None:
    """The length limit that most configurations state themselves."""
    return int(config.max_position_embeddings)


@dataclass(frozen=True)
class Architecture:
    """A family of models of any size; the settings it takes stand in `truesource.lmtrain.model_registry.TAKES`.

    ``build`` must return a `PreTrainedModel` with random weights that takes ``input_ids`` (and
    ``attention_mask``) and returns ``logits`` (B, L, V); nothing may be fetched.

    A causal model must ignore what stands right of a position even without a mask. Called with
    ``use_cache=True`` it also returns ``past_key_values``, to be given back with the tokens that follow: an
    object with ``batch_select_indices(indices)``, which drops or repeats rows in place. It may be changed by
    the call that gets it.
    """

    name: str  #: as in `ModelConfig.architecture`
    objective: Objective
    head: str  #: attribute of the submodule that maps hidden states (..., dim) to logits (..., V)
    build: Callable[[ModelConfig, Encoder], PreTrainedModel]
    model_type: str = ""  #: of its configuration, as `transformers` knows it; the same as ``name`` unless given
    longest: Callable[[Any], int | None] = positions  #: tokens that a model of a configuration reads; None: any number

    def __post_init__(self) -> None:
        if not self.model_type:
            object.__setattr__(self, "model_type", self.name)
