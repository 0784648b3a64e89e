"""The page of truths and what each can answer."""

from __future__ import annotations

from typing import get_args

from truesource.generator.abilities import TRUTHS, OfTruth, offers
from truesource.grammar.pcfg import language
from truesource.grammar.truth import Truth, process

#: a truth of each kind
KINDS: dict[str, Truth] = {"grammar": language("dyck"), "process": process("copy")}
HEAD = """\
# Which truth can answer what

The build of the site generates this page from the abilities in the code (`truesource.generator.abilities.TRUTHS`).
A verb that needs an ability of the truth asks for it by name, and refuses a truth that lacks it in one sentence, with
the code `missing-ability`. All truths can be sampled. [Truths](../concepts/truths.md) says what a process is.
"""


def page() -> str:
    """The page, in Markdown."""
    names = [*KINDS]
    rows = [f"| ability | what it gives | {' | '.join(names)} |", "| --- " * (2 + len(names)) + "|"]
    for ability in get_args(OfTruth):
        marks = ["yes" if offers(truth, ability) else "no" for truth in KINDS.values()]
        rows.append(f"| `{ability}` | {TRUTHS[ability].means} | {' | '.join(marks)} |")
    return "\n".join([HEAD, *rows, ""])
