"""Fields of settings in the API: their text and their default, as help and the page of settings have them."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel
from sphinx.ext.napoleon.docstring import GoogleDocstring

if TYPE_CHECKING:
    from sphinx.application import Sphinx


def _field(name: str) -> Any:
    """The pydantic field of an attribute, by its full name; None: it is none."""
    module, _, rest = name.rpartition(".")
    while module:
        try:
            found: Any = importlib.import_module(module)
            break
        except ModuleNotFoundError:
            module, _, inner = module.rpartition(".")
            rest = f"{inner}.{rest}"
    else:
        return None
    *owners, last = rest.split(".")
    for owner in owners:
        found = getattr(found, owner, None)
    return found.model_fields.get(last) if isinstance(found, type) and issubclass(found, BaseModel) else None


def add_text(_app: Sphinx, what: str, name: str, _obj: Any, _options: Any, lines: list[str]) -> None:
    """The description of a field, as its docstring."""
    field = _field(name) if what == "attribute" else None
    if field is not None and field.description and not any(lines):
        lines[:] = [field.description.replace("*", "\\*").replace("|", "\\|").replace("`", ""), ""]


def keep_fields(_app: Sphinx, what: str, name: str, _obj: Any, skip: bool, _options: Any) -> bool | None:
    """Leave out what pydantic and dataclasses add."""
    return True if name in {"model_config", "model_post_init", "yaml_only"} else None


def _whole_text(docstring: Any) -> list[str]:
    """The lines of an attribute, all of them: what stands before a colon is part of the text and no type."""
    inner = type(docstring)(docstring._consume_to_end(), docstring._config)
    found: list[str] = inner.lines()
    return found


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    GoogleDocstring._parse_attribute_docstring = _whole_text  # types are annotations here
    app.connect("autodoc-process-docstring", add_text)
    app.connect("autodoc-skip-member", keep_fields)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
