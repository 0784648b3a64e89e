"""All renamed options, for the documentation: ``python -m truesource.cli.renamed_table``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

from truesource.cli.app import VERBS
from truesource.cli.console import echo
from truesource.cli.evaluate import commands
from truesource.cli.renamed import earlier_spellings


def earlier_options() -> Iterator[tuple[str, str, str]]:
    """Verb, earlier and present spelling of all options that were renamed."""
    for name, (module, _) in VERBS.items():
        if name != "evaluate":
            yield from _of(name, name, import_module(module).command)
    for name, command in commands().items():
        yield from _of(name, f"evaluate {name}", command)


def _of(name: str, shown: str, command: Callable[..., Any]) -> Iterator[tuple[str, str, str]]:
    for old, new in earlier_spellings(name, command).items():
        yield shown, old, new


def table() -> str:
    """A Markdown table of verb, earlier and present spelling."""
    lines = [f"| `{verb}` | `{old}` | `{new}` |" for verb, old, new in earlier_options()]
    return "\n".join(["| verb | earlier | now |", "| --- | --- | --- |", *lines]) + "\n"


if __name__ == "__main__":
    echo(table().rstrip("\n"))
