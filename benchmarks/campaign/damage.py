"""Damage to files: bytes of any file, and values inside JSON, YAML, npz, Parquet and safetensors files."""

from __future__ import annotations

import gzip
import io
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

Damage = Callable[[bytes, random.Random], bytes]

#: values that stand in for another; DEEP is written as nested brackets
DEEP = object()
VALUES: list[Any] = [
    *(None, True, False, 0, -1, 1, 2**31, 2**63, 10**400, 1.5, -0.0, 1e308, float("nan"), float("inf")),
    *("", " ", "x", "-1", "nan", "../../x", "/etc/passwd", "a/b", "\ud800", "\x00", "\x1b[31m", "[/red]", "<script>"),
    *("\u202e", "x" * 100_000, [], {}, [None], [[]], {"": None}, {"x": 1}, [1, "a", None], DEEP),
]
#: what is inserted
JUNK = (
    *(b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b"\x80", b"\r", b"\n\n", b"\x1b[2J", b"[" * 100_000, b"9" * 6000),
    *(b"(", b")", b"'", b'"', b"{", b"}", b"%", b" -> ", b"|", b"\t", b",", b"\x0c", "\u2028".encode()),
)
OTHERS = (b"", b"{}", b"[]", b"null", b"PK\x03\x04", b"PAR1", b"\x1f\x8b", b"\x93NUMPY")  #: starts of other files
#: what a word of a text becomes
ODD_WORDS = (
    *("", "(", ")", "((", "'", "''", "->", "|", "0", "-1", "1e999", "nan", "%label", "\x1b[31mred", "x" * 200_000),
    *("\ufeff", "\u2028", "<script>", "[/red]", "\\", "\x00", "9" * 5000),
)


