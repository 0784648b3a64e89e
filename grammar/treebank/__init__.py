"""Treebanks: immutable collections of trees that know where they came from, what was refused, and what they hold."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from truesource.grammar.conventions import CONVENTIONS, Ledger, Name, signs_of_others
from truesource.grammar.support.arrays import IntArray
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import atomic_path, opened_to_write, refuse_existing
from truesource.grammar.support.printable import meter
from truesource.grammar.tree import Tree, no_garbage_collection
from truesource.grammar.treebank.binarise import Binarisation, splice
from truesource.grammar.treebank.normalise import NO_WORDS, Normalisation, frequent_words, replace_unknown, signature
from truesource.grammar.treebank.reader import (
    Located,
    dataset_column,
    find_files,
    from_nltk,
    nltk_corpus,
    read_file,
    to_nltk,
)

if TYPE_CHECKING:
    import nltk


@dataclass(frozen=True, eq=False)
class TreebankStatistics:
    """Counts over the trees of a treebank. Heights are in nodes, the word included."""

    trees: int  #: trees kept
    tokens: int  #: words
    words: Mapping[str, int]  #: occurrences of each
    lengths: IntArray  #: (longest + 1,) number of trees of each length in words; entry 0 is 0
    phrasal: Mapping[str, int]  #: nodes of each label above other nodes, most frequent first
    preterminal: Mapping[str, int]  #: nodes of each label above a word, most frequent first
    phrasal_rules: int  #: different ``X -> Y Z ...``
    lexical_rules: int  #: different ``X -> word``
    mean_height: float
    max_height: int
    unary_share: float  #: share of the phrasal nodes with one child, 0 to 1
    binary_share: float  #: the same with two children
    nary_share: float  #: the same with three or more
    refused: Mapping[str, int]  #: trees refused, by reason

    @property
    def types(self) -> int:
        """Different words."""
        return len(self.words)

    @property
    def mean_length(self) -> float:
        """Words per tree."""
        return self.tokens / self.trees

    def as_dict(self) -> dict[str, int | float]:
        """The single numbers, by name; refusals as ``refused: reason``."""
        numbers: dict[str, int | float] = {
            "trees": self.trees,
            "tokens": self.tokens,
            "types": self.types,
            "mean_length": self.mean_length,
            "max_length": len(self.lengths) - 1,
            "phrasal_labels": len(self.phrasal),
            "preterminal_labels": len(self.preterminal),
            "phrasal_rules": self.phrasal_rules,
            "lexical_rules": self.lexical_rules,
            "mean_height": self.mean_height,
            "max_height": self.max_height,
            "unary_share": self.unary_share,
            "binary_share": self.binary_share,
            "nary_share": self.nary_share,
        }
        return numbers | {f"refused: {reason}": count for reason, count in self.refused.items()}

    def as_records(self) -> list[dict[str, str | int | float]]:
        """The single numbers as records with ``name`` and ``value``, for JSON and tables."""
        return [{"name": name, "value": value} for name, value in self.as_dict().items()]

    def __str__(self) -> str:
        """A few readable lines."""
        most = [
            ", ".join(f"{x} {n:,}" for x, n in list(counts.items())[:8]) for counts in (self.phrasal, self.preterminal)
        ]
        refused = ", ".join(f"{count:,} ({reason})" for reason, count in self.refused.items()) or "none"
        return "\n".join(
            [
                f"{self.trees:,} trees, {self.tokens:,} words, {self.types:,} different",
                f"length     {self.mean_length:.2f} words on average, {len(self.lengths) - 1} at most",
                f"height     {self.mean_height:.2f} on average, {self.max_height} at most",
                f"phrases    {len(self.phrasal)} labels: {most[0]}",
                f"words      {len(self.preterminal)} labels: {most[1]}",
                f"rules      {self.phrasal_rules:,} phrasal, {self.lexical_rules:,} lexical",
                f"children   one {self.unary_share:.1%}, two {self.binary_share:.1%}, more {self.nary_share:.1%}",
                f"refused    {refused}",
            ]
        )


def count(trees: Iterable[Tree], refused: Iterable[str] = ()) -> TreebankStatistics:
    """Count over ``trees`` (at least one); ``refused`` holds the reason of every tree that was refused."""
    phrasal_rules: Counter[tuple[str, ...]] = Counter()
    lexical_rules: Counter[tuple[str, str]] = Counter()
    lengths: list[int] = []
    heights: list[int] = []
    for tree in trees:
        n_words = 0
        for node in tree.subtrees():
            if isinstance(node.children[0], str):
                n_words += len(node.children)
                for word in node.children:
                    lexical_rules[node.label, str(word)] += 1
            else:
                phrasal_rules[(node.label, *(c.label for c in node.children if isinstance(c, Tree)))] += 1
        lengths.append(n_words)
        heights.append(tree.height())
    phrasal: Counter[str] = Counter()
    arity: Counter[int] = Counter()
    for rule, number in phrasal_rules.items():
        phrasal[rule[0]] += number
        arity[min(len(rule) - 1, 3)] += number
    preterminal: Counter[str] = Counter()
    words: Counter[str] = Counter()
    for (label, word), number in lexical_rules.items():
        preterminal[label] += number
        words[word] += number
    nodes = max(phrasal.total(), 1)
    return TreebankStatistics(
        trees=len(lengths),
        tokens=sum(lengths),
        words=words,
        lengths=np.bincount(lengths).astype(np.int64),
        phrasal=dict(phrasal.most_common()),
        preterminal=dict(preterminal.most_common()),
        phrasal_rules=len(phrasal_rules),
        lexical_rules=len(lexical_rules),
        mean_height=float(np.mean(heights)),
        max_height=max(heights),
        unary_share=arity[1] / nodes,
        binary_share=arity[2] / nodes,
        nary_share=arity[3] / nodes,
        refused=dict(Counter(refused).most_common()),
    )


_DEFAULT = Normalisation()
_PROGRESS_STEP = 1000


@dataclass(frozen=True, slots=True)
class Refusal:
    """A tree that was read but not kept."""

    reason: str  #: why
    source: str  #: file or other source
    line: int  #: where it starts: line of a file, row of a dataset, or position; from 1


@dataclass(frozen=True, eq=False)
class Treebank:
    """Trees in order, where they came from, and the trees that normalisation refused.

    Raises:
        InputError: there is no tree; the message counts the refused ones by reason.
    """

    trees: tuple[Tree, ...]
    source: str = "memory"  #: file, pattern or library it was read from
    refused: tuple[Refusal, ...] = field(default=(), repr=False)
    ledger: Ledger = field(default_factory=Ledger, repr=False)  #: what normalisation dropped and cut, refused trees too
    convention: Name | None = None  #: what it was read by
    files: tuple[int, ...] = field(default=(), repr=False)  #: number of the file of each tree; empty: not known

    def __post_init__(self) -> None:
        if not self.trees:
            reasons = sorted({refusal.reason for refusal in self.refused})
            why = f": all {len(self.refused)} were refused ({'; '.join(reasons)})" if reasons else ""
            raise InputError(f"the treebank holds no tree{why}", self.source)

    def __len__(self) -> int:
        return len(self.trees)

    def __iter__(self) -> Iterator[Tree]:
        return iter(self.trees)

    def __getitem__(self, index: int) -> Tree:
        return self.trees[index]

    def __repr__(self) -> str:
        return f"Treebank({len(self.trees):,} trees from {self.source}, {len(self.refused):,} refused)"

    # -- reading --------------------------------------------------------------------------------------

    @classmethod
    def read(
        cls,
        source: str | Path | Sequence[str | Path],
        normalise: Normalisation | None = _DEFAULT,
        *,
        limit: int | None = None,
    ) -> Treebank:
        """Read Penn bracketings from a file, a folder, a glob pattern, or a sequence of these; ``.gz`` too.

        Args:
            source: see `truesource.grammar.treebank.reader.find_files`.
            normalise: what is done to the trees; None takes them as they are.
            limit: stop when this many trees are kept.

        Raises:
            InputError: no such file, a bracketing that is broken (with file and line), or no tree.
        """
        name = ", ".join(map(str, [source] if isinstance(source, (str, Path)) else source))
        skipped = CONVENTIONS["plain" if normalise is None else normalise.convention].lines
        files = ((str(path), read_file(path, skipped)) for path in find_files(source))
        return cls._gather(files, name, normalise, limit)

    @classmethod
    def from_trees(
        cls,
        trees: Iterable[Tree],
        normalise: Normalisation | None = _DEFAULT,
        *,
        source: str = "memory",
        limit: int | None = None,
    ) -> Treebank:
        """Make one from trees in memory."""
        return cls._gather([(source, enumerate(trees, 1))], source, normalise, limit)

    @classmethod
    def from_nltk(cls, trees: Iterable[nltk.Tree], normalise: Normalisation | None = _DEFAULT) -> Treebank:
        """Make one from `nltk.Tree` objects.

        Raises:
            InputError: a node is neither a preterminal above one word nor a phrase above nodes.
        """
        return cls._gather([("nltk", from_nltk(trees))], "nltk", normalise, None)

    @classmethod
    def from_nltk_corpus(
        cls, name: str = "treebank", normalise: Normalisation | None = _DEFAULT, *, limit: int | None = None
    ) -> Treebank:
        """Read a bracketed corpus that NLTK has installed on this machine; nothing is downloaded.

        Raises:
            InputError: the corpus is not installed (the message says how to get it) or holds no trees.
        """
        return cls._gather(nltk_corpus(name), f"nltk:{name}", normalise, limit)

    @classmethod
    def from_dataset(
        cls,
        dataset: Any,
        column: str = "tree",
        normalise: Normalisation | None = _DEFAULT,
        *,
        split: str | None = None,
        limit: int | None = None,
    ) -> Treebank:
        """Read bracketings from a column of a dataset.

        Args:
            dataset: a `datasets.Dataset` or `DatasetDict`, an iterable of rows, or the path of a folder made
                by ``save_to_disk``, a Parquet file, a folder of Parquet files, or a JSON-lines file.
            column: name of the column; a row holds one bracketing (or several).
            normalise: as in `read`.
            split: which part of a `DatasetDict`.
            limit: as in `read`.

        Raises:
            InputError: no such path, split or column, or a row that is not a bracketing.
        """
        source, located = dataset_column(dataset, column, split)
        return cls._gather([(source, located)], source, normalise, limit)

    @classmethod
    def _gather(
        cls,
        files: Iterable[tuple[str, Iterable[Located]]],
        source: str,
        normalise: Normalisation | None,
        limit: int | None,
    ) -> Treebank:
        if limit is not None and limit < 1:
            raise InputError(f"a limit of {limit} trees leaves no treebank; give 1 or more")
        trees: list[Tree] = []
        refused: list[Refusal] = []
        numbers: dict[str, int] = {}
        of_files: list[int] = []
        ledger = Ledger()
        with no_garbage_collection(), meter("reading trees") as progress:
            located = chain.from_iterable(((name, line, tree) for line, tree in part) for name, part in files)
            for number, (name, line, tree) in enumerate(located, 1):
                if number % _PROGRESS_STEP == 0:
                    progress.advance(_PROGRESS_STEP)
                kept = (tree if tree.children else None) if normalise is None else normalise.apply(tree, ledger)
                reason = NO_WORDS if kept is None else None if normalise is None else normalise.refusal(kept)
                if kept is None or reason is not None:
                    refused.append(Refusal(str(reason), name, line))
                    continue
                trees.append(kept)
                of_files.append(numbers.setdefault(name, len(numbers)))
                if len(trees) == limit:
                    break
            if normalise is not None and normalise.unknown != "keep":
                trees = replace_unknown(trees, frequent_words(trees, normalise.rare_below), normalise.unknown)
        convention = None if normalise is None else normalise.convention
        return cls(tuple(trees), source, tuple(refused), ledger, convention, tuple(of_files))

    # -- what can be done with it ---------------------------------------------------------------------

    def binarise(self, binarisation: Binarisation = Binarisation()) -> Treebank:  # noqa: B008 (frozen)
        """Every tree binarised; see `Binarisation`."""
        with no_garbage_collection():
            return replace(self, trees=tuple(map(binarisation.binarise, self.trees)))

    def unbinarise(self, binarisation: Binarisation = Binarisation()) -> Treebank:  # noqa: B008 (frozen)
        """Undo `binarise` of the same binarisation."""
        with no_garbage_collection():
            return replace(self, trees=tuple(map(binarisation.unbinarise, self.trees)))

    def replace_unknown(self, known: Collection[str], unknown: Literal["unk", "signature"] = "unk") -> Treebank:
        """Every word that is not in ``known`` (such as a grammar's terminals) replaced by its class."""
        return replace(self, trees=tuple(replace_unknown(self.trees, frozenset(known), unknown)))

    def sentences(self) -> list[list[str]]:
        """The words of every tree."""
        return [tree.leaves() for tree in self.trees]

    @cached_property
    def statistics(self) -> TreebankStatistics:
        """Sizes, labels, rules, shapes, refusals."""
        with no_garbage_collection():
            return count(self.trees, (refusal.reason for refusal in self.refused))

    def signs_of_others(self) -> dict[Name, Counter[str]]:
        """Words and labels that were kept and look like markers of another convention than the one read by."""
        counted = self.statistics
        names = Counter(counted.words) + Counter(counted.phrasal) + Counter(counted.preterminal)
        return signs_of_others(names.items(), self.convention or "plain")

    def markers_kept(self) -> dict[Name, str]:
        """For each other convention whose markers were kept: how many, and which, in words."""
        return {
            name: f"{signs.total():,} words or labels were kept that look like markers of the convention {name}"
            f" ({', '.join(f'{sign} {count:,}' for sign, count in signs.most_common(5))})"
            for name, signs in self.signs_of_others().items()
        }

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the trees in brackets, one a line, hexadecimal."""
        digest = hashlib.sha256()
        for tree in self.trees:
            digest.update(f"{tree}\n".encode())
        return digest.hexdigest()

    def to_nltk(self) -> list[nltk.Tree]:
        """The trees as `nltk.Tree` objects."""
        return [to_nltk(tree) for tree in self.trees]

    def write(self, path: str | Path, *, force: bool = False) -> None:
        """Write Penn brackets, one tree a line, gzipped when ``path`` ends in ``.gz``; atomically.

        Equal trees give equal bytes, and `read` without normalisation gives the same trees again.

        Raises:
            InputError: the file exists and ``force`` is false, or it cannot be written.
        """
        refuse_existing(path, force)
        lines = (f"{tree}\n".encode() for tree in self.trees)
        packed = Path(path).suffix == ".gz"
        with atomic_path(path) as temporary, opened_to_write(temporary, packed=packed, level=6) as stream:
            stream.writelines(lines)


def hold_out(bank: Treebank, share: float, seed: int) -> tuple[Treebank, Treebank | None]:
    """The trees that are kept and a random share that is held out; both in the order of the treebank.

    Args:
        bank: trees.
        share: of them to hold out, 0 to 1, rounded to whole trees.
        seed: of the choice, 0 or more.

    Returns:
        The kept trees, and the held-out ones; all trees and None where either side would be empty.
    """
    n = round(share * len(bank))
    if n == 0 or n >= len(bank):
        return bank, None
    order = np.random.default_rng([seed, 1]).permutation(len(bank))
    out = set(order[:n].tolist())
    kept = tuple(tree for i, tree in enumerate(bank) if i not in out)
    held = tuple(tree for i, tree in enumerate(bank) if i in out)
    return replace(bank, trees=kept), replace(bank, trees=held)


__all__ = ["Binarisation", "Normalisation", "Refusal", "Treebank", "TreebankStatistics", "signature", "splice"]
