"""Exact scores of large sets of sentences, written part by part: resumable, and shared out among jobs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluation.bound import sentence_records
from evaluation.score import digest_sentences
from grammar.conditioning import LengthRange
from grammar.errors import InputError
from grammar.files import atomic_path, write_json
from grammar.pcfg import PCFG

PART_SIZE = 5000  #: sentences a file
END = "</s>"


@dataclass(frozen=True)
class Share:
    """Part number k belongs to job ``index`` of ``of`` when ``k % of == index``; 0 <= index < of."""

    index: int = 0
    of: int = 1

    @classmethod
    def parse(cls, text: str) -> Share:
        """``0/4`` is the first of four.

        Raises:
            InputError: it is not written like that.
        """
        index, separator, of = text.partition("/")
        if not (separator and index.isdecimal() and of.isdecimal() and int(index) < int(of)):
            raise InputError(f"a shard is written i/n with i from 0 to n-1, such as 0/4, got {text!r}")
        return cls(int(index), int(of))


def score_in_parts(
    pcfg: PCFG,
    sentences: Sequence[Sequence[str]],
    folder: Path,
    *,
    lengths: LengthRange | None,
    causal: bool = True,
    masked: bool = True,
    dtype: str = "float64",
    share: Share | None = None,
    part_size: int = PART_SIZE,
) -> list[dict[str, Any]] | None:
    """Write ``part-00000.parquet`` and so on into ``folder``, one row a token; parts that stand there are kept.

    Columns: sentence, position (n is the end of a sentence of n tokens), token, and what was asked for of surprisal
    and masked_logprob (nats; null where impossible, and masked_logprob null at the end). Each part appears when
    complete, so after Ctrl-C or a kill the same call goes on.

    Returns:
        The records of all sentences as `evaluation.bound.sentence_records` gives them; None while parts of other
        jobs are missing.

    Raises:
        InputError: ``folder`` holds parts of other sentences, another grammar or other settings, or cannot be
            written.
    """
    share = share or Share()
    plan = {
        "grammar": pcfg.digest,
        "sentences": len(sentences),
        "data": digest_sentences(sentences),
        "lengths": None if lengths is None else str(lengths),
        "causal": causal,
        "masked": masked,
        "dtype": dtype,
        "part_size": part_size,
    }
    try:
        _claim(folder, plan)
        starts = range(0, len(sentences), part_size)
        paths = [folder / f"part-{k:05d}.parquet" for k in range(len(starts))]
        for k, start in enumerate(starts):
            if k % share.of == share.index and not paths[k].exists():
                some = sentences[start : start + part_size]
                records = sentence_records(pcfg, some, lengths=lengths, causal=causal, masked=masked, dtype=dtype)
                _write(paths[k], records, start, causal, masked)
    except OSError as error:
        raise InputError(
            f"cannot write the scores: {error.strerror or error}; the same call goes on from what stands there", folder
        ) from error
    if not all(path.exists() for path in paths):
        return None
    return [record for path in paths for record in _read(path, causal, masked)]


def _claim(folder: Path, plan: dict[str, Any]) -> None:
    record = folder / "record.json"
    if record.exists():
        try:
            same = json.loads(record.read_text(encoding="utf-8")) == plan
        except ValueError:
            same = False
        if not same:
            raise InputError("holds scores of other sentences, another grammar or other settings; name another", folder)
        return
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError("exists and holds no unfinished scores; name another folder", folder)
    folder.mkdir(parents=True, exist_ok=True)
    write_json(record, plan)


def _write(path: Path, records: Sequence[dict[str, Any]], first: int, causal: bool, masked: bool) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns: dict[str, Any] = {
        "sentence": [first + i for i, r in enumerate(records) for _ in range(len(r["tokens"]) + 1)],
        "position": [j for r in records for j in range(len(r["tokens"]) + 1)],
        "token": pa.array([t for r in records for t in (*r["tokens"], END)], pa.string()).dictionary_encode(),
    }
    if causal:
        columns["surprisal"] = pa.array(
            [x for r in records for x in (*r["surprisal"], r["stop_surprisal"])], pa.float64()
        )
    if masked:
        columns["masked_logprob"] = pa.array([x for r in records for x in (*r["masked_logprob"], None)], pa.float64())
    with atomic_path(path) as temporary:
        pq.write_table(pa.table(columns), temporary, compression="zstd")


def _read(path: Path, causal: bool, masked: bool) -> list[dict[str, Any]]:
    import math

    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path)
        position = table.column("position").to_numpy()
        token = table.column("token").cast(pa.string()).to_pylist()
        surprisal = table.column("surprisal").to_pylist() if causal else []
        one_masked = table.column("masked_logprob").to_pylist() if masked else []
    except (pa.ArrowInvalid, KeyError) as error:
        raise InputError("is damaged; delete it and run again", path) from error
    records = []
    starts = [i for i, p in enumerate(position.tolist()) if p == 0]
    for start, stop in zip(starts, [*starts[1:], len(position)], strict=True):
        record: dict[str, Any] = {"tokens": token[start : stop - 1], "possible": True}
        if causal:
            row = surprisal[start:stop]
            record["possible"] = None not in row
            record["logprob"] = -math.fsum(row) if None not in row else None
            record["surprisal"], record["stop_surprisal"] = row[:-1], row[-1]
        if masked:
            record["masked_logprob"] = one_masked[start : stop - 1]
            record["possible"] = record["possible"] and None not in record["masked_logprob"]
        records.append(record)
    return records
