"""Formats that are no bracketings, or bracketings whose words are not in order: recognised, and refused by name."""

from __future__ import annotations

import re
from pathlib import Path

from truesource.grammar.support.errors import InputError
from truesource.grammar.tree import Tree

_EXPORT = "the export format of Negra, Tiger and TueBa-D/Z"
_TO_BRACKETS = "convert it, for example with `discodop treetransforms --inputfmt={} --outputfmt=bracket --splitdisc`"
#: patterns of lines, matched from their start, with the name of the format and what to do
FOREIGN: tuple[tuple[str, str, str], ...] = (
    (r"#(?:FORMAT|BOS|EOS)\b", _EXPORT, _TO_BRACKETS.format("export")),
    (r"%% (?:word|format)\b", _EXPORT, _TO_BRACKETS.format("export")),
    (
        r"#\d+:",
        "the format of the Sinica treebank",
        "convert it to Penn brackets, with the category first in each bracket",
    ),
    (r"<\?xml|<corpus\b|<tree\b", "XML, such as TIGER XML or Alpino's", _TO_BRACKETS.format("tiger")),
    (
        r"# (?:sent_id|text|newdoc|global\.columns) ?=|1\t\S+\t",
        "CoNLL, which holds dependencies",
        "give a constituency treebank",
    ),
    (r"#", "a bracketing with lines of comments that start with #", "remove these lines"),
    (r";", "a bracketing with lines of comments that start with ;", "remove these lines"),
    (r"/[*~]", "the output of CorpusSearch, with comments between the trees", "remove these lines"),
)
_POSITION = re.compile(r"(\d+)=(.+)", re.DOTALL)


def refuse_foreign(line: str, source: str | Path | None, number: int) -> None:
    """Refuse a line outside brackets that tells the format of its text.

    Raises:
        InputError: it does (code ``foreign-format``).
    """
    for pattern, name, remedy in FOREIGN:
        if re.match(pattern, line.lstrip()):
            raise InputError(f"this is {name}; {remedy}", source, number, code="foreign-format")


def refuse_positions(tree: Tree, source: str | Path | None, line: int) -> None:
    """Refuse a tree whose leaves are words with their positions, ``2=up``, as discontinuous brackets have them.

    Raises:
        InputError: they are (code ``discontinuous``).
    """
    node: Tree | str = tree
    while isinstance(node, Tree) and node.children:
        node = node.children[0]
    if not isinstance(node, str) or not _POSITION.fullmatch(node):
        return
    matches = [_POSITION.fullmatch(word) for word in tree.leaves()]
    if all(matches) and sorted(int(match[1]) for match in matches if match) == list(range(len(matches))):
        raise InputError(
            "this is a discontinuous bracketing (disco-dop): words have their positions in front, as in"
            f" {matches[0][0]!r}, and are not in order; convert it to trees without crossing branches, for example with"  # type: ignore[index]
            " `discodop treetransforms --inputfmt=discbracket --outputfmt=bracket --splitdisc`",
            source,
            line,
            code="discontinuous",
        )
