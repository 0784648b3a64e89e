"""Whether a module of one's own can be trained and scored: tried on random tokens, before any time is spent on it."""

from __future__ import annotations

import inspect
from itertools import pairwise

import torch
from torch import Tensor

from truesource.generator.abilities import code_errors
from truesource.grammar.support.errors import InputError
from truesource.lmtrain.own.hub_network import FIRST_WORD, random_tokens
from truesource.lmtrain.own.network import OwnNetwork

LENGTH = 12  #: tokens of the texts that it is tried on
LONGEST = 2048  #: no longer text is tried
TOLERANCE = 1e-3  #: largest difference of equal logits, relative to the spread of the logits


@torch.inference_mode()
def check_reading(network: OwnNetwork) -> None:
    """Stop where the logits of a network in evaluation mode are not those of a language model.

    Raises:
        InputError: they are not finite (code ``bad-logits``), differ from call to call (``random-logits``), depend on
            other texts of the batch (``mixes-rows``), those of a causal model on later tokens (``looks-ahead``), or
            those of a masked model on padding (``reads-padding``); or forward takes other arguments (``code-failed``).
    """
    network.eval()
    _check_arguments(network)
    ids = _tokens(network, 3)
    first, again = (network(input_ids=ids).logits.float() for _ in range(2))
    if not bool(first.isfinite().all()):
        raise InputError(f"{network.code} returns logits that are not finite", code="bad-logits")
    if not _equal(network, first, again):
        raise InputError(
            f"{network.code} returns other logits at each call; random parts, such as dropout, must rest in evaluation"
            " mode (self.training is False)",
            code="random-logits",
        )
    check_dependence(network)


def _check_arguments(network: OwnNetwork) -> None:
    """Stop where forward cannot be called with the tokens and the mask."""
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
    """Stop where logits depend on what they must not depend on; see `check_reading`.

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
    """Stop where a network cannot be trained, or would not come back from its folder as it was.

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
                f"{network.code} made twice, with the same weights, returns other logits; what is random in it must"
                " be a parameter or a buffer (register_buffer), or it is lost when the model is saved",
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
    """Stop where weights cannot be saved.

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
    """Another token at each place, out of those that `random_tokens` draws from."""
    least = FIRST_WORD if size > FIRST_WORD + 1 else 0
    return (ids - least + 1) % (size - least) + least


def _equal(network: OwnNetwork, one: Tensor, other: Tensor) -> bool:
    """Whether logits are equal up to rounding in the least exact type of the weights."""
    spread = float((other - other.mean(dim=-1, keepdim=True)).abs().max())
    exactness = [torch.finfo(p.dtype).eps for p in network.parameters() if p.is_floating_point() or p.is_complex()]
    limit = max(TOLERANCE, *(16 * eps for eps in exactness))
    return bool((one - other).abs().max() <= limit * spread + 1e-7 * float(other.abs().max()))
