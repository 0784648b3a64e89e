"""Conventions of treebanks: what is dropped, cut and skipped, what is taken down of it, and what looks suspicious."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truesource.grammar.conventions import CONVENTIONS, NAMES, Name, without_headers
from truesource.grammar.estimate.relative_frequency import relative_frequency
from truesource.grammar.support.errors import InputError
from truesource.grammar.tree import Tree
from truesource.grammar.treebank import Normalisation, Treebank

BANNER = "*x*x*x*x*\n*x*  Copyright  *x*\n\n"
SWITCHBOARD = (
    BANNER
    + r"""
( (CODE (SYM SpeakerA7) (. .) ))
( (S (INTJ (UH Well)) (, ,) (EDITED (RM (-DFL- \[)) (NP-SBJ (PRP I)) (IP (-DFL- \+))) (NP-SBJ (PRP I)) (RS (-DFL- \]))
  (VP (VBP know) (SBAR (-NONE- 0))) (. .) (-DFL- E_S)))
"""
)
NEGRA = """%% Sent 1
( (S (NP-SB (ART-NK Der) (NN-NK Hund) (*T1*-RC 0) (X *T2*)) (VVFIN-HD bellt) ($. .)) )
%% Sent 2
( (S (NP-SB*T1* (PPER Er)) ($*LRB* -) (VP-OC (VVPP-HD schl\u00e4ft))) )
"""
HELSINKI = """
( (IP-MAT (NP-SBJ *con*) (VBD saw) (NP-OB1 (D the) (N dog)) (CODE <P_12>) (CP-REL (WNP-1 0) (C 0) (IP-SUB (NP-SBJ *T*-1)
   (VBD ran)))) (ID CMX,1.2))
