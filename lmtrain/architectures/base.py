"""What training and scoring need to know of an architecture."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from transformers import PreTrainedModel

from generator.language_model import Objective
from lmtrain.config import ModelConfig
from lmtrain.tokenizer import Vocabulary


@dataclass(frozen=True)
class Architecture:
    """A family of models of any size.

    ``build`` must return a `PreTrainedModel` with random weights that takes ``input_ids`` (and
    ``attention_mask``) and returns ``logits``; nothing may be fetched. A causal model must ignore what
    stands right of a position even without a mask.
    """

    name: str  #: as in `ModelConfig.architecture`; equal to the ``model_type`` of its configuration
    objective: Objective
    head: str  #: attribute of the submodule that maps hidden states (..., dim) to logits (..., V)
    build: Callable[[ModelConfig, Vocabulary], PreTrainedModel]
