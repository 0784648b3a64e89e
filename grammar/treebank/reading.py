"""Summary of reading a treebank: what was read, removed and refused, and signs of another convention."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from truesource.grammar.conventions import SEPARATORS, Ledger, Name, Sign, signs_of_others
from truesource.grammar.support.printable import counted
from truesource.grammar.treebank.files import FileSelection
from truesource.grammar.treebank.normalise import BRACKETS
from truesource.grammar.treebank.statistics import TreebankStatistics

SHOWN = 5  #: most odd words, and reasons of refusals with an example each, in a summary
_ODD = re.compile(r"[*<>{}\[\]@#=_|\\~^+$]")  #: characters of annotation, next to others
_ORDINARY = re.compile(r"[$#]|\.\.+|[A-Z]{1,2}\$")  #: currencies, dots


@dataclass(frozen=True, slots=True)
class Refusal:
    """A tree that was read and refused."""

    reason: str  #: reason of the refusal
    source: str  #: file or other source
    line: int  #: start: line of a file, row of a dataset, or position; from 1
    kind: str  #: category for counting: a code, or the reason


@dataclass(frozen=True)
class TreebankReading:
    """Summary of how a treebank was read."""

    convention: Name
    trees: int  #: number of accepted trees
    words: int  #: number of words in accepted trees
    ledger: Ledger  #: what was removed and cut
    separators: Mapping[str, int]  #: words with this separator between other characters
    refused: Sequence[tuple[Refusal, int]]  #: the first refused tree of each kind, and the number of the kind
    odd: Sequence[tuple[str, int]]  #: the most frequent words with characters of annotation
    signs: Sequence[Sign]  #: signs of other conventions
    selection: FileSelection | None = None  #: files read and skipped; None unless a folder or pattern was read

    @classmethod
    def of(
        cls,
        statistics: TreebankStatistics,
        ledger: Ledger,
        refused: Iterable[Refusal],
        convention: Name,
        selection: FileSelection | None = None,
    ) -> TreebankReading:
        """Summarise the counts of reading a treebank."""
        separators: Counter[str] = Counter()
        odd: Counter[str] = Counter()
        for word, count in statistics.words.items():
            inner = word[1:-1]
            for separator in SEPARATORS:
                if separator in inner and word not in BRACKETS:
                    separators[separator] += count
            if len(word) > 1 and _ODD.search(word) and not _ORDINARY.fullmatch(word):
                odd[word] += count
        kinds: Counter[str] = Counter()
        examples: dict[str, Refusal] = {}
        for refusal in refused:
            kinds[refusal.kind] += 1
            examples.setdefault(refusal.kind, refusal)
        labels = Counter(statistics.phrasal) + Counter(statistics.preterminal)
        return cls(
            convention=convention,
            trees=statistics.trees,
            words=statistics.tokens,
            ledger=ledger,
            separators=dict(separators.most_common()),
            refused=[(examples[kind], n) for kind, n in kinds.most_common()],
            odd=odd.most_common(SHOWN),
            signs=signs_of_others(statistics.words, labels, convention),
            selection=selection,
        )

    def __str__(self) -> str:
        """Return the lines of the summary and of its warnings."""
        warnings = [] if self.selection is None else [self.selection.warning]
        signs = [f"{sign}; set {', '.join(f'{k}={v}' for k, v in sign.remedy.items())}" for sign in self.signs]
        return "\n".join([*self.lines(), *(f"Warning: {each}" for each in [*warnings, *signs] if each)])

    def lines(self) -> list[str]:
        """Return the summary, a line for each subject."""
        sizes = f"{counted(self.trees, 'tree')}, {counted(self.words, 'word')}"
        result = [f"read       {sizes}; convention {self.convention}: {self.ledger}"]
        if self.selection is not None:
            result.insert(0, f"files      {self.selection}")
        if self.separators:
            some = ", ".join(f"{name} {n:,} ({n / self.words:.1%})" for name, n in list(self.separators.items())[:3])
            result.append(f"inside     words with a separator inside: {some}")
        if self.odd:
            result.append(f"odd words  {', '.join(f'{word} {n:,}' for word, n in self.odd)}")
        total = self.trees + sum(n for _, n in self.refused)
        for first, n in self.refused[:SHOWN]:
            where = f"{first.source}:{first.line}"
            result.append(f"refused    {n:,} of {total:,} trees, the first ({where}): {first.reason}")
        if more := sum(n for _, n in self.refused[SHOWN:]):
            result.append(f"refused    {more:,} of {total:,} trees for other reasons")
        return result

    def as_dict(self) -> dict[str, object]:
        """Return values for JSON."""
        return {
            "summary": self.lines(),
            "trees": self.trees,
            "words": self.words,
            "convention": self.convention,
            **self.ledger.as_dict(),
            "separators": dict(self.separators),
            "odd_words": [{"word": word, "count": n} for word, n in self.odd],
            "refused": [
                {"reason": first.reason, "kind": first.kind, "count": n, "source": first.source, "line": first.line}
                for first, n in self.refused
            ],
            "signs": [{"about": str(sign), "settings": sign.remedy} for sign in self.signs],
            **({} if self.selection is None else {"files": self.selection.as_dict()}),
        }
