"""Conventions of treebanks: what is no word, which part of a label is the category, which lines are no trees."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

Name = Literal["penn", "switchboard", "negra", "penn-helsinki", "spmrl", "plain"]
NAMES: tuple[Name, ...] = get_args(Name)

_NEVER = r"(?!)"
_ALL = r"(?s:.+)"
_DASHES = r"(?s:-.*|.[^-=]*)"  #: up to the first - or =, but a first character stays (-LRB-)
#: as `_DASHES`, but a single letter is no function tag, which have three: PRP-S is PRP$ where $ could not be written
_PENN = r"(?s:-.*|.[^-=]*(?:-[A-Z](?![^-=]))?)"
_BANNER = r"\*x\*"  #: the copyright notice in front of some files of the Linguistic Data Consortium


@dataclass(frozen=True, slots=True)
class Convention:
    """How one family of treebanks is annotated. All parts are regular expressions."""

    about: str  #: which treebanks
    nodes: str = "-NONE-"  #: labels of nodes that go with all below them, matched whole
    words: str = _NEVER  #: words that are not there, matched whole
    category: str = _ALL  #: what stays of a label, matched from its start
    lines: str = _NEVER  #: lines between trees that are skipped, matched from their start
    signs: str = _NEVER  #: words and labels that only this convention has, matched whole


CONVENTIONS: Mapping[Name, Convention] = {
    "penn": Convention("Penn Treebank, OntoNotes, GUM", category=_PENN, lines=_BANNER, signs="-NONE-"),
    "switchboard": Convention(
        "Switchboard part of the Penn Treebank",
        nodes="-NONE-|-DFL-|CODE",
        words=r"[EN]_S|\\[][+]",
        category=_PENN,
        lines=_BANNER,
        signs=r"[EN]_S|\\[][+]|Speaker[AB]\d+|-DFL-",
    ),
    "negra": Convention(
        "Negra and Tiger in their Penn format",
        nodes=r"-NONE-|\*T\d+\*.*",
        words=r"\*T\d+\*.*",
        category=r"(?s:-.*|\$\*LRB\*|(?:(?!\*T\d+\*)[^-=])+|.[^-=]*)",
        lines=r"%%",
        signs=r"\*T\d+\*.*|.+\*T\d+\*|\$\*LRB\*",
    ),
    "penn-helsinki": Convention(
        "Penn parsed corpora of historical English, and those annotated alike",
        nodes="-NONE-|CODE|ID|META|METADATA",
        words=r"0|\*|\*(?:con|exp|pro|arb|T|ICH|CL)\*(?:-\d+)?",
        category=_DASHES,
        signs=r"\*(?:con|exp|pro|arb|ICH)\*(?:-\d+)?|ID|METADATA",
    ),
    "spmrl": Convention(
        "SPMRL shared tasks: French, German, Hebrew and others", category=r"(?s:.(?:(?!##).)*)", signs=r".+##.*"
    ),
    "plain": Convention("trees of a grammar: every node, word and label as it is", nodes=_NEVER),
}


@dataclass
class Ledger:
    """Account of what was done to the words and labels of trees while they were read."""

    dropped: Counter[str] = field(default_factory=Counter)  #: words that went, by the label or word that says so
    cut: Counter[tuple[str, str]] = field(default_factory=Counter)  #: nodes by their label and what stayed of it

    def __str__(self) -> str:
        """Say on one line what was dropped and what was cut."""
        return f"dropped {_counted(self.dropped, 'word')}; cut {self._labels()}"

    def _labels(self) -> str:
        if not self.cut:
            return "no label"
        kinds, kept = len({label for label, _ in self.cut}), len({short for _, short in self.cut})
        examples = ", ".join(f"{label} to {short}" for (label, short), _ in self.cut.most_common(3))
        return f"{self.cut.total():,} labels from {kinds:,} different to {kept:,} (such as {examples})"

    def as_dict(self) -> dict[str, object]:
        """Plain values for JSON."""
        return {
            "dropped": dict(self.dropped.most_common()),
            "cut": [{"label": label, "category": short, "nodes": n} for (label, short), n in self.cut.most_common()],
        }


def generalised(name: str) -> str:
    """A marker without its numbers: ``*T#*`` for ``*T1*``."""
    return re.sub(r"(?<=\D)\d+|\d+(?=\D)", "#", name)


def signs_of_others(names: Iterable[tuple[str, int]], convention: Name) -> dict[Name, Counter[str]]:
    """Words and labels that look like markers of another convention, by that convention, the most frequent first.

    Args:
        names: words and labels that were kept, with their counts.
        convention: what the trees were read by.
    """
    result: dict[Name, Counter[str]] = {}
    patterns = {name: re.compile(c.signs) for name, c in CONVENTIONS.items() if name != convention}
    for word, count in names:
        for name, pattern in patterns.items():
            if pattern.fullmatch(word):
                result.setdefault(name, Counter())[generalised(word)] += count
    return dict(sorted(result.items(), key=lambda pair: -pair[1].total()))


def without_headers(text: str) -> str:
    """The text from its first line on that no convention skips."""
    skipped = re.compile("|".join(convention.lines for convention in CONVENTIONS.values())).match
    lines = text.split("\n")
    first = next((i for i, line in enumerate(lines) if line.strip() and not skipped(line)), len(lines))
    return "\n".join(lines[first:]).lstrip()


def _counted(counts: Counter[str], what: str) -> str:
    if not counts:
        return f"no {what}"
    kinds = ", ".join(f"{name} {n:,}" for name, n in counts.most_common(6))
    more = "" if len(counts) <= 6 else ", ..."
    return f"{counts.total():,} {what}{'' if counts.total() == 1 else 's'} ({kinds}{more})"
