"""The treebank: an immutable collection of trees that knows where they came from and what was refused."""

from __future__ import annotations

import gzip
import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from truesource.grammar.conventions import CONVENTIONS, Ledger, Name, signs_of_others
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import atomic_path, refuse_existing
from truesource.grammar.support.progress import meter
from truesource.grammar.tree import Tree
from truesource.grammar.treebank import sources, statistics
from truesource.grammar.treebank.binarise import Binarisation
from truesource.grammar.treebank.normalise import NO_WORDS, Normalisation, frequent_words, replace_unknown
from truesource.grammar.treebank.reader import find_files, read_file
from truesource.grammar.treebank.traverse import no_garbage_collection

if TYPE_CHECKING:
    import nltk

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
        return cls._gather([("nltk", sources.from_nltk(trees))], "nltk", normalise, None)

    @classmethod
    def from_nltk_corpus(
        cls, name: str = "treebank", normalise: Normalisation | None = _DEFAULT, *, limit: int | None = None
    ) -> Treebank:
        """Read a bracketed corpus that NLTK has installed on this machine; nothing is downloaded.

        Raises:
            InputError: the corpus is not installed (the message says how to get it) or holds no trees.
        """
        return cls._gather(sources.nltk_corpus(name), f"nltk:{name}", normalise, limit)

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
        source, located = sources.dataset_column(dataset, column, split)
        return cls._gather([(source, located)], source, normalise, limit)

    @classmethod
    def _gather(
        cls,
        files: Iterable[tuple[str, Iterable[sources.Located]]],
        source: str,
        normalise: Normalisation | None,
        limit: int | None,
    ) -> Treebank:
        if limit is not None and limit < 1:
            raise InputError(f"a limit of {limit} trees leaves no treebank; give 1 or more")
        trees: list[Tree] = []
        refused: list[Refusal] = []
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
                if len(trees) == limit:
                    break
            if normalise is not None and normalise.unknown != "keep":
                trees = replace_unknown(trees, frequent_words(trees, normalise.rare_below), normalise.unknown)
        return cls(tuple(trees), source, tuple(refused), ledger, None if normalise is None else normalise.convention)

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

    def statistics(self) -> statistics.TreebankStatistics:
        """Sizes, labels, rules, shapes, refusals."""
        return statistics.count(self.trees, (refusal.reason for refusal in self.refused))

    def signs_of_others(self) -> dict[Name, Counter[str]]:
        """Words and labels that were kept and look like markers of another convention than the one read by."""
        names = Counter(word for tree in self.trees for word in tree.leaves())
        names.update(node.label for tree in self.trees for node in tree.subtrees())
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
        return [sources.to_nltk(tree) for tree in self.trees]

    def write(self, path: str | Path, *, force: bool = False) -> None:
        """Write Penn brackets, one tree a line, gzipped when ``path`` ends in ``.gz``; atomically.

        Equal trees give equal bytes, and `read` without normalisation gives the same trees again.

        Raises:
            InputError: the file exists and ``force`` is false, or it cannot be written.
        """
        refuse_existing(path, force)
        lines = (f"{tree}\n".encode() for tree in self.trees)
        with atomic_path(path) as temporary, temporary.open("wb") as raw:
            if Path(path).suffix == ".gz":
                with gzip.GzipFile("", "wb", compresslevel=6, fileobj=raw, mtime=0) as stream:
                    stream.writelines(lines)
            else:
                raw.writelines(lines)