"""
SPMRL = (
    "( (ROOT (SENT (NP##func=SUJ## (D##lemma=le|cpos=D## Le) (NC##lemma=chien## chien)) (VN (PRP-S y) (V##m=ind## dort"
    ")) (-NONE- *))))\n"
)


def read(text: str, convention: Name, folder: Path) -> Treebank:
    (folder / "trees.mrg").write_text(text, encoding="utf-8")
    return Treebank.read(folder / "trees.mrg", Normalisation(convention=convention))


@pytest.mark.parametrize(
    ("convention", "text", "trees", "dropped"),
    [
        (
            "switchboard",
            SWITCHBOARD,
            ["(ROOT (S (INTJ (UH Well)) (, ,) (EDITED (NP (PRP I))) (NP (PRP I)) (VP (VBP know)) (. .)))"],
            {"CODE": 2, "-DFL-": 4, "-NONE-": 1},
        ),
        (
            "negra",
            NEGRA,
            [
                "(ROOT (S (NP (ART Der) (NN Hund)) (VVFIN bellt) ($. .)))",
                "(ROOT (S (NP (PPER Er)) ($*LRB* -) (VP (VVPP schl\u00e4ft))))",
            ],
            {"*T#*": 2},
        ),
        (
            "penn-helsinki",
            HELSINKI,
            ["(ROOT (IP (VBD saw) (NP (D the) (N dog)) (CP (IP (VBD ran)))))"],
            {"*con*": 1, "CODE": 1, "0": 2, "*T*-#": 1, "ID": 1},
        ),
        ("spmrl", SPMRL, ["(ROOT (SENT (NP (D Le) (NC chien)) (VN (PRP-S y) (V dort))))"], {"-NONE-": 1}),
        ("penn", BANNER + "((S (NP-SBJ-1 (-NONE- *T*-2) (NN dog)) (VBZ a)))", ["(ROOT (S (NP (NN dog)) (VBZ a)))"],
         {"-NONE-": 1}),
        ("plain", "(S=1 (-NONE- *T*-1) (N-s dog))", ["(ROOT (S=1 (-NONE- *T*-1) (N-s dog)))"], {}),
    ],
)  # fmt: skip
def test_what_is_read(convention: Name, text: str, trees: list[str], dropped: dict[str, int], tmp_path: Path) -> None:
    bank = read(text, convention, tmp_path)
    assert [str(tree) for tree in bank] == trees
    assert bank.ledger.dropped == dropped
    assert not bank.reading.signs or convention in ("plain", "spmrl", "negra")
    total = sum(bank.ledger.dropped.values())
    assert str(bank.ledger).startswith(f"dropped {total or 'no'} word")


@pytest.mark.parametrize(
    ("wanted", "text", "sign"),
    [
        ("switchboard", SWITCHBOARD, "E_S"),
        ("negra", NEGRA, "*T#*"),
        ("penn-helsinki", HELSINKI, "*con*"),
        ("spmrl", SPMRL, "NP##func"),
    ],
)
def test_markers_of_another_convention_are_noticed(wanted: Name, text: str, sign: str, tmp_path: Path) -> None:
    text = "".join(line for line in text.splitlines(True) if not line.startswith("%%"))
    signs = read(text, "penn", tmp_path).reading.signs
    assert signs[0].remedy == {"convention": wanted}
    assert sign in signs[0].examples
    again = read(text, wanted, tmp_path).reading.signs
    assert {"convention": wanted} not in [other.remedy for other in again]


def test_ordinary_trees_look_like_no_other_convention(tmp_path: Path) -> None:
    text = "( (S (NP-SBJ (CD 0) (-LRB- -LRB-) (NN *) (-RRB- -RRB-)) (VP (VBD was) (NP (CD 1\\/2))) (. .)))"
    assert not read(text, "penn", tmp_path).reading.signs


def test_a_header_says_which_convention_skips_it(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"text outside brackets: '%%'; the convention negra skips such lines .*:1"):
        read(NEGRA, "penn", tmp_path)
    with pytest.raises(InputError, match="the convention penn or switchboard skips such lines"):
        read(SWITCHBOARD, "plain", tmp_path)
    with pytest.raises(InputError, match="text outside brackets: 'hello' "):
        read("hello (S (A a))", "negra", tmp_path)


def test_a_skipped_line_inside_a_tree_is_part_of_it(tmp_path: Path) -> None:
    assert [str(tree) for tree in read("(S (A\n%%\n) (B b))", "negra", tmp_path)] == ["(ROOT (S (A %%) (B b)))"]


def test_headers_do_not_hide_what_a_file_is() -> None:
    assert without_headers(SWITCHBOARD).startswith("( (CODE")
    assert without_headers("\n%% Sent 1\n(S (A a))") == "(S (A a))"
    assert without_headers("S -> a 1") == "S -> a 1"


def test_an_unknown_convention_is_refused() -> None:
    with pytest.raises(InputError, match=r"convention: expected one of 'penn', 'switchboard', 'ctb'.* not 'pen'"):
        Normalisation(convention="pen")  # type: ignore[arg-type]


LABELS = ["NP-SBJ", "N=1", "NP", "-LRB-", "NP##f=X##", "*T1*-RC", "S*T2*", "$*LRB*", "'x-a'", "CODE", "ID", "X"]
WORDS = ["dog", "*con*", "0", "E_S", "\\[", "*T1*", "*T*-2", "x-a", "*"]


@pytest.mark.long
@given(
    st.recursive(
        st.builds(lambda label, word: Tree(label, (word,)), st.sampled_from(LABELS), st.sampled_from(WORDS)),
        lambda below: st.builds(
            lambda label, children: Tree(label, tuple(children)),
            st.sampled_from(LABELS),
            st.lists(below, min_size=1, max_size=3),
        ),
        max_leaves=8,
    ),
    st.sampled_from(NAMES),
)
def test_normalising_twice_is_normalising_once_and_no_word_goes_uncounted(tree: Tree, convention: Name) -> None:
    from truesource.grammar.conventions import Ledger

    norm, ledger = Normalisation(convention=convention), Ledger()
    once = norm.apply(tree, ledger)
    assert len(tree.leaves()) == ledger.dropped.total() + (0 if once is None else len(once.leaves()))
    if once is not None:
        again = Ledger()
        assert norm.apply(once, again) == once
        assert not again.dropped
    if convention == "plain":
        assert once is not None
        assert not ledger.cut


def test_trees_of_a_grammar_are_read_plainly(tmp_path: Path) -> None:
    """Labels that only hyphens tell apart stay apart."""
    text = "(S (N-sg dog) (V-sg runs))\n(S (N-pl dogs) (V-pl run))\n"
    plain = relative_frequency(read(text, "plain", tmp_path).binarise())
    assert plain.log_prob(["dog", "run"]) == -float("inf")
    cut = read(text, "penn", tmp_path)
    assert relative_frequency(cut.binarise()).log_prob(["dog", "run"]) > -float("inf")
    assert "4 labels from 4 types to 2 (such as N-sg to N" in str(cut.ledger)


def test_packed_files_have_headers_too(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "a.mrg.gz", "wt", encoding="utf-8") as stream:
        stream.write(NEGRA)
    assert len(Treebank.read(tmp_path / "a.mrg.gz", Normalisation(convention="negra"))) == 2


def test_every_convention_says_what_it_is_for() -> None:
    assert tuple(CONVENTIONS) == NAMES
    assert all(convention.about for convention in CONVENTIONS.values())
