"""The transformer with adaptive softmax as training builds it."""

from __future__ import annotations

from collections.abc import Sequence

from transformers import AutoConfig, AutoModelForCausalLM

from truesource.grammar.support.errors import InputError
from truesource.lmtrain.architectures.adaptive.network import SHRINK, AdaptiveConfig, AdaptiveForCausalLM
from truesource.lmtrain.architectures.adaptive.settings import AdaptiveSettings
from truesource.lmtrain.architectures.base import NetworkArchitecture
from truesource.lmtrain.tokenizer import Encoder

SPECIALS = 5  #: tokens that stand before the words; they belong to the first cluster


def usual_cutoffs(size: int, dim: int) -> list[int]:
    """A tenth and a third of the vocabulary, as far as its size and the width allow."""
    first = min(max(SPECIALS + 1, size // 10), size - 1)
    second = size // 3
    return [first, second] if second > first and dim >= SHRINK**2 else [first]


def build(config: AdaptiveSettings, vocabulary: Encoder) -> AdaptiveForCausalLM:
    """An adaptive-softmax transformer with random weights.

    Raises:
        InputError: a cutoff is not within the vocabulary, or the width is too small for so many.
    """
    cutoffs: Sequence[int] = config.cutoffs or usual_cutoffs(len(vocabulary), config.dim)
    if cutoffs[0] <= SPECIALS - 1 or cutoffs[-1] >= len(vocabulary):
        raise InputError(
            f"cutoffs must be from {SPECIALS} to {len(vocabulary) - 1}, within the vocabulary, not {list(cutoffs)}"
        )
    if config.dim < SHRINK ** len(cutoffs):
        raise InputError(
            f"{len(cutoffs)} cutoffs need a dim of {SHRINK ** len(cutoffs)} or more, for each cluster's hidden states"
            f" are {SHRINK} times narrower than those before; it is {config.dim}"
        )
    return AdaptiveForCausalLM(
        AdaptiveConfig(
            cutoffs=list(cutoffs),
            vocab_size=len(vocabulary),
            n_positions=config.max_positions,
            n_embd=config.dim,
            n_layer=config.layers,
            n_head=config.n_heads,
            n_inner=config.inner,
            activation_function="gelu_pytorch_tanh",
            resid_pdrop=config.dropout,
            embd_pdrop=config.dropout,
            attn_pdrop=config.dropout,
            initializer_range=config.init_std,
            bos_token_id=vocabulary.bos,
            eos_token_id=vocabulary.eos,
            pad_token_id=vocabulary.pad,
        )
    )


AutoConfig.register("adaptive", AdaptiveConfig, exist_ok=True)
AutoModelForCausalLM.register(AdaptiveConfig, AdaptiveForCausalLM, exist_ok=True)
ARCHITECTURE = NetworkArchitecture(AdaptiveSettings, head="head", build=build)
