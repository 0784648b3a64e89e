"""Base of all settings, in configurations and on the command line; and suggestions for wrong names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, Literal, Self, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler, model_validator
from pydantic.fields import FieldInfo
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from truesource.grammar.support.errors import InputError
from truesource.grammar.support.printable import line_of_settings
from truesource.grammar.support.room import LARGEST_NUMBER, approximate

#: default of every seed: of corpora, models, samples, permutations and intervals, so that intervals are reproducible
DEFAULT_SEED = 1
NONE = "none"  #: notation of null in configurations and options
#: names of settings in other libraries, with our names
_ELSEWHERE = {
    "lr": "learning_rate",
    "n_layer": "layers",
    "num_layers": "layers",
    "num_hidden_layers": "layers",
    "n_head": "heads",
    "num_heads": "heads",
    "num_attention_heads": "heads",
    "n_embd": "dim",
    "d_model": "dim",
    "hidden_size": "dim",
    "intermediate_size": "ffn_dim",
    "n_positions": "max_positions",
    "max_position_embeddings": "max_positions",
    "num_train_epochs": "epochs",
    "batch_size": "batch_sentences",
    "per_device_train_batch_size": "batch_sentences",
    "gradient_accumulation_steps": "accumulation",
    "max_grad_norm": "clip",
    "minimal_pairs": "pairs",
}


class Settings(BaseModel):
    """Settings of one thing: the keys of a configuration, the options of a command, the defaults of both.

    A field's description is the help of its option and its line in the table of defaults. A field of type
    `pathlib.Path` is a file: relative to the configuration file, or on the command line to the working folder. Unknown
    keys are refused.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    yaml_only: ClassVar[frozenset[str]] = frozenset()  #: fields without an option
    #: lists whose values may hold a comma: their option is repeated, once for each value
    repeated: ClassVar[frozenset[str]] = frozenset()
    advanced: ClassVar[frozenset[str]] = frozenset()  #: fields that few users change, see `is_advanced`

    @model_validator(mode="before")
    @classmethod
    def _none_is_a_value(cls, values: Any) -> Any:
        return none_as_null(cls.model_fields, values)

    @model_validator(mode="after")
    def _numbers_fit(self) -> Self:
        require_numbers(self.__dict__)
        return self

    def __repr__(self) -> str:
        return brief_line(self)

    def named_files(self) -> dict[str, Path]:
        """Return the files named in the settings, by field; files of a mapping by ``field.name``."""
        result: dict[str, Path] = {}
        for name in type(self).model_fields:
            value = getattr(self, name)
            files = {f"{name}.{key}": each for key, each in value.items()} if isinstance(value, dict) else {name: value}
            result |= {key: each for key, each in files.items() if isinstance(each, Path)}
        return result

    def resolved(self, resolve: Callable[[Path], Path]) -> Self:
        """Return the settings with the paths of their files resolved."""

        def changed(value: Any) -> Any:
            if isinstance(value, dict):
                return {key: changed(each) for key, each in value.items()}
            return resolve(value) if isinstance(value, Path) else value

        return self.model_copy(update={name: changed(getattr(self, name)) for name in type(self).model_fields})


def require_numbers(values: Any, where: str = "") -> None:
    """Refuse integers too large for arrays and files, in settings or options.

    Args:
        values: a number, or a mapping or sequence of values; others pass.
        where: the key of the value.

    Raises:
        ValueError: a number is above `LARGEST_NUMBER`, or below its negative.
    """
    if isinstance(values, Mapping):
        for key, value in values.items():
            require_numbers(value, f"{where}.{key}" if where else str(key))
    elif isinstance(values, list | tuple):
        for value in values:
            require_numbers(value, where)
    elif isinstance(values, int) and abs(values) > LARGEST_NUMBER:
        raise ValueError(
            f"{where + ': ' if where else ''}expected at most {LARGEST_NUMBER:,}, not {approximate(values)}"
        )


def none_as_null(fields: Mapping[str, FieldInfo], values: Any) -> Any:
    """Read the word ``none`` as null in values of a configuration, wherever a field accepts null.

    Args:
        fields: fields of the settings, by name.
        values: values by name; anything but a mapping is returned unchanged.
    """
    if not isinstance(values, Mapping):
        return values
    return {
        key: None if value == NONE and key in fields and _takes_null(fields[key].annotation) else value
        for key, value in values.items()
    }


def _takes_null(annotation: Any) -> bool:
    """Return True if None is a value of a type, and the word ``none`` is not another value."""
    if get_origin(annotation) is Annotated:
        return _takes_null(get_args(annotation)[0])
    if get_origin(annotation) not in (Union, UnionType):
        return annotation is NoneType
    kinds = get_args(annotation)
    words = {word for kind in kinds if get_origin(kind) is Literal for word in get_args(kind)}
    return NONE not in words and any(map(_takes_null, kinds))


