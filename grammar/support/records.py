"""Read records from disk: JSON, lines of JSON and YAML, checked against a model before use.

A model is a `TypedDict` (the record stays a dict) or a pydantic model, with `STRICT` as its configuration; it is
defined next to the code that writes the record. Unknown keys are kept, so records of later versions can be read. Types
and bounds of a dataclass are stated once, in the annotations of its fields. The expansion of a YAML document is
limited.
"""

from __future__ import annotations

import json
import math
import re
import reprlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import fields
from functools import cache, lru_cache, partial
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Annotated, Any, TypeVar, get_type_hints

import pydantic_core
import yaml
from pydantic import AfterValidator, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import read_bytes, read_lines
from truesource.grammar.support.settings import did_you_mean, keys_at

RECORD_LIMIT = 256 * 2**20  #: most bytes of a JSON or YAML file
#: configuration of all models: no conversion between numbers and strings, no infinite numbers; unknown keys are kept
STRICT = ConfigDict(strict=True, extra="allow", allow_inf_nan=False)
_LINE = re.compile(r" at line (\d+) column \d+$")
#: kinds of pydantic errors, and the expected value
_EXPECTED = {
    **dict.fromkeys(("int_parsing", "int_type", "int_from_float"), "a whole number"),
    "int_parsing_size": "a smaller number",
    **dict.fromkeys(("float_parsing", "float_type"), "a number"),
    "finite_number": "a finite number",
    **dict.fromkeys(("bool_parsing", "bool_type"), "true or false"),
    "string_type": "a text",
    **dict.fromkeys(("tuple_type", "list_type"), "a list"),
    **dict.fromkeys(("dict_type", "mapping_type"), "values by name"),
}
_LIMITS = {"ge": "{} or more", "gt": "more than {}", "le": "{} or less", "lt": "less than {}"}
_MISTAKES = 5  #: most mistakes of one text that are named
NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"  #: pattern of names that become folder names
_PATTERNS = {NAME_PATTERN: "a name of letters, digits and . _ -, beginning with a letter or digit"}
_UNKNOWN = ("extra_forbidden", "unexpected_keyword_argument")
_RANGES = ("greater_than_equal", "greater_than", "less_than_equal", "less_than")

T = TypeVar("T")
MOST_VALUES = 1_000_000  #: most values in a document; an alias counts as all its content
DEEPEST = 100  #: most levels of nesting
#: errors of `yaml` for values that contradict their tag, such as ``!!timestamp x``
_UNCONVERTIBLE = (ValueError, OverflowError, AttributeError, LookupError, TypeError)


def _plain_name(name: str) -> str:
    """Refuse a name that is no plain file name on some system."""
    plain = PurePosixPath(name).name == name == PureWindowsPath(name).name
    if not plain or name in ("", ".", "..") or any(c < " " or c == "\x7f" for c in name):
        raise ValueError("not a plain file name")
    return name


def _inside(path: str) -> str:
    """Refuse a relative path that leaves its folder."""
    if not all(part == _plain_name(part) for part in path.split("/")):
        raise ValueError("not a path inside the folder")
    return path


FileName = Annotated[str, AfterValidator(_plain_name)]  #: name of a file in the folder of the record
InnerPath = Annotated[str, AfterValidator(_inside)]  #: path of a file below the folder of the record, parts joined by /
Count = Annotated[int, Field(ge=0, lt=2**63)]
Positive = Annotated[int, Field(ge=1, lt=2**63)]
Whole = Annotated[int, Field(ge=-(2**63), lt=2**63)]
Probability = Annotated[float, Field(ge=0.0, le=1.0 + 1e-9)]  #: sums may exceed 1 by rounding


