"""Folders of architectures of one's own, read with the code that a person names."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import torch
from pydantic import BaseModel
from safetensors.torch import load_file
from transformers import PreTrainedTokenizerFast

from truesource.grammar.support.errors import InputError
from truesource.grammar.support.records import STRICT, Count, Positive, read_record
from truesource.lmtrain.device import kept_random_states, torch_device
from truesource.lmtrain.loading import (
    library_errors,
    load_tokenizer,
    read_config_json,
    require_tensors,
    require_token_numbers,
)
from truesource.lmtrain.own.architecture import network_of_code
from truesource.lmtrain.own.checks import check_reading
from truesource.lmtrain.own.factory import Factory
from truesource.lmtrain.own.network import OwnNetwork
from truesource.lmtrain.own.settings import OwnSettings
from truesource.lmtrain.own.shared import MODEL_TYPE
from truesource.lmtrain.references import Code
from truesource.lmtrain.training_record import require_unchanged

WEIGHTS = "model.safetensors"
log = logging.getLogger("truesource")


class OwnRecord(BaseModel):
    """What is read of ``config.json``."""

    model_config = STRICT

    vocab_size: Positive
    code: str
    code_digest: str | None = None
    code_settings: dict[str, Any] | None = None
    objective: Literal["causal", "masked"] = "causal"
    max_positions: Positive | None = None
    pad_token_id: Count | None = None
    bos_token_id: Count | None = None
    eos_token_id: Count | None = None


def load_own(folder: Path, code: Code, *, device: str | None = None) -> tuple[OwnNetwork, PreTrainedTokenizerFast]:
    """Load a network of one's own and its tokeniser.

    Args:
        folder: trained here.
        code: that the person names; what the folder says of its code is compared with it, and never run.
        device: such as ``"cpu"``; None: see `truesource.lmtrain.device`.

    Raises:
        InputError: the folder holds no such model (code ``other-model``), the code does not take its settings or makes
            a module of other weights, a file is damaged, or the network fails one of `truesource.lmtrain.own.checks`.
    """
    path = folder / "config.json"
    if not path.is_file():
        raise InputError("there is no trained model here; train one, or finish its training", folder, code="missing")
    if read_config_json(path).get("model_type") != MODEL_TYPE:
        raise InputError(
            "the model of this folder is not an architecture of one's own; name the folder without code before it",
            folder,
            code="other-model",
        )
    record = read_record(path, OwnRecord, what="the configuration of the model", remedy="train the model again")
    require_unchanged(folder, ["config.json"])
    _warn_of_other_code(record, code, folder)
    tokenizer = load_tokenizer(folder)
    with kept_random_states():
        network = _built(record, code)
        _load_weights(network, folder)
        require_token_numbers(tokenizer, network, folder)
        require_unchanged(folder, ["generation_config.json", WEIGHTS])
        place = torch_device(device)
        with library_errors(f"the model cannot be put on the device {str(place)!r}", folder):
            network = network.to(place).eval()
        check_reading(network)
    return network, tokenizer


def code_of(folder: Path) -> str:
    """What the code of a trained folder was called, for messages; it is not run."""
    named = read_config_json(folder / "config.json").get("code")
    return named if isinstance(named, str) and named else "file.py:name"


def _built(record: OwnRecord, code: Code) -> OwnNetwork:
    given = dict(record.code_settings or {})
    settings = OwnSettings(
        **{
            **given,
            "architecture": record.code,
            "objective": record.objective,
            "max_positions": record.max_positions,
        }
    )
    special = {name: getattr(record, name) for name in ("pad_token_id", "bos_token_id", "eos_token_id")}
    return network_of_code(Factory.of(code), settings, record.vocab_size, special)


def _warn_of_other_code(record: OwnRecord, code: Code, folder: Path) -> None:
    if record.code.rpartition(":")[2] != code.name.rpartition(":")[2]:
        log.warning("%s was trained as %s, not as %s", folder, record.code, code.name)
    elif record.code_digest != code.digest:
        log.warning(
            "%s was trained with another version of the code of %s; its numbers may not be those of then",
            folder,
            code.name,
        )


def _load_weights(network: OwnNetwork, folder: Path) -> None:
    path = folder / WEIGHTS
    if not path.is_file():
        raise InputError(f"there are no weights beside config.json ({WEIGHTS}); finish the training", folder)
    with library_errors("the model cannot be loaded", folder):
        stored = load_file(path)
    wanted: Mapping[str, torch.Tensor] = network.state_dict()
    tied = network.all_tied_weights_keys
    missing = [name for name in wanted if name not in stored and tied.get(name, name) not in stored]
    mismatched = [
        (name, tuple(tensor.shape), tuple(wanted[name].shape))
        for name, tensor in stored.items()
        if name in wanted and tensor.shape != wanted[name].shape
    ]
    require_tensors(missing, [name for name in stored if name not in wanted], mismatched, folder)
    network.load_state_dict(stored, strict=False)
