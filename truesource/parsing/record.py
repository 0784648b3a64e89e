"""``record.json`` of a folder of trees: the call that made it, and its files."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired

from pydantic import AfterValidator, with_config
from typing_extensions import TypedDict

from truesource.grammar.parsing import Search
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.records import STRICT, Count, FileName, Positive, read_record
from truesource.parsing.settings import ParseOutcome, ParseSettings

FORMAT = "truesource trees"
FORMAT_VERSION = 1
_WHAT, _REMEDY = "the record of these trees", "parse the sentences again"


def _counts_of(kinds: type[StrEnum]) -> AfterValidator:
    """Requires a count of each kind."""

    def check(counts: dict[str, Any]) -> dict[str, Any]:
        if counts.keys() != set(kinds):
            raise ValueError(f"expected the keys {', '.join(kinds)}")
        return counts

    return AfterValidator(check)


def _settings(values: dict[str, Any]) -> dict[str, Any]:
    ParseSettings.model_validate(values)
    return values


Searches = Annotated[dict[str, Count], _counts_of(Search)]  #: trees by where they were looked for
Outcomes = Annotated[dict[str, Count], _counts_of(ParseOutcome)]  #: sentences by what became of them


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


def files_of(shard: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """All files of a shard: of rows, of trees and, where they were asked for, of several trees a sentence."""
    return [shard, *(shard[key] for key in ("trees", "lists") if key in shard)]


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
    """Of all shards."""

    sentences: Positive
    words: Count
    outcomes: Outcomes
    searches: Searches


@with_config(STRICT)
class _TreesHead(TypedDict):
    """What records of all versions have."""

    format: Literal["truesource trees"]
    format_version: int


@with_config(STRICT)
class TreesRecord(_TreesHead):
    """``record.json``."""

    settings: Annotated[dict[str, Any], AfterValidator(_settings)]
    grammar: ParsingGrammar
    input: SourceRecord
    versions: dict[str, str]
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


def add_up(shards: list[dict[str, Any]]) -> dict[str, Any]:
    """The counts of all shards together."""
    return {
        "sentences": sum(shard["sentences"] for shard in shards),
        "words": sum(shard["words"] for shard in shards),
        "outcomes": {str(kind): sum(shard["outcomes"][kind] for shard in shards) for kind in ParseOutcome},
        "searches": {str(kind): sum(shard["searches"][kind] for shard in shards) for kind in Search},
    }
