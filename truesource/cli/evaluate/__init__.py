"""`truesource evaluate WHAT`: measures of corpora and models that need no training; one module each."""

from __future__ import annotations

import typer

from truesource.cli.evaluate import naturalness

NAME = "evaluate"

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="Measure corpora: **evaluate naturalness** sets sampled sentences beside a treebank.",
)

for module in (naturalness,):
    app.command(module.NAME)(module.command)
