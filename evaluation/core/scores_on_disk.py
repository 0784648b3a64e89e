"""Exact scores of large sets of sentences, written part by part: resumable, by many workers, shared out among jobs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from truesource.evaluation.core.exclusion import Exclusion, disjoint_part
from truesource.evaluation.core.sentence_records import (
    GIVEN_LENGTH,
    DeviceCharts,
    GivenLength,
    SentenceRecord,
    sentence_records,
    token_columns,
)
from truesource.evaluation.core.signature import digest_sentences
from truesource.generator.language_model import END
from truesource.generator.plan import Transform
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.inference.exact import Variant
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.atomic_files import atomic_path, remove_leftovers, write_json
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.locks import exclusive
from truesource.grammar.support.parallel import Share, Workers, run_each
from truesource.grammar.support.parquet import Kind, read_table
from truesource.grammar.support.printable import meter
from truesource.grammar.support.records import holds
from truesource.grammar.truth import Truth

PART_SIZE = 5000  #: sentences a file


@dataclass(frozen=True)
class _Part:
    """A file and the sentences that go into it; ``first`` is the number of the first."""

    path: Path
    first: int
    sentences: Sequence[Sequence[str]]


@dataclass(frozen=True)
class _Scoring:
    """Settings of the scores of all parts, and of their files."""

    records: Callable[[Sequence[Sequence[str]]], list[SentenceRecord]]  #: of some sentences
    causal: str | None  #: column of causal scores, of tokens or of whole sentences
    given_length: tuple[GivenLength, ...]  #: columns of the other scores

    def write(self, part: _Part) -> int:
        """Score a part and write it; return the number of sentences."""
        try:
            _write(part.path, self.records(part.sentences), part.first, self.causal, self.given_length)
        except OSError as error:
            raise _unwritable(part.path.parent, error) from error
        return len(part.sentences)


def score_in_parts(
    truth: Truth,
    sentences: Sequence[Sequence[str]],
    folder: Path,
    *,
    lengths: LengthRange | None,
    causal: bool = True,
    masked: bool = True,
    any_order: bool = False,
    dtype: str = "float64",
    share: Share | None = None,
    workers: Workers | None = None,
    part_size: int = PART_SIZE,
    excluded: Exclusion | None = None,
    variant: Variant = "default",
    transform: Transform | None = None,
    device: str | None = None,
    charts: Callable[[PCFG], DeviceCharts] | None = None,
) -> list[SentenceRecord] | None:
    """Write ``part-00000.parquet`` and so on into ``folder``, one row a token; existing parts are kept.

    Columns: sentence, position (n is the end of a sentence of n tokens), token, and the requested scores of surprisal,
    masked_logprob and any_order_logprob (nats; null where impossible, and the last two null at the end). Of
    transformed text, sentence_surprisal replaces surprisal, at the end of each sentence, null elsewhere.
    Each part appears when complete, so after Ctrl-C or a kill the same call resumes. Each part is written by one of
    the ``workers``, with the same bytes; workers of a cluster must see ``folder`` under the same path. Scores by
    ``charts`` of a ``device`` differ by rounding, so parts of another device are refused.

    Returns:
        The records of all sentences as `sentence_records.sentence_records` gives them; None while parts of other
        jobs are missing.

    Raises:
        InputError: ``folder`` holds parts of other sentences, another grammar or other settings, or cannot be
            written; parts that workers wrote do not appear here; or as `truesource.grammar.support.parallel.run_each`.
    """
    plan = {
        "grammar": truth.digest,
        "sentences": len(sentences),
        "data": digest_sentences(sentences),
        "lengths": None if lengths is None else str(lengths),
        "causal": causal,
        "masked": masked,
        **({"any_order": True} if any_order else {}),
        "dtype": dtype,
        "part_size": part_size,
        **disjoint_part(excluded),
        **({} if variant == "default" else {"variant": variant}),
        **({} if transform is None else {"transform": str(transform)}),
        **({} if device is None else {"device": device}),
    }
    folder = folder.absolute()
    records = partial(
        sentence_records,
        truth,
        lengths=lengths,
        causal=causal,
        masked=masked,
        any_order=any_order,
        dtype=dtype,
        excluded=excluded,
        variant=variant,
        transform=transform,
        charts=charts,
    )
    column = None if not causal else "surprisal" if transform is None else "sentence_surprisal"
    requested = {"masked": masked, "any-order": any_order}
    scoring = _Scoring(records, column, tuple(name for kind, name in GIVEN_LENGTH.items() if requested[kind]))
    if share is not None:
        with exclusive(folder, wait=True):
            _claim(folder, plan)
        return _score(scoring, sentences, folder, share, workers, part_size)
    with exclusive(folder):
        _claim(folder, plan)
        return _score(scoring, sentences, folder, Share(), workers, part_size)


def _score(
    scoring: _Scoring,
    sentences: Sequence[Sequence[str]],
    folder: Path,
    share: Share,
    workers: Workers | None,
    part_size: int,
) -> list[SentenceRecord] | None:
    """Write the missing parts of a job; return all records, or None while parts of other jobs are missing."""
    starts = range(0, len(sentences), part_size)
    paths = [folder / f"part-{k:05d}.parquet" for k in range(len(starts))]
    missing = [
        _Part(paths[k], start, sentences[start : start + part_size])
        for k, start in enumerate(starts)
        if share.owns(k) and not paths[k].exists()
    ]
    for part in missing:
        remove_leftovers(part.path)
    with (
        meter("scoring sentences", total=sum(len(part.sentences) for part in missing)) as progress,
        closing(run_each(scoring.write, missing, workers)) as written,
    ):
        for number, count in enumerate(written, start=1):
            progress.advance(count, f"part {number:,} of {len(missing):,}")
    for part in missing:
        remove_leftovers(part.path)  # of a worker of a cluster that died while another continued
    there = {path.name for path in folder.iterdir()}  # a network file system may answer `exists` from its cache
    if any(part.path.name not in there for part in missing):
        raise InputError("does not show what the workers wrote; name a folder on a file system that all share", folder)
    if any(path.name not in there for path in paths):
        return None
    parts = [sentences[start : start + part_size] for start in starts]
    return [
        record
        for path, part in zip(paths, parts, strict=True)
        for record in _read(path, part, scoring.causal, scoring.given_length)
    ]


def _unwritable(folder: Path, error: OSError) -> InputError:
    return InputError(
        f"cannot write the scores: {error.strerror or error}; the same call resumes from the finished parts", folder
    )


def _claim(folder: Path, plan: Mapping[str, object]) -> None:
    try:
        _prepare(folder, plan)
    except OSError as error:
        raise _unwritable(folder, error) from error


def _prepare(folder: Path, plan: Mapping[str, object]) -> None:
    record = folder / "record.json"
    remove_leftovers(record)
    others = folder.exists() and (not folder.is_dir() or any(not p.name.startswith(".") for p in folder.iterdir()))
    if record.exists():
        if not holds(record, plan):
            raise InputError("holds scores of other sentences, another grammar or other settings; name another", folder)
        return
    if others:
        raise InputError("exists and holds no unfinished scores; name another folder", folder)
    folder.mkdir(parents=True, exist_ok=True)
    write_json(record, plan)


def _write(
    path: Path, records: Sequence[SentenceRecord], first: int, causal: str | None, others: Sequence[str]
) -> None:
    """Write a row for each token; ``causal`` names the column of causal scores, ``others`` the other scores."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    numbers = [*([] if causal is None else [causal]), *others]
    columns = token_columns(records, first, of=numbers)
    arrays = {name: pa.array(columns[name], pa.float64()) for name in numbers}
    arrays["token"] = pa.array(columns["token"], pa.string()).dictionary_encode()
    with atomic_path(path) as temporary:
        pq.write_table(pa.table(columns | arrays), temporary, compression="zstd")


