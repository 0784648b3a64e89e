"""The command: its verbs."""

from __future__ import annotations

import logging
from typing import Annotated

import typer

from truesource.chain.corpus import command as sample
from truesource.chain.grammar import command as induce
from truesource.chain.models import command as train
from truesource.chain.scores import command as score
from truesource.cli import bound, cite, convert, demo, evaluate, generate, inspect, parse, report, run, vary
from truesource.cli.console import echo, log_handler
from truesource.cli.verb import Verb

app = typer.Typer(
    name="truesource",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    help="""Compare language models with the exact distribution of the language they were trained on.

    Start with **truesource demo**. The steps one by one: **induce** a grammar from a treebank, **sample** a corpus
    from it, **train** language models, **score** them against the exact truth.
    """,
)

for module in (demo, run, induce, sample, parse, bound, train, score, generate, report, convert, vary, inspect, cite):
    app.command(module.NAME, cls=Verb)(module.command)
app.add_typer(evaluate.app, name=evaluate.NAME)


def _version(value: bool) -> None:
    if value:
        from importlib.metadata import version

        echo(f"truesource {version('truesource')}")
        raise typer.Exit


@app.callback()
def _root(
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Only warnings and errors.")] = False,
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Show it.")] = False,
) -> None:
    logging.basicConfig(level=logging.WARNING, handlers=[log_handler()])
    logging.getLogger("truesource").setLevel(logging.WARNING if quiet else logging.INFO)
