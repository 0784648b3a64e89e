"""Joint distribution of length and class count against enumeration."""

from __future__ import annotations

import math
from collections import defaultdict
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from random_grammars import WORDS, length_ranges, small_pcfgs
from reference_inference import all_strings, length_mass, rules_of

from truesource.grammar.conditioning import LengthRange
from truesource.grammar.inference.expected import token_class
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.errors import InputError

pytestmark = pytest.mark.long

CLASSES = st.sets(st.sampled_from([*WORDS, "nothing"]))


@given(small_pcfgs(), CLASSES, length_ranges(4), st.booleans())
def test_joint_and_shares_are_those_of_all_strings(
    pcfg: PCFG, members: set[str], lengths: LengthRange, conditioned: bool
) -> None:
    high = lengths.high
    low = lengths.low if conditioned else 1
    mass = length_mass(rules_of(pcfg), high)
    assume(sum(mass[low:]) > 0.0)
    z = math.fsum(mass[low:])
    tables = all_strings(rules_of(pcfg), high)[pcfg.symbols[pcfg.start]]
    wanted = np.zeros((high + 1, high + 1))
    shares: dict[Fraction, float] = defaultdict(float)
    for n in range(low, high + 1):
        for string, p in tables[n].items():
            m = sum(word in members for word in string)
            wanted[n, m] += p
            shares[Fraction(m, n)] += p / z
    if conditioned:
        found = token_class(pcfg, members, lengths)
        wanted /= z
        tokens = (wanted.sum(axis=1) * np.arange(high + 1)).sum()
        assert found.pooled == pytest.approx((wanted.sum(axis=0) * np.arange(high + 1)).sum() / tokens, rel=1e-10)
    else:
        found = token_class(pcfg, members, high=high)
        counts = dict(zip(pcfg.vocabulary, pcfg.exact.expected_words, strict=True))
        pooled = sum(c for w, c in counts.items() if w in members) / sum(counts.values())
        assert found.pooled == pytest.approx(pooled, rel=1e-10, abs=1e-14)
    assert found.covered == pytest.approx(1.0 if conditioned else z, rel=1e-10)
    np.testing.assert_allclose(found.joint, wanted, rtol=1e-10, atol=0.0)
    np.testing.assert_allclose(found.count_pmf(), wanted.sum(axis=0), rtol=1e-10, atol=0.0)
    share, probability = found.share_pmf()
    assert share.tolist() == [float(s) for s in sorted(shares)]
    np.testing.assert_allclose(probability, [shares[s] for s in sorted(shares)], rtol=1e-10)
    assert found.mean_share == pytest.approx(math.fsum(float(s) * p for s, p in shares.items()), rel=1e-10)


def test_longer_sentences_follow_the_binomial_where_words_are_drawn_alone() -> None:
    pcfg = PCFG.from_text("S -> S A 0.8 | A 0.2\nA -> the 0.3 | , 0.1 | w 0.6")
    found = token_class(pcfg, ["the", ","], LengthRange(20, 30))
    for n in (20, 27, 30):
        mass = 0.8 ** (n - 20) * 0.2 / (1 - 0.8**11)
        wanted = [mass * math.comb(n, m) * 0.4**m * 0.6 ** (n - m) for m in range(n + 1)]
        np.testing.assert_allclose(found.joint[n, : n + 1], wanted, rtol=1e-10)
    assert found.joint[:20].sum() == 0.0
    assert found.mean_share == pytest.approx(0.4, rel=1e-12)
    assert found.pooled == pytest.approx(0.4, rel=1e-12)


def test_a_grammar_that_leaks_is_welcome_given_a_range() -> None:
    pcfg = PCFG.from_text("S -> S S 0.6 | a 0.3 | b 0.1")
    found = token_class(pcfg, ["b"], LengthRange(1, 6))
    assert found.covered == pytest.approx(1.0, rel=1e-12)
    assert found.pooled == pytest.approx(0.25, rel=1e-12)


def test_bad_requests_are_refused() -> None:
    pcfg = PCFG.from_text("S -> A A 1.0\nA -> a 1.0")
    for lengths, high in ((None, None), (LengthRange(1, 2), 2)):
        with pytest.raises(InputError, match="give either a range of lengths or the greatest length"):
            token_class(pcfg, [], lengths, high=high)
    with pytest.raises(InputError, match="at most 1 tokens"):
        token_class(pcfg, [], high=1)
    with pytest.raises(InputError, match=r"no sentence of this grammar has a length in 3\.\.4"):
        token_class(pcfg, [], LengthRange(3, 4))
    with pytest.raises(InputError, match="spectral radius"):
        token_class(PCFG.from_text("S -> S S 0.6 | a 0.4"), ["a"], high=5)
