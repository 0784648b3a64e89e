"""Grammar files: text, NLTK's text, EarleyX and npz, round trips and damage."""

from __future__ import annotations

import errno
import gzip
import json
import logging
import math
import re
import sys
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from random_grammars import small_pcfgs
from reference_inference import rules_of

from truesource.grammar import formats
from truesource.grammar.formats import names, save_grammar, source_files
from truesource.grammar.formats.earleyx import format_earleyx, parse_earleyx
from truesource.grammar.formats.nltk import format_nltk, parse_nltk
from truesource.grammar.formats.npz import ARRAYS
from truesource.grammar.formats.text import parse_text
from truesource.grammar.formats.weight_first import parse_weight_first
from truesource.grammar.pcfg import PCFG
from truesource.grammar.read_options import ReadOptions
from truesource.grammar.support.errors import InputError
from truesource.grammar.treebank.binarise import surface

TOY = PCFG.from_text("%label S ROOT\nS -> S S 0.3 | A 0.2 | 'a' 0.5\nA -> 'b' 0.4 | 'ü' 0.6")
ODD = (
    "PRP$", "-LRB-", "ADVP|PRT", "''", "``", "#", "[", "]", "->", "|", "<x>", ">", "<", "\\", "'", '"', "a b", " ",
    "%start", "%label", "0.5", "[0.5]", "é", "日本", "@NP", "@", "a\u2028b", "x\x85", "\x1c", "\u00a0", "NP-SBJ=2",
    "it's", "Grammar", ".",
)  # fmt: skip


def rule_table(pcfg: PCFG) -> dict[tuple[str, ...], float]:
    rules = rules_of(pcfg)
    table: dict[tuple[str, ...], float] = {("binary", a, b, c): p for a, b, c, p in rules.binary}
    table |= {("unary", a, b): p for a, b, p in rules.unary}
    return table | {("lexical", a, w): p for a, w, p in rules.lexical}


def assert_same_grammar(found: PCFG, wanted: PCFG, rel: float = 1e-15) -> None:
    assert found.symbols[found.start] == wanted.symbols[wanted.start]
    assert dict(zip(found.symbols, found.labels, strict=True)) == dict(zip(wanted.symbols, wanted.labels, strict=True))
    assert set(found.vocabulary) == set(wanted.vocabulary)
    left, right = rule_table(found), rule_table(wanted)
    assert left.keys() == right.keys()
    for key, p in left.items():
        assert p == pytest.approx(right[key], rel=rel)


@st.composite
def odd_grammars(draw: st.DrawFn) -> PCFG:
    """Small grammars whose symbols, words and labels are spelled in every awkward way."""
    pcfg = draw(small_pcfgs())
    n, v = len(pcfg.symbols), len(pcfg.vocabulary)
    text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n\r"), min_size=1, max_size=4)
    word = (st.sampled_from(ODD) | text).filter(lambda name: not re.search(r"[ \t\r\n\f\v]", name))
    words = draw(st.lists(word, min_size=v, max_size=v, unique=True))
    symbol = (st.sampled_from(ODD) | text).filter(lambda name: name not in words)
    names = [*draw(st.lists(symbol, min_size=n, max_size=n, unique=True)), *words]
    labels = tuple(draw(st.lists(st.sampled_from(ODD), min_size=n, max_size=n)))
    return replace(pcfg, symbols=tuple(names[:n]), vocabulary=tuple(names[n:]), labels=labels)


# -- text -------------------------------------------------------------------------------------------


@pytest.mark.long
@given(small_pcfgs())
def test_text_reads_back_the_same_grammar(pcfg: PCFG) -> None:
    assert_same_grammar(PCFG.from_text(pcfg.to_text()), pcfg)


@pytest.mark.long
@given(odd_grammars())
def test_text_reads_back_any_spelling(pcfg: PCFG) -> None:
    assert_same_grammar(PCFG.from_text(pcfg.to_text()), pcfg)


@pytest.mark.long
@given(odd_grammars(), st.integers(0, 9))
def test_a_word_may_be_spelled_like_a_symbol(pcfg: PCFG, pick: int) -> None:
    """Even below one parent: quotes tell them apart."""
    rules = rules_of(pcfg)
    name, word = rules.symbols[pick % len(rules.symbols)], rules.words[0]
    assume(not re.search(r"[ \t\r\n\f\v]", name))
    renamed = replace(pcfg, vocabulary=tuple(name if w == word else w for w in pcfg.vocabulary))
    assert_same_grammar(PCFG.from_text(renamed.to_text()), renamed)


def test_text_in_all_its_forms() -> None:
    pcfg = PCFG.from_text(
        """
        # a comment
        %start <ADVP|PRT>
        %label N NOUN
        N -> 'dog' [0.25] | "cat's" 0.25 | 'fish' 0.5
        N-2 -> '#' 1e0
        <ADVP|PRT> -> N N-2 0.5
        <ADVP|PRT> -> N 0.5
        """
    )
    assert pcfg.symbols[pcfg.start] == "ADVP|PRT"
    assert pcfg.labels[pcfg.symbol_ids["N"]] == "NOUN"
    assert rule_table(pcfg) == pytest.approx(
        {
            ("lexical", "N", "dog"): 0.25,
            ("lexical", "N", "cat's"): 0.25,
            ("lexical", "N", "fish"): 0.5,
            ("lexical", "N-2", "#"): 1.0,
            ("binary", "ADVP|PRT", "N", "N-2"): 0.5,
            ("unary", "ADVP|PRT", "N"): 0.5,
        }
    )


