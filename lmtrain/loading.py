"""The one place where model folders are read: every failure of the libraries is one sentence with the folder.

A folder is what ``save_pretrained`` of a network and of its fast tokeniser wrote: ``config.json``, weights
(``*.safetensors`` or ``pytorch_model*.bin``), ``tokenizer.json`` and ``tokenizer_config.json``.
"""

from __future__ import annotations

import errno
import logging
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from transformers import (
    CONFIG_MAPPING,
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoTokenizer,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)

from truesource.generator.language_model import Objective
from truesource.grammar.support.errors import InputError
from truesource.lmtrain.config_json import read_config_json
from truesource.lmtrain.device import torch_device
from truesource.lmtrain.integrity import require_unchanged
from truesource.lmtrain.model_registry import architecture_of
from truesource.lmtrain.network_size import token_count
from truesource.lmtrain.quiet import no_bars
from truesource.lmtrain.weight_limits import weight_limits

#: tensors that published checkpoints carry for other tasks or for older versions of the library, and that take no part
#: in predicting a token: sentence-pair classifiers, poolers, heads for further tokens, tables that are computed
SUPERFLUOUS = re.compile(
    r"(^|\.)(pooler\..*|cls\.seq_relationship\..*|sop_classifier\..*|mtp\..*|position_ids|masked_bias|attn\.bias"
    r"|attention\.bias|rotary_emb\.inv_freq|embeddings\.token_type_ids)$"
)
_EXHAUSTED = {errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.EIO, errno.ENOSPC}


@contextmanager
def library_errors(problem: str, path: Path) -> Iterator[None]:
    """Turn what the libraries raise inside the block into one sentence.

    Files of others can make them raise any exception, so any is caught, but for what says that the machine has no more
    memory or files to give.

    Args:
        problem: what cannot be done, such as ``the model cannot be loaded``.
        path: of the file or folder.

    Raises:
        InputError: something was raised; an `InputError` passes through as it is.
    """
    try:
        yield
    except (InputError, MemoryError, FloatingPointError):
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.errno in _EXHAUSTED:
            raise
        raise InputError(f"{problem}: {_said(error)}", path) from error


def _said(error: Exception) -> str:
    """What an exception says, on one line of at most 200 characters."""
    text = " ".join(str(error).split())
    said = text if text and not isinstance(error, KeyError) else f"{type(error).__name__} {text}".rstrip()
    return said if len(said) <= 200 else f"{said[:199]}…"


def model_type_of(folder: Path) -> object:
    """What ``config.json`` names the kind of model; None where it cannot be read."""
    try:
        return read_config_json(folder / "config.json").get("model_type")
    except InputError:
        return None


def load_config(folder: Path) -> PreTrainedConfig:
    """The configuration of a network.

    Raises:
        InputError: there is no ``config.json``, it is damaged, or a value in it is impossible.
    """
    if not (folder / "config.json").is_file():
        raise InputError("there is no trained model here; train one, or finish its training", folder)
    record = read_config_json(folder / "config.json")
    architecture_of(record.get("model_type"))  # registers ours with transformers
    if record.get("auto_map") and record.get("model_type") not in CONFIG_MAPPING:
        raise InputError(
            "the model is code in its own folder (auto_map), which is not run; load it in a file of your own and name"
            " that, as file.py:name",
            folder,
            code="needs-code",
        )
    with library_errors("the configuration of the model cannot be used", folder / "config.json"), _quiet():
        config = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    require_unchanged(folder, ["config.json"])
    return config