def read_record(
    path: str | Path, model: type[T], *, what: str = "this file", remedy: str, absent: str | None = None
) -> T:
    """Read a JSON file.

    Args:
        path: the file.
        model: model of its content; ``Any`` for any JSON value.
        what: name of the file in messages.
        remedy: end of messages, such as ``"sample the corpus again"``.
        absent: message for a missing file, in place of one from ``what`` and ``remedy``.

    Raises:
        InputError: the file is missing, too large, not UTF-8, not JSON, or does not fit the model.
    """
    path = Path(path)
    if not path.is_file():
        raise InputError(absent or f"{what} is missing; {remedy}", path, code="missing")
    return decode_record(_content(path, what, remedy), model, what=what, remedy=remedy, path=path)


def read_records(path: str | Path, model: type[T], *, what: str = "this line", remedy: str) -> Iterator[tuple[int, T]]:
    """Yield (line number from 1 on, record) of a file with a JSON value a line; empty lines are skipped.

    Raises:
        InputError: as `read_record`, when the line is reached; the message has its number.
    """
    for number, line in enumerate(read_lines(path), start=1):
        if line.strip():
            yield number, decode_record(line, model, what=what, remedy=remedy, path=path, line=number)


def holds(path: str | Path, value: Any) -> bool:
    """Return True if a file holds exactly this JSON value; False if it cannot be read."""
    result: Any
    try:
        result = read_record(path, Any, remedy="")
    except InputError:
        return False
    return bool(result == value)


def decode_record(
    content: bytes | str,
    model: type[T],
    *,
    what: str,
    remedy: str,
    path: str | Path | None = None,
    line: int | None = None,
    embedded: bool = False,
    unique: bool = False,
) -> T:
    """Decode one JSON value and check it.

    Args:
        content: the value as text.
        model: model of the value; ``Any`` for any JSON value.
        what: name of the value in messages.
        remedy: end of messages.
        path: file of the value.
        line: its line, in a file of values.
        embedded: the file is not a text file, so lines of ``content`` are not lines of the file.
        unique: refuse a repeated key in an object, of which JSON takes the last.

    Raises:
        InputError: it is not JSON, does not fit the model, or repeats a key although ``unique``.
    """
    content = _without_mark(content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content)
    try:
        value = pydantic_core.from_json(content, allow_inf_nan=False)
    except ValueError as error:
        reason = str(error)
        place = _LINE.search(reason)
        number = line or (int(place[1]) if place and not embedded else None)
        raise InputError(
            f"{what} is not JSON: {_LINE.sub('', reason)}; {remedy}", path, number, code="damaged"
        ) from error
    if unique:
        json.loads(content, object_pairs_hook=partial(_require_unique, f"{what} is damaged", remedy, path))
    if not _finite(value):
        raise InputError(f"{what} holds a number that is too large; {remedy}", path, line, code="damaged")
    kind: Any = model
    adapter: TypeAdapter[T] = _adapter(kind)
    try:
        checked: T = _as_written(adapter.validate_json(content), value)
    except ValidationError as error:
        raise InputError(f"{what} is damaged: {explain(error)}; {remedy}", path, line, code="damaged") from error
    return checked


def read_yaml(path: str | Path, *, what: str = "this file", remedy: str) -> Any:
    """Read a YAML file of plain values, as `parse_yaml` does.

    Raises:
        InputError: the file is missing, too large, not UTF-8, or as for `parse_yaml`.
    """
    content = _without_mark(_content(Path(path), what, remedy))
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{what} is not YAML: it is not UTF-8 text; {remedy}", path, code="damaged") from error
    return parse_yaml(text, what=what, remedy=remedy, path=path)


def parse_yaml(text: str, *, what: str, remedy: str, path: str | Path | None = None) -> Any:
    """Return the value of a YAML document.

    Raises:
        InputError: it is not YAML, is nested too deeply, repeats a key, expands to too many values, or has a value that
            cannot be converted, such as an integer of thousands of digits.
    """
    try:
        return construct(text)
    except InputError as error:
        signs = "; quote a value such as '-'" if "sequence entries are not allowed" in str(error) else ""
        raise InputError(f"{what} is not YAML: {error}{signs}; {remedy}", path, error.line, code="damaged") from error


