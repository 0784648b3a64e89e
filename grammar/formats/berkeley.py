"""Berkeley parser text, a pair of files: ``S_0 -> NP_1 VP_0 0.9`` and ``NN dog [0.1, 0.2]``.

The files are ``NAME.grammar`` and ``NAME.lexicon``. State ``NP_3`` is substate 3 of the label ``NP``; a lexicon line
gives P(word | tag) for every substate of its tag. The optional ``NAME.splits`` holds the split tree of every label.
Signatures of unknown words (``UNK-L-ed``) are words like any other.

The trainer's dumps hold the closure of unary rules: every rule ``A -> A`` with probability one, and for every chain of
unary rules its most probable product as one more rule. Only rules that no chain explains belong to the grammar. The
dumps also lack rules below a threshold and have lexicons whose columns do not sum to one, so the import divides each
symbol's rules by their sum, once, and reports the largest change.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from truesource.grammar.collected_rules import RowScaling, Rules, assemble, log
from truesource.grammar.formats import GrammarFormat, GrammarSource
from truesource.grammar.rules import GrammarRules
from truesource.grammar.support.arrays import BoolArray, FloatArray, Int32Array, IntArray
from truesource.grammar.support.atomic_files import atomic_path, opened_to_write
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import TO_UTF8, read_lines

EXACT = 1e-9  #: largest relative difference between a rule and the chain that explains it
PROPER = 1e-6  #: largest difference from one of the sum of a proper row
START = "ROOT_0"
_SUFFIX = re.compile(r"(?P<stem>.*?)(?:\.(?P<part>grammar|lexicon|splits))?(?P<packed>\.gz)?", re.DOTALL)
_STATE = re.compile(r"(.+)_(0|[1-9][0-9]*)")
_GRAMMAR_LINE = re.compile(r"\S+_\d+ -> \S+_\d+(?: \S+_\d+)? [0-9][0-9.eE+-]*")
_LEXICON_LINE = re.compile(r"\S+[ \t]\S+[ \t]\[[0-9][^\]]*\]")


def is_closed(unary: Int32Array, prob: FloatArray) -> bool:
    """Return True if there are rules ``A -> A`` with probability one, which no proper grammar has."""
    return bool(((unary[:, 0] == unary[:, 1]) & (prob >= 1.0 - 1e-12)).any())


def base_rules(unary: Int32Array, prob: FloatArray, other: FloatArray, group: Sequence[int]) -> BoolArray:
    """Return which unary rules of a closed dump belong to the grammar, (Q,).

    First all identities are removed, and the rules that equal a product of two others. The trainer also sums chains
    through the states of one label. Such sums have no distinctive value, so they are removed only from rows that still
    sum to more than one, the best explained first, and only while the row does not fall below one.

    Args:
        unary: (Q, 2) parent, child; each rule once.
        prob: (Q,) probabilities.
        other: (S,) total probability of each symbol's binary and lexical rules.
        group: (S,) number of each symbol's label.
    """
    identity = unary[:, 0] == unary[:, 1]
    product, summed = _chains(unary, np.where(identity, 0.0, prob), len(other), group)
    genuine: BoolArray = ~identity & (product < prob * (1.0 - EXACT))
    sums = other + np.bincount(unary[genuine, 0], weights=prob[genuine], minlength=len(other))
    explained = np.minimum(summed / prob, 1.0)
    for state in np.flatnonzero(sums > 1.0 + PROPER):
        candidates = np.flatnonzero(genuine & (unary[:, 0] == state) & (explained > 0.0))
        for rule in candidates[np.argsort(-explained[candidates], kind="stable")]:
            if sums[state] > 1.0 + PROPER and sums[state] - prob[rule] > 1.0 - PROPER:
                genuine[rule] = False
                sums[state] -= prob[rule]
    return genuine


def _chains(unary: Int32Array, prob: FloatArray, n: int, group: Sequence[int]) -> tuple[FloatArray, FloatArray]:
    """Return the largest product of two chained rules per rule, and the largest sum over one label between, (Q,)."""
    keys = unary[:, 0].astype(np.int64) * n + unary[:, 1]
    order = np.argsort(keys)
    ordered = keys[order]
    by_child, by_parent = np.argsort(unary[:, 1], kind="stable"), np.argsort(unary[:, 0], kind="stable")
    into = np.searchsorted(unary[by_child, 1], np.arange(n + 1))
    out = np.searchsorted(unary[by_parent, 0], np.arange(n + 1))
    product, summed, through = np.zeros(len(keys)), np.zeros(len(keys)), np.zeros(len(keys))
    touched: list[IntArray] = []
    label = -1
    for k in np.argsort(np.asarray(group), kind="stable"):
        if group[k] != label:
            for at in touched:
                summed[at] = np.maximum(summed[at], through[at])
            for at in touched:
                through[at] = 0.0
            touched, label = [], group[k]
        above, below = by_child[into[k] : into[k + 1]], by_parent[out[k] : out[k + 1]]
        if not len(above) or not len(below):
            continue
        ends = (unary[above, 0].astype(np.int64)[:, None] * n + unary[below, 1][None, :]).ravel()
        value = np.outer(prob[above], prob[below]).ravel()
        place = np.minimum(np.searchsorted(ordered, ends), len(keys) - 1)
        hit = ordered[place] == ends
        at = order[place[hit]]
        product[at] = np.maximum(product[at], value[hit])
        through[at] += value[hit]
        touched.append(at)
    for at in touched:
        summed[at] = np.maximum(summed[at], through[at])
    return product, summed


def split_name(path: Path) -> tuple[str, str, str]:
    """Return the common prefix, the member of the set (or nothing), and ``.gz`` or nothing."""
    match = _SUFFIX.fullmatch(str(path))
    assert match is not None
    return match["stem"], match["part"] or "", match["packed"] or ""


def source_files(path: str | Path) -> tuple[Path | None, Path | None, Path | None]:
    """Return grammar, lexicon and splits for one of them or for their common prefix; None if absent."""
    stem, _, packed = split_name(Path(path))
    result: list[Path | None] = []
    for part in ("grammar", "lexicon", "splits"):
        both = [Path(f"{stem}.{part}{suffix}") for suffix in dict.fromkeys((packed, "", ".gz"))]
        result.append(next((file for file in both if file.is_file()), None))
    return result[0], result[1], result[2]


def target_files(path: str | Path, pcfg: GrammarRules | None = None) -> list[Path]:
    """Return the files to write: grammar and lexicon, and splits if the grammar has them."""
    stem, _, packed = split_name(Path(path))
    parts = ["grammar", "lexicon"] + (["splits"] if pcfg is not None and pcfg.meta.get("splits") else [])
    return [Path(f"{stem}.{part}{packed}") for part in parts]


def state_names(pcfg: GrammarRules) -> list[tuple[str, int]]:
    """Return the label and substate of each symbol, all distinct.

    If all symbols have names such as ``NP_3`` or ``NP-3`` with the label ``NP``, they keep their numbers; otherwise the
    symbols of a label are numbered from 0.
    """
    result: list[tuple[str, int]] = []
    for name, label in zip(pcfg.symbols, pcfg.labels, strict=True):
        match = re.fullmatch(r"[_-](0|[1-9][0-9]{0,3})", name[len(label) :]) if name.startswith(label) else None
        if match is None and name != label:
            break
        result.append((label, int(match[1]) if match else 0))
    if len(set(result)) == len(pcfg.symbols):
        return result
    count: dict[str, int] = {}
    result = []
    for label in pcfg.labels:
        result.append((label, count.get(label, 0)))
        count[label] = count.get(label, 0) + 1
    return result


def save_berkeley(pcfg: GrammarRules, path: str | Path) -> None:
    """Write the pair; ``path`` is either file's name or their common prefix.

    The format starts from ``ROOT_0``: another start gets a rule ``ROOT_0 -> START 1.0`` above it. Names of symbols are
    as in `state_names`, and the start comes first.

    Raises:
        InputError: a label is empty or has a blank in it, ``ROOT_0`` is a symbol but not the start, or a symbol
            rewrites only to itself.
    """
    targets = target_files(path, pcfg)
    pairs = state_names(pcfg)
    bad = next((label for label in pcfg.labels if not label or re.search(r"[ \t\r\n]", label)), None)
    if bad is not None:
        raise InputError(f"Berkeley text cannot hold the label {bad!r}, which is empty or has a blank in it")
    names = [f"{label}_{k}" for label, k in pairs]
    if START in names and names[pcfg.start] != START:
        raise InputError(f"Berkeley text starts at {START}, another symbol here; rename that symbol")
    if is_closed(pcfg.unary, np.exp(pcfg.unary_logp)):
        raise InputError("Berkeley text cannot hold a symbol that rewrites only to itself; remove it first")
    with atomic_path(targets[0]) as temporary:
        _write(temporary, targets[0], _grammar_lines(pcfg, names))
    with atomic_path(targets[1]) as temporary:
        _write(temporary, targets[1], _lexicon_lines(pcfg, pairs))
    if len(targets) > 2:
        lines = (f"{label}\t{tree}\n" for label, tree in pcfg.meta["splits"].items())
        with atomic_path(targets[2]) as temporary:
            _write(temporary, targets[2], lines)


def _write(temporary: Path, target: Path, lines: Iterator[str]) -> None:
    with opened_to_write(temporary, packed=target.suffix == ".gz") as stream:
        stream.writelines(line.encode() for line in lines)


def _grammar_lines(pcfg: GrammarRules, names: list[str]) -> Iterator[str]:
    if names[pcfg.start] != START:
        yield f"{START} -> {names[pcfg.start]} 1.0\n"
    for rules, logp in ((pcfg.unary, pcfg.unary_logp), (pcfg.binary, pcfg.binary_logp)):
        order = np.lexsort((rules[:, 0], rules[:, 0] != pcfg.start))
        for rule, p in zip(rules[order].tolist(), np.exp(logp[order]).tolist(), strict=True):
            yield f"{names[rule[0]]} -> {' '.join(names[i] for i in rule[1:])} {p!r}\n"


def _lexicon_lines(pcfg: GrammarRules, pairs: list[tuple[str, int]]) -> Iterator[str]:
    sizes: dict[str, int] = {}
    for label, k in pairs:
        sizes[label] = max(sizes.get(label, 0), k + 1)
    tags = {label: i for i, label in enumerate(sizes)}
    tag = np.array([tags[label] for label, _ in pairs], dtype=np.int64)
    parents: Int32Array = pcfg.lexical[:, 0]
    order = np.lexsort((pcfg.lexical[:, 1], tag[parents]))
    group = np.stack([tag[parents], pcfg.lexical[:, 1]])[:, order]
    heads: list[int] = np.flatnonzero(np.append(True, (np.diff(group) != 0).any(axis=0))).tolist() if len(order) else []
    prob, state = np.exp(pcfg.lexical_logp[order]).tolist(), parents[order].tolist()
    for low, high in zip(heads, [*heads[1:], len(order)], strict=True):
        label = pairs[state[low]][0]
        vector = [0.0] * sizes[label]
        for i in range(low, high):
            vector[pairs[state[i]][1]] = prob[i]
        yield f"{label} {pcfg.vocabulary[int(group[1, low])]} {vector!r}\n"


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of a file that are not empty, each with its number."""
    for number, raw in enumerate(read_lines(path), start=1):
        try:
            line = raw.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise InputError(f"this is not UTF-8 text; {TO_UTF8}", path, number, code="damaged") from error
        if line and not line.isspace():
            yield number, line


