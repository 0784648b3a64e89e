"""Earlier spellings of options work for one version, with one warning that names the spelling of today."""

from __future__ import annotations

import logging

import pytest
import typer
from all_verbs import verbs
from typer.testing import CliRunner

from truesource.cli import renamed
from truesource.cli.console import echo
from truesource.cli.renamed import with_names_of_today
from truesource.cli.renamed_table import earlier_options
from truesource.cli.settings import with_options
from truesource.cli.verb import Verb
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.settings import Settings


class _Drawing(Settings):
    """Settings of a toy verb."""

    renamed = {"sentences": "number"}
    number: int = 3


@pytest.fixture
def toy(monkeypatch):
    """A verb with two renamed options, one of them of its settings."""
    made = typer.Typer()

    @with_options(_Drawing)
    def command(figure: str = typer.Option("none", "--figure"), *, settings: _Drawing) -> None:
        """Draw."""
        echo(f"{figure} {settings.number}")

    made.command("toy", cls=Verb)(command)
    monkeypatch.setitem(renamed.OPTIONS, "toy", {"--plot": "--figure"})
    return made


def test_an_earlier_spelling_works_and_warns_once(toy, caplog):
    with caplog.at_level(logging.WARNING, "truesource"):
        result = CliRunner().invoke(toy, ["--plot", "a.svg", "--sentences=5"])
    assert result.output == "a.svg 5\n"
    assert [record.getMessage() for record in caplog.records] == [
        "the option --plot is now called --figure",
        "the option --sentences is now called --number",
    ]


def test_the_spelling_of_today_does_not_warn(toy, caplog):
    with caplog.at_level(logging.WARNING, "truesource"):
        assert CliRunner().invoke(toy, ["--figure", "a.svg", "-n", "5"]).output == "a.svg 5\n"
    assert not caplog.records


def test_help_shows_no_earlier_spelling(toy):
    text = CliRunner().invoke(toy, ["--help"]).output
    assert "--figure" in text and "--plot" not in text and "--sentences" not in text


def test_both_spellings_are_refused(toy):
    assert isinstance(CliRunner().invoke(toy, ["--plot", "a", "--figure", "b"]).exception, InputError)


def test_several_may_be_one_that_is_repeatable():
    spellings = {"--csv": "--table", "--latex": "--table"}
    arguments = ["x", "--csv", "a.csv", "--latex=b.tex", "--", "--csv"]
    today = ["x", "--table", "a.csv", "--table=b.tex", "--", "--csv"]
    assert with_names_of_today(arguments, spellings, repeatable=frozenset({"--table"})) == today
    with pytest.raises(InputError, match="give only --table"):
        with_names_of_today(arguments, spellings)


def test_every_entry_names_a_verb_and_an_option_of_today():
    present = {name: {spelling for each in command.params for spelling in each.opts} for name, command in verbs()}
    found = list(earlier_options())
    assert {name.rpartition(" ")[2] for name, _, _ in found} >= renamed.OPTIONS.keys()
    for name, old, new in found:
        assert new.partition("=")[0] in present[name], (name, new)
        assert old not in present[name], (name, old)
