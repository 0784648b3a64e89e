"""Loading any model; networks are imported only if a reference names one.

A ready model is an object of custom code that satisfies `LanguageModel`, or a callable that returns one.
"""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, get_args

from truesource.generator.arguments import as_model
from truesource.generator.foreign_code import code_errors
from truesource.generator.language_model import LanguageModel
from truesource.generator.model_checks import is_text, require_words
from truesource.generator.objectives import Objective
from truesource.grammar.support.errors import InputError, extras_for
from truesource.lmtrain.own.settings import OwnSettings, code_for
from truesource.lmtrain.references import Code, ModelReference, load_code, model_reference

if TYPE_CHECKING:
    from truesource.lmtrain.config import ModelConfig
    from truesource.lmtrain.trained_models import TrainedModel

_NEEDED = "a model has name, objective, vocabulary and score(sentences, frame)"


def load_model(
    reference: Any,
    vocabulary: Any = None,
    *,
    name: str | None = None,
    base: Path | None = None,
    device: str | None = None,
) -> LanguageModel:
    """Load any model: a folder, code, an entry point, a custom architecture that was trained here, or an object.

    * a folder, see `load_folder`;
    * a file of n-grams, ``lm.arpa``, see `truesource.lmtrain.architectures.ngram.arpa.load_arpa`; any other `Path` is a
      folder;
    * ``file.py:name`` or ``package.module:name``: a model that is ready, see `truesource.lmtrain.models.ready_model`;
    * the name of an entry point of the group ``truesource.models``, which names such code;
    * ``CODE@FOLDER``: the architecture that ``CODE`` names, trained in ``FOLDER``;
    * a model, which is returned as it is; or with a ``vocabulary`` a network of transformers, a PyTorch module or a
      function, see `truesource.lmtrain.in_memory.model_of`.

    Code is run only where the reference names it, never because a folder does.

    Args:
        reference: as above.
        vocabulary: of an object: its tokeniser, or its words.
        name: of an object, in tables.
        base: folder that relative paths start from; None: the working folder.
        device: of networks in folders, such as ``"cpu"``; None: see `truesource.lmtrain.device`.

    Raises:
        InputError: there is no such model, or it cannot be used; see the functions above.
    """
    if not isinstance(reference, str | Path | ModelReference):
        return _of_object(reference, vocabulary, name)
    if vocabulary is not None:
        raise InputError("a vocabulary goes with an object; a folder or code has its own, so remove it")
    named = model_reference(reference, base)
    code = None if named.code is None else load_code(named.code, named.base)
    if code is not None and named.folder is None:
        return ready_model(code)
    if named.file is not None:
        with extras_for(f"the model {named.text}"):
            from truesource.lmtrain.architectures.ngram.arpa import load_arpa
        return load_arpa(named.file)
    folder = cast(Path, named.folder)
    with extras_for(f"the model {named.text}"):
        if code is None:
            return load_folder(folder, device=device)
        from truesource.lmtrain.trained_models import load_own_model
    return load_own_model(folder, code, device=device)


def load_folder(folder: str | Path, *, device: str | None = None) -> TrainedModel:
    """Load a folder as the kind of model it is; no code in the folder is run.

    Networks of an architecture known here whose tokeniser has whole words come as
    `truesource.lmtrain.word_models.CausalModel` or ``MaskedModel``, whoever made them (see
    `truesource.lmtrain.word_vocabulary`), counts as `truesource.lmtrain.architectures.ngram.models.NgramModel` or
    ``NgramPieceModel``; everything else that ``save_pretrained`` of a causal or masked model and its fast tokeniser
    wrote, subword models trained here too, as a model of pieces that scores words, see `truesource.lmtrain.pieces`.

    Raises:
        InputError: the folder is absent, unfinished, damaged or needs code; see
            `truesource.lmtrain.pieces.models.load_checkpoint`.
    """
    from truesource.lmtrain.architectures.ngram.models import NGRAM, load_ngram
    from truesource.lmtrain.folders import model_type_of

    model: TrainedModel
    folder = Path(folder)
    if model_type_of(folder) == NGRAM:
        model = load_ngram(folder)
    else:
        from truesource.lmtrain.trained_models import load_network_folder  # torch

        model = load_network_folder(folder, device=device)
    model.folder = folder
    return model


