"""The parser: coarse to fine where the grammar has levels, and never a sentence lost."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import pytest

from truesource.generator.sampler import sample_treebank
from truesource.grammar.estimate.split_merge import SplitMerge
from truesource.grammar.estimate.split_merge.train import split_merge
from truesource.grammar.inference.batch import TooLongError
from truesource.grammar.inference.posterior import max_rule_tree, max_span_tree, posterior
from truesource.grammar.parsing import ParseMethod
from truesource.grammar.parsing.parser import Parse, Parser, Search
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.errors import InputError
from truesource.grammar.treebank.binarise import splice, surface

pytestmark = pytest.mark.long

TRUTH = PCFG.from_text(
    "S -> NP VP 1.0\nNP -> D N 0.6 | NP PP 0.3 | N 0.1\nVP -> V NP 0.5 | VP PP 0.3 | V 0.2\nPP -> P NP 1.0\n"
    "D -> the 0.7 | a 0.3\nN -> dog 0.5 | park 0.3 | saw 0.2\nV -> saw 0.6 | dog 0.4\nP -> in 0.5 | with 0.5"
)
AMBIGUOUS = ["the", "dog", "saw", "a", "park", "with", "a", "dog", "in", "the", "park", "with", "the", "dog"]


@pytest.fixture(scope="module")
def split() -> PCFG:
    """A grammar of three splits."""
    trees = sample_treebank(TRUTH, 300, seed=1)
    return split_merge(trees, SplitMerge(cycles=3, em_split=8, em_merge=4, em_smooth=2), seed=1).pcfg


@pytest.fixture(scope="module")
def sentences() -> list[list[str]]:
    return [AMBIGUOUS, *(list(tree.leaves()) for tree in itertools.islice(sample_treebank(TRUTH, 40, seed=2), 40))]


@pytest.mark.parametrize("method", ParseMethod)
def test_at_low_thresholds_trees_are_the_exact_ones(
    split: PCFG, sentences: list[list[str]], method: ParseMethod
) -> None:
    pruned = Parser(split, method, thresholds=[1e-7]).parse_all(sentences)
    exact = Parser(split, method, exact=True).parse_all(sentences)
    for ours, wanted in zip(pruned, exact, strict=True):
        assert isinstance(ours, Parse)
        assert isinstance(wanted, Parse)
        assert ours.tree == wanted.tree
        assert ours.score == pytest.approx(wanted.score, rel=1e-4, abs=1e-4)
        assert (ours.search, wanted.search) == (Search.PRUNED, Search.EXACT)


def test_the_exact_trees_are_those_of_the_engines(split: PCFG) -> None:
    parse = {method: Parser(split, method, exact=True).parse(AMBIGUOUS) for method in ParseMethod}
    found = posterior(split, AMBIGUOUS)
    derivation, score = split.viterbi(AMBIGUOUS)
    assert parse[ParseMethod.VITERBI] == Parse(surface(derivation, split), score)
    for method, engine in ((ParseMethod.MAX_RULE, max_rule_tree), (ParseMethod.MAX_SPAN, max_span_tree)):
        tree, score = engine(found)
        assert parse[method] == Parse(splice(tree), score)


def test_a_sentence_alone_has_the_tree_that_it_has_among_others(split: PCFG, sentences: list[list[str]]) -> None:
    parser = Parser(split, ParseMethod.MAX_RULE)
    assert parser.prunes
    assert [parser.parse(sentence) for sentence in sentences] == parser.parse_all(sentences)
    assert parser.parse_all(sentences[::-1])[::-1] == parser.parse_all(sentences)


def test_where_nothing_is_left_the_search_goes_on(split: PCFG, monkeypatch: pytest.MonkeyPatch) -> None:
    exact = Parser(split, ParseMethod.MAX_RULE, exact=True).parse(AMBIGUOUS)
    looser = Parser(split, ParseMethod.MAX_RULE, thresholds=[0.999]).parse(AMBIGUOUS)
    assert looser.search == Search.LOOSER
    assert looser.tree == exact.tree
    monkeypatch.setattr("truesource.grammar.parsing.parser.LOOSER", 1.0)
    assert Parser(split, ParseMethod.MAX_RULE, thresholds=[0.999]).parse(AMBIGUOUS) == exact


def test_grammars_without_splits_are_parsed_exactly() -> None:
    parser = Parser(TRUTH, ParseMethod.MAX_RULE)
    assert not parser.prunes
    assert parser.parse(AMBIGUOUS).search == Search.EXACT
    assert Parser(TRUTH).parse(["a", "dog", "saw"]).search == Search.EXACT


@pytest.mark.parametrize("exact", [False, True])
def test_what_has_no_tree_is_an_error_in_its_place(split: PCFG, exact: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    short, long = ["the", "dog", "saw"], ["dog", *["saw"] * 400]
    spans = len(long) * (len(long) + 1) // 2
    monkeypatch.setattr("truesource.grammar.inference.batch.memory", lambda: spans * len(split.symbols) * 20 - 1)
    found = Parser(split, exact=exact).parse_all([short, [], ["saw", "the"], long, ["unheard"], short])
    assert [type(parse) for parse in found] == [Parse, InputError, InputError, TooLongError, InputError, Parse]
    assert found[0] == found[-1]
    with pytest.raises(InputError):
        Parser(split, exact=exact).parse([])
    assert Parser(split, exact=exact).parse_all([]) == []


def test_k_best_trees_begin_with_the_best_one(split: PCFG) -> None:
    for method in (ParseMethod.VITERBI, ParseMethod.MAX_RULE):
        parser = Parser(split, method, thresholds=[1e-7])
        best, found = parser.parse(AMBIGUOUS), parser.best(AMBIGUOUS, 4)
        assert (found[0].tree, found[0].score) == (best.tree, pytest.approx(best.score, abs=1e-12))
        assert len({str(tree.tree) for tree in found}) == 4
        scores = [tree.score for tree in found]
        assert scores == sorted(scores, reverse=True)
        with pytest.raises(InputError):
            parser.best([], 4)
    with pytest.raises(InputError, match="max-span"):
        Parser(split, ParseMethod.MAX_SPAN).best(AMBIGUOUS, 4)


def test_samples_are_of_the_exact_posterior(split: PCFG) -> None:
    parser = Parser(split, ParseMethod.MAX_RULE, thresholds=[0.3])
    found = parser.samples(AMBIGUOUS, 500, np.random.default_rng(1))
    log_prob = split.log_prob(AMBIGUOUS)
    shares = {str(tree.tree): math.exp(tree.log_p - log_prob) for tree in found}
    counts = Counter(str(tree.tree) for tree in found)
    assert len(shares) > 1
    for tree, share in shares.items():
        assert abs(counts[tree] / 500 - share) < 4.0 * math.sqrt(share * (1.0 - share) / 500) + 1e-9
    assert [tree.tree for tree in parser.samples(AMBIGUOUS, 5, np.random.default_rng(1))] == [t.tree for t in found[:5]]
