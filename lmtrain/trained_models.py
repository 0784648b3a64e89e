"""Loading trained models as the kind of model they are, and their tokenisers for other models."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path

from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerFast

from truesource.grammar.support.errors import InputError
from truesource.lmtrain.architectures.ngram.models import NgramModel, NgramPieceModel
from truesource.lmtrain.config import ModelConfig
from truesource.lmtrain.device import set_precision
from truesource.lmtrain.folders import model_type_of
from truesource.lmtrain.loading import load_config, load_network, load_tokenizer, require_token_numbers
from truesource.lmtrain.model_registry import network_of
from truesource.lmtrain.own.architecture import code_of, load_own
from truesource.lmtrain.own.shared import MODEL_TYPE
from truesource.lmtrain.pieces.models import (
    CausalPieceModel,
    MaskedPieceModel,
    load_checkpoint,
    objective_of,
    piece_model,
    subword_model,
)
from truesource.lmtrain.references import Code
from truesource.lmtrain.subword_vocabulary import is_ours, is_subword
from truesource.lmtrain.tokenizer import with_specials
from truesource.lmtrain.training_record import model_name
from truesource.lmtrain.word_models import KINDS, AnyOrderModel, CausalModel, MaskedModel
from truesource.lmtrain.word_vocabulary import WholeWords, WordVocabulary, whole_words

TrainedModel = (
    CausalModel | MaskedModel | AnyOrderModel | CausalPieceModel | MaskedPieceModel | NgramModel | NgramPieceModel
)


def as_language_model(model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, name: str) -> TrainedModel:
    """Return a network of one of our architectures with a tokeniser made here, as the kind of model it is.

    Raises:
        InputError: the tokeniser belongs to another model.
    """
    require_token_numbers(tokenizer, model)
    if is_subword(tokenizer):
        return subword_model(model, tokenizer, name)
    architecture = network_of(model.config)
    return KINDS["causal" if architecture is None else architecture.objective](model, tokenizer, name)


def load_network_folder(folder: Path, *, device: str | None = None) -> TrainedModel:
    """Load the folder of a network; see `truesource.lmtrain.models.load_folder`.

    Raises:
        InputError: as that function.
    """
    if model_type_of(folder) == MODEL_TYPE:
        raise InputError(
            f"this model has a custom architecture, whose code is run only where you name it; write"
            f" {code_of(folder)}@{folder}",
            folder,
            code="needs-code",
        )
    config = load_config(folder)
    architecture = network_of(config)
    tokenizer = load_tokenizer(folder)
    encoder = _words_of(tokenizer, config, folder)
    if architecture is None or encoder is None:
        pieces = load_checkpoint(folder, config, tokenizer, model_name(folder), device=device)
        set_precision(pieces.model)
        return pieces
    network = load_network(folder, config, tokenizer, architecture.objective, device)
    kind = KINDS[architecture.objective]
    set_precision(network)  # after all checks, which need the weights in full precision
    return kind(network, tokenizer, model_name(folder), encoder=encoder)


def model_of_network(network: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, name: str) -> TrainedModel:
    """Make a model of a network in memory and its tokeniser, as `load_folder` does of a folder of both.

    The network is used as it is, in evaluation mode; its weights are not copied.

    Args:
        network: causal or masked.
        tokenizer: that goes with it.
        name: in tables.

    Raises:
        InputError: the two do not go together, or the network reads later words.
    """
    config = network.config
    if not getattr(config, "architectures", None):
        config.architectures = [type(network).__name__]  # save_pretrained writes the same
    require_token_numbers(tokenizer, network)
    network.eval()
    architecture, encoder = network_of(config), _words_of(tokenizer, config, None)
    if architecture is None or encoder is None:
        return piece_model(network, tokenizer, name, objective_of(config, None))
    return KINDS[architecture.objective](network, tokenizer, name, encoder=encoder)


def _words_of(
    tokenizer: PreTrainedTokenizerFast, config: PreTrainedConfig, folder: Path | None
) -> WordVocabulary | WholeWords | None:
    """Return the words of a tokeniser of whole words, for an architecture known here; None: it is one of pieces."""
    architecture = network_of(config)
    if architecture is None or is_subword(tokenizer):
        return None
    if is_ours(tokenizer):
        return WordVocabulary(tokenizer)
    if architecture.objective in (objective_of(config, folder), "any-order"):
        return whole_words(tokenizer, architecture.objective)
    return None


def load_own_model(folder: Path, code: Code, *, device: str | None = None) -> TrainedModel:
    """Load a folder that a custom architecture was trained in, with its code.

    Raises:
        InputError: see `truesource.lmtrain.own.architecture.load_own`.
    """
    network, tokenizer = load_own(folder, code, device=device)
    set_precision(network)
    model = as_language_model(network, tokenizer, model_name(folder))
    model.folder = folder
    return model


def shared_tokenizer(folder: str | Path, model: ModelConfig) -> PreTrainedTokenizerFast:
    """Return the tokeniser in a model folder, with the marks of the objective of ``model``.

    Args:
        folder: a model trained here.
        model: settings of the model that is to have the tokeniser too.

    Raises:
        InputError: the folder has no tokeniser, it was not made here, or it has words although ``model`` asks for
            pieces, or the reverse.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise InputError("there is no such model folder to take the tokeniser from", folder)
    tokenizer = load_tokenizer(folder)
    if not is_ours(tokenizer):
        raise InputError("the tokeniser was not made by truesource train; name the folder of a model that was", folder)
    if is_subword(tokenizer) != (model.tokenizer != "word"):
        has, needed = ("pieces", "words") if is_subword(tokenizer) else ("words", "pieces")
        raise InputError(f"the tokeniser is one of {has}, but the model asks for {needed}; set model.tokenizer", folder)
    return with_specials(deepcopy(tokenizer.backend_tokenizer), model.objective)
