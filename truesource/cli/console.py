"""The one way to the terminal: data are shown there, never obeyed.

Every verb prints through `echo` and `console`. Neither takes markup: ``[bold]`` and ``:dog:`` are printed as they are.
"""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING, Any

import typer

from truesource.grammar.support.printable import shortened, terminal

if TYPE_CHECKING:
    from rich.console import Console

LONGEST_WORD = 200  #: characters of a word in a table


def echo(message: object = "", *, err: bool = False) -> None:
    """Print lines, on standard error if ``err``."""
    typer.echo(terminal(str(message)), err=err)


def printed(text: str) -> str:
    """A text as tables show it: plain, and its long words shortened, so that a column stays readable."""
    return shortened(terminal(text), LONGEST_WORD)


def console(width: int = 120) -> Console:
    """Where tables are printed: as wide as the terminal, or ``width`` characters where there is none."""
    from rich.console import Console

    class Printable(Console):
        """Takes plain text only."""

        def render_str(self, text: str, **options: Any) -> Any:
            return super().render_str(printed(text), **options)

    def made(**options: Any) -> Console:
        return Printable(markup=False, emoji=False, highlight=False, **options)

    found = made()
    return found if found.is_terminal else made(width=width)


def log_handler() -> logging.Handler:
    """Prints the log on standard error, each message with its time."""
    from rich.console import Console
    from rich.logging import RichHandler

    class Printable(logging.Formatter):
        def format(self, record: logging.LogRecord) -> str:
            return terminal(super().format(record))

    handler = RichHandler(
        console=Console(stderr=True, soft_wrap=not sys.stderr.isatty()),
        show_path=False,
        show_level=False,
        rich_tracebacks=False,
    )
    handler.setFormatter(Printable("%(message)s", datefmt="%H:%M:%S"))
    return handler
