"""`truesource languages`: the languages of known truth."""

from __future__ import annotations

from truesource.cli.console import console, echo

WIDTH = 100  #: characters, where there is no terminal


def command() -> None:
    """List the languages whose exact grammar comes with truesource: parameters, purpose, source.

    A language such as dyck, or dyck:k=3,depth=5 to change its parameters, can be named wherever a grammar can.

    Example: truesource languages
    """
    from textwrap import fill

    from rich.table import Table

    from truesource.grammar.languages import languages
    from truesource.grammar.languages.shared.description import parameters, short_citation

    table = Table()
    for heading in ("language", "parameters and their defaults", "what it tests", "source"):
        table.add_column(heading, overflow="fold")
    for name, language in languages().items():
        defaults = (f"{each.key}={each.value}" for each in parameters(language.settings()) if each.value)
        table.add_row(name, " ".join(defaults), language.tests, short_citation(language.citation))
    console(WIDTH).print(table)
    for name, language in languages().items():
        if language.presets:
            echo(fill(f"Names for settings of {name}: {', '.join(language.presets)}", WIDTH, subsequent_indent="  "))
    echo("Next: truesource language dyck")
