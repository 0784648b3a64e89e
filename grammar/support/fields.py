"""Fields of settings: of pydantic models, and of dataclasses whose fields are annotated with `pydantic.Field`."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, get_type_hints

from pydantic import BaseModel, GetJsonSchemaHandler
from pydantic.fields import FieldInfo
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema


def fields_of(kind: Any) -> dict[str, FieldInfo]:
    """Fields by name, of a pydantic model or dataclass; no others have any."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return dict(kind.model_fields)
    if not is_dataclass(kind) or not isinstance(kind, type):
        return {}
    checked: dict[str, FieldInfo] | None = getattr(kind, "__pydantic_fields__", None)
    return dict(checked) if checked is not None else _annotated(kind)


def field_description(kind: type, name: str) -> str:
    """What a field of a settings class means."""
    return fields_of(kind)[name].description or ""


class KeysOf:
    """Annotates a mapping whose JSON Schema is that of a settings class, none of whose keys needs to be there."""

    def __init__(self, kind: Any) -> None:
        self._kind = kind

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """A reference to the schema of the class."""
        return handler(self._kind.__pydantic_core_schema__)


@cache
def _annotated(kind: type) -> dict[str, FieldInfo]:
    hints = get_type_hints(kind, include_extras=True)
    return {field.name: FieldInfo.from_annotated_attribute(hints[field.name], field.default) for field in fields(kind)}
