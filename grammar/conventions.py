"""Conventions of treebanks: which leaves are no words, which part of a label is the category, which lines to skip."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

from truesource.grammar.support.printable import counted

Name = Literal["penn", "switchboard", "ctb", "negra", "penn-helsinki", "icepahc", "spmrl", "bracketed-words", "plain"]
NAMES: tuple[Name, ...] = get_args(Name)

_NEVER = r"(?!)"
_ALL = r"(?s:.+)"
_DASHES = r"(?s:-.*|.[^-=]*)"  #: up to the first - or =; a first character - or = is kept (-LRB-)
#: as `_DASHES`, but a single letter is no function tag, which have three: PRP-S is PRP$ where $ could not be written
_PENN = r"(?s:-.*|.[^-=]*(?:-[A-Z](?![^-=]))?)"
_BANNER = r"\*x\*"  #: the copyright notice in front of some files of the Linguistic Data Consortium
#: traces of the Penn treebanks, in copies that have lost the -NONE- above them too
_TRACE = r"\*(?:(?:T|ICH|EXP|RNR|PPA|PRO|pro|U|NOT|OP|\?)\*)?-\d+|\*(?:T|ICH|EXP|RNR|PPA|PRO|pro|U|NOT|OP|\?)\*"
_ZERO_PHRASE = r"(?:S|SBAR|SBARQ|SINV|SQ|[A-Z]+P)"  #: labels above which 0 and * are no words in such copies
#: a zero element of the corpora annotated like the Penn-Helsinki ones: 0, *, and all between stars (*con*, *speaker*)
_ZERO = r"0|\*+|\*+[^*]+\*+(?:-.+)?|\*-\d+"
_ZERO_SIGN = r"\*(?!T\d+\*)[^*]+\*(?:-.+)?"
_HELSINKI_NODES = "-NONE-|CODE|ID|META|METADATA|VERSION"
SEPARATORS = "-/_|+#"  #: signs before annotation in leaves of known corpora
SOME = 0.005  #: least share of words that begin as second parts for words to look split
NEARLY_ALL = 0.9  #: least share of leaves with a separator for leaves to look annotated


@dataclass(frozen=True, slots=True)
class Convention:
    """The annotation of one family of treebanks. All parts but the last three are regular expressions."""

    about: str  #: which treebanks
    nodes: str = "-NONE-"  #: labels of nodes removed with their subtrees, matched whole
    words: str = _NEVER  #: words to remove, matched whole
    tagged_words: str = _NEVER  #: words to remove below a category, "CATEGORY word", matched whole
    category: str = _ALL  #: part of a label that is kept, matched from its start
    lines: str = _NEVER  #: lines between trees that are skipped, matched from their start
    signs: str = _NEVER  #: words and labels found only in this convention, matched whole
    annotation: str = ""  #: sign before annotation in a leaf, as in cats-cat; empty: leaves are words
    joint: str = ""  #: sign at the end of a leaf and the start of the next that joins them into one word, hous$ $es
    bracketed_words: bool = False  #: whether each word has its own brackets, as in (NN (dog))


_HELSINKI = Convention(
    "Penn parsed corpora of historical English, Keyaki, and others annotated alike",
    nodes=_HELSINKI_NODES,
    words=_ZERO,
    category=r"(?s:-.*|.[^-=;]*)",
    signs=rf"{_ZERO_SIGN}|ID|METADATA|VERSION",
)
CONVENTIONS: Mapping[Name, Convention] = {
    "penn": Convention(
        "Penn Treebank, OntoNotes, GUM",
        words=_TRACE,
        tagged_words=rf"{_ZERO_PHRASE} [0*]",
        category=_PENN,
        lines=_BANNER,
        signs="-NONE-",
    ),
    "switchboard": Convention(
        "Switchboard part of the Penn Treebank",
        nodes="-NONE-|-DFL-|CODE",
        words=rf"[EN]_S|\\[][+]|{_TRACE}",
        tagged_words=rf"{_ZERO_PHRASE} [0*]",
        category=_PENN,
        lines=_BANNER,
        signs=r"[EN]_S|\\[][+]|Speaker[AB]\d+|-DFL-",
    ),
    "ctb": Convention(
        "Chinese Treebank as published, with lines of SGML between the trees",
        words=_TRACE,
        tagged_words=rf"{_ZERO_PHRASE} [0*]",
        category=_DASHES,
        lines=r"\s*</?[A-Za-z]",
    ),
    "negra": Convention(
        "Negra and Tiger in their Penn format",
        nodes=r"-NONE-|\*T\d+\*.*",
        words=r"\*T\d+\*.*",
        category=r"(?s:-.*|\$\*LRB\*|(?:(?!\*T\d+\*)[^-=])+|.[^-=]*)",
        lines=r"%%",
        signs=r"\*T\d+\*.*|.+\*T\d+\*|\$\*LRB\*",
    ),
    "penn-helsinki": _HELSINKI,
    "icepahc": replace(
        _HELSINKI,
        about="Icelandic Parsed Historical Corpus: as penn-helsinki, with lemmas after words and split words",
        annotation="-",
        joint="$",
        signs=_NEVER,
    ),
    "spmrl": Convention(
        "SPMRL shared tasks: French, German, Hebrew and others", category=r"(?s:.(?:(?!##).)*)", signs=r".+##.*"
    ),
    "bracketed-words": Convention(
        "Trees whose words are in brackets of their own, (NN (dog)), annotated like penn",
        words=_TRACE,
        category=_PENN,
        bracketed_words=True,
    ),
    "plain": Convention("trees of a grammar: every node, word and label as it is", nodes=_NEVER),
}
PLAIN = CONVENTIONS["plain"]


@dataclass(frozen=True)
class Sign:
    """Leaves or labels that look like another convention."""

    about: str  #: description of the leaves or labels
    examples: Counter[str]  #: examples with their counts
    total: int  #: number of leaves and labels, or of leaves, that were examined
    remedy: dict[str, str]  #: settings of the normalisation that remove them

    @property
    def count(self) -> int:
        """Number of leaves or labels."""
        return self.examples.total()

    def __str__(self) -> str:
        some = ", ".join(f"{name} {count:,}" for name, count in self.examples.most_common(5))
        return f"{self.count:,} of {self.total:,} ({self.count / self.total:.1%}) {self.about} ({some})"


def signs_of_others(words: Mapping[str, int], labels: Mapping[str, int], convention: Name) -> list[Sign]:
    """Find signs of other conventions in the words and labels kept, the most frequent first.

    Args:
        words: occurrences of each word.
        labels: nodes of each label.
        convention: convention by which the trees were read.
    """
    names = Counter(words) + Counter(labels)
    counts: dict[Name, Counter[str]] = {}
    patterns = {name: re.compile(c.signs, re.DOTALL) for name, c in CONVENTIONS.items() if name != convention}
    for word, count in names.items():
        for name, pattern in patterns.items():
            if pattern.fullmatch(word):
                counts.setdefault(name, Counter())[generalised(word)] += count
    signs = [
        Sign(
            f"words or labels look like markers of the convention {name}",
            examples,
            names.total(),
            {"convention": name},
        )
        for name, examples in counts.items()
    ]
    signs += _annotated(Counter(words), CONVENTIONS[convention])
    remedies = [sign.remedy for sign in signs]
    signs += [sign for sign in _split(Counter(words), CONVENTIONS[convention]) if sign.remedy not in remedies]
    return sorted(signs, key=lambda sign: -sign.count)


def _annotated(words: Counter[str], convention: Convention) -> list[Sign]:
    """Return a sign if nearly all words have annotation after a separator."""
    for separator in SEPARATORS:
        pattern = re.compile(rf".+{re.escape(separator)}.+", re.DOTALL)
        having = Counter({word: count for word, count in words.items() if pattern.fullmatch(word)})
        if separator != convention.annotation and having.total() >= NEARLY_ALL * words.total() > 0:
            about = f"words are a form and annotation after {separator!r}"
            return [Sign(about, having, words.total(), _remedy(separator, words))]
    return []


def _split(words: Counter[str], convention: Convention) -> list[Sign]:
    """Return a sign if words are parts of words: a second part begins with the sign that ends a first part."""
    for name, other in CONVENTIONS.items():
        if not other.joint or other.joint == convention.joint:
            continue
        pattern = re.compile(rf"{re.escape(other.joint)}[^\W\d_].*", re.DOTALL)
        parts = Counter({word: n for word, n in words.items() if pattern.fullmatch(word)})
        if parts.total() >= SOME * words.total():
            about = f"words begin with {other.joint!r}, as the second parts of split words do"
            return [Sign(about, parts, words.total(), {"convention": name})] if parts else []
    return []


def _remedy(separator: str, words: Counter[str]) -> dict[str, str]:
    """Return the convention with this annotation whose split words occur, or the annotation alone."""
    for name, convention in CONVENTIONS.items():
        joint = convention.joint
        if convention.annotation == separator and any(w.startswith(joint) and len(w) > len(joint) for w in words):
            return {"convention": name}
    return {"annotation": separator}


@dataclass
class Ledger:
    """A count of the changes to words and labels of trees while they were read."""

    dropped: Counter[str] = field(default_factory=Counter)  #: words removed, by the label or word responsible
    cut: Counter[tuple[str, str]] = field(default_factory=Counter)  #: nodes by their label and the part of it kept
    separated: Counter[str] = field(default_factory=Counter)  #: leaves by the separator before the annotation cut off
    joined: int = 0  #: leaves joined to the word before them
    further: int = 0  #: words after the first of a node with several words, dropped by ``loose_words: first``

    def __str__(self) -> str:
        """Return one line on what was removed and cut."""
        parts = [f"dropped {_counted(self.dropped, 'word')}", f"cut {self._labels()}"]
        parts += [f"cut annotation after {name!r} off {counted(n, 'word')}" for name, n in self.separated.items()]
        parts += [f"joined {counted(self.joined, 'part')} to the words before them"] if self.joined else []
        parts += [f"dropped {counted(self.further, 'word')} after the first of a node"] if self.further else []
        return "; ".join(parts)

    def _labels(self) -> str:
        if not self.cut:
            return "no label"
        kinds, shortened = len({label for label, _ in self.cut}), len({short for _, short in self.cut})
        examples = ", ".join(f"{label} to {short}" for (label, short), _ in self.cut.most_common(3))
        return f"{counted(self.cut.total(), 'label')} from {kinds:,} types to {shortened:,} (such as {examples})"

    def remove(self, other: Ledger) -> None:
        """Subtract the counts of another ledger, for a tree that is discarded."""
        self.dropped -= other.dropped
        self.cut -= other.cut
        self.separated -= other.separated
        self.joined -= other.joined
        self.further -= other.further

    def as_dict(self) -> dict[str, object]:
        """Return values for JSON."""
        further = {"further_words": self.further} if self.further else {}
        return {
            "dropped": dict(self.dropped.most_common()),
            "separated": dict(self.separated),
            "joined": self.joined,
            **further,
            "cut": [{"label": label, "category": short, "nodes": n} for (label, short), n in self.cut.most_common()],
        }


def generalised(name: str) -> str:
    """Return a marker without its numbers: ``*T#*`` for ``*T1*``."""
    return re.sub(r"(?<=\D)\d+|\d+(?=\D)", "#", name)


def without_headers(text: str) -> str:
    """Return the text from the first line on that no convention skips."""
    skipped = re.compile("|".join(convention.lines for convention in CONVENTIONS.values())).match
    lines = text.split("\n")
    first = next((i for i, line in enumerate(lines) if line.strip() and not skipped(line)), len(lines))
    return "\n".join(lines[first:]).lstrip()


def _counted(counts: Counter[str], what: str) -> str:
    if not counts:
        return f"no {what}"
    kinds = ", ".join(f"{name} {n:,}" for name, n in counts.most_common(6))
    more = "" if len(counts) <= 6 else ", ..."
    return f"{counted(counts.total(), what)} ({kinds}{more})"
