"""A training that starts from the weights of a trained model, in place of random ones."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from truesource.grammar.support.errors import InputError
from truesource.lmtrain.architectures.settings import AdaptiveSettings
from truesource.lmtrain.config import ModelConfig
from truesource.lmtrain.device import kept_random_states
from truesource.lmtrain.folders import model_type_of
from truesource.lmtrain.loading import load_config, load_network, load_tokenizer
from truesource.lmtrain.model_registry import network_architecture_for, network_of
from truesource.lmtrain.own.architecture import load_own
from truesource.lmtrain.own.settings import OwnSettings, code_for
from truesource.lmtrain.own.shared import MODEL_TYPE

_WITHOUT_SHAPE = ("num_attention_heads", "tie_word_embeddings")  #: parts of a size that no tensor shows


@torch.no_grad()
def take_weights(
    network: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, settings: ModelConfig, folder: Path
) -> None:
    """Give a network the weights of a trained one of the same architecture and size.

    Parameters of single tokens (word vectors, and vectors and biases of the output) are taken for the tokens that both
    tokenisers have, matched by spelling, not by number; all other tokens stay as they are. Random states are kept.

    Args:
        network: network to change.
        tokenizer: of the network.
        settings: of the network.
        folder: of the trained model.

    Raises:
        InputError: the trained model has another architecture or size (code ``other-network``), the two have different
            tokens and the architecture has no vectors of single tokens that are known here (the same), or the folder
            cannot be loaded.
    """
    with kept_random_states():
        source, theirs = _read(folder, settings)
    mine, stored = network.state_dict(), source.state_dict()
    tokens, other_tokens = tokenizer.get_vocab(), theirs.get_vocab()
    by_token = set() if tokens == other_tokens else _tensors_of_tokens(network)
    if tokens != other_tokens and (not by_token or isinstance(settings, AdaptiveSettings)):
        raise InputError(
            f"the model was trained on other words, and {settings.architecture} has no vectors of single words that"
            " could be taken; train both with the same tokeniser",
            folder,
            code="other-network",
        )
    _require_same_size(network, source, by_token, folder)
    shared = sorted(tokens.keys() & other_tokens.keys())
    to, of = (torch.tensor([numbers[token] for token in shared]) for numbers in (tokens, other_tokens))
    for name, tensor in mine.items():
        values = stored[name].to(tensor.device, tensor.dtype)
        if name in by_token:
            tensor[to.to(tensor.device)] = values[of.to(tensor.device)]
        else:
            tensor.copy_(values)


def _read(folder: Path, settings: ModelConfig) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """Return the network in a folder, in the precision that it was saved in, and its tokeniser."""
    kind = model_type_of(folder)
    if isinstance(settings, OwnSettings) and kind == MODEL_TYPE:
        return load_own(folder, code_for(settings), device="cpu")
    config = None if kind in (MODEL_TYPE, "ngram") or isinstance(settings, OwnSettings) else load_config(folder)
    architecture = None if config is None else network_of(config)
    if config is None or architecture is not network_architecture_for(settings):
        raise InputError(
            f"the weights are of another architecture ({kind}) than {settings.architecture}; name a model of the same"
            " architecture and size",
            folder,
            code="other-network",
        )
    tokenizer = load_tokenizer(folder)
    return load_network(folder, config, tokenizer, architecture.objective, "cpu"), tokenizer


def _tensors_of_tokens(network: PreTrainedModel) -> set[str]:
    """Return the names of the tensors that have a row for each token."""
    modules = [module for module in (network.get_input_embeddings(), network.get_output_embeddings()) if module]
    members = {id(parameter) for module in modules for parameter in module.parameters()}
    return {name for name, each in network.named_parameters(remove_duplicate=False) if id(each) in members}


def _require_same_size(network: PreTrainedModel, source: PreTrainedModel, by_token: set[str], folder: Path) -> None:
    """Refuse networks whose weights differ in shape, but for the number of tokens.

    Raises:
        InputError: they differ; the message names the tensor.
    """
    mine, theirs = (each.state_dict() for each in (network, source))

    def shape(tensors: dict[str, Tensor], name: str) -> str:
        if name not in tensors:
            return "nothing"
        sizes = tensors[name].shape[1 if name in by_token else 0 :]
        return "x".join(map(str, sizes)) or "a single number"

    shapes = {name: (shape(theirs, name), shape(mine, name)) for name in sorted(mine.keys() | theirs.keys())}
    for name in _WITHOUT_SHAPE:
        there, here = (str(getattr(each.config, name, None)) for each in (source, network))
        shapes[name] = there, here
    for name, (there, here) in shapes.items():
        if there != here:
            raise InputError(
                f"the weights are of a network of another size: {name} is {there} there and {here} here; give the model"
                " the same size",
                folder,
                code="other-network",
            )
