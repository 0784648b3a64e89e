"""Arguments as people pass them to the library: a truth by its file, a range as a pair, models in a list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from truesource.grammar.conditioning import LengthRange
from truesource.grammar.support.errors import InputError
from truesource.grammar.truth import Truth, load_truth


def as_truth(given: Any) -> Truth:
    """Return a truth: as it is, or from a file or the name of a language.

    Raises:
        InputError: it is none, or a model, which belongs in front of the truth (code ``no-truth``).
    """
    if isinstance(given, (str, Path)):
        return load_truth(given)
    if _is_truth(given):
        result: Truth = given
        return result
    if hasattr(given, "score") or isinstance(given, Mapping):
        raise InputError("models come first, then the truth: give a grammar or process second", code="no-truth")
    raise InputError(f"expecting a grammar or process as the truth, got {_kind(given)}", code="no-truth")


def as_lengths(given: Any) -> LengthRange | None:
    """Return a range of lengths: as it is, as text such as ``6..25``, or as a pair of its ends.

    Raises:
        InputError: it is none of these.
    """
    if given is None or isinstance(given, LengthRange):
        return given
    if isinstance(given, str):
        return LengthRange.parse(given)
    if isinstance(given, Sequence) and len(given) == 2:
        return LengthRange(*given)
    raise InputError(f"expecting a range of lengths such as LengthRange(6, 25), '6..25' or (6, 25), got {_kind(given)}")


def as_model(given: Any) -> Any:
    """Return a model, which has a name and a score.

    Raises:
        InputError: it is a truth, or something else (code ``not-a-model``).
    """
    if hasattr(given, "score") and hasattr(given, "name"):
        return given
    if _is_truth(given):
        raise InputError("a truth is where a model is expected; models come first, then the truth", code="not-a-model")
    raise InputError(
        f"expecting a model, got {_kind(given)}; {_remedy(given)}",
        code="not-a-model",
    )


def _remedy(given: Any) -> str:
    """Return how to make a model of an object."""
    if hasattr(given, "save_pretrained"):
        return "save it with save_pretrained, and its tokeniser too, and name the folder"
    if hasattr(given, "parameters") and hasattr(given, "forward"):
        return "FunctionModel.from_module(module, targets) makes one of a module that was trained with ExactTargets"
    if callable(given):
        return "FunctionModel(function, vocabulary=words) makes one of a function from sentences to log probabilities"
    return "load_model(reference) loads one, FunctionModel makes one"


def as_models(given: Any) -> dict[str, Any]:
    """Return models by name: a mapping as it is, a list by the names of the models, those of one name as its seeds.

    Raises:
        InputError: something is no model (code ``not-a-model``), or there is only one (``too-few-models``).
    """
    result: dict[str, Any] = {}
    if isinstance(given, Mapping):
        for name, value in given.items():
            many = isinstance(value, Sequence) and not isinstance(value, str)
            result[name] = [as_model(each) for each in value] if many else as_model(value)
    else:
        for model in given if isinstance(given, (list, tuple)) else [given]:
            result.setdefault(as_model(model).name, []).append(model)
    if len(result) < 2:
        raise InputError(
            f"expecting two models of different names or more, got {len(result)}; compare(model, text) compares one"
            " with the truth",
            code="too-few-models",
        )
    return result


def _is_truth(given: Any) -> bool:
    return hasattr(given, "exact") and hasattr(given, "terminals")


def _kind(given: Any) -> str:
    return f"{type(given).__name__}" if not isinstance(given, type) else f"the class {given.__name__}"
