"""The words of a grammar by tag and frequency, exact, and forms that differ in number.

Forms are found by the rules of English spelling and a list, or read from a file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np

from truesource.grammar.conditioning import LengthRange
from truesource.grammar.inference.expected import expected_counts
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import FloatArray, IntArray
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import refuse_device

Number = Literal["singular", "plural"]
Kind = Literal["verb", "determiner", "noun"]
KINDS: tuple[Kind, ...] = ("verb", "determiner", "noun")
NONE = "-"  #: in a file, for a missing form
_PRESENT = ("VBZ", "VBP")
_VERBS = (("is", "are"), ("'s", "'re"), ("has", "have"), ("does", "do"), ("goes", "go"))
_PAST = (("was", "were"),)
_DETERMINERS = (("this", "these"), ("that", "those"))
_SINGULAR_ONLY = ("a", "an")
_NOUNS = (
    *(("child", "children"), ("person", "people"), ("foot", "feet"), ("tooth", "teeth"), ("goose", "geese")),
    *(("mouse", "mice"), ("ox", "oxen"), ("life", "lives"), ("wife", "wives"), ("knife", "knives"), ("leaf", "leaves")),
    *(("half", "halves"), ("wolf", "wolves"), ("shelf", "shelves"), ("thief", "thieves"), ("loaf", "loaves")),
    *(("calf", "calves"), ("scarf", "scarves"), ("crisis", "crises"), ("analysis", "analyses"), ("basis", "bases")),
    *(("hypothesis", "hypotheses"), ("thesis", "theses"), ("phenomenon", "phenomena"), ("criterion", "criteria")),
)


@dataclass(frozen=True)
class Form:
    """The number of a word, and the word that it is exchanged for."""

    number: Number
    other: str | None  #: the form of the other number; None: it is missing
    tag: str | None  #: of this form, Penn Treebank; None: not known


@dataclass(frozen=True)
class Forms:
    """The forms that a grammar has, by kind and word; words differ in case."""

    table: Mapping[Kind, Mapping[str, Form]]
    tagged: bool  #: tags are known

    def of(self, kind: Kind, word: str) -> Form | None:
        """Return the form of a word as this kind, if it is known."""
        return self.table[kind].get(word)


def english_forms(tags: Mapping[str, Mapping[str, float]]) -> Forms:
    """Return the English forms of a grammar with Penn Treebank tags.

    Verbs are VBZ and VBP (third person and others), and *was* and *were*; nouns NN and NNS; determiners DT. A regular
    form is found where the spelling of the other, with -s, -es, -ies or -men, is a word with the right tag.

    Args:
        tags: for each tag, its words.
    """
    table: dict[Kind, dict[str, Form]] = {kind: {} for kind in KINDS}

    def add(kind: Kind, singular: str, plural: str, tag: tuple[str, str]) -> None:
        if singular in tags.get(tag[0], ()) and plural in tags.get(tag[1], ()):
            table[kind].setdefault(singular, Form("singular", plural, tag[0]))
            table[kind].setdefault(plural, Form("plural", singular, tag[1]))

    for kind, listed, tag in (
        ("verb", _VERBS, _PRESENT),
        ("verb", _PAST, ("VBD", "VBD")),
        ("determiner", _DETERMINERS, ("DT", "DT")),
        ("noun", _NOUNS, ("NN", "NNS")),
    ):
        for singular, plural in _cased(listed):
            add(kind, singular, plural, tag)  # type: ignore[arg-type]
    for plural in sorted(tags.get("VBP", ())):
        for singular in spelled_with_s(plural):
            if plural not in table["verb"]:
                add("verb", singular, plural, _PRESENT)
    for singular in sorted(tags.get("NN", ())):
        for plural in spelled_with_s(singular, noun=True):
            if singular not in table["noun"]:
                add("noun", singular, plural, ("NN", "NNS"))
    for word in _SINGULAR_ONLY:
        for cased in (word, word.capitalize()):
            if cased in tags.get("DT", ()):
                table["determiner"][cased] = Form("singular", None, "DT")
    return Forms(table, True)


def spelled_with_s(word: str, *, noun: bool = False) -> Iterator[str]:
    """Yield spellings of a word with the ending -s; the plural of *-man* too, of nouns.

    >>> list(spelled_with_s("try")), list(spelled_with_s("fix")), list(spelled_with_s("see"))
    (['tries'], ['fixes'], ['sees'])
    """
    if noun and word.endswith("man"):
        yield word[:-2] + "en"
    if word.endswith("y") and word[-2:-1] not in ("a", "e", "i", "o", "u", ""):
        yield word[:-1] + "ies"
    elif word.endswith(("s", "x", "z", "ch", "sh")):
        yield word + "es"
    else:
        yield word + "s"
        if word.endswith("o"):
            yield word + "es"


def read_forms(path: Path, words: Sequence[str]) -> Forms:
    """Read forms: ``verb|determiner|noun SINGULAR PLURAL`` a line, ``-`` for no form, ``#`` begins a comment.

    Forms that are not among ``words`` are excluded.

    Raises:
        InputError: the file cannot be read, a line is not so written, or a form occurs twice.
    """
    vocabulary = set(words)
    table: dict[Kind, dict[str, Form]] = {kind: {} for kind in KINDS}
    refuse_device(path)
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read the forms: {getattr(error, 'strerror', None) or 'not UTF-8'}", path) from error
    for number, line in enumerate(lines, start=1):
        fields = line.split("#")[0].split()
        if not fields:
            continue
        kind = next((kind for kind in KINDS if kind == fields[0]), None)
        if kind is None or len(fields) != 3 or fields[1] == fields[2]:
            raise InputError("a line is 'verb|determiner|noun SINGULAR PLURAL', with - for no form", path, number)
        singular, plural = (None if field == NONE or field not in vocabulary else field for field in fields[1:])
        for grammatical_number, word, other in (("singular", singular, plural), ("plural", plural, singular)):
            if word in table[kind]:
                raise InputError(f"the {kind} {word!r} occurs twice", path, number)
            if word is not None:
                table[kind][word] = Form(grammatical_number, other, None)  # type: ignore[arg-type]
    return Forms(table, False)


def _cased(listed: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield the pairs, and those with a capital."""
    for singular, plural in listed:
        yield singular, plural
        yield singular.capitalize(), plural.capitalize()