def test_the_start_can_be_given_and_goes_before_the_text() -> None:
    text = "%start S\nS -> a 1.0\nT -> S S 1.0"
    assert PCFG.from_text(text, start="T").log_prob(["a", "a"]) == pytest.approx(0.0)
    with pytest.raises(InputError, match="'X' has no rules"):
        PCFG.from_text(text, start="X")


def test_windows_line_ends_and_a_byte_order_mark_are_read(tmp_path: Path) -> None:
    path = tmp_path / "toy.txt"
    path.write_bytes(b"\xef\xbb\xbfS -> S S 0.3\r\nS -> a 0.7\r\n")
    assert_same_grammar(PCFG.load(path), PCFG.from_text("S -> S S 0.3 | a 0.7"))


def test_weights_are_normalised_when_asked() -> None:
    pcfg = PCFG.from_text("S -> S S 3 | a 6 | a 1", normalise=True)
    assert rule_table(pcfg) == pytest.approx({("binary", "S", "S", "S"): 0.3, ("lexical", "S", "a"): 0.7})


def test_long_rules_become_chains_with_the_same_probability_and_the_same_surface_tree() -> None:
    pcfg = PCFG.from_text(
        "S -> A B A 0.4 | A 'x' B 'y' 0.3 | B A B A 0.2 | 'z' 0.1\nA -> 'a' 0.6 | 'c' 0.4\nB -> 'b' 0.9 | B A B 0.1"
    )
    cases = {
        "a b a": (0.4 * 0.6 * 0.9 * 0.6, "(S (A a) (B b) (A a))"),
        "c x b y": (0.3 * 0.4 * 0.9, "(S (A c) ('x' x) (B b) ('y' y))"),
        "b a b a": (0.2 * 0.9 * 0.6 * 0.9 * 0.6, "(S (B b) (A a) (B b) (A a))"),
        "a b c b a": (0.4 * 0.6 * (0.1 * 0.9 * 0.4 * 0.9) * 0.6, "(S (A a) (B (B b) (A c) (B b)) (A a))"),
        "z": (0.1, "(S z)"),
    }
    for sentence, (probability, tree) in cases.items():
        words = sentence.split()
        assert math.exp(pcfg.log_prob(words)) == pytest.approx(probability, rel=1e-12)
        derivation, _ = pcfg.viterbi(words)
        assert str(surface(derivation, pcfg)) == tree
    assert_same_grammar(PCFG.from_text(pcfg.to_text()), pcfg)


@pytest.mark.long
def test_surface_can_keep_the_nodes_of_binarisation() -> None:
    pcfg = PCFG.from_text("S -> A A A 1.0\nA -> a 1.0")
    tree, _ = pcfg.viterbi(["a", "a", "a"])
    assert str(surface(tree, pcfg, binarised=True)) == "(S (A a) (@S (A a) (A a)))"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no rules"),
        ("# only a comment\n\n", "has no rules"),
        ("S = a 1.0", r"expecting a rule such as .*\(toy:1\)"),
        ("S -> a 1.0\n'x' -> a 1.0", r"expecting a rule.*\(toy:2\)"),
        ("S -> a", r"must end in its probability.*\(toy:1\)"),
        ("S -> a 0.5 |", r"alternative is empty.*\(toy:1\)"),
        ("S -> a 0.5 | | b 0.5", "alternative is empty"),
        ("S -> 1.0", r"write ε before the probability of an empty rule, as in ε 1\.0 \(toy:1\)"),
        ("S -> ε 0.5 | S S 0.5", "derives only the empty sentence"),
        ("S -> ε 0.5 | S S 0.6", r"the rules of 'S' sum to 1\.1, not 1"),
        ("S -> A 'b' 1\nA -> ε 0.4 | A A 0.6", "'A' derives no word, and some of its derivations never end"),
        ("S → a 1.0", r"write -> in place of → \(toy:1\)"),
        ("S -> a (ADV) 1.0", r"'\(ADV\)' is notation of other grammars; write one rule for each form"),
        ("S -> NP[num=?n] 1.0", r"'NP\[num=\?n\]' is notation of other grammars"),
        ("% start T\nS -> a 1.0", "'T' has no rules"),
        ("NP[num=?n] -> a 1.0", "features in brackets are notation of grammars"),
        ("S -> 'a cow' 1.0", "the word 'a cow' has white space in it"),
        ("S -> '' 1.0", "the word '' is empty"),
        ("S -> a 0.0 | b 1.0", "not positive"),
        ("S -> a -0.5 | b 1.5", "not positive"),
        ("S -> a nan", "must end in its probability"),
        ("S -> a inf", "must end in its probability"),
        ("S -> a 'b'", "must end in its probability"),
        ("S -> NP -> VP 1.0", "arrow"),
        ("S -> A [0.5] B [0.5]\nA -> a 1\nB -> b 1", "bracketed number"),
        ("S -> <NP> 1.0", "'NP' has no rules"),
        ("S -> a b <NP> 1.0", "'NP' has no rules"),
        ("%start\nS -> a 1.0", r"%start has the wrong number of names after it, 0 \(toy:1\)"),
        ("%label S\nS -> a 1.0", "%label has the wrong number of names after it, 1"),
        ("%start T\nS -> a 1.0", "'T' has no rules"),
        ("S -> a 0.6 | b 0.3", r"the rules of 'S' sum to 0\.9, not 1"),
        ("S -> a 0.6 | A 0.4\nA -> b 1.7", r"a lexical rule of 'A' has a probability outside \(0, 1\]"),
    ],
)
def test_bad_text_is_refused_in_one_sentence(text: str, message: str) -> None:
    from truesource.grammar.formats.text import parse_text

    with pytest.raises(InputError, match=message) as caught:
        parse_text(text, path="toy")
    assert "(toy" in str(caught.value)
    assert "\n" not in str(caught.value)


