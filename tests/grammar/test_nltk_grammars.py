"""Grammars of NLTK in memory: `PCFG.from_nltk` and `PCFG.to_nltk`."""

from __future__ import annotations

import math
from dataclasses import replace

import nltk
import pytest
from hypothesis import given
from random_grammars import small_pcfgs
from reference_inference import rules_of

from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.errors import InputError

TEXT = "S -> NP VP [1.0]\nNP -> 'I' [0.25] | Det N 'now' [0.75]\nVP -> V NP [1.0]\nV -> 'see' [1.0]\n"
THEIRS = nltk.PCFG.fromstring(TEXT + "Det -> 'the' [1.0]\nN -> 'dog' [0.5] | 'VP' [0.5]\n")


@pytest.mark.long
@given(small_pcfgs())
def test_there_and_back_is_the_same_grammar(pcfg: PCFG) -> None:
    odd = replace(pcfg, symbols=tuple(f"{s} ('|\")" for s in pcfg.symbols))
    theirs = odd.to_nltk()
    back = PCFG.from_nltk(theirs)
    assert len(theirs.productions()) == odd.n_rules
    assert back.symbols[back.start] == odd.symbols[odd.start] == str(theirs.start())
    found, wanted = rules_of(back), rules_of(odd)
    for kind in ("binary", "unary", "lexical"):
        ours = {rule[:-1]: rule[-1] for rule in getattr(found, kind)}
        assert ours == pytest.approx({rule[:-1]: rule[-1] for rule in getattr(wanted, kind)}, rel=1e-15)


def test_a_grammar_of_nltk_gives_the_probabilities_that_nltk_gives() -> None:
    ours = PCFG.from_nltk(THEIRS)
    for sentence in (["I", "see", "I"], ["the", "dog", "now", "see", "the", "VP", "now"]):
        (best,) = nltk.ViterbiParser(THEIRS).parse(sentence)
        tree, log_prob = ours.viterbi(sentence)
        assert log_prob == pytest.approx(best.logprob() * 0.6931471805599453)
        assert list(tree.leaves()) == best.leaves()


def test_nltk_parses_with_a_grammar_of_ours() -> None:
    ours = PCFG.from_text("S -> S S 0.25 | a 0.5 | b 0.25")
    (best,) = nltk.ViterbiParser(ours.to_nltk()).parse(["a", "b"])
    assert best.prob() == pytest.approx(0.25 * 0.5 * 0.25)


def test_probabilities_that_nltk_lets_pass_are_divided_and_it_is_said() -> None:
    near = nltk.PCFG.fromstring("S -> 'a' [0.501] | 'b' [0.501]")
    pcfg = PCFG.from_nltk(near)
    assert pcfg.log_prob(["a"]) == pytest.approx(math.log(0.5), rel=1e-14)
    assert pcfg.meta["normalised"] == {"symbols": 1, "lowest": 1.002, "highest": 1.002, "worst": "S"}


@pytest.mark.parametrize("heading", ["", "Grammar with 3 productions (start state = 'S')\n"])
def test_thirds_as_nltk_prints_them_are_read(heading: str) -> None:
    text = heading + "".join(f"    S -> '{word}' [0.333333]\n" for word in "abc")
    pcfg = PCFG.from_text(text)
    assert pcfg.log_prob(["b"]) == pytest.approx(math.log(1 / 3), rel=1e-14)
    with pytest.raises(InputError, match=r"sum to 0\.9, not 1"):
        PCFG.from_text(text.replace("0.333333", "0.3"))
    with pytest.raises(InputError, match=r"sum to 0\.99, not 1"):  # bare probabilities are not NLTK's
        PCFG.from_text("S -> 'a' 0.49 | 'b' 0.5")


def test_a_line_that_ends_in_a_backslash_goes_on() -> None:
    text = "S -> NP \\\n  VP [1.0]\nNP -> 'a' [1.0]\nVP -> 'b' [0.5] | \\\n  'c' [0.5]\n"
    ours = PCFG.from_text(text)
    assert ours == PCFG.from_nltk(nltk.PCFG.fromstring(text))
    assert ours.log_prob(["a", "c"]) == pytest.approx(math.log(0.5))


@pytest.mark.parametrize(
    ("grammar", "message"),
    [
        (nltk.CFG.fromstring("S -> 'a'"), "expecting an nltk.PCFG, got CFG"),
        ("S -> a 1.0", "expecting an nltk.PCFG, got str"),
        (nltk.PCFG.fromstring("S -> 'a' [1.0] | 'b' [0.0]"), "rule 2 of the grammar has probability 0.0"),
        (
            nltk.PCFG(nltk.Nonterminal("S"), [nltk.ProbabilisticProduction(nltk.Nonterminal("S"), [3], prob=1.0)]),
            "rule 1 of the grammar has the word 3, which is no string; use strings",
        ),
        (
            nltk.PCFG(
                nltk.Nonterminal("1"),
                [
                    nltk.ProbabilisticProduction(nltk.Nonterminal("1"), [nltk.Nonterminal(1)], prob=1.0),
                    nltk.ProbabilisticProduction(nltk.Nonterminal(1), ["a"], prob=1.0),
                ],
            ),
            "two symbols of the grammar are called '1'",
        ),
        (nltk.PCFG.fromstring("S -> T [1.0]"), "the symbol 'T' has no rules"),
    ],
)
def test_what_is_no_grammar_of_ours_is_refused(grammar: nltk.PCFG, message: str) -> None:
    with pytest.raises(InputError, match=message):
        PCFG.from_nltk(grammar)


def test_empty_rules_of_an_nltk_grammar_are_removed() -> None:
    pcfg = PCFG.from_nltk(nltk.PCFG.fromstring("S -> 'a' S [0.5] | [0.5]"))
    assert pcfg.meta["empty"] == {"rules": 1, "symbols": ["S"], "mass": 0.5}
    assert pcfg.log_prob(["a", "a"]) == pytest.approx(math.log(0.125 / 0.5), rel=1e-14)
