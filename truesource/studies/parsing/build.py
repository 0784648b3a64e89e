"""Parsing a corpus into a folder or a file: each shard once, in processes, on a cluster, or by several jobs."""

from __future__ import annotations

import platform
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from time import perf_counter

from truesource.generator.corpus_builder import (
    differing_keys,
    is_made,
    make_folder,
    place_of,
    prepare,
    settle,
    write_missing,
    writing,
)
from truesource.generator.plan import Shard, plan_shards
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.atomic_files import discard, write_json, write_text
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import digest_json
from truesource.grammar.support.hub_card import checked_license, dataset_card
from truesource.grammar.support.locks import exclusive
from truesource.grammar.support.parallel import Share, Workers
from truesource.grammar.support.printable import markdown
from truesource.grammar.treebank.files import is_tree_name
from truesource.studies.parsing.record import (
    FORMAT,
    FORMAT_VERSION,
    ParsedCorpus,
    TreesCall,
    TreeShardEntry,
    TreesRecord,
    add_up,
    files_of,
)
from truesource.studies.parsing.settings import ParseOutcome, ParseSettings
from truesource.studies.parsing.shard_parser import ShardParser, text_file
from truesource.studies.parsing.source import ParserInput, Survey, changed, survey

_MEANINGS = {
    ParseOutcome.PARSED: "it has a tree",
    ParseOutcome.IMPOSSIBLE: "the grammar cannot make it",
    ParseOutcome.TOO_LONG: "its chart does not fit into memory",
    ParseOutcome.SKIPPED: "it has more words than the call allowed",
    ParseOutcome.EMPTY: "it has no words",
}
_LISTS = """- `data/best-*.jsonl.gz` or `data/samples-*.jsonl.gz`: several trees of each sentence that has one, with
  `score` and `log_p`, the log probability of tree and sentence (nats)
"""
_LOADING = """
`record.json` holds the whole call and the digest of every file.

## Loading
```python
from truesource.studies.parsing.record import ParsedCorpus
for row, tree in ParsedCorpus.load("path/to/this/folder").trees():
    ...

from truesource.grammar.treebank import Treebank
bank = Treebank.read("path/to/this/folder")
```
"""
_RAW = """| `line` | int64 | line of the raw text on which the sentence starts, from 1 on |
| `starts`, `ends` | lists of int64 | where each word starts and ends in the raw text, in characters |
"""
WHAT = "folder of trees"
FILE_SHARD = 100  #: sentences that are kept at a time while one file is made


def trees_card(name: str, record: TreesRecord) -> str:
    """Return the README of a folder of trees.

    Args:
        name: of the folder.
        record: content of ``record.json``.
    """
    counts, settings = record["counts"], record["settings"]
    outcomes = counts["outcomes"]
    rows = "\n".join(f"| `{kind}` | {_MEANINGS[kind]} | {outcomes[kind]:,} |" for kind in ParseOutcome)
    missing = "`()`" if settings["keep_missing"] else "no line"
    text = f"""# {markdown(name)}

{outcomes[ParseOutcome.PARSED]:,} trees of {counts["sentences"]:,} sentences ({counts["words"]:,} words), parsed by
truesource: trees of a parser, not of annotators.

- `data/trees-*.mrg.gz`: Penn bracketings, one a line; a sentence without a tree has {missing}
- `data/rows-*.parquet`: one row a sentence, with or without a tree
{_LISTS if "lists" in record["shards"][0] else ""}
| column | type | meaning |
| --- | --- | --- |
| `number` | int64 | of the sentence in the input, from 1 on; of text, the number of its line |
| `words` | int32 | how many words |
| `unknown` | int32 | how many of them the lexicon of the grammar lacks |
| `outcome` | string | what became of it, see below |
| `search` | string | part of its chart that was searched: `pruned`, `looser` (with lower thresholds) or `exact` (all) |
| `score` | float64 | what the method maximises: nats, or of `max-span` expected correct spans; null without a tree |
| `logprob` | float64 | log probability of the derivation, nats; null unless the method is `viterbi` |
{_RAW if settings["raw"] else ""}
| outcome | the sentence | sentences |
| --- | --- | ---: |
{rows}

## Provenance
- grammar: digest `{record["grammar"]["digest"]}`
- sentences: SHA-256 `{record["input"]["digest"]}`
- settings: {", ".join(f"{key} {value}" for key, value in settings.items())}
- made with: {", ".join(f"{tool} {version}" for tool, version in record["versions"].items())}
- digest of the trees: `{record["digest"]}`
{_LOADING}"""
    return dataset_card(
        name,
        text,
        rows=counts["sentences"],
        splits=["rows"],
        license=record.get("license"),
        tasks=["token-classification"],
        tags=["treebank"],
    )