# -- NLTK -------------------------------------------------------------------------------------------

NLTK_TEXT = """
    S -> NP VP [0.9] | VP [0.1]
    NP -> 'I' [0.3] | D N [0.4] | NP PP [0.3]
    VP -> V NP [0.6] | VP PP [0.3] | 'sleep' [0.1]
    PP -> P NP [1.0]
    D -> 'the' [0.6] | "a" [0.4]
    N -> 'man' [0.5] | "man's" [0.1] | 'telescope' [0.4]
    V -> 'saw' [1.0]
    P -> 'with' [1.0]
"""


def test_the_text_of_an_nltk_grammar_is_read() -> None:
    import nltk

    theirs = nltk.PCFG.fromstring(NLTK_TEXT)
    wanted = PCFG.from_text(NLTK_TEXT)
    assert wanted.n_rules == len(theirs.productions())
    for text in (str(theirs), "\n".join(str(rule) for rule in theirs.productions())):
        assert_same_grammar(PCFG.from_text(text), wanted)


def test_the_heading_of_an_nltk_grammar_names_the_start() -> None:
    import nltk

    theirs = nltk.PCFG(nltk.Nonterminal("B"), nltk.PCFG.fromstring("A -> B [1.0]\nB -> 'b' [1.0]").productions())
    ours = PCFG.from_text(str(theirs))
    assert ours.symbols[ours.start] == "B"


@pytest.mark.parametrize(
    "sentence", ["I saw the man", "I saw the man with a telescope", "sleep", "the man saw a telescope with I with I"]
)
def test_nltk_parsers_find_the_same_probabilities(sentence: str) -> None:
    import nltk

    ours, theirs = PCFG.from_text(NLTK_TEXT), nltk.PCFG.fromstring(NLTK_TEXT)
    words = sentence.split()
    trees = list(nltk.InsideChartParser(theirs, beam_size=0).parse(words))
    assert math.exp(ours.log_prob(words)) == pytest.approx(math.fsum(t.prob() for t in trees), rel=1e-10)
    (best,) = nltk.ViterbiParser(theirs).parse(words)
    tree, score = ours.viterbi(words)
    assert score == pytest.approx(math.log(best.prob()), rel=1e-10)
    assert math.exp(score) == pytest.approx(max(t.prob() for t in trees), rel=1e-10)
    assert str(tree) in {" ".join(str(t).rsplit(" (p=", 1)[0].split()) for t in trees}


# -- EarleyX ----------------------------------------------------------------------------------------


def test_earleyx_text_is_read() -> None:
    pcfg = parse_earleyx("ROOT->[S] : 1.0\nS->[S S] : 0.3\nS->[_a] : 0.5\n\nS->[__] : 0.2\nS->[_c] : 0.0\n")
    assert rule_table(pcfg) == pytest.approx(
        {
            ("unary", "ROOT", "S"): 1.0,
            ("binary", "S", "S", "S"): 0.3,
            ("lexical", "S", "a"): 0.5,
            ("lexical", "S", "_"): 0.2,
        }
    )


