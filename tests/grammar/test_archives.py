"""Arrays, tables and packed text from disk: kind, shape and size are checked before memory is taken."""

from __future__ import annotations

import gzip
import io
import struct
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from truesource.grammar.support import files as unpacking
from truesource.grammar.support.archives import BYTES, FLOATS, TEXT, ArrayKind, integers, read_arrays
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import read_bytes, read_lines
from truesource.grammar.support.parquet import Kind, read_table, read_texts

KINDS = {"rules": integers(3), "logp": FLOATS, "head": BYTES, "state": TEXT}
ARRAYS: dict[str, Any] = {
    "rules": np.arange(12, dtype=np.int32).reshape(4, 3),
    "logp": np.linspace(-1.0, 0.0, 4),
    "head": np.frombuffer(b"{}", dtype=np.uint8),
    "state": np.array('{"ä": 1}'),
}


def peak(function: Callable[[], Any]) -> int:
    """Most bytes that Python and numpy hold during a call."""
    tracemalloc.start()
    try:
        function()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def refused(function: Callable[[], Any]) -> str:
    with pytest.raises(InputError) as caught:
        function()
    assert "\n" not in str(caught.value)
    return str(caught.value)


# -- npz ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_arrays_come_back_as_they_were_saved(save: Any, tmp_path: Path) -> None:
    save(tmp_path / "a.npz", **ARRAYS, other=np.zeros(3))
    found = read_arrays(tmp_path / "a.npz", KINDS, remedy="make it again")
    assert found.keys() == KINDS.keys()
    for name, array in ARRAYS.items():
        assert found[name].dtype == array.dtype and found[name].shape == array.shape
        assert (found[name] == array).all() and found[name].flags.writeable


def test_other_byte_orders_and_orders_of_axes_are_read(tmp_path: Path) -> None:
    table = np.asfortranarray(np.arange(12).reshape(4, 3).astype(">i4"))
    np.savez(tmp_path / "a.npz", rules=table, empty=np.zeros((0, 3), dtype=np.int64))
    found = read_arrays(tmp_path / "a.npz", {"rules": integers(3), "empty": integers(3)}, remedy="r")
    assert (found["rules"] == table).all() and found["rules"].dtype == np.dtype("i4")
    assert found["empty"].shape == (0, 3)


@pytest.mark.parametrize(
    "changed",
    [
        {"rules": np.zeros((4, 3))},
        {"rules": np.zeros((4, 3), dtype=complex)},
        {"rules": np.zeros((4, 2), dtype=np.int32)},
        {"rules": np.zeros(12, dtype=np.int32)},
        {"rules": np.zeros((4, 3), dtype=bool)},
        {"logp": np.zeros(4, dtype=complex)},
        {"logp": np.zeros(4, dtype=np.int64)},
        {"logp": np.zeros(4, dtype="datetime64[s]")},
        {"logp": np.array(0.5)},
        {"logp": np.array(["0.5"])},
        {"logp": np.array([{}], dtype=object)},
        {"logp": np.zeros(4, dtype=[("a", "f8")])},
        {"state": np.array(["a", "b"])},
        {"state": np.array(b"a")},
    ],
)
def test_an_array_of_another_kind_is_refused(changed: dict[str, Any], tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", **{**ARRAYS, **changed})
    message = refused(lambda: read_arrays(tmp_path / "a.npz", KINDS, what="the file", remedy="make it again"))
    name = next(iter(changed))
    assert message.startswith(f"the file is damaged: the array {name} is not as expected")
    assert message.endswith(f"; make it again ({tmp_path / 'a.npz'})")


def test_missing_files_and_arrays_and_doubled_ones_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    assert "is missing" in refused(lambda: read_arrays(path, KINDS, remedy="r"))
    np.savez(path, rules=ARRAYS["rules"])
    assert "has no array logp" in refused(lambda: read_arrays(path, {"rules": integers(3), "logp": FLOATS}, remedy="r"))
    content = io.BytesIO()
    np.save(content, ARRAYS["rules"])
    with pytest.warns(UserWarning, match="Duplicate name"), zipfile.ZipFile(path, "a") as archive:
        archive.writestr("rules.npy", content.getvalue())
    assert "more than once" in refused(lambda: read_arrays(path, {"rules": integers(3)}, remedy="r"))
    path.write_bytes(b"no archive")
    assert "is damaged; r" in refused(lambda: read_arrays(path, KINDS, remedy="r"))


def npz_with_header(path: Path, header: str, body: bytes) -> None:
    """An archive of one array whose header is written by hand."""
    text = header.encode() + b"\n"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + body)


@pytest.mark.parametrize("shape", ["(13421772800,)", "(10,)", "(-1,)", "(2, -4)", "(True,)", "(99999999999999999999,)"])
def test_a_header_that_claims_another_size_takes_no_memory(shape: str, tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    npz_with_header(path, f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}}}", b"\0" * 64)
    assert peak(lambda: refused(lambda: read_arrays(path, {"x": FLOATS}, remedy="r"))) < 2**20


