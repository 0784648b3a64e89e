"""Reading the files of a corpus."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from grammar.errors import InputError

if TYPE_CHECKING:
    import pyarrow


def read_columns(path: Path, columns: list[str]) -> pyarrow.Table:
    """Some columns of one shard, checksums compared.

    Raises:
        InputError: the file is missing, damaged, or has not these columns.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.read_table(path, columns=columns, page_checksum_verification=True, partitioning=None)
    except (OSError, pa.ArrowException) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"cannot read this part of the corpus: {reason}; sample it again", path) from error
