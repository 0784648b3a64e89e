"""A verb of the command, with help that is shown as it is written."""

from __future__ import annotations

import inspect
from typing import Any

from typer.core import TyperCommand

from truesource.cli.renamed import earlier_spellings, with_names_of_today
from truesource.grammar.support.printable import markdown


class Verb(TyperCommand):
    """A verb whose help texts are plain text: ``<unk>``, brackets and stars are shown, not taken for markup.

    Help texts are rendered as Markdown, in which ``<unk>`` is a tag that nothing shows.
    """

    def __init__(self, name: str | None, **given: Any) -> None:
        super().__init__(name, **given)
        if self.help is not None:
            self.help = "\n".join(map(markdown, inspect.cleandoc(self.help).split("\n")))
        for parameter in self.params:
            text = getattr(parameter, "help", None)
            if text is not None:
                parameter.help = markdown(text)  # type: ignore[attr-defined]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """What is left of the arguments; earlier spellings of options are read as those of today."""
        spellings = earlier_spellings(self.name or "", self.callback)
        repeatable = frozenset(name for each in self.params if getattr(each, "multiple", False) for name in each.opts)
        return super().parse_args(ctx, with_names_of_today(args, spellings, repeatable=repeatable))
