"""The tokeniser of a trained model, for another model: perplexities compare only over one vocabulary."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path

from transformers import PreTrainedTokenizerFast

from truesource.grammar.support.errors import InputError
from truesource.lmtrain.config import ModelConfig
from truesource.lmtrain.loading import load_tokenizer
from truesource.lmtrain.subwords import is_ours, is_subword
from truesource.lmtrain.tokenizer import with_specials


def shared_tokenizer(folder: str | Path, model: ModelConfig) -> PreTrainedTokenizerFast:
    """The tokeniser in a model folder, with the marks of the objective of ``model``.

    Args:
        folder: a model trained here.
        model: settings of the model that is to have the tokeniser too.

    Raises:
        InputError: there is none, it was not made here, or it has words where ``model`` asks for pieces, or pieces
            where it asks for words.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise InputError("there is no such model folder to take the tokeniser from", folder)
    found = load_tokenizer(folder)
    if not is_ours(found):
        raise InputError("the tokeniser was not made by truesource train; name the folder of a model that was", folder)
    if is_subword(found) != (model.tokenizer != "word"):
        has, asked = ("pieces", "words") if is_subword(found) else ("words", "pieces")
        raise InputError(f"the tokeniser is one of {has}, but the model asks for {asked}; set model.tokenizer", folder)
    return with_specials(deepcopy(found.backend_tokenizer), model.objective)
