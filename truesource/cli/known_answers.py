"""`truesource known-answers`: write models with known perplexities, and diagnose a number of an evaluation."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from truesource.terminal.console import echo
from truesource.terminal.options import Force, Json

if TYPE_CHECKING:
    from truesource.terminal.output import OutputFiles

OTHER = 3  #: exit code if a number is not the expected answer


def command(
    action: Annotated[
        Literal["check"] | None, typer.Argument(help="Name check to diagnose a number instead of writing a kit.")
    ] = None,
    value: Annotated[str | None, typer.Argument(help="Number that an evaluation reports for the text.")] = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Folder of the new kit.")] = None,
    kit: Annotated[
        Path | None, typer.Option("--kit", help="Kit to check against (default: the kit of this version).")
    ] = None,
    text: Annotated[str | None, typer.Option("--text", help="Text of the kit that was evaluated.")] = None,
    expect: Annotated[
        str | None, typer.Option("--expect", metavar="NAME", help="Exit with 3 unless the number is this answer.")
    ] = None,
    json: Json = None,
    force: Force = False,
) -> None:
    """Write models with known perplexities, or say which convention or mistake a number matches.

    A kit has models that transformers opens and whose probabilities are known exactly, texts, and the numbers that an
    evaluation must give on them, by each convention and each common mistake. check compares a number with them: a
    convention or mistake must match to 3 digits, a combination of two to 5.

    Example: truesource known-answers -o kit/

    Example: truesource known-answers check 12.246 --kit kit/ --text words-1.txt
    """
    from dataclasses import asdict

    from truesource.evaluation.known_answers.kit import ANSWERS, WHAT, known_answers
    from truesource.grammar.support.errors import InputError
    from truesource.terminal.output import OutputFiles, claim_folder, json_of
    from truesource.terminal.tables import show

    if action is not None:
        if output is not None:
            raise InputError("check writes no kit; remove --output")
        _check(value, kit, text, expect, OutputFiles(json=json, force=force))
        return
    for option, argument in {"--kit": kit, "--text": text, "--expect": expect}.items():
        if argument is not None:
            raise InputError(f"{option} is for truesource known-answers check; remove it")
    if output is not None:
        claim_folder(output, WHAT, ANSWERS, force=force)
    files = OutputFiles(json=json, force=force)
    result = known_answers(output, force=force)
    show(result.table())
    check = "truesource known-answers check NUMBER --text words-1"
    files.finish(
        check if output is None else f"{check} --kit {output}", folder=output, json=json_of(asdict(result.detail))
    )


def _check(value: str | None, kit: Path | None, text: str | None, expect: str | None, files: OutputFiles) -> None:
    """Print which answers a number matches; exit with 3 if it is not the expected one."""
    from truesource.evaluation.known_answers.diagnosis import diagnose, is_named, require_name
    from truesource.evaluation.known_answers.kit import read_answers, text_answers
    from truesource.grammar.support.errors import InputError
    from truesource.terminal.output import json_of
    from truesource.terminal.tables import show

    if value is None or text is None:
        raise InputError("name a number and a text, as in truesource known-answers check 12.246 --text words-1")
    answers = text_answers(text, None if kit is None else read_answers(kit))
    if expect is not None:
        require_name(expect, answers)
    result = diagnose(value, answers)
    show(result.table())
    echo(f"{result.detail.verdict}.")
    files.write(json=json_of(result.detail.as_record()))
    if expect is not None and not is_named(result.detail, expect):
        echo(f"truesource: the expected answer is {expect}", err=True)
        raise typer.Exit(OTHER)
