"""Languages of known truth: one module a language, found by walking this folder.

A module has ``LANGUAGE``, a `truesource.grammar.languages.shared.language.Language`; its name, with hyphens, is that
of the language. A *reference* names one language and its settings: ``dyck``, ``dyck:k=2,depth=4``.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import re
from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from truesource.grammar.support.errors import InputError
from truesource.grammar.support.settings import join_reference, split_reference

if TYPE_CHECKING:
    from truesource.grammar.languages.shared.language import Language, LanguageSettings
    from truesource.grammar.rules import GrammarRules

LICENCE = "apache-2.0"  #: of all these grammars, as the hub writes it; corpora of them are under it too


@cache
def languages() -> dict[str, Language]:
    """All languages by name, in alphabetical order."""
    modules = sorted(module.name for module in pkgutil.iter_modules(__path__) if not module.ispkg)
    return {name.replace("_", "-"): importlib.import_module(f"{__name__}.{name}").LANGUAGE for name in modules}


@cache
def presets() -> dict[str, str]:
    """Names of languages with settings of their own, such as ``cfg3b``, and the language of each."""
    return {preset: name for name, language in languages().items() for preset in language.presets}


def is_reference(text: str | Path, path: str | Path | None = None) -> bool:
    """Whether a text names a language; a file or folder of that name, or at ``path``, comes first."""
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
    return f"no language {name!r}{similar}; truesource languages lists all"


def load_language(name: str, settings: Mapping[str, Any] | None = None) -> GrammarRules:
    """The rules of a language; arguments and errors are those of `truesource.grammar.pcfg.language`."""
    from truesource.grammar.languages.shared.language import LARGEST

    title, chosen = parse(name, settings)
    rules = chosen.n_rules()
    if rules > LARGEST:
        many = f"{rules:,}" if rules < 10**12 else f"{rules:.0e}"
        raise InputError(
            f"{reference(title, chosen)} has up to {many} rules, more than the {LARGEST:,} that fit in memory;"
            " choose smaller settings",
            code="too-large",
        )
    built = languages()[title].build(chosen)
    record = {"name": title, "reference": reference(title, chosen), "digest": built.digest}
    return built.with_meta(language=record | {"citation": languages()[title].citation}, license=LICENCE)


def parse(name: str, settings: Mapping[str, Any] | None = None) -> tuple[str, LanguageSettings]:
    """The language that a name or a reference stands for, and its settings.

    Raises:
        InputError: there is no such language or setting, or a value is outside its range.
    """
    from truesource.grammar.support.records import explain

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
