"""Options of a command from its settings class, which defines names, defaults, bounds and help once."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

import typer
from annotated_types import Ge, Le
from pydantic import ValidationError
from pydantic.fields import FieldInfo

from truesource.evaluation.sources import named
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.records import explain
from truesource.grammar.support.settings import NONE, Settings, is_advanced, option_name
from truesource.terminal.help import ADVANCED

Command = TypeVar("Command", bound=Callable[..., None])


def with_options(kind: type[Settings]) -> Callable[[Command], Command]:
    """Give a command an option for each field of its parameter ``settings``.

    A field ``most_prefixes`` becomes ``--most-prefixes``; lists are separated by commas, or, for fields in
    ``kind.repeated``, have one value per option. A mapping to files is
    ``NAME=PATH`` or ``PATH``, repeated; a mapping to languages ``NAME=LANGUAGE`` or ``LANGUAGE``. Fields in
    ``kind.yaml_only`` get no option and keep their default.

    Args:
        kind: the settings class; the description of each field is the help of its option.
    """

    def decorate(command: Command) -> Command:
        signature = inspect.signature(command, eval_str=True)
        fields = {name: field for name, field in kind.model_fields.items() if name not in kind.yaml_only}
        parameters: list[inspect.Parameter] = []
        for parameter in signature.parameters.values():
            if parameter.name == "settings":
                parameters += [_option(kind, name, field) for name, field in fields.items()]
            else:
                parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))

        @functools.wraps(command)
        def called(**arguments: Any) -> None:
            values = {name: _value(kind, name, field, arguments.pop(name)) for name, field in fields.items()}
            command(**arguments, settings=from_options(kind, values))

        called.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        called.from_settings = True  # type: ignore[attr-defined]
        called.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return called  # type: ignore[return-value]

    return decorate


def from_options(kind: type[Settings], values: Mapping[str, Any]) -> Settings:
    """Build settings from values of options.

    Raises:
        InputError: a value is out of its range, or two contradict each other; the message names the option.
    """
    try:
        return kind(**values)
    except ValidationError as error:
        message = explain(error)
        name, colon, rest = message.partition(": ")
        field = name.partition(".")[0]
        raise InputError(f"{option_name(field)}{colon}{rest}" if field in kind.model_fields else message) from error


def _option(settings: type[Settings], name: str, field: FieldInfo) -> inspect.Parameter:
    kind, optional = _plain_type(field.annotation)
    default = field.get_default(call_default_factory=True)
    flag, text = option_name(name), field.description or ""
    bounds: dict[str, Any] = {"rich_help_panel": ADVANCED} if is_advanced(settings, name) else {}
    if name in settings.repeated:
        text = f"{text.removesuffix('.')} (default: {', '.join(default)})." if default else text
        kind, default, optional = list[str], None, True
        bounds["metavar"] = "TEXT"
    elif _is_list(kind):
        kind, default = str, ",".join(map(str, default or ())) or None
        bounds["metavar"] = "A,B,..."
        optional = default is None
    elif get_origin(kind) is dict:
        bounds["metavar"] = "NAME=PATH" if get_args(kind)[1] is Path else "NAME=LANGUAGE"
        kind, default, optional = list[str], None, True
    elif kind is bool:
        flag = flag if default is False else f"{flag}/--no-{flag[2:]}"
    elif kind in (int, float):
        least = next((bound.ge for bound in field.metadata if isinstance(bound, Ge)), None)
        most = next((bound.le for bound in field.metadata if isinstance(bound, Le)), None)
        if kind is int and optional and default is not None:
            bounds |= {"parser": number_or_none, "metavar": "N"}  # its range is checked with the settings
        else:
            bounds |= {"min": least, "max": most}
    short = ("-n",) if name == "number" else ()
    info = typer.Option(flag, *short, help=text, **bounds)
    annotation = Annotated[kind | None if optional else kind, info]  # type: ignore[valid-type]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def number_or_none(value: str | int) -> int | str:
    """Read a whole number, or the word ``none``, which settings read as null.

    Raises:
        ValueError: it is neither.
    """
    text = str(value)  # the default is a number
    if text != NONE and not text.lstrip("-").isdecimal():
        raise ValueError(f"{text!r} is neither a whole number nor none")
    return NONE if text == NONE else int(text)


def _value(settings: type[Settings], name: str, field: FieldInfo, value: Any) -> Any:
    """Convert the value of an option to the value of its field."""
    kind, _ = _plain_type(field.annotation)
    if name in settings.repeated:
        return list(value) if value else field.get_default(call_default_factory=True)
    if _is_list(kind):
        parts = [part.strip() for part in (value or "").split(",") if part.strip()]
        return parts if value is not None else field.get_default(call_default_factory=True)
    if get_origin(kind) is dict:
        files = [named(text) for text in value or ()]
        titles = [title for title, _ in files]
        if twice := next((title for title in titles if titles.count(title) > 1), None):
            raise InputError(f"two files of {option_name(name)} have the name {twice!r}; rename one, NAME=PATH")
        return {title: get_args(kind)[1](path) for title, path in files}
    return value


def _plain_type(annotation: Any) -> tuple[Any, bool]:
    """Return a field's type without ``None``, and True if it may be ``None``."""
    if get_origin(annotation) in (UnionType, Union):
        kinds = [kind for kind in get_args(annotation) if kind is not NoneType]
        return (kinds[0] if len(kinds) == 1 else annotation), len(kinds) < len(get_args(annotation))
    return annotation, False


def _is_list(kind: Any) -> bool:
    return get_origin(kind) in (list, tuple) and bool(get_args(kind))
