"""Languages of known truth: what a language is, one module each, found by walking this folder; and their references.

A module has ``LANGUAGE``, a `truesource.grammar.languages.Language`; its name, with hyphens, is that of the language. A
*reference* names one language and its settings: ``dyck``, ``dyck:k=2,depth=4``.
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

LICENCE = "apache-2.0"  #: of all these grammars, as the hub writes it; corpora of them are under it too


LARGEST = 2_000_000  #: rules of a language; one of so many takes up to 3 GiB while it is built
_WRITTEN: dict[str, Any] = {
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


#: whole numbers, in text joined by ``+``, such as ``2+3``; a number alone is one of them
Numbers = Annotated[tuple[int, ...], BeforeValidator(_split), PlainSerializer(_joined), WithJsonSchema(_WRITTEN)]


class LanguageSettings(Settings):
    """Parameters of a language. Every one has a default, a range and a description."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, validate_default=True)

    @abstractmethod
    def n_rules(self) -> int:
        """Number of rules of the grammar, or more; computed before any memory is taken."""


@dataclass(frozen=True, kw_only=True)
class Language:
    """A family of languages, one for each choice of its settings."""

    title: str  #: what it is, in one line without a full stop
    tests: str  #: what people study with it, in one line
    citation: str  #: publication that it is from
    settings: type[LanguageSettings]
    #: the grammar of settings; symbols and probabilities are all its own; None: it has none
    build: Callable[[Any], GrammarRules] | None = None
    presets: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  #: names for some settings, such as cfg3b
    #: the language as a process, of its settings and its reference; None: it has none; one of both there is
    process: Callable[[Any, str], Process] | None = None


@cache
def languages() -> dict[str, Language]:
    """Languages by name, in alphabetical order."""
    modules = sorted(module.name for module in pkgutil.iter_modules(__path__) if not module.ispkg)
    return {name.replace("_", "-"): importlib.import_module(f"{__name__}.{name}").LANGUAGE for name in modules}


@cache
def grammars() -> tuple[str, ...]:
    """Names of the languages that are grammars, at least with small settings."""
    return tuple(name for name, language in languages().items() if language.build is not None)


@cache
def presets() -> dict[str, str]:
    """Names of languages with settings of their own, such as ``cfg3b``, and the language of each."""
    return {preset: name for name, language in languages().items() for preset in language.presets}


def is_reference(text: str | Path, path: str | Path | None = None) -> bool:
    """Return True if a text names a language; a file or folder of that name, or at ``path``, comes first."""
    if os.path.exists(path or text):  # noqa: PTH110 - a long reference is no path, and pathlib raises for it
        return False
    name = str(text).partition(":")[0]
    return name in languages() or name in presets()


def missing(text: str | Path, path: str | Path | None = None) -> InputError:
    """The error for a text that names no language, and no file, which would be at ``path`` or of that name."""
    name = str(text).partition(":")[0]
    if not re.fullmatch(r"[\w-]+", name):
        return InputError("there is no such file", path or text, code="missing")
    return InputError(f"there is no such file and {_unknown(name)}", text, code="missing")


def _unknown(name: str) -> str:
    similar = "".join(f" (similar: {each})" for each in get_close_matches(name.lower(), [*languages(), *presets()], 1))
    return f"no language {name!r}{similar}; truesource language lists all"


def load_language(name: str, settings: Mapping[str, Any] | None = None) -> GrammarRules:
    """The rules of a language; arguments and errors are those of `truesource.grammar.pcfg.language`."""
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
    """Refuse a language that is built of another with settings that go beyond the range of that one.

    Raises:
        InputError: in place of a `ValidationError` inside.
    """
    try:
        yield
    except ValidationError as error:
        raise InputError(f"language {title}: {explain(error)}", code="bad-setting") from error


def _meta(title: str, settings: LanguageSettings, digest: str) -> dict[str, Any]:
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
    """A language as a process; arguments and errors are those of `truesource.grammar.truth.process`."""
    title, chosen = parse(name, settings)
    make = languages()[title].process
    if make is None:
        possible = ", ".join(each for each, language in languages().items() if language.process is not None)
        raise InputError(f"the language {title} has a grammar only; processes are {possible}", code="no-process")
    with _checking(title):
        made = make(chosen, reference(title, chosen))
    made.meta = _meta(title, chosen, made.digest)
    return made


def parse(name: str, settings: Mapping[str, Any] | None = None) -> tuple[str, LanguageSettings]:
    """The language that a name or a reference stands for, and its settings.

    Raises:
        InputError: there is no such language or setting, or a value is outside its range.
    """
    title, given = split_reference(name)
    values: dict[str, Any] = {}
    if title in presets():
        values, title = dict(languages()[presets()[title]].presets[title]), presets()[title]
    if title not in languages():
        raise InputError(f"there is {_unknown(title)}", code="no-language")
    try:
        return title, languages()[title].settings(**(values | given | dict(settings or {})))
    except ValidationError as error:
        unknown = any(each["type"] == "extra_forbidden" for each in error.errors())
        known = f"; its settings are {', '.join(languages()[title].settings.model_fields)}" if unknown else ""
        raise InputError(f"language {title}: {explain(error)}{known}", code="bad-setting") from error


def reference(name: str, settings: LanguageSettings) -> str:
    """The language and all its settings, in a form that `parse` reads."""
    return join_reference(name, settings.model_dump())


@dataclass(frozen=True)
class Parameter:
    """One setting of a language."""

    key: str
    value: str  #: as a reference has it; empty for none
    values: str  #: those it may have
    meaning: str


def parameters(settings: LanguageSettings) -> list[Parameter]:
    """The settings, one by one; those that have no meaning beside another are left out."""
    values = settings.model_dump()
    return [
        Parameter(key, "" if values[key] is None else written(values[key]), _values(field), field.description or "")
        for key, field in type(settings).model_fields.items()
        if key in values
    ]


def short_citation(citation: str) -> str:
    """Authors and year of a publication, such as ``Hewitt et al. (2020)``; else what stands before the first comma."""
    match = _AUTHORS.match(citation)
    if match is None:
        return citation.partition(",")[0]
    names = re.split(r", | and ", match["authors"])
    authors = f"{names[0]} et al." if len(names) > 2 else " and ".join(names)
    return f"{authors} ({match['year']})"


def _values(field: FieldInfo) -> str:
    """The values that a setting may have, such as ``1 to 10``."""
    kinds = [kind for kind in get_args(field.annotation) if get_origin(kind) is Literal]  # of one that may be None
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
