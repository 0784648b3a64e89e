"""The trees of a parsed corpus and what became of each sentence, as they lie on the disk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from truesource.generator.columns import verify_shards
from truesource.grammar.support.archives import Kind, read_table
from truesource.grammar.support.errors import InputError
from truesource.grammar.tree import Tree
from truesource.grammar.treebank.reader import read_file
from truesource.parsing.record import TreeShardEntry, add_up, files_of, read_trees_record
from truesource.parsing.settings import ParseOutcome

_REMEDY = "parse the sentences again"
_ROWS: dict[str, Kind] = {"number": "int", "outcome": "text"}


class SentenceOutcome(NamedTuple):
    """What became of a sentence."""

    number: int  #: from 1 on
    outcome: ParseOutcome


@dataclass(frozen=True)
class ParsedCorpus:
    """Shards of trees with their tables; `load` opens a finished folder."""

    path: Path  #: the folder that has ``data``
    shards: Sequence[TreeShardEntry]
    keep_missing: bool  #: whether a sentence without a tree has a line too, ``()``

    @classmethod
    def load(cls, path: str | Path) -> ParsedCorpus:
        """Open the folder that `truesource parse` made.

        Raises:
            InputError: there is none, or it is incomplete or damaged.
        """
        path = Path(path)
        record = read_trees_record(path)
        for shard in record["shards"]:
            for entry in files_of(shard):
                file = path / "data" / entry["file"]
                if not file.is_file() or file.stat().st_size != entry["bytes"]:
                    raise InputError(f"this file of the trees is missing or damaged; {_REMEDY}", file)
        return cls(path, record["shards"], bool(record["settings"]["keep_missing"]))

    def verify(self) -> None:
        """Compare the digest of every file with the record.

        Raises:
            InputError: a file has changed.
        """
        files = [file for shard in self.shards for file in files_of(shard)]
        verify_shards(self.path, files, f"the trees are damaged, this file has changed; {_REMEDY}")

    @property
    def counts(self) -> dict[str, Any]:
        """``sentences``, ``words`` and, by what became of the sentences, ``outcomes``."""
        return add_up([dict(shard) for shard in self.shards])

    def outcomes(self) -> Iterator[SentenceOutcome]:
        """What became of every sentence, in order."""
        for shard in self.shards:
            yield from self._outcomes(shard)

    def missing(self) -> dict[ParseOutcome, list[int]]:
        """The numbers of the sentences without a tree, by the reason; reasons that do not occur are left out."""
        found: dict[ParseOutcome, list[int]] = {}
        for shard in self.shards:
            if shard["outcomes"][ParseOutcome.PARSED] < shard["sentences"]:
                for number, outcome in self._outcomes(shard):
                    if outcome is not ParseOutcome.PARSED:
                        found.setdefault(outcome, []).append(number)
        return found

    def trees(self) -> Iterator[tuple[SentenceOutcome, Tree | None]]:
        """Every sentence with its tree, None where it has none."""
        for shard in self.shards:
            lines = read_file(self.path / "data" / shard["trees"]["file"])
            for row in self._outcomes(shard):
                parsed = row.outcome is ParseOutcome.PARSED
                _, tree = next(lines) if parsed or self.keep_missing else (0, None)
                yield row, tree if parsed else None

    def files(self) -> Iterator[Path]:
        """The files of trees, in order."""
        return (self.path / "data" / shard["trees"]["file"] for shard in self.shards)

    def _outcomes(self, shard: TreeShardEntry) -> Iterator[SentenceOutcome]:
        file = self.path / "data" / shard["file"]
        table = read_table(file, _ROWS, what="this table of sentences", remedy=_REMEDY, rows=shard["sentences"])
        columns = (table.column(name).to_pylist() for name in _ROWS)
        return (SentenceOutcome(number, ParseOutcome(code)) for number, code in zip(*columns, strict=True))
