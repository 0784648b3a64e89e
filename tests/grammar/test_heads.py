"""Heads: given by rule and by label, of the table, and unknown; the orders of children that follow from them."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference_inference import all_strings, rules_of

from truesource.grammar.pcfg import PCFG, language
from truesource.grammar.support.errors import InputError
from truesource.grammar.treebank.binarise import head_index, known_head
from truesource.grammar.treebank.head_rules import HeadRules
from truesource.grammar.variants import Branching, parse_variant

FISH = "S -> NP VP 1\nNP -> 'they' 0.6 | 'fish' 0.4\nVP -> V NP 0.4 | V 0.6\nV -> 'fish' 0.7 | 'can' 0.3\n"
WITH_PP = """
    S -> NP VP 1
    NP -> D N 0.7 | NP PP 0.3
    VP -> V NP 0.5 | V NP PP 0.3 | V PP NP 0.2
    PP -> P NP 1
    D -> 'the' 1
    N -> 'dog' 1
    V -> 'saw' 1
    P -> 'in' 1
"""


def rules(pcfg: PCFG) -> set[str]:
    return {" ".join((pcfg.symbols[a], "->", pcfg.symbols[b], pcfg.symbols[c])) for a, b, c in pcfg.binary}


def strings(pcfg: PCFG, high: int = 8) -> dict[tuple[str, ...], float]:
    return {s: p for table in all_strings(rules_of(pcfg), high)["S"] for s, p in table.items()}


def heads(*lines: str) -> HeadRules:
    return HeadRules.parse([(line, number) for number, line in enumerate(lines, 1)], "heads.txt")


def test_the_verb_is_the_head_of_a_verb_phrase_by_hand() -> None:
    assert rules(parse_variant("head-final=all")(PCFG.from_text(FISH)).pcfg) == {"S -> NP VP", "VP -> NP V"}
    assert rules(parse_variant("head-initial=all")(PCFG.from_text(FISH)).pcfg) == {"S -> VP NP", "VP -> V NP"}


LAST = """
    S -> NP VP 1
    NP -> D N 0.7 | PP NP 0.3
    VP -> NP V 0.5 | PP NP V 0.3 | NP PP V 0.2
    PP -> NP P 1
"""
FIRST = """
    S -> VP NP 1
    NP -> N D 0.7 | NP PP 0.3
    VP -> V NP 0.5 | V NP PP 0.3 | V PP NP 0.2
    PP -> P NP 1