@dataclass
class Parsing:
    """A corpus to parse: the grammar, the sentences, the settings, who parses; and the counts of this call."""

    pcfg: PCFG
    source: ParserInput
    held: Survey  #: by ``source``
    settings: ParseSettings
    workers: Workers
    sentences: int = field(default=0, init=False)  #: sentences that this call has parsed
    seconds: float = field(default=0.0, init=False)  #: duration, the start of workers included
    worker_seconds: float = field(default=0.0, init=False)  #: of all workers together, on those sentences

    @property
    def record(self) -> TreesCall:
        """The record of all that two calls must have in common to make the same trees."""
        packages = {name: metadata.version(name) for name in ("truesource", "numpy", "pyarrow")}
        return {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "settings": self.settings.model_dump(mode="json"),
            "grammar": {"digest": self.pcfg.digest, "sizes": self.pcfg.sizes()},
            "input": {"sentences": self.held.sentences, "words": self.held.words, "digest": self.held.digest},
            "versions": {**packages, "python": platform.python_version()},
        }

    @property
    def shards(self) -> list[Shard]:
        """The files of rows, which do not depend on who parses."""
        return plan_shards({"rows": self.held.sentences}, self.settings.shard_size)

    def write(self, partial: Path, share: Share, *, packed: bool) -> list[TreeShardEntry] | None:
        """Write the shards of a job; return the entries of all, or None while some are missing."""
        parser = ShardParser(pcfg=self.pcfg, settings=self.settings, source=self.source, partial=partial, packed=packed)
        shards, start = self.shards, perf_counter()
        entries = write_missing(parser, shards, self.workers, share, doing="parsing sentences")
        for entry in entries:
            if "seconds" in entry:  # else it was there
                self.sentences += entry["sentences"]
                self.worker_seconds += entry.pop("seconds")
        self.seconds += perf_counter() - start
        return entries if len(entries) == len(shards) else None

    def require_unchanged(self) -> None:
        """Refuse a mix of trees of old and changed sentences.

        Raises:
            InputError: the sentences have changed.
        """
        if survey(self.source) != self.held:
            raise changed(self.source)


def is_file_name(path: Path) -> bool:
    """Return True if a path is a file, or has the name of a file of trees; all others are folders."""
    return path.is_file() or (is_tree_name(path) and not path.is_dir())


def make_trees(
    parsing: Parsing,
    path: Path,
    *,
    share: Share | None = None,
    force: bool = False,
    license: str | None = None,  # noqa: A002
) -> ParsedCorpus | None:
    """Parse into the folder ``path``: ``data/`` with trees and tables, ``record.json``, ``README.md``.

    The bytes depend on grammar, sentences and settings, not on who parses. A stopped call resumes when it is repeated;
    a finished folder of the same call is opened as it is.

    Args:
        parsing: sentences and settings.
        path: folder to make.
        share: of a job that parses only some of the shards; the last job to end makes the folder. None: all.
        force: replace content at ``path``, and a call that another one has begun.
        license: of the trees, for their card, an SPDX identifier; None if unknown.

    Returns:
        The trees; None while shards of other jobs are missing.

    Raises:
        InputError: a bad ``license``, ``path`` holds something else, or trees of another grammar, other sentences or
            other settings; another call has begun it; the disk is full; the sentences change.
    """
    if path.name in ("", ".."):
        raise InputError("name the folder to make", path)

    spdx = None if license is None else checked_license(license)

    def finish(entries: list[TreeShardEntry]) -> None:
        parsing.require_unchanged()
        _finish(parsing, entries, path, spdx)

    if not force:
        _refuse_others(path, parsing.record)
    done = make_folder(
        path,
        parsing.record,
        what=WHAT,
        share=share,
        force=force,
        write=lambda share: parsing.write(place_of(path), share, packed=True),
        finish=finish,
        keep=not force,
        keep_other=not force,
    )
    return ParsedCorpus.load(path) if done else None


def _finish(parsing: Parsing, entries: list[TreeShardEntry], path: Path, spdx: str | None) -> None:
    """Write the record and the card, and move the folder to its place."""
    files = [file for entry in entries for file in files_of(entry)]
    digest = digest_json([[file["file"], file["sha256"]] for file in files])
    call = parsing.record
    if spdx is not None:
        call["license"] = spdx
    full: TreesRecord = {**call, "counts": add_up(entries), "shards": entries, "digest": digest}
    growing = place_of(path)
    write_json(growing / "record.json", full)
    write_text(growing / "README.md", trees_card(path.name, full))
    settle(growing, path, {file["file"] for file in files})


def _refuse_others(path: Path, record: TreesCall) -> None:
    """Refuse finished trees of another request, and name the difference."""
    if (path / "record.json").is_file() and not is_made(path, record):
        keys = ", ".join(differing_keys(path / "record.json", record)) or "record"
        raise InputError(
            f"holds trees of another call ({keys} differ); name another folder, or replace it with --force",
            path,
            code="exists",
        )


@contextmanager
def parts_of_file(parsing: Parsing, path: Path, *, force: bool = False) -> Iterator[ParsedCorpus]:
    """Parse for the file ``path``; yield the trees in its partial folder, which is removed if the block succeeds.

    A stopped call resumes when it is repeated.

    Args:
        parsing: sentences and settings.
        path: the file, which the block writes (`write_joined`).
        force: discard a call that another one has begun.

    Raises:
        InputError: another call has begun it, another process is at work on it, the disk is full, or the sentences
            change.
    """
    partial = place_of(path)
    with exclusive(path):
        with writing(path, "trees"):
            prepare(partial, parsing.record, what="file of trees", keep_other=not force)
            entries = parsing.write(partial, Share(), packed=False)
            assert entries is not None  # all shards are of this job
            parsing.require_unchanged()
        yield ParsedCorpus(partial, entries, parsing.settings.keep_missing)
        discard(partial, path)


def write_joined(parsed: ParsedCorpus, path: Path) -> None:
    """Write the trees of all shards to one file, compressed if its name ends in ``.gz``.

    Raises:
        InputError: it cannot be written.
    """
    with text_file(path, path.suffix == ".gz") as stream:
        for part in parsed.files():
            with part.open("rb") as lines:
                shutil.copyfileobj(lines, stream)