def flip(data: bytes, rng: random.Random) -> bytes:
    """One to eight bits."""
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 8))):
        if changed:
            changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def truncate(data: bytes, rng: random.Random) -> bytes:
    """The end is missing."""
    return data[: rng.choice((0, 1, len(data) // 2, max(0, len(data) - 1), rng.randrange(len(data) + 1)))]


def cut_out(data: bytes, rng: random.Random) -> bytes:
    """A part of the middle is missing."""
    first, last = sorted(rng.randrange(len(data) + 1) for _ in range(2))
    return data[:first] + data[last:]


def insert(data: bytes, rng: random.Random) -> bytes:
    """Other bytes inside."""
    place = rng.randrange(len(data) + 1)
    junk = rng.choice((*JUNK, rng.randbytes(rng.randrange(1, 200))))
    return data[:place] + junk + data[place:]


def repeat(data: bytes, rng: random.Random) -> bytes:
    """A part stands twice."""
    first, last = sorted(rng.randrange(len(data) + 1) for _ in range(2))
    return data[:last] + data[first:]


def blank(data: bytes, rng: random.Random) -> bytes:
    """A part is zero, as after a crash of a file system."""
    first, last = sorted(rng.randrange(len(data) + 1) for _ in range(2))
    return data[:first] + bytes(last - first) + data[last:]


def other(data: bytes, rng: random.Random) -> bytes:
    """Another kind of file under this name."""
    return rng.choice(
        (b"", b"{}", b"[]", b"null", b"PK\x03\x04", b"PAR1", b"\x1f\x8b", b"\x93NUMPY", rng.randbytes(500))
    )


def with_mark(data: bytes, rng: random.Random) -> bytes:
    """A byte order mark, or UTF-16."""
    return b"\xef\xbb\xbf" + data if rng.random() < 0.5 else data.decode("latin-1").encode("utf-16")


ANY: list[Damage] = [flip, flip, truncate, cut_out, insert, insert, repeat, blank, other, with_mark]


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) of a JSON value."""
    found: list[tuple[Any, Any]] = []
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in inside:
        found.append((value, key))
        found += _places(inner)
    return found


def change_value(value: Any, rng: random.Random) -> Any:
    """A JSON value with one entry replaced, removed, added or renamed."""
    places = _places(value)
    if not places:
        return rng.choice(VALUES)
    container, key = rng.choice(places)
    how = rng.choice(("replace", "replace", "replace", "remove", "add"))
    if how == "remove":
        del container[key]
    elif how == "add" and isinstance(container, dict):
        container[rng.choice(("extra", "", "__proto__", "\n# x"))] = rng.choice(VALUES)
    else:
        container[key] = rng.choice(VALUES)
    return value


def dump(value: Any) -> str:
    """JSON, not checked: NaN and lone surrogates are written; `DEEP` becomes 100,000 brackets."""
    text = json.dumps(value, default=lambda _: "@deep@")
    return text.replace('"@deep@"', "[" * 100_000 + "]" * 100_000)


def in_json(data: bytes, rng: random.Random) -> bytes:
    """One value of a JSON file."""
    return dump(change_value(json.loads(data), rng)).encode("utf-8")


def in_json_lines(data: bytes, rng: random.Random) -> bytes:
    """One value of one line."""
    lines = data.decode("utf-8").splitlines()
    chosen = rng.randrange(len(lines))
    lines[chosen] = dump(change_value(json.loads(lines[chosen]), rng))
    return "\n".join(lines).encode("utf-8")


def in_yaml(data: bytes, rng: random.Random) -> bytes:
    """One value of a YAML file, written as JSON."""
    import yaml

    return dump(change_value(yaml.safe_load(data), rng)).encode("utf-8")


def in_npz(data: bytes, rng: random.Random) -> bytes:
    """One array of an archive: other kind, shape or values; or a JSON header inside it."""
    with np.load(io.BytesIO(data), allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
    name = rng.choice(list(arrays))
    array = arrays[name]
    if array.dtype == np.uint8 and array.size and array.tobytes()[:1] == b"{" and rng.random() < 0.8:
        text = dump(change_value(json.loads(array.tobytes()), rng)).encode("utf-8", "surrogatepass")
        arrays[name] = np.frombuffer(text, dtype=np.uint8)
    else:
        arrays[name] = _other_array(array, rng)
    if rng.random() < 0.1:
        del arrays[name]
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


def _other_array(array: np.ndarray, rng: random.Random) -> np.ndarray:
    flat = np.array(array, copy=True)
    how = rng.choice(("complex", "float", "int", "bool", "bytes", "shape", "less", "more", "nan", "large", "negative"))
    if how == "shape":
        return flat[None]
    if how == "less":
        return flat[: max(0, len(flat) - 1)] if flat.ndim else flat.reshape(1)
    if how == "more":
        return np.concatenate([flat, flat[:1]]) if flat.ndim else flat.reshape(1)
    kinds = {"complex": np.complex128, "float": np.float32, "int": np.int8, "bool": np.bool_, "bytes": "S4"}
    with np.errstate(all="ignore"):
        if how in kinds:
            return flat.astype(kinds[how])  # type: ignore[call-overload]
        if flat.size and flat.dtype.kind in "fiu":
            value = {"nan": np.nan, "large": 2.0**40, "negative": -1.0}[how]
            flat.reshape(-1)[rng.randrange(flat.size)] = np.array(value).astype(flat.dtype)
    return flat


def in_parquet(data: bytes, rng: random.Random) -> bytes:
    """One column of a table: absent, of another type, or with nulls."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.read_table(io.BytesIO(data))
    place = rng.randrange(table.num_columns)
    name = table.column_names[place]
    how = rng.choice(("absent", "text", "null", "numbers", "renamed", "short"))
    if how == "absent":
        table = table.remove_column(place)
    elif how == "text":
        table = table.set_column(place, name, pa.array(["x"] * table.num_rows))
    elif how == "numbers":
        table = table.set_column(place, name, pa.array([float("nan")] * table.num_rows))
    elif how == "null":
        column = table.column(place).to_pylist()
        column[rng.randrange(len(column))] = None
        table = table.set_column(place, name, pa.array(column, type=table.schema.field(place).type))
    elif how == "renamed":
        table = table.rename_columns([f"{n}x" if n == name else n for n in table.column_names])
    else:
        table = table.slice(0, table.num_rows - 1)
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    return buffer.getvalue()


def in_safetensors(data: bytes, rng: random.Random) -> bytes:
    """One tensor: absent, renamed, of another shape or type, or not finite."""
    from safetensors.numpy import load, save

    tensors = {name: np.array(value) for name, value in load(data).items()}
    name = rng.choice(list(tensors))
    how = rng.choice(("absent", "renamed", "shape", "less", "type", "nan", "extra"))
    value = tensors[name]
    if how == "absent":
        del tensors[name]
    elif how == "renamed":
        tensors[f"{name}_x"] = tensors.pop(name)
    elif how == "shape":
        tensors[name] = value[None].copy()
    elif how == "less" and value.ndim:
        tensors[name] = value[:-1].copy()
    elif how == "type":
        tensors[name] = value.astype(np.int32)
    elif how == "nan":
        value.reshape(-1)[0] = np.nan
    else:
        tensors["other"] = value.copy()
    return save(tensors, metadata={"format": "pt"})


def in_words(data: bytes, rng: random.Random) -> bytes:
    """Tokens of a text exchanged, removed or made odd."""
    lines = data.decode("utf-8").split("\n")
    chosen = rng.randrange(len(lines))
    words = lines[chosen].split(" ")
    place = rng.randrange(len(words))
    words[place] = rng.choice((*ODD_WORDS, rng.choice(words)))
    lines[chosen] = " ".join(words)
    return "\n".join(lines).encode("utf-8")


INSIDE: dict[str, list[Damage]] = {
    ".json": [in_json] * 8,
    ".jsonl": [in_json_lines] * 8,
    ".yaml": [in_yaml] * 10,
    ".npz": [in_npz] * 10,
    ".parquet": [in_parquet] * 8,
    ".safetensors": [in_safetensors] * 10,
    **dict.fromkeys((".txt", ".mrg", ".nltk", ".grammar", ".lexicon"), [in_words] * 8),
}


def damage(path: Path, rng: random.Random) -> str:
    """Change one file in place; gives the name of what was done."""
    how = rng.choice(ANY + INSIDE.get(path.suffix, []))
    data = path.read_bytes()
    packed = path.suffix == ".gz" and rng.random() < 0.5
    changed = how(gzip.decompress(data) if packed else data, rng)
    path.unlink()  # it may be a hard link to the world's own
    path.write_bytes(gzip.compress(changed) if packed else changed)
    return how.__name__
