"""Expected numbers of short strings, and the best predictor that sees k words, against enumeration."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Mapping
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from random_grammars import length_ranges, linear_pcfgs, small_pcfgs
from reference_inference import all_strings, rules_of

from truesource.grammar.conditioning import LengthRange
from truesource.grammar.inference.expected import expected_counts, unigram
from truesource.grammar.inference.spines import ANY, NextWeights
from truesource.grammar.inference.windows import PlacedWindows, WindowPredictor, Windows
from truesource.grammar.inference.word_types import bigrams, pair_weights
from truesource.grammar.pcfg import PCFG, language
from truesource.grammar.support.arrays import FloatArray
from truesource.grammar.support.errors import InputError

String = tuple[str, ...]
LONGEST = 16  #: words of a grammar of small_pcfgs without recursion
NOT_THERE = "zebra"
MESS3 = (1.09861, 0.85772, 0.81336, 0.79812)  #: nats: what 0, 1, 2 and 3 words leave, to five digits


def strings_of(pcfg: PCFG, lengths: LengthRange) -> dict[String, float]:
    """P(string | range) by enumeration; the example is dropped where there is none."""
    tables = all_strings(rules_of(pcfg), lengths.high)[pcfg.symbols[pcfg.start]][lengths.low :]
    z = math.fsum(p for table in tables for p in table.values())
    assume(z > 0.0)
    return {s: p / z for table in tables for s, p in table.items()}


def occurrences(strings: dict[String, float], sizes: range) -> dict[String, float]:
    """Expected number of every string of these sizes in a sentence, by counting."""
    result: dict[String, float] = defaultdict(float)
    for sentence, p in strings.items():
        for size in sizes:
            for at in range(len(sentence) - size + 1):
                result[sentence[at : at + size]] += p
    return result


def predictor(strings: dict[String, float], k: int) -> dict[String, dict[str, float]]:
    """P(token | what a predictor of k words sees), by counting; the beginning and the end are tokens."""
    seen: dict[String, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for sentence, p in strings.items():
        marked = ("<bos>", *sentence, "<eos>")
        for i in range(1, len(marked)):
            seen[marked[max(i - k, 0) : i]][marked[i]] += p
    return {context: {w: p / sum(law.values()) for w, p in law.items()} for context, law in seen.items()}


def expected(after: NextWeights) -> FloatArray:
    """Expected numbers of symbols after strings, (S, W)."""
    return np.asarray(after.states * np.exp(after.log_scale))


GRAMMARS = small_pcfgs() | linear_pcfgs()


@pytest.mark.long
@given(GRAMMARS, length_ranges(5))
def test_strings_are_expected_as_often_as_in_all_sentences(pcfg: PCFG, lengths: LengthRange) -> None:
    counted = occurrences(strings_of(pcfg, lengths), range(1, 5))
    asked = [s for size in range(1, 4) for s in itertools.product(pcfg.vocabulary, repeat=size)]
    asked += [s for s in counted if len(s) == 4] + [(pcfg.vocabulary[0], NOT_THERE)]
    found = Windows(pcfg, lengths).counts(asked)
    np.testing.assert_allclose(found, [counted.get(s, 0.0) for s in asked], rtol=1e-10, atol=0.0)


@pytest.mark.long
@given(small_pcfgs())
def test_without_a_range_they_are_those_of_all_lengths(pcfg: PCFG) -> None:
    free = Windows(pcfg)
    words = pcfg.vocabulary
    pairs = [(v, w) for v in words for w in words]
    np.testing.assert_allclose(free.counts(pairs), bigrams(pcfg).counts(pairs), rtol=1e-10, atol=1e-300)
    for size in (1, 2, 3):  # every occurrence has one word before it, or begins the sentence, and likewise after it
        strings = list(itertools.product(words, repeat=size))
        often = free.counts(strings)
        first = np.exp([pcfg.exact.prefix_log_prob(s) for s in strings])
        before = sum((free.counts([(w, *s) for s in strings]) for w in words), first)
        np.testing.assert_allclose(before, often, rtol=1e-10, atol=1e-300)
        after = free.following(np.array([pcfg.encode(s) for s in strings]))
        seen = (pcfg.exact.lexical_sums @ after.states + after.end) * np.exp(after.log_scale)
        np.testing.assert_allclose(seen, often, rtol=1e-10, atol=1e-300)


@pytest.mark.long
@given(small_pcfgs())
def test_a_finite_language_needs_no_range(pcfg: PCFG) -> None:
    masses = pcfg.exact.length_masses(LONGEST)[:, pcfg.start]
    assume(abs(masses.sum() - 1.0) < 1e-14 and masses[LONGEST] == 0.0)
    strings = list(itertools.product(pcfg.vocabulary, repeat=3))
    ranged = Windows(pcfg, LengthRange(1, LONGEST)).counts(strings)
    np.testing.assert_allclose(Windows(pcfg).counts(strings), ranged, rtol=1e-10, atol=0.0)


@pytest.mark.long
@given(GRAMMARS, length_ranges(4))
def test_the_predictor_is_that_of_all_sentences_and_more_words_never_hurt(pcfg: PCFG, lengths: LengthRange) -> None:
    strings = strings_of(pcfg, lengths)
    sentences, p = list(strings), np.array(list(strings.values()))
    windows, losses = Windows(pcfg, lengths), []
    for k in range(6):
        law = predictor(strings, k)
        rows = windows.log_probs(sentences, k)
        for sentence, row in zip(sentences, rows, strict=True):
            marked = ("<bos>", *sentence, "<eos>")
            wanted = [law[marked[max(i - k, 0) : i]][marked[i]] for i in range(1, len(marked))]
            np.testing.assert_allclose(np.exp(row), wanted, rtol=1e-10, atol=0.0)
        losses.append(-sum(q * row.sum() for q, row in zip(p, rows, strict=True)))
    assert (np.diff(losses) <= 1e-12).all()
    entropy = -float(p @ np.log(p))
    assert losses[-1] == pytest.approx(entropy, abs=1e-10)  # five words and the beginning: all that there is


@pytest.mark.long
@given(GRAMMARS, length_ranges(4))
def test_a_predictor_that_knows_the_position_is_that_of_all_sentences(pcfg: PCFG, lengths: LengthRange) -> None:
    strings = strings_of(pcfg, lengths)
    sentences, p = list(strings), np.array(list(strings.values()))
    placed, windows = PlacedWindows(pcfg, lengths), Windows(pcfg, lengths)
    for k in range(4):
        seen: dict[tuple[int, String], dict[str, float]] = defaultdict(lambda: defaultdict(float))
        for sentence, q in strings.items():
            for i, word in enumerate((*sentence, "<eos>")):
                seen[i, sentence[max(i - k, 0) : i]][word] += q
        rows = placed.log_probs(sentences, k)
        for sentence, row in zip(sentences, rows, strict=True):
            laws = [seen[i, sentence[max(i - k, 0) : i]] for i in range(len(sentence) + 1)]
            wanted = [law[w] / sum(law.values()) for law, w in zip(laws, (*sentence, "<eos>"), strict=True)]
            np.testing.assert_allclose(np.exp(row), wanted, rtol=1e-10, atol=0.0)
        more = windows.log_probs(sentences, k)
        assert sum(q * (a.sum() - b.sum()) for q, a, b in zip(p, rows, more, strict=True)) >= -1e-12


@pytest.mark.long
@pytest.mark.parametrize("kind", [Windows, PlacedWindows])
@given(small_pcfgs(), length_ranges(4))
def test_distributions_are_those_of_the_scores(kind: type[WindowPredictor], pcfg: PCFG, lengths: LengthRange) -> None:
    sentences = [*strings_of(pcfg, lengths)][:20]
    sentences.append((NOT_THERE, *sentences[0][1:]))
    windows = kind(pcfg, lengths)
    for k in range(4):
        rows = windows.log_probs(sentences, k)
        for batch in pcfg.exact.charts().batches(sentences, lengths):
            for block in windows.blocks(batch, k):
                for row, members in enumerate(block.members):
                    assert block.log_observed[row] == pytest.approx(rows[members[0]][block.position], abs=1e-12)
                    assert block.whole[row] == np.isfinite(rows[members[0]]).all()
                possible = block.probability[block.possible]
                np.testing.assert_allclose(possible.sum(axis=1), 1.0, rtol=1e-12)
                words = np.asarray(block.states @ pcfg.exact.emission)
                np.testing.assert_allclose(words, block.probability[:, :-1], rtol=1e-12, atol=1e-15)


@pytest.mark.long
@pytest.mark.parametrize("lengths", [None, LengthRange(3, 9)], ids=str)
def test_no_word_is_the_unigram_and_one_word_the_bigram(lengths: LengthRange | None) -> None:
    pcfg = PCFG.load("english:size=small")
    windows, pairs = Windows(pcfg, lengths), bigrams(pcfg, lengths)
    law = unigram(pcfg, lengths)
    sentence = ["the", "dog", "sleeps", "."]
    known = [w for w in sentence if w in pcfg.word_ids]
    assert len(known) >= 2
    row = windows.log_probs([known], 0)[0]
    np.testing.assert_allclose(
        np.exp(row), [*(law.words[pcfg.word_ids[w]] for w in known), law.end], rtol=1e-12, atol=0.0
    )
    after = windows.following(np.arange(len(pcfg.vocabulary))[:, None])
    for w in (0, 7, len(pcfg.vocabulary) - 1):
        next_word, end = pairs.next_word(pcfg.vocabulary[w])
        total = float(pcfg.exact.lexical_sums @ after.states[:, w] + after.end[w])
        found = np.asarray(after.states[:, w] @ pcfg.exact.emission) / total
        np.testing.assert_allclose(found, next_word, rtol=1e-10)
        assert after.end[w] / total == pytest.approx(end, rel=1e-10)


@pytest.mark.long
def test_any_word_may_stand_for_one() -> None:
    pcfg = PCFG.load("english:size=small")
    lengths = LengthRange(2, 7)
    windows = Windows(pcfg, lengths)
    words = np.arange(len(pcfg.vocabulary))
    given_one = expected(windows.following(np.stack([np.full(1, 3), np.full(1, ANY)], axis=1)))[:, 0]
    each = expected(windows.following(np.stack([np.full(len(words), 3), words], axis=1))).sum(axis=1)
    np.testing.assert_allclose(given_one, each, rtol=1e-10, atol=1e-300)
    tags = pair_weights(pcfg, lengths, neighbours=False)
    apart = np.zeros(len(tags.tags))  # any word, then none to five others, then each tag: all pairs in order
    for between in range(6):
        apart += expected(windows.following(np.full((1, 1 + between), ANY)))[tags.tags, 0]
    np.testing.assert_allclose(apart, tags.weight.sum(axis=0), rtol=1e-10, atol=1e-14)


@pytest.mark.long
@pytest.mark.parametrize("lengths", [None, LengthRange(1, 12)], ids=str)
def test_an_ngram_language_is_known_from_order_less_one_words_on(lengths: LengthRange | None) -> None:
    pcfg = PCFG.load("ngram:order=3,vocabulary=5,mean_length=6")
    drawn = [["w1", "w2", "w1", "w4", "w5", "w2", "w2"], ["w5"], ["w3", "w3", "w3", "w1"]]
    exact = pcfg.exact.causal_log_probs(drawn)
    windows = Windows(pcfg)
    for k in (2, 3):
        for row, truth in zip(windows.log_probs(drawn, k), exact, strict=True):
            np.testing.assert_allclose(row, truth, rtol=1e-10)
    if lengths is not None:  # the length condition makes the law depend on the position, which no window knows
        conditioned = np.concatenate(Windows(pcfg, lengths).log_probs(drawn, 2))
        assert np.abs(conditioned - np.concatenate(pcfg.exact.causal_log_probs(drawn, lengths))).max() > 1e-3


@pytest.mark.long
def test_what_k_words_leave_of_mess3() -> None:
    n = 12
    windows = Windows(PCFG.load("mess3"), LengthRange(n, n))
    for k, loss in enumerate(MESS3):
        often = windows.counts([*itertools.product("ABC", repeat=k + 1)]).reshape(-1, 3) / (n - k)
        assert often.sum() == pytest.approx(1.0, abs=1e-12)
        assert -(often * np.log(often / often.sum(axis=1, keepdims=True))).sum() == pytest.approx(loss, abs=5e-6)


@pytest.mark.long
def test_a_grammar_that_leaks_is_conditioned_on_derivations_that_end() -> None:
    leaking = PCFG.from_text("S -> A S 0.3 | A A 0.5 | A TRAP 0.2\nA -> a 0.5 | b 0.5\nTRAP -> TRAP S 1.0")
    z = 0.5 / 0.7  # of S: 0.3 z + 0.5
    assert leaking.exact.total_mass == pytest.approx(z, abs=1e-12)
    # lengths are 2, 3, ... with probability .7 * .3^(n-2), and words are even
    expected = sum(0.7 * 0.3 ** (n - 2) * (n - 2) for n in range(2, 80)) / 8
    assert Windows(leaking).counts([("a", "b", "a")])[0] == pytest.approx(expected, abs=1e-12)


@pytest.mark.long
@pytest.mark.parametrize("lengths", [None, LengthRange(1, 12)], ids=str)
def test_windows_of_words_too_rare_for_floats_are_told_apart(lengths: LengthRange | None) -> None:
    """Each word has 1e-200, so that two of them have no probability in float64."""
    pcfg = PCFG.from_text("S -> A S 0.5 | A A 0.5\nA -> a 1e-200 | b 3e-200 | c 1.0")
    windows = Windows(pcfg, lengths)
    row = windows.log_probs([["c", "a", "b", "a", "b", "c"]], 3)[0]
    exact = pcfg.exact.causal_log_probs([["c", "a", "b", "a", "b", "c"]], lengths)[0]
    np.testing.assert_allclose(row[4], exact[4], rtol=1e-2)  # words are independent, but for the end
    assert row[4] - row[3] == pytest.approx(math.log(3.0), abs=0.1)
    assert windows.counts([("a", "b", "a")])[0] == 0.0


def test_bad_requests_are_refused() -> None:
    pcfg = PCFG.load("dyck")
    windows = Windows(pcfg, LengthRange(2, 6))
    with pytest.raises(InputError, match="string 2 has no words"):
        windows.counts([("(",), ()])
    with pytest.raises(InputError, match=r"no sentence of this grammar has a length in 1\.\.1"):
        Windows(pcfg, LengthRange(1, 1))
    for kind in (Windows, PlacedWindows):
        with pytest.raises(InputError, match="the number of context words must be 0 or more, got -1"):
            kind(pcfg, LengthRange(2, 6)).log_probs([("(", ")")], -1)
    with pytest.raises(InputError, match="one word or more"):
        windows.next_words(np.zeros((1, 0), np.int64))
    with pytest.raises(InputError, match="expected counts are infinite"):
        Windows(PCFG.from_text("S -> S S 0.5 | a 0.5"))
    assert expected_counts(pcfg, LengthRange(2, 6)).words.sum() == pytest.approx(
        float(windows.counts([(w,) for w in pcfg.vocabulary]).sum()), abs=1e-12
    )


@pytest.mark.long
def test_the_last_token_of_a_random_hierarchy_depends_on_its_block_as_the_productions_say() -> None:
    """Last-token prediction (Cagnetta, Kang and Wyart 2025): the law of the last block, level by level from the top."""
    pcfg = language("random-hierarchy", depth=3, symbols=4, productions=2, seed=3)
    below: dict[str, list[tuple[String, float]]] = defaultdict(list)
    rules = rules_of(pcfg)
    for parent, *children, p in (*rules.binary, *rules.unary, *rules.lexical):
        below[parent].append((tuple(children), p))
    block: dict[String, float] = {("S",): 1.0}  # what stands last, level by level; the rest is summed out
    for kept in (1, 1, 2, 4, 4):  # of the top level, of the next, of the last, preterminals, words
        longer: dict[String, float] = defaultdict(float)
        for row, p in block.items():
            for choice in itertools.product(*(below[symbol] for symbol in row)):
                made = tuple(child for children, _ in choice for child in children)[-kept:]
                longer[made] += p * math.prod(q for _, q in choice)
        block = longer
    assert {len(row) for row in block} == {4} and sum(block.values()) == pytest.approx(1.0, abs=1e-12)
    strings = all_strings(rules, 8)["S"][8]
    assert -sum(p * math.log(p) for p in strings.values()) == pytest.approx(math.log(4) + 7 * math.log(2), abs=1e-10)
    placed = PlacedWindows(pcfg, LengthRange(8, 8))
    for k in range(4):
        law: dict[String, float] = defaultdict(float)
        for row, p in block.items():
            law[row[3 - k :]] += p
        before: dict[String, float] = defaultdict(float)
        for row, p in law.items():
            before[row[:-1]] += p
        wanted = -sum(p * math.log(p / before[row[:-1]]) for row, p in law.items())
        rows = placed.log_probs([*strings], k)
        found = -sum(p * float(row[-2]) for p, row in zip(strings.values(), rows, strict=True))
        assert found == pytest.approx(wanted, abs=1e-10)


@pytest.mark.long
@given(small_pcfgs(), length_ranges())
def test_the_law_after_a_window_is_that_of_all_sentences(pcfg: PCFG, lengths: LengthRange) -> None:
    strings = strings_of(pcfg, lengths)
    n_words, windows = len(pcfg.vocabulary), Windows(pcfg, lengths)
    for k in (1, 2):
        counts = occurrences({(*s, "<eos>"): p for s, p in strings.items()}, range(k + 1, k + 2))
        seen = np.array(list(itertools.product(range(n_words), repeat=k)))
        found = windows.next_words(seen)
        for row, ids in zip(found, seen.tolist(), strict=True):
            window = tuple(pcfg.vocabulary[i] for i in ids)
            wanted = np.array([counts.get((*window, word), 0.0) for word in (*pcfg.vocabulary, "<eos>")])
            assert row == pytest.approx(wanted / (wanted.sum() or 1.0), rel=1e-8, abs=1e-12)


def rare_language(places: tuple[int, int, int, int]) -> tuple[PCFG, dict[String, Fraction]]:
    """A grammar with rules of probability 10^-k, and the exact probabilities of its strings."""
    c, pair, two, more = (Fraction(1, 10**k) for k in places)
    plain, single = 1 - c - pair, 1 - two - more
    pcfg = PCFG.from_text(
        f"S -> a {float(plain)!r} | c {float(c)!r} | A X {float(pair)!r}\nA -> a 1.0\nC -> c 1.0\n"
        f"X -> C C {float(two)!r} | b {float(single)!r} | A C {float(more)!r}"
    )
    strings = {("a",): plain, ("c",): c, ("a", "c", "c"): pair * two, ("a", "b"): pair * single}
    return pcfg, strings | {("a", "a", "c"): pair * more}


def log_scores(strings: Mapping[String, Fraction], k: int, sentence: String, *, placed: bool) -> list[float]:
    """Ln P_k of each token by counting in exact fractions, which hold numbers of any size."""
    windows: dict[object, Fraction] = defaultdict(Fraction)
    tokens: dict[object, Fraction] = defaultdict(Fraction)

    def places(text: String) -> list[tuple[object, object]]:
        marked = ("<bos>", *text, "<eos>")
        contexts = [(i, marked[max(i - k, 1) : i]) if placed else marked[max(i - k, 0) : i] for i in range(len(marked))]
        return [(contexts[i], (contexts[i], marked[i])) for i in range(1, len(marked))]

    for text, p in strings.items():
        for context, token in places(text):
            windows[context] += p
            tokens[token] += p
    shares = [tokens[token] / windows[context] if tokens[token] else None for context, token in places(sentence)]
    return [-math.inf if x is None else math.log(x.numerator) - math.log(x.denominator) for x in shares]


@pytest.mark.long
@given(st.tuples(*[st.sampled_from([2, 60, 100, 154, 160, 250])] * 4), st.integers(0, 3))
def test_windows_too_rare_for_float64_have_their_logarithms(places: tuple[int, int, int, int], k: int) -> None:
    pcfg, strings = rare_language(places)
    texts = [*strings, ("a", "c"), ("a", "a", "b")]
    for lengths in (None, LengthRange(1, 3), LengthRange(1, 2)):
        inside = {s: p for s, p in strings.items() if lengths is None or len(s) in lengths}
        for kind in (Windows, PlacedWindows):
            found = kind(pcfg, lengths).log_probs(texts, k)
            for text, row in zip(texts, found, strict=True):
                wanted = log_scores(inside, k, text, placed=kind is PlacedWindows)
                seen = np.cumsum(np.isneginf(wanted)) == 0  # after an impossible token a context may be impossible
                np.testing.assert_allclose(row[seen], np.array(wanted)[seen], rtol=1e-10, atol=1e-10)


@pytest.mark.long
def test_two_rare_rules_make_a_pair_of_words_of_probability_1e_340() -> None:
    pcfg = PCFG.from_text(
        "S -> 'a' 1.0 | 'c' 1e-100 | A X 1e-170\nA -> 'a' 1.0\nX -> C C 1e-170 | 'b' 1.0\nC -> 'c' 1.0"
    )
    for lengths in (None, LengthRange(1, 3)):
        windows = Windows(pcfg, lengths)
        wanted = [0.0, -340 * math.log(10.0), -240 * math.log(10.0), 0.0]
        np.testing.assert_allclose(windows.log_probs([("a", "c", "c")], 1)[0], wanted, atol=1e-10)
        rows = windows.log_probs([("a", "zebra", "c"), ("b", "a")], 1)
        assert rows[0][1:3].tolist() == [-math.inf, -math.inf] and rows[1][0] == rows[1][1] == -math.inf
        ids = [[pcfg.word_ids["a"], pcfg.word_ids["c"]]]
        with pytest.raises(InputError, match="the string 'a c' is so rare that its expected number"):
            windows.next_words(np.array(ids))
        assert not windows.next_words(np.array([[pcfg.word_ids["b"], pcfg.word_ids["a"]]])).any()
