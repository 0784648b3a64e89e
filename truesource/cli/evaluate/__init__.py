"""`truesource evaluate WHAT`: measures of corpora and models; one module each."""

from __future__ import annotations

import typer

from truesource.cli.evaluate import divergence, naturalness

NAME = "evaluate"

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="Measure corpora and models: **evaluate naturalness** sets sampled sentences beside a treebank,"
    " **evaluate divergence** all that a model expects beside the truth.",
)

for module in (naturalness, divergence):
    app.command(module.NAME)(module.command)