"""


@pytest.mark.parametrize(("order", "phrases"), [("head-final", LAST), ("head-initial", FIRST)])
def test_all_phrases_of_a_grammar_have_their_heads_on_one_side(order: str, phrases: str) -> None:
    found = parse_variant(f"{order}=all")(PCFG.from_text(WITH_PP))
    wanted = PCFG.from_text(phrases + WITH_PP[WITH_PP.index("    D ->") :])
    assert strings(found.pcfg) == pytest.approx(strings(wanted), abs=1e-15)
    details = found.description["details"]
    assert details["nodes_swapped"] + details["nodes_kept"] == 7


def test_a_guess_is_refused_and_the_refusal_says_how_to_give_the_head() -> None:
    pcfg = PCFG.from_text(FISH.replace("NP", "NPs").replace("VP", "VPs"))
    with pytest.raises(InputError) as caught:
        parse_variant("head-final=all")(pcfg)
    assert "S -> NPs VPs; VPs -> V NPs" in str(caught.value)
    assert "%head S -> *NPs VPs" in str(caught.value)
    for lines in (["S -> NPs *VPs", "VPs: V"], ["S: VPs", "VPs -> *V NPs"]):
        after = parse_variant("head-final=all", heads(*lines))(pcfg)
        assert rules(after.pcfg) == {"S -> NPs VPs", "VPs -> NPs V"}
    assert rules(parse_variant("head-final=VPs", heads("VPs: V"))(pcfg).pcfg) == {"S -> NPs VPs", "VPs -> NPs V"}
    assert parse_variant("mirror=all")(pcfg).description["details"]["swapped"] == ["S -> NPs VPs", "VPs -> V NPs"]


@pytest.mark.parametrize(
    ("label", "children", "head"),
    [
        ("VP", "V NP", 0), ("VP", "Vt NP", 0), ("VP", "NP V", 1), ("S", "NP V", 1), ("S", "NP VBZ", 1),
        ("PP", "P NP", 0), ("PP", "NP P", 1), ("NP", "D N", 1), ("NP", "Det N", 1), ("NP", "N PP", 0),
        ("DP", "D NP", 0), ("SBAR", "WDT S", 0), ("S", "NP VP '.'", 1), ("NP-SBJ", "DT NN", 1), ("UCP", "NP ADJP", 0),
        ("FRAG", ", RB", 1), ("VP", "Foo NP", None), ("S", "NPs VPs", None), ("S", "'a' S 'b'", None),
        ("XP", "X YP", None), ("NP", "D A", None), ("S", "D N", None), ("PP", "'of' NP", None),
    ],
)  # fmt: skip
def test_the_table_knows_labels_of_its_own_only(label: str, children: str, head: int | None) -> None:
    assert known_head(label, children.split()) == head
    if head is not None:
        assert head_index(label, children.split()) == head


def test_rules_go_before_lists_and_lists_before_the_table() -> None:
    given = heads("VP -> V *NP PP", "VP: NP Adv", "VP: right V", "X: right A B")
    assert given.find("VP", ["V", "NP", "PP"]) == 1
    assert given.find("VP", ["PP", "NP", "V"]) == 1
    assert given.find("VP", ["NP", "V", "PP"]) == 0  # any order, as there is one NP
    assert given.find("VP", ["V", "Adv", "NP"]) == 2
    assert given.find("VP", ["V", "X", "V"]) == 2
    assert given.find("PP", ["P", "NP"]) == 0
    assert given.find("X", ["A", "C", "A", "B"]) == 2
    assert given.find("X", ["C", "B"]) == 1
    assert given.find("X", ["C", "D"]) is None
    twins = heads("N -> N *N")
    assert twins.find("N", ["N", "N"]) == 1
    assert heads("N -> N *N C").find("N", ["N", "C", "N"]) is None
    assert heads("N -> N *N C").find("N", ["C", "N", "N"]) == 1


@pytest.mark.parametrize("children", sorted(set(permutations(("A", "B", "C")))))
def test_heads_stay_when_children_are_reordered(children: tuple[str, ...]) -> None:
    """Head-initial after head-final is head-initial at once, for heads given by rule too."""
    head = children[1]
    starred = " ".join(f"*{name}" if name == head else name for name in children)
    text = f"%head X -> {starred}\nX -> {' '.join(children)} 1\nA -> 'a' 1\nB -> 'b' 1\nC -> 'c' 1"
    pcfg = PCFG.from_text(text)
    for first, then, place in (("head-final", "head-initial", 0), ("head-initial", "head-final", 2)):
        twice = parse_variant(f"{first}=all,{then}=all")(pcfg).pcfg
        ((sentence, p),) = all_strings(rules_of(twice), 3)["X"][3].items()
        assert p == pytest.approx(1.0)
        assert sentence[place] == head.lower()
        assert twice.log_prob(sentence) == pytest.approx(parse_variant(f"{then}=all")(pcfg).pcfg.log_prob(sentence))


NAMES = [
    "V",
    "NP",
    "A B",
    "left",
    "right",
    "->",
    "*",
    ":",
    "a:",
    "<",
    "'is'",
    "'it's'",
    "#",
    "%",
    "PRP$",
    "ADVP|PRT",
    "é",
]


@given(st.lists(st.tuples(*[st.sampled_from(NAMES)] * 4, st.integers(0, 2), st.booleans()), max_size=5))
def test_head_lines_are_read_as_they_are_written(drawn: list[tuple[str, str, str, str, int, bool]]) -> None:
    from truesource.grammar.treebank.head_rules import written_label

    lines = []
    for parent, a, b, c, head, right in drawn:
        names = [written_label(name) for name in (a, b, c)]
        starred = " ".join(f"*{name}" if i == head else name for i, name in enumerate(names))
        listed = ("right " if right else "") + " ".join(names)
        lines += [f"{written_label(parent)} -> {starred}"] if right else [f"{written_label(parent)}: {listed}"]
    try:
        found = heads(*lines)
    except InputError as error:
        assert "has another head" in str(error)
        return
    again = heads(*found.lines)
    assert again == found
    for parent, a, b, c, head, right in drawn:
        if right:
            assert found.by_rule[parent, (a, b, c)] == head
        else:
            assert {("left", a), ("left", b), ("left", c)} <= set(found.by_label[parent])


@pytest.mark.parametrize(
    "line", ["VP", "VP ->", "VP -> V NP", "VP -> *V *NP", "V NP", "VP:", "VP: *V", "-> *V NP", "VP: V NP:", ""]
)
def test_a_line_that_is_no_head_is_refused_with_its_number(line: str, tmp_path: Path) -> None:
    (tmp_path / "heads.txt").write_text(f"# heads\n%head NP: N\n{line or 'x'}\n")
    with pytest.raises(InputError, match=r"expecting a head such as VP -> \*V NP .*heads\.txt:3"):
        HeadRules.read(tmp_path / "heads.txt")
    with pytest.raises(InputError, match="expecting a head") as caught:
        PCFG.from_text(f"S -> 'a' 1\n%head {line}")
    assert caught.value.line == 2


def test_two_heads_of_one_rule_and_unknown_labels_are_refused() -> None:
    with pytest.raises(InputError, match=r"another head in an earlier line .*:2"):
        heads("VP -> *V NP", "VP -> V *NP")
    with pytest.raises(InputError, match="no symbol has the label 'NPs'; use one such as NP"):
        PCFG.from_text("%head VP -> *V NPs\n" + FISH)


def test_heads_of_a_grammar_text_stay_with_the_grammar(tmp_path: Path) -> None:
    pcfg = PCFG.from_text("%head S -> *NP VP\n%head VP: right NP\n" + FISH)
    pcfg.save(tmp_path / "g.npz")
    (tmp_path / "g.txt").write_text(pcfg.to_text())
    for again in (PCFG.load(tmp_path / "g.npz"), PCFG.load(tmp_path / "g.txt")):
        assert again.meta["heads"] == ["S -> *NP VP", "VP: right NP"]
        assert rules(Branching("head-final")(again).pcfg) == {"S -> VP NP", "VP -> V NP"}
    assert pcfg.digest == PCFG.from_text(FISH).digest
    other = parse_variant("head-final=all", heads("S: VP"))(pcfg)
    assert rules(other.pcfg) == {"S -> NP VP", "VP -> V NP"}


def test_heads_of_labels_that_a_change_took_away_are_not_written() -> None:
    pcfg = PCFG.from_text("%head VP: V\n%head PP -> *P NP\n" + WITH_PP)
    without = parse_variant("ablate=PP")(pcfg).pcfg
    assert "PP" not in without.labels
    assert "%head VP: V\n" in without.to_text()
    assert PCFG.from_text(without.to_text()).meta["heads"] == ["VP: V"]


@pytest.mark.parametrize("damaged", ["VP: V", [1], {"VP": "V"}, None])
def test_damaged_heads_of_a_grammar_are_refused(damaged: object) -> None:
    with pytest.raises(InputError, match="heads that are stored with this grammar are damaged"):
        HeadRules.of(PCFG.from_text(FISH).with_meta(heads=damaged))


def test_questions_of_the_embedded_grammar_have_heads() -> None:
    assert known_head("SQ", ["VBZ", "NP", "VP", "?"]) == 2
    assert known_head("SBARQ", ["WHADVP", "SQ", "?"]) == 1
    changed = parse_variant("head-final=SQ")(language("english", size="small"))
    assert "SQ -> VBD NP *VP ?" in changed.description["details"]["swapped"]
