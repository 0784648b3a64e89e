"""Many rows of numbers as files: those of tokens, words and documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from truesource.grammar.support.files import atomic_path


def write_columns(path: Path, columns: Mapping[str, Any]) -> None:
    """Write columns of one length as CSV or Parquet, as the ending of the file says; numbers have all their digits.

    Args:
        path: .csv or .parquet.
        columns: arrays or lists, by name; None where nothing was measured.
    """
    import pyarrow as pa

    made = pa.table(dict(columns))
    with atomic_path(path) as partial:
        if path.suffix.lower() == ".csv":
            made.to_pandas(types_mapper=_nullable).to_csv(partial, index=False, lineterminator="\n")
        else:
            import pyarrow.parquet as pq

            pq.write_table(made, partial, compression="zstd")


def as_columns(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Rows as columns; None where a row has no such entry."""
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}


def _nullable(kind: Any) -> Any:
    """Columns of whole numbers stay whole numbers where some are missing."""
    import pandas as pd
    import pyarrow as pa

    return pd.Int64Dtype() if pa.types.is_integer(kind) else None
