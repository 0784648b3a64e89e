"""What training and scoring need of an architecture: a network to train, or a way to count."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from transformers import PreTrainedModel, PreTrainedTokenizerFast

from truesource.generator.columns import CodedSentences
from truesource.generator.language_model import Objective
from truesource.lmtrain.config import ModelConfig
from truesource.lmtrain.tokenizer import Encoder

SettingsType = TypeVar("SettingsType", bound=ModelConfig)


def positions(config: Any) -> int | None:
    """The length limit that most configurations state themselves."""
    return int(config.max_position_embeddings)


@dataclass(frozen=True)
class NetworkArchitecture(Generic[SettingsType]):
    """A family of networks of any size.

    ``build`` must return a `PreTrainedModel` with random weights that takes ``input_ids`` (and
    ``attention_mask``) and returns ``logits`` (B, L, V); nothing may be fetched.

    A causal model must ignore what stands right of a position even without a mask. Called with
    ``use_cache=True`` it also returns ``past_key_values``, to be given back with the tokens that follow: an
    object with ``batch_select_indices(indices)``, which drops or repeats rows in place. It may be changed by
    the call that gets it.
    """

    settings: type[SettingsType]
    head: str  #: attribute of the submodule that maps hidden states (..., dim) to logits (..., V)
    build: Callable[[SettingsType, Encoder], PreTrainedModel]
    longest: Callable[[Any], int | None] = positions  #: tokens that a model of a configuration reads; None: any number

    @property
    def objective(self) -> Objective:
        """What it predicts from."""
        return self.settings.objective


@dataclass(frozen=True)
class CountingArchitecture(Generic[SettingsType]):
    """Models that learn by counting.

    ``train(settings, train_split, dev_split, record, folder, monitor, tokenizer)`` writes the finished model folder;
    ``record`` is what ``training.json`` says of the call, ``tokenizer`` one of another text, None for one of the train
    split. ``load(folder)`` reads it.
    """

    settings: type[SettingsType]
    train: Callable[
        [
            SettingsType,
            CodedSentences,
            CodedSentences,
            dict[str, Any],
            Path,
            Callable[[Any], Mapping[str, float]] | None,
            PreTrainedTokenizerFast | None,
        ],
        None,
    ]
    load: Callable[[Path], Any]


AnyArchitecture = NetworkArchitecture[Any] | CountingArchitecture[Any]
