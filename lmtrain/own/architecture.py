"""A custom architecture, as training and scoring take one, and reading its folders.

Before any training, random tokens show whether it can be trained and scored.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import torch
from pydantic import BaseModel
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn.parameter import UninitializedParameter
from transformers import PreTrainedTokenizerFast

from truesource.generator.foreign_code import code_errors
from truesource.generator.objectives import Objective
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.records import STRICT, Count, Positive, read_record
from truesource.lmtrain.architectures.networks import NetworkArchitecture
from truesource.lmtrain.device import kept_random_states, torch_device
from truesource.lmtrain.folders import library_errors, read_config_json
from truesource.lmtrain.loading import load_tokenizer, require_tensors, require_token_numbers
from truesource.lmtrain.own.hub_network import FIRST_WORD, OwnConfig, random_tokens
from truesource.lmtrain.own.network import HEAD, OwnNetwork
from truesource.lmtrain.own.settings import Factory, OwnSettings, find
from truesource.lmtrain.own.shared import MODEL_TYPE
from truesource.lmtrain.references import Code
from truesource.lmtrain.tokenizer import SPECIALS
from truesource.lmtrain.training_record import require_unchanged
from truesource.lmtrain.word_vocabulary import Encoder

_WORDS = 6  #: of the vocabulary that a network is tried with before the real one is known
LENGTH = 12  #: tokens of the texts that a network is tried on
LONGEST = 2048  #: tokens of the longest text that is tried
TOLERANCE = 1e-3  #: largest difference of equal logits, relative to the spread of the logits
WEIGHTS = "model.safetensors"
log = logging.getLogger("truesource")


@dataclass(frozen=True)
class OwnArchitecture(NetworkArchitecture[OwnSettings]):
    """Custom code and its objective."""

    predicts: Objective = "causal"

    @property
    def objective(self) -> Objective:
        """The direction that it predicts in."""
        return self.predicts


def own_architecture(predicts: Objective) -> OwnArchitecture:
    """Return the architecture of all custom networks of one objective."""
    return OwnArchitecture(OwnSettings, HEAD, build, longest=_longest, predicts=predicts)


def build(settings: OwnSettings, vocabulary: Encoder) -> OwnNetwork:
    """Return a network with the initial weights of its code, tried on random tokens, on the GPU if there is one.

    Raises:
        InputError: the code cannot be imported or fails, or the network cannot be trained; see
            `truesource.lmtrain.own.architecture`.
    """
    special = {"pad_token_id": vocabulary.pad, "bos_token_id": vocabulary.bos, "eos_token_id": vocabulary.eos}
    return _checked_network(find(settings), settings, len(vocabulary), special)


def try_out(settings: OwnSettings) -> None:
    """Build a network with a small vocabulary and discard it, to refuse whatever `build` refuses.

    Raises:
        InputError: as `build`.
    """
    with kept_random_states():
        special = {"pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3}
        _checked_network(find(settings), settings, len(SPECIALS) + _WORDS, special)


def network_of_code(factory: Factory, settings: OwnSettings, size: int, special: dict[str, Any]) -> OwnNetwork:
    """Return the module that the code returns, as a network on the GPU if there is one.

    Args:
        factory: the code.
        settings: of the model.
        size: number of tokens.
        special: numbers of the special tokens, as in `OwnConfig`.

    Raises:
        InputError: the code raises, or returns no `torch.nn.Module` (code ``not-module``), or one without parameters
            to train (``no-parameters``).
    """
    settings = factory.completed(settings)
    module = factory.code.call(size, **factory.arguments(settings))
    if not isinstance(module, nn.Module):
        raise InputError(
            f"{factory.code.name} returns a {type(module).__name__}; it must return a torch.nn.Module",
            factory.code.source,
            code="not-module",
        )
    if not any(parameter.requires_grad for parameter in module.parameters()):
        raise InputError(f"{factory.code.name} has no parameters to train", factory.code.source, code="no-parameters")
    config = OwnConfig(
        vocab_size=size,
        code=settings.architecture,
        code_digest=settings.code_digest,
        code_settings=settings.settings,
        objective=settings.objective,
        max_positions=settings.max_positions,
        **special,
    )
    network = OwnNetwork(config, module, factory.code)
    moved: OwnNetwork = network.to(torch_device())
    if any(isinstance(parameter, UninitializedParameter) for parameter in module.parameters()):
        moved.eval()(input_ids=random_tokens(size, 1, 2).to(moved.device))  # lazy modules get their shapes
        moved.train()
    return moved


def _checked_network(factory: Factory, settings: OwnSettings, size: int, special: dict[str, Any]) -> OwnNetwork:
    def make() -> OwnNetwork:
        return network_of_code(factory, settings, size, special)

    network = make()
    with kept_random_states():
        torch.manual_seed(1)  # other weights than the first network
        check_reading(network)
        check_longest(network)
        check_memory(network)
        check_training(network, make())
    network.train()
    return network


def _longest(config: OwnConfig) -> int | None:
    return config.max_positions


class OwnRecord(BaseModel):
    """The part of ``config.json`` that is read."""

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
    """Load a custom network and its tokeniser.

    Args:
        folder: trained here.
        code: that the user names; the code that the folder names is compared with it, and never run.
        device: such as ``"cpu"``; None: see `truesource.lmtrain.device`.

    Raises:
        InputError: the folder holds no such model (code ``other-model``), the code does not take its settings or makes
            a module of other weights, a file is damaged, or the network fails a check.
    """
    path = folder / "config.json"
    if not path.is_file():
        raise InputError("there is no trained model here; train one, or finish its training", folder, code="missing")
    if read_config_json(path).get("model_type") != MODEL_TYPE:
        raise InputError(
            "the model of this folder has no custom architecture; name the folder without code before it",
            folder,
            code="other-model",
        )
    record = read_record(path, OwnRecord, what="the configuration of the model", remedy="train the model again")
    require_unchanged(folder, ["config.json"])
    _warn_of_other_code(record, code, folder)
    tokenizer = load_tokenizer(folder)
    with kept_random_states():
        network = _network_of_record(record, code)
        _load_weights(network, folder)
        require_token_numbers(tokenizer, network, folder)
        require_unchanged(folder, ["generation_config.json", WEIGHTS])
        place = torch_device(device)
        with library_errors(f"the model cannot be put on the device {str(place)!r}", folder):
            network = network.to(place).eval()
        check_reading(network)
    return network, tokenizer


def code_of(folder: Path) -> str:
    """Return the name of the code of a trained folder, for messages; it is not run."""
    named = read_config_json(folder / "config.json").get("code")
    return named if isinstance(named, str) and named else "file.py:name"


def _network_of_record(record: OwnRecord, code: Code) -> OwnNetwork:
    code_settings = dict(record.code_settings or {})
    settings = OwnSettings(
        **{
            **code_settings,
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
            "%s was trained with another version of the code of %s; its numbers may have changed",
            folder,
            code.name,
        )


def _load_weights(network: OwnNetwork, folder: Path) -> None:
    path = folder / WEIGHTS
    if not path.is_file():
        raise InputError(f"there are no weights next to config.json ({WEIGHTS}); finish the training", folder)
    with library_errors("the model cannot be loaded", folder):
        stored = load_file(path)
    expected: Mapping[str, torch.Tensor] = network.state_dict()
    tied = network.all_tied_weights_keys
    missing = [name for name in expected if name not in stored and tied.get(name, name) not in stored]
    mismatched = [
        (name, tuple(tensor.shape), tuple(expected[name].shape))
        for name, tensor in stored.items()
        if name in expected and tensor.shape != expected[name].shape
    ]
    require_tensors(missing, [name for name in stored if name not in expected], mismatched, folder)
    network.load_state_dict(stored, strict=False)


@torch.inference_mode()
def check_reading(network: OwnNetwork) -> None:
    """Refuse a network whose logits in evaluation mode are not a language model's.

    Raises:
        InputError: they are not finite (code ``bad-logits``), differ from call to call (``random-logits``), depend on
            other texts of the batch (``mixes-rows``), in a causal model on later tokens (``looks-ahead``), or in a
            masked model on padding (``reads-padding``); or forward takes other arguments (``code-failed``).
    """
    network.eval()
    _check_arguments(network)
    ids = _tokens(network, 3)
    first, again = (network(input_ids=ids).logits.float() for _ in range(2))
    if not bool(first.isfinite().all()):
        raise InputError(f"{network.code} returns logits that are not finite", code="bad-logits")
    if not _equal(network, first, again):
        raise InputError(
            f"{network.code} returns other logits at each call; disable random parts, such as dropout, in evaluation"
            " mode (self.training is False)",
            code="random-logits",
        )
    check_dependence(network)


def _check_arguments(network: OwnNetwork) -> None:
    """Refuse a forward that cannot be called with the tokens and the mask."""
    forward = network.module.forward
    try:
        signature = inspect.signature(forward)
    except (TypeError, ValueError):  # such as of a method written in C
        return
    try:
        signature.bind(None, None)
    except TypeError as error:
        raise InputError(
            f"forward of {network.code} takes {signature}, but it is called as forward(input_ids, attention_mask);"
            " a causal module may ignore the mask",
            network.source,
            code="code-failed",
        ) from error


@torch.inference_mode()
def check_longest(network: OwnNetwork) -> None:
    """Read a text of the largest length that the network says it takes, up to `LONGEST` tokens.

    Raises:
        InputError: the module raises (code ``code-failed``), or returns no logits of these tokens (``bad-logits``).
    """
    longest = min(network.config.max_positions or LENGTH, LONGEST)
    network.eval()(input_ids=random_tokens(network.config.vocab_size, 1, longest).to(network.device))


@torch.inference_mode()
def check_dependence(network: OwnNetwork) -> None:
    """Refuse logits that depend on what they must not depend on; see `check_reading`.

    Raises:
        InputError: the same.
    """
    network.eval()
    ids = _tokens(network, 3)
    logits = network(input_ids=ids).logits.float()
    if not bool(logits.isfinite().all()):  # of changed weights
        return
    half = ids.shape[1] // 2
    if network.config.objective == "causal":
        later = ids.clone()
        later[:, half:] = _others(ids[:, half:], network.config.vocab_size)
        changed = network(input_ids=later).logits.float()[:, :half]
        alone = network(input_ids=ids[:, :half]).logits.float()
        if not _equal(network, changed, logits[:, :half]) or not _equal(network, alone, logits[:, :half]):
            raise InputError(
                f"{network.code} looks ahead: its logits at a token change with the tokens after it, so no probability"
                " of a text would be true; make it causal, or give the model the setting objective: masked",
                code="looks-ahead",
            )
    if not _equal(network, network(input_ids=ids[1:2]).logits.float(), logits[1:2]):
        raise InputError(
            f"{network.code} mixes the texts of a batch: its logits of a text change with the other texts"
            " (nn.GRU, nn.LSTM and nn.MultiheadAttention need batch_first=True)",
            code="mixes-rows",
        )
    if network.config.objective == "masked":
        mask = torch.ones_like(ids)
        mask[:, half:] = 0
        padded = torch.where(mask.bool(), ids, network.config.pad_token_id or 0)
        seen = network(input_ids=padded, attention_mask=mask).logits.float()[:, :half]
        if not _equal(network, seen, network(input_ids=ids[:, :half]).logits.float()):
            raise InputError(
                f"{network.code} reads padding: its logits change with the tokens where attention_mask is 0;"
                " use the mask",
                code="reads-padding",
            )


def check_training(network: OwnNetwork, twin: OwnNetwork) -> None:
    """Refuse a network that cannot be trained, or would be loaded from its folder with other logits.

    Args:
        network: the one to be trained; it is left as it is.
        twin: another one of the same code and settings, which is used up.

    Raises:
        InputError: with the weights of the first the twin gives other logits (code ``not-saved``); it looks ahead,
            or mixes texts, with other weights than the initial ones; no weight is trained (``no-parameters``), or its
            gradient cannot be computed (``code-failed``).
    """
    twin.load_state_dict(network.state_dict())
    ids = _tokens(network, 3)
    with torch.inference_mode():
        if not _equal(network, *(one.eval()(input_ids=ids).logits.float() for one in (network, twin))):
            raise InputError(
                f"{network.code} made twice, with the same weights, returns other logits; random values in it must be"
                " parameters or buffers (register_buffer), or they are lost when the model is saved",
                code="not-saved",
            )
        generator = torch.Generator().manual_seed(1)
        for parameter in twin.parameters():  # initial weights of zero hide what the network looks at
            noise = torch.randn(parameter.shape, generator=generator, dtype=torch.float32)
            parameter.add_((0.1 * noise).to(parameter.device, parameter.dtype))
    check_dependence(twin)
    twin.train()
    with torch.enable_grad():
        logits = twin(input_ids=ids).logits
        if not logits.requires_grad:
            raise InputError(
                f"the logits of {network.code} do not depend on a weight that is trained", code="no-parameters"
            )
        with code_errors(f"{network.code}, in its gradient,", twin.source):
            logits.float().logsumexp(-1).mean().backward()


def check_memory(network: OwnNetwork) -> None:
    """Refuse weights that cannot be saved.

    Raises:
        InputError: two overlap in memory and are not the same (code ``shared-memory``).
    """
    held = {
        (tensor.data_ptr(), tensor.data_ptr() + tensor.numel() * tensor.element_size(), tuple(tensor.shape)): name
        for name, tensor in network.state_dict().items()
        if tensor.numel() and tensor.is_contiguous()
    }
    spans = sorted(held.items())
    for (one, first), (other, second) in pairwise(spans):
        if other[0] < one[1]:
            raise InputError(
                f"{first} and {second} of {network.code} lie in the same memory and are not the same tensor, so they"
                " cannot be saved; tie whole parameters, or copy one",
                code="shared-memory",
            )


def _tokens(network: OwnNetwork, rows: int) -> Tensor:
    length = min(LENGTH, network.config.max_positions or LENGTH)
    return random_tokens(network.config.vocab_size, rows, length).to(network.device)


def _others(ids: Tensor, size: int) -> Tensor:
    """Return another token at each place, out of those that `random_tokens` draws from."""
    least = FIRST_WORD if size > FIRST_WORD + 1 else 0
    return (ids - least + 1) % (size - least) + least


def _equal(network: OwnNetwork, one: Tensor, other: Tensor) -> bool:
    """Compare logits up to rounding in the least exact type of the weights."""
    spread = float((other - other.mean(dim=-1, keepdim=True)).abs().max())
    exactness = [torch.finfo(p.dtype).eps for p in network.parameters() if p.is_floating_point() or p.is_complex()]
    limit = max(TOLERANCE, *(16 * eps for eps in exactness))
    return bool((one - other).abs().max() <= limit * spread + 1e-7 * float(other.abs().max()))