def load_network(
    folder: Path,
    config: PreTrainedConfig,
    tokenizer: PreTrainedTokenizerFast,
    objective: Objective,
    device: str | None,
) -> PreTrainedModel:
    """A network with exactly the weights of a folder, as 32-bit numbers, ready to be run.

    It is built without memory for its weights first, and no larger than the files of weights: see
    `truesource.lmtrain.weight_limits`. Weights that the configuration ties to others need not be in a file.

    Args:
        folder: with ``config.json`` and weights.
        config: see `load_config`.
        tokenizer: that goes with it, see `load_tokenizer`.
        objective: of the model.
        device: such as ``"cpu"``; None: see `truesource.lmtrain.device`.

    Raises:
        InputError: the weights lack a tensor, hold one that the network does not have or one of another shape (the
            message names it), the configuration asks for more than they hold, a file is damaged, the tokeniser has
            numbers that the network has no vectors for, the network cannot be run, or there is no such device.
    """
    auto: Any = AutoModelForCausalLM if objective == "causal" else AutoModelForMaskedLM
    with library_errors("the model cannot be loaded", folder), _quiet(), weight_limits(folder, config):
        model, info = auto.from_pretrained(
            folder,
            config=config,
            local_files_only=True,
            trust_remote_code=False,
            dtype=torch.float32,
            output_loading_info=True,
            ignore_mismatched_sizes=True,  # refused below, by name
        )
    require_tensors(info["missing_keys"], info["unexpected_keys"], info["mismatched_keys"], folder)
    require_token_numbers(tokenizer, model, folder)
    require_unchanged(folder, ["generation_config.json", *(path.name for path in folder.glob("*.safetensors"))])
    place = torch_device(device)
    with library_errors(f"the model cannot be put on the device {str(place)!r}", folder):
        model = model.to(place).eval()
    with library_errors("the configuration makes a network that cannot be run", folder), torch.inference_mode():
        size = token_count(model)
        model(input_ids=torch.tensor([[size // 2]], device=model.device))
    network: PreTrainedModel = model
    return network


def require_tensors(
    missing: Collection[str],
    unexpected: Collection[str],
    mismatched: Collection[tuple[str, Any, Any]],
    folder: Path,
) -> None:
    """Stop where weights are not those of the network.

    Args:
        missing: tensors of the network that the weights lack.
        unexpected: tensors of the weights that the network does not have.
        mismatched: (name, shape in the weights, shape in the network).
        folder: for the message.

    Raises:
        InputError: there is one of these.
    """
    unread = [name for name in unexpected if SUPERFLUOUS.search(name) is None]
    if missing:
        raise InputError(
            f"the weights lack {_listed(missing)}, so the model would run with random values there;"
            " save it again with all its weights",
            folder,
        )
    if mismatched:
        name, stored, expected = min(mismatched, key=lambda entry: entry[0])
        raise InputError(
            f"{name} is {_shape(stored)} in the weights and {_shape(expected)} by config.json;"
            " the two are of different models",
            folder,
        )
    if unread:
        raise InputError(
            f"the weights hold {_listed(unread)}, which the network of config.json does not have;"
            " the two are of different models",
            folder,
        )


def load_tokenizer(folder: Path) -> PreTrainedTokenizerFast:
    """The tokeniser saved in a folder.

    Raises:
        InputError: there is no ``tokenizer.json``, or it is damaged.
    """
    path = folder / "tokenizer.json"
    if not path.is_file():
        raise InputError(
            "there is no fast tokeniser (tokenizer.json) beside the model; save one there with save_pretrained", folder
        )
    with library_errors("the tokeniser cannot be loaded", path), _quiet():
        Tokenizer.from_file(str(path))
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    if not tokenizer.is_fast:
        raise InputError(
            f"the tokeniser is a {type(tokenizer).__name__}, not a fast one; words need its offsets", folder
        )
    require_unchanged(folder, ["tokenizer.json", "tokenizer_config.json"])
    return tokenizer


def require_token_numbers(
    tokenizer: PreTrainedTokenizerFast, model: PreTrainedModel, folder: Path | None = None
) -> None:
    """Stop where a tokeniser has numbers that a network has no vectors for.

    Args:
        tokenizer: that goes with the network.
        model: the network.
        folder: for the message.

    Raises:
        InputError: the largest number is no row of the word vectors.
    """
    words = token_count(model)
    token, largest = max(tokenizer.get_vocab().items(), key=lambda item: item[1])
    if largest >= words:
        raise InputError(
            f"the tokeniser does not belong to this model: it has token numbers up to {largest} ({token!r}),"
            f" the model {words} word vectors",
            folder,
        )


def _listed(names: Collection[str]) -> str:
    """The first three names, and how many more there are."""
    ordered = sorted(names)
    more = f" and {len(ordered) - 3} more" if len(ordered) > 3 else ""
    return f"the tensor{'s' if len(ordered) > 1 else ''} {', '.join(ordered[:3])}{more}"


def _shape(sizes: Any) -> str:
    return "x".join(map(str, sizes)) or "a single number"


@contextmanager
def _quiet() -> Iterator[None]:
    """Neither bars nor the library's report: what is wrong is said in one sentence here."""
    logger = logging.getLogger("transformers")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        with no_bars():
            yield
    finally:
        logger.setLevel(level)
