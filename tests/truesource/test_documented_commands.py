"""Every command in the README, the guides and the benchmarks has options that its verb has."""

from __future__ import annotations

import re
import shlex
from functools import cache
from pathlib import Path

import pytest
from index_pages import pages_of
from typer.exceptions import TyperException

from truesource.cli.app import VERBS, load
from truesource.grammar.support.errors import InputError

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *pages_of(ROOT / "docs"), ROOT / "benchmarks" / "campaign" / "verbs.py"]
COMMAND = re.compile(r"truesource ((?:evaluate )?[a-z]+)([^`\n;|]*)")
IN_CAMPAIGN = re.compile(r'"((?:evaluate )?[a-z]+)( [^"]* --[^"]*)"')


@cache
def options(verb: str) -> frozenset[str] | None:
    """All options of a verb; None where there is no such verb."""
    first, *rest = verb.split()
    if first not in VERBS:
        return None
    command = load(first)
    for name in rest:
        command = command.commands.get(name)
        if command is None:
            return None
    return frozenset(option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts))


def commands(page: Path) -> list[tuple[str, str]]:
    text = page.read_text("utf-8").replace("\\\n", " ")
    found = COMMAND.findall(text) if page.suffix == ".md" else IN_CAMPAIGN.findall(text)
    return [(verb, rest) for verb, rest in found if options(verb) is not None]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_options_exist(page: Path) -> None:
    for verb, rest in commands(page):
        known = options(verb)
        assert known is not None
        for option in re.findall(r"(?<!\S)(--[a-z][a-z-]*)", rest.partition("  #")[0]):
            assert option in {*known, "--help"}, f"{page.name}: truesource {verb}{rest}"


def test_there_are_commands_to_check() -> None:
    assert sum(len(commands(page)) for page in PAGES) > 100


#: commands of pages that neither a test nor the build executes, and why: of a page, or of all pages of a folder
NOT_EXECUTED = {
    "README.md": "takes minutes of training; tests of each verb run them on small input",
    "docs": "`truesource run demo` takes minutes; a test runs the same chain on small input",
    "docs/start": "takes minutes of training, or installs; tests of each verb run them on small input",
    "docs/howto": "takes the reader's own files, or minutes of training; tests of each verb run them on small input",
    "docs/concepts": "takes the reader's own files; tests of each verb run them on small input",
    "docs/reference": "takes the reader's own files",
    "docs/gallery": "writes corpora of many sentences; tests sample from every language",
    "docs/reproductions": "takes released files, or hours; results are committed with a digest of their input",
    "docs/tutorials": "takes longer than a page may, and is shown only",
}
LINE = re.compile(r"^(?:\$ |! ?|%%? ?)?(?:\w+=\S+ )*truesource( .*)?$")


def lines_of(page: Path) -> list[tuple[str, bool]]:
    """The command lines of the code blocks of a page, and whether the build executes each."""
    found, executed, fenced = [], False, False
    text = page.read_text("utf-8").replace("\\\n", " ")
    for line in text.split("\n"):
        if line.lstrip().startswith("```"):
            fenced, executed = not fenced, not fenced and "{code-cell}" in line
        elif (fenced or line.startswith("    ")) and LINE.match(line.strip()):
            found.append((line.strip(), executed))
    return found


def words_of(line: str) -> list[str]:
    """The arguments of the command, up to a comment, a pipe or the next command."""
    match = LINE.match(line)
    assert match
    rest = re.split(r"\s#|\s[|;<>&]|;\s|\s2>|\s\[--?\w", match[1] or "")[0]
    return shlex.split(re.sub(r"\$\w+", "1", rest))  # variables of the shell: numbers


def parsed(line: str) -> str | None:
    """What the command itself says against its arguments; None: nothing."""
    words = words_of(line)
    while words and words[0] in ("-q", "-v", "--quiet", "--verbose", "--traceback"):
        words = words[1:]
    if not words or words[0].startswith("-") or words[0] == "VERB" or "--help" in words:
        return None
    try:
        verb = load(words[0])
        if hasattr(verb, "commands"):
            with verb.make_context("truesource", words[1:2], resilient_parsing=True):
                verb, words = verb.commands[words[1]], words[1:]
        with verb.make_context(f"truesource {words[0]}", words[1:]):
            return None
    except KeyError:
        return "there is no such verb"
    except InputError as error:  # files of pages need not be there
        return None if error.code in ("missing", "no-model") else str(error)
    except TyperException as error:  # what is wrong with the arguments
        return error.format_message()


@pytest.mark.parametrize("page", PAGES[:-1], ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_command_line_is_executed_or_parsed_by_the_command(page: Path) -> None:
    refused = {line: said for line, executed in lines_of(page) if not executed and (said := parsed(line))}
    assert refused == {}
    name = page.relative_to(ROOT).as_posix()
    if any(not executed for _, executed in lines_of(page)):
        assert {name, page.parent.relative_to(ROOT).as_posix()} & set(NOT_EXECUTED)


def test_a_wrong_command_line_is_refused() -> None:
    assert "No such option" in str(parsed("truesource bound g.npz corpus/ --nonsense 3"))
    assert "lengths" in str(parsed("truesource sample g.npz -n many -o corpus --lengths")).lower()
    assert parsed("truesource bound g.npz corpus/ --json b.json | head") is None
