"""The embedded English grammar: a proper distribution, honest labels, and what is and is not English in it."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from truesource.grammar.pcfg import PCFG
from truesource.grammar.template import compile_template

FOLDER = Path(__file__).resolve().parents[2] / "data" / "english"


@pytest.fixture(scope="module")
def english() -> PCFG:
    return compile_template(FOLDER)


@pytest.fixture(scope="module")
def mean_matrix(english: PCFG) -> NDArray[np.float64]:
    """Expected number of B children of A, computed here from the rules alone, (S, S)."""
    n = len(english.symbols)
    matrix = np.zeros((n, n))
    for (a, b, c), logp in zip(english.binary, english.binary_logp, strict=True):
        matrix[a, b] += np.exp(logp)
        matrix[a, c] += np.exp(logp)
    for (a, b), logp in zip(english.unary, english.unary_logp, strict=True):
        matrix[a, b] += np.exp(logp)
    return matrix


@pytest.mark.long
def test_size(english: PCFG) -> None:
    assert len(english.vocabulary) >= 1500
    assert 300 <= len(english.symbols) <= 1200
    assert 2000 <= len(english.binary) <= 10000
    assert english.symbols[english.start] == "ROOT"


@pytest.mark.long
def test_rows_sum_to_one(english: PCFG) -> None:
    sums = np.zeros(len(english.symbols))
    for rules, logp in (
        (english.binary, english.binary_logp),
        (english.unary, english.unary_logp),
        (english.lexical, english.lexical_logp),
    ):
        np.add.at(sums, rules[:, 0], np.exp(logp))
    np.testing.assert_allclose(sums, 1.0, atol=1e-9)


@pytest.mark.long
def test_it_is_consistent_with_total_mass_one(english: PCFG, mean_matrix: NDArray[np.float64]) -> None:
    radius = np.abs(np.linalg.eigvals(mean_matrix)).max()
    assert 0.6 <= radius <= 0.85
    lexical = np.zeros(len(english.symbols))
    np.add.at(lexical, english.lexical[:, 0], np.exp(english.lexical_logp))
    mass, n = np.zeros(len(english.symbols)), len(english.symbols)
    a, b, c = english.binary.T
    up, down = english.unary.T
    for _ in range(400):
        longer = np.bincount(a, np.exp(english.binary_logp) * mass[b] * mass[c], minlength=n)
        mass = lexical + longer + np.bincount(up, np.exp(english.unary_logp) * mass[down], minlength=n)
    assert mass[english.start] == pytest.approx(1.0, abs=1e-9)


@pytest.mark.long
def test_mean_length(english: PCFG, mean_matrix: NDArray[np.float64]) -> None:
    lexical = np.zeros(len(english.symbols))
    np.add.at(lexical, english.lexical[:, 0], np.exp(english.lexical_logp))
    start = np.eye(len(english.symbols))[english.start]
    visits = np.linalg.solve(np.eye(len(english.symbols)) - mean_matrix.T, start)
    assert 10 <= visits @ lexical <= 14


def test_labels_are_a_treebanks(english: PCFG) -> None:
    labels = set(english.labels)
    assert {label for label in labels if not label.startswith("@")} == PHRASES | TAGS
    assert {label.removeprefix("@") for label in labels} <= PHRASES | TAGS
    preterminals = {english.labels[a] for a in english.lexical[:, 0]}
    assert preterminals == TAGS
    with_rules = {english.labels[a] for rules in (english.binary, english.unary) for a in rules[:, 0]}
    assert not with_rules & TAGS


def test_states_refine_labels(english: PCFG) -> None:
    states = Counter(english.labels)
    assert states["NP"] > 50
    assert states["VP"] > 100
    assert states["VBZ"] > 20


def test_spliced_symbols_always_have_two_children(english: PCFG) -> None:
    at = np.array([label.startswith("@") for label in english.labels])
    assert at.any()
    assert not at[english.unary].any()
    assert not at[english.lexical[:, 0]].any()


def test_a_goes_before_consonants_and_an_before_vowels(english: PCFG) -> None:
    exceptions = {"university", "union", "useful", "honest", "hour", "unit"}
    for a, w in english.lexical:
        name, word = english.symbols[a], english.vocabulary[w]
        if name.startswith(("NN-", "JJ-")) and word not in exceptions:
            assert (word[0].lower() in "aeiou") == name.endswith("-vow"), word


def test_words_follow_a_zipfian_law(english: PCFG) -> None:
    state = english.symbol_ids["NNS-person"]
    weights = np.sort(np.exp(english.lexical_logp[english.lexical[:, 0] == state]))[::-1]
    ranks = np.arange(1, len(weights) + 1) + 2.0
    np.testing.assert_allclose(weights, (1 / ranks) / (1 / ranks).sum(), rtol=1e-9)


PHRASES = {
    *("ROOT", "S", "NP", "VP", "PP", "SBAR", "SQ", "SBARQ", "ADJP", "ADVP", "QP", "WHNP", "WHADVP", "WHADJP"),
}
TAGS = {
    *("NN", "NNS", "NNP", "VB", "VBP", "VBZ", "VBD", "VBN", "VBG", "MD", "TO", "DT", "PDT", "JJ", "JJR", "JJS"),
    *("RB", "RBR", "IN", "CC", "PRP", "PRP$", "POS", "WP", "WP$", "WDT", "WRB", "CD", "EX", ".", "?", ","),
}
GOOD = """\
the dog sleeps .
the dogs sleep .
I am happy .
they were happy .
she sees him .
he gave her a book .
he gave the book to the teacher .
the girl put the book on the table .
Mary thinks that John is sleeping .
she asked whether the train would come .
the teacher wants to leave the room .
the teacher asked Mary to leave the room .
she seems to know the answer .
the storm seems to move .
the king is likely to win the war .
the man who sees her laughs .
the men who see her laugh .
the book which she has found is old .
the book she found is old .
the man with the dog walks in the park .
the cake was eaten by the children .
the cake was eaten .
the house built by the king is old .
does she know the answer ?
do they know the answer ?
is the soup hot ?
has he eaten the cake ?
can the child swim ?
who ate the cake ?
what did the child eat ?
which book did she find ?
how many dogs did she see ?
why does he wait ?
the child did not eat the cake .
she has not eaten the cake .
he will not be happy .
she could have eaten an apple .
it must be eaten .
Mary and the teacher know the answer .
the man eats the cake and drinks milk .
the dog sleeps , and the cat sleeps .
because the dog sleeps , the cat is happy .
the teacher 's dog sleeps .
she raised her hand .
every dog sleeps .
many dogs sleep .
much water disappeared .
all dogs sleep .
two dogs sleep .
one of the dogs sleeps .
some of the dogs sleep .
more than two dogs sleep .
Mary is older than John .
Mary is more beautiful than John .
the oldest man sleeps .
yesterday , she saw a very old house .
she saw an old house last week .
they sleep quietly .
he often sleeps in the park on Monday .
there is a dog in the house .
there are two dogs in the garden .
you are doctors .
I am a doctor .
they are doctors .
the woman whose son sleeps is happy .
the problem was discussed .
what does she say that he wants to buy ?
""".splitlines()

PAIRS = [
    # agreement
    ("the dog sleeps .", "the dog sleep ."),
    ("the dogs sleep .", "the dogs sleeps ."),
    ("she is happy .", "she are happy ."),
    ("I am happy .", "I is happy ."),
    ("they were happy .", "they was happy ."),
    ("he has eaten the cake .", "he have eaten the cake ."),
    ("the man who sees her laughs .", "the man who see her laughs ."),
    ("the teacher with the dogs laughs .", "the teacher with the dogs laugh ."),
    ("one of the dogs sleeps .", "one of the dogs sleep ."),
    ("Mary and the teacher know the answer .", "Mary and the teacher knows the answer ."),
    ("they are doctors .", "they are a doctor ."),
    ("there are two dogs in the garden .", "there is two dogs in the garden ."),
    # case
    ("she sees him .", "her sees him ."),
    ("she sees him .", "she sees he ."),
    ("he gave it to them .", "he gave it to they ."),
    ("we know the answer .", "us know the answer ."),
    # subcategorisation
    ("the dog sleeps .", "the dog sleeps the cake ."),
    ("she visited the museum .", "she visited ."),
    ("he gave her a book .", "he gave her ."),
    ("the girl put the book on the table .", "the girl put the book ."),
    ("the teacher wants to leave the room .", "the teacher wants leave the room ."),
    ("she seems to know the answer .", "she seems that know the answer ."),
    ("Mary thinks that John sleeps .", "Mary thinks whether John sleeps ."),
    ("she wonders whether John sleeps .", "she wonders that John sleeps ."),
    ("she listens to him .", "she listens him ."),
    ("she enjoys eating the cake .", "she enjoys to eat the cake ."),
    # auxiliaries and their order
    ("she could have eaten an apple .", "she have could eaten an apple ."),
    ("he will be happy .", "he will is happy ."),
    ("he can swim .", "he can swims ."),
    ("she has eaten the cake .", "she has ate the cake ."),
    ("she is eating the cake .", "she is eat the cake ."),
    ("the child did not eat the cake .", "the child not ate the cake ."),
    ("the child did not eat the cake .", "the child did not ate the cake ."),
    ("the child does not eat the cake .", "the child does not eats the cake ."),
    # questions
    ("does she know the answer ?", "does she knows the answer ?"),
    ("does she know the answer ?", "knows she the answer ?"),
    ("what did the child eat ?", "what did the child eat the cake ?"),
    ("what did the child eat ?", "what the child ate ?"),
    ("who ate the cake ?", "who eat the cake ?"),
    ("is the soup hot ?", "is the soup hot ."),
    # gaps and passives
    ("the book which she has found is old .", "the book which she has found it is old ."),
    ("the cake was eaten by the children .", "the cake was ate by the children ."),
    ("the cake was eaten .", "the dog was slept ."),
    ("the dog which sleeps is old .", "the dog who sleeps is old ."),
    # determiners and quantifiers
    ("every dog sleeps .", "every dogs sleep ."),
    ("many dogs sleep .", "many dog sleeps ."),
    ("much water disappeared .", "many water disappeared ."),
    ("these dogs sleep .", "this dogs sleep ."),
    ("an apple fell .", "a apple fell ."),
    ("a useful key fell .", "an useful key fell ."),
    ("the dog sleeps .", "dog sleeps ."),
    # selection, possession, tense
    ("she saw a house last week .", "she sees a house last week ."),
    ("she will eat the cake tomorrow .", "she ate the cake tomorrow ."),
    ("the teacher 's dog sleeps .", "the teacher dog sleeps ."),
    ("Mary is older than John .", "Mary is old than John ."),
    ("Mary is more beautiful than John .", "Mary is more old than John ."),
]


@pytest.mark.parametrize("sentence", GOOD)
def test_english_sentences_can_be_made(english: PCFG, sentence: str) -> None:
    assert np.isfinite(english.log_prob(sentence.split()))


@pytest.mark.parametrize(("good", "bad"), PAIRS)
def test_minimal_pairs(english: PCFG, good: str, bad: str) -> None:
    good_logp, bad_logp = english.log_prob(good.split()), english.log_prob(bad.split())
    assert np.isfinite(good_logp)
    assert bad_logp == -np.inf


def test_words_prefer_words(english: PCFG) -> None:
    def logp(sentence: str) -> float:
        return english.log_prob(sentence.split())

    assert logp("she ate the cake .") > logp("she ate the grass .") > -np.inf
    assert logp("she ate the idea .") == -np.inf
    assert logp("the idea was interesting .") > logp("the cake was interesting .")
    assert logp("the cat slept .") > -np.inf
    assert logp("the cake slept .") == -np.inf


def test_random_derivations_have_positive_probability(english: PCFG) -> None:
    rng = random.Random(1)
    options: dict[int, tuple[list[tuple[int, ...]], list[float]]] = {}
    for rules, logp in ((english.binary, english.binary_logp), (english.unary, english.unary_logp)):
        for rule, value in zip(rules.tolist(), logp, strict=True):
            children, weights = options.setdefault(rule[0], ([], []))
            children.append(tuple(rule[1:]))
            weights.append(float(np.exp(value)))
    for (a, w), value in zip(english.lexical.tolist(), english.lexical_logp, strict=True):
        children, weights = options.setdefault(a, ([], []))
        children.append((-1 - w,))
        weights.append(float(np.exp(value)))
    for _ in range(30):
        stack, words = [english.start], []
        while stack:
            symbol = stack.pop()
            if symbol < 0:
                words.append(english.vocabulary[-1 - symbol])
            else:
                children, weights = options[symbol]
                stack.extend(reversed(rng.choices(children, weights)[0]))
        assert np.isfinite(english.log_prob(words)), words
        assert words[-1] in {".", "?"}
