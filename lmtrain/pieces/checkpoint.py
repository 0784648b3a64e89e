"""Any causal or masked checkpoint with a fast tokeniser, made by whomever, as a model of words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from tokenizers import Tokenizer
from torch import nn
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)
from transformers.models.auto.modeling_auto import (
    MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
    MODEL_FOR_MASKED_LM_MAPPING_NAMES,
)

from generator.language_model import Objective
from grammar.errors import InputError
from lmtrain.architectures import architecture_of
from lmtrain.pieces.models import CausalPieceModel, MaskedPieceModel
from lmtrain.pieces.offsets import OffsetCutter
from lmtrain.quiet import no_bars
from lmtrain.subwords import SubwordVocabulary, is_ours, is_subword


def load_tokenizer(folder: Path) -> PreTrainedTokenizerFast:
    """The tokeniser saved in a folder.

    Raises:
        InputError: there is no ``tokenizer.json``, or it is damaged.
    """
    if not (folder / "tokenizer.json").is_file():
        raise InputError(
            "there is no fast tokeniser (tokenizer.json) beside the model; save one there with save_pretrained", folder
        )
    try:
        Tokenizer.from_file(str(folder / "tokenizer.json"))
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    except Exception as error:  # the library raises Exception itself
        raise InputError(f"the tokeniser cannot be loaded: {_first_line(error)}", folder / "tokenizer.json") from error
    if not tokenizer.is_fast:
        raise InputError(
            f"the tokeniser is a {type(tokenizer).__name__}, not a fast one; words need its offsets", folder
        )
    return tokenizer


def load_checkpoint(
    folder: Path, tokenizer: PreTrainedTokenizerFast, name: str, *, device: str | None = None
) -> CausalPieceModel | MaskedPieceModel:
    """Load a folder made by ``save_pretrained`` of a causal or masked model and its fast tokeniser.

    Weights are read as 32-bit numbers. With a subword tokeniser of ours the text has its ``<bos>`` and ``<eos>``
    around it. With another, a causal model starts from the tokeniser's ``bos`` (else ``cls``) token and ends with
    its ``eos`` (else ``sep``), and a masked one has around the text what the tokeniser puts there.

    Args:
        folder: with ``config.json``, weights, ``tokenizer.json``.
        tokenizer: of that folder, see `load_tokenizer`.
        name: in tables.
        device: such as ``"cpu"``; None: a GPU when there is one.

    Raises:
        InputError: something is absent or damaged, the model is neither causal nor masked, it has no weights for
            a part, or the tokeniser does not belong to it.
    """
    try:
        config = AutoConfig.from_pretrained(folder, local_files_only=True)
    except (OSError, ValueError) as error:
        raise InputError(f"the model cannot be loaded: {_first_line(error)}", folder) from error
    objective = _objective(config, folder)
    auto: Any = AutoModelForCausalLM if objective == "causal" else AutoModelForMaskedLM
    try:
        with no_bars():
            model, info = auto.from_pretrained(
                folder, local_files_only=True, dtype=torch.float32, output_loading_info=True
            )
    except (OSError, ValueError, RuntimeError, SafetensorError) as error:
        raise InputError(f"the model cannot be loaded: {_first_line(error)}", folder) from error
    if info["missing_keys"]:
        missing = sorted(info["missing_keys"])
        raise InputError(f"the checkpoint has no weights for {missing[0]} and {len(missing) - 1} more parts", folder)
    target = device or ("cuda" if torch.cuda.is_available() else "cpu")
    if is_ours(tokenizer) and is_subword(tokenizer) and architecture_of(config.model_type) is not None:
        return subword_model(model.to(target), tokenizer, name)
    kind = CausalPieceModel if objective == "causal" else MaskedPieceModel
    cutter = OffsetCutter(tokenizer, objective)
    loaded = kind(model.to(target), tokenizer, cutter, name, longest=_positions(model, tokenizer))
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
        InputError: the architecture is unknown here, or the tokeniser does not belong to the network.
    """
    architecture = architecture_of(model.config.model_type)
    if architecture is None:
        raise InputError(f"a model of type {model.config.model_type!r} is not an architecture known here")
    kind = CausalPieceModel if architecture.objective == "causal" else MaskedPieceModel
    longest = architecture.longest(model.config)
    return kind(model, tokenizer, SubwordVocabulary(tokenizer), name, head=architecture.head, longest=longest)


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def _objective(config: Any, folder: Path) -> Objective:
    name = (getattr(config, "architectures", None) or ["nothing"])[0]
    if name in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.values():
        return "causal"
    if name in MODEL_FOR_MASKED_LM_MAPPING_NAMES.values():
        return "masked"
    architecture = architecture_of(config.model_type)
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
    size = model.get_input_embeddings().weight.shape[0]
    ids = torch.arange(8, device=model.device).remainder(size)[None]
    other = ids.clone()
    other[0, -1] = (other[0, -1] + 1) % size
    with torch.inference_mode():
        one, two = (model.eval()(input_ids=x).logits[0, :-1].double() for x in (ids, other))
    return bool((one - two).abs().max() > 1e-5 * one.abs().max().clamp(min=1.0))
