"""The help of a verb: names, values and commands are never cut, whatever the width; ranges are in plain words."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Literal, Union

from truesource.terminal.console import console

if TYPE_CHECKING:
    from rich.console import RenderableType

WIDTH = 80  #: characters per line, without a terminal
FEW = 12  #: verbs with more options show them in several panels
ADVANCED = "Advanced"  #: panel of settings that few people change
EXAMPLE = "Example: "
VALUES = {int: "N", float: "X", Path: "PATH", str: "TEXT"}  #: placeholder of a value, by its type
PANELS = {
    "Input": (
        "--oracle --reference --held-out --split --lengths --longest --sentences --number --tokens --convention "
        "--heads --frame --before --vocabulary --classes --stopwords --forms --tokenizer --dev --gold --raw "
        "--splitting --language --unbracketed --brackets --start-from --token-scores --seed"
    ),
    "Several processes and machines": "--workers --scheduler --shard --shard-size",
    "Output": (
        "--output --json --table --token-table --word-table --document-table --figure --figure-size --trace --columns "
        "--trees --ids --license --force --help"
    ),
}  #: options in the panels of verbs with many options; other options come first


@dataclass(frozen=True)
class OptionHelp:
    """An argument or option as help shows it."""

    names: list[str]  #: one line each
    text: str
    panel: str


@dataclass(frozen=True)
class VerbHelp:
    """The help of a verb."""

    usage: str
    paragraphs: list[str]
    examples: list[str]
    panels: dict[str, list[OptionHelp]]


def verb_help(command: Any, path: str) -> VerbHelp:
    """Return the help of a verb.

    Args:
        command: the verb.
        path: its full name, such as ``truesource score``.
    """
    body, examples = _paragraphs(inspect.getdoc(command.callback) or "")
    options = list(_described(command))
    many = sum(each.panel != "Arguments" for each in options) > FEW
    names = ["Arguments", "Options", *PANELS]
    panels = {}
    for panel in [*names, *sorted({each.panel for each in options} - {*names, ADVANCED}), ADVANCED]:
        rows = [each for each in options if (each.panel if many or each.panel not in PANELS else "Options") == panel]
        if rows:
            panels[panel] = rows
    return VerbHelp(_usage(command, path), body, examples, panels)


def show_help(command: Any, path: str) -> None:
    """Print the help of a verb.

    Args:
        command: the verb.
        path: its full name, such as ``truesource score``.
    """
    printer = console(WIDTH)
    content = verb_help(command, path)
    printer.print(f"\nUsage: {content.usage}\n", style="bold")
    for paragraph in content.paragraphs:
        printer.print(f"{paragraph}\n")
    if content.examples:
        printer.print("Example:" if len(content.examples) == 1 else "Examples:", style="bold")
        for example in content.examples:
            printer.print(folded(example, printer.width - 2))
        printer.print()
    for panel, options in content.panels.items():
        printer.print(_box(panel, options))


def _paragraphs(text: str) -> tuple[list[str], list[str]]:
    """Split a docstring into paragraphs and examples."""
    paragraphs = [" ".join(each.split()) for each in text.split("\n\n")]
    return (
        [each for each in paragraphs if not each.startswith(EXAMPLE)],
        [each.removeprefix(EXAMPLE) for each in paragraphs if each.startswith(EXAMPLE)],
    )


def folded(command: str, width: int) -> str:
    """Fold a command into continued lines; an option and its value stay on one line if they fit."""
    return "\n".join(_folded(command, width))


def _folded(command: str, width: int) -> Iterator[str]:
    words = command.split(" ")
    pieces: list[str] = []
    for word in words:
        if pieces and pieces[-1].startswith("-") and " " not in pieces[-1] and not word.startswith("-"):
            pieces[-1] += f" {word}"
        else:
            pieces.append(word)
    line = ""
    for piece in pieces:
        if line and len(line) + len(piece) + 3 > width:
            yield f"  {line} \\"
            line = f"  {piece}"
        else:
            line = f"{line} {piece}" if line else piece
    yield f"  {line}"


def _usage(command: Any, path: str) -> str:
    pieces = []
    for each in command.params:
        if each.param_type_name == "argument" and not getattr(each, "hidden", False):
            name = _argument(each)
            pieces.append(name if each.required else f"[{name}]")
    return " ".join([path, "[OPTIONS]", *pieces])


def _argument(argument: Any) -> str:
    """Return the name of an argument in capitals, with dots if it may be repeated."""
    name = str(argument.metavar or argument.name).upper().removesuffix("...")
    return name if argument.nargs == 1 else f"{name}..."


def _box(title: str, options: list[OptionHelp]) -> RenderableType:
    from rich.panel import Panel
    from rich.table import Table

    width = max(len(line) for each in options for line in each.names)
    table = Table(show_header=False, box=None, expand=True, pad_edge=False, padding=(0, 1))
    table.add_column(width=width, no_wrap=True, overflow="fold", style="bold cyan")
    table.add_column(overflow="fold", ratio=1)
    for each in options:
        table.add_row("\n".join(each.names), each.text)
    return Panel(table, title=title, title_align="left", border_style="dim")


def _described(command: Any) -> Iterator[OptionHelp]:
    parameters, hints = _declared(command.callback)
    for each in command.params:
        if getattr(each, "hidden", False):
            continue
        kind = _kind(hints.get(each.name, bool))
        if each.param_type_name == "argument":
            names, panel = [_argument(each)], "Arguments"
        else:
            names, panel = _names(each, kind), _panel(each)
        default = parameters[each.name].default if each.name in parameters else None
        yield OptionHelp(names, " ".join(_sentences(each, kind, default)), panel)


def _declared(callback: Callable[..., Any]) -> tuple[dict[str, inspect.Parameter], dict[str, object]]:
    """Return parameters of a verb's function, by name, and their types without annotations."""
    parameters = dict(inspect.signature(callback).parameters)
    return parameters, typing.get_type_hints(inspect.unwrap(callback, stop=_has_options))


