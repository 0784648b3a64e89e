"""Penn tokens of raw text, against NLTK's tokeniser and against the text they come from."""

# ruff: noqa: RUF001 (curly quotes and dashes are what is tested)

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nltk.tokenize.treebank import TreebankWordTokenizer

from truesource.generator.text import PennTokeniser, is_blank

NLTK = TreebankWordTokenizer()
PENN = {"(": "-LRB-", ")": "-RRB-", "[": "-LSB-", "]": "-RSB-", "{": "-LCB-", "}": "-RCB-"}
BITS = [
    *[
        "'",
        '"',
        "''",
        "``",
        "`",
        ".",
        "...",
        ",",
        ":",
        ";",
        "?",
        "!",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        "<",
        ">",
        "--",
        "-",
    ],
    *["$", "%", "&", "@", "#", "can", "not", "d", "'ye", "gim", "me", "lem", "gon", "na", "wan", "got", "ta", "more"],
    *["'n", "'t", "is", "was", "'s", "'S", "'ll", "n't", "'re", "'M", "1", "2", "a", "Bc", "\\", "_", " ", " ", " "],
]
ODD = [
    *"“”‘’„«»…–—―/*\u200b\ufeff\u00a0\u00ad\u200e\u2060\x00\x1b\x85\t\r\n😀é漢ש",
    "e\u0301",
    "👩\u200d💻",
    "’s",
    "n’t",
]

in_ascii = st.lists(st.sampled_from(BITS), min_size=1, max_size=14).map("".join)
anything = st.one_of(st.lists(st.sampled_from(BITS + ODD), max_size=14).map("".join), st.text())
lexicons = st.none() | st.sets(st.sampled_from([*PENN, *PENN.values(), *ODD, '"', "``", "''", r"1\/2", "a/b", "1."]))


def spelled(text: str, word: str) -> bool:
    """Whether a word may stand for a text; written anew, by the table of the guide."""
    quotes = {"``", "''"}
    as_ascii = text.translate(str.maketrans("‘’“”„«»", '`\'"""""'))
    shown = "".join(c for c in as_ascii if unicodedata.category(c) != "Cf" or c in "\u200c\u200d")
    allowed = {text, as_ascii, unicodedata.normalize("NFC", text), unicodedata.normalize("NFC", shown)}
    allowed |= {a.replace("/", r"\/").replace("*", r"\*") for a in allowed}
    allowed |= {a.replace("/", r"\/") for a in allowed} | {a.replace("*", r"\*") for a in allowed}
    allowed |= {f"{a}." for a in allowed}
    allowed |= {PENN[text]} if text in PENN else set()
    allowed |= quotes if as_ascii in {'"', *quotes} else set()
    allowed |= {"--"} if set(text) <= set("–—―") else set()
    allowed |= {"..."} if text == "…" else set()
    return word in allowed


@given(in_ascii)
def test_tokens_are_those_of_nltk(text: str) -> None:
    words, _ = PennTokeniser().tokens(text)
    assert words == [PENN.get(token, token) for token in NLTK.tokenize(text.strip())]


@given(anything, lexicons, st.integers(0, 10))
def test_nothing_is_lost_and_every_word_stands_for_its_text(text: str, known: set[str] | None, offset: int) -> None:
    words, offsets = PennTokeniser(known).tokens(text, offset)
    assert len(words) == len(offsets)
    end = offset
    for word, (start, stop) in zip(words, offsets, strict=True):
        assert is_blank(text[end - offset : start - offset])
        assert start < stop
        assert not any(c.isspace() for c in word)
        assert spelled(text[start - offset : stop - offset], word)
        end = stop
    assert is_blank(text[end - offset :])


@given(st.text())
def test_what_is_blank(text: str) -> None:
    assert is_blank(text) == all(c.isspace() or c in "\u200b\ufeff" for c in text)


