"""A verb of the command: its help, and options under their earlier spellings."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand

from truesource.cli.renamed import earlier_spellings, with_names_of_today


class Verb(TyperCommand):
    """A verb whose help is plain text: ``<unk>``, brackets and stars are shown, not taken for markup."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help."""
        from truesource.cli.help import show_help

        show_help(self, ctx.command_path)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """What is left of the arguments; earlier spellings of options are read as those of today."""
        spellings = earlier_spellings(self.name or "", self.callback)
        repeatable = frozenset(name for each in self.params if getattr(each, "multiple", False) for name in each.opts)
        return super().parse_args(ctx, with_names_of_today(args, spellings, repeatable=repeatable))
