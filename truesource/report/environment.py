"""The one way to fill an HTML template: data are escaped, and what a template lacks is an error."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from markupsafe import Markup

from truesource.evaluation.show import words
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.printable import terminal

FOLDER = Path(__file__).parent
TABLE = FOLDER / "table.html.j2"


def render(
    page: Path,
    place: Path,
    *,
    templates: Mapping[str, Path] | None = None,
    svg: Callable[[str], Any] | None = None,
    **context: Any,
) -> str:
    """Fill a template.

    Args:
        page: the template.
        place: source of the page's data, for messages.
        templates: templates that it includes, by name.
        svg: function from a figure to markup; None: the figure itself.
        context: data that they show.

    Raises:
        InputError: an entry that a template shows is missing.
    """
    import yaml
    from jinja2 import Environment, FunctionLoader, StrictUndefined, UndefinedError

    files = {page.name: page, TABLE.name: TABLE, **(templates or {})}
    environment = Environment(
        loader=FunctionLoader(lambda name: files[name].read_text(encoding="utf-8")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        number=words.number,
        duration=words.duration,
        file_names=words.file_names,
        command_line=words.command_line,
        yaml=lambda value: yaml.safe_dump(value, sort_keys=False, allow_unicode=True),
        svg=svg or Markup,
        table=lambda table: Markup(environment.get_template(TABLE.name).render(table=table)),
    )
    style = Markup((FOLDER / "style.css").read_text(encoding="utf-8"))
    try:
        return terminal(environment.get_template(page.name).render(style=style, count=words.count, **context))
    except UndefinedError as error:
        raise InputError(f"a record lacks an entry ({error}); run the experiment again", place) from error


def script_hash(script: str) -> str:
    """Return the name that a Content-Security-Policy gives to a script whose text is in the page."""
    digest = hashlib.sha256(script.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"


def data_of_script(value: Any) -> Markup:
    """Return a value as JSON for a ``<script type="application/json">``: ASCII, without special characters of XML.

    Texts are as a terminal may print them: control characters are shown as escapes.
    """
    text = json.dumps(_printable(value), separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return Markup(re.sub("[<>&]", lambda found: f"\\u{ord(found[0]):04x}", text))


def _printable(value: Any) -> Any:
    if isinstance(value, str):
        return terminal(value)
    if isinstance(value, dict):
        return {_printable(key): _printable(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_printable(each) for each in value]
    return value
