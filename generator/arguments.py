"""Arguments of the library's calls: a truth by its file, a range as a pair, models in a list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from truesource.grammar.conditioning import LengthRange
from truesource.grammar.support.errors import InputError
from truesource.grammar.truth import Truth, load_truth


def as_truth(value: Any) -> Truth:
    """Return a truth: unchanged, or from a file or the name of a language.

    Raises:
        InputError: it is no truth, or a model, which comes before the truth (code ``no-truth``).
    """
    if isinstance(value, (str, Path)):
        return load_truth(value)
    if _is_truth(value):
        result: Truth = value
        return result
    if hasattr(value, "score") or isinstance(value, Mapping):
        raise InputError("models come first, then the truth: pass a grammar or process second", code="no-truth")
    if hasattr(value, "truth"):
        raise InputError(
            f"expecting a grammar or process as the truth, got {_kind(value)}; pass the truth of the corpus, as"
            " corpus.truth",
            code="no-truth",
        )
    raise InputError(
        f"expecting a grammar or process as the truth, got {_kind(value)}; pass one, its file, or a language such as"
        " 'dyck:k=2'",
        code="no-truth",
    )


def as_lengths(value: Any) -> LengthRange | None:
    """Return a range of lengths: unchanged, or from text such as ``6..25``, or from a pair of its ends.

    Raises:
        InputError: it has another form.
    """
    if value is None or isinstance(value, LengthRange):
        return value
    if isinstance(value, str):
        return LengthRange.parse(value)
    if isinstance(value, range):
        raise InputError(
            f"a length range includes both ends, unlike {value!r}; write a pair, such as"
            f" ({value.start}, {value.stop - value.step})"
        )
    value = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(value, Sequence) and len(value) == 2:
        return LengthRange(*value)
    raise InputError(f"expecting a range of lengths such as LengthRange(6, 25), '6..25' or (6, 25), got {_kind(value)}")


def as_model(value: Any) -> Any:
    """Return a model, which has a name and a score.

    Raises:
        InputError: it is a truth, or something else (code ``not-a-model``).
    """
    if hasattr(value, "score") and hasattr(value, "name"):
        return value
    if _is_truth(value):
        raise InputError("expecting a model, got a truth; models come first, then the truth", code="not-a-model")
    raise InputError(
        f"expecting a model, got {_kind(value)}; {_remedy(value)}",
        code="not-a-model",
    )


def _remedy(value: Any) -> str:
    """Return how to make a model of an object."""
    if hasattr(value, "save_pretrained"):
        return "pass it with its tokeniser, as a pair: (model, tokenizer)"
    if hasattr(value, "parameters") and hasattr(value, "forward"):
        return "pass it with its words in the order of their numbers, as a pair: (module, words)"
    if callable(value):
        return "pass it with its words, as a pair: (function, words); it maps sentences to log probabilities"
    return "load_model(reference) loads one, FunctionModel makes one"


def as_models(models: Any) -> dict[str, list[Any]]:
    """Return the seeds of models by name: of a mapping by its keys, of a list by the names of the models.

    Raises:
        InputError: something is no model (code ``not-a-model``), or there is only one (``too-few-models``).
    """
    result: dict[str, list[Any]] = {}
    if isinstance(models, Mapping):
        for name, value in models.items():
            many = isinstance(value, Sequence) and not isinstance(value, str)
            result[name] = [as_model(each) for each in (value if many else [value])]
    else:
        for model in models if isinstance(models, (list, tuple)) else [models]:
            result.setdefault(as_model(model).name, []).append(model)
    if len(result) < 2:
        raise InputError(
            f"expecting two or more models with different names, got {len(result)}; compare(model, text) compares one"
            " with the truth",
            code="too-few-models",
        )
    return result


def _is_truth(value: Any) -> bool:
    return hasattr(value, "exact") and hasattr(value, "vocabulary")


def _kind(value: Any) -> str:
    return f"{type(value).__name__}" if not isinstance(value, type) else f"the class {value.__name__}"
