"""Read Parquet files; kind, shape and size of their content are checked before memory is allocated."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import check_unpacked_size
from truesource.grammar.support.records import decode_record

if TYPE_CHECKING:
    import pyarrow.parquet


_DICTIONARIES = {"PLAIN_DICTIONARY", "RLE_DICTIONARY"}
_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 12, "FLOAT": 4, "DOUBLE": 8}  # bytes
_BATCH = 1024  #: rows
T = TypeVar("T")
Kind = Literal["text", "int", "float", "bool", "ints"]  #: type of a column; ``ints``: lists of integers


def read_table(
    path: str | Path,
    columns: Mapping[str, Kind],
    *,
    what: str = "this file",
    remedy: str,
    rows: int | None = None,
    nullable: Collection[str] = (),
) -> pyarrow.Table:
    """Read some columns of a file; checksums of pages are compared if the file has them.

    Args:
        path: the file.
        columns: the type of each column.
        what: name of the file in messages.
        remedy: end of messages, such as ``"sample the corpus again"``.
        rows: required number of rows; None: any number.
        nullable: columns that may have nulls.

    Raises:
        InputError: the file is missing or damaged, lacks a column, has one of another type or nulls in it, has another
            number of rows, or takes far more memory than its size warrants (see
            `truesource.grammar.support.files.check_unpacked_size`).
    """
    import pyarrow as pa

    path = Path(path)
    result: dict[str, object] = {}
    with _opened(path, columns, what, remedy) as parquet:
        for name, kind in columns.items():
            _check_type(parquet.schema_arrow.field(name), kind)
        if rows is not None and parquet.metadata.num_rows != rows:
            raise InputError(f"it has {parquet.metadata.num_rows} rows, not {rows}")
        check_unpacked_size(_stored_size(parquet.metadata, columns), path)
        table = parquet.read(columns=list(columns))
        for name in columns:
            if name not in nullable and _has_nulls(table.column(name)):
                raise InputError(f"the column {name!r} has empty values")
            result[name] = _decoded(table.column(name), path)
    return pa.table(result)


def read_table_record(path: str | Path, key: str, model: type[T], *, what: str = "this file", remedy: str) -> T:
    """Read the JSON value under a key of the schema's metadata.

    Raises:
        InputError: the file is missing or damaged, has no such key, or its value does not fit the model.
    """
    path = Path(path)
    with _opened(path, (), what, remedy) as parquet:
        content = (parquet.schema_arrow.metadata or {}).get(key.encode())
        if content is None:
            raise InputError(f"its schema has no record {key!r}")
        return decode_record(content, model, what=f"the record in {what}", remedy=remedy, path=path, embedded=True)


def read_texts(path: str | Path, column: str, *, what: str = "this file", remedy: str) -> Iterator[Any]:
    """Yield the values of one column, row by row: strings, unless the column has another type.

    Raises:
        InputError: the file is missing or damaged, lacks the column, or takes far more memory than its size warrants.
    """
    path = Path(path)
    with _opened(path, (column,), what, remedy) as parquet:
        check_unpacked_size(_stored_size(parquet.metadata, (column,)), path)
        size = 0
        for batch in parquet.iter_batches(batch_size=_BATCH, columns=[column]):
            for scalar in batch.column(0):
                value = scalar.as_py()
                size += len(value) if isinstance(value, str) else 0
                check_unpacked_size(size, path)
                yield value


@contextmanager
def _opened(path: Path, columns: Collection[str], what: str, remedy: str) -> Iterator[pyarrow.parquet.ParquetFile]:
    """Open a file that has these columns; errors inside become one sentence."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not path.is_file():
        raise InputError(f"{what} is missing; {remedy}", path)
    try:
        with path.open("rb") as stream:
            metadata = pq.read_metadata(stream)
            names = metadata.schema.to_arrow_schema().names
            for name in columns:
                if name not in names:
                    raise InputError(f"{what} has no column {name!r}; it has {', '.join(names) or 'none'}", path)
                if names.count(name) > 1:
                    raise InputError(f"{what} has the column {name!r} twice; {remedy}", path)
            packed = sorted({chunk.path_in_schema for chunk in _chunks(metadata, columns) if _has_dictionary(chunk)})
            yield pq.ParquetFile(
                stream, metadata=metadata, read_dictionary=packed, page_checksum_verification=True, pre_buffer=False
            )
    except InputError as error:
        if error.path is not None:
            raise
        raise InputError(f"{what} is damaged: {error.reason}; {remedy}", path) from error
    except (OSError, ValueError, KeyError, OverflowError, pa.ArrowException) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(f"{what} is damaged: {reason}; {remedy}", path) from error


def _chunks(metadata: pyarrow.parquet.FileMetaData, columns: Collection[str]) -> Iterator[Any]:
    """Yield the metadata of each chunk of the columns; others are not read, as damage in them can end the process."""
    numbers = [j for j in range(metadata.num_columns) if metadata.schema.column(j).path.split(".")[0] in columns]
    for i in range(metadata.num_row_groups):
        group = metadata.row_group(i)
        yield from (group.column(j) for j in numbers)


def _has_dictionary(chunk: Any) -> bool:
    return chunk.physical_type == "BYTE_ARRAY" and not _DICTIONARIES.isdisjoint(chunk.encodings)


def _stored_size(metadata: pyarrow.parquet.FileMetaData, columns: Collection[str]) -> int:
    """Return bytes of the columns when read, dictionary strings once; for other compressed strings, a bound."""
    size = 0
    for chunk in _chunks(metadata, columns):
        size += chunk.total_uncompressed_size
        if chunk.physical_type in _WIDTHS:
            size += chunk.num_values * _WIDTHS[chunk.physical_type]
        elif _has_dictionary(chunk):
            size += chunk.num_values * 4
        elif "DELTA_BYTE_ARRAY" in chunk.encodings:  # each value may repeat the previous one
            size += chunk.num_values * chunk.total_uncompressed_size
    return size


def _check_type(field: pyarrow.Field, kind: Kind) -> None:
    import pyarrow.types as types

    result = field.type.value_type if types.is_dictionary(field.type) else field.type
    listed = types.is_list(result) or types.is_large_list(result)
    fits = {
        "text": types.is_string(result) or types.is_large_string(result),
        "int": types.is_integer(result),
        "float": types.is_floating(result),
        "bool": types.is_boolean(result),
        "ints": listed and types.is_integer(result.value_type),
    }
    if not fits[kind]:
        raise InputError(f"the column {field.name!r} holds values of type {field.type}")


def _decoded(column: pyarrow.ChunkedArray, path: Path) -> pyarrow.ChunkedArray:
    """Return a column with its dictionary decoded, and all strings of one type."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        import pyarrow.compute as pc

        sizes = [pc.sum(pc.take(pc.binary_length(c.dictionary), c.indices)).as_py() or 0 for c in column.chunks]
        check_unpacked_size(sum(sizes), path)
        column = column.cast(column.type.value_type)
    return column.cast(pa.string()) if pa.types.is_large_string(column.type) else column


def _has_nulls(column: pyarrow.ChunkedArray) -> bool:
    import pyarrow.types as types

    if types.is_list(column.type) or types.is_large_list(column.type):
        return bool(column.null_count) or any(chunk.flatten().null_count for chunk in column.chunks)
    return bool(column.null_count)
