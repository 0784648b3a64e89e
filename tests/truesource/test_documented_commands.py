"""Every command in the README, the guides and the benchmarks has options that its verb has."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from truesource.cli.app import VERBS, load

ROOT = Path(__file__).resolve().parents[2]
SITE = sorted(page for page in (ROOT / "docs").rglob("*.md") if "_build" not in page.parts)
PAGES = [ROOT / "README.md", *SITE, ROOT / "benchmarks" / "campaign" / "verbs.py"]
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
