"""Treebanks: immutable collections of trees with their source, refused trees and statistics."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from truesource.grammar.conventions import CONVENTIONS, Ledger, Name
from truesource.grammar.support.atomic_files import atomic_path, opened_to_write
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import read_text_lines, refuse_existing
from truesource.grammar.support.printable import counted, meter
from truesource.grammar.tree import Tree, no_garbage_collection
from truesource.grammar.treebank.binarise import Binarisation, splice
from truesource.grammar.treebank.brackets import Flaw, LooseWordError, require_tags, scan_lines
from truesource.grammar.treebank.files import FileSelection, select_files
from truesource.grammar.treebank.normalise import NO_WORDS, Normalisation, frequent_words, replace_unknown, signature
from truesource.grammar.treebank.reader import Located, dataset_column, from_nltk, nltk_corpus, to_nltk
from truesource.grammar.treebank.reading import Refusal, TreebankReading
from truesource.grammar.treebank.statistics import TreebankStatistics, count

if TYPE_CHECKING:
    import nltk


_DEFAULT = Normalisation()
_PROGRESS_STEP = 1000


@dataclass(frozen=True, eq=False)
class Treebank:
    """Trees in order, their source, and the trees that normalisation refused.

    Raises:
        InputError: there is no tree; the message counts the refused ones by reason.
    """

    trees: tuple[Tree, ...]
    source: str = "memory"  #: file, pattern or library of the trees
    refused: tuple[Refusal, ...] = field(default=(), repr=False)
    ledger: Ledger = field(default_factory=Ledger, repr=False)  #: changes by normalisation
    convention: Name | None = None  #: convention of reading
    files: tuple[int, ...] = field(default=(), repr=False)  #: number of the file of each tree; empty: unknown
    selection: FileSelection | None = field(default=None, repr=False)  #: files read and skipped in folders

    def __post_init__(self) -> None:
        if not self.trees:
            reasons = {refusal.kind: refusal for refusal in reversed(self.refused)}
            some = "; ".join(f"{each.reason}, {each.source}:{each.line}" for each in list(reasons.values())[:3])
            why = f": all {len(self.refused)} were refused ({some})" if reasons else ""
            raise InputError(f"the treebank holds no tree{why}", self.source)

    def __len__(self) -> int:
        return len(self.trees)

    def __iter__(self) -> Iterator[Tree]:
        return iter(self.trees)

    def __getitem__(self, index: int) -> Tree:
        return self.trees[index]

    def __repr__(self) -> str:
        return f"Treebank({counted(len(self.trees), 'tree')} from {self.source}, {len(self.refused):,} refused)"

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
            source: see `truesource.grammar.treebank.files.select_files`.
            normalise: changes of the trees; None leaves them unchanged.
            limit: largest number of trees.

        Raises:
            InputError: no such file, a file that is no bracketing, or no valid tree. Trees that
            cannot be read are in ``refused``.
        """
        sources = [source] if isinstance(source, (str, Path)) else list(source)
        name = ", ".join(map(str, sources))
        convention = CONVENTIONS["plain" if normalise is None else normalise.convention]
        selection = select_files(sources)
        files = ((str(path), scan_lines(read_text_lines(path), path, convention)) for path in selection.files)
        bank = cls._gather(files, name, normalise, limit)
        return bank if selection.files == tuple(map(Path, map(str, sources))) else replace(bank, selection=selection)

    @classmethod
    def from_trees(
        cls,
        trees: Iterable[Tree],
        normalise: Normalisation | None = _DEFAULT,
        *,
        source: str = "memory",
        limit: int | None = None,
    ) -> Treebank:
        """Return a treebank of trees in memory."""
        return cls._gather([(source, enumerate(trees, 1))], source, normalise, limit)

    @classmethod
    def from_nltk(cls, trees: Iterable[nltk.Tree], normalise: Normalisation | None = _DEFAULT) -> Treebank:
        """Return a treebank of `nltk.Tree` objects.

        Raises:
            InputError: something is not an `nltk.Tree`, or a word is not a string without white space.
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
            raise InputError(f"a limit of {limit} trees leaves no treebank; use 1 or more")
        trees: list[Tree] = []
        refused: list[Refusal] = []
        numbers: dict[str, int] = {}
        of_files: list[int] = []
        ledger = Ledger()
        with no_garbage_collection(), meter("reading trees") as progress:
            number = 0
            located = chain.from_iterable(((name, line, tree) for line, tree in part) for name, part in files)
            for number, (name, line, tree) in enumerate(located, 1):
                if number % _PROGRESS_STEP == 0:
                    progress.advance(_PROGRESS_STEP)
                result = _normalised(tree, line, normalise, ledger)
                if isinstance(result, Flaw):
                    refused.append(Refusal(result.reason, name, result.line, result.kind))
                    continue
                trees.append(result)
                of_files.append(numbers.setdefault(name, len(numbers)))
                if len(trees) == limit:
                    break
            progress.advance(number % _PROGRESS_STEP)
            if normalise is not None and normalise.unknown != "keep":
                trees = replace_unknown(trees, frequent_words(trees, normalise.rare_below), normalise.unknown)
        convention = None if normalise is None else normalise.convention
        return cls(tuple(trees), source, tuple(refused), ledger, convention, tuple(of_files))

    # -- conversion and summaries ---------------------------------------------------------------------

    def binarise(self, binarisation: Binarisation = Binarisation()) -> Treebank:  # noqa: B008 (frozen)
        """Return every tree binarised; see `Binarisation`."""
        with no_garbage_collection():
            return replace(self, trees=tuple(map(binarisation.binarise, self.trees)))

    def unbinarise(self, binarisation: Binarisation = Binarisation()) -> Treebank:  # noqa: B008 (frozen)
        """Undo `binarise` with the same binarisation."""
        with no_garbage_collection():
            return replace(self, trees=tuple(map(binarisation.unbinarise, self.trees)))

    def replace_unknown(self, known: Collection[str], unknown: Literal["unk", "signature"] = "unk") -> Treebank:
        """Replace every word that is not in ``known`` (such as a grammar's terminals) by its class."""
        return replace(self, trees=tuple(replace_unknown(self.trees, frozenset(known), unknown)))

    def sentences(self) -> list[list[str]]:
        """Return the words of every tree."""
        return [tree.leaves() for tree in self.trees]

    @cached_property
    def statistics(self) -> TreebankStatistics:
        """Sizes, labels, rules, shapes, refusals."""
        with no_garbage_collection():
            return count(self.trees, (refusal.kind for refusal in self.refused))

    @cached_property
    def reading(self) -> TreebankReading:
        """Summary of reading: trees, words, changes, refusals, and suspicious words."""
        convention = self.convention or "plain"
        return TreebankReading.of(self.statistics, self.ledger, self.refused, convention, self.selection)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the trees in brackets, one a line, hexadecimal."""
        digest = hashlib.sha256()
        for tree in self.trees:
            digest.update(f"{tree}\n".encode())
        return digest.hexdigest()

    def to_nltk(self) -> list[nltk.Tree]:
        """Return the trees as `nltk.Tree` objects."""
        return [to_nltk(tree) for tree in self.trees]

    def write(self, path: str | Path, *, force: bool = False) -> None:
        """Write Penn brackets, one tree a line, gzipped if ``path`` ends in ``.gz``, atomically.

        Equal trees give equal bytes, and `read` without normalisation returns the same trees.

        Raises:
            InputError: the file exists and ``force`` is false, or it cannot be written.
        """
        refuse_existing(path, force)
        lines = (f"{tree}\n".encode() for tree in self.trees)
        packed = Path(path).suffix == ".gz"
        with atomic_path(path) as temporary, opened_to_write(temporary, packed=packed, level=6) as stream:
            stream.writelines(lines)


def _normalised(tree: Tree | Flaw, line: int, normalise: Normalisation | None, ledger: Ledger) -> Tree | Flaw:
    """Return the normalised tree, or the reason for its refusal."""
    if isinstance(tree, Flaw):
        return tree
    try:
        if normalise is None:
            require_tags(tree)
            return tree if tree.children else Flaw(NO_WORDS, line, NO_WORDS)
        result = normalise.apply(tree, ledger)
    except LooseWordError as error:
        if normalise is not None:
            ledger.remove(_account(tree, normalise))
        return Flaw(error.reason, line, error.code)
    reason = normalise.refusal(result)
    if result is not None and reason is None:
        return result
    account = _account(tree, normalise)
    if result is None:
        account.dropped.clear()  # all words of the tree, the reason for its refusal
    ledger.remove(account)
    return Flaw(str(reason), line, str(reason))


def _account(tree: Tree, normalise: Normalisation) -> Ledger:
    """Return the ledger of normalisation for a tree, up to a word that stopped it."""
    account = Ledger()
    with suppress(LooseWordError):
        normalise.apply(tree, account)
    return account


def hold_out(bank: Treebank, share: float, seed: int) -> tuple[Treebank, Treebank | None]:
    """Return the training trees and a random share that is held out; both in the order of the treebank.

    Args:
        bank: trees.
        share: share to hold out, 0 to 1, rounded to whole trees.
        seed: seed of the choice, 0 or more.

    Returns:
        The training trees, and the held-out ones; all trees and None if either side would be empty.
    """
    n = round(share * len(bank))
    if n == 0 or n >= len(bank):
        return bank, None
    order = np.random.default_rng([seed, 1]).permutation(len(bank))
    out = set(order[:n].tolist())
    training = tuple(tree for i, tree in enumerate(bank) if i not in out)
    held = tuple(tree for i, tree in enumerate(bank) if i in out)
    return replace(bank, trees=training), replace(bank, trees=held)


__all__ = ["Binarisation", "Normalisation", "Refusal", "Treebank", "TreebankStatistics", "signature", "splice"]