def explain(error: ValidationError, section: str = "", *, model: Any = None) -> str:
    """Return the first error of pydantic as ``key: what is wrong``, then unknown keys, and the number of others.

    Args:
        error: the error.
        section: key of the section that it is in.
        model: class to be created; for an unknown key, a similar one of it is named.
    """
    first, *others = error.errors(include_url=False)
    named = [first, *(each for each in others if each["type"] in _UNKNOWN)][:_MISTAKES]
    more = len(others) + 1 - len(named)
    rest = f" (and {more} more)" if more else ""
    return "; ".join(_line(each, section, model) for each in named) + rest


def made_settings(kind: type[T], what: str, values: Mapping[str, object]) -> T:
    """Create settings from the arguments of a call.

    Args:
        kind: class of the settings.
        what: the call, for messages.
        values: the arguments.

    Raises:
        InputError: a value or a name is wrong (code ``bad-setting``).
    """
    try:
        return kind(**values)
    except ValidationError as error:
        raise InputError(f"{what}: {explain(error, model=kind)}", code="bad-setting") from error


def _line(detail: ErrorDetails, section: str, model: Any) -> str:
    where = ".".join(str(part)[:80] for part in ((section,) if section else ()) + detail["loc"])
    similar = ""
    if detail["type"] in _UNKNOWN and model is not None:
        *parents, last = detail["loc"]
        similar = did_you_mean(str(last), keys_at(model, parents))
    return f"{where + ': ' if where else ''}{mistake(detail)}{similar}"


def mistake(detail: ErrorDetails) -> str:
    """Describe what is wrong with one value, such as ``expected 1 or more, not 0``; rare kinds as in pydantic."""
    kind, value, context = detail["type"], detail["input"], detail.get("ctx", {})
    if kind in _UNKNOWN:
        return "unknown key"
    if kind == "missing":
        return "this key is missing"
    limits = [wording.format(plain_number(context[key])) for key, wording in _LIMITS.items() if key in context]
    if kind in _RANGES and limits:
        return f"expected {limits[0]}, not {plain_number(value)}"
    expected = f"one of {context['expected']}" if kind == "literal_error" else _EXPECTED.get(kind)
    if kind == "string_pattern_mismatch":
        expected = _PATTERNS.get(context["pattern"])
    if expected is None:
        return detail["msg"].removeprefix("Value error, ")
    return f"expected {expected}, not {reprlib.repr(value)}"