def test_a_tokeniser_finds_the_same_again() -> None:
    tokeniser = PennTokeniser()
    text = '"(One" can\'t "(One'
    assert tokeniser.tokens(text) == tokeniser.tokens(text) == PennTokeniser().tokens(text)
    assert tokeniser.tokens(text)[0] == ["``", "-LRB-", "One", "''", "ca", "n't", "``", "-LRB-", "One"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('He said "no" (twice).', ["He", "said", "``", "no", "''", "-LRB-", "twice", "-RRB-", "."]),
        ("[a] {b} <c>", ["-LSB-", "a", "-RSB-", "-LCB-", "b", "-RCB-", "<", "c", ">"]),
        ("“I don’t,” she’d say…", ["``", "I", "do", "n't", ",", "''", "she", "'d", "say", "..."]),
        ("‘Well’—1990–95!", ["`", "Well", "'", "--", "1990", "--", "95", "!"]),
        ("He left.”", ["He", "left", ".", "''"]),
        ("3/4 of and/or *", [r"3\/4", "of", r"and\/or", r"\*"]),
        ("Mr. O’Neill paid $3.88, e.g. 1,000.", ["Mr.", "O'Neill", "paid", "$", "3.88", ",", "e.g.", "1,000", "."]),
        ("co\u00adoperate \u200e \u200bx\ufeffy", ["cooperate", "\u200e", "x", "y"]),
        ("cafe\u0301 10\u00a0km", ["café", "10", "km"]),
        ("👩\u200d💻 😀.", ["👩\u200d💻", "😀", "."]),
        ("a\x00b \x1b[31m", ["a\x00b", "\x1b", "-LSB-", "31m"]),
        ("-LRB- CANNOT", ["-LRB-", "CAN", "NOT"]),
        (" \t\u00a0\u200b\ufeff", []),
    ],
)
def test_spellings_of_the_penn_treebank(text: str, words: list[str]) -> None:
    assert PennTokeniser().tokens(text)[0] == words


@pytest.mark.parametrize(
    ("known", "text", "words"),
    [
        (['"', "[", "(", "’s", "—", "a/b"], '"[(She’s—1/2 *"', ['"', "[", "(", "She", "’s", "—", "1/2", r"\*", '"']),
        (["“", "''"], "“it” ''is''", ["“", "it", "''", "``", "is", "''"]),
        ([r"3\/4"], "1/2 3/4", [r"1\/2", r"3\/4"]),
        (["1/2", r"3\/4"], "1/2 and/or", ["1/2", r"and\/or"]),
        (["U.S."], "U.S. and the U.S.", ["U.S.", "and", "the", "U.S.", "."]),
        (["U.S.", "U.S"], "the U.S.", ["the", "U.S", "."]),
        (["U.S."], "(the U.S.)", ["-LRB-", "the", "U.S.", ".", "-RRB-"]),
        (["cafe\u0301", "O’Neill"], "cafe\u0301 O’Neill", ["cafe\u0301", "O’Neill"]),
    ],
)
def test_spellings_that_the_grammar_knows(known: list[str], text: str, words: list[str]) -> None:
    assert PennTokeniser(known).tokens(text)[0] == words


def test_offsets_of_an_abbreviation_leave_its_period_to_the_end() -> None:
    assert PennTokeniser(["U.S."]).tokens("the U.S.", 5) == (["the", "U.S.", "."], [(5, 8), (9, 12), (12, 13)])


def test_a_tokeniser_forgets_what_it_found_and_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("truesource.generator.text._KEPT_RUNS", 2)
    tokeniser = PennTokeniser()
    assert tokeniser.tokens("a, b, c, d, a, (e)")[0] == [
        "a",
        ",",
        "b",
        ",",
        "c",
        ",",
        "d",
        ",",
        "a",
        ",",
        "-LRB-",
        "e",
        "-RRB-",
    ]
    assert len(tokeniser._kept) <= 2
