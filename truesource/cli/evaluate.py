"""`truesource evaluate WHAT`: one verb for each evaluator, and those of measures that no run has."""

from __future__ import annotations

from collections.abc import Callable

import typer

import truesource.evaluators
from truesource.cli.verb import DeviceVerb, NetworkVerb, Verb
from truesource.evaluators.tokenisation import lattice_command as lattice
from truesource.sweep import command as scaling

_WITHOUT_NETWORKS = ("naturalness", "tendencies")


def commands() -> dict[str, Callable[..., None]]:
    """The function of each verb."""
    found = {evaluator.name: evaluator.command for evaluator in truesource.evaluators.EVALUATORS}
    return found | {module.NAME: module.command for module in (lattice, scaling)}


def verbs() -> typer.Typer:
    """All verbs."""
    made = typer.Typer(no_args_is_help=True, rich_markup_mode="markdown", add_completion=False)
    for evaluator in truesource.evaluators.EVALUATORS:
        made.command(
            evaluator.name,
            cls=Verb if evaluator.name in _WITHOUT_NETWORKS else NetworkVerb,
            short_help=evaluator.summary,
        )(evaluator.command)
    made.command(lattice.NAME, cls=Verb)(lattice.command)
    made.command(scaling.NAME, cls=DeviceVerb)(scaling.command)
    made.callback()(_evaluate)
    return made


def _evaluate() -> None:
    """Measure corpora and models."""