def load_berkeley(path: str | Path, *, start: str | None = None) -> GrammarRules:
    """Read a pair; ``path`` is either file or their common prefix, compressed (``.gz``) or not.

    Args:
        path: one of the pair, or their common prefix.
        start: start state; default ``ROOT_0``, else the first left-hand side.

    Raises:
        InputError: a file is missing or damaged, or a line is malformed (line given).
    """
    grammar, lexicon, splits = source_files(path)
    for file, part, other in ((grammar, "grammar", lexicon), (lexicon, "lexicon", grammar)):
        if file is None and other is None:
            raise InputError("there are no files NAME.grammar and NAME.lexicon of this name; check the path", path)
        if file is None:
            lacking = f"{split_name(Path(path))[0]}.{part}"
            raise InputError(f"a Berkeley grammar is a pair of files, but {lacking} is missing", other, code="missing")
    assert grammar is not None
    assert lexicon is not None
    rules = Rules()
    _read_grammar(grammar, rules)
    first = start or (START if START in rules.symbols else next(iter(rules.symbols)))
    _read_lexicon(lexicon, rules)
    if first not in rules.symbols:
        raise InputError(f"the start symbol {first!r} has no rules; choose another", grammar)
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
        base = base_rules(unary, q, rest, group)
        identities = int((unary[:, 0] == unary[:, 1]).sum())
        meta["closure"] = {"identities": identities, "chains": int((~base).sum()) - identities, "kept": int(base.sum())}
        log.info(
            "%s: contains the closure of unary rules; removed %d identities and %d chains, kept %d unary rules",
            grammar,
            identities,
            int((~base).sum()) - identities,
            int(base.sum()),
        )
        tables[1] = unary[base], q[base]
    return assemble(
        rules, start=first, labels=labels, scaling=RowScaling(divide=True, path=grammar), meta=meta, tables=tables
    )


def _fields(line: str) -> list[str]:
    """Split at blanks and tabs only: words may hold other white space, such as U+00A0."""
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
    """Convert all numbers at once if all are valid, as the lexicon has millions."""
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
    """Return True for a common prefix of two files, or one of them whose first line is such a rule."""
    if not source.path.exists():
        return any(source_files(source.path)[:2])
    shape = {"grammar": _GRAMMAR_LINE, "lexicon": _LEXICON_LINE}.get(split_name(source.path)[1])
    return shape is not None and shape.fullmatch(source.first_line.strip()) is not None


FORMAT = GrammarFormat(
    read=lambda source, options: load_berkeley(source.path, start=options.start),
    write=save_berkeley,
    sniff=_sniff,
    targets=target_files,
    sources=lambda path: [file for file in source_files(path) if file is not None],
)
