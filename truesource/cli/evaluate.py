"""`truesource evaluate WHAT`: one verb for each evaluator, and those of measures that no run has."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import typer
from typer.core import TyperGroup

from truesource.cli.verb import Verb

NAME = "evaluate"


def verbs() -> typer.Typer:
    """All verbs."""
    import truesource.evaluators
    from truesource.evaluators.tokenisation import lattice_command as lattice
    from truesource.sweep import command as scaling

    made = typer.Typer(rich_markup_mode="markdown")
    for evaluator in truesource.evaluators.EVALUATORS:
        made.command(evaluator.name, cls=Verb, short_help=evaluator.summary)(evaluator.command)
        if evaluator.formerly is not None:
            made.command(evaluator.formerly, cls=Verb, hidden=True)(evaluator.command)
    for module in (lattice, scaling):
        made.command(module.NAME, cls=Verb)(module.command)
    return made


class Evaluators(TyperGroup):
    """The verbs, which are imported when one of them is called or listed."""

    @cached_property
    def _verbs(self) -> Any:
        return typer.main.get_group(verbs())

    def list_commands(self, ctx: Any) -> list[str]:
        """Names of the verbs."""
        return list(self._verbs.list_commands(ctx))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """A verb by its name."""
        return self._verbs.get_command(ctx, cmd_name)


app = typer.Typer(cls=Evaluators, no_args_is_help=True, rich_markup_mode="markdown")


@app.callback()
def _evaluate() -> None:
    """Measure corpora and models."""
