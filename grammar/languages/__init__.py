"""Languages with a known ground truth: one module each, found by walking this folder; and their references.

A module has ``LANGUAGE``, a `truesource.grammar.languages.Language`; its name, with hyphens, is the name of the
language. A *reference* names one language and its settings: ``dyck``, ``dyck:k=2,depth=4``.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import re
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt
from pydantic import BeforeValidator, ConfigDict, PlainSerializer, ValidationError, WithJsonSchema
from pydantic.fields import FieldInfo

from truesource.grammar.support.errors import InputError
from truesource.grammar.support.printable import meter
from truesource.grammar.support.records import explain, plain_number
from truesource.grammar.support.settings import Settings, join_reference, split_reference, written

if TYPE_CHECKING:
    from truesource.grammar.process import Process
    from truesource.grammar.rules import GrammarRules

LICENCE = "apache-2.0"  #: licence of these grammars and of their corpora, in the hub's notation


LARGEST = 2_000_000  #: most rules of a language; building one of this size takes up to 3 GiB
_WRITTEN: dict[str, object] = {
    "anyOf": [
        {"type": "integer"},
        {"type": "string", "pattern": r"^\d+(\+\d+)*$"},
        {"type": "array", "items": {"type": "integer"}},
    ]
}
_AUTHORS = re.compile(r"(?P<authors>[^()]+) \((?P<year>\d{4})\)")


def _split(value: Any) -> Any:
    return value.split("+") if isinstance(value, str) else (value,) if isinstance(value, int) else value


def _joined(value: tuple[Any, ...]) -> str:
    return "+".join(map(str, value))


#: integers, in text joined by ``+``, such as ``2+3``, or a single one
Numbers = Annotated[tuple[int, ...], BeforeValidator(_split), PlainSerializer(_joined), WithJsonSchema(_WRITTEN)]


class LanguageSettings(Settings):
    """Parameters of a language. Each has a default, a range and a description."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, validate_default=True)

    @abstractmethod
    def n_rules(self) -> int:
        """Return the number of rules of the grammar, or an upper bound, before any memory is allocated."""


@dataclass(frozen=True, kw_only=True)
class Language:
    """A family of languages, one for each choice of its settings."""

    title: str  #: description in one line without a full stop
    tests: str  #: use in research, in one line
    citation: str  #: source publication
    settings: type[LanguageSettings]
    #: grammar for given settings; symbols are their own labels; None: no grammar
    build: Callable[[Any], GrammarRules] | None = None
    presets: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  #: named settings, such as cfg3b
    #: process for given settings and reference; None: no process; a language has a grammar, a process, or both
    process: Callable[[Any, str], Process] | None = None


@cache
def languages() -> dict[str, Language]:
    """Return languages by name, in alphabetical order."""
    modules = sorted(module.name for module in pkgutil.iter_modules(__path__) if not module.ispkg)
    return {name.replace("_", "-"): importlib.import_module(f"{__name__}.{name}").LANGUAGE for name in modules}


@cache
def grammars() -> tuple[str, ...]:
    """Return names of the languages that have a grammar, at least with small settings."""
    return tuple(name for name, language in languages().items() if language.build is not None)


@cache
def presets() -> dict[str, str]:
    """Return names of preset languages, such as ``cfg3b``, and the language of each."""
    return {preset: name for name, language in languages().items() for preset in language.presets}


def is_reference(text: str | Path, path: str | Path | None = None) -> bool:
    """Return True if a text names a language; a file or folder of that name, or at ``path``, comes first."""
    if os.path.exists(path or text):  # noqa: PTH110 - a long reference is no path, and pathlib raises for it
        return False
    name = str(text).partition(":")[0]
    return name in languages() or name in presets()


def missing(text: str | Path, path: str | Path | None = None) -> InputError:
    """Return the error for a text that names no language, and no file at ``path`` or of that name."""
    name = str(text).partition(":")[0]
    if not re.fullmatch(r"[\w-]+", name):
        return InputError("there is no such file; check the path", path or text, code="missing")
    return InputError(f"there is no such file and {_unknown(name)}", text, code="missing")


def _unknown(name: str) -> str:
    similar = "".join(f" (similar: {each})" for each in get_close_matches(name.lower(), [*languages(), *presets()], 1))
    return f"no language {name!r}{similar}; truesource language lists all languages"


