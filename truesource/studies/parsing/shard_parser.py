"""One shard of a parsed corpus: its sentences read, parsed and written."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from gzip import GzipFile
from pathlib import Path
from time import perf_counter
from typing import IO, Literal

import numpy as np

from truesource.generator.plan import Shard
from truesource.grammar.inference.batch import TooLongError
from truesource.grammar.parsing import ParseMethod, Search
from truesource.grammar.parsing.parser import Parse, Parser
from truesource.grammar.parsing.samples import ScoredTree
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.atomic_files import atomic_path, opened_to_write, write_json
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import digest_file, round_floats
from truesource.grammar.support.records import read_record
from truesource.grammar.unknown import read_words
from truesource.studies.parsing.record import DataFile, TreeShardEntry, files_of
from truesource.studies.parsing.settings import ParseOutcome, ParseSettings
from truesource.studies.parsing.source import ForwardReader, ParserInput, SourceSentence

NO_TREE = "()"  #: the line of a sentence without a tree, if there is one
_THREAD = threading.local()


def several(settings: ParseSettings) -> Literal["best", "samples"] | None:
    """Return which further trees are requested in addition to the best one."""
    return "best" if settings.best is not None else "samples" if settings.samples is not None else None


def several_trees(parser: Parser, settings: ParseSettings, number: int, words: Sequence[str]) -> list[ScoredTree]:
    """Return the trees that are requested in addition to the best one; empty if none are.

    Args:
        parser: finds them.
        settings: their number and kind.
        number: of the sentence; with the seed, it decides the samples, whoever draws them.
        words: of the sentence.

    Raises:
        InputError: the grammar cannot make the sentence; as `TooLongError`, its chart does not fit into memory.
    """
    if settings.samples is not None:
        return parser.samples(words, settings.samples, np.random.default_rng([settings.seed, number]))
    return [] if settings.best is None else parser.best(words, settings.best)


@dataclass(frozen=True)
class ParsedSentence:
    """The outcome of a sentence, as its row in the table says it."""

    number: int  #: from 1 on: the number of a line of text
    sentence: SourceSentence
    unknown: int  #: words outside the lexicon of the grammar
    outcome: ParseOutcome
    parse: Parse | None
    trees: Sequence[ScoredTree] = ()  #: several, if requested

    @property
    def search(self) -> Search | None:
        """The part of the chart that the tree was looked for in; None without a tree."""
        return None if self.parse is None else self.parse.search


@dataclass(frozen=True, kw_only=True)
class ShardParser:
    """The settings of all shards, and the partial folder they are written to; a `generator.corpus_builder.Writer`."""

    pcfg: PCFG
    settings: ParseSettings
    source: ParserInput
    partial: Path
    packed: bool  #: compress the trees

    def write(self, shard: Shard) -> TreeShardEntry:
        """Parse a shard, write its trees and rows, and record it; return the record with ``seconds``."""
        start = perf_counter()
        rows = self.parsed(shard)
        trees = self.partial / "data" / trees_file(shard, self.packed)
        lines = (_line(row) for row in rows if row.parse is not None or self.settings.keep_missing)
        with text_file(trees, self.packed) as stream:
            stream.writelines(lines)
        table = self.partial / "data" / shard.name
        _write_rows(table, rows, self.settings)
        rows_file = _described(table)
        entry: TreeShardEntry = {
            "file": rows_file["file"],
            "bytes": rows_file["bytes"],
            "sha256": rows_file["sha256"],
            "sentences": shard.sentences,
            "words": sum(len(row.sentence.words) for row in rows),
            "outcomes": {str(kind): sum(row.outcome is kind for row in rows) for kind in ParseOutcome},
            "searches": {str(kind): sum(row.search is kind for row in rows) for kind in Search},
            "trees": _described(trees),
        }
        kind = several(self.settings)
        if kind is not None:
            lists = self.partial / "data" / lists_file(shard, kind)
            with text_file(lists, packed=True) as stream:
                stream.writelines(_list_line(row) for row in rows if row.parse is not None)
            entry["lists"] = _described(lists)
        write_json(self._note(shard), entry)
        return {**entry, "seconds": perf_counter() - start}

    def parsed(self, shard: Shard) -> list[ParsedSentence]:
        """Return the outcome of every sentence of a shard."""
        engine = _engine_of(self)
        first = shard.number * self.settings.shard_size
        sentences = engine.reader.take(first, shard.sentences)
        outcomes = [self._before(sentence.words) for sentence in sentences]
        places = [place for place, outcome in enumerate(outcomes) if outcome is ParseOutcome.PARSED]
        results = engine.parser.parse_all([sentences[place].words for place in places])
        parses = dict(zip(places, results, strict=True))
        return [
            self._parsed(engine.parser, first + place + 1, sentence, outcomes[place], parses.get(place))
            for place, sentence in enumerate(sentences)
        ]

    def _before(self, words: Sequence[str]) -> ParseOutcome:
        """Return the outcome of a sentence without a look at the grammar; ``PARSED`` if it must be tried."""
        if not words:
            return ParseOutcome.EMPTY
        return ParseOutcome.SKIPPED if len(words) > self.settings.longest else ParseOutcome.PARSED

    def _parsed(
        self,
        parser: Parser,
        number: int,
        sentence: SourceSentence,
        outcome: ParseOutcome,
        found: Parse | InputError | None,
    ) -> ParsedSentence:
        unknown = sum(word not in self.pcfg.word_ids for word in sentence.words)
        if isinstance(found, Parse):
            trees = several_trees(parser, self.settings, number, sentence.words)
            return ParsedSentence(number, sentence, unknown, outcome, found, trees)
        if isinstance(found, InputError):
            outcome = ParseOutcome.TOO_LONG if isinstance(found, TooLongError) else ParseOutcome.IMPOSSIBLE
        return ParsedSentence(number, sentence, unknown, outcome, None)

    def finished(self, shard: Shard) -> TreeShardEntry | None:
        """Return the record of a finished shard, if its files are still as they were written."""
        try:
            entry = read_record(self._note(shard), TreeShardEntry, remedy="parse it again")
            kind, files = several(self.settings), files_of(entry)
            named = [shard.name, trees_file(shard, self.packed), *([] if kind is None else [lists_file(shard, kind)])]
            same = [file["file"] for file in files] == named and entry["sentences"] == shard.sentences
            same = same and all(digest_file(self.partial / "data" / file["file"]) == file["sha256"] for file in files)
        except (OSError, InputError):
            return None
        return entry if same else None

    def _note(self, shard: Shard) -> Path:
        return self.partial / ".work" / f"{shard.name}.json"


@dataclass
class _Engine:
    """The parser and reader of one thread, loaded once; threads do not share them, since both keep state."""

    of: ShardParser
    parser: Parser
    reader: ForwardReader


def _engine_of(shards: ShardParser) -> _Engine:
    """Return the engine of this thread."""
    engine: _Engine | None = getattr(_THREAD, "engine", None)
    if engine is None or engine.of is not shards:
        read_words(shards.pcfg, ())  # refuses a grammar of another version here, not at every sentence
        engine = _Engine(
            shards,
            Parser(shards.pcfg, shards.settings.method, exact=shards.settings.exact),
            ForwardReader(shards.source),
        )
        _THREAD.engine = engine
    return engine


def trees_file(shard: Shard, packed: bool) -> str:
    """Return the name of the file with the trees of a shard, next to the file of its rows."""
    return f"trees-{shard.number:05d}-of-{shard.of:05d}.mrg{'.gz' if packed else ''}"


def lists_file(shard: Shard, kind: str) -> str:
    """Return the name of the file with several trees of each sentence of a shard."""
    return f"{kind}-{shard.number:05d}-of-{shard.of:05d}.jsonl.gz"


@contextmanager
def text_file(path: Path, packed: bool) -> Iterator[IO[bytes] | GzipFile]:
    """Open a file that appears when it is complete; equal lines give equal bytes, packed or not."""
    with atomic_path(path) as temporary, opened_to_write(temporary, packed=packed, level=6) as stream:
        yield stream


def _line(row: ParsedSentence) -> bytes:
    tree = NO_TREE if row.parse is None else row.parse.tree
    return f"{tree}\n".encode()


def _list_line(row: ParsedSentence) -> bytes:
    record = {"number": row.number, "trees": [round_floats(tree.record()) for tree in row.trees]}
    return f"{json.dumps(record, allow_nan=False, ensure_ascii=False)}\n".encode()


def _described(path: Path) -> DataFile:
    return {"file": path.name, "bytes": path.stat().st_size, "sha256": digest_file(path)}


def _write_rows(path: Path, rows: Sequence[ParsedSentence], settings: ParseSettings) -> None:
    """Write the table of a shard: one row a sentence, whatever its outcome."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    scores = [None if row.parse is None else round_floats(row.parse.score) for row in rows]
    logprobs: Iterable[float | None] = scores if settings.method is ParseMethod.VITERBI else [None for _ in rows]
    columns = {
        "number": pa.array([row.number for row in rows], pa.int64()),
        "words": pa.array([len(row.sentence.words) for row in rows], pa.int32()),
        "unknown": pa.array([row.unknown for row in rows], pa.int32()),
        "outcome": pa.array([str(row.outcome) for row in rows], pa.string()),
        "search": pa.array([None if row.search is None else str(row.search) for row in rows], pa.string()),
        "score": pa.array(scores, pa.float64()),
        "logprob": pa.array(logprobs, pa.float64()),
    }
    if settings.raw:
        columns["line"] = pa.array([row.sentence.line for row in rows], pa.int64())
        for end, name in enumerate(("starts", "ends")):
            places = [[offsets[end] for offsets in row.sentence.offsets] for row in rows]
            columns[name] = pa.array(places, pa.list_(pa.int64()))
    with atomic_path(path) as temporary:
        pq.write_table(pa.table(columns), temporary, compression="zstd", write_page_checksum=True)
