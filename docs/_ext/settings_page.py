"""The table of all settings with their defaults."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from pydantic.fields import FieldInfo

from truesource.cli.bound import BoundSettings
from truesource.cli.convert import ConversionSettings
from truesource.evaluation.evaluators import EVALUATORS
from truesource.grammar.estimate.split_merge import SplitMerge
from truesource.grammar.support.settings import Settings, fields_of, is_advanced, option_name
from truesource.grammar.treebank.binarise import Binarisation
from truesource.grammar.treebank.normalise import Normalisation
from truesource.lmtrain.architectures.settings import NetworkSettings, TransformerSettings, names
from truesource.lmtrain.config import ModelConfig, TrainConfig
from truesource.lmtrain.decoding.settings import Decoding
from truesource.lmtrain.model_registry import settings_class
from truesource.run.config import EvaluationConfig, RunConfig
from truesource.run.corpus import CorpusConfig, SampleSettings
from truesource.run.grammar.config import GrammarConfig, TiltConfig
from truesource.run.models import ModelEntry
from truesource.run.treebank.config import DatasetSource, TreebankConfig

HEAD = """\
# Settings and their defaults

The build of the site generates this page from the settings classes. A configuration and a command read the same class:
a key of an evaluator is written below its name, such as `evaluation: {divergence: {top_k: 5}}`, and is an option of its
verb, `truesource evaluate divergence --top-k 5`. `evaluation: {divergence: true}` takes the defaults below. On the
command line, lists are written with commas, and files are relative to the working folder; in a configuration, to its
own.
In a configuration and after `--set`, `none` is null, as is `null`, for every key that may be null.

`truesource new --schema run -o experiment.schema.json` writes this as a JSON Schema (draft 2020-12): all keys, what
they mean, which values they take, the settings of every architecture and language included. Editors with a YAML
language server complete and check a configuration whose first line is `# yaml-language-server:
$schema=experiment.schema.json`, as `truesource new` writes it. `--schema scaling` and `--schema benchmark` are for
the configurations of sweeps and of `truesource benchmark`.
"""
#: settings of other verbs, and where a configuration has them
OTHERS: dict[str, tuple[type[Settings], str]] = {
    "sample": (
        SampleSettings,
        "; `overlap`, `trees`, `shard_size`, `transform`, `stratified` are keys of `corpus`",
    ),
    "generate": (Decoding, "; entries of `evaluation.tendencies.schemes` have the same keys"),
    "bound": (BoundSettings, ""),
    "convert": (ConversionSettings, ", for grammars"),
}

#: parts of a configuration, and what they hold
KEYS: dict[str, type] = {
    "top level": RunConfig,
    "treebank": TreebankConfig,
    "treebank: dataset": DatasetSource,
    "treebank: normalise": Normalisation,
    "grammar": GrammarConfig,
    "grammar: tilt": TiltConfig,
    "grammar: binarise": Binarisation,
    "grammar: split_merge": SplitMerge,
    "corpus": CorpusConfig,
    "evaluation": EvaluationConfig,
    "models": ModelEntry,
    "models: training": TrainConfig,
    "models: model": ModelConfig,
}


def page() -> str:
    """The page, in Markdown."""
    parts = [HEAD, *_configuration()]
    for evaluator in EVALUATORS:
        parts.append(f"## evaluate {evaluator.name}\n\n{evaluator.summary}\n\n{table(evaluator.settings)}")
    for verb, (kind, text) in OTHERS.items():
        parts.append(f"## {verb}\n\nOptions of `truesource {verb}`{text}.\n\n{table(kind)}")
    return "\n".join(parts)


def table(kind: type[Settings]) -> str:
    """A line for each setting that a verb and a configuration share."""
    options = {name: "" if name in kind.yaml_only else f"`{option_name(name)}`" for name in kind.model_fields}
    return _tables(kind, ("key", "option", "default", "meaning"), fields_of(kind), options)


def keys_table(kind: type, names: Collection[str]) -> str:
    """A line for each of these settings, of a configuration alone."""
    return _tables(kind, ("key", "default", "meaning"), {k: v for k, v in fields_of(kind).items() if k in names}, {})


def _tables(kind: type, columns: tuple[str, ...], settings: Mapping[str, FieldInfo], options: Mapping[str, str]) -> str:
    """The settings that many change, and below them the others."""
    usual, advanced = (
        {name: field for name, field in settings.items() if is_advanced(kind, name) == apart} for apart in (False, True)
    )
    first = _table(columns, usual, options) if usual else ""
    return first + (f"\nAdvanced, for few:\n\n{_table(columns, advanced, options)}" if advanced else "")


def _table(columns: tuple[str, ...], settings: Mapping[str, FieldInfo], options: Mapping[str, str]) -> str:
    rows = [columns, ("---",) * len(columns)]
    for name, field in settings.items():
        more = (options[name],) if options else ()
        meaning = (field.description or "").replace("|", "\\|").replace("<", "&lt;")
        rows.append((f"`{name}`", *more, _default(field), meaning))
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "needed"
    default = field.get_default(call_default_factory=True)
    return "see below" if fields_of(type(default)) else _shown(default)


def _configuration() -> Iterator[str]:
    """The sections of a configuration besides evaluators."""
    yield "## Configuration\n\nThe keys of a file for `truesource run`, from the top down.\n"
    for key, kind in KEYS.items():
        yield f"### {key}\n\n{keys_table(kind, fields_of(kind))}"
    shared = dict(NetworkSettings.model_fields) | dict(TransformerSettings.model_fields)
    common = [key for key in shared if key not in ModelConfig.model_fields]
    yield f"### models: model, of networks\n\n{keys_table(TransformerSettings, common)}"
    for name in names():
        kind = settings_class(name)
        own = [key for key in kind.model_fields if key not in {*ModelConfig.model_fields, *common}]
        if own:
            yield f"### models: model, architecture: {name}\n\n{keys_table(kind, own)}"


def _shown(default: Any) -> str:
    if default is None or default in ((), [], {}):
        return "none"
    if isinstance(default, bool):
        return "yes" if default else "no"
    if isinstance(default, list | tuple):
        return ", ".join(map(_shown, default))
    if isinstance(default, dict):
        return "`" + ", ".join(f"{key}={value}" for key, value in default.items()) + "`"
    return f"`{default}`" if default != "" else "empty"
