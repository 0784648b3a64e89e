"""Sentences of raw text: how they are cut, where they stand, and what is refused."""

# ruff: noqa: RUF001 (curly quotes and dashes are what is tested)

from __future__ import annotations

import gzip
import json
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import nltk
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nltk.tokenize.punkt import PunktSentenceTokenizer, PunktTrainer

from truesource.generator.text import RawTextReader, SentencePlace, Splitting, is_blank, write_offsets
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.records import read_records

LEARNED = 20 * (
    "Dr. Ames met Dr. Bell. They spoke of Dr. Cole. He left early. Dr. Dunn saw it. They saw Dr. Bell. It was late. "
    "They left Dr. Cole there. It was early. He met them. They left it. "
)
FILES = ("collocations.tab", "sent_starters.txt", "abbrev_types.txt", "ortho_context.tab")


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, the only one where NLTK looks for data."""
    folder = tmp_path / "nltk_data"
    folder.mkdir(mode=0o700)
    monkeypatch.setattr(nltk.data, "path", [str(folder)])
    return folder


@pytest.fixture
def toyish(data: Path) -> str:
    """A language of punkt, learned from a few lines and installed."""
    learned = PunktTrainer(LEARNED).get_params()
    assert "dr" in learned.abbrev_types
    folder = data / "tokenizers" / "punkt_tab" / "toyish"
    folder.mkdir(parents=True, mode=0o700)
    for parent in folder.parents:
        if parent != data.parent and data in (parent, *parent.parents):
            parent.chmod(0o700)
    columns = {
        "collocations.tab": "\n".join("\t".join(pair) for pair in sorted(learned.collocations)),
        "sent_starters.txt": "\n".join(sorted(learned.sent_starters)),
        "abbrev_types.txt": "\n".join(sorted(learned.abbrev_types)),
        "ortho_context.tab": "\n".join(f"{word}\t{n}" for word, n in sorted(learned.ortho_context.items())),
    }
    for name, text in columns.items():
        (folder / name).write_text(text, encoding="utf-8")
        (folder / name).chmod(0o600)
    return "toyish"


def words(reader: RawTextReader, text: str) -> list[list[str]]:
    return [sentence.tokens for sentence in reader.sentences(text.split("\n"))]


def lines() -> RawTextReader:
    return RawTextReader(splitting=Splitting.LINES)


def test_without_data_each_line_is_a_sentence() -> None:
    reader = RawTextReader()
    assert reader.splitting is Splitting.LINES
    assert words(reader, "Dr. Ames left. He ran.\n\n \t\nIt") == [["Dr.", "Ames", "left.", "He", "ran", "."], ["It"]]


def test_with_data_punkt_cuts_paragraphs(toyish: str) -> None:
    reader = RawTextReader(language=toyish)
    assert reader.splitting is Splitting.PUNKT
    text = "Dr. Ames\r\nleft. He ran.”\nNo!\n\u00a0\nA title\n\n\n“It\nwas.” Late"
    found = list(reader.sentences(text.split("\n")))
    assert [sentence.tokens for sentence in found] == [
        ["Dr.", "Ames", "left", "."],
        ["He", "ran", ".", "''"],
        ["No", "!"],
        ["A", "title"],
        ["``", "It", "was", ".", "''"],
        ["Late"],
    ]
    assert [sentence.line for sentence in found] == [1, 2, 3, 5, 8, 9]
    start, end = found[1].offsets[0][0], found[1].offsets[-1][1]
    assert text[start:end] == "He ran.”"


def test_lines_can_be_asked_for_where_there_is_data(toyish: str) -> None:
    reader = RawTextReader(splitting=Splitting.LINES, language=toyish)
    assert reader.splitting is Splitting.LINES
    assert len(words(reader, "He left. He ran.\nNo.")) == 2


def test_punkt_that_is_asked_for_and_not_there() -> None:
    with pytest.raises(InputError, match="'klingon'") as refused:
        RawTextReader(splitting=Splitting.PUNKT, language="klingon")
    assert refused.value.code == "missing"


@pytest.mark.parametrize("missing", FILES)
def test_damaged_data_of_punkt(toyish: str, data: Path, missing: str) -> None:
    (data / "tokenizers" / "punkt_tab" / toyish / missing).unlink()
    with pytest.raises(InputError) as refused:
        RawTextReader(language=toyish)
    assert refused.value.code == "damaged"


@pytest.mark.parametrize("language", ["", "../english", "a/b", "a b"])
def test_names_that_are_no_language(language: str) -> None:
    with pytest.raises(InputError, match="no language"):
        RawTextReader(language=language)


def test_a_long_paragraph_is_cut_as_if_it_were_read_at_once(toyish: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "\n".join(f"This is\nnumber {n}. Dr. No\nsaw it" + ("." if n % 7 else "") for n in range(100))
    at_once = list(RawTextReader(language=toyish).sentences(text.split("\n")))
    monkeypatch.setattr("truesource.generator.text._PARAGRAPH", 40)
    assert list(RawTextReader(language=toyish).sentences(text.split("\n"))) == at_once
    assert len(at_once) > 150
    assert nothing_lost(at_once, text)


def nothing_lost(found: list, text: str) -> bool:
    places = [place for sentence in found for place in sentence.offsets]
    edges = [0, *(edge for place in places for edge in place), len(text)]
    assert edges == sorted(edges)
    assert [s.line for s in found] == [text.count("\n", 0, s.offsets[0][0]) + 1 for s in found]
    return all(is_blank(text[a:b]) for a, b in zip(edges[::2], edges[1::2], strict=True))


_TEXTS = st.one_of(
    st.text(),
    st.lists(
        st.sampled_from([*"\n\r\t .!?()\"'”’-\u00a0\u200b\x0b\x85\u2028", "Dr.", "A", "no", "..."]), max_size=25
    ).map("".join),
)


@given(_TEXTS)
def test_every_character_is_part_of_a_token(text: str) -> None:
    assert nothing_lost(list(lines().sentences(text.split("\n"))), text)


@pytest.mark.long
@given(text=_TEXTS)
def test_punkt_loses_no_character(text: str) -> None:
    reader = lines()
    reader._punkt = PunktSentenceTokenizer(LEARNED)
    assert nothing_lost(list(reader.sentences(text.split("\n"))), text)


@pytest.mark.parametrize("packed", [False, True])
def test_offsets_in_a_file_count_characters_after_the_byte_order_mark(tmp_path: Path, packed: bool) -> None:
    content = "\ufeffÄ “b”\r\n\r\n\u200b\n  (𝕏) c/d\n".encode()
    path = tmp_path / ("a.txt.gz" if packed else "a.txt")
    path.write_bytes(gzip.compress(content) if packed else content)
    found = list(lines().read(path))
    text = content.decode("utf-8-sig")
    assert [[text[start:end] for start, end in s.offsets] for s in found] == [
        ["Ä", "“", "b", "”"],
        ["(", "𝕏", ")", "c/d"],
    ]
    assert [s.tokens for s in found] == [["Ä", "``", "b", "''"], ["-LRB-", "𝕏", "-RRB-", r"c\/d"]]
    assert [s.line for s in found] == [1, 4]


def test_rows_of_offsets(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("A (b).\n\nC\n", encoding="utf-8")
    write_offsets(tmp_path / "offsets.jsonl", lines().read(tmp_path / "a.txt"))
    rows = [json.loads(line) for line in (tmp_path / "offsets.jsonl").read_text(encoding="utf-8").splitlines()]
    assert rows == [
        {"line": 1, "start": 0, "end": 6, "tokens": [[0, 1], [2, 3], [3, 4], [4, 5], [5, 6]]},
        {"line": 3, "start": 8, "end": 9, "tokens": [[8, 9]]},
    ]
    assert len(list(read_records(tmp_path / "offsets.jsonl", SentencePlace, remedy="write it again"))) == 2


def test_a_file_that_cannot_be_read_leaves_no_offsets(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"A b.\n\xff\n")
    with pytest.raises(InputError):
        write_offsets(tmp_path / "offsets.jsonl", lines().read(tmp_path / "a.txt"))
    assert [path.name for path in tmp_path.glob("*offsets*")] == []


@pytest.mark.parametrize(
    ("name", "content", "line", "code"),
    [
        ("a.txt", b"fine\nA caf\xe9.\n", 2, "damaged"),
        ("a.txt", "A b.\n".encode("utf-16"), 1, "damaged"),
        ("a.txt", b"", None, "input"),
        ("a.txt", "\ufeff \n\t\u00a0\r\n".encode(), None, "input"),
        ("a.txt.gz", gzip.compress(b"A b.\n" * 100, mtime=0)[:-12], None, "damaged"),
        ("a.txt", None, None, "missing"),
    ],
)
def test_bad_files(tmp_path: Path, name: str, content: bytes | None, line: int | None, code: str) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError) as refused:
        list(lines().read(tmp_path / name))
    assert (refused.value.line, refused.value.code) == (line, code)
    assert refused.value.path == tmp_path / name


def test_a_line_of_many_words() -> None:
    (sentence,) = lines().sentences([" ".join(f"word{n}" for n in range(10_000)) + "."])
    assert len(sentence.tokens) == 10_001


@pytest.mark.long
def test_a_text_is_never_in_memory_as_a_whole() -> None:
    def endless(size: int) -> Iterator[str]:
        for n in range(size):
            yield f"This is sentence {n}, and “it” isn’t long."

    def peak(size: int) -> int:
        reader = lines()
        tracemalloc.start()
        try:
            assert sum(1 for _ in reader.sentences(endless(size))) == size
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(10)
    assert peak(4000) < peak(1000) + 2**21
