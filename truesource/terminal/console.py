"""The only way to print to the terminal, without interpreting the data.

Every verb prints through `echo` and `console`. Neither takes markup: ``[bold]`` and ``:dog:`` are printed as they are.
If a table or JSON goes to the standard output (``--json -``), both print to standard error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from truesource.grammar.support.printable import terminal
from truesource.terminal.logs import to_log_file
from truesource.terminal.requests import output_request
from truesource.terminal.surroundings import write_result

if TYPE_CHECKING:
    from rich.console import Console


def echo(message: object = "", *, err: bool = False, grey: bool = False) -> None:
    """Print lines, on standard error if ``err``, on a terminal in grey if ``grey``; and copy them to the log file."""
    text = terminal(str(message))
    typer.echo(typer.style(text, dim=True) if grey else text, err=err or output_request().takes_standard_output)
    to_log_file(text)


def to_standard_output(text: str) -> None:
    """Print an output whose file name is ``-``, with the content of the file, in UTF-8."""
    content = (text if text.endswith("\n") else f"{text}\n").encode()
    if not write_result(content):
        typer.echo(content, nl=False)


def console(width: int = 120) -> Console:
    """Return the console for tables: as wide as the terminal, or ``width`` characters without a terminal."""
    from truesource.evaluation.show.table import plain_console

    stderr = output_request().takes_standard_output
    printer = plain_console(stderr=stderr)
    return printer if printer.is_terminal else plain_console(stderr=stderr, width=width)
