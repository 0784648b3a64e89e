"""Berkeley parser text, a pair of files: ``S_0 -> NP_1 VP_0 0.9`` and ``NN dog [0.1, 0.2]``.

The files are ``NAME.grammar`` and ``NAME.lexicon``. State ``NP_3`` is substate 3 of the label ``NP``; a lexicon
line gives P(word | tag) for every substate of its tag. ``NAME.splits``, where there is one, holds the split tree
of every label. Signatures of unknown words (``UNK-L-ed``) are words like any other. The trainer's dumps hold
the closure of unary rules (see `grammar.formats.shared.unclose`), lack rules below a threshold, and have lexicons whose
columns do not sum to one, so the import divides each symbol's rules by their sum, once, and says by how much.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from truesource.grammar.formats.shared.assemble import Rules, assemble, log
from truesource.grammar.formats.shared.berkeley_files import START, source_files, split_name, target_files
from truesource.grammar.formats.shared.berkeley_writer import save_berkeley
from truesource.grammar.formats.shared.format import GrammarFormat, GrammarSource
from truesource.grammar.formats.shared.unclose import base_rules, is_closed
from truesource.grammar.rules import GrammarRules
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.unpacking import read_lines

_STATE = re.compile(r"(.+)_(0|[1-9][0-9]*)")
_GRAMMAR_LINE = re.compile(r"\S+_\d+ -> \S+_\d+(?: \S+_\d+)? [0-9][0-9.eE+-]*")
_LEXICON_LINE = re.compile(r"\S+[ \t]\S+[ \t]\[[0-9][^\]]*\]")


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of a file that are not empty, each with its number."""
    for number, raw in enumerate(read_lines(path), start=1):
        try:
            line = raw.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise InputError("this is not UTF-8 text", path, number) from error
        if line and not line.isspace():
            yield number, line


def load_berkeley(path: str | Path, *, start: str | None = None) -> GrammarRules:
    """Read a pair; ``path`` is either file or what their names have in common, packed (``.gz``) or not.

    Args:
        path: one of the pair, or their common prefix.
        start: start state; default ``ROOT_0``, else the first left-hand side.

    Raises:
        InputError: a file is missing or damaged, or a line is not as it should be (line given).
    """
    grammar, lexicon, splits = source_files(path)
    for file, part, other in ((grammar, "grammar", lexicon), (lexicon, "lexicon", grammar)):
        if file is None and other is None:
            raise InputError("there is no such pair of files NAME.grammar and NAME.lexicon", path)
        if file is None:
            raise InputError(f"a Berkeley grammar is a pair of files, but NAME.{part} is missing beside this", other)
    assert grammar is not None
    assert lexicon is not None
    rules = Rules()
    _read_grammar(grammar, rules)
    first = start or (START if START in rules.symbols else next(iter(rules.symbols)))
    _read_lexicon(lexicon, rules)
    if first not in rules.symbols:
        raise InputError(f"the start symbol {first!r} has no rules; name another", grammar)
    states = list(rules.symbols)
    labels = {name: match[1] for name in states if (match := _STATE.fullmatch(name))}
    meta: dict[str, object] = {"format": "berkeley"}
    if splits is not None:
        meta["splits"] = _read_splits(splits)
    tables = rules.tables()
    (binary, p), (unary, q), (lexical, r) = tables
    if is_closed(unary, q):
        numbers: dict[str, int] = {}
        group = [numbers.setdefault(labels[name], len(numbers)) for name in states]
        rest = np.zeros(len(states))
        np.add.at(rest, binary[:, 0], p)
        np.add.at(rest, lexical[:, 0], r)
        kept = base_rules(unary, q, rest, group)
        identities = int((unary[:, 0] == unary[:, 1]).sum())
        meta["closure"] = {"identities": identities, "chains": int((~kept).sum()) - identities, "kept": int(kept.sum())}
        log.info(
            "%s: holds the closure of unary rules; left out %d identities and %d chains, kept %d unary rules",
            grammar,
            identities,
            int((~kept).sum()) - identities,
            int(kept.sum()),
        )
        tables[1] = unary[kept], q[kept]
    return assemble(rules, start=first, labels=labels, divide=True, path=grammar, meta=meta, tables=tables)


def _fields(line: str) -> list[str]:
    """Cut at blanks and tabs only: words may hold other white space, such as U+00A0."""
    return [field for field in line.strip(" \t\r\n").replace("\t", " ").split(" ") if field]


def _number(text: str, path: Path, line: int) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value >= 0.0):
        raise InputError(f"{text[:40]!r} is not a probability", path, line)
    return value


def _numbers(texts: list[str], path: Path, line: int) -> list[float]:
    """All at once where nothing is wrong, as the lexicon has millions."""
    try:
        values = list(map(float, texts))
    except ValueError:
        values = [math.nan]
    if math.isfinite(sum(values)) and min(values) >= 0.0:
        return values
    return [_number(text, path, line) for text in texts]


def _read_grammar(path: Path, rules: Rules) -> None:
    for number, line in _lines(path):
        fields = _fields(line)
        states = [fields[0], *fields[2:-1]]
        if (
            len(fields) not in (4, 5)
            or fields[1] != "->"
            or not all(s in rules.symbols or _STATE.fullmatch(s) for s in states)
        ):
            raise InputError(f"expecting a rule such as S_0 -> NP_1 VP_0 0.9, got {line.strip()[:60]!r}", path, number)
        weight = _number(fields[-1], path, number)
        if weight > 0.0:
            rules.add(5 - len(fields), tuple(rules.symbol(s) for s in states), weight)
    if not rules.symbols:
        raise InputError("the grammar has no rules", path)


def _read_lexicon(path: Path, rules: Rules) -> None:
    names: dict[str, list[str]] = {}
    column, weights = rules.columns[2], rules.weights[2]
    for number, line in _lines(path):
        head, opened, vector = line.strip().rpartition("[")
        fields = _fields(head)
        if len(fields) != 2 or not opened or not vector.endswith("]"):
            raise InputError(f"expecting a line such as NN dog [0.1, 0.2], got {line.strip()[:60]!r}", path, number)
        tag, word = fields[0], rules.word(fields[1])
        states = names.setdefault(tag, [])
        parts = vector[:-1].split(",")
        states += [f"{tag}_{k}" for k in range(len(states), len(parts))]
        for name, weight in zip(states, _numbers(parts, path, number), strict=False):
            if weight > 0.0:
                column.extend((rules.symbol(name), word))
                weights.append(weight)
    if not names:
        raise InputError("the lexicon has no words", path)


def _read_splits(path: Path) -> dict[str, str]:
    splits: dict[str, str] = {}
    for number, line in _lines(path):
        label, separator, tree = line.rstrip("\r").partition("\t")
        if not separator:
            raise InputError("expecting a label, a tab and its split tree", path, number)
        splits[label] = tree
    return splits


def _sniff(source: GrammarSource) -> bool:
    """The name is what two files have in common, or is one of theirs and the first line is such a rule."""
    if not source.path.exists():
        return None not in source_files(source.path)[:2]
    shape = {"grammar": _GRAMMAR_LINE, "lexicon": _LEXICON_LINE}.get(split_name(source.path)[1])
    return shape is not None and shape.fullmatch(source.first_line.strip()) is not None


FORMAT = GrammarFormat(
    read=lambda source, options: load_berkeley(source.path, start=options.start),
    write=save_berkeley,
    sniff=_sniff,
    targets=target_files,
    sources=lambda path: [file for file in source_files(path) if file is not None],
)
