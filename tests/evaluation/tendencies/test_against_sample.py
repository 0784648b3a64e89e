"""Samples beside another text: tests, values, and texts that were cut differently."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
import pytest
from scipy import stats

from truesource.evaluation.measures.integer_corpus import encode
from truesource.evaluation.tendencies import TendencySettings
from truesource.evaluation.tendencies.against_sample import against_sample, gap_at_equal_lengths, type_tests
from truesource.evaluation.tendencies.rank_frequency import exponent_of
from truesource.evaluation.tendencies.truth import differing_habits, stopwords_among
from truesource.evaluation.tendencies.type_token import fit_heaps, type_counts
from truesource.grammar.support.errors import InputError

FAST = TendencySettings({"stopwords": lambda words: stopwords_among(words, ["0", "1"])}, permutations=99, draws=199)


def text(rng: np.random.Generator, n: int, words: int = 25, low: int = 2, high: int = 9) -> list[list[str]]:
    p = 1 / np.arange(1, words + 1)
    return [[*map(str, rng.choice(words, int(rng.integers(low, high)), p=p / p.sum()))] for _ in range(n)]


@pytest.mark.long
def test_two_texts_of_one_law_and_of_two() -> None:
    rng = np.random.default_rng(1)
    found = against_sample({"same": text(rng, 300), "poor": text(rng, 300, 8)}, text(rng, 400), FAST)
    same, poor = (
        {k: f.test.p for k, f in found.findings[name].items() if f.test is not None} for name in ("same", "poor")
    )
    assert min(same.values()) > 0.01
    assert poor["unigram_tv"] == poor["rank_ks"] == 1 / 100
    assert poor["types_gap"] == 1 / 100
    assert poor["length_ks"] > 0.01
    assert found.findings["poor"]["types"].score.value == pytest.approx(8, abs=0.01)
    assert found.findings["reference"]["types"].score.value == pytest.approx(25, abs=0.1)


@pytest.mark.long
def test_the_text_itself_is_at_distance_zero() -> None:
    itself = text(np.random.default_rng(2), 100)
    found = against_sample({"it": itself}, itself, FAST).findings["it"]
    for name in ("length_ks", "unigram_tv", "rank_ks", "stopwords_ks", "heaps_beta_difference", "types_gap"):
        assert found[name].score.value == pytest.approx(0.0, abs=1e-12)
        test = found[name].test
        assert test is not None
        assert test.p == 1.0


@pytest.mark.long
def test_tests_against_a_text_have_the_size_they_say() -> None:
    rng = np.random.default_rng(3)
    rejected: dict[str, int] = defaultdict(int)
    for i in range(60):
        options = TendencySettings(FAST.classes, permutations=59, draws=199, seed=i)
        row = against_sample({"x": text(rng, 40)}, text(rng, 50), options).findings["x"]
        for name, finding in row.items():
            if finding.test is not None:
                rejected[name] += finding.test.p <= 0.05
    assert len(rejected) >= 12
    assert max(rejected.values()) <= stats.binom.ppf(0.9999, 60, 0.05)
    assert sum(rejected.values()) / len(rejected) > 0.9


def test_types_at_equal_lengths_by_hand() -> None:
    a, b = encode([[["x", "y"], ["x", "x"], ["x"]], [["x", "x"], ["x", "y", "z"]]])
    first, second = (type_counts(c, high=3) for c in (a, b))
    assert gap_at_equal_lengths(first, second) == pytest.approx(1.5 - 1)
    (long,) = encode([[["x", "y", "z"]]])
    assert gap_at_equal_lengths(type_counts(a, high=3), type_counts(long, high=3)) is None


def test_the_difference_of_exponents_is_that_of_two_fits() -> None:
    rng = np.random.default_rng(4)
    a, b = encode([text(rng, 200), text(rng, 200, 6)])
    first, second = (type_counts(c, high=9) for c in (a, b))
    found = type_tests(first, second, draws=99)
    assert found is not None
    assert found["heaps_beta_difference"][0] == pytest.approx(fit_heaps(first).beta - fit_heaps(second).beta)
    assert found["heaps_beta_difference"][1].p == 1 / 100


@pytest.mark.long
def test_published_definitions_on_request() -> None:
    rng = np.random.default_rng(5)
    sides = text(rng, 100), text(rng, 100)
    default, paper = (
        against_sample({"x": sides[0]}, sides[1], TendencySettings(permutations=99, draws=99, variant=v)).findings["x"]
        for v in ("default", "paper")
    )
    assert paper["zipf_exponent"].score.value > max(1.0, default["zipf_exponent"].score.value)
    assert "variant:paper" in paper["zipf_exponent"].score.signature
    assert paper["unigram_tv"].score.value == default["unigram_tv"].score.value


@pytest.mark.long
def test_what_cannot_be_compared() -> None:
    with pytest.raises(InputError, match="'reference' is empty"):
        against_sample({"x": [["a"]]}, [], FAST)
    with pytest.raises(InputError, match="called 'reference' like the reference"):
        against_sample({"reference": [["a"]]}, [["a"]], FAST)
    found = against_sample({"x": [["a"], ["b"]]}, [["a"], ["a"]], FAST)
    assert "types" in found.findings["x"]
    assert any("Heaps' law needs" in note for note in found.notes)


@pytest.mark.long
def test_unknown_words_count_for_distances_and_have_no_rank() -> None:
    """Rank-frequency and types are those of the texts without <unk>; total variation is not."""
    rng = np.random.default_rng(6)
    one, other = text(rng, 80), text(rng, 90)
    hidden = [[["<unk>" if w in ("0", "3") else w for w in s] for s in side] for side in (one, other)]
    found = against_sample({"x": hidden[0]}, hidden[1], FAST)
    row = found.findings["x"]
    known = [[[w for w in s if w != "<unk>"] for s in side] for side in hidden]
    counts = [np.sort(np.unique([w for s in side for w in s], return_counts=True)[1])[::-1] for side in known]
    assert row["zipf_exponent"].score.value == pytest.approx(exponent_of(counts[0]))
    steps = [np.cumsum(c / c.sum()) for c in counts]
    ends = [np.pad(s, (0, max(map(len, steps)) - len(s)), constant_values=1.0) for s in steps]
    assert row["rank_ks"].score.value == pytest.approx(np.abs(ends[0] - ends[1]).max())
    assert found.findings["reference"]["types"].score.value <= len(counts[1])
    tokens = [w for s in hidden[0] for w in s]
    assert row["unknown_share"].score.value == pytest.approx(tokens.count("<unk>") / len(tokens))
    shares = [
        {w: n / sum(c.values()) for w, n in c.items()} for c in (Counter(w for s in t for w in s) for t in hidden)
    ]
    tv = sum(abs(shares[0].get(w, 0) - shares[1].get(w, 0)) for w in shares[0] | shares[1]) / 2
    assert row["unigram_tv"].score.value == pytest.approx(tv)
    alone = against_sample({"x": [["<unk>", "a"], ["<unk>"]]}, [["<unk>"], ["<unk>", "<unk>"]], FAST)
    assert "rank_ks" not in alone.findings["x"]
    assert any("x: no rank_ks" in note for note in alone.notes)


@pytest.mark.long
def test_why_heaps_values_are_missing() -> None:
    two, one, far = [["a", "b"], ["a"]] * 9, [["a", "b"]] * 9, [["a", "b", "c"], ["a", "b", "c", "d"]] * 9
    short = against_sample({"x": two}, one, FAST)
    assert "x: no heaps_beta_difference; the text it is compared with has no Heaps' law" in short.notes
    assert "heaps_beta" in short.findings["x"]  # its own law is there
    apart = against_sample({"x": two}, far, FAST)
    assert any("it has no sentence as long as one of the text it is compared with" in note for note in apart.notes)
    few = against_sample({"x": two[:2]}, two[:2], FAST)
    assert any("dealt out anew, some samples have no Heaps' law" in note for note in few.notes)


def test_texts_that_were_cut_differently() -> None:
    penn = [["The", "dog", "does", "n't", "bark", "."], ["-LRB-", "It", "'s", "old", "-RRB-"]] * 20
    plain = [["the", "dog", "doesn't", "bark."], ["it's", "(old)"]] * 20
    found = " / ".join(differing_habits(penn, plain))
    for habit in ("capital letters", "joined to words", "clitics as words", "don't", "escaped brackets"):
        assert habit in found
    assert differing_habits(penn, penn[:7]) == []
    pieces = differing_habits([["un@@", "known"]] * 9, [["<unk>", "it"]] * 9)
    assert len(pieces) == 2
