"""Sentences from text files."""

from __future__ import annotations

import gzip

import pytest

from truesource.generator.text_files import read_sentences
from truesource.grammar.support.errors import InputError


@pytest.mark.parametrize("end", ["", "\n"])
def test_one_sentence_a_line(tmp_path, end):
    text = "The dog , it barks .\n  naïve\ttabs  \r\nx" + end
    expected = [["The", "dog", ",", "it", "barks", "."], ["naïve", "tabs"], ["x"]]
    (tmp_path / "a.txt").write_bytes(text.encode())
    assert read_sentences(tmp_path / "a.txt") == expected
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(text.encode()))
    assert read_sentences(str(tmp_path / "a.txt.gz")) == expected


def test_only_ascii_white_space_stands_between_words(tmp_path):
    (tmp_path / "a.txt").write_text("New\u00a0York is\u2003big\u0085\t.\n\u00a0\n", encoding="utf-8")
    assert read_sentences(tmp_path / "a.txt") == [["New\u00a0York", "is\u2003big\u0085", "."], ["\u00a0"]]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", b"a b\n\nc\n", "this line is empty; expecting one sentence a"),
        ("a.txt", b"a b\n  \n", "this line is empty; expecting one sentence a"),
        ("a.txt", b"a b\n\n", "this line is empty; expecting one sentence a"),
        ("a.txt", b"", "the file is empty"),
        ("a.txt", b"\xff\xfe\x00", "expecting UTF-8"),
        ("a.gz", b"not gzip", "gzip file is damaged"),
        ("a.gz", gzip.compress(b"a b\n" * 100, mtime=0)[:-12], "gzip file is damaged"),
    ],
)
def test_bad_files(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_sentences(tmp_path / name)


def test_missing_file_and_folder(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        read_sentences(tmp_path / "nowhere.txt")
    with pytest.raises(InputError, match="cannot read the file: Is a directory"):
        read_sentences(tmp_path)
