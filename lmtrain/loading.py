"""The one place where model folders are read: every failure of the libraries is one sentence with the folder.

A folder is what ``save_pretrained`` of a network and of its fast tokeniser wrote: ``config.json``, weights
(``*.safetensors`` or ``pytorch_model*.bin``), ``tokenizer.json`` and ``tokenizer_config.json``.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.nn.modules import module as registration
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

from truesource.generator.objectives import Objective
from truesource.grammar.support.errors import InputError
from truesource.lmtrain.architectures import networks  # noqa: F401 - registers ours with transformers
from truesource.lmtrain.device import torch_device
from truesource.lmtrain.folders import library_errors, quiet, read_config_json, read_tokenizer
from truesource.lmtrain.own.shared import MODEL_TYPE
from truesource.lmtrain.training_record import require_unchanged, require_weights

#: tensors that published checkpoints carry for other tasks or for older versions of the library, and that take no part
#: in predicting a token: sentence-pair classifiers, poolers, heads for further tokens, tables that are computed
SUPERFLUOUS = re.compile(
    r"(^|\.)(pooler\..*|cls\.seq_relationship\..*|sop_classifier\..*|mtp\..*|position_ids|masked_bias|attn\.bias"
    r"|attention\.bias|rotary_emb\.inv_freq|embeddings\.token_type_ids)$"
)


def load_config(folder: Path) -> PreTrainedConfig:
    """Return the configuration of a network.

    Raises:
        InputError: there is no ``config.json``, it is damaged, or a value in it is impossible.
    """
    if not (folder / "config.json").is_file():
        raise InputError("there is no trained model here; train one, or finish its training", folder)
    record = read_config_json(folder / "config.json")
    if record.get("auto_map") and record.get("model_type") not in CONFIG_MAPPING:
        raise InputError(
            "the model is code in its own folder (auto_map), which is not run; load it in a file of your own and name"
            " that, as file.py:name",
            folder,
            code="needs-code",
        )
    with library_errors("the configuration of the model cannot be used", folder / "config.json"), quiet():
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
    """Return a network with exactly the weights of a folder, as 32-bit numbers, ready to be run.

    It is built without memory for its weights first, and no larger than the files of weights: see
    `weight_limits`. Weights that the configuration ties to others need not be in a file.

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
    with library_errors("the model cannot be loaded", folder), quiet(), weight_limits(folder, config):
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
    drop_padding(tokenizer, token_count(model))
    require_token_numbers(tokenizer, model, folder)
    require_unchanged(folder, ["generation_config.json"])
    require_weights(folder)
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
    """Refuse weights of another network.

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


def _listed(names: Collection[str]) -> str:
    """Return the first three names, and how many more there are."""
    ordered = sorted(names)
    more = f" and {len(ordered) - 3} more" if len(ordered) > 3 else ""
    return f"the tensor{'s' if len(ordered) > 1 else ''} {', '.join(ordered[:3])}{more}"


def _shape(sizes: Any) -> str:
    return "x".join(map(str, sizes)) or "a single number"


def load_tokenizer(folder: Path) -> PreTrainedTokenizerFast:
    """Return the tokeniser saved in a folder, of the class that it names.

    Raises:
        InputError: as `truesource.lmtrain.folders.read_tokenizer`.
    """
    return read_tokenizer(folder, AutoTokenizer)


def require_token_numbers(
    tokenizer: PreTrainedTokenizerFast, model: PreTrainedModel, folder: Path | None = None
) -> None:
    """Refuse a tokeniser with numbers that a network has no vectors for.

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


def drop_padding(tokenizer: PreTrainedTokenizerFast, words: int) -> None:
    """Take a padding token out of a tokeniser, in place, if the network has no vector for it; padding is never scored.

    Args:
        tokenizer: of a checkpoint, to which the padding token was added after training.
        words: vectors that the network has.
    """
    beyond = {token for token, number in tokenizer.get_vocab().items() if number >= words}
    if beyond != {tokenizer.pad_token}:
        return
    content = json.loads(tokenizer.backend_tokenizer.to_str())
    content["added_tokens"] = [token for token in content["added_tokens"] if token["content"] not in beyond]
    content["padding"] = None
    tokenizer.pad_token = None
    tokenizer._tokenizer = Tokenizer.from_str(json.dumps(content))


