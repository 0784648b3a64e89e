"""User-supplied heads: by rule, ``VP -> *V NP``, or by label, ``VP: V Aux``.

One line a head, in grammar text after ``%head``, or in a separate file (with or without ``%head``):

* ``VP -> *V NP PP`` marks the head among the children of one rule. It also holds for these children in reverse, and in
  any other order if only one of them has the label of the head.
* ``VP: V Aux`` lists labels: the head is the first ``V``, else the first ``Aux``. ``NP: right N`` looks from the right.

Names are treebank labels, without additions by binarisation and annotation; angle brackets (``<A B>``) make a label
of any text, and a quoted word (``'is'``) is the word itself among other children. Rules come before lists, and the
table of `truesource.grammar.treebank.binarise` decides the rest.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import refuse_device
from truesource.grammar.tree import is_word_label, word_label
from truesource.grammar.treebank.binarise import category, known_head

if TYPE_CHECKING:
    from truesource.grammar.rules import GrammarRules

_TOKEN = re.compile(
    r"""\s*(?P<star>\*)?(?:
      '(?P<single>(?:[^'\\]|\\.)*)' | "(?P<double>(?:[^"\\]|\\.)*)" | <(?P<angle>(?:[^>\\]|\\.)+)> | (?P<bare>\S+?)
    )(?P<colon>:)?(?=\s|$)""",
    re.VERBOSE,
)
_PLAIN = re.compile(r"[^\s'\"<%#*\\:][^\s'\"\\:]*")
_SIDES = ("left", "right")


class _Token(NamedTuple):
    name: str
    bare: bool
    starred: bool
    colon: bool


@dataclass(frozen=True)
class HeadRules:
    """User-supplied heads, which come before the table of `truesource.grammar.treebank.binarise`."""

    lines: tuple[str, ...] = ()  #: lines of text that `parse` reads
    by_rule: Mapping[tuple[str, tuple[str, ...]], int] = field(default_factory=dict)  #: head of label and children
    by_label: Mapping[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)  #: (side, label) in order
    others: HeadRules | None = None  #: heads to try next, before the table

    @classmethod
    def parse(cls, lines: Iterable[tuple[str, int]], path: str | Path | None = None) -> HeadRules:
        """Read lines, each with its number.

        Raises:
            InputError: a line is neither a rule with one star nor a list of labels, or two lines contradict each other.
        """
        by_rule: dict[tuple[str, tuple[str, ...]], int] = {}
        by_label: dict[str, tuple[tuple[str, str], ...]] = {}
        written: list[str] = []
        for line, number in lines:
            tokens = _tokens(line)
            stars = [i for i, token in enumerate(tokens[2:]) if token.starred]
            if len(tokens) > 2 and tokens[1].bare and tokens[1].name == "->" and len(stars) == 1:
                key = tokens[0].name, tuple(token.name for token in tokens[2:])
                if by_rule.setdefault(key, stars[0]) != stars[0]:
                    raise InputError(f"{tokens[0].name} -> ... has another head in an earlier line", path, number)
            elif len(tokens) > 1 and tokens[0].colon and not any(token.starred or token.colon for token in tokens[1:]):
                side = tokens[1].name if tokens[1].bare and tokens[1].name in _SIDES else None
                names = tokens[1:] if side is None else tokens[2:]
                steps = tuple((side or "left", token.name) for token in names)
                by_label[tokens[0].name] = by_label.get(tokens[0].name, ()) + steps
            else:
                raise InputError(f"expecting a head such as VP -> *V NP or VP: V, got {line[:60]!r}", path, number)
            written.append(_written(tokens))
        return cls(tuple(written), by_rule, by_label)

    @classmethod
    def read(cls, path: str | Path) -> HeadRules:
        """Read a file of such lines; ``#`` starts a comment at the start of a line.

        Raises:
            InputError: the file cannot be read, or a line is at fault (with its number).
        """
        refuse_device(path)
        try:
            text = Path(path).read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"cannot read the heads: {getattr(error, 'strerror', None) or error}", path) from error
        numbered = [(line.strip(), number) for number, line in enumerate(text.split("\n"), start=1)]
        lines = [(line.removeprefix("%head").strip(), n) for line, n in numbered if line and not line.startswith("#")]
        return cls.parse(lines, path)

    @classmethod
    def of(cls, pcfg: GrammarRules) -> HeadRules:
        """Return the heads from the text of a grammar, which are in its ``meta``.

        Raises:
            InputError: they are not lines of text, or no heads.
        """
        lines = pcfg.meta.get("heads", [])
        if not isinstance(lines, list) or not all(isinstance(line, str) for line in lines):
            raise InputError("the heads that are stored with this grammar are damaged; regenerate the grammar")
        return cls.parse((line, number) for number, line in enumerate(lines, start=1))

    def before(self, others: HeadRules) -> HeadRules:
        """Return these heads, then ``others`` for undecided nodes."""
        return replace(self, others=others)

    def require_known(self, labels: Iterable[str], path: str | Path | None = None) -> None:
        """Refuse a head of a label that is not in a grammar.

        Raises:
            InputError: with similar labels.
        """
        categories = {category(label) for label in labels}
        for name in self._names():
            if name not in categories and not is_word_label(name):
                near = get_close_matches(name, categories, 3, 0.4) or sorted(categories)[:6]
                raise InputError(f"%head: no symbol has the label {name!r}; use one such as {', '.join(near)}", path)

    def lines_about(self, labels: Iterable[str]) -> list[str]:
        """Return the lines that name no other labels, since a change of a grammar may remove some."""
        categories = {category(label) for label in labels}
        return [
            line
            for line in self.lines
            if all(name in categories or is_word_label(name) for name in HeadRules.parse([(line, 1)])._names())
        ]

    def _names(self) -> list[str]:
        rules = [name for label, children in self.by_rule for name in (label, *children)]
        return rules + [name for label, steps in self.by_label.items() for name in (label, *(x for _, x in steps))]

    def find(self, label: str, children: Sequence[str]) -> int | None:
        """Return the position of the head among ``children`` (categories), from 0; None if undecided."""
        rules: HeadRules | None = self
        while rules is not None:
            result = rules._find(label, tuple(children))
            if result is not None:
                return result
            rules = rules.others
        return known_head(label, children)

    def _find(self, label: str, children: tuple[str, ...]) -> int | None:
        result = self._by_rule(label, children)
        if result is not None:
            return result
        for side, head_label in self.by_label.get(label, ()):
            places = [i for i, name in enumerate(children) if name == head_label]
            if places:
                return places[0 if side == "left" else -1]
        return None

    @cached_property
    def _reordered(self) -> Mapping[tuple[str, tuple[str, ...]], tuple[tuple[str, ...], int]]:
        """Children of each rule, and their head, by label and sorted children."""
        return {(label, tuple(sorted(in_order))): (in_order, head) for (label, in_order), head in self.by_rule.items()}

    def _by_rule(self, label: str, children: tuple[str, ...]) -> int | None:
        result = self.by_rule.get((label, children))
        if result is not None:
            return result
        in_order, head = self._reordered.get((label, tuple(sorted(children))), ((), 0))
        if in_order and in_order[::-1] == children:
            return len(children) - 1 - head
        return children.index(in_order[head]) if in_order and in_order.count(in_order[head]) == 1 else None


def _tokens(line: str) -> list[_Token]:
    result: list[_Token] = []
    for match in _TOKEN.finditer(line.rstrip()):
        star, colon = match["star"] is not None, match["colon"] is not None
        word = next((match[kind] for kind in ("single", "double") if match[kind] is not None), None)
        if word is not None:
            result.append(_Token(word_label(re.sub(r"\\(.)", r"\1", word)), False, star, colon))
        elif match["angle"] is not None:
            result.append(_Token(category(re.sub(r"\\(.)", r"\1", match["angle"])), False, star, colon))
        elif match["bare"] == ":" and len(result) == 1 and not colon:
            result[0] = result[0]._replace(colon=True)  # a colon after a blank
        else:
            result.append(_Token(category(match["bare"]), True, star, colon))
    return result


def _written(tokens: Sequence[_Token]) -> str:
    parts = [("*" if t.starred else "") + (t.name if t.bare else written_label(t.name)) for t in tokens]
    parts[0] += ":" if tokens[0].colon else ""
    return " ".join(parts)


def written_label(label: str) -> str:
    """Return a label in the notation of these lines: in angle brackets, unless it is plain or a quoted word."""
    if is_word_label(label):
        return "'" + re.sub(r"(['\\])", r"\\\1", label[1:-1]) + "'"
    plain = _PLAIN.fullmatch(label) and label not in ("->", *_SIDES)
    return label if plain else "<" + re.sub(r"([\\>])", r"\\\1", label) + ">"
