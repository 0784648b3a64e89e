"""Grammars that a configuration names: files, and languages."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from pydantic import GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from truesource.grammar.support.settings import KeysOf
from truesource.lmtrain.architectures.settings import DEFAULT, names
from truesource.lmtrain.config import ModelConfig, TrainConfig
from truesource.lmtrain.model_registry import settings_class
from truesource.lmtrain.own.settings import OwnSettings
from truesource.lmtrain.references import ARCHITECTURES

LANGUAGE = "language"  #: key that names a language
TRAINING = KeysOf(TrainConfig)


def reference_of(values: Mapping[Any, Any]) -> str:
    """Return the reference of ``{language: dyck, k: 2}``: the language and all its settings.

    Raises:
        InputError: there is no such language or setting, or a value is outside its range.
    """
    from truesource.grammar.languages import parse, reference

    settings = {str(key): value for key, value in values.items() if key != LANGUAGE}
    return reference(*parse(str(values[LANGUAGE]), settings))


def language_at(given: str, resolve: Callable[[str], str]) -> str:
    """Return the reference of a language, with resolved paths of the files in its settings.

    Args:
        given: a reference.
        resolve: resolves a path of the configuration.
    """
    from truesource.grammar.languages import parse, reference

    name, settings = parse(given)
    return reference(name, settings.resolved(lambda file: Path(resolve(str(file)))))


def grammar_at(given: str, resolve: Callable[[str], str]) -> str:
    """Return the reference of a grammar for `truesource.grammar.pcfg.PCFG.load`: a file, else a language.

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


class ArchitectureSchema:
    """The schema of a mapping with the keys of the architecture that it names."""

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Build a branch for each architecture, and one for custom code."""
        key = "architecture"
        branches = [
            _branch(key, {"const": name}, handler(settings_class(name).__pydantic_core_schema__)) for name in names()
        ]
        custom = handler(OwnSettings.__pydantic_core_schema__)
        architectures = [*names(), *sorted({entry.name for entry in entry_points(group=ARCHITECTURES)})]
        default = handler(settings_class(DEFAULT).__pydantic_core_schema__)
        return {
            "type": "object",
            "properties": {
                key: {
                    "anyOf": [{"enum": architectures}, {"type": "string", "pattern": "[^:]:[^:]"}],
                    "description": ModelConfig.model_fields[key].description,
                }
            },
            "allOf": [
                *branches,
                _branch(key, {"not": {"enum": names()}}, custom),
                {"if": {"not": {"required": [key]}}, "then": default},
            ],
        }


ARCHITECTURE = ArchitectureSchema()


def with_languages(values: JsonSchemaValue, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
    """Extend the schema of a mapping by the settings of the language that its key ``language`` names.

    Args:
        values: schema of the mapping without these settings; it has the key ``language``.
        handler: pydantic handler, for schemas of settings.
    """
    from truesource.grammar.languages import languages

    other_keys = {key: value for key, value in values.items() if key != "properties"}
    properties = values["properties"]
    patterns, branches = [], []
    for name, language in languages().items():
        pattern = f"^({'|'.join(map(re.escape, (name, *language.presets)))})(:.*)?$"
        settings = handler.resolve_ref_schema(handler(language.settings.__pydantic_core_schema__))["properties"]
        named = {"type": "string", "pattern": pattern}
        patterns.append(named)
        branches.append(_branch(LANGUAGE, named, {**other_keys, "properties": {**settings, **properties}}))
    names_of_languages = {"anyOf": [{"enum": list(languages())}, *patterns, {"type": "null"}]}
    named_here = {"properties": {LANGUAGE: {"type": "string"}}, "required": [LANGUAGE]}
    return {
        "type": "object",
        "properties": {LANGUAGE: {**names_of_languages, "description": properties[LANGUAGE].get("description", "")}},
        "allOf": [*branches, {"if": {"not": named_here}, "then": values}],
    }


def _branch(key: str, value: JsonSchemaValue, then: JsonSchemaValue) -> JsonSchemaValue:
    return {"if": {"properties": {key: value}, "required": [key]}, "then": then}
