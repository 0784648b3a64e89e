"""Data made safe to print."""

import unicodedata
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truesource.grammar.support.errors import InputError
from truesource.grammar.support.printable import markdown, markdown_code, one_line, shortened, terminal

ANY = st.text(st.characters(codec=None, categories=None))
HOSTILE = ["\x1b[31m", "\x07", "\x9b31m", "a\u202eb", "\ud800", "\x00", "\r", "\ufffe", "\u2028"]


@pytest.mark.long
@given(ANY)
def test_nothing_is_left_that_a_terminal_obeys(text):
    shown = terminal(text)
    assert not any(unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") for c in shown if c not in "\n\t")
    assert not any(unicodedata.bidirectional(c) in ("LRE", "RLE", "LRO", "RLO", "PDF") for c in shown)
    assert shown.encode().decode() == shown
    assert terminal(shown) == shown
    assert len(one_line(text).splitlines()) <= 1


@given(st.text(st.characters(categories=["L", "M", "N", "P", "S", "Zs"])))
def test_ordinary_text_is_left_alone(text):
    assert terminal(text) == one_line(text) == text


@given(ANY)
def test_what_is_left_is_legal_in_xml(text):
    element = ElementTree.Element("text")
    element.text = terminal(text)
    assert ElementTree.fromstring(ElementTree.tostring(element)).text == (element.text or None)


@pytest.mark.parametrize("text", HOSTILE)
def test_characters_are_named_and_not_dropped(text):
    assert terminal(text).isprintable() and terminal(text).startswith(("\\", "a\\"))


def test_long_words_lose_their_middle_and_short_ones_nothing():
    assert shortened("a b " + "x" * 60) == "a b " + "x" * 60
    assert shortened("x" * 5_000 + "y" * 5_000 + " end", 10) == "xxxxx…yyyy end"


@pytest.mark.parametrize("quoted", ["x" * 10_000, "x y " * 3_000, "x/" * 5_000])
def test_messages_quote_little_of_what_is_long_and_keep_both_ends(quoted):
    error = InputError(f"there is no run {quoted!r} here; choose another", "runs/demo", 3)
    assert len(str(error)) <= 1_300
    assert str(error).startswith("there is no run 'x") and str(error).endswith("; choose another (runs/demo:3)")
    assert "…" in error.reason


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("gpt2_tiny-s1", "gpt2_tiny-s1"),
        ("_a_ *b* `c`", r"\_a\_ \*b\* \`c\`"),
        ("a|b\nc <i>", r"a\|b\\nc \<i\>"),
        ("# no heading", r"\# no heading"),
    ],
)
def test_markdown_takes_text_literally(text, wanted):
    assert markdown(text) == wanted


@given(st.text("a`|\n", min_size=1))
def test_code_spans_are_closed_by_their_own_fence_only(text):
    span = markdown_code(text)
    fence = span[: len(span) - len(span.lstrip("`"))]
    assert span.endswith(fence) and "\n" not in span
    assert fence not in span[len(fence) : -len(fence)].split(" ")


def test_errors_are_one_printable_line():
    error = InputError("the word \x1b[31mred\n is unknown", "a\x07b.txt", 3)
    assert str(error) == "the word \\x1b[31mred\\n is unknown (a\\x07b.txt:3)"
