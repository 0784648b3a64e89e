"""Loading any model; networks are imported only if a reference names one.

A ready model is an object of custom code that satisfies `LanguageModel`, or a callable that returns one.
"""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any, cast, get_args

from truesource.generator.arguments import as_model
from truesource.generator.foreign_code import code_errors
from truesource.generator.language_model import LanguageModel
from truesource.generator.objectives import Objective
from truesource.grammar.support.errors import InputError, extras_for
from truesource.lmtrain.references import Code, ModelReference, load_code, model_reference

_NEEDED = "a model has name, objective, vocabulary and score(sentences, frame)"


def load_model(
    reference: str | Path | ModelReference, *, base: Path | None = None, device: str | None = None
) -> LanguageModel:
    """Load any model: a folder, code, an entry point, or a custom architecture that was trained here.

    * a folder, see `truesource.lmtrain.trained_models.load_folder`;
    * a file of n-grams, ``lm.arpa``, see `truesource.lmtrain.architectures.ngram.arpa.load_arpa`; any other `Path` is a
      folder;
    * ``file.py:name`` or ``package.module:name``: a model that is ready, see `truesource.lmtrain.models.ready_model`;
    * the name of an entry point of the group ``truesource.models``, which names such code;
    * ``CODE@FOLDER``: the architecture that ``CODE`` names, trained in ``FOLDER``.

    Code is run only where the reference names it, never because a folder does.

    Args:
        reference: as above.
        base: folder that relative paths start from; None: the working folder.
        device: of networks in folders, such as ``"cpu"``; None: see `truesource.lmtrain.device`.

    Raises:
        InputError: there is no such model, or it cannot be used; see the functions above.
    """
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
        from truesource.lmtrain.trained_models import load_folder, load_own_model
    return load_folder(folder, device=device) if code is None else load_own_model(folder, code, device=device)


def as_loaded(given: Any) -> LanguageModel:
    """Return a model: as it is, or loaded by its reference.

    Raises:
        InputError: it is neither (code ``not-a-model``), or as `load_model`.
    """
    model: LanguageModel = load_model(given) if isinstance(given, str | Path) else as_model(given)
    return model


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
    if not _is_text(called):
        raise refuse(f"its name {called!r} has half of a character (a lone surrogate); give it text")
    if objective not in get_args(Objective):
        raise refuse(f"its objective is {objective!r}; it has to be 'causal', 'masked' or 'any-order'")
    if vocabulary is not None:
        if not isinstance(vocabulary, tuple | list):
            raise refuse(f"its vocabulary is a {type(vocabulary).__name__}; it has to be a tuple of words, or None")
        require_words(vocabulary, name, source)
    return cast(LanguageModel, model)


def require_words(vocabulary: tuple[Any, ...] | list[Any], name: str, source: Path | None = None) -> None:
    """Refuse a vocabulary that is not a list of different words.

    Raises:
        InputError: an entry is no text, empty, or repeated (code ``vocabulary``).
    """
    seen: set[str] = set()
    for number, word in enumerate(vocabulary, start=1):
        if not isinstance(word, str):
            problem = f"is {word!r}, not a string"
        elif not word or word != "".join(word.split()):
            problem = f"is {word!r}, which is not a word: words are not empty and have no white space"
        elif not _is_text(word):
            problem = f"is {word!r}, which has half of a character (a lone surrogate); give it text"
        elif word in seen:
            problem = f"is {word!r}, which is there twice; keep one"
        else:
            seen.add(word)
            continue
        raise InputError(f"entry {number} of the vocabulary of {name} {problem}", source, code="vocabulary")


def _is_text(text: str) -> bool:
    """Return True if a string can be written to a file: it has no lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


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
