"""The baseline with parents in its labels (Johnson 1998): a vertical order of 2, estimated by relative frequencies."""

import math
from dataclasses import replace

import pytest

from truesource.grammar.estimate.relative_frequency import relative_frequency
from truesource.grammar.pcfg import PCFG
from truesource.grammar.treebank import Binarisation, Treebank
from truesource.grammar.treebank.binarise import surface
from truesource.grammar.treebank.brackets import read_text

SUBJECT = "(ROOT (S (NP (PRP he)) (VP (V sees) (NP (D the) (N dog)))))"
OBJECT = "(ROOT (S (NP (PRP he)) (VP (V sees) (NP (PRP him)))))"


@pytest.fixture
def bank() -> Treebank:
    text = "\n".join([SUBJECT] * 3 + [OBJECT])
    return Treebank.from_trees([tree for _, tree in read_text(text)], None)


def annotated(bank: Treebank) -> PCFG:
    binarisation = Binarisation(vertical=2)
    pcfg = relative_frequency(bank.binarise(binarisation))
    return replace(pcfg, labels=tuple(binarisation.coarse(label) for label in pcfg.labels))


def test_noun_phrases_below_different_parents_are_told_apart(bank: Treebank) -> None:
    pcfg = annotated(bank)
    assert {"ROOT", "S^ROOT", "NP^S", "NP^VP", "VP^S", "PRP", "V", "D", "N"} == set(pcfg.symbols)
    # subjects are pronouns always, objects in one tree of four
    assert pcfg.log_prob(["he", "sees", "the", "dog"]) == pytest.approx(math.log(4 / 5 * 3 / 4))
    assert pcfg.log_prob(["the", "dog", "sees", "he"]) == -math.inf
    assert relative_frequency(bank.binarise()).log_prob(["the", "dog", "sees", "he"]) > -10.0


@pytest.mark.long
def test_symbols_project_to_the_labels_of_the_treebank(bank: Treebank) -> None:
    pcfg = annotated(bank)
    assert set(pcfg.labels) == {"ROOT", "S", "NP", "VP", "PRP", "V", "D", "N"}
    tree = surface(pcfg.viterbi(["he", "sees", "the", "dog"])[0], pcfg)
    assert str(tree) == SUBJECT


def test_intermediate_nodes_carry_the_parent_too() -> None:
    wide = [tree for _, tree in read_text("(ROOT (S (NP (A a) (B b) (C c)) (VP (NP (A a) (B b) (C c)))))")]
    pcfg = annotated(Treebank.from_trees(wide, None))
    assert {"@NP^S", "@NP^VP"} <= set(pcfg.symbols)
    assert {label for label in pcfg.labels if label.startswith("@")} == {"@NP"}
    words = wide[0].leaves()
    assert surface(pcfg.viterbi(words)[0], pcfg) == wide[0]