def _has_options(function: Callable[..., Any]) -> bool:
    """True if a function was made by `truesource.terminal.settings.with_options`, and has its own annotations."""
    return "from_settings" in vars(function) and "settings" not in function.__annotations__


def _kind(hint: Any) -> Any:
    """Remove ``None`` from a type."""
    if typing.get_origin(hint) in (UnionType, Union):
        return next(each for each in typing.get_args(hint) if each is not NoneType)
    return hint


def _names(option: Any, kind: Any) -> list[str]:
    inner = typing.get_args(kind)[0] if typing.get_origin(kind) in (list, tuple) else kind
    value = _metavar(option) or ("" if inner is bool else VALUES.get(inner, "NAME"))
    names = ", ".join(sorted(option.opts, key=len))
    return [f"{names} {value}".rstrip(), *option.secondary_opts]


def _metavar(option: Any) -> str | None:
    """Return the placeholder of a value; a list of values is replaced by NAME."""
    return option.metavar if option.metavar is None or "|" not in option.metavar else "NAME"


def _panel(option: Any) -> str:
    if getattr(option, "rich_help_panel", None):
        return str(option.rich_help_panel)
    return next((title for title, names in PANELS.items() if set(option.opts) & set(names.split())), "Options")


def _sentences(parameter: Any, kind: Any, default: Any) -> Iterator[str]:
    """Yield the help of a parameter, its values and its default."""
    text = parameter.help or ""
    yield text
    choices = [str(each) for each in typing.get_args(kind)] if typing.get_origin(kind) is Literal else []
    if parameter.metavar and "|" in parameter.metavar:
        choices = parameter.metavar.split("|")
    if choices and not all(choice in text for choice in choices):
        yield f"One of: {', '.join(choices)}."
    if typing.get_origin(kind) is list and parameter.param_type_name == "option" and "epeatable" not in text:
        yield "Repeatable."
    least, most = getattr(parameter, "min", None), getattr(parameter, "max", None)
    if least is not None and most is not None:
        yield f"From {least:.10g} to {most:.10g}."
    elif least is not None or most is not None:
        yield f"Minimum {least:g}." if most is None else f"Maximum {most:g}."
    if parameter.required:
        yield "Required."
    elif default is True:
        yield "(default: yes)"
    elif not any(default is none for none in (None, False, "", inspect.Parameter.empty)) and "(default" not in text:
        yield f"(default: {default})"
