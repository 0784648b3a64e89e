"""Help texts are shown as they are written."""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Callable, Iterator
from typing import Annotated, Any

import pytest
import typer
from command_line import Command
from typer.models import ParameterInfo

from truesource.cli import evaluate
from truesource.cli.app import app
from truesource.cli.verb import Verb

WIDE = 4000  #: characters of a line, so that no text is wrapped


VERBS: dict[str, Callable[..., Any]] = {
    f"{prefix}{registered.name}": registered.callback
    for prefix, group in (("", app), ("evaluate ", evaluate.verbs()))
    for registered in group.registered_commands
    if registered.callback is not None
}  #: by how they are called


def written(function: Callable[..., Any]) -> Iterator[str]:
    """The help texts in the source of a verb."""
    for hint in typing.get_type_hints(function, include_extras=True).values():
        for info in typing.get_args(hint)[1:]:
            if isinstance(info, ParameterInfo) and info.help is not None:
                yield info.help
    for paragraph in inspect.getdoc(function).split("\n\n"):  # type: ignore[union-attr]
        yield paragraph.replace("\n", " ")


def shown(out: str) -> str:
    """What is printed, without frames and with single blanks."""
    return re.sub(r"[\s│]+", " ", out)


@pytest.fixture
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("typer.rich_utils.MAX_WIDTH", WIDE)


@pytest.mark.usefixtures("wide")
@pytest.mark.parametrize("line", VERBS)
def test_every_text_is_shown_as_it_is_written(line: str, command: Command) -> None:
    found = command(*line.split(), "--help")
    assert found.code == 0
    for text in written(VERBS[line]):
        assert shown(text) in shown(found.out), text


def test_there_is_markup_to_be_shown() -> None:
    """The test above would be no test of it if no text had any."""
    texts = " ".join(text for function in VERBS.values() for text in written(function))
    assert "<unk>" in texts and "*V" in texts


@pytest.mark.usefixtures("wide")
@pytest.mark.parametrize(
    "text", ["<unk> and <b>x</b>", "[red] or [a](b)", "* **a** _b_ `c`", "1 < 2 & 3 > 2", "# a\\b", "- a | b ~~c~~ $x$"]
)
def test_markup_is_plain_text_in_help(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    def command(option: str = "") -> None:
        pass

    command.__annotations__["option"] = Annotated[str, typer.Option(help=text)]
    command.__doc__ = f"Do it.\n\n{text}\n"
    toy = typer.Typer(rich_markup_mode="markdown", pretty_exceptions_enable=False)
    toy.command("toy", cls=Verb)(command)
    with pytest.raises(SystemExit):
        toy(["--help"])
    assert shown(capsys.readouterr().out).count(shown(text)) == 2
