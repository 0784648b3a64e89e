"""A verb of the command: its help, and the options that every verb takes.

A verb that is not in `WITHOUT_TABLES` has ``--table``, which writes tables of `truesource.terminal.tables.show`. A verb
with the parameter ``figure`` has ``--figure-size``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from truesource.grammar.support.errors import InputError, extras_for
from truesource.grammar.support.settings import require_numbers
from truesource.terminal.logs import add_to_logs
from truesource.terminal.requests import OutputRequest, request_scope, size_of
from truesource.terminal.surroundings import keep_standard_output

log = logging.getLogger("truesource")

#: verbs that show no table
WITHOUT_TABLES = frozenset({"new", "report", "cite", "split", "induce", "train", "generate", "convert"})

_HIDDEN: dict[str, object] = {"hidden": True, "expose_value": False, "help": "Same as before the verb."}


class Verb(TyperCommand):
    """A verb whose help is plain text: ``<unk>``, brackets and stars are printed, not read as markup.

    Log options may also follow the verb.
    """

    def __init__(self, name: str | None, **options: Any) -> None:
        super().__init__(name, **options)
        if name not in WITHOUT_TABLES:
            self.params += _parameters(_table_option)
        if any(each.name == "figure" for each in self.params):
            self.params += _parameters(_figure_size_option)
        self.params += _parameters(_log_options)

    def invoke(self, ctx: Any) -> Any:
        """Run the verb, with the requested tables, JSON and figures.

        If a library is missing, one sentence says which extra to install.
        """
        _require_numbers(ctx)
        request = OutputRequest(
            tables=tuple(ctx.params.pop("table", None) or ()),
            json=ctx.params.get("json"),
            figure_size=size_of(ctx.params.pop("figure_size", None)),
        )
        if request.takes_standard_output:
            keep_standard_output()
        with request_scope(request), extras_for(f"`{ctx.command_path}`"):
            result = self.call(ctx)
            for file in request.missing:
                log.warning("nothing was written to %s, because this call has measured nothing", file)
        return result

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help."""
        from truesource.terminal.help import show_help

        show_help(self, ctx.command_path)

    def call(self, ctx: Any) -> Any:
        """Call the function of the verb."""
        return super().invoke(ctx)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Return the arguments that remain after the options."""
        try:
            return super().parse_args(ctx, args)
        except typer.BadParameter as error:
            text = error.message.removeprefix("Value error, ")  # pydantic's prefix for a choice
            error.message = text.replace("Input should be", "it should be")
            raise


class DeviceVerb(Verb):
    """A verb that runs networks: it also has the option --device."""

    def __init__(self, name: str | None, **options: Any) -> None:
        super().__init__(name, **options)
        self.params += _computing_option(
            "device", "auto|cpu|cuda|cuda:1|mps", "Device of networks (default: a CUDA GPU, or else the CPU)."
        )
        help_text = "Maximum number of CPU threads (default: all)."
        self.params += _declared("threads", int | None, typer.Option("--threads", min=1, metavar="N", help=help_text))

    def call(self, ctx: Any) -> Any:
        """Call the function of the verb, with the requested device and precision."""
        from truesource.lmtrain.device import computing

        with computing(*(ctx.params.pop(name, None) for name in ("device", "dtype", "threads"))):
            return super().call(ctx)


class NetworkVerb(DeviceVerb):
    """A verb that measures networks: it also has the option --dtype."""

    def __init__(self, name: str | None, **options: Any) -> None:
        super().__init__(name, **options)
        self.params += _computing_option("dtype", "float32|bfloat16|float16", "Precision (default: as saved).")


class ConfiguredVerb(NetworkVerb):
    """A verb with a configuration, whose keys include device and precision; ``--set`` overrides both options."""

    def call(self, ctx: Any) -> Any:
        """Call the function of the verb, with device and precision as keys of the configuration."""
        values = {name: ctx.params.pop(name) for name in ("device", "dtype", "threads")}
        keys = [f"{name}={value}" for name, value in values.items() if value is not None]
        ctx.params["set_"] = [*keys, *(ctx.params["set_"] or ())] or None
        return Verb.call(self, ctx)


def _require_numbers(ctx: Any) -> None:
    """Refuse numbers in options that are too large for arrays and files.

    Raises:
        InputError: a number is too large.
    """
    for option in ctx.command.params:
        try:
            require_numbers(ctx.params.get(option.name))
        except ValueError as error:
            raise InputError(f"{option.opts[-1]}: {error}") from error


def _log_options(
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", callback=lambda on: on and add_to_logs(quiet=True), **_HIDDEN)
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", callback=lambda on: on and add_to_logs(verbose=True), **_HIDDEN)
    ] = False,
    traceback: Annotated[
        bool, typer.Option("--traceback", callback=lambda on: on and add_to_logs(show=True), **_HIDDEN)
    ] = False,
    log_file: Annotated[
        Path | None, typer.Option("--log-file", callback=lambda file: file and add_to_logs(file=file), **_HIDDEN)
    ] = None,
) -> None:
    """Declare the log options, whose help is at the root."""


def _table_option(
    table: Annotated[
        list[Path] | None,
        typer.Option(
            "--table",
            metavar="FILE",
            help="Write the tables to this file: .csv, .parquet, .tex or .md; - for Markdown on standard output.",
        ),
    ] = None,
) -> None:
    """Declare --table, for verbs that show tables."""


def _figure_size_option(
    figure_size: Annotated[
        str | None,
        typer.Option("--figure-size", metavar="WIDTHxHEIGHT", help="Size of the figure in inches, such as 6x4."),
    ] = None,
) -> None:
    """Declare --figure-size, for verbs that draw a figure."""


def _computing_option(name: str, values: str, text: str) -> list[Any]:
    """Declare an option of verbs that run networks, which an environment variable can also set."""
    variable = f"TRUESOURCE_{name.upper()}"
    option_info = typer.Option(f"--{name}", metavar=values, envvar=variable, show_envvar=False, help=text)
    return _declared(name, str | None, option_info)


def _declared(name: str, kind: Any, option_info: Any) -> list[Any]:
    """Return an option as typer builds it, for a verb of any function."""

    def options(value: Any = None) -> None: ...

    options.__annotations__["value"] = Annotated[kind, option_info]
    (option,) = _parameters(options)
    option.name = name
    return [option]


def _parameters(function: Callable[..., None]) -> list[Any]:
    """Return the options of a function as typer builds them."""
    app = typer.Typer(add_completion=False)
    app.command()(function)
    return [parameter for parameter in typer.main.get_command(app).params if parameter.name != "help"]
