"""Predictions of a network when a vector is added to one of its layers, and the same network untrained."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import copy, deepcopy
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from truesource.generator.abilities import require
from truesource.generator.language_model import LanguageModel
from truesource.grammar.support.arrays import FloatArray
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.printable import meter
from truesource.lmtrain.data import by_length, causal_batch
from truesource.lmtrain.decoding.steppers import without_cache
from truesource.lmtrain.hidden_states import Network
from truesource.lmtrain.own.network import OwnNetwork
from truesource.lmtrain.scoring import batch_budget, log_softmax_at
from truesource.lmtrain.word_models import CausalModel, head_inputs

Trained = TypeVar("Trained", bound=Network)
Calls = dict[nn.Module, tuple[Tensor | None, Tensor | None]]  #: first input and output of a module


def untrained(model: Trained, seed: int) -> Trained:
    """Return the same network with initial weights as its configuration draws them, and the same tokeniser.

    The model itself stays as it is. Training here starts from such weights, with two additions: output biases at word
    frequencies, and attention to neighbours in masked networks.

    Args:
        model: a network that was loaded.
        seed: of the weights; equal seeds give equal weights. Random numbers elsewhere are left alone.

    Raises:
        InputError: the network is a custom module, whose code sets the weights.
    """
    network = model.model
    if isinstance(network, OwnNetwork):
        raise InputError(
            f"the weights of {model.name} are set by its own code, not by a configuration; build a new one there",
            code="missing-ability",
        )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        fresh = type(network)(deepcopy(network.config))
    result = copy(model)
    result.__dict__.pop("_memory", None)  # of the other network
    result.model = fresh.to(network.device, network.dtype).eval()
    result.name = f"{model.name}-untrained"
    return result


@dataclass(frozen=True, eq=False)
class Place:
    """Place in a network at which the vectors of a layer can be changed."""

    module: nn.Module
    entering: bool  #: vectors that enter the module; False: that leave it
    width: int  #: numbers of a vector


def places(model: CausalModel) -> list[Place]:
    """Return where each layer can be changed, numbered as in `truesource.lmtrain.hidden_states.hidden_states`.

    Layer 0 is the input of the first block and layer k the output of the k-th. In networks whose last hidden state is
    the output of the final layer norm, the last layer is that output.

    Raises:
        InputError: the network has no list of blocks that makes its hidden states one after the other (code
            ``missing-ability``).
    """
    network, calls = model.model.eval(), Calls()

    def keep(module: nn.Module, given: tuple[Any, ...], made: Any) -> None:
        calls.setdefault(module, (_vectors(given), _vectors(made)))

    handles = [module.register_forward_hook(keep) for module in network.modules()]
    try:
        ids = torch.tensor([[model.encoder.bos]], device=network.device)
        with torch.inference_mode():
            output = network(input_ids=ids, output_hidden_states=True, **without_cache(network))
    finally:
        for handle in handles:
            handle.remove()
    states = getattr(output, "hidden_states", None) or ()
    for owner in network.modules():
        for blocks in owner.children():
            if isinstance(blocks, nn.ModuleList) and len(blocks) == len(states) - 1:
                leaving = _leaving(blocks, [blocks[-1], *owner.children()], calls, states)
                if leaving is not None:
                    modules = [blocks[0], *blocks[:-1], leaving]
                    return [Place(each, k == 0, states[k].shape[-1]) for k, each in enumerate(modules)]
    raise InputError(
        f"changing a layer needs a list of blocks, one for each layer: {model.name} has none; use a transformer or"
        " gated_cnn",
        code="missing-ability",
    )


def patched_log_probs(
    model: LanguageModel, sentences: Sequence[Sequence[str]], layer: int, change: NDArray[np.float32]
) -> FloatArray:
    """Predict the next word after sentences when a vector is added to one layer at their last word.

    Nothing else is changed: words before the last one have the vectors that they had. A vector of zeros gives what
    ``model.distributions`` gives for the last position.

    Args:
        model: a causal network of whole words, with a list of blocks.
        sentences: N beginnings of sentences, of any lengths, at least one word each.
        layer: to change, numbered as in `truesource.lmtrain.hidden_states.hidden_states`.
        change: (N, D) vectors to add.

    Returns:
        (N, V+2) log probabilities, nats; columns as in `truesource.generator.language_model.LogDistributions`: words
        of the model's ``vocabulary``, ``<unk>``, the end of the sentence.

    Raises:
        InputError: the model is of another kind or has no list of blocks (code ``missing-ability``), there is no such
            layer, a sentence has no words or is too long, or vectors are not finite or not of this shape.
    """
    require(model, "hidden-states", "patching")
    if not isinstance(model, CausalModel):
        raise InputError(
            f"patching needs a causal network of whole words, unlike {model.name}; train one with tokenizer: word",
            code="missing-ability",
        )
    where = places(model)
    if not 0 <= layer < len(where):
        raise InputError(f"{model.name} has layers 0 to {len(where) - 1}, there is no layer {layer}")
    _check_words(model, sentences)
    vectors = _checked(change, len(sentences), where[layer].width)
    words, network = model.encoder, model.model
    rows = words.encode(sentences)
    lengths = np.array([len(row) for row in rows], dtype=np.int64)
    columns = [*words.word_ids.tolist(), words.unk, words.eos]
    result = np.empty((len(rows), len(columns)))
    head = getattr(network, model._head)
    with meter("next words of changed vectors", len(rows)) as bar, torch.inference_mode():
        for some in by_length(lengths + 1, batch_budget(len(words))):
            ids = causal_batch([rows[i] for i in some], words)["input_ids"].to(network.device)
            at = torch.from_numpy(lengths[some]).to(network.device)  # after <bos>, so the last word has this number
            with adding(where[layer], vectors[torch.from_numpy(some)].to(network.device), at):
                hidden, rest = head_inputs(network, head, ids)
            result[some] = log_softmax_at(head(hidden[torch.arange(len(some)), at], *rest), columns)
            bar.advance(len(some))
    return result


@contextmanager
def adding(place: Place, change: Tensor, at: Tensor) -> Iterator[None]:
    """Add vectors at one position of each text that the network reads inside the block.

    Args:
        place: of the layer.
        change: (B, D) one vector for each text of a batch.
        at: (B,) positions, counted from the first token.
    """

    def changed(vectors: Tensor) -> Tensor:
        result = vectors.clone()
        result[torch.arange(len(at)), at] += change.to(result.dtype)
        return result

    def before(_: nn.Module, given: tuple[Any, ...]) -> tuple[Any, ...]:
        return changed(given[0]), *given[1:]

    def after(_: nn.Module, __: Any, made: Any) -> Any:
        return changed(made) if isinstance(made, Tensor) else (changed(made[0]), *made[1:])

    if place.entering:
        handle = place.module.register_forward_pre_hook(before, prepend=True)
    else:  # before the hooks by which `transformers` collects hidden states
        handle = place.module.register_forward_hook(after, prepend=True)
    try:
        yield
    finally:
        handle.remove()


def _leaving(
    blocks: nn.ModuleList, others: Sequence[nn.Module], calls: Calls, states: Sequence[Tensor]
) -> nn.Module | None:
    """Return the module that the last hidden state leaves first; None: the others do not enter these blocks one by one.

    Args:
        blocks: one for each hidden state but the last.
        others: modules that may make the last one.
        calls: first input and output of each module, in the order in which they ended.
        states: the hidden states.
    """
    if not all(_same(calls.get(block, (None, None))[0], state) for block, state in zip(blocks, states, strict=False)):
        return None
    return next((module for module, call in calls.items() if module in others and _same(call[1], states[-1])), None)


def _vectors(given: Any) -> Tensor | None:
    """Return the first of the arguments or results of a module, if it is a tensor."""
    first = given[0] if isinstance(given, tuple) and given else given
    return first if isinstance(first, Tensor) else None


def _same(one: Tensor | None, other: Tensor) -> bool:
    return one is not None and one.shape == other.shape and torch.equal(one, other)


def _check_words(model: CausalModel, sentences: Sequence[Sequence[str]]) -> None:
    """Refuse a sentence that has no last word, or that the model cannot read."""
    for number, sentence in enumerate(sentences, start=1):
        if not len(sentence):
            raise InputError(f"sentence {number} has no words, so there is no last word to change; remove it")
    model.check_readable(sentences)


def _checked(change: NDArray[np.float32], n: int, width: int) -> Tensor:
    """Return the vectors as a tensor, if they are finite and one of the right size for each sentence."""
    vectors = np.asarray(change, dtype=np.float32)
    if vectors.shape != (n, width):
        shape = "x".join(map(str, vectors.shape)) or "a single number"
        raise InputError(f"expecting a change of {n}x{width}, a vector for each sentence, got {shape}")
    if not np.isfinite(vectors).all():
        raise InputError("a vector to add is not finite; correct it")
    return torch.from_numpy(vectors)
