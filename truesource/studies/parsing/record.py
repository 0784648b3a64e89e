"""``record.json`` of a folder of trees: the call that made it, and its files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, NotRequired

from pydantic import AfterValidator, with_config
from typing_extensions import TypedDict

from truesource.generator.columns import verify_shards
from truesource.grammar.parsing import Search
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.parquet import Kind, read_table
from truesource.grammar.support.records import STRICT, Count, FileName, Positive, read_record
from truesource.grammar.tree import Tree
from truesource.grammar.treebank.brackets import read_file
from truesource.studies.parsing.settings import ParseOutcome, ParseSettings

FORMAT: Literal["truesource trees"] = "truesource trees"
FORMAT_VERSION = 1
_WHAT, _REMEDY = "the record of these trees", "parse the sentences again"
_ROWS: dict[str, Kind] = {"number": "int", "outcome": "text"}


def _counts_of(kinds: type[StrEnum]) -> AfterValidator:
    """Return a validator that requires a count of each kind."""

    def check(counts: dict[str, int]) -> dict[str, int]:
        if counts.keys() != set(kinds):
            raise ValueError(f"expected the keys {', '.join(kinds)}")
        return counts

    return AfterValidator(check)


def _settings(values: dict[str, object]) -> dict[str, object]:
    ParseSettings.model_validate(values)
    return values


Searches = Annotated[dict[str, Count], _counts_of(Search)]  #: trees by the searched part of the chart
Outcomes = Annotated[dict[str, Count], _counts_of(ParseOutcome)]  #: sentences by outcome


@with_config(STRICT)
class DataFile(TypedDict):
    """One file of ``data/``."""

    file: FileName
    bytes: Count
    sha256: str


@with_config(STRICT)
class TreeShardEntry(DataFile):
    """One shard: the table of its sentences, and the file of their trees."""

    sentences: Positive
    words: Count
    outcomes: Outcomes
    searches: Searches
    trees: DataFile
    lists: NotRequired[DataFile]  #: several trees of each sentence
    seconds: NotRequired[float]  #: duration of parsing, until it is counted


def files_of(shard: TreeShardEntry) -> list[DataFile]:
    """Return all files of a shard: of rows, of trees and, if requested, of several trees a sentence."""
    return [shard, shard["trees"], *([shard["lists"]] if "lists" in shard else [])]


@with_config(STRICT)
class SourceRecord(TypedDict):
    """The sentences."""

    sentences: Positive
    words: Count
    digest: str


@with_config(STRICT)
class ParsingGrammar(TypedDict):
    """The grammar."""

    digest: str
    sizes: dict[str, Count]


@with_config(STRICT)
class ParsedCounts(TypedDict):
    """Counts over all shards."""

    sentences: Positive
    words: Count
    outcomes: Outcomes
    searches: Searches


@with_config(STRICT)
class _TreesHead(TypedDict):
    """The keys that records of all versions have."""

    format: Literal["truesource trees"]
    format_version: int


@with_config(STRICT)
class TreesCall(_TreesHead):
    """All that two calls must have in common to make the same trees; and the licence."""

    settings: Annotated[dict[str, object], AfterValidator(_settings)]
    grammar: ParsingGrammar
    input: SourceRecord
    versions: dict[str, str]
    license: NotRequired[str]


@with_config(STRICT)
class TreesRecord(TreesCall):
    """``record.json``."""

    counts: ParsedCounts
    shards: list[TreeShardEntry]
    digest: str


def read_trees_record(folder: Path) -> TreesRecord:
    """Read the record of a finished folder.

    Raises:
        InputError: it is missing, damaged, of another version, or contradicts itself.
    """
    file = folder / "record.json"
    absent = "these are not finished trees, record.json is missing; name the folder that truesource parse made"
    head = read_record(file, _TreesHead, what=_WHAT, remedy=_REMEDY, absent=absent)
    if head["format_version"] != FORMAT_VERSION:
        raise InputError(f"expecting format version {FORMAT_VERSION}, got {head['format_version']}; {_REMEDY}", file)
    record = read_record(file, TreesRecord, what=_WHAT, remedy=_REMEDY)
    if sum(shard["sentences"] for shard in record["shards"]) != record["counts"]["sentences"]:
        raise InputError(f"{_WHAT} is damaged: its shards do not add up; {_REMEDY}", file)
    return record


def add_up(shards: Sequence[TreeShardEntry]) -> ParsedCounts:
    """Return the counts of all shards together."""
    return {
        "sentences": sum(shard["sentences"] for shard in shards),
        "words": sum(shard["words"] for shard in shards),
        "outcomes": {str(kind): sum(shard["outcomes"][kind] for shard in shards) for kind in ParseOutcome},
        "searches": {str(kind): sum(shard["searches"][kind] for shard in shards) for kind in Search},
    }


class SentenceOutcome(NamedTuple):
    """The outcome of parsing a sentence."""

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
            InputError: it is missing, incomplete or damaged.
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
    def counts(self) -> ParsedCounts:
        """``sentences``, ``words`` and, by outcome of the sentences, ``outcomes``."""
        return add_up(self.shards)

    def outcomes(self) -> Iterator[SentenceOutcome]:
        """Yield the outcomes of all sentences, in order."""
        for shard in self.shards:
            yield from self._outcomes(shard)

    def missing(self) -> dict[ParseOutcome, list[int]]:
        """Return the numbers of the sentences without a tree, by the reason; reasons that do not occur are missing."""
        by_reason: dict[ParseOutcome, list[int]] = {}
        for shard in self.shards:
            if shard["outcomes"][ParseOutcome.PARSED] < shard["sentences"]:
                for number, outcome in self._outcomes(shard):
                    if outcome is not ParseOutcome.PARSED:
                        by_reason.setdefault(outcome, []).append(number)
        return by_reason

    def trees(self) -> Iterator[tuple[SentenceOutcome, Tree | None]]:
        """Yield every sentence with its tree, None if it has none."""
        for shard in self.shards:
            lines = read_file(self.path / "data" / shard["trees"]["file"])
            for row in self._outcomes(shard):
                parsed = row.outcome is ParseOutcome.PARSED
                _, tree = next(lines) if parsed or self.keep_missing else (0, None)
                yield row, tree if parsed else None

    def files(self) -> Iterator[Path]:
        """Return the files of trees, in order."""
        return (self.path / "data" / shard["trees"]["file"] for shard in self.shards)

    def _outcomes(self, shard: TreeShardEntry) -> Iterator[SentenceOutcome]:
        file = self.path / "data" / shard["file"]
        table = read_table(file, _ROWS, what="this table of sentences", remedy=_REMEDY, rows=shard["sentences"])
        columns = (table.column(name).to_pylist() for name in _ROWS)
        return (SentenceOutcome(number, ParseOutcome(code)) for number, code in zip(*columns, strict=True))