def _read(
    path: Path, sentences: Sequence[Sequence[str]], causal: str | None, others: Sequence[GivenLength]
) -> list[SentenceRecord]:
    """Return the records of the sentences of a part."""
    columns: dict[str, Kind] = {"position": "int", "token": "text"}
    numbers = [*([] if causal is None else [causal]), *others]
    columns |= dict.fromkeys(numbers, "float")
    remedy = "delete it and run again"
    rows = sum(len(sentence) + 1 for sentence in sentences)
    table = read_table(path, columns, what="this part of the scores", remedy=remedy, rows=rows, nullable=numbers)
    if table.column("token").to_pylist() != [token for sentence in sentences for token in (*sentence, END)]:
        raise InputError(f"this part of the scores is damaged: it has other tokens; {remedy}", path)
    surprisal = table.column(causal).to_pylist() if causal is not None else []
    of_words = {name: table.column(name).to_pylist() for name in others}
    records = []
    start = 0
    for sentence in sentences:
        stop = start + len(sentence) + 1
        record: SentenceRecord = {"tokens": list(sentence), "possible": True}
        if causal is not None:
            row = surprisal[start:stop] if causal == "surprisal" else surprisal[stop - 1 : stop]
            record["possible"] = None not in row
            record["logprob"] = -math.fsum(row) if None not in row else None
            if causal == "surprisal":
                record["surprisal"], record["stop_surprisal"] = row[:-1], row[-1]
        for name, values in of_words.items():
            record[name] = row = values[start : stop - 1]
            record["possible"] = record["possible"] and None not in row
        records.append(record)
        start = stop
    return records
