"""Formats other than bracketings, or with positions of words: recognised, and refused by name."""

from __future__ import annotations

import re
from pathlib import Path

from truesource.grammar.support.errors import InputError
from truesource.grammar.tree import Tree

_EXPORT = "the export format of Negra, Tiger and TueBa-D/Z"
_TO_BRACKETS = "convert it, for example with `discodop treetransforms --inputfmt={} --outputfmt=bracket --splitdisc`"
_CONLL = ("CoNLL, which holds dependencies", "use a constituency treebank")
#: patterns of lines, matched from their start, with the name of the format and what to do
Formats = tuple[tuple[str, str, str], ...]
SURE: Formats = (  #: lines that are in no grammar either
    (r"#(?:FORMAT|BOS|EOS)\b", _EXPORT, _TO_BRACKETS.format("export")),
    (r"%% (?:word|format)\b", _EXPORT, _TO_BRACKETS.format("export")),
    (r"<\?xml|<corpus\b|<tree\b", "XML, such as TIGER XML or Alpino's", _TO_BRACKETS.format("tiger")),
    (
        r"#begin document\b|(?:\S+\s+){2,12}\(\S+\*(?:\s|$)",
        "CoNLL-2012 (or 2005), which holds trees in pieces in one of its columns",
        "use the trees as brackets, such as the .parse files of OntoNotes",
    ),
    (r"# (?:sent_id|global\.columns) ?=|# newdoc\b|1\t(?:[^\t]*\t){6}", *_CONLL),
    (r"/[*~]", "the output of CorpusSearch, with comments between the trees", "remove these lines"),
)
FOREIGN: Formats = (  #: lines outside the brackets of a treebank
    *SURE,
    (
        r"#\d+:",
        "the format of the Sinica treebank",
        "convert it to Penn brackets, with the category first in each bracket",
    ),
    (r"# text ?=|1\t\S+\t", *_CONLL),
    (r"#", "a bracketing with lines of comments that start with #", "remove these lines"),
    (r";", "a bracketing with lines of comments that start with ;", "remove these lines"),
)
_POSITION = re.compile(r"(\d+)=(.+)", re.DOTALL)


def refuse_foreign(line: str, source: str | Path | None, number: int, formats: Formats = FOREIGN) -> None:
    """Refuse a line outside brackets that reveals the format of its text.

    Args:
        line: the line.
        source: file of the line, for the message.
        number: number of the line.
        formats: `FOREIGN`, or `SURE` for a line that may be from a grammar.

    Raises:
        InputError: it does (code ``foreign-format``).
    """
    for pattern, name, remedy in formats:
        if re.match(pattern, line.lstrip()):
            raise InputError(f"this is {name}; {remedy}", source, number, code="foreign-format")


def refuse_positions(tree: Tree, source: str | Path | None, line: int) -> None:
    """Refuse a tree whose leaves are words with positions, ``2=up``, as in discontinuous brackets.

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
        order = [int(match[1]) for match in matches if match]
        crossing = "" if order == sorted(order) else ", and are not in order"
        raise InputError(
            "this is a discontinuous bracketing (disco-dop): words have their positions in front, as in"
            f" {node!r}{crossing}; convert it to trees without positions and crossing branches, for example with"
            " `discodop treetransforms --inputfmt=discbracket --outputfmt=bracket --splitdisc`",
            source,
            line,
            code="discontinuous",
        )