def load_trained(folder: Path, settings: ModelConfig) -> TrainedModel:
    """Load a folder that was trained with these settings; they name the code of a custom architecture.

    Raises:
        InputError: see `load_folder`, and `truesource.lmtrain.trained_models.load_own_model`.
    """
    if not isinstance(settings, OwnSettings):
        return load_folder(folder)
    from truesource.lmtrain.trained_models import load_own_model

    return load_own_model(folder, code_for(settings))


def as_loaded(given: Any) -> LanguageModel:
    """Return a model: as it is, loaded by its reference, or of an object and its vocabulary, as a pair.

    Raises:
        InputError: it is neither (code ``not-a-model``), or as `load_model`.
    """
    from truesource.lmtrain.in_memory import is_pair

    return load_model(*given) if is_pair(given) else load_model(given)


def _of_object(source: Any, vocabulary: Any, name: str | None) -> LanguageModel:
    is_scored = hasattr(source, "score")  # our models have a network and a tokeniser, too
    if vocabulary is None and not is_scored and hasattr(source, "model") and hasattr(source, "tokenizer"):  # a pipeline
        source, vocabulary = source.model, source.tokenizer
    if vocabulary is None or is_scored:
        model: LanguageModel = as_model(source)
        return model
    from truesource.lmtrain.in_memory import model_of

    return model_of(source, vocabulary, name)


def ready_model(code: Code) -> LanguageModel:
    """Return the model that code names: an object that scores, or what something callable without arguments returns.

    Raises:
        InputError: the object is neither (code ``not-a-model``), or it raises (``code-failed``).
    """
    model = code.object
    if inspect.isclass(model) or not hasattr(model, "score"):
        _require_no_arguments(code)
        model = code.call()
    return require_model(model, code.name, code.source)


def require_model(model: Any, name: str, source: Path | None = None) -> LanguageModel:
    """Refuse an object that is not a language model.

    Args:
        model: any object.
        name: of it, for the message.
        source: file that it comes from, for the message.

    Raises:
        InputError: it lacks a part of the protocol, or one has a value of another kind (code ``not-a-model``).
    """

    def refuse(what: str) -> InputError:
        return InputError(f"{name} is not a model: {what}", source, code="not-a-model")

    with code_errors(f"an attribute of {name}", source):
        lacking = [part for part in ("name", "objective", "vocabulary", "score") if not hasattr(model, part)]
        if lacking:
            raise refuse(f"{type(model).__name__} has no {' and no '.join(lacking)}; {_NEEDED}")
        called, objective, vocabulary = model.name, model.objective, model.vocabulary
    if not callable(model.score):
        raise refuse(f"its score is a {type(model.score).__name__}, not a method; {_NEEDED}")
    if not isinstance(called, str) or not called:
        raise refuse(f"its name is {called!r}; give it some text")
    if not is_text(called):
        raise refuse(f"its name {called!r} has half of a character (a lone surrogate); give it text")
    if objective not in get_args(Objective):
        raise refuse(f"its objective is {objective!r}; it has to be 'causal', 'masked' or 'any-order'")
    if vocabulary is not None:
        if not isinstance(vocabulary, tuple | list):
            raise refuse(f"its vocabulary is a {type(vocabulary).__name__}; it has to be a tuple of words, or None")
        require_words(vocabulary, name, source)
    return cast(LanguageModel, model)


def _require_no_arguments(code: Code) -> None:
    """Refuse, before the call, code that cannot be called without arguments."""
    if not callable(code.object):
        kind = type(code.object).__name__
        raise InputError(
            f"{code.name} is not a model: it is a {kind}, without a method score; {_NEEDED}",
            code.source,
            code="not-a-model",
        )
    try:
        needed = [
            parameter.name
            for parameter in inspect.signature(code.object).parameters.values()
            if parameter.default is parameter.empty
            and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        ]
    except (TypeError, ValueError):  # written in C: called without this check
        return
    if needed:
        raise InputError(
            f"{code.name} needs {', '.join(needed)}, but a model is made without arguments; for an architecture that"
            f" was trained here write {code.name}@FOLDER",
            code.source,
            code="not-a-model",
        )
