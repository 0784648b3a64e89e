"""What all settings have in common, in a configuration and on the command line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict

from truesource.grammar.support.errors import InputError


class Settings(BaseModel):
    """Settings of one thing: the keys of a configuration, the options of a command, the defaults of both.

    A field's description is the help of its option and its line in the table of defaults. A field of type
    `pathlib.Path` is a file: relative to the configuration there, to the working folder on the command line.
    Unknown keys are refused.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    yaml_only: ClassVar[frozenset[str]] = frozenset()  #: fields without an option

    def named_files(self) -> dict[str, Path]:
        """The files that the settings name, by field; those of a mapping by ``field.name``."""
        found: dict[str, Path] = {}
        for name in type(self).model_fields:
            value = getattr(self, name)
            files = {f"{name}.{key}": each for key, each in value.items()} if isinstance(value, dict) else {name: value}
            found |= {key: each for key, each in files.items() if isinstance(each, Path)}
        return found

    def resolved(self, resolve: Callable[[Path], Path]) -> Self:
        """The settings with other paths of their files."""

        def changed(value: Any) -> Any:
            if isinstance(value, dict):
                return {key: changed(each) for key, each in value.items()}
            return resolve(value) if isinstance(value, Path) else value

        return self.model_copy(update={name: changed(getattr(self, name)) for name in type(self).model_fields})


def option_name(field: str) -> str:
    """``--most-prefixes`` for ``most_prefixes``, ``--from`` for ``from_``."""
    return f"--{field.rstrip('_').replace('_', '-')}"


def split_reference(text: str) -> tuple[str, dict[str, str]]:
    """Name and settings of ``name:key=value,key=value``.

    Raises:
        InputError: it is not written so.
    """
    name, colon, rest = (part.strip() for part in text.partition(":"))
    given = [[part.strip() for part in pair.partition("=")] for pair in (rest.split(",") if colon else ())]
    values = {key: value for key, _, value in given}
    if len(values) < len(given) or not all(key and value for key, value in values.items()):
        raise InputError(
            f"write settings as {name or 'name'}:key=value,key=value, each once, not as {text!r}", code="bad-setting"
        )
    return name, values


def join_reference(name: str, values: Mapping[str, Any]) -> str:
    """``name:key=value,key=value``, which `split_reference` reads; values that are None are left out."""
    given = ",".join(f"{key}={written(value)}" for key, value in values.items() if value is not None)
    return f"{name}:{given}" if given else name


def written(value: Any) -> str:
    """A setting's value as a reference has it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.as_posix() if isinstance(value, Path) else str(value)