def option_name(field: str) -> str:
    """Return ``--most-prefixes`` for ``most_prefixes``, ``--from`` for ``from_``."""
    return f"--{field.rstrip('_').replace('_', '-')}"


def split_reference(text: str) -> tuple[str, dict[str, str]]:
    """Return the name and settings of ``name:key=value,key=value``.

    Raises:
        InputError: the text has another form.
    """
    if not isinstance(text, str):
        raise InputError(f"expecting text such as 'name:key=value', got {text!r}", code="bad-setting")
    name, colon, rest = (part.strip() for part in text.partition(":"))
    pairs = [[part.strip() for part in pair.partition("=")] for pair in (rest.split(",") if colon else ())]
    values = {key: value for key, _, value in pairs}
    if len(values) < len(pairs) or not all(key and value for key, value in values.items()):
        raise InputError(
            f"write settings as {name or 'name'}:key=value,key=value, each once, not as {text!r}", code="bad-setting"
        )
    return name, values


def join_reference(name: str, values: Mapping[str, Any]) -> str:
    """Return ``name:key=value,key=value``, which `split_reference` reads, without values that are None."""
    pairs = ",".join(f"{key}={written(value)}" for key, value in values.items() if value is not None)
    return f"{name}:{pairs}" if pairs else name


def written(value: Any) -> str:
    """Return a setting's value in the notation of a reference."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.as_posix() if isinstance(value, Path) else str(value)


def fields_of(kind: Any) -> dict[str, FieldInfo]:
    """Return the fields by name, of a pydantic model or dataclass; none for others."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return dict(kind.model_fields)
    if not is_dataclass(kind) or not isinstance(kind, type):
        return {}
    checked: dict[str, FieldInfo] | None = getattr(kind, "__pydantic_fields__", None)
    return dict(checked) if checked is not None else _annotated(kind)


def is_advanced(kind: type, name: str) -> bool:
    """Return True for a field of settings that few users change, which help and documentation list separately."""
    return any(name in vars(each).get("advanced", ()) for each in kind.__mro__)


def field_description(kind: type, name: str) -> str:
    """Return the meaning of a field of a settings class."""
    return fields_of(kind)[name].description or ""


class KeysOf:
    """Annotation of a mapping whose JSON Schema is the schema of a settings class, with all keys optional."""

    def __init__(self, kind: Any) -> None:
        self._kind = kind

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Return a reference to the schema of the class."""
        return handler(self._kind.__pydantic_core_schema__)


@cache
def _annotated(kind: type) -> dict[str, FieldInfo]:
    hints = get_type_hints(kind, include_extras=True)
    return {field.name: FieldInfo.from_annotated_attribute(hints[field.name], field.default) for field in fields(kind)}


def brief_line(settings: BaseModel) -> str:
    """Return one line of settings, those that differ from their defaults."""
    defaults = {name: field.default for name, field in type(settings).model_fields.items() if not field.is_required()}
    return line_of_settings(type(settings).__name__, dict(settings), defaults)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ``; did you mean lengths?``, or nothing without a similar known name or one from other libraries."""
    names = list(known)
    near = [ours] if (ours := _ELSEWHERE.get(name.lower())) in names else get_close_matches(name.lower(), names, 1)
    return f"; did you mean {near[0]}?" if near else ""


def keys_at(model: Any, where: Iterable[str | int]) -> tuple[str, ...]:
    """Return the keys at a position in settings.

    Args:
        model: class of the settings: a pydantic model or a dataclass.
        where: keys and numbers of list entries that lead from ``model`` to the position.

    Returns:
        The keys; none if the position does not hold settings of a known class.
    """
    kinds = [model]
    for part in where:
        kinds = [inner for kind in kinds for inner in _inside(kind, part)]
    return tuple(key for kind in kinds for key in fields_of(kind))


def members(annotation: Any) -> list[Any]:
    """Return the classes of a type: the members of a union; for ``Annotated``, the annotated type."""
    if get_origin(annotation) is Annotated:
        return members(get_args(annotation)[0])
    if isinstance(annotation, type) or get_origin(annotation) in (list, tuple, dict):
        return [annotation]
    return [each for part in get_args(annotation) for each in members(part)]


def _inside(kind: Any, part: str | int) -> list[Any]:
    """Return the types at a key or number of a type."""
    if get_origin(kind) in (list, tuple, dict):
        return members(get_args(kind)[0 if isinstance(part, int) else -1])
    field = fields_of(kind).get(str(part))
    return [] if field is None else members(field.annotation)
