"""Scripts and their data in a page: nothing but the scripts of this package runs."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from typing import Any

from markupsafe import Markup

from truesource.grammar.support.printable import terminal


def script_hash(script: str) -> str:
    """What a Content-Security-Policy calls a script whose text stands in the page."""
    digest = hashlib.sha256(script.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"


def data_of_script(value: Any) -> Markup:
    """A value as JSON for a ``<script type="application/json">``: ASCII, without a character that HTML or XML obeys.

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
