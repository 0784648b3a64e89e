"""The template compiler: tiny grammars against hand-expanded rules, and errors with file and line."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.errors import InputError
from truesource.grammar.template import compile_template

HEAD = """\
start ROOT
feature num sg pl
feature cls living dead
category ROOT
category NP num cls
category VP num
category N num cls
category V num
"""
RULES = """\
ROOT -> NP[?n,?c] VP[?n] : 1 by often(?n) kind(?n,?c)
NP[?n,?c] -> N[?n,?c] : 1
VP[?n] -> V[?n] : 1
table often num
  sg 3  pl 1
table kind num cls
  sg  living 1
  pl  living 1  dead 1
"""
WORDS = """\
zipf 1 1
paradigm noun c : N[sg,?c] N[pl,?c]
noun living
  dog dogs
  ox oxen
noun dead
  rock rocks
words V[sg]
  sleeps*3 falls
words V[pl]
  sleep fall
"""


def compiled(folder: Path, grammar: str, words: str = WORDS) -> PCFG:
    (folder / "grammar.txt").write_text(grammar, encoding="utf-8")
    (folder / "words.txt").write_text(words, encoding="utf-8")
    return compile_template(folder)


def rules_of(pcfg: PCFG) -> dict[tuple[str, tuple[str, ...]], float]:
    """Every rule and its probability, by names."""
    names, words = pcfg.symbols, pcfg.vocabulary
    rules = {
        (names[a], (names[b], names[c])): math.exp(p)
        for (a, b, c), p in zip(pcfg.binary, pcfg.binary_logp, strict=True)
    }
    rules |= {(names[a], (names[b],)): math.exp(p) for (a, b), p in zip(pcfg.unary, pcfg.unary_logp, strict=True)}
    rules |= {(names[a], (words[w],)): math.exp(p) for (a, w), p in zip(pcfg.lexical, pcfg.lexical_logp, strict=True)}
    return rules


def test_a_tiny_template_against_its_rules_written_out(tmp_path: Path) -> None:
    pcfg = compiled(tmp_path, HEAD + RULES)
    first, second = 1 / 2, 1 / 3  # zipf 1 1: ranks 1 and 2
    assert rules_of(pcfg) == pytest.approx(
        {
            ("ROOT", ("NP-sg-living", "VP-sg")): 3 / 5,
            ("ROOT", ("NP-pl-living", "VP-pl")): 1 / 5,
            ("ROOT", ("NP-pl-dead", "VP-pl")): 1 / 5,
            ("NP-sg-living", ("N-sg-living",)): 1,
            ("NP-pl-living", ("N-pl-living",)): 1,
            ("NP-pl-dead", ("N-pl-dead",)): 1,
            ("VP-sg", ("V-sg",)): 1,
            ("VP-pl", ("V-pl",)): 1,
            ("N-sg-living", ("dog",)): first / (first + second),
            ("N-sg-living", ("ox",)): second / (first + second),
            ("N-pl-living", ("dogs",)): first / (first + second),
            ("N-pl-living", ("oxen",)): second / (first + second),
            ("N-pl-dead", ("rocks",)): 1,
            ("V-sg", ("sleeps",)): 3 / 4,
            ("V-sg", ("falls",)): 1 / 4,
            ("V-pl", ("sleep",)): first / (first + second),
            ("V-pl", ("fall",)): second / (first + second),
        }
    )
    assert pcfg.symbols[pcfg.start] == "ROOT"
    assert "rock" not in pcfg.vocabulary  # a dead singular is never asked for: unreachable


def test_shares_are_divided_among_the_instances_that_can_derive_words(tmp_path: Path) -> None:
    grammar = HEAD + "ROOT -> N[sg,*] V[sg] : 3\n  | N[pl,*] V[pl] : 1\n"
    words = "words N[sg,living]\n  dog\nwords N[pl,*]\n  dogs\nwords V[*]\n  ran\n"
    assert rules_of(compiled(tmp_path, grammar, words)) == pytest.approx(
        {
            ("ROOT", ("N-sg-living", "V-sg")): 3 / 4,  # N[sg,dead] has no word, its part goes to the other
            ("ROOT", ("N-pl-living", "V-pl")): 1 / 8,
            ("ROOT", ("N-pl-dead", "V-pl")): 1 / 8,
            ("N-sg-living", ("dog",)): 1,
            ("N-pl-living", ("dogs",)): 1,
            ("N-pl-dead", ("dogs",)): 1,
            ("V-sg", ("ran",)): 1,
            ("V-pl", ("ran",)): 1,
        }
    )


def test_a_share_factor_weighs_by_left_hand_side_and_equal_rules_add_up(tmp_path: Path) -> None:
    grammar = HEAD + (
        "table often num\n  sg 3  pl 1\n"
        "ROOT -> VP[?n] VP[?n] : 1\n"
        "VP[?n] -> V[?n] V[?n] : 1*often(?n)\n"
        "VP[?n] -> V[?n] V[?n] : 1\n"
        "VP[?n] -> V[?n] : 2\n"
    )
    rules = rules_of(compiled(tmp_path, grammar, "words V[*]\n  ran\n"))
    assert rules["VP-sg", ("V-sg", "V-sg")] == pytest.approx(4 / 6)
    assert rules["VP-pl", ("V-pl", "V-pl")] == pytest.approx(2 / 4)


def test_restricted_variables_complements_and_several_left_sides(tmp_path: Path) -> None:
    grammar = HEAD + ("ROOT -> NP[?n=sg,!dead] VP[?n] : 1\nNP[?n,?c] & VP[?n] -> V[?n] : 1\n")
    rules = rules_of(compiled(tmp_path, grammar, "words V[*]\n  ran\n"))
    assert set(rules) == {
        ("ROOT", ("NP-sg-living", "VP-sg")),
        ("NP-sg-living", ("V-sg",)),
        ("VP-sg", ("V-sg",)),
        ("V-sg", ("ran",)),
    }


def test_longer_rules_share_their_tails_and_keep_their_probability(tmp_path: Path) -> None:
    grammar = HEAD + (
        "category X\nlabel Y VP[pl]\nROOT -> VP[?n] : 1\nVP[?n] -> V[?n] X V[?n] X : 1\n  | X X V[?n] X : 1\n"
    )
    pcfg = compiled(tmp_path, grammar, "words V[*]\n  ran\nwords X\n  so\n")
    rules = rules_of(pcfg)
    assert rules["VP-sg", ("V-sg", "@VP.X.V-sg.X")] == pytest.approx(1 / 2)
    assert rules["VP-sg", ("X", "@VP.X.V-sg.X")] == pytest.approx(1 / 2)  # the same tail
    assert rules["@VP.X.V-sg.X", ("X", "@VP.V-sg.X")] == 1
    assert rules["@VP.V-sg.X", ("V-sg", "X")] == 1
    labels = dict(zip(pcfg.symbols, pcfg.labels, strict=True))
    assert labels["VP-sg"] == "VP"
    assert labels["VP-pl"] == "Y"
    assert labels["@VP.V-sg.X"] == "@VP"
    assert labels["@Y.V-pl.X"] == "@Y"
    assert pcfg.log_prob(["so", "so", "ran", "so"]) == pytest.approx(math.log(1 / 2))


def test_tails_whose_names_run_together_stay_apart(tmp_path: Path) -> None:
    grammar = "start S\ncategory S\ncategory X\ncategory B\ncategory C.D\ncategory B.C\ncategory D\n"
    grammar += "S -> X B C.D : 1\n  | X B.C D : 3\n"
    words = "".join(f"words {name}\n  {name.lower()}\n" for name in ("X", "B", "C.D", "B.C", "D"))
    pcfg = compiled(tmp_path, grammar, words)
    assert pcfg.log_prob(["x", "b", "c.d"]) == pytest.approx(math.log(1 / 4))
    assert pcfg.log_prob(["x", "b.c", "d"]) == pytest.approx(math.log(3 / 4))


def test_states_whose_names_run_together_are_refused(tmp_path: Path) -> None:
    grammar = "start S\nfeature f b-c c\ncategory S\ncategory A f\ncategory A-b f\n"
    grammar += "label X A[*]\nlabel X A-b[*]\nS -> A[b-c] A-b[c] : 1\n"
    with pytest.raises(InputError, match="two states would have the name A-b-c"):
        compiled(tmp_path, grammar, "words A[b-c]\n  a\nwords A-b[c]\n  b\n")


def test_a_word_may_change_a_value_of_its_column(tmp_path: Path) -> None:
    words = WORDS.replace("  rock rocks\n", "  rock rocks\n  bone/living bones\n")
    pcfg = compiled(tmp_path, HEAD + RULES, words)
    living = {word for (parent, (word, *_)) in rules_of(pcfg) if parent == "N-sg-living"}
    assert living == {"dog", "ox", "bone"}


def test_compiling_twice_gives_the_same_grammar(tmp_path: Path) -> None:
    first, second = compiled(tmp_path, HEAD + RULES), compile_template(str(tmp_path))
    assert first == second
    assert set(first.meta["sources"]) == {"grammar.txt", "words.txt"}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("ROOT -> NP[sg,living] QP : 1", "unknown category 'QP'"),
        ("ROOT -> NP[sg] VP[sg] : 1", "NP\\[sg\\] leaves the feature\\(s\\) cls unbound"),
        ("ROOT -> NP VP[sg] : 1", "NP leaves the feature\\(s\\) num cls unbound"),
        ("ROOT -> VP[sg,dead] : 1", "gives 2 values, but VP has 1"),
        ("ROOT -> VP[dual] : 1", "'dual' is not a value of the feature 'num'"),
        ("ROOT -> VP[?n] : 1 by often(?m)", "\\?m in the weight is unbound"),
        ("ROOT -> VP[?n] : 1*often(?n)", "\\?n in the weight is unbound"),
        ("ROOT -> VP[?n] : 1 by seldom(?n)", "no declared table"),
        ("ROOT -> VP[?n] : 1 by kind(?n)", "the table has 2"),
        ("ROOT -> NP[?n,?c] : 1 by often(?c)", "wants 'num'"),
        ("ROOT -> NP[?n,?n] : 1", "two features"),
        ("ROOT -> VP[sg]", "with at least one child and a weight"),
        ("ROOT -> VP[sg] : much", "expecting a positive number, got 'much'"),
        ("ROOT -> VP[sg] : 0", "expecting a positive number"),
        ("ROOT -> VP[sg] : nan", "expecting a positive number"),
        ("ROOT -> VP[sg : 1", "cannot read the term"),
        ("V[sg] -> VP[sg] : 1", "has words, so it cannot have rules too"),
        ("category AP\nROOT -> AP : 1", "neither rules nor words"),
        ("hello world", "cannot understand 'hello'"),
        ("category VP num", "a unique name"),
        ("category AP size", "unknown feature 'size'"),
        ("feature num one two", "declared twice"),
        ("feature odd", "a name and distinct values"),
        ("table often num", "a unique name"),
        ("table also num\n  sg 1  sg 2", "twice"),
        ("table also num cls\n  sg living", "pairs of a value and a number"),
        ("table also num\n  dual 1", "'dual' is not a value"),
        ("label @VP VP[*]", "have labels with @"),
        ("start VP", "unbound"),
        ("noun dead\n  rock", "expecting 2 form"),
        ("noun", "needs 1 value"),
        ("noun dead", "this word list has no words; add indented lines with words"),
        ("noun dead\n  rock/five rocks", "/five names no feature value"),
        ("words V[sg] : x\n  runs", "expecting a positive number"),
        ("words\n  runs", "write 'words TERM'"),
        ("zipf 1", "zipf EXPONENT OFFSET"),
        ("paradigm noun c : N[sg,?c]", "each name once"),
    ],
)
def test_errors_end_in_file_and_line(tmp_path: Path, line: str, message: str) -> None:
    (tmp_path / "z.txt").write_text("# the last file\n" + line + "\n", encoding="utf-8")
    with pytest.raises(InputError, match=message) as caught:
        compiled(tmp_path, HEAD + RULES)
    last = 2 + line.count("\n")
    assert str(caught.value).endswith((f"{tmp_path / 'z.txt'}:2)", f"{tmp_path / 'z.txt'}:{last})"))


def test_alternatives_need_their_bar(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"starts with '\| ' \(.*grammar.txt:3\)"):
        compiled(tmp_path, "category ROOT\nROOT -> ROOT ROOT : 1\n  ROOT : 2\nstart ROOT\n", "words ROOT\n  a\n")


def test_an_indented_first_line_continues_nothing(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"remove the indentation \(.*grammar.txt:1\)"):
        compiled(tmp_path, "  start ROOT\n")


def test_a_folder_without_grammar_or_start_or_sentences(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"expecting grammar\.txt"):
        compile_template(tmp_path)
    with pytest.raises(InputError, match="no start category"):
        compiled(tmp_path, HEAD.replace("start ROOT\n", ""), "words V[*]\n  ran\n")
    with pytest.raises(InputError, match="derives no words"):
        compiled(tmp_path, HEAD + "ROOT -> VP[?n] : 1\nVP[sg] -> VP[?n] V[sg] : 1\n", "words V[*]\n  ran\n")
    (tmp_path / "words.txt").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match=r"cannot read the template.*words\.txt"):
        compile_template(tmp_path)
