"""Settings of a custom architecture, and its code: found, compared with the settings, called.

The settings are the ones of every model, and whatever the code takes.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from inspect import Parameter
from pathlib import Path
from typing import Any, Literal

from pydantic import ConfigDict, Field, JsonValue, SerializerFunctionWrapHandler, model_serializer, model_validator

from truesource.generator.objectives import OBJECTIVES, Objective
from truesource.grammar.support.errors import InputError
from truesource.lmtrain.config import ModelConfig
from truesource.lmtrain.own.shared import OURS, changed_settings, is_plain, plain
from truesource.lmtrain.references import Code, code_of_architecture, load_code

_BY_NAME = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
#: annotations that are checked
_PLAIN: dict[str, type | tuple[type, ...]] = {
    "int": int,
    "float": (int, float),
    "bool": bool,
    "str": str,
}
_NAMED = {"int": "a whole number", "float": "a number", "bool": "true or false", "str": "a text"}


class OwnSettings(ModelConfig):
    """Settings of a model whose architecture is custom code.

    All keys that are not fields are settings of the code, in the same flat mapping. The code is not imported or run for
    them; `Factory.completed` compares them with it.
    """

    model_config = ConfigDict(extra="allow", frozen=True)
    __pydantic_extra__: dict[str, JsonValue]

    objective: Literal["causal", "masked"] = Field(  # type: ignore[misc]
        "causal", description="Whether the code predicts a word from those before it, or from all others."
    )
    max_positions: int | None = Field(
        None, ge=3, description="Maximum number of tokens of an input, <bos> (and <eos>) included (default: any)."
    )
    code_digest: str | None = Field(
        None, description="SHA-256 of the file of the code; filled in when the code is imported."
    )
    code_base: Path | None = Field(
        None, exclude=True, description="Folder that a relative file of code starts from (default: the working folder)."
    )

    @model_validator(mode="before")
    @classmethod
    def _leave_out_settings_of_others(cls, values: dict[str, object]) -> dict[str, object]:
        """Drop nothing: a key that a built-in architecture has too is a setting of the code."""
        return values

    @model_validator(mode="after")
    def _settings_are_json(self) -> OwnSettings:
        for name, value in self.settings.items():
            try:
                json.dumps(value, allow_nan=False)
            except (TypeError, ValueError) as error:
                raise ValueError(f"{name} must be a finite number, a text, true, false, or a list of these") from error
        return self

    @model_serializer(mode="wrap")
    def _record(self, handler: SerializerFunctionWrapHandler) -> dict[str, object]:
        return handler(self)  # type: ignore[no-any-return]

    @property
    def settings(self) -> dict[str, object]:
        """The settings of the code."""
        return dict(self.__pydantic_extra__)

    @property
    def longest(self) -> int | None:
        """Maximum number of tokens of an input."""
        return self.max_positions

    @property
    def size(self) -> str:
        """The settings of the code that are numbers, such as ``hidden64-layers2``."""
        numbers = {k: v for k, v in self.settings.items() if isinstance(v, int | float) and not isinstance(v, bool)}
        return "-".join(f"{key}{value:g}" for key, value in numbers.items())

    @property
    def label(self) -> str:
        """Name in tables: the name of the class or function, and its size."""
        if self.name is not None:
            return self.name
        named = self.model_copy(update={"architecture": self.architecture.rpartition(":")[2]})
        return re.sub(r"[^\w.-]+", "-", super(OwnSettings, named).label)


@dataclass(frozen=True)
class Factory:
    """A class or function that is called as ``code(vocabulary_size, **settings)`` and returns a `torch.nn.Module`."""

    code: Code
    parameters: Mapping[str, Parameter]  #: by name, those that take settings
    open: bool  #: it takes settings of any name

    @classmethod
    def of(cls, code: Code) -> Factory:
        """Read the signature of the code.

        Raises:
            InputError: the object cannot be called (code ``not-callable``), or not with a number of tokens (``input``).
        """
        if not callable(code.object):
            raise _error(code, f"is a {type(code.object).__name__}, which cannot be called", "not-callable")
        try:
            parameters = list(inspect.signature(code.object).parameters.values())
        except (TypeError, ValueError):  # such as of a class written in C
            return cls(code, {}, True)
        first = parameters[0] if parameters else None
        if first is None or first.kind not in (
            Parameter.POSITIONAL_ONLY,
            Parameter.POSITIONAL_OR_KEYWORD,
            Parameter.VAR_POSITIONAL,
        ):
            raise _error(code, "takes no positional argument; its first one must be the number of tokens", "input")
        named = {p.name: p for p in parameters[1:] if p.kind in _BY_NAME}
        return cls(code, named, any(p.kind is Parameter.VAR_KEYWORD for p in parameters))

    @property
    def objective(self) -> Objective | None:
        """The objective that the code states; None if it states none, or an unknown one."""
        stated = getattr(self.code.object, "objective", None)
        return next((objective for objective in OBJECTIVES if objective == stated), None)

    def completed(self, settings: OwnSettings) -> OwnSettings:
        """Return the settings with the defaults of the signature, so that equal models have equal settings.

        Raises:
            InputError: the code takes no such setting (code ``unknown-setting``) or needs another one
                (``missing-setting``), a value is of another type (``wrong-setting``), or the code has another objective
                (``other-objective``).
        """
        code_settings = settings.settings
        if not self.open:
            for name in code_settings:
                if name not in self.parameters:
                    raise _error(self.code, f"takes no setting {name}; {self._listed()}", "unknown-setting")
        for name, value in code_settings.items():
            self._check_type(name, value)
        needed = [
            name
            for name, parameter in self.parameters.items()
            if parameter.default is Parameter.empty and name not in code_settings and name not in OURS
        ]
        if needed:
            raise _error(self.code, f"needs the setting {needed[0]}; {self._listed()}", "missing-setting")
        changed = {name: plain(p.default) for name, p in self.parameters.items() if is_plain(p.default)}
        limit = settings.max_positions
        if limit is None:
            limit = changed.get("max_positions", getattr(self.code.object, "max_positions", None))
        if limit is not None and not (isinstance(limit, int) and limit >= 3):
            raise _error(self.code, f"has max_positions {limit!r}, which must be 3 or more", "wrong-setting")
        stated = getattr(self.code.object, "objective", settings.objective)
        if stated != settings.objective:
            raise _error(
                self.code,
                f"has the objective {stated!r}, but its settings say {settings.objective!r};"
                " give the model the setting objective: causal or masked, as the code has it",
                "other-objective",
            )
        defaults = {k: v for k, v in changed.items() if k not in OwnSettings.model_fields}
        values = {**settings.model_dump(), **{k: v for k, v in defaults.items() if k not in code_settings}}
        values |= {"max_positions": limit, "code_digest": self.code.digest, "code_base": settings.code_base}
        return OwnSettings(**values)

    def arguments(self, settings: OwnSettings) -> dict[str, object]:
        """Return the arguments of the code: the settings that differ from its own defaults."""
        ours = {name: getattr(settings, name) for name in OURS if name in self.parameters}
        return changed_settings(self.parameters, {**settings.settings, **ours})

    def _check_type(self, name: str, value: Any) -> None:
        annotation = self.parameters[name].annotation if name in self.parameters else None
        kind = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
        expected = _PLAIN.get(kind)
        if expected is None:
            return
        if not isinstance(value, expected) or (isinstance(value, bool) and kind != "bool"):
            raise _error(self.code, f"needs {_NAMED[kind]} as {name}, not {value!r}", "wrong-setting")

    def _listed(self) -> str:
        names = [name for name in self.parameters if name not in OwnSettings.model_fields]
        return f"its settings are {', '.join(names)}" if names else "it has no settings"


def find(settings: OwnSettings) -> Factory:
    """Return the code that the settings name.

    Raises:
        InputError: see `code_for`, and `Factory.of`.
    """
    return Factory.of(code_for(settings))


def code_for(settings: OwnSettings) -> Code:
    """Import the code that the settings name.

    Raises:
        InputError: see `truesource.lmtrain.references.load_code`.
    """
    return load_code(code_of_architecture(settings.architecture), settings.code_base)


def _error(code: Code, problem: str, kind: str) -> InputError:
    return InputError(f"{code.name} {problem}", code.source, code=kind)