@dataclass(frozen=True, eq=False)
class Lexicon:
    """Expected counts of the words of a grammar, given a range of lengths or not."""

    pcfg: PCFG
    lengths: LengthRange | None
    forms_file: Path | None = None  #: forms that differ in number; None: English ones

    @cached_property
    def _counts(self) -> tuple[FloatArray, FloatArray]:
        counts = expected_counts(self.pcfg, self.lengths)
        return counts.words, counts.lexical

    @cached_property
    def unigram(self) -> FloatArray:
        """Ln of the share of each word among the tokens of sentences, ends not counted, (V,) nats; -inf at zero."""
        words = self._counts[0]
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(words / words.sum()))

    @cached_property
    def tags(self) -> dict[str, dict[str, float]]:
        """Words of each label that makes words, with their expected number in a sentence."""
        tags: dict[str, dict[str, float]] = {}
        rules, terminals, labels = self.pcfg.lexical.tolist(), self.pcfg.vocabulary, self.pcfg.labels
        for (symbol, word), count in zip(rules, self._counts[1].tolist(), strict=True):
            if count > 0.0:
                words = tags.setdefault(labels[symbol], {})
                words[terminals[word]] = words.get(terminals[word], 0.0) + count
        return tags

    @cached_property
    def main_tag(self) -> dict[str, str]:
        """The tag under which each word is most often expected; of equals the first by name."""
        best: dict[str, tuple[float, str]] = {}
        for tag in sorted(self.tags):
            for word, count in self.tags[tag].items():
                if word not in best or count > best[word][0]:
                    best[word] = (count, tag)
        return {word: tag for word, (_, tag) in best.items()}

    @cached_property
    def members(self) -> dict[str, IntArray]:
        """Numbers of the words of each tag that have no more frequent tag, ascending."""
        members: dict[str, list[int]] = {}
        for word, tag in self.main_tag.items():
            members.setdefault(tag, []).append(self.pcfg.word_ids[word])
        return {tag: np.array(sorted(words), dtype=np.int64) for tag, words in members.items()}

    @cached_property
    def forms(self) -> Forms:
        """Forms that differ in number."""
        if self.forms_file is not None:
            return read_forms(self.forms_file, self.pcfg.vocabulary)
        return english_forms(self.tags)

    def alike(self, word: str, tag: str, tolerance: float) -> IntArray:
        """Return other words of a tag with a log frequency within ``tolerance`` nats, ascending."""
        code = self.pcfg.word_ids[word]
        words = self.members.get(tag, np.empty(0, dtype=np.int64))
        near = np.abs(self.unigram[words] - self.unigram[code]) <= tolerance
        return np.asarray(words[near & (words != code)])
