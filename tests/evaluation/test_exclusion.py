"""The truth of splits that leave out the sentences of earlier splits, against enumeration."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from random_grammars import length_ranges, small_pcfgs
from reference_inference import all_strings, rules_of

from truesource.evaluation.core.comparison import compare_in
from truesource.evaluation.core.exact_bound import bound_records
from truesource.evaluation.core.exclusion import Exclusion
from truesource.evaluation.core.oracle import Oracle
from truesource.evaluation.core.scores_on_disk import score_in_parts
from truesource.evaluation.core.sentence_records import sentence_records
from truesource.evaluation.core.setting import Setting
from truesource.evaluation.divergence.compare import compare_distributions
from truesource.evaluation.dynamics.compare import CurveSettings, learning_dynamics
from truesource.evaluation.pplu.compare import compare_pplu, oracle_unigram
from truesource.generator.corpus import Corpus
from truesource.generator.language_model import ScoringFrame, TokenScores, preset_frame
from truesource.generator.objectives import OBJECTIVES, Objective, ranks
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.errors import InputError

FRAME = ScoringFrame()
LAW = PCFG.from_text("S -> W S 0.4 | W 0.6\nW -> a 0.4 | b 0.3 | c 0.2 | d 0.1")
LENGTHS = LengthRange(1, 3)
String = tuple[str, ...]


def language(pcfg: PCFG, lengths: LengthRange) -> dict[String, float]:
    """Every sentence of such a length and its probability."""
    strings = all_strings(rules_of(pcfg), lengths.high)[pcfg.symbols[pcfg.start]]
    found = {s: p for m in range(lengths.low, lengths.high + 1) for s, p in strings[m].items() if p > 0.0}
    total = math.fsum(found.values())
    return {s: p / total for s, p in found.items()}


def conditionals(
    law: dict[String, float], objective: Objective, sentence: String, read: Callable[[String], String]
) -> list[float]:
    """Probability of each position of a sentence by adding up the whole language, the end of causal ones last."""
    wanted = read(sentence)
    seen = [(read(s), p) for s, p in law.items()]

    def mass(match: Callable[[String], bool]) -> float:
        return math.fsum(p for s, p in seen if match(s))

    def agrees(s: String, gap: int | None) -> bool:
        return len(s) == len(wanted) and all(i == gap or x == y for i, (x, y) in enumerate(zip(s, wanted, strict=True)))

    def known_agree(s: String, rank: list[int], k: int) -> bool:
        return len(s) == len(wanted) and all(r >= k or x == y for r, x, y in zip(rank, s, wanted, strict=True))

    whole = mass(lambda s: s == wanted)
    if objective == "masked":
        return [whole / mass(lambda s, i=i: agrees(s, i)) for i in range(len(wanted))]
    if objective == "any-order":
        (rank,) = ranks(sentence).tolist()
        first = [mass(lambda s, k=k: known_agree(s, rank, k)) for k in range(len(wanted) + 1)]
        return [first[when + 1] / first[when] for when in rank]
    prefixes = [mass(lambda s, i=i: s[:i] == wanted[:i]) for i in range(len(wanted) + 1)]
    return [after / before for before, after in zip(prefixes, [*prefixes[1:], whole], strict=True)]


@pytest.mark.long
@given(
    small_pcfgs(),
    length_ranges(4),
    st.none() | st.sets(st.sampled_from("abc")),
    st.sampled_from(OBJECTIVES),
    st.data(),
)
def test_scores_are_those_of_the_language_without_the_excluded_sentences(
    pcfg: PCFG, lengths: LengthRange, vocabulary: set[str] | None, objective: Objective, data: st.DataObject
) -> None:
    try:
        every = language(pcfg, lengths)
    except ZeroDivisionError:
        assume(False)
    assume(len(every) > 1)
    left_out = data.draw(st.sets(st.sampled_from(sorted(every)), min_size=1, max_size=len(every) - 1))
    rest = {s: p for s, p in every.items() if s not in left_out}
    total = math.fsum(rest.values())
    assume(total > 1e-2)
    law = {s: p / total for s, p in rest.items()}
    excluded = Exclusion.from_sentences([*left_out, *left_out], pcfg, lengths)
    assert excluded.probability == pytest.approx(1.0 - total, abs=1e-12)
    oracle = Oracle(pcfg, objective, lengths=lengths, vocabulary=vocabulary, excluded=excluded)
    asked = sorted(law)
    found = oracle.score(asked, FRAME)
    assert found.impossible.tolist() == []
    for i, sentence in enumerate(asked):
        wanted = conditionals(law, objective, sentence, lambda s: tuple(oracle.read(s)))
        mine = np.exp(found.log_prob[found.sentence == i])
        shares = conditionals({s: p for s, p in every.items() if s in law}, objective, sentence, tuple)
        assume(min(shares) > 1e-3)
        assert mine == pytest.approx(wanted, rel=1e-9)
        if objective == "causal":
            own = math.fsum(p for s, p in law.items() if oracle.read(s) == oracle.read(sentence))
            assert mine.prod() == pytest.approx(own, rel=1e-10)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_an_excluded_sentence_is_impossible(objective: Objective) -> None:
    excluded = Exclusion.from_sentences([["a", "b"], ["c"]], LAW, LENGTHS)
    oracle = Oracle(LAW, objective, lengths=LENGTHS, excluded=excluded)
    found = oracle.score([["a", "b"], ["a"], ["zebra"], ["c"]], FRAME)
    assert found.impossible.tolist() == [0, 2, 3]


def test_probabilities_that_no_float_holds_are_corrected_too() -> None:
    """ln P of these sentences is below -1000."""
    law = PCFG.from_text("S -> W S 0.999 | W 0.001\nW -> a 0.0001 | b 0.9999")
    lengths = LengthRange(150, 150)
    sentence, other = ["a"] * 150, ["a"] * 149 + ["b"]
    excluded = Exclusion.from_sentences([other], law, lengths)
    found = Oracle(law, lengths=lengths, excluded=excluded).score([sentence], FRAME).log_prob
    assert found.sum() == pytest.approx(150 * math.log(1e-4), rel=1e-12)  # P(S) is 1e-596
    masked = Oracle(law, "masked", lengths=lengths, excluded=excluded).score([sentence], FRAME).log_prob
    assert masked[149] == pytest.approx(0.0, abs=1e-8)  # the only rival, 0.9999 of the probability, is left out
    assert masked[:149] == pytest.approx(np.full(149, math.log(1e-4)), rel=1e-12)
    any_order = Oracle(law, "any-order", lengths=lengths, excluded=excluded).score([sentence], FRAME).log_prob
    assert any_order.sum() == pytest.approx(150 * math.log(1e-4), rel=1e-12)


@pytest.fixture(scope="module")
def disjoint(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    path = tmp_path_factory.mktemp("corpora") / "disjoint"
    return Corpus.sample(
        LAW, {"train": 25, "dev": 10, "eval": 40}, seed=3, path=path, lengths=LENGTHS, overlap="disjoint"
    )


def test_the_bound_of_a_disjoint_split_has_the_correction_of_its_record(disjoint: Corpus, tmp_path: Path) -> None:
    sentences, record = disjoint.sentences("eval"), disjoint.record["splits"]["eval"]["excluded"]
    excluded = Exclusion.of(disjoint, "eval", LAW, disjoint.lengths)
    assert excluded is not None and excluded.exact
    assert set(excluded.sentences) == {tuple(s) for split in ("train", "dev") for s in disjoint.sentences(split)}
    assert excluded.probability == pytest.approx(record["probability"], rel=1e-12)
    free = sentence_records(LAW, sentences, lengths=LENGTHS)
    found = sentence_records(LAW, sentences, lengths=LENGTHS, excluded=excluded)
    for one, other in zip(free, found, strict=True):
        assert other["logprob"] == pytest.approx(one["logprob"] + record["log_correction"], rel=1e-10)
    causal, masked = bound_records(LAW, found, lengths=LENGTHS, excluded=excluded)
    tokens = sum(len(s) + 1 for s in sentences)
    uncorrected = bound_records(LAW, free, lengths=LENGTHS)
    wanted = uncorrected[0].value * math.exp(-record["log_correction"] * len(sentences) / tokens)
    assert causal.value == pytest.approx(wanted, rel=1e-10)
    assert masked.value < uncorrected[1].value
    assert f"|disjoint:{excluded.part}|" in causal.signature and "disjoint" not in uncorrected[0].signature
    parts = score_in_parts(LAW, sentences, tmp_path / "p", lengths=LENGTHS, part_size=7, excluded=excluded)
    assert parts is not None
    assert [s.value for s in bound_records(LAW, parts, lengths=LENGTHS)] == pytest.approx([causal.value, masked.value])
    with pytest.raises(InputError, match="other settings"):
        score_in_parts(LAW, sentences, tmp_path / "p", lengths=LENGTHS, part_size=7)
    with pytest.raises(InputError, match="full distributions do not"):
        sentence_records(LAW, sentences, lengths=LENGTHS, distributions=True, excluded=excluded)


@pytest.mark.parametrize("objective", ["causal", "masked"])
def test_a_perfect_model_of_the_split_has_a_relative_perplexity_of_1(disjoint: Corpus, objective: Objective) -> None:
    excluded = Exclusion.of(disjoint, "eval", LAW, LENGTHS)
    perfect = Oracle(LAW, objective, lengths=LENGTHS, excluded=excluded)
    ignorant = Oracle(LAW, objective, lengths=LENGTHS)
    for model, equal in ((perfect, True), (ignorant, False)):
        found = compare_in(model, Setting(LAW, disjoint.sentences("eval"), lengths=LENGTHS, excluded=excluded))
        assert "|disjoint:" in found.signature
        assert (found.measures["relative_ppl"].value == pytest.approx(1.0, abs=1e-12)) is equal
        assert found.measures["relative_ppl"].value > 1.0 - 1e-12


def test_in_the_published_frame_contexts_keep_their_words() -> None:
    excluded = Exclusion.from_sentences([["a", "b"], ["a", "d"]], LAW, LENGTHS)

    class Model:
        name, objective, vocabulary = "uniform", "causal", ("a", "b")

        def score(self, sentences: list[list[str]], frame: ScoringFrame) -> TokenScores:
            return Oracle(LAW, vocabulary=self.vocabulary, collapse=False).score(sentences, frame)

    found = compare_in(
        Model(),
        Setting(
            LAW, [["c", "a"], ["a", "a"]], lengths=LENGTHS, frame=preset_frame("paper", "causal"), excluded=excluded
        ),
    )
    law = {s: p for s, p in language(LAW, LENGTHS).items() if s not in set(excluded.sentences)}
    wanted = [conditionals(law, "causal", s, tuple)[1] for s in (("c", "a"), ("a", "a"))]
    assert np.exp(found.paired.oracle) == pytest.approx(wanted, rel=1e-10)


def test_splits_that_leave_nothing_out_or_too_much_are_not_corrected(disjoint: Corpus) -> None:
    assert Exclusion.of(disjoint, "train", LAW, LENGTHS) is None
    splits = disjoint.record["splits"]
    estimated = {**splits, "eval": {**splits["eval"], "excluded": {**splits["eval"]["excluded"], "exact": False}}}
    excluded = Exclusion.of(Corpus(disjoint.path, {**disjoint.record, "splits": estimated}), "eval", LAW, LENGTHS)
    assert excluded is not None and not excluded.exact
    sentences = disjoint.sentences("eval")
    for objective in ("causal", "masked"):
        free, kept = (Oracle(LAW, objective, lengths=LENGTHS, excluded=e) for e in (None, excluded))
        assert free.score(sentences, FRAME).log_prob.tolist() == kept.score(sentences, FRAME).log_prob.tolist()
    assert (
        "|disjoint:uncorrected|"
        in compare_in(
            Oracle(LAW, lengths=LENGTHS), Setting(LAW, sentences, lengths=LENGTHS, excluded=excluded)
        ).signature
    )


def test_an_oracle_that_excludes_sentences_only_scores() -> None:
    oracle = Oracle(LAW, lengths=LENGTHS, excluded=Exclusion.from_sentences([["a"]], LAW, LENGTHS))
    for call in (
        lambda: oracle.next_token(["a"]),
        lambda: oracle.sample(3, 0),
        lambda: next(oracle.distributions([["a"]])),
    ):
        with pytest.raises(InputError, match="only scores"):
            call()


# -- other evaluations -----------------------------------------------------------------------------------


@pytest.mark.long
@given(
    small_pcfgs(),
    length_ranges(4),
    st.none() | st.sets(st.sampled_from("abc")),
    st.booleans(),
    st.booleans(),
    st.data(),
)
def test_word_frequencies_are_those_of_the_language_without_the_excluded_sentences(
    pcfg: PCFG, lengths: LengthRange, vocabulary: set[str] | None, first: bool, eos: bool, data: st.DataObject
) -> None:
    try:
        every = language(pcfg, lengths)
    except ZeroDivisionError:
        assume(False)
    assume(len(every) > 1)
    left_out = data.draw(st.sets(st.sampled_from(sorted(every)), min_size=1, max_size=len(every) - 1))
    rest = {s: p for s, p in every.items() if s not in left_out}
    assume(math.fsum(rest.values()) > 1e-2)
    excluded = Exclusion.from_sentences(sorted(left_out), pcfg, lengths)
    oracle = Oracle(pcfg, lengths=lengths, vocabulary=vocabulary, excluded=excluded)
    counts: dict[str, float] = {}
    for sentence, probability in rest.items():
        for token in (*oracle.read(sentence)[0 if first else 1 :], *(["</s>"] if eos else [])):
            counts[token] = counts.get(token, 0.0) + probability
    assume(counts)
    total = math.fsum(counts.values())
    found = oracle_unigram(oracle, ScoringFrame(first=first, eos=eos))
    assert math.fsum(map(math.exp, found.log_prob.values())) == pytest.approx(1.0, abs=1e-12)
    for token in {*counts, *found.log_prob}:
        assert math.exp(found.log_prob.get(token, -math.inf)) == pytest.approx(
            counts.get(token, 0.0) / total, abs=1e-10
        )


@pytest.mark.parametrize("objective", ["causal", "masked"])
def test_information_is_that_of_the_language_of_the_split(disjoint: Corpus, objective: Objective) -> None:
    """The mean of -ln PPLu over the whole language without S is its mutual information, by enumeration."""
    excluded = Exclusion.of(disjoint, "eval", LAW, LENGTHS)
    assert excluded is not None
    law = {s: p for s, p in language(LAW, LENGTHS).items() if s not in set(excluded.sentences)}
    sentences = sorted(law)
    found = compare_pplu(
        Oracle(LAW, objective, lengths=LENGTHS, excluded=excluded),
        Setting(LAW, sentences, lengths=LENGTHS, excluded=excluded),
    )
    assert found.scores["share_learned"].value == pytest.approx(1.0, abs=1e-12)
    assert all(f"|disjoint:{excluded.part}|" in score.signature for score in found.scores.values())
    assert found.log_truth is not None
    tokens: dict[str, float] = {}
    for s, p in law.items():
        for token in (*s, *(["</s>"] if objective == "causal" else [])):
            tokens[token] = tokens.get(token, 0.0) + p
    total = math.fsum(tokens.values())
    wanted = [
        math.log(x * total / tokens[token])
        for s in sentences
        for x, token in zip(conditionals(law, objective, s, tuple), (*s, "</s>"), strict=False)
    ]
    assert found.log_truth - found.log_unigram == pytest.approx(wanted, abs=1e-10)


@pytest.mark.long
def test_log_ratios_of_checkpoints_are_corrected_and_their_divergences_say_that_they_are_not(disjoint: Corpus) -> None:
    excluded, sentences = Exclusion.of(disjoint, "eval", LAW, LENGTHS), disjoint.sentences("eval")
    assert excluded is not None
    perfect, ignorant = (Oracle(LAW, lengths=LENGTHS, vocabulary=list("abcd"), excluded=e) for e in (excluded, None))
    settings = CurveSettings(by=("position",), contexts=0)
    found = learning_dynamics(
        [(1, perfect)], Setting(LAW, sentences, lengths=LENGTHS, excluded=excluded), name="m", settings=settings
    )
    assert found.curves["position"].mean == pytest.approx(0.0, abs=1e-12)
    settings = CurveSettings(by=("position",))
    found = learning_dynamics(
        [(1, ignorant)], Setting(LAW, sentences, lengths=LENGTHS, excluded=excluded), name="m", settings=settings
    )
    compared = compare_in(ignorant, Setting(LAW, sentences, lengths=LENGTHS, excluded=excluded))
    ratio, divergence = (found.score("all", 0, 0, name) for name in ("log_ratio", "kl"))
    assert ratio is not None and divergence is not None
    assert ratio.value == pytest.approx(-compared.measures["kl"].value, rel=1e-12)
    assert divergence.value == pytest.approx(0.0, abs=1e-12)
    assert f"|disjoint:{excluded.part}|" in ratio.signature
    for score in (s for row in found.curves["position"].kl for s in row.values()):
        assert "|disjoint:uncorrected|" in score.signature


def test_full_distributions_stay_those_of_the_grammar(disjoint: Corpus) -> None:
    sentences = disjoint.sentences("eval")
    model = Oracle(LAW, lengths=LENGTHS)
    for excluded in (
        Exclusion.of(disjoint, "eval", LAW, LENGTHS),
        Exclusion.of(disjoint, "eval", LAW, LENGTHS, scored=False),
    ):
        found = compare_distributions(
            model, Setting(LAW, sentences, lengths=LENGTHS, excluded=excluded), by=["position"]
        )
        assert found.scores["kl"].value == pytest.approx(0.0, abs=1e-12)
        assert all("|disjoint:uncorrected|" in str(record["signature"]) for record in found.records())
    plain = compare_distributions(model, Setting(LAW, sentences, lengths=LENGTHS))
    assert "disjoint" not in plain.scores["kl"].signature


def test_signatures_say_it_in_one_place(disjoint: Corpus) -> None:
    excluded, sentences = Exclusion.of(disjoint, "eval", LAW, LENGTHS), disjoint.sentences("eval")
    assert excluded is not None
    records = sentence_records(LAW, sentences, lengths=LENGTHS, excluded=excluded)
    model = Oracle(LAW, lengths=LENGTHS)
    given_first = [
        *(score.signature for score in bound_records(LAW, records, lengths=LENGTHS, excluded=excluded)),
        compare_in(model, Setting(LAW, sentences, lengths=LENGTHS, excluded=excluded)).signature,
        compare_distributions(model, Setting(LAW, sentences, lengths=LENGTHS, excluded=excluded))
        .scores["kl"]
        .signature,
    ]
    for signed in given_first:
        names = [part.split(":")[0] for part in signed.split("|")]
        assert names.index("disjoint") == names.index("given") + 1
