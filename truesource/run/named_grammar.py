"""Grammars that a configuration names: files, and languages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

LANGUAGE = "language"  #: key that names a language


def reference_of(values: Mapping[Any, Any]) -> str:
    """The reference of ``{language: dyck, k: 2}``: the language and all its settings.

    Raises:
        InputError: there is no such language or setting, or a value is outside its range.
    """
    from truesource.grammar.languages import parse, reference

    settings = {str(key): value for key, value in values.items() if key != LANGUAGE}
    return reference(*parse(str(values[LANGUAGE]), settings))


def language_at(given: str, resolve: Callable[[str], str]) -> str:
    """The reference of a language, with the files that its settings name where they are.

    Args:
        given: a reference.
        resolve: makes a path of the configuration one of the system.
    """
    from truesource.grammar.languages import parse, reference

    name, settings = parse(given)
    return reference(name, settings.resolved(lambda file: Path(resolve(str(file)))))


def grammar_at(given: str, resolve: Callable[[str], str]) -> str:
    """What `truesource.grammar.pcfg.PCFG.load` takes for a grammar: a file or, where there is none, a language.

    Raises:
        InputError: it is neither.
    """
    from truesource.grammar.formats import source_files
    from truesource.grammar.languages import is_reference, missing

    path = resolve(given)
    if is_reference(given, path):
        return language_at(given, resolve)
    if not Path(path).exists() and not source_files(path):
        raise missing(given, path)
    return path
