"""The one way to the terminal: data are shown there, never obeyed.

Every verb prints through `echo` and `console`. Neither takes markup: ``[bold]`` and ``:dog:`` are printed as they are.
Where a table or JSON has the standard output (``--json -``), both print to standard error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from truesource.grammar.support.printable import terminal
from truesource.terminal.asked import asked
from truesource.terminal.logs import to_log_file
from truesource.terminal.surroundings import write_result

if TYPE_CHECKING:
    from rich.console import Console


def echo(message: object = "", *, err: bool = False) -> None:
    """Print lines, on standard error if ``err``; a log file has them too."""
    text = terminal(str(message))
    typer.echo(text, err=err or asked().takes_standard_output)
    to_log_file(text)


def to_standard_output(text: str) -> None:
    """Print what was asked for with ``-`` as the name of its file, as the file would be: in UTF-8."""
    content = (text if text.endswith("\n") else f"{text}\n").encode()
    if not write_result(content):
        typer.echo(content, nl=False)


def console(width: int = 120) -> Console:
    """Return where tables are printed: as wide as the terminal, or ``width`` characters where there is none."""
    from truesource.evaluation.show.table import plain_console

    stderr = asked().takes_standard_output
    found = plain_console(stderr=stderr)
    return found if found.is_terminal else plain_console(stderr=stderr, width=width)
