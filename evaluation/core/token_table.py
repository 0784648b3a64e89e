"""The per-token table: one row a scored position, as Parquet."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from truesource.evaluation.measures.paired import Paired
from truesource.generator.interface.frame import END
from truesource.grammar.support.files import atomic_path
from truesource.grammar.tables import Kind, read_table


def write_token_table(path: str | Path, paired: Paired, sentences: Sequence[Sequence[str]]) -> None:
    """Columns sentence, position (the last + 1 is the end of the sentence), token, model, oracle (nats)."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    words = [
        sentences[s][p] if p < len(sentences[s]) else END
        for s, p in zip(paired.sentence.tolist(), paired.position.tolist(), strict=True)
    ]
    table = pa.table(
        {
            "sentence": paired.sentence,
            "position": paired.position,
            "token": pa.array(words).dictionary_encode(),
            "model": paired.model,
            "oracle": paired.oracle,
        }
    )
    with atomic_path(path) as temporary:
        pq.write_table(table, temporary, compression="zstd")


def read_token_table(path: str | Path) -> dict[str, np.ndarray]:
    """The numeric columns of a table that `write_token_table` wrote.

    Raises:
        InputError: it is missing or damaged.
    """
    columns: dict[str, Kind] = {"sentence": "int", "position": "int", "model": "float", "oracle": "float"}
    table = read_table(path, columns, what="this table of scores", remedy="score the model again")
    return {name: table.column(name).to_numpy() for name in table.column_names}
