"""`truesource evaluate WHAT`: measures of corpora and models; one module each."""

from __future__ import annotations

import typer

from truesource.cli.evaluate import (
    divergence,
    dynamics,
    lattice,
    naturalness,
    pairs,
    pplu,
    probe,
    scaling,
    tendencies,
    tokenisation,
)
from truesource.cli.verb import Verb

NAME = "evaluate"

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="Measure corpora and models: **naturalness** sets sampled sentences beside a treebank, **divergence** all"
    " that a model expects beside the truth, **dynamics** what it learns when, **tendencies** what its text looks"
    " like, **pplu** its perplexity beside that of word frequencies, **pairs** its choices between sentences that"
    " differ in one thing, **probe** what its layers know of the grammar, **scaling** what more text, size and"
    " compute do; **lattice** counts the ways to cut a text into pieces, **tokenisation** adds up what a model"
    " gives to them.",
)

for module in (naturalness, divergence, dynamics, tendencies, pplu, lattice, tokenisation, pairs, scaling, probe):
    app.command(module.NAME, cls=Verb)(module.command)