def load_language(name: str, settings: Mapping[str, Any] | None = None) -> GrammarRules:
    """Return the rules of a language; arguments and errors as in `truesource.grammar.pcfg.language`."""
    title, chosen = parse(name, settings)
    rules = chosen.n_rules()
    if rules > LARGEST:
        if languages()[title].process is not None:
            from truesource.grammar.process import needs_rules

            raise needs_rules(reference(title, chosen))
        many = f"{rules:,}" if rules < 10**12 else f"{rules:.0e}"
        raise InputError(
            f"{reference(title, chosen)} has up to {many} rules, more than the {LARGEST:,} that fit in memory;"
            " choose smaller settings",
            code="too-large",
        )
    build = languages()[title].build
    assert build is not None
    with meter(f"building {reference(title, chosen)}"), _checking(title):
        built = build(chosen)
    return built.with_meta(**_meta(title, chosen, built.digest))


@contextmanager
def _checking(title: str) -> Iterator[None]:
    """Report settings that exceed the range of a language that another one is built from.

    Raises:
        InputError: in place of a `ValidationError` inside.
    """
    try:
        yield
    except ValidationError as error:
        raise InputError(f"language {title}: {explain(error)}", code="bad-setting") from error


def _meta(title: str, settings: LanguageSettings, digest: str) -> dict[str, object]:
    record = {"name": title, "reference": reference(title, settings), "digest": digest}
    return {"language": record | {"citation": languages()[title].citation}, "license": LICENCE}


def is_process(name: str) -> bool:
    """Return True if the grammar of a reference is too large, and the language can be a process.

    Raises:
        InputError: as `parse`.
    """
    title, chosen = parse(name)
    return languages()[title].process is not None and chosen.n_rules() > LARGEST


def load_process(name: str, settings: Mapping[str, Any] | None = None) -> Process:
    """Return a language as a process; arguments and errors as in `truesource.grammar.truth.process`."""
    title, chosen = parse(name, settings)
    make = languages()[title].process
    if make is None:
        possible = ", ".join(each for each, language in languages().items() if language.process is not None)
        raise InputError(f"the language {title} has only a grammar; processes are {possible}", code="no-process")
    with _checking(title):
        result = make(chosen, reference(title, chosen))
    result.meta = _meta(title, chosen, result.digest)
    return result


def parse(name: str, settings: Mapping[str, Any] | None = None) -> tuple[str, LanguageSettings]:
    """Return the language that a name or a reference denotes, and its settings.

    Raises:
        InputError: there is no such language or setting, or a value is outside its range.
    """
    title, written = split_reference(name)
    values: dict[str, object] = {}
    if title in presets():
        values, title = dict(languages()[presets()[title]].presets[title]), presets()[title]
    if title not in languages():
        raise InputError(f"there is {_unknown(title)}", code="no-language")
    try:
        return title, languages()[title].settings(**(values | written | dict(settings or {})))
    except ValidationError as error:
        unknown = any(each["type"] == "extra_forbidden" for each in error.errors())
        available = f"; its settings are {', '.join(languages()[title].settings.model_fields)}" if unknown else ""
        raise InputError(f"language {title}: {explain(error)}{available}", code="bad-setting") from error


def reference(name: str, settings: LanguageSettings) -> str:
    """Return the language and all its settings, in a form that `parse` reads."""
    return join_reference(name, settings.model_dump())


@dataclass(frozen=True)
class Parameter:
    """One setting of a language."""

    key: str
    value: str  #: value as in a reference; empty for none
    values: str  #: possible values
    meaning: str


def parameters(settings: LanguageSettings) -> list[Parameter]:
    """Return the settings, one by one, without those that another setting disables."""
    values = settings.model_dump()
    return [
        Parameter(key, "" if values[key] is None else written(values[key]), _values(field), field.description or "")
        for key, field in type(settings).model_fields.items()
        if key in values
    ]


def short_citation(citation: str) -> str:
    """Return authors and year of a publication, such as ``Hewitt et al. (2020)``; else the text to the first comma."""
    match = _AUTHORS.match(citation)
    if match is None:
        return citation.partition(",")[0]
    names = re.split(r", | and ", match["authors"])
    authors = f"{names[0]} et al." if len(names) > 2 else " and ".join(names)
    return f"{authors} ({match['year']})"


def _values(field: FieldInfo) -> str:
    """Return the values that a setting may have, such as ``1 to 10``."""
    kinds = [kind for kind in get_args(field.annotation) if get_origin(kind) is Literal]  # of an optional setting
    kind = kinds[0] if kinds else field.annotation
    if get_origin(kind) is Literal:
        return ", ".join(map(str, get_args(kind)))
    if get_origin(kind) is tuple:
        return "numbers joined by +"
    if kind is bool:
        return "true, false"
    low = high = ""
    for limit in field.metadata:
        if isinstance(limit, Ge | Gt):
            low = f"above {plain_number(limit.gt)}" if isinstance(limit, Gt) else plain_number(limit.ge)
        elif isinstance(limit, Le | Lt):
            high = f"below {plain_number(limit.lt)}" if isinstance(limit, Lt) else plain_number(limit.le)
    return " to ".join(part for part in (low, high) if part)
