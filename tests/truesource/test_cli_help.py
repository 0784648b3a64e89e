"""Help texts are shown as they are written."""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Callable, Iterator
from typing import Annotated, Any

import pytest
import typer
from all_verbs import verbs
from command_line import Command
from typer.models import ParameterInfo

from truesource.cli import app
from truesource.terminal.help import ADVANCED, FEW
from truesource.terminal.verb import Verb

WIDE = 4000  #: characters of a line, so that no text is wrapped


VERBS: dict[str, Callable[..., Any]] = {name: app.function_of(name) for name in app.VERBS if name != "evaluate"} | {
    f"evaluate {registered.name}": registered.callback
    for registered in app.evaluators().registered_commands
    if registered.callback is not None and not registered.hidden
}  #: by how they are called
#: words that only people who know the code understand, or that are no plain English
JARGON = (
    "told",
    "tells",
    "drawn",
    "stands",
    "cut",
    "beside",
    "at most",
    "so many",
    "a line each",
    "thereof",
    "find out",
)
LONGEST = 90  #: characters of the help of an option


def parameters(function: Callable[..., Any]) -> dict[str, ParameterInfo]:
    """The arguments and options of a verb, by name."""
    hints = typing.get_type_hints(function, include_extras=True)
    infos = {
        name: [i for i in typing.get_args(hint)[1:] if isinstance(i, ParameterInfo)] for name, hint in hints.items()
    }
    return {name: found[0] for name, found in infos.items() if found}


def written(function: Callable[..., Any]) -> Iterator[str]:
    """The help texts in the source of a verb."""
    for info in parameters(function).values():
        if info.help is not None:
            yield info.help
    for paragraph in inspect.getdoc(function).split("\n\n"):  # type: ignore[union-attr]
        yield paragraph.replace("\n", " ")


def shown(out: str) -> str:
    """What is printed, without frames and with single blanks."""
    return re.sub(r"[\s│]+", " ", out)


@pytest.fixture
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("truesource.terminal.help.WIDTH", WIDE)


@pytest.mark.long
@pytest.mark.usefixtures("wide")
@pytest.mark.parametrize("line", VERBS)
def test_every_text_is_shown_as_it_is_written(line: str, command: Command) -> None:
    found = command(*line.split(), "--help")
    assert found.code == 0
    for text in written(VERBS[line]):
        assert shown(text.removeprefix("Example: ")) in shown(found.out), text


@pytest.mark.long
@pytest.mark.parametrize("line", VERBS)
def test_nothing_is_cut_at_80_columns(line: str, command: Command) -> None:
    out = command(*line.split(), "--help").out
    assert "…" not in out
    assert max(map(len, out.split("\n"))) <= 80
    assert not re.search(r"range>|<(int|str|float|path)", out)
    words = set(re.split(r"[\s│,]+", out))
    verb = dict(verbs())[line]
    names = {name for each in verb.params if not each.hidden for name in (*each.opts, *each.secondary_opts)}
    assert {name for name in names if name.startswith("-")} <= words
    texts = [info.help or "" for name, info in parameters(VERBS[line]).items()]
    assert set(" ".join(texts).split()) <= set(out.split())
    examples = re.findall(r"^Example: (.*)$", inspect.getdoc(VERBS[line]) or "", re.MULTILINE)
    assert examples and all(set(example.split()) <= set(out.split()) for example in examples)


@pytest.mark.long
@pytest.mark.parametrize("line", VERBS)
def test_many_options_are_in_panels(line: str, command: Command) -> None:
    shown = [each for each in dict(verbs())[line].params if each.param_type_name == "option" and not each.hidden]
    panels = re.findall(r"^╭─ (.*?) ─", command(*line.split(), "--help").out, re.MULTILINE)
    assert (len(set(panels) - {"Arguments", ADVANCED}) > 1) == (len(shown) > FEW)


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


def faults(text: str | None) -> list[str]:
    """What is wrong with the help of an option."""
    if not text:
        return ["missing"]
    found = [word for word in JARGON if re.search(rf"\b{word}\b(?! \()", text)]  # a value may be explained: drawn (...)
    found += [] if len(text) < LONGEST else [f"{len(text)} characters"]
    found += [] if text[0].isupper() or text.startswith("`") else ["first letter"]
    return found if text.endswith(".") else [*found, "full stop"]


@pytest.mark.parametrize("line", VERBS)
def test_help_is_plain(line: str) -> None:
    function = VERBS[line]
    assert {name: wrong for name, info in parameters(function).items() if (wrong := faults(info.help))} == {}
    text = inspect.getdoc(function) or ""
    assert [word for word in JARGON if re.search(rf"\b{word}\b", text)] == []
    assert [text for text in written(function) if "docs/" in text or "data/" in text] == []  # pip installs neither
    assert f"Example: truesource {line} " in f"{text} ".replace("\n", " ")


def test_every_parameter_has_its_options() -> None:
    """What `parameters` passes over is no option."""
    for line, function in VERBS.items():
        assert set(inspect.signature(function).parameters) - {"context"} == parameters(function).keys(), line


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("Number of sentences.", []),
        ("number of sentences", ["first letter", "full stop"]),
        ("Sentences, at most so many.", ["at most", "so many"]),
        (f"{'A' * 89}.", ["90 characters"]),
        ("", ["missing"]),
    ],
)
def test_faults_are_found(text: str, wrong: list[str]) -> None:
    assert faults(text) == wrong


def test_every_verb_is_in_one_group_of_the_root_help(command: Command) -> None:
    grouped = [name for names in app.GROUPS.values() for name in names]
    assert len(grouped) == len(set(grouped)) and app.VERBS.keys() <= set(grouped)
    out = command("--help").out
    assert "…" not in out and len(out.split("\n")) < 65
    assert all(group in out for group in app.GROUPS)
