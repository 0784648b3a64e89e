"""Finding out what an n-gram model is a model of: from counts and a tokeniser, or from a folder."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

from transformers import PreTrainedTokenizerFast

from truesource.grammar.support.arrays import FloatArray
from truesource.grammar.support.errors import InputError
from truesource.lmtrain.architectures.ngram.piece_model import NgramPieceModel
from truesource.lmtrain.architectures.ngram.smoothing import Smoothing
from truesource.lmtrain.architectures.ngram.storage import FILE as COUNTS
from truesource.lmtrain.architectures.ngram.storage import load_counts
from truesource.lmtrain.architectures.ngram.trie import Trie
from truesource.lmtrain.architectures.ngram.word_model import NgramModel
from truesource.lmtrain.config_json import read_config_json
from truesource.lmtrain.integrity import require_unchanged
from truesource.lmtrain.loading import load_tokenizer, model_type_of
from truesource.lmtrain.subwords import is_ours, is_subword
from truesource.lmtrain.training_record import model_name

NGRAM = "ngram"  #: in ``config.json``


def make_ngram(
    trie: Trie,
    smoothing: Smoothing,
    tokenizer: PreTrainedTokenizerFast,
    name: str,
    *,
    discount: FloatArray | None = None,
) -> NgramModel | NgramPieceModel:
    """A model of words or of pieces, as its tokeniser says; arguments as for `NgramModel`.

    Raises:
        InputError: counts and tokeniser are of two models.
    """
    kind = NgramPieceModel if is_subword(tokenizer) else NgramModel
    return kind(trie, smoothing, tokenizer, name, discount=discount)


def load_ngram(folder: str | Path) -> NgramModel | NgramPieceModel:
    """Load a trained folder.

    Raises:
        InputError: the folder is absent, unfinished, damaged, or of another kind of model.
    """
    folder = Path(folder)
    if model_type_of(folder) != NGRAM:
        raise InputError("there is no n-gram model here; train one", folder)
    config = read_config_json(folder / "config.json")
    trie, discount = load_counts(folder)
    if config.get("order") != trie.order or config.get("smoothing") not in get_args(Smoothing):
        raise InputError("config.json does not fit ngram.npz; train the model again", folder)
    tokenizer = load_tokenizer(folder)
    if not is_ours(tokenizer) or is_subword(tokenizer) != (config.get("tokenizer", "word") != "word"):
        raise InputError("the tokeniser is not the one of this n-gram model; train the model again", folder)
    require_unchanged(folder, ["config.json", COUNTS])
    return make_ngram(trie, config["smoothing"], tokenizer, model_name(folder), discount=discount)