def plain_number(value: Any) -> str:
    """Return a number with thousands separators (``1,000,000``); other values unchanged, shortened if long."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value).strip()[:40]


@lru_cache(maxsize=256)
def _adapter(model: Any) -> TypeAdapter[Any]:
    return TypeAdapter(model)


def _require_unique(what: str, remedy: str, path: str | Path | None, pairs: list[tuple[str, Any]]) -> dict[str, object]:
    result = dict(pairs)
    if len(result) < len(pairs):
        twice = next(key for key, n in Counter(key for key, _ in pairs).items() if n > 1)
        raise InputError(f"{what}: the key {twice!r} occurs twice; {remedy}", path, code="damaged")
    return result


def _content(path: Path, what: str, remedy: str) -> bytes:
    try:
        return read_bytes(path, limit=RECORD_LIMIT, line_limit=None)
    except InputError as error:
        raise InputError(f"{what} cannot be read: {error.reason}; {remedy}", path, code=error.code) from error


def _without_mark(content: bytes) -> bytes:
    """Return the content without the byte order mark that some editors write."""
    return content.removeprefix(b"\xef\xbb\xbf")


def _as_written(checked: Any, value: Any) -> Any:
    """Return a checked value as in the file: keys in its order, and integers also where the model has floats."""
    if isinstance(checked, dict) and isinstance(value, dict) and checked.keys() == value.keys():
        return {key: _as_written(checked[key], inner) for key, inner in value.items()}
    if isinstance(checked, list) and isinstance(value, list) and any(isinstance(inner, dict) for inner in value):
        return [_as_written(mine, inner) for mine, inner in zip(checked, value, strict=True)]
    return value if isinstance(checked, float) and type(value) is int else checked


def _finite(value: Any) -> bool:
    """Return True if a JSON value has no infinite number (``1e999`` reads as one)."""
    if isinstance(value, dict):
        return all(map(_finite, value.values()))
    if isinstance(value, list):
        return all(map(_finite, value))
    return not isinstance(value, float) or math.isfinite(value)


def check_fields(settings: Any, what: str) -> None:
    """Refuse a dataclass with a value outside its annotations, including the bounds of `pydantic.Field`.

    Args:
        settings: a dataclass.
        what: subject of the settings, for the message.

    Raises:
        InputError: a value is of another type, or out of its range (code ``bad-setting``).
    """
    kind: Any = type(settings)
    for name, adapter in _adapters(kind).items():
        try:
            adapter.validate_python(getattr(settings, name), strict=True)
        except ValidationError as error:
            raise InputError(f"{what}: {explain(error, name)}", code="bad-setting") from error


@cache
def _adapters(kind: Any) -> dict[str, TypeAdapter[Any]]:
    hints = get_type_hints(kind, include_extras=True)
    return {field.name: TypeAdapter(hints[field.name]) for field in fields(kind)}


class _Loader(yaml.SafeLoader):
    """A YAML loader that stops at a depth that Python can handle."""

    _depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """Compose a node one level below its parent."""
        self._depth += 1
        if self._depth > DEEPEST:
            raise _too_deep(self.peek_event())  # type: ignore[no-untyped-call]
        node: yaml.Node | None = super().compose_node(parent, index)
        self._depth -= 1
        return node


def _too_deep(at: Any) -> InputError:
    return InputError(f"it is nested more than {DEEPEST} levels deep", line=at.start_mark.line + 1)


def construct(text: str) -> Any:
    """Return the value of a document.

    Raises:
        InputError: a short reason, with the line: not YAML, nested too deeply, too many values, a repeated key, a value
            that contains itself, a string that is not Unicode, a value that Python cannot hold.
    """
    loader = _Loader("")
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        if node is None:
            return None
        _check(node, {})
        return _construct(loader, node)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        reason = getattr(error, "problem", None) or "it has a character that YAML does not allow"
        raise InputError(reason, line=None if mark is None else mark.line + 1) from error
    finally:
        loader.dispose()


def _construct(loader: yaml.SafeLoader, node: yaml.Node) -> Any:
    try:
        return loader.construct_document(node)
    except _UNCONVERTIBLE as error:
        raise InputError("a value cannot be converted, such as a number of thousands of digits") from error


def _check(node: yaml.Node, seen: dict[int, tuple[int, int] | None]) -> tuple[int, int]:
    """Return the number of values and of levels that a node expands to; a repeated node is an alias.

    Args:
        node: node to count.
        seen: the counts of earlier nodes, by identity; None for nodes that contain ``node``.
    """
    line = node.start_mark.line + 1
    if id(node) in seen:
        counts = seen[id(node)]
        if counts is None:
            raise InputError("a value contains itself", line=line)
        return counts
    seen[id(node)] = None
    size, levels = 1, 0
    for child in _children(node):
        more, below = _check(child, seen)
        size, levels = size + more, max(levels, below)
        if size > MOST_VALUES:
            raise InputError(f"it expands to more than {MOST_VALUES:,} values", line=line)
    if levels >= DEEPEST:
        raise _too_deep(node)
    seen[id(node)] = size, levels + 1
    return size, levels + 1


def _children(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        keys: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in keys:
                    raise InputError(f"the key {key.value!r} occurs twice", line=key.start_mark.line + 1)
                keys.add(key.value)
        return [child for pair in node.value for child in pair]
    if isinstance(node, yaml.SequenceNode):
        return list(node.value)
    if any("\ud800" <= c <= "\udfff" for c in node.value):
        raise InputError("a string is not Unicode", line=node.start_mark.line + 1)
    return []
