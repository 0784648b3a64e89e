"""Classes of part-of-speech tags: the one table that all measures by class use, and mapping files in its place."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import FloatArray
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import read_bytes, read_text
from truesource.grammar.support.records import RECORD_LIMIT, decode_record, read_yaml

_CLASSES = {
    "adjectives": "JJ JJR JJS CD AFX",
    "function words": "DT IN CC TO RP PDT WDT POS UH",
    "adverbs": "RB RBR RBS WRB",
    "verbs": "VB VBD VBG VBN VBP VBZ MD",
    "nouns": "NN NNS NNP NNPS FW SYM LS ADD GW XX",
    "punctuation": ". , : `` '' ( ) -LRB- -RRB- ? ! # $ HYPH NFP",
    "pronouns": "PRP PRP$ WP WP$ EX",
}  #: the seven of Jumelet & Zuidema (2023, Figure 6), who do not say where numbers, interjections and foreign words go


@dataclass(frozen=True)
class TagClasses:
    """Which class each tag is in."""

    of_tag: Mapping[str, str]
    origin: str  #: for signatures
    complete: bool  #: a tag without a class is refused; otherwise it is a class of its own

    def table(self, labels: Sequence[str]) -> tuple[tuple[str, ...], FloatArray]:
        """The classes of some tags, in the order of the mapping, and 1 where a tag is in a class, (L, C).

        Raises:
            InputError: a tag has no class, and the mapping is complete.
        """
        missing = sorted({label for label in labels if label not in self.of_tag})
        if missing and self.complete:
            more = f" (and {len(missing) - 1} more of the grammar's tags)" if len(missing) > 1 else ""
            raise InputError(f"the classes miss the tag {missing[0]!r}{more}; give it a class")
        of_label = [self.of_tag.get(label, label) for label in labels]
        known = [name for name in dict.fromkeys(self.of_tag.values()) if name in of_label]
        names = (*known, *sorted(set(of_label) - set(known)))
        found = np.zeros((len(labels), len(names)))
        found[np.arange(len(labels)), [names.index(name) for name in of_label]] = 1.0
        return names, found


#: Penn Treebank tags in seven classes; other labels are classes of their own
PENN = TagClasses({tag: name for name, tags in _CLASSES.items() for tag in tags.split()}, "penn", complete=False)


def tags_of(pcfg: PCFG) -> tuple[str, ...]:
    """Labels of the symbols that make words, each once."""
    return tuple(dict.fromkeys(pcfg.labels[symbol] for symbol in np.unique(pcfg.lexical[:, 0]).tolist()))


def read_classes(path: str | Path) -> TagClasses:
    """Read a mapping from tags to classes: a JSON or YAML mapping by its suffix, else lines ``tag TAB class``.

    Empty lines are passed over; there are no comments, as ``#`` is a tag.

    Raises:
        InputError: the file cannot be read, a line or entry is malformed, or a tag has two classes (in a mapping:
            stands twice).
    """
    path = Path(path)
    data = read_bytes(path, limit=RECORD_LIMIT, line_limit=None)
    if path.suffix in (".json", ".yaml", ".yml"):
        of_tag = _mapping(data, path)
    else:
        of_tag = _lines(read_text(path, not_text="the classes are not UTF-8 text"), path)
    if not of_tag:
        raise InputError("there are no classes in this file; expecting lines of a tag, a tab and a class", path)
    return TagClasses(of_tag, f"file/{hashlib.sha256(data).hexdigest()[:8]}", complete=True)


def _lines(text: str, path: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        tag, name = (*(part.strip() for part in line.split("\t")), "")[:2]
        if line.count("\t") != 1 or not tag or not name:
            raise InputError(f"expecting a tag, a tab and a class, got {line!r}", path, number)
        if found.setdefault(tag, name) != name:
            raise InputError(f"the tag {tag!r} has two classes, {found[tag]!r} and {name!r}", path, number)
    return found


def _mapping(content: bytes, path: Path) -> dict[str, str]:
    what, remedy = "the mapping of classes", "expecting a mapping from tags to classes, both texts in quotes"
    value: Any
    if path.suffix == ".json":
        value = decode_record(content, dict[str, Any], what=what, remedy=remedy, path=path, unique=True)
    else:
        value = read_yaml(path, what=what, remedy=remedy)
    if not isinstance(value, dict):
        raise InputError("expecting a mapping from tags to classes", path)
    for tag, name in value.items():
        if not (isinstance(tag, str) and isinstance(name, str) and tag and name):
            raise InputError(f"expecting a tag and its class, both text in quotes, got {tag!r}: {name!r}", path)
    return value