@pytest.mark.long
def test_an_array_that_unpacks_to_far_more_than_the_file_takes_no_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unpacking, "ALWAYS_ALLOWED", 2**20)
    path = tmp_path / "a.npz"
    np.savez_compressed(path, x=np.zeros(10_000_000))
    assert peak(lambda: refused(lambda: read_arrays(path, {"x": FLOATS}, remedy="r"))) < 2**20
    np.savez(path, x=np.zeros(200_000))  # as large on the disk as in memory
    assert len(read_arrays(path, {"x": FLOATS}, remedy="r")["x"]) == 200_000


def test_an_archive_whose_directory_lies_about_the_size_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez_compressed(path, x=np.zeros(1000))
    content = bytearray(path.read_bytes())
    entry = content.rindex(b"PK\x01\x02")
    for claim in (8, 500, 2**31):
        content[entry + 24 : entry + 28] = struct.pack("<I", claim)
        path.write_bytes(content)
        refused(lambda: read_arrays(path, {"x": FLOATS}, remedy="r"))


@pytest.mark.long
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data(), st.sampled_from([np.savez, np.savez_compressed]))
def test_any_change_of_bytes_is_read_or_refused(tmp_path: Path, data: st.DataObject, save: Any) -> None:
    path = tmp_path / "a.npz"
    save(path, **ARRAYS)
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content[: data.draw(st.integers(len(content) // 2, len(content)))])
    try:
        found = read_arrays(path, KINDS, remedy="r")
    except InputError:
        return
    for name, kind in KINDS.items():
        assert kind.refusal(found[name].dtype, found[name].shape) is None


def test_kinds_say_what_is_wrong() -> None:
    kind = ArrayKind("f", (3, None))
    assert kind.refusal(np.dtype(float), (3, 7)) is None
    assert "shape (2, 7)" in str(kind.refusal(np.dtype(float), (2, 7)))
    assert "int" in str(kind.refusal(np.dtype(int), (3, 7)))


# -- Parquet --------------------------------------------------------------------------------------------

TABLE = pa.table(
    {
        "text": ["a b", "c"],
        "n": pa.array([2, 1], pa.int32()),
        "p": [-0.5, -1.5],
        "ok": [True, False],
        "tree": pa.array([[1, -2], [3]], pa.list_(pa.int32())),
        "hole": pa.array([1.0, None]),
    }
)
COLUMNS: dict[str, Kind] = {"text": "text", "n": "int", "p": "float", "ok": "bool", "tree": "ints"}


@pytest.mark.parametrize("dictionary", [True, False])
def test_columns_come_back_as_they_were_written(dictionary: bool, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(TABLE, path, use_dictionary=dictionary, row_group_size=1)
    assert read_table(path, COLUMNS, rows=2, remedy="r").equals(TABLE.select(list(COLUMNS)))
    assert read_table(path, {"tree": "ints", "text": "text"}, remedy="r").column_names == ["tree", "text"]
    assert read_table(path, {"hole": "float"}, nullable={"hole"}, remedy="r").column("hole").to_pylist() == [1.0, None]
    assert list(read_texts(path, "text", remedy="r")) == ["a b", "c"]


@pytest.mark.parametrize("kind", [pa.large_string(), pa.dictionary(pa.int32(), pa.string())])
def test_texts_of_other_types_are_spelled_out(kind: Any, tmp_path: Path) -> None:
    table = pa.table({"text": pa.array(["a", "b", "a"]).cast(kind)})
    pq.write_table(table, tmp_path / "a.parquet")
    found = read_table(tmp_path / "a.parquet", {"text": "text"}, remedy="r").column("text")
    assert found.type == pa.string() and found.to_pylist() == ["a", "b", "a"]


@pytest.mark.parametrize(
    ("columns", "rows", "reason"),
    [
        ({"text": "int"}, None, "'text' holds values of type"),
        ({"n": "text"}, None, "'n' holds values of type int32"),
        ({"p": "int"}, None, "'p' holds"),
        ({"tree": "int"}, None, "'tree' holds"),
        ({"text": "ints"}, None, "'text' holds"),
        ({"hole": "float"}, None, "'hole' has empty values"),
        ({"n": "int"}, 3, "it has 2 rows, not 3"),
    ],
)
def test_a_table_of_another_schema_is_refused(
    columns: dict[str, Kind], rows: int | None, reason: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(TABLE, path)
    message = refused(lambda: read_table(path, columns, rows=rows, what="this part", remedy="sample it again"))
    assert message.startswith("this part is damaged: ") and reason in message
    assert message.endswith(f"; sample it again ({path})")


def test_a_table_without_the_column_says_what_it_has(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(TABLE, path)
    message = refused(lambda: read_table(path, {"none": "float"}, what="this part", remedy="r"))
    assert message == f"this part has no column 'none'; it has text, n, p, ok, tree, hole ({path})"


def test_empty_values_inside_lists_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"tree": pa.array([[1, None]], pa.list_(pa.int32()))}), path)
    assert "empty values" in refused(lambda: read_table(path, {"tree": "ints"}, remedy="r"))


BOMBS: dict[str, tuple[pa.Table, Kind, dict[str, Any]]] = {
    "dictionary": (pa.table({"x": ["x" * 100_000] * 1000}), "text", {}),
    "numbers": (pa.table({"x": np.zeros(10_000_000, dtype=np.int64)}), "int", {}),
    "zstd": (pa.table({"x": np.zeros(10_000_000)}), "float", {"compression": "zstd", "use_dictionary": False}),
    "prefixes": (
        pa.table({"x": ["x" * 100_000 + str(i) for i in range(1000)]}),
        "text",
        {"use_dictionary": False, "column_encoding": {"x": "DELTA_BYTE_ARRAY"}},
    ),
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_table_that_unpacks_to_far_more_than_the_file_takes_no_memory(
    bomb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unpacking, "ALWAYS_ALLOWED", 2**24)
    path = tmp_path / "a.parquet"
    table, kind, how = BOMBS[bomb]
    pq.write_table(table, path, **how)
    assert path.stat().st_size * 100 < table.nbytes
    before = pa.default_memory_pool().bytes_allocated()
    pool = pa.system_memory_pool()
    pa.set_memory_pool(pool)
    try:
        message = refused(lambda: read_table(path, {"x": kind}, remedy="r"))
        assert pool.max_memory() - before < 2**24
    finally:
        pa.set_memory_pool(pa.default_memory_pool())
    assert "unpacks to" in message
    if kind == "text":
        assert "unpacks to" in refused(lambda: sum(map(len, read_texts(path, "x", remedy="r"))))


def test_missing_and_damaged_tables_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    assert "is missing" in refused(lambda: read_table(path, {"x": "int"}, remedy="r"))
    path.write_bytes(b"")
    assert "is damaged" in refused(lambda: read_table(path, {"x": "int"}, remedy="r"))
    path.write_bytes(b"PAR1 nothing PAR1")
    assert "is damaged" in refused(lambda: list(read_texts(path, "x", remedy="r")))


@pytest.mark.long
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.data())
def test_any_change_of_bytes_of_a_table_is_read_or_refused(tmp_path: Path, data: st.DataObject) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(TABLE, path, write_page_checksum=True)
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content)
    try:
        found = read_table(path, COLUMNS, rows=2, remedy="r")
    except InputError as error:
        assert "\n" not in str(error)
        return
    assert found.num_rows == 2


# -- text -----------------------------------------------------------------------------------------------


@given(st.lists(st.text(alphabet="ab\r é", max_size=6)), st.booleans(), st.booleans())
def test_lines_are_those_of_the_whole_text(lines: list[str], packed: bool, ended: bool) -> None:
    content = ("\n".join(lines) + "\n" * ended).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(unpacking, "_CHUNK", 3)
        path = _file(gzip.compress(content) if packed else content)
        try:
            assert read_bytes(path) == content
            found = content.split(b"\n")
            assert list(read_lines(path)) == (found if found[-1] else found[:-1])
        finally:
            path.unlink()


def _file(content: bytes) -> Path:
    import tempfile

    with tempfile.NamedTemporaryFile(delete=False) as stream:
        stream.write(content)
    return Path(stream.name)


@pytest.mark.long
def test_packed_text_that_unpacks_to_far_more_is_refused_on_the_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unpacking, "ALWAYS_ALLOWED", 2**22)
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(b"a\n" * 2**26))
    assert peak(lambda: refused(lambda: read_bytes(path))) < 2**24
    assert peak(lambda: refused(lambda: sum(map(len, read_lines(path))))) < 2**26
    path.write_bytes(gzip.compress(b"a\n" * 2**20))
    assert len(read_bytes(path)) == 2**21


def test_a_line_and_a_file_have_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(b"a" * 2**24))
    assert peak(lambda: refused(lambda: read_bytes(path, line_limit=2**21))) < 2**23
    assert "larger than 2,097,152 bytes" in refused(lambda: read_bytes(path, limit=2**21, line_limit=None))
    monkeypatch.setattr(unpacking, "LINE_LIMIT", 2**21)
    assert "a line is longer than 2,097,152 bytes" in refused(lambda: list(read_lines(path)))


@pytest.mark.parametrize(
    "content",
    [gzip.compress(b"abc" * 1000, mtime=0)[:-9], b"\x1f\x8bno", gzip.compress(b"a", mtime=0)[:-5] + b"12345"],
    ids=["cut short", "no more than a head", "wrong sum"],
)
def test_damaged_gzip_files_are_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(content)
    assert "the gzip file is damaged" in refused(lambda: read_bytes(path))
    assert "no such file" in refused(lambda: read_bytes(tmp_path / "none"))
    assert "cannot read the file: Is a directory" in refused(lambda: read_bytes(tmp_path))