def test_earleyx_words_may_be_spelled_like_symbols() -> None:
    pcfg = parse_earleyx("ROOT->[S] : 1.0\nS->[_S] : 0.5\nS->[ROOT] : 0.5")
    assert ("lexical", "S", "S") in rule_table(pcfg)
    assert ("unary", "S", "ROOT") in rule_table(pcfg)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\n", "has no rules"),
        ("ROOT->[S] : 1.0\nS->[a b", r"expecting a rule such as VP->\[V NP\] : 0\.6.*\(x:2\)"),
        ("ROOT->[_a] : one", r"'one' is not a probability \(x:1\)"),
        ("ROOT->[S] : 1.0", r"'S' has no rules; write it _S if it is a word \(x:1\)"),
        ("ROOT->[S] : nan\nS->[_a] : 1.0", r"'nan' is not a probability \(x:1\)"),
        ("ROOT->[S] : 1.0\nS->[_a] : -0.1", r"'-0.1' is not a probability \(x:2\)"),
        (
            "S->[_a] : 1.0\nT->[_a] : 1.0",
            r"there is no start symbol ROOT; choose one \(candidates: S, T\): truesource convert --start NAME \(x\)",
        ),
        ("ROOT->[] : 1.0", "derives only the empty sentence"),
    ],
)
def test_bad_earleyx_text_is_refused(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_earleyx(text, path="x")


# -- files ------------------------------------------------------------------------------------------


@pytest.mark.long
@given(odd_grammars())
def test_npz_reads_back_the_equal_grammar(tmp_path_factory: pytest.TempPathFactory, pcfg: PCFG) -> None:
    path = tmp_path_factory.mktemp("npz") / "toy.npz"
    pcfg.with_meta(made_by="a test", numbers=[1, 2.5, None]).save(path)
    found = PCFG.load(path)
    assert found == pcfg
    assert found.symbols == pcfg.symbols
    assert found.meta == {"made_by": "a test", "numbers": [1, 2.5, None]}


def test_equal_grammars_give_equal_bytes(tmp_path: Path) -> None:
    TOY.save(tmp_path / "one.npz")
    other = PCFG.load(tmp_path / "one.npz")
    other.save(tmp_path / "two.npz")
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()


@pytest.mark.parametrize("name", ["toy.npz", "toy.txt", "toy.grammar"])
def test_the_content_decides_the_format_and_not_the_name(tmp_path: Path, name: str) -> None:
    save_grammar(TOY, tmp_path / name)
    (tmp_path / name).rename(tmp_path / "renamed")
    assert_same_grammar(PCFG.load(tmp_path / "renamed"), TOY)


def test_compressed_text_is_read(tmp_path: Path) -> None:
    path = tmp_path / "toy.gz"
    path.write_bytes(gzip.compress(TOY.to_text().encode()))
    assert_same_grammar(PCFG.load(path), TOY)
    earleyx = gzip.compress(b"ROOT->[S] : 1.0\nS->[_a] : 1.0")
    path.write_bytes(earleyx)
    assert PCFG.load(path).log_prob(["a"]) == pytest.approx(0.0)


@pytest.fixture(scope="module")
def npz_bytes(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("good") / "toy.npz"
    TOY.save(path)
    return path.read_bytes()


def refused(path: Path, content: bytes) -> str:
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        PCFG.load(path)
    message = str(caught.value)
    assert str(path) in message
    assert "\n" not in message
    return message


@pytest.mark.parametrize("tenths", range(10))
@pytest.mark.parametrize("kind", ["npz", "gz"])
def test_a_truncated_file_is_refused(tmp_path: Path, npz_bytes: bytes, kind: str, tenths: int) -> None:
    whole = npz_bytes if kind == "npz" else gzip.compress(TOY.to_text().encode())
    refused(tmp_path / "cut", whole[: len(whole) * tenths // 10])


@pytest.mark.long
def test_a_flipped_bit_is_refused_or_harmless(tmp_path: Path, npz_bytes: bytes) -> None:
    path, refusals = tmp_path / "flipped.npz", 0
    for i in range(0, len(npz_bytes), 3):
        damaged = bytearray(npz_bytes)
        damaged[i] ^= 1 << (i % 8)
        path.write_bytes(damaged)
        try:
            assert PCFG.load(path) == TOY  # a bit that carries nothing, such as the date of an entry
        except InputError as error:
            refusals += 1
            assert "\n" not in str(error)
    assert refusals > len(npz_bytes) / 3 / 3


def test_a_flipped_bit_in_compressed_text_is_refused_or_harmless(tmp_path: Path) -> None:
    path, whole = tmp_path / "flipped.gz", gzip.compress(TOY.to_text().encode())
    for i in range(len(whole)):
        damaged = bytearray(whole)
        damaged[i] ^= 1 << (i % 8)
        path.write_bytes(damaged)
        try:
            assert_same_grammar(PCFG.load(path), TOY)
        except InputError as error:
            assert "\n" not in str(error)


@pytest.mark.long
def test_noise_is_refused(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    for _ in range(50):
        noise = rng.integers(0, 256, 300, dtype=np.uint8).tobytes()
        refused(tmp_path / "noise", noise)
        refused(tmp_path / "noise", b"PK\x03\x04" + noise)
        refused(tmp_path / "noise", b"\x1f\x8b\x08\x00" + noise)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"there is no such file; check the path \(.*absent"):
        PCFG.load(tmp_path / "absent")
    with pytest.raises(InputError, match="cannot read the file: Is a directory"):
        PCFG.load(tmp_path)


def crafted(path: Path, **changes: Any) -> None:
    """An archive like ours with some entries changed; None removes one."""
    arrays: dict[str, Any] = {name: getattr(TOY, name) for name in ARRAYS}
    head: dict[str, Any] = {
        "format": "truesource-pcfg",
        "version": 1,
        **{name: getattr(TOY, name) for name in ("symbols", "labels", "start", "digest")},
        "terminals": TOY.vocabulary,
        "meta": {},
    }
    for name, value in changes.items():
        target = arrays if name in arrays else head
        target[name] = value
        if value is None:
            del target[name]
    np.savez_compressed(path, head=np.frombuffer(json.dumps(head).encode(), dtype=np.uint8), **arrays)


def test_the_crafted_archive_is_good_where_nothing_is_changed(tmp_path: Path) -> None:
    crafted(tmp_path / "toy.npz")
    assert PCFG.load(tmp_path / "toy.npz") == TOY


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        *(
            ({name: None}, "this .npz is damaged: ")
            for name in ("version", "symbols", "terminals", "labels", "start", "meta")
        ),
        *(({name: None}, "this .npz is damaged: ") for name in ("digest", "binary", "lexical_logp")),
        ({"format": None}, "use a truesource grammar"),
        ({"format": "another"}, "use a truesource grammar"),
        ({"version": True}, "version: expected a whole number, not True"),
        ({"start": False}, "start: expected a whole number, not False"),
        ({"symbols": ["S", 1]}, "symbols.1: expected a text, not 1"),
        ({"terminals": ["a", None, "c"]}, "terminals.1: expected a text, not None"),
        ({"labels": [1, 2]}, "labels.0: expected a text, not 1"),
        ({"labels": ["S", "\ud800"]}, "not JSON"),
        ({"meta": []}, "meta: expected values by name"),
        ({"binary_logp": TOY.binary_logp.astype(complex)}, "array binary_logp is not as expected, .* complex128"),
        ({"binary_logp": TOY.binary_logp.astype(str)}, "array binary_logp is not as expected"),
        ({"binary": TOY.binary.astype(float)}, "array binary is not as expected, .* float64"),
        ({"lexical": TOY.lexical.astype(bool)}, "array lexical is not as expected, .* bool"),
        ({"version": 2}, "version is 2, newer than 1"),
        ({"version": "1"}, "damaged"),
        ({"digest": "0" * 64}, "does not match its stored digest"),
        ({"binary_logp": np.log([0.3000001])}, "does not match its stored digest"),
        ({"terminals": ["a", "b", "x"]}, "does not match its stored digest"),
        ({"labels": ["S", "A"]}, "does not match its stored digest"),
        ({"symbols": ["S", "S"]}, "distinct symbols"),
        ({"symbols": 5}, "damaged"),
        ({"start": "S"}, "damaged"),
        ({"start": 7}, r"not in 0\.\.1"),
        ({"binary": np.zeros(4, dtype=np.int32)}, "damaged"),
        ({"binary": np.array([[0, 0, 9]], dtype=np.int32)}, "has a symbol or word that is not in the grammar"),
        ({"binary_logp": np.array([math.nan])}, "outside"),
        ({"binary_logp": np.log([0.4])}, r"the rules of 'S' sum to 1\.1"),
    ],
)
def test_a_crafted_archive_is_refused(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    crafted(tmp_path / "bad.npz", **changes)
    with pytest.raises(InputError, match=message) as caught:
        PCFG.load(tmp_path / "bad.npz")
    assert str(caught.value).endswith("bad.npz)")


@pytest.mark.parametrize("names", [{"symbols": ("S", 1)}, {"vocabulary": ("a", "\ud800")}, {"labels": (None, "A")}])
def test_names_that_are_not_texts_never_make_a_grammar(names: dict[str, Any]) -> None:
    parts = {part.name: getattr(TOY, part.name) for part in fields(TOY)}
    with pytest.raises(InputError, match="the name of a symbol"):
        PCFG(**{**parts, **names})


def test_pickles_are_never_opened(tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> Any:
            return (open, (str(tmp_path / "sprung"), "w"))

    crafted(tmp_path / "bad.npz", binary=np.array([Trap()], dtype=object))
    with pytest.raises(InputError, match="damaged"):
        PCFG.load(tmp_path / "bad.npz")
    assert not (tmp_path / "sprung").exists()


def test_an_archive_of_something_else_is_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "other.npz", x=np.arange(3))
    with pytest.raises(InputError, match="has no array head; use a truesource grammar"):
        PCFG.load(tmp_path / "other.npz")


@pytest.mark.parametrize("name", ["toy.npz", "toy.txt"])
def test_nothing_is_overwritten_without_force(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text("precious")
    with pytest.raises(InputError, match="without --force"):
        save_grammar(TOY, path)
    assert path.read_text() == "precious"
    save_grammar(TOY, path, force=True)
    assert_same_grammar(PCFG.load(path), TOY)


@pytest.mark.parametrize("interruption", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
def test_the_old_file_survives_a_full_disk_and_ctrl_c(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, interruption: BaseException
) -> None:
    path = tmp_path / "toy.npz"
    TOY.save(path)
    before = path.read_bytes()

    def fails(stream: Any, **_: Any) -> None:
        stream.write(b"half")
        raise interruption

    monkeypatch.setattr(np, "savez_compressed", fails)
    expected = KeyboardInterrupt if isinstance(interruption, KeyboardInterrupt) else InputError
    with pytest.raises(expected) as caught:
        PCFG.from_text("S -> a 1.0").save(path, force=True)
    if expected is InputError:
        assert "No space left on device" in str(caught.value)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["toy.npz"]


def test_a_folder_that_cannot_be_made_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError):
        TOY.save(tmp_path / "file" / "toy.npz")


# -- every format -----------------------------------------------------------------------------------


def spelled(pcfg: PCFG) -> PCFG:
    """The names that hypothesis draws are plain; these need care in one format or another."""
    symbols = tuple({"S": "S", "A": "PRP$", "B": "@NP", "C": "-LRB-", "D": "''"}[name] for name in pcfg.symbols)
    words = tuple({"a": "a", "b": "it's", "c": '"', "d": "->["}[word] for word in pcfg.vocabulary)
    return replace(pcfg, symbols=symbols, vocabulary=words, labels=symbols)


@pytest.mark.long
@pytest.mark.parametrize("format_name", names())
@given(pcfg=small_pcfgs())
def test_a_file_of_any_format_becomes_npz_and_the_same_again(
    tmp_path_factory: pytest.TempPathFactory, format_name: str, pcfg: PCFG
) -> None:
    folder = tmp_path_factory.mktemp("formats")
    save_grammar(spelled(pcfg), folder / "one", format=format_name)
    one = PCFG.load(folder / "one", format=format_name)
    assert_same_grammar(PCFG.load(folder / "one"), one)  # found from the content
    save_grammar(one, folder / "kept.npz")
    kept = PCFG.load(folder / "kept.npz")
    assert kept == one
    save_grammar(kept, folder / "two", format=format_name)
    assert_same_grammar(PCFG.load(folder / "two", format=format_name), one)
    assert one.exact.total_mass == pytest.approx(pcfg.exact.total_mass)
    assert one.n_rules in (pcfg.n_rules, pcfg.n_rules + 1)  # a rule above the start, where the format wants ROOT


def test_the_format_and_the_start_may_be_given(tmp_path: Path) -> None:
    pcfg = PCFG.from_text("S -> T 0.5 | a 0.5\nT -> T S 0.2 | b 0.8")
    for format_name in names():
        save_grammar(pcfg, tmp_path / format_name, format=format_name)
        name = "T_0" if format_name == "berkeley" else "T"
        found = PCFG.load(tmp_path / format_name, format=format_name, start=name)
        assert math.exp(found.log_prob(["b"])) == pytest.approx(0.8)
        with pytest.raises(InputError, match="the start symbol 'X' has no rules"):
            PCFG.load(tmp_path / format_name, start="X")
    with pytest.raises(InputError, match="no grammar format 'xml'; choose one of berkeley, earleyx, nltk, npz, text"):
        PCFG.load(tmp_path / "text", format="xml")
    with pytest.raises(InputError, match="no grammar format 'xml'"):
        save_grammar(pcfg, tmp_path / "new", format="xml")
    with pytest.raises(InputError, match="expecting a rule such as VP"):
        PCFG.load(tmp_path / "text", format="earleyx")
    with pytest.raises(InputError, match="npz is damaged; use a truesource grammar"):
        PCFG.load(tmp_path / "text", format="npz")


def test_dividing_by_sums_is_said_and_done_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "weights").write_text("S -> S S 3 | A 7\nA -> a 1.0\n")
    with caplog.at_level(logging.INFO, logger="truesource"):
        pcfg = PCFG.load(tmp_path / "weights", normalise=True)
    assert rule_table(pcfg) == pytest.approx(
        {("binary", "S", "S", "S"): 0.3, ("unary", "S", "A"): 0.7, ("lexical", "A", "a"): 1.0}
    )
    assert pcfg.meta["normalised"] == {"symbols": 1, "lowest": 10.0, "highest": 10.0, "worst": "S"}
    (record,) = caplog.records
    assert record.getMessage().endswith("divided by their sums, 10 to 10 (furthest: S)")
    caplog.clear()
    save_grammar(pcfg, tmp_path / "proper")
    with caplog.at_level(logging.INFO, logger="truesource"):
        again = PCFG.load(tmp_path / "proper", normalise=True)
    assert "normalised" not in again.meta
    assert not caplog.records


@pytest.mark.long
@given(odd_grammars())
def test_nltk_itself_reads_what_is_written_for_it(pcfg: PCFG) -> None:
    """Rules, start and probabilities, any spelling that NLTK can quote."""
    import nltk

    if any("'" in word and '"' in word for word in pcfg.vocabulary):
        with pytest.raises(InputError, match="both kinds of quotes"):
            format_nltk(pcfg)
        return
    text = format_nltk(pcfg)
    theirs = nltk.PCFG.fromstring(text)
    ours = parse_nltk(text)
    assert_same_grammar(ours, pcfg)
    assert len(theirs.productions()) == pcfg.n_rules
    assert sorted(p.prob() for p in theirs.productions()) == pytest.approx(
        sorted(p for table in pcfg.tables() for p in np.exp(table[1]).tolist()), rel=1e-15
    )
    names = dict(zip(_nltk_names(text), pcfg.symbols, strict=True))
    table = {}
    for rule in theirs.productions():
        kind = "lexical" if isinstance(rule.rhs()[0], str) else ("unary", "binary")[len(rule.rhs()) - 1]
        below = (names[str(x)] if isinstance(x, nltk.Nonterminal) else x for x in rule.rhs())
        table[kind, names[str(rule.lhs())], *below] = rule.prob()
    assert table == pytest.approx(rule_table(pcfg), rel=1e-15)
    assert names[str(theirs.start())] == pcfg.symbols[pcfg.start]


def _nltk_names(text: str) -> list[str]:
    """Names that NLTK sees, in the order of our symbols (the start is number 0 and comes first)."""
    return list(dict.fromkeys(line.split(" -> ")[0] for line in text.split("\n")[2:-1]))


def test_names_made_for_nltk_never_meet_a_real_one() -> None:
    import nltk

    text = "<x^24^> -> $ $ 0.5 | a 0.5\n$ -> <x^24^_> 0.5 | b 0.5\n<x^24^_> -> c 1.0"
    for start in ("x^24^", "$"):
        pcfg = PCFG.from_text(text, start=start)
        assert_same_grammar(parse_nltk(format_nltk(pcfg)), pcfg)
        assert len({p.lhs() for p in nltk.PCFG.fromstring(format_nltk(pcfg)).productions()}) == 3


@pytest.mark.long
@given(small_pcfgs())
def test_plain_names_need_no_table_for_nltk(pcfg: PCFG) -> None:
    """The rules are then NLTK's own text, and its own printout of them is read as well."""
    import nltk

    rules = "\n".join(format_nltk(pcfg).split("\n")[1:])
    for text in (rules, "\n".join(line for line in rules.split("\n") if not line.startswith("%"))):
        assert_same_grammar(parse_nltk(text), pcfg)
        assert_same_grammar(PCFG.from_text(text), pcfg)
    printed = str(nltk.PCFG.fromstring(rules))
    assert_same_grammar(parse_nltk(printed, ReadOptions(normalise=True)), pcfg, rel=1e-4)


@pytest.mark.parametrize("rules", ["S -> 'cat' [1.0]", "S -> 'cat' 1.0", "1.0 S cat"])
def test_a_backslash_with_nothing_to_continue_is_a_blank_line(rules: str) -> None:
    parse = parse_weight_first if rules.startswith("1.0") else parse_nltk if "[" in rules else parse_text
    for text in (f"{rules}\n\\", f"{rules}\n\\\n\\\n", f"{rules} \\\n\\\n"):
        assert_same_grammar(PCFG.of(parse(text)), PCFG.of(parse(rules)))
    with pytest.raises(InputError, match="the grammar has no rules"):
        parse("\\\n")


def test_backslashes_are_nothing_special_to_nltk() -> None:
    import nltk

    text = "S -> '\\' [0.5] | \"it's\" [0.25] | 'a' S S '\"' [0.25]"
    ours = PCFG.of(parse_nltk(text))
    assert ours.log_prob(["\\"]) == pytest.approx(math.log(0.5))
    assert ours.log_prob(["a", "\\", "it's", '"']) == pytest.approx(math.log(0.25 * 0.5 * 0.25))
    assert {
        word for rule in nltk.PCFG.fromstring(text).productions() for word in rule.rhs() if isinstance(word, str)
    } == (set(ours.vocabulary))


def test_words_that_nltk_cannot_quote_are_refused() -> None:
    pcfg = replace(TOY, vocabulary=('it\'s"so"', *TOY.vocabulary[1:]))
    with pytest.raises(InputError, match="NLTK text cannot hold the word"):
        format_nltk(pcfg)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no rules"),
        ("S -> 'a' 1.0", r"NLTK has no symbols such as '1\.0'.*\(toy:1\)"),
        ("S -> 'a' [1.0]\nPRP$ -> 'b' [1.0]", r"expecting a rule such as S -> NP VP \[0\.9\].*\(toy:2\)"),
        ("S -> PRP$ [1.0]", r"NLTK has no symbols such as 'PRP\$'"),
        ("S -> NP [1.0]", "the symbol 'NP' has no rules"),
        ("S -> 'a [1.0]", "NLTK has no symbols such as"),
        ("S -> 'a'", "must end in its probability"),
        ("%label S X\nS -> 'a' [1.0]", r"expecting %start.*\(toy:1\)"),
        ("# NLTK PCFG written by truesource {}\nS -> 'a' [1.0]", r"table of names.*\(toy:1\)"),
        ("# NLTK PCFG written by truesource [1\nS -> 'a' [1.0]", r"table of names.*\(toy:1\)"),
    ],
)
def test_bad_nltk_text_is_refused(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        parse_nltk(text, path="toy")
    assert "\n" not in str(caught.value)


@pytest.mark.long
@given(small_pcfgs())
def test_earleyx_text_is_read_back(pcfg: PCFG) -> None:
    """With a rule above the start, from which the tool begins; nothing is added the second time."""
    named = spelled(pcfg)
    found = parse_earleyx(format_earleyx(named))
    assert rule_table(found) == pytest.approx(rule_table(named) | {("unary", "ROOT", "S"): 1.0}, rel=1e-15)
    assert rule_table(parse_earleyx(format_earleyx(named), ReadOptions(start="S"))).keys() == rule_table(found).keys()
    again = parse_earleyx(format_earleyx(found))
    assert_same_grammar(again, found)
    assert format_earleyx(replace(found, start=found.symbol_ids["S"])) == format_earleyx(found)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("S -> 'a\u00a0b' 1.0", "cannot hold the word"),
        ("S -> _X 1.0\n_X -> a 1.0", "cannot hold the symbol '_X'"),
        ("S -> <A B> 1.0\n<A B> -> a 1.0", "cannot hold the symbol 'A B'"),
        (
            "S -> ROOT 0.5 | a 0.5\nROOT -> a 1.0",
            "EarleyX starts from ROOT, which is another symbol of this grammar; rename",
        ),
    ],
)
def test_what_earleyx_cannot_hold_is_refused(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        format_earleyx(PCFG.from_text(text))


def test_earleyx_substates_are_projected_to_labels() -> None:
    text = "ROOT->[S_0] : 1.0\nS_0->[ATS_1 S_0] : 0.5\nS_0->[_a] : 0.5\nATS_1->[_b] : 1.0\n"
    pcfg = parse_earleyx(text)
    assert dict(zip(pcfg.symbols, pcfg.labels, strict=True)) == {"ROOT": "ROOT", "S_0": "S", "ATS_1": "@S"}
    other = parse_earleyx(text + "S_0->[NP] : 0.5\nNP->[_c] : 1.0\n")
    assert other.labels == other.symbols


def test_symbols_whose_names_have_blanks_do_not_run_together_with_long_rules() -> None:
    pcfg = PCFG.from_text(
        "S -> X <A B> C 0.5 | Y A <B C> 0.5\nX -> 'x' 1\nY -> 'y' 1\nA -> 'a' 1\nC -> 'c' 1\n<A B> -> 'ab' 1\n"
        "<B C> -> 'bc' 1"
    )
    assert math.exp(pcfg.log_prob(["x", "ab", "c"])) == pytest.approx(0.5, rel=1e-15)
    assert math.exp(pcfg.log_prob(["y", "a", "bc"])) == pytest.approx(0.5, rel=1e-15)
    assert pcfg.log_prob(["x", "a", "bc"]) == pcfg.log_prob(["y", "ab", "c"]) == -math.inf
    assert_same_grammar(PCFG.from_text(pcfg.to_text()), pcfg)


@pytest.mark.parametrize("normalise", [False, True])
def test_a_symbol_may_be_called_like_the_symbol_of_a_word_or_of_a_rest(normalise: bool) -> None:
    pcfg = PCFG.from_text(
        "S -> <'go'> 0.25 | X 'go' 0.25 | X X <'go'> 0.5\n<'go'> -> 'stop' 1\nX -> 'x' 0.5 | <@S: X 'go'> 0.5\n"
        "<@S: X 'go'> -> 'y' 1",
        normalise=normalise,
    )
    wanted = {"stop": 0.25, "x go": 0.125, "y go": 0.125, "x x stop": 0.125, "y x stop": 0.125}
    for sentence, p in wanted.items():
        assert math.exp(pcfg.log_prob(sentence.split())) == pytest.approx(p, rel=1e-15)
    assert len(set(pcfg.labels)) == len(pcfg.labels)
    assert_same_grammar(PCFG.from_text(pcfg.to_text()), pcfg)


@st.composite
def long_rules(draw: st.DrawFn) -> list[tuple[tuple[str, bool], ...]]:
    """Right-hand sides of three to five children, each a symbol or a quoted word, whose names run together easily."""
    name = st.sampled_from(["A", "B", "A B", "B A", "'a'", "@S: A B", "a", "A 'a'"])
    child = st.tuples(name, st.booleans())
    return draw(st.lists(st.lists(child, min_size=3, max_size=5).map(tuple), min_size=1, max_size=6, unique=True))


def one_word(name: str) -> str:
    return name.replace(" ", "_")


@pytest.mark.long
@given(long_rules())
def test_every_long_rule_makes_its_own_sentence(rules: list[tuple[tuple[str, bool], ...]]) -> None:
    """Each symbol makes one word, so that sentences are rules; only rules that spell the same share a probability."""
    names = dict.fromkeys(name for rule in rules for name, is_word in rule if not is_word)
    lines = [
        "S -> " + " ".join(f'"{one_word(n)}"' if is_word else f"<{n}>" for n, is_word in rule) + f" {k + 1}"
        for k, rule in enumerate(rules)
    ]
    lines += [f'<{name}> -> "made-by-{one_word(name)}" 1' for name in names]
    pcfg = PCFG.from_text("\n".join(lines), normalise=True)
    total = len(rules) * (len(rules) + 1) / 2
    for k, rule in enumerate(rules):
        sentence = [one_word(n) if is_word else f"made-by-{one_word(n)}" for n, is_word in rule]
        assert math.exp(pcfg.log_prob(sentence)) == pytest.approx((k + 1) / total, rel=1e-12)


def test_an_unquoted_name_without_rules_is_a_mistake_where_words_are_quoted(tmp_path: Path) -> None:
    text = "S -> NP VP 1\nNP -> 'dogs' 0.5 | 'cats' 0.5\nVP -> Vi 0.5 | Vt NP 0.5\nVi -> 'run' 1\n"
    (tmp_path / "g.txt").write_text(text)
    with pytest.raises(InputError, match=r"'Vt' has no rules and no quotes.*\(.*g\.txt:3\)") as caught:
        PCFG.load(tmp_path / "g.txt")
    assert caught.value.line == 3
    pcfg = PCFG.load(tmp_path / "g.txt", lenient=True)
    assert pcfg.meta["unquoted"] == {"Vt": 3}
    assert "Vt" in pcfg.vocabulary
    assert PCFG.from_text(text.replace("Vt NP", "'Vt' NP")).log_prob(["dogs", "Vt", "cats"]) == pytest.approx(
        math.log(0.125)
    )
    assert "unquoted" not in PCFG.from_text(text.replace("'", "")).meta


# -- a new format -----------------------------------------------------------------------------------

NEW_FORMAT = """
import json

from truesource.grammar.formats import GrammarFormat
from truesource.grammar.formats.text import format_text, parse_text


def read(source, options):
    return parse_text(json.loads(source.text)["rules"], options, source.path)


FORMAT = GrammarFormat(
    read=read,
    write=lambda pcfg, path: path.write_text(json.dumps({"rules": format_text(pcfg)})),
    sniff=lambda source: source.first_line.startswith('{"rules"'),
    extensions=(".json",),
)
"""


@pytest.fixture
def rules_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    (tmp_path / "formats").mkdir()
    (tmp_path / "formats" / "rules_json.py").write_text(NEW_FORMAT)
    monkeypatch.setattr(formats, "__path__", [*formats.__path__, str(tmp_path / "formats")])
    yield "rules_json"
    del sys.modules[f"{formats.__name__}.rules_json"]


def test_a_new_format_is_one_file(rules_json: str, tmp_path: Path) -> None:
    save_grammar(TOY, tmp_path / "toy.json")
    assert (tmp_path / "toy.json").read_text().startswith('{"rules"')
    (tmp_path / "toy.json").rename(tmp_path / "toy")
    assert_same_grammar(PCFG.load(tmp_path / "toy"), TOY)
    assert_same_grammar(PCFG.load(tmp_path / "toy", format=rules_json), TOY)
    assert source_files(tmp_path / "toy") == [tmp_path / "toy"]
    with pytest.raises(InputError, match="will not overwrite"):
        save_grammar(TOY, tmp_path / "toy", format=rules_json)
    with pytest.raises(InputError, match=f"choose one of berkeley, earleyx, nltk, npz, {rules_json}, text"):
        PCFG.load(tmp_path / "toy", format="xml")
