"""Read the template notation: features, categories, tables, rule templates and word lists."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import refuse_device

_TERM = re.compile(r"([^\s\[\]]+?)(?:\[([^\s\[\]]*)\])?")
_FACTOR = re.compile(r"([A-Za-z_]\w*)\(([^()]*)\)")


@dataclass(frozen=True, slots=True)
class Argument:
    """One feature position of a term: a variable and its possible values."""

    variable: str  #: equal names in one rule take equal values
    feature: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Term:
    """A category with its arguments."""

    category: str
    arguments: tuple[Argument, ...]


@dataclass(frozen=True, slots=True)
class Factor:
    """A table looked up by variables (``?x``) and values."""

    table: str
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RuleTemplate:
    """One line of the grammar: its instances divide ``share`` of their left-hand side by ``split``."""

    left: Term
    right: tuple[Term, ...]
    share: float
    share_factors: tuple[Factor, ...]
    split: tuple[Factor, ...]
    path: Path
    line: int


@dataclass(frozen=True, slots=True)
class TemplateTable:
    """Non-negative numbers by feature values; values not listed are zero."""

    features: tuple[str, ...]
    entries: Mapping[tuple[str, ...], float]


@dataclass
class Template:
    """The content of all files of one folder."""

    start: str = ""
    features: dict[str, tuple[str, ...]] = field(default_factory=dict)
    categories: dict[str, tuple[str, ...]] = field(default_factory=dict)
    labels: list[tuple[Term, str]] = field(default_factory=list)
    tables: dict[str, TemplateTable] = field(default_factory=dict)
    rules: list[RuleTemplate] = field(default_factory=list)
    words: dict[tuple[str, tuple[str, ...]], dict[str, float]] = field(default_factory=dict)
    #: of each preterminal state, the weight of each word


@dataclass(frozen=True, slots=True)
class _Line:
    text: str
    path: Path
    number: int

    def error(self, message: str) -> InputError:
        return InputError(message, self.path, self.number)


@dataclass(frozen=True, slots=True)
class _Block:
    head: _Line
    body: tuple[_Line, ...]  # the indented lines below it

    @property
    def keyword(self) -> str:
        return self.head.text.split()[0]


def read_template(folder: Path) -> Template:
    """Read ``grammar.txt`` and every other ``*.txt`` of a folder.

    Raises:
        InputError: a file is missing or not UTF-8, or a line is invalid; the message ends in the file and the line.
    """
    first = folder / "grammar.txt"
    if not first.is_file():
        raise InputError("no template grammar here: expecting grammar.txt and word lists in one folder", folder)
    blocks: list[_Block] = []
    for path in (first, *sorted(p for p in folder.glob("*.txt") if p.name != first.name)):
        blocks.extend(_blocks(path))
    return _TemplateReader().read(blocks, first)


def _blocks(path: Path) -> Iterator[_Block]:
    refuse_device(path)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read the template: {error}", path) from error
    head: _Line | None = None
    body: list[_Line] = []
    for number, raw in enumerate(text.splitlines(), start=1):
        content = re.sub(r"(^|\s)#.*", "", raw).rstrip()
        if not content:
            continue
        line = _Line(content.strip(), path, number)
        if content[0].isspace():
            if head is None:
                raise line.error("this indented line continues no line above it; remove the indentation")
            body.append(line)
        else:
            if head is not None:
                yield _Block(head, tuple(body))
            head, body = line, []
    if head is not None:
        yield _Block(head, tuple(body))


class _TemplateReader:
    """Reader of blocks in an order that lets every file use the declarations of any file."""

    def __init__(self) -> None:
        self.template = Template()
        self.paradigms: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {}
        self.zipf = (1.0, 2.0)
        self._fresh = 0

    def read(self, blocks: Sequence[_Block], path: Path) -> Template:
        passes = (
            {"feature": self._feature},
            {"category": self._category},
            {"start": self._start, "label": self._label, "table": self._table},
            {"zipf": self._zipf, "paradigm": self._paradigm},
        )
        keywords = {keyword for readers in passes for keyword in readers}
        for readers in passes:
            for block in blocks:
                if block.keyword in readers and " -> " not in block.head.text:
                    readers[block.keyword](block)
        for block in blocks:
            if " -> " in block.head.text:
                self._rules(block)
            elif block.keyword == "words" or block.keyword in self.paradigms:
                self._words(block)
            elif block.keyword not in keywords:
                raise block.head.error(
                    f"cannot understand {block.keyword!r}: expecting a declaration, a rule with ' -> ', or a word list"
                )
        if not self.template.start:
            raise InputError("the grammar names no start category; write a line such as 'start ROOT'", path)
        return self.template

    # -- declarations --------------------------------------------------------------------------------

    def _feature(self, block: _Block) -> None:
        names = [*block.head.text.split()[1:], *(word for line in block.body for word in line.text.split())]
        if len(names) < 2 or len(set(names[1:])) != len(names) - 1:
            raise block.head.error("a feature needs a name and distinct values, as in 'feature num sg pl'")
        if names[0] in self.template.features:
            raise block.head.error(f"the feature {names[0]!r} is declared twice")
        self.template.features[names[0]] = tuple(names[1:])

    def _category(self, block: _Block) -> None:
        parts = block.head.text.split()[1:]
        for name in parts[1:]:
            if name not in self.template.features:
                raise block.head.error(f"unknown feature {name!r}; declare it with 'feature {name} ...'")
        if not parts or parts[0] in self.template.categories:
            raise block.head.error("a category needs a unique name, as in 'category NP case num'")
        self.template.categories[parts[0]] = tuple(parts[1:])

    def _start(self, block: _Block) -> None:
        parts = block.head.text.split()[1:]
        if len(parts) != 1 or self._term(parts[0], block.head).arguments:
            raise block.head.error("the start is one category without features, as in 'start ROOT'")
        self.template.start = parts[0]

    def _label(self, block: _Block) -> None:
        parts = block.head.text.split()[1:]
        if len(parts) < 2:
            raise block.head.error("a label line names a label and its terms, as in 'label VBZ V[*,3s]'")
        for part in parts[1:]:
            term = self._term(part, block.head)
            if term.category.startswith("@") != parts[0].startswith("@"):
                raise block.head.error("categories with @ must have labels with @, and other categories must not")
            self.template.labels.append((term, parts[0]))

    def _table(self, block: _Block) -> None:
        parts = block.head.text.split()[1:]
        if len(parts) < 2 or parts[0] in self.template.tables:
            raise block.head.error("a table needs a unique name and features, as in 'table subject verb class'")
        for name in parts[1:]:
            if name not in self.template.features:
                raise block.head.error(f"unknown feature {name!r}; declare it with 'feature {name} ...'")
        entries: dict[tuple[str, ...], float] = {}
        n_leading = len(parts) - 2
        for line in block.body:
            cells = line.text.split()
            leading, pairs = tuple(cells[:n_leading]), cells[n_leading:]
            if not pairs or len(pairs) % 2:
                raise line.error(f"a row of this table is {n_leading} value(s), then pairs of a value and a number")
            for value, number in zip(pairs[::2], pairs[1::2], strict=True):
                key = (*leading, value)
                for name, part in zip(parts[1:], key, strict=True):
                    self._check_value(name, part, line)
                if key in entries:
                    raise line.error(f"the table lists {' '.join(key)} twice")
                entries[key] = _number(number, line)
        self.template.tables[parts[0]] = TemplateTable(tuple(parts[1:]), entries)

    def _check_value(self, feature: str, value: str, line: _Line) -> None:
        if value not in self.template.features[feature]:
            raise line.error(f"{value!r} is not a value of the feature {feature!r}")

    # -- terms and rules -----------------------------------------------------------------------------

    def _term(self, text: str, line: _Line) -> Term:
        match = _TERM.fullmatch(text)
        if match is None:
            raise line.error(f"cannot read the term {text!r}; write it as NP or NP[value,?variable] without spaces")
        name, inside = match[1], match[2]
        if name not in self.template.categories:
            raise line.error(f"unknown category {name!r}; declare it with 'category {name} ...'")
        features = self.template.categories[name]
        values = inside.split(",") if inside else []
        if len(values) < len(features):
            unbound = " ".join(features[len(values) :])
            raise line.error(f"{text} leaves the feature(s) {unbound} unbound; give a value, ?variable or *")
        if len(values) > len(features):
            raise line.error(f"{text} gives {len(values)} values, but {name} has {len(features)} feature(s)")
        pairs = zip(features, values, strict=True)
        return Term(name, tuple(self._argument(feature, value, line) for feature, value in pairs))

    def _argument(self, feature: str, text: str, line: _Line) -> Argument:
        variable, allowed = "", text
        if text.startswith("?"):
            variable, _, allowed = text.partition("=")
            allowed = allowed or "*"
        if not variable:
            self._fresh += 1
            variable = f"_{self._fresh}"
        every = self.template.features[feature]
        if allowed == "*":
            return Argument(variable, feature, every)
        named = allowed.removeprefix("!").split("|")
        for value in named:
            self._check_value(feature, value, line)
        return Argument(variable, feature, tuple(v for v in every if (v in named) != allowed.startswith("!")))

    def _rules(self, block: _Block) -> None:
        left, _, rest = block.head.text.partition(" -> ")
        parents = [self._term(text, block.head) for text in left.split(" & ")]
        self._rule(parents, rest, block.head)
        for line in block.body:
            if not line.text.startswith("| "):
                raise line.error("an indented line below a rule starts with '| '")
            self._rule(parents, line.text[2:], line)

    def _rule(self, parents: Sequence[Term], text: str, line: _Line) -> None:
        right, colon, weight = text.rpartition(" : ")
        children = tuple(self._term(part, line) for part in right.split())
        if not colon or not children:
            raise line.error("a rule is 'A -> B C : weight', with at least one child and a weight")
        share_text, _, split_text = weight.partition(" by ")
        number, *factor_texts = share_text.split("*")
        for left in parents:
            bound: dict[str, str] = {}
            for argument in (a for term in (left, *children) for a in term.arguments):
                if bound.setdefault(argument.variable, argument.feature) != argument.feature:
                    features = f"{bound[argument.variable]!r} and {argument.feature!r}"
                    raise line.error(f"{argument.variable} is used for two features, {features}; use two variables")
            on_left = {a.variable: a.feature for a in left.arguments}
            share_factors = tuple(self._factor(part, on_left, line) for part in factor_texts)
            split = tuple(self._factor(part, bound, line) for part in split_text.split())
            share = _number(number, line)
            self.template.rules.append(
                RuleTemplate(left, children, share, share_factors, split, line.path, line.number)
            )

    def _factor(self, text: str, bound: Mapping[str, str], line: _Line) -> Factor:
        match = _FACTOR.fullmatch(text.strip())
        if match is None or match[1] not in self.template.tables:
            raise line.error(f"{text!r} in the weight is no declared table; write table(?x,value) without spaces")
        table, keys = self.template.tables[match[1]], tuple(match[2].split(","))
        if len(keys) != len(table.features):
            raise line.error(f"{text} gives {len(keys)} values, but the table has {len(table.features)} feature(s)")
        for key, feature in zip(keys, table.features, strict=True):
            if not key.startswith("?"):
                self._check_value(feature, key, line)
            elif key not in bound:
                raise line.error(
                    f"{key} in the weight is unbound; the share may use variables of the left side, 'by' all"
                )
            elif bound[key] != feature:
                raise line.error(f"{key} is the feature {bound[key]!r}, but the table {match[1]} wants {feature!r}")
        return Factor(match[1], keys)

    # -- words ---------------------------------------------------------------------------------------

    def _zipf(self, block: _Block) -> None:
        parts = block.head.text.split()[1:]
        if len(parts) != 2:
            raise block.head.error("write 'zipf EXPONENT OFFSET'; the word of rank r has weight (r + OFFSET)^-EXPONENT")
        self.zipf = (_number(parts[0], block.head), _number(parts[1], block.head))

    def _paradigm(self, block: _Block) -> None:
        head, colon, columns = block.head.text.partition(" : ")
        parts = head.split()[1:]
        if not colon or not parts or parts[0] in self.paradigms or not columns.split():
            raise block.head.error("a paradigm is 'paradigm NAME variable ... : TERM TERM ...', each name once")
        self.paradigms[parts[0]] = (tuple(parts[1:]), tuple(columns.split()))

    def _words(self, block: _Block) -> None:
        head, _, mass_text = block.head.text.partition(" : ")
        mass = _number(mass_text, block.head) if mass_text else 1.0
        name, *values = head.split()
        if name == "words":
            if len(values) != 1:
                raise block.head.error("write 'words TERM' and the words on indented lines")
            columns = values
            rows: list[tuple[tuple[str, ...], _Line]] = [
                ((word,), line) for line in block.body for word in line.text.split()
            ]
        else:
            variables, patterns = self.paradigms[name]
            if len(values) != len(variables):
                raise block.head.error(f"the paradigm {name} needs {len(variables)} value(s): {' '.join(variables)}")
            columns = list(patterns)
            for variable, value in zip(variables, values, strict=True):
                literal = value.replace("\\", r"\\")
                columns = [re.sub(rf"\?{re.escape(variable)}(?=[,\]])", literal, column) for column in columns]
            rows = [(tuple(line.text.split()), line) for line in block.body]
        targets = [[self._term(text, block.head) for text in column.split("+")] for column in columns]
        if not rows:
            raise block.head.error("this word list has no words; add indented lines with words")
        weights = self._weights(rows)
        for (cells, line), weight in zip(rows, weights, strict=True):
            if len(cells) != len(targets):
                raise line.error(f"expecting {len(targets)} form(s) in a row of this list, got {len(cells)}")
            for cell, terms in zip(cells, targets, strict=True):
                if cell != "-":
                    for term in terms:
                        self._enter(cell, term, mass * weight, line)

    def _weights(self, rows: Sequence[tuple[tuple[str, ...], _Line]]) -> list[float]:
        """Return weights of the rows of one list, summing to one: explicit as ``word*3``, else by rank."""
        stated = [(cells[0].partition("*"), line) for cells, line in rows]
        if any(star for (_, star, _), _ in stated):
            raw = [_number(number, line) if star else 1.0 for (_, star, number), line in stated]
        else:
            exponent, offset = self.zipf
            raw = [(rank + offset) ** -exponent for rank in range(1, len(rows) + 1)]
        total = math.fsum(raw)
        return [weight / total for weight in raw]

    def _enter(self, cell: str, term: Term, weight: float, line: _Line) -> None:
        word, *overrides = cell.partition("*")[0].split("/")
        features = self.template.categories[term.category]
        choices = [argument.values for argument in term.arguments]
        for value in overrides:
            places = [i for i, feature in enumerate(features) if value in self.template.features[feature]]
            if len(places) != 1:
                raise line.error(f"/{value} names no feature value of {term.category}, or more than one")
            choices[places[0]] = (value,)
        if not word:
            raise line.error(f"there is no word in {cell!r}; write one")
        for state in product(*choices):
            entries = self.template.words.setdefault((term.category, state), {})
            entries[word] = entries.get(word, 0.0) + weight


def _number(text: str, line: _Line) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value > 0):
        raise line.error(f"expecting a positive number, got {text.strip()!r}")
    return value
