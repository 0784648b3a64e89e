"""Reading the files of a corpus, or of samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grammar.errors import InputError
from grammar.files import digest_file

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


def verify_shards(folder: Path, shards: Sequence[Mapping[str, Any]], damage: str) -> None:
    """Compare the digest of every shard of a record with its file.

    Raises:
        InputError: a file has changed; ``damage`` is the message.
    """
    for shard in shards:
        file = folder / "data" / shard["file"]
        if digest_file(file) != shard["sha256"]:
            raise InputError(damage, file)