def token_count(model: PreTrainedModel) -> int:
    """Return the number of tokens that a network has vectors for; for a custom architecture, its logits."""
    if model.config.model_type == MODEL_TYPE:
        return int(model.config.vocab_size)
    return int(model.get_input_embeddings().weight.shape[0])


@contextmanager
def weight_limits(folder: Path, config: PreTrainedConfig) -> Iterator[None]:
    """Let networks be built inside the block only as far as the weights in ``folder`` can fill them.

    A configuration can ask for any number of layers and any width. A network is built before its weights are read, so a
    wrong number costs memory or time without end: building stops as soon as it is more than the files can fill. Tensors
    are built without memory, on the device ``meta``, as in ``from_pretrained``.

    Args:
        folder: with the weights.
        config: says whether they are quantised.

    Raises:
        InputError: there are no weights, or a network became too large.
        SafetensorError: a file of weights is damaged.
    """
    count = _BuildCounter(StoredWeights.of(folder), getattr(config, "quantization_config", None) is not None, folder)
    with ExitStack() as stack:
        for register, hook in (
            (registration.register_module_parameter_registration_hook, count.parameter),
            (registration.register_module_buffer_registration_hook, count.buffer),
            (registration.register_module_module_registration_hook, count.module),
        ):
            stack.callback(register(hook).remove)
        yield


@dataclass(frozen=True)
class StoredWeights:
    """Upper bounds on the content of files of weights."""

    tensors: int
    numbers: int

    @classmethod
    def of(cls, folder: Path) -> StoredWeights:
        """Read the heads of the files, no weights.

        Raises:
            InputError: there are no weights.
            SafetensorError: a file is damaged.
        """
        safe = sorted(folder.glob("*.safetensors"))
        pickled = [] if safe else sorted(folder.glob("*.bin"))
        if not safe and not pickled:
            raise InputError("there are no weights next to config.json (model.safetensors); finish training", folder)
        tensors, numbers = 0, 0
        for path in safe:
            with safe_open(path, framework="pt") as file:
                shapes = [file.get_slice(name).get_shape() for name in file.keys()]  # noqa: SIM118
            tensors += len(shapes)
            numbers += sum(map(math.prod, shapes))
        for path in pickled:  # a number takes a byte or more, a tensor a name and an address
            size = path.stat().st_size
            tensors, numbers = tensors + size // 32, numbers + size
        return cls(tensors, numbers)


class _BuildCounter:
    """A counter of registrations in modules that raises at the first one too many."""

    def __init__(self, stored: StoredWeights, packed: bool, folder: Path) -> None:
        """``packed``: the weights are quantised, so that one stored number may be several."""
        #: tied weights are made twice, and the library may split or pack what is stored
        self._left = {
            "weights": (16 if packed else 2) * stored.numbers + 2**20,
            "buffers": 4 * stored.numbers + 2**27,
            "tensors": 4 * stored.tensors + 100,
            "modules": 20 * stored.tensors + 2000,
        }
        self._stored, self._folder = stored, folder
        self._seen: set[tuple[int, str]] = set()

    def parameter(self, owner: nn.Module, name: str, value: Tensor | None) -> None:
        if self._is_new(owner, name, value):
            assert value is not None
            self._take(weights=value.numel(), tensors=1)

    def buffer(self, owner: nn.Module, name: str, value: Tensor | None) -> None:
        if self._is_new(owner, name, value):
            assert value is not None
            self._take(buffers=value.numel())

    def module(self, *_: Any) -> None:
        self._take(modules=1)

    def _is_new(self, owner: nn.Module, name: str, value: Tensor | None) -> bool:
        """Recognise what is built here; weights that are read take its place, and are real."""
        if value is None or not value.is_meta or (id(owner), name) in self._seen:
            return False
        self._seen.add((id(owner), name))
        return True

    def _take(self, **amounts: int) -> None:
        for what, amount in amounts.items():
            self._left[what] -= amount
            if self._left[what] < 0:
                raise InputError(
                    "config.json asks for a much larger network than the weights are of, which are"
                    f" {self._stored.numbers:,} numbers in {self._stored.tensors:,} tensors; the two are of different"
                    " models",
                    self._folder,
                )
