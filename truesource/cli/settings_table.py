"""The table of all settings with their defaults: ``python -m truesource.cli.settings_table > docs/settings.md``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from truesource.chain.corpus.config import SampleSettings
from truesource.cli.bound import BoundSettings
from truesource.cli.console import echo
from truesource.cli.convert import ConversionSettings
from truesource.cli.renamed import option_name
from truesource.evaluators import EVALUATORS
from truesource.grammar.support.settings import Settings
from truesource.lmtrain.decoding.settings import Decoding

HEAD = """\
# Settings and their defaults

`make settings` generates this page from the settings classes. A configuration and a command read the same class: a key
of an evaluator is written below its name, such as `evaluation: {divergence: {top_k: 5}}`, and is an option of its verb,
`truesource evaluate divergence --top-k 5`. `evaluation: {divergence: true}` takes the defaults below. On the command
line, lists are written with commas, and files are relative to the working folder; in a configuration, to its own.
"""
#: settings of other verbs, and where a configuration has them
OTHERS: dict[str, tuple[type[Settings], str]] = {
    "sample": (SampleSettings, "; `trees`, `shard_size` and `transform` are keys of `corpus` too"),
    "generate": (Decoding, "; entries of `evaluation.tendencies.schemes` have the same keys"),
    "bound": (BoundSettings, ""),
    "convert": (ConversionSettings, ", for grammars"),
}


def page() -> str:
    """The page, in Markdown."""
    parts = [HEAD]
    for evaluator in EVALUATORS:
        parts.append(f"## evaluate {evaluator.name}\n\n{evaluator.summary}\n\n{table(evaluator.settings)}")
    for verb, (kind, text) in OTHERS.items():
        parts.append(f"## {verb}\n\nOptions of `truesource {verb}`{text}.\n\n{table(kind)}")
    return "\n".join(parts)


def table(kind: type[Settings]) -> str:
    """A line for each setting."""
    lines = ["| key | option | default | meaning |", "| --- | --- | --- | --- |"]
    return "\n".join([*lines, *_rows(kind)]) + "\n"


def _rows(kind: type[Settings]) -> Iterator[str]:
    for name, field in kind.model_fields.items():
        default = field.get_default(call_default_factory=True)
        option = "" if name in kind.yaml_only else f"`{option_name(name)}`"
        meaning = (field.description or "").replace("|", "\\|")
        yield f"| `{name}` | {option} | {_shown(default)} | {meaning} |"


def _shown(default: Any) -> str:
    if default is None or default in ((), [], {}):
        return "none"
    if isinstance(default, bool):
        return "yes" if default else "no"
    if isinstance(default, list | tuple):
        return ", ".join(map(_shown, default))
    if isinstance(default, dict):
        return "`" + ", ".join(f"{key}={value}" for key, value in default.items()) + "`"
    return f"`{default}`"


if __name__ == "__main__":
    echo(page().rstrip("\n"))
