"""Contents of ``record.json`` and ``symbols.json`` of a corpus, checked when they are read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal, NotRequired

from pydantic import AfterValidator, Field, with_config
from typing_extensions import TypedDict

from truesource.generator.plan import Columns, Overlap, Plan, Trees, parse_transform
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import digest_json
from truesource.grammar.support.records import (
    STRICT,
    Count,
    FileName,
    Positive,
    Probability,
    decode_record,
    read_record,
)

FORMAT: Literal["truesource corpus"] = "truesource corpus"
GRAMMAR = "grammar.npz"  #: grammar file in a corpus folder
FORMAT_VERSION = 4
_WHAT, _REMEDY = "the record of this corpus", "sample the corpus again"


def _length_range(text: str) -> str:
    LengthRange.parse(text)
    return text


def _transform(text: str) -> str:
    return str(parse_transform(text))


Lengths = Annotated[str, AfterValidator(_length_range)]  #: such as ``4..30``
Transform = Annotated[str, AfterValidator(_transform)]  #: such as ``block-shuffle:size=3,seed=7``


@with_config(STRICT)
class Call(TypedDict):
    """Requested settings; see `truesource.generator.plan.Plan`."""

    splits: dict[str, Positive]
    seed: Annotated[int, Field(ge=0)]
    lengths: Lengths | None
    overlap: Overlap
    max_height: Positive | None
    trees: Trees
    string_logprob: bool
    ids: bool
    split: bool
    shard_size: Positive
    transform: NotRequired[Transform]
    start: NotRequired[str]
    stratified: NotRequired[bool]


@with_config(STRICT)
class Condition(TypedDict):
    """The length range, and its probability under the grammar."""

    low: Count
    high: Count
    probability: Probability
    log_probability: float


@with_config(STRICT)
class HeightCap(TypedDict):
    """The cap on tree heights, its probability, and mean lengths with and without it."""

    max_height: Positive
    probability: Probability
    log_probability: float
    mean_tokens: float
    mean_tokens_without: float


@with_config(STRICT)
class TransformRecord(TypedDict):
    """Order of the words of the text, exact probabilities, and the text of the trees."""

    spec: Transform
    exact: list[Literal["sentence", "masked token", "causal token"]]
    trees: Literal["original order"]


@with_config(STRICT)
class ExclusionRecord(TypedDict):
    """Mass that a disjoint split excludes; see `truesource.generator.shard_writer`."""

    probability: Probability
    interval: tuple[float, float] | None
    exact: bool
    drawn: Count
    log_correction: float


@with_config(STRICT)
class Shares(TypedDict):
    """Shares of a split that also occur in the reference split: of its types, and of all sentences."""

    types: Probability
    tokens: Probability


@with_config(STRICT)
class SplitRecord(TypedDict):
    """Counts of one split."""

    sentences: Positive
    tokens: Count
    different: NotRequired[Positive | None]
    overlap: NotRequired[Shares | None]
    excluded: NotRequired[ExclusionRecord | None]
    with_event: NotRequired[Count]


@with_config(STRICT)
class ShardEntry(TypedDict):
    """One file."""

    file: FileName
    split: str
    sentences: Positive
    tokens: Count
    drawn: Count
    bytes: Count
    sha256: str


@with_config(STRICT)
class UniqueRecord(TypedDict):
    """Counts of unique splits: sentences drawn, and repetitions of earlier ones."""

    drawn: Count
    repeated: Count


@with_config(STRICT)
class GrammarOfCorpus(TypedDict):
    """Digest and sizes of the grammar; for a process also its reference."""

    digest: str
    process: NotRequired[str]
    sizes: NotRequired[dict[str, Count]]


@with_config(STRICT)
class _Head(TypedDict):
    """Keys that records of all versions have."""

    format: Literal["truesource corpus"]
    format_version: int


@with_config(STRICT)
class CorpusCall(_Head):
    """The beginning of the record: the call, and exact numbers on its conditions."""

    call: Call
    grammar: GrammarOfCorpus
    drawn_by: str
    license: NotRequired[str]
    language: NotRequired[str]
    versions: dict[str, str]
    transform: NotRequired[TransformRecord]
    condition: NotRequired[Condition | None]
    height_cap: NotRequired[HeightCap | None]
    unique: NotRequired[UniqueRecord]


@with_config(STRICT)
class CorpusRecord(CorpusCall):
    """``record.json``."""

    splits: dict[str, SplitRecord]
    overlap_with: NotRequired[str | None]
    shards: list[ShardEntry]
    digest: str
    symbols_digest: NotRequired[str | None]


@with_config(STRICT)
class SymbolKey(TypedDict):
    """``symbols.json``: symbols by number with their treebank labels, and respelled symbols and words."""

    symbols: list[str]
    labels: list[str]
    original_symbols: dict[str, str]
    original_words: dict[str, str]
    words: NotRequired[list[str]]


def call_of(plan: Plan) -> Call:
    """Return the record of a plan, which `plan_of` reads."""
    call: Call = {
        "splits": {name: int(n) for name, n in plan.splits.items()},
        "seed": plan.seed,
        "lengths": None if plan.lengths is None else str(plan.lengths),
        "overlap": plan.overlap,
        "max_height": plan.max_height,
        "trees": plan.columns.trees,
        "string_logprob": plan.columns.string_logprob,
        "ids": plan.columns.ids,
        "split": plan.columns.split,
        "shard_size": plan.shard_size,
    }
    if plan.transform is not None:
        call["transform"] = str(plan.transform)
    if plan.stratified:
        call["stratified"] = True
    return call


def plan_of(call: Call) -> Plan:
    """Return the plan of a record."""
    lengths = None if call["lengths"] is None else LengthRange.parse(call["lengths"])
    columns = Columns(call["trees"], call["string_logprob"], call["ids"], call["split"])
    transform = parse_transform(call["transform"]) if "transform" in call else None
    plan = Plan(call["splits"], call["seed"], lengths, call["overlap"], call["max_height"], columns, call["shard_size"])
    return replace(plan, transform=transform, stratified=call.get("stratified", False))


def read_corpus_record(file: Path) -> CorpusRecord:
    """Read ``record.json``; optional entries that it lacks are None.

    Raises:
        InputError: it is missing, damaged, of another version, or contradicts itself.
    """
    absent = "this is not a finished corpus: record.json is missing; use the folder of one, or sample it again"
    head = read_record(file, _Head, what=_WHAT, remedy=_REMEDY, absent=absent)
    _check_version(head["format_version"], file)
    return _completed(read_record(file, CorpusRecord, what=_WHAT, remedy=_REMEDY), file)


def check_corpus_record(record: Mapping[str, object]) -> CorpusRecord:
    """Check a record in memory, as `read_corpus_record` does."""
    text = json.dumps(dict(record))
    _check_version(decode_record(text, _Head, what=_WHAT, remedy=_REMEDY)["format_version"], None)
    return _completed(decode_record(text, CorpusRecord, what=_WHAT, remedy=_REMEDY), None)


def read_symbol_key(file: Path, digest: str | None) -> SymbolKey:
    """Read ``symbols.json``.

    Args:
        file: its path.
        digest: its digest in the record of the corpus; None: the record has none.

    Raises:
        InputError: it is missing or damaged.
    """
    key = read_record(file, SymbolKey, what="the table of symbols", remedy=_REMEDY)
    if digest not in (None, digest_json(key)):
        raise InputError(f"the table of symbols is damaged: it differs from the digest in record.json; {_REMEDY}", file)
    if len(key["symbols"]) != len(key["labels"]):
        raise InputError(f"the table of symbols is damaged: symbols and labels differ in number; {_REMEDY}", file)
    return key


def _check_version(version: int, file: Path | None) -> None:
    if version != FORMAT_VERSION:
        raise InputError(f"expecting format version {FORMAT_VERSION} of a corpus, got {version}; {_REMEDY}", file)


def _completed(record: CorpusRecord, file: Path | None) -> CorpusRecord:
    """Return the record with None for missing entries; its counts must agree."""
    result = dict.fromkeys(record["splits"], (0, 0))
    for shard in record["shards"]:
        sentences, tokens = result.get(shard["split"], (0, 0))
        result[shard["split"]] = sentences + shard["sentences"], tokens + shard["tokens"]
    if result != {name: (split["sentences"], split["tokens"]) for name, split in record["splits"].items()}:
        raise InputError(f"{_WHAT} is damaged: its shards do not add up to its splits; {_REMEDY}", file)
    if len({shard["file"] for shard in record["shards"]}) != len(record["shards"]):
        raise InputError(f"{_WHAT} is damaged: it names a file twice; {_REMEDY}", file)
    full: CorpusRecord = {"condition": None, "height_cap": None, "overlap_with": None, "symbols_digest": None, **record}
    full["call"] = {"split": record["call"]["split"], **record["call"]}  # in the order of JSON results
    for name, split in record["splits"].items():
        full["splits"][name] = {"different": None, "overlap": None, "excluded": None, **split}
    return full
