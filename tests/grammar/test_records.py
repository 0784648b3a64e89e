"""Records from disk: what fits the model is read, everything else is one sentence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NotRequired

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError, with_config
from typing_extensions import TypedDict

from truesource.grammar.support import files, records
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.records import (
    STRICT,
    Count,
    FileName,
    InnerPath,
    decode_record,
    parse_yaml,
    read_record,
    read_records,
    read_yaml,
)


@with_config(STRICT)
class Entry(TypedDict):
    file: FileName
    size: Count
    score: NotRequired[float | None]


@with_config(STRICT)
class Whole(TypedDict):
    name: str
    entries: list[Entry]


GOOD: dict[str, Any] = {"name": "x", "entries": [{"file": "a.parquet", "size": 3, "score": 0.5}]}


def refusal(content: bytes, path: Path, model: Any = Whole) -> InputError:
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        read_record(path, model, what="the record", remedy="make it again")
    message = str(caught.value)
    assert message.endswith(f"; make it again ({path}{'' if caught.value.line is None else f':{caught.value.line}'})")
    assert "\n" not in message and len(message) < 500
    return caught.value


def test_a_record_is_read_with_its_unknown_keys_and_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps({**GOOD, "later": [1]}).encode())
    assert read_record(path, Whole, remedy="make it again") == {**GOOD, "later": [1]}
    path.write_text('{"name": "x", "entries": [{"file": "a", "size": 3}]}')
    assert read_record(path, Whole, remedy="make it again")["entries"] == [{"file": "a", "size": 3}]


def test_keys_keep_the_order_of_the_file(tmp_path: Path) -> None:
    text = '{"later": {"b": 1, "a": 2}, "entries": [{"size": 3, "x": 1, "file": "a"}], "name": "x"}'
    (tmp_path / "record.json").write_text(text)
    assert json.dumps(read_record(tmp_path / "record.json", Whole, remedy="r")) == text


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "not JSON"),
        (b"[" * 100_000, "recursion limit"),
        (b'{"a":' * 100_000, "recursion limit"),
        (b'{"name": "\xff"}', "not JSON"),
        (json.dumps(GOOD).encode("utf-16"), "not JSON"),
        (json.dumps(GOOD).encode()[:-3], "EOF"),
        (b'{"name": "\\ud800", "entries": []}', "not JSON"),
        (b'{"name": "x", "entries": [], "later": "\\udfff"}', "not JSON"),
        (b'{"name": "x", "entries": [], "later": NaN}', "not JSON"),
        (b'{"name": "x", "entries": [], "later": 1e999}', "too large"),
        (b'{"name": "x", "entries": [], "later": ' + b"9" * 6000 + b"}", "out of range"),
        (b'{"name": "x"}', "entries: this key is missing"),
        (b'{"name": 1, "entries": []}', "name: expected a text, not 1"),
        (b'{"name": "x", "entries": {}}', "entries: "),
        (b'{"name": "x", "entries": [{"file": "a", "size": "3"}]}', r"entries.0.size: "),
        (b'{"name": "x", "entries": [{"file": "a", "size": true}]}', r"entries.0.size: "),
        (b'{"name": "x", "entries": [{"file": "a", "size": -1}]}', r"entries.0.size: "),
        (b'{"name": "x", "entries": [{"file": "a", "size": 1, "score": "1"}]}', r"entries.0.score: "),
        (b"[]", "damaged"),
        (b"null", "damaged"),
    ],
)
def test_what_is_no_record_is_refused_in_one_sentence(content: bytes, reason: str, tmp_path: Path) -> None:
    assert reason in str(refusal(content, tmp_path / "record.json"))


def test_the_message_names_the_line_of_a_mistake_in_json(tmp_path: Path) -> None:
    assert refusal(b'{\n"name": "x",\n"entries": [}', tmp_path / "record.json").line == 3


def test_a_missing_record_has_its_own_message(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^the record is missing; make it again"):
        read_record(tmp_path / "no.json", Whole, what="the record", remedy="make it again")
    with pytest.raises(InputError, match=r"^no corpus here"):
        read_record(tmp_path / "no.json", Whole, remedy="make it again", absent="no corpus here")


def test_a_record_that_is_too_large_is_refused_before_it_is_decoded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "RECORD_LIMIT", 100)
    assert "larger than 100 bytes" in str(refusal(json.dumps({**GOOD, "a": "x" * 200}).encode(), tmp_path / "r.json"))


@pytest.mark.parametrize("name", ["a", "a.parquet", "train-00000-of-00001.parquet", ".hidden", "ä b", "a..b", "..a"])
def test_plain_file_names_pass(name: str) -> None:
    assert TypeAdapter(FileName).validate_python(name) == name
    assert TypeAdapter(InnerPath).validate_python(f"x/{name}") == f"x/{name}"


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "../a", "/a", "a/b", "a/", "a\\b", "..\\a", "C:", "C:a", "\\\\host\\a", "a\0", "a\n", "\x1b"],
)
def test_names_that_leave_the_folder_are_refused(name: str) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(FileName).validate_python(name)
    with pytest.raises(ValidationError):
        TypeAdapter(InnerPath).validate_python(f"x/{name}" if name != "a/b" else "x//b")


@given(st.text(max_size=12))
def test_a_plain_name_is_always_a_child_of_the_folder(name: str) -> None:
    try:
        TypeAdapter(FileName).validate_python(name)
    except ValidationError:
        return
    assert (Path("/folder") / name).parent == Path("/folder")
    assert Path(f"/folder/{name}").resolve().parent == Path("/folder")


def test_lines_are_read_one_by_one_with_their_numbers(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    path.write_text('{"file": "a", "size": 1}\n\n  \n{"file": "b", "size": 2}')
    assert [(n, r["file"]) for n, r in read_records(path, Entry, remedy="r")] == [(1, "a"), (4, "b")]
    path.write_bytes(b'{"file": "a", "size": 1}\r\n{"file": "b", "size": "2"}\n')
    found = read_records(path, Entry, what="this line", remedy="write it again")
    assert next(found)[1]["file"] == "a"
    with pytest.raises(InputError, match=r"^this line is damaged: size: .*; write it again \(.*lines.jsonl:2\)$"):
        next(found)


def test_a_line_has_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "LINE_LIMIT", 2**21)
    path = tmp_path / "lines.jsonl"
    path.write_bytes(b'{"file": "a", "size": 1}\n' + b" " * (2**21 + 2**20))
    with pytest.raises(InputError, match=r"longer than 2,097,152 bytes"):
        list(read_records(path, Entry, remedy="r"))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["name", "file", "size"]), inner),
    max_leaves=8,
)


@given(json_values, st.sampled_from(["name", "entries"]))
def test_any_value_is_read_or_refused(value: Any, key: str) -> None:
    try:
        found = decode_record(json.dumps({**GOOD, key: value}), Whole, what="w", remedy="r")
    except InputError:
        return
    assert isinstance(found["name"], str)
    assert all(type(entry["size"]) is int and entry["size"] >= 0 for entry in found["entries"])


@given(st.data())
def test_any_bytes_are_read_or_refused(data: st.DataObject) -> None:
    content = bytearray(json.dumps(GOOD).encode())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    try:
        found = decode_record(bytes(content), Whole, what="w", remedy="r")
    except InputError:
        return
    assert {"name", "entries"} <= found.keys()


# -- YAML -----------------------------------------------------------------------------------------------


def test_yaml_is_read_with_anchors_merges_and_a_mark(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_bytes("\ufeffa: &x {k: 1, l: 2}\nb: {<<: *x, k: 3}\nc: [1, é]\n".encode())
    assert read_yaml(path, remedy="r") == {"a": {"k": 1, "l": 2}, "b": {"k": 3, "l": 2}, "c": [1, "é"]}
    path.write_text("")
    assert read_yaml(path, remedy="r") is None


BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{b}: &{b} [{', '.join([f'*{a}'] * 10)}]\n" for a, b in zip("abcdef", "bcdefg", strict=True)
)


CHAIN = "a0: &a0 [x]\n" + "".join(f"a{i + 1}: &a{i + 1} [*a{i}]\n" for i in range(120))


def test_yaml_may_be_nested_a_hundred_levels_deep() -> None:
    value = parse_yaml("[" * 100 + "]" * 100, what="w", remedy="r")
    for _ in range(99):
        (value,) = value
    assert value == []


@pytest.mark.long
@pytest.mark.parametrize(
    ("text", "reason", "line"),
    [
        ("[" * 1000 + "]" * 1000, "nested more than 100 levels", 1),
        ("[" * 101 + "]" * 101, "nested more than 100 levels", 1),
        (CHAIN, "nested more than 100 levels", None),
        ("b: 1\na: " + "9" * 6000, "cannot be converted", None),
        ("a: 1\nb: 2\na: 3", "the key 'a' occurs twice", 3),
        ("x:\n  a: 1\n  a: 3", "the key 'a' occurs twice", 3),
        ("a: &a [*a]", "contains itself", 1),
        (BOMB, "more than 1,000,000 values", None),
        ('a: "\\ud800"', "not Unicode", 1),
        ("a: [1", "expected ',' or ']'", 1),
        ("a: !!python/object/apply:os.system [ls]", "could not determine a constructor", 1),
        ("a: !!timestamp x", "cannot be converted", None),
        ("a: !!bool x", "cannot be converted", None),
        ("a: !!int ''", "cannot be converted", None),
        ("a: \x00", "character", None),
        ("{[1]: 2}", "unhashable", 1),
    ],
)
def test_yaml_that_cannot_be_used_is_refused(text: str, reason: str, line: int | None, tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        read_yaml(path, what="the configuration", remedy="mend it")
    message = str(caught.value)
    assert message.startswith("the configuration is not YAML: ") and reason in message and "\n" not in message
    assert line is None or caught.value.line == line


def test_yaml_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_bytes(b"a: \xff")
    with pytest.raises(InputError, match="not UTF-8"):
        read_yaml(path, remedy="r")


def test_the_bound_on_values_counts_what_aliases_repeat(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "MOST_VALUES", 10)
    assert parse_yaml("[1, 2, 3, 4, 5, 6, 7, 8, 9]", what="w", remedy="r") == list(range(1, 10))
    with pytest.raises(InputError, match="more than 10 values"):
        parse_yaml("[&a [1, 2], *a, *a, *a]", what="w", remedy="r")


@pytest.mark.long
@settings(max_examples=300)
@given(st.text(alphabet="ab:1 -[]{},&*!'\"\n<?|>%@0x.~e\t", max_size=40))
def test_any_yaml_is_read_or_refused(text: str) -> None:
    try:
        parse_yaml(text, what="w", remedy="r")
    except InputError as error:
        assert "\n" not in str(error)
