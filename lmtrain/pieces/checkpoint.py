"""Any causal or masked checkpoint with a fast tokeniser, made by whomever, as a model of words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerFast
from transformers.models.auto.modeling_auto import (
    MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
    MODEL_FOR_MASKED_LM_MAPPING_NAMES,
)

from truesource.generator.language_model import Objective
from truesource.grammar.support.errors import InputError
from truesource.lmtrain.loading import load_network
from truesource.lmtrain.model_registry import network_of
from truesource.lmtrain.network_size import token_count
from truesource.lmtrain.pieces.models import CausalPieceModel, MaskedPieceModel
from truesource.lmtrain.pieces.offsets import OffsetAligner
from truesource.lmtrain.subwords import SubwordVocabulary, is_ours, is_subword


def load_checkpoint(
    folder: Path,
    config: PreTrainedConfig,
    tokenizer: PreTrainedTokenizerFast,
    name: str,
    *,
    device: str | None = None,
) -> CausalPieceModel | MaskedPieceModel:
    """Load a folder made by ``save_pretrained`` of a causal or masked model and its fast tokeniser.

    Weights are read as 32-bit numbers. With a subword tokeniser of ours the text has its ``<bos>`` and ``<eos>``
    around it. With another, a causal model starts from the tokeniser's ``bos`` (else ``cls``) token and ends with
    its ``eos`` (else ``sep``), and a masked one has around the text what the tokeniser puts there.

    Args:
        folder: with ``config.json``, weights, ``tokenizer.json``.
        config: of that folder, see `truesource.lmtrain.loading.load_config`.
        tokenizer: of that folder, see `truesource.lmtrain.loading.load_tokenizer`.
        name: in tables.
        device: such as ``"cpu"``; None: a GPU when there is one.

    Raises:
        InputError: something is absent or damaged, the model is neither causal nor masked, its weights are not those
            of its configuration (see `lmtrain.loading.load_network`), or the tokeniser does not belong to it.
    """
    objective = objective_of(config, folder)
    model = load_network(folder, config, tokenizer, objective, device)
    if is_ours(tokenizer) and is_subword(tokenizer) and network_of(config) is not None:
        return subword_model(model, tokenizer, name)
    kind = CausalPieceModel if objective == "causal" else MaskedPieceModel
    aligner = OffsetAligner(tokenizer, objective)
    loaded = kind(model, tokenizer, aligner, name, longest=_positions(model, tokenizer))
    if objective == "causal" and _sees_ahead(loaded.model):
        raise InputError(
            "this causal model reads what stands right of the word it predicts; it cannot be scored", folder
        )
    return loaded


def subword_model(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, name: str
) -> CausalPieceModel | MaskedPieceModel:
    """A network of one of our architectures with a subword tokeniser made here.

    Raises:
        InputError: the architecture is unknown here.
    """
    architecture = network_of(model.config)
    if architecture is None:
        raise InputError(f"a model of type {model.config.model_type!r} is not an architecture known here")
    kind = CausalPieceModel if architecture.objective == "causal" else MaskedPieceModel
    longest = architecture.longest(model.config)
    return kind(model, tokenizer, SubwordVocabulary(tokenizer), name, head=architecture.head, longest=longest)


def objective_of(config: Any, folder: Path) -> Objective:
    """What a checkpoint was trained for, by the class that its configuration names.

    Raises:
        InputError: neither to predict the next token nor masked ones.
    """
    name = (getattr(config, "architectures", None) or ["nothing"])[0]
    if name in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.values():
        return "causal"
    if name in MODEL_FOR_MASKED_LM_MAPPING_NAMES.values():
        return "masked"
    architecture = network_of(config)
    if architecture is not None and name.endswith(("LMHeadModel", "ForCausalLM", "ForMaskedLM")):
        return architecture.objective
    raise InputError(f"the checkpoint holds a {name}, which is neither a causal nor a masked language model", folder)


def _positions(model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast) -> int | None:
    """The most tokens that the network and its tokeniser take; None: any number."""
    limits = [int(tokenizer.model_max_length)]
    stated = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    if stated is not None and stated > 0:
        limits.append(int(stated))
    for name, module in model.named_modules():  # some tables of positions start after the number of <pad>
        if name.endswith("position_embeddings") and isinstance(module, nn.Embedding) and module.padding_idx is not None:
            limits.append(module.num_embeddings - module.padding_idx - 1)
    return min(limits) if min(limits) < 10**9 else None


def _sees_ahead(model: PreTrainedModel) -> bool:
    """Whether the logits of a causal model change with a token further right."""
    size = token_count(model)
    ids = torch.arange(8, device=model.device).remainder(size)[None]
    other = ids.clone()
    other[0, -1] = (other[0, -1] + 1) % size
    with torch.inference_mode():
        one, two = (model.eval()(input_ids=x).logits[0, :-1].double() for x in (ids, other))
    return bool((one - two).abs().max() > 1e-5 * one.abs().max().clamp(min=1.0))
