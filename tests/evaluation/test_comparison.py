"""One model against the truth."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from random_grammars import length_ranges, small_pcfgs
from reference_inference import all_strings, rules_of
from whole_language import whole_language

from truesource import FunctionModel
from truesource.evaluation.core.comparison import Comparison, compare_in
from truesource.evaluation.core.oracle import Oracle
from truesource.evaluation.core.setting import Setting, oracle_for
from truesource.evaluation.core.signature import parts_of, signature, signature_parts
from truesource.evaluation.core.token_table import read_token_record, read_token_table, write_token_table
from truesource.generator.language_model import ScoringFrame, TokenScores, assemble_scores, preset_frame
from truesource.generator.objectives import Objective
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.printable import FEWEST

TOY = PCFG.from_text("S -> S S 0.25 | a 0.5 | b 0.25")
SHORT = LengthRange(1, 3)
MEASURES = ("ppl", "bound", "relative_ppl", "kl", "rho", "r2_pearson", "r2_identity", "r2_released")
SAMPLE = [["a"], ["b", "a"], ["a", "a", "b"], ["b"], ["a", "b"], ["a", "b", "a"]]
TWICE = [*SAMPLE, *SAMPLE]  #: enough for intervals


@dataclass
class Unigram:
    """Words independent of their context; the end of the sentence is one of them."""

    probability: dict[str, float]
    stop: float
    vocabulary: tuple[str, ...] | None = None
    objective: Objective = "causal"
    name: str = "unigram"
    seen: list[list[str]] = field(default_factory=list)

    def score(self, sentences: Sequence[Sequence[str]], frame: ScoringFrame) -> TokenScores:
        rows, unknown = [], []
        for sentence in sentences:
            read = [w if w in self.probability else "<unk>" for w in sentence]
            values = [self.probability.get(w, 0.0) for w in read]
            if self.objective == "causal":
                values.append(self.stop)
            rows.append(np.array([math.log(p) if p > 0.0 else -math.inf for p in values]))
            unknown.append(np.array([w == "<unk>" for w in read]))
        return assemble_scores(rows, unknown, frame)


# -- the oracle against itself ----------------------------------------------------------------------


@pytest.mark.long
@settings(max_examples=25)
@given(
    small_pcfgs(),
    st.sampled_from(["causal", "masked"]),
    st.none() | length_ranges(5),
    st.none() | st.sets(st.sampled_from("abc")),
    st.sampled_from([ScoringFrame(), ScoringFrame(first=False), preset_frame("paper", "causal")]),
    st.integers(0, 99),
)
def test_the_oracle_scored_as_a_model_gives_exactly_the_bound(
    pcfg: PCFG,
    objective: Objective,
    lengths: LengthRange | None,
    vocabulary: set[str] | None,
    frame: ScoringFrame,
    seed: int,
) -> None:
    if lengths is not None:
        assume(pcfg.exact.length_pmf(lengths.high)[lengths.low :].sum() > 1e-9)
    oracle = Oracle(pcfg, objective, lengths=lengths, vocabulary=vocabulary)
    sentences = Oracle(pcfg, lengths=lengths).sample(12, seed)
    if len(oracle.score(sentences, frame).log_prob) == 0:
        return
    found = compare_in(oracle, Setting(pcfg, sentences, lengths=lengths, frame=frame, seed=seed))
    assert found.paired.excluded.tolist() == []
    enough = len(np.unique(found.paired.sentence)) >= FEWEST
    for name in ("relative_ppl", "rho", "r2_pearson", "r2_identity", "r2_released"):
        assert found.measures[name] == ((1.0, 1.0, 1.0) if enough else (1.0, None, None)), name
    assert found.measures["kl"] == ((0.0, 0.0, 0.0) if enough else (0.0, None, None))
    assert found.measures["ppl"] == found.measures["bound"]
    if objective == "masked":
        assert found.bound_unconditioned is None
    elif lengths is None:
        assert found.bound_unconditioned == found.measures["bound"]


# -- a wrong model ----------------------------------------------------------------------------------


def test_log_relative_perplexity_is_the_exact_divergence_per_token() -> None:
    """Evaluated on the whole language in its true proportions, the estimate is the divergence itself."""
    grammar = PCFG.from_text("S -> A B 0.5 | A 0.5\nA -> a 0.5 | b 0.5\nB -> c 0.25 | a 0.75")
    sentences = whole_language(grammar, 1, 2, 16)
    assert len(sentences) == 16
    model = Unigram({"a": 0.35, "b": 0.2, "c": 0.05}, stop=0.4)
    strings = {s: p for table in all_strings(rules_of(grammar), 2)["S"] for s, p in table.items()}
    log_q = {s: sum(math.log(model.probability[w]) for w in s) + math.log(0.4) for s in strings}
    divergence = math.fsum(p * (math.log(p) - log_q[s]) for s, p in strings.items())
    tokens = math.fsum(p * (len(s) + 1) for s, p in strings.items())
    found = compare_in(model, Setting(grammar, sentences))
    assert math.log(found.measures["relative_ppl"].value) == pytest.approx(divergence / tokens, rel=1e-12)
    assert found.measures["relative_ppl"].value > 1.0
    entropy = -math.fsum(p * math.log(p) for p in strings.values())
    assert math.log(found.measures["bound"].value) == pytest.approx(entropy / tokens, rel=1e-12)


def test_the_divergence_from_a_truncated_language_needs_the_conditioned_bound() -> None:
    lengths = LengthRange(1, 3)
    sentences = whole_language(TOY, 1, 3, 512)
    strings = {s: p for table in all_strings(rules_of(TOY), 3)["S"] for s, p in table.items()}
    z = math.fsum(strings.values())
    tokens = math.fsum(p / z * (len(s) + 1) for s, p in strings.items())
    model = Unigram({"a": 0.4, "b": 0.2}, stop=0.4)
    found = compare_in(model, Setting(TOY, sentences, lengths=lengths))
    entropy = -math.fsum(p / z * math.log(p / z) for p in strings.values())
    assert math.log(found.measures["bound"].value) == pytest.approx(entropy / tokens, rel=1e-12)
    # the unconditioned grammar pays ln 1/Z a sentence for the lengths it thinks possible
    assert found.bound_unconditioned is not None
    excess = math.log(found.bound_unconditioned.value / found.measures["bound"].value)
    assert excess == pytest.approx(-math.log(z) / tokens, rel=1e-10)
    assert "given:1..3" in found.signature


@pytest.mark.long
def test_a_collapsed_model_meets_the_bound_of_the_collapsed_language() -> None:
    """Everything but 'a' reads <unk>; the model that knows the collapsed truth is at the bound."""
    model = Unigram({"a": 0.3, "<unk>": 0.2}, stop=0.5, vocabulary=("a",))
    strings = whole_language(TOY, 1, 3, 512)
    found = compare_in(model, Setting(TOY, strings, lengths=LengthRange(1, 3)))
    twin = compare_in(
        Oracle(TOY, lengths=LengthRange(1, 3), vocabulary=["a"]), Setting(TOY, strings, lengths=LengthRange(1, 3))
    )
    finer = compare_in(Oracle(TOY, lengths=LengthRange(1, 3)), Setting(TOY, strings, lengths=LengthRange(1, 3)))
    assert found.measures["bound"] == twin.measures["bound"]
    assert found.measures["bound"].value == finer.measures["bound"].value  # b is the only word that reads <unk>
    assert found.measures["relative_ppl"].value > 1.0


def test_a_wrong_masked_model_is_above_the_masked_bound() -> None:
    """Here every word is independent given the length: 2/3 a, 1/3 b; a model with 1/2 each pays the divergence."""
    sentences = whole_language(TOY, 1, 3, 512)
    model = Unigram({"a": 0.5, "b": 0.5}, stop=1.0, objective="masked")
    found = compare_in(model, Setting(TOY, sentences, lengths=LengthRange(1, 3)))
    divergence = 2 / 3 * math.log(4 / 3) + 1 / 3 * math.log(2 / 3)
    assert math.log(found.measures["relative_ppl"].value) == pytest.approx(divergence, rel=1e-10)
    assert found.measures["ppl"].value == pytest.approx(2.0)
    assert found.bound_unconditioned is None


# -- what is counted --------------------------------------------------------------------------------


def test_impossible_sentences_are_excluded_and_counted_on_either_side() -> None:
    model = Unigram({"a": 0.5}, stop=0.5)  # does not know b
    sentences = [["a"], ["b"], ["a", "a"], ["a", "never-seen"], ["a"] * 9]
    found = compare_in(model, Setting(TOY, sentences, lengths=LengthRange(1, 5)))
    assert found.paired.excluded.tolist() == [1, 3, 4]
    record = found.as_record()
    assert (record["sentences"], record["excluded"], record["tokens"]) == (2, 3, 5)
    assert (record["impossible_model"], record["impossible_oracle"]) == (2, 2)  # b is not the model's, 9 words and
    # never-seen are not the truth's, which never-seen makes impossible for the model too
    assert "excluded:3" in found.signature
    assert all(not isinstance(v, float) or math.isfinite(v) for v in record.values())
    with pytest.raises(InputError, match=r"the oracle cannot make 0 and the model cannot make 1$"):
        compare_in(model, Setting(TOY, [["b"]]))
    with pytest.raises(InputError, match=r"the oracle cannot make 1 .*; the grammar lacks the word 'never-seen'$"):
        compare_in(model, Setting(TOY, [["a", "never-seen"]]))


def test_a_grammar_without_endings_is_compared_given_a_range_of_lengths() -> None:
    grammar = PCFG.from_text("S -> S S 0.7 | a 0.3")  # sentences have probability 3/7 together
    lengths = LengthRange(1, 2)
    p = {1: 0.3, 2: 0.7 * 0.3**2}  # of a, and of a a
    found = compare_in(
        Oracle(grammar, "causal", lengths=lengths), Setting(grammar, [["a"], ["a", "a"]] * 6, lengths=lengths)
    )
    expected = -math.log(p[1] / (p[1] + p[2])) - math.log(p[2] / (p[1] + p[2]))  # over 2 + 3 tokens
    assert found.measures["bound"].value == pytest.approx(math.exp(expected / 5), rel=1e-12)
    assert found.bound_unconditioned is None
    with pytest.raises(InputError, match=r"total probability 0\.428571"):
        compare_in(Oracle(grammar, "causal", lengths=lengths), Setting(grammar, [["a"]] * 12))


def test_sentences_may_be_texts() -> None:
    model = Unigram({"a": 0.5}, stop=0.5)
    found, wanted = (compare_in(model, Setting(TOY, s)) for s in ([["a"], "a a"], [["a"], ["a", "a"]]))
    assert found.measures == wanted.measures
    one = compare_in(model, Setting(TOY, "a a"))
    assert one.measures == compare_in(model, Setting(TOY, [["a", "a"]])).measures


def test_a_model_whose_scores_are_no_token_scores_is_refused() -> None:
    class Careless(Unigram):
        def score(self, sentences: Sequence[Sequence[str]], frame: ScoringFrame) -> TokenScores:
            return [[-1.0] for _ in sentences]  # type: ignore[return-value]

    with pytest.raises(InputError, match="score returned list; it must return TokenScores"):
        compare_in(Careless({"a": 0.5}, stop=0.5), Setting(TOY, [["a"]]))


@pytest.mark.parametrize(("noise", "warned"), [(0.0, False), (1e-5, False), (0.1, True)])
def test_a_model_that_is_random_at_each_call_is_warned_of(
    noise: float, warned: bool, caplog: pytest.LogCaptureFixture
) -> None:
    rng = np.random.default_rng(1)
    model = FunctionModel(lambda given: [-1.5 - noise * rng.random(len(s) + 1) for s in given], vocabulary=None)
    compare_in(model, Setting(PCFG.from_text("S -> 'a' S 0.5 | 'a' 0.5"), [["a"], ["a", "a"]] * 10))
    assert ("is not deterministic" in caplog.text) == warned


def test_the_paper_frame_counts_neither_ends_nor_first_nor_unknown_words() -> None:
    model = Unigram({"a": 0.3, "<unk>": 0.2}, stop=0.5, vocabulary=("a",))
    frame = preset_frame("paper", "causal")
    found = compare_in(model, Setting(TOY, [["a", "a", "b"], ["b", "a"], ["a"]], frame=frame))
    assert list(zip(found.paired.sentence.tolist(), found.paired.position.tolist(), strict=True)) == [(0, 1), (1, 1)]
    assert found.measures["ppl"].value == pytest.approx(1 / 0.3)
    for part in ("eos:out", "first:out", "unk:skip"):
        assert part in found.signature.split("|")


def test_the_oracle_of_a_model_shares_its_vocabulary_and_objective() -> None:
    model = Unigram({"a": 0.3, "<unk>": 0.2}, stop=0.5, vocabulary=("a",), objective="masked")
    oracle = oracle_for(model, TOY, LengthRange(1, 2))
    assert (oracle.objective, oracle.vocabulary, oracle.lengths) == ("masked", ("a",), LengthRange(1, 2))


# -- signatures and records -------------------------------------------------------------------------


def signed(
    pcfg: PCFG = TOY,
    sentences: Sequence[Sequence[str]] = TWICE,
    lengths: LengthRange | None = SHORT,
    frame: ScoringFrame | str = "default",
    seed: int = 0,
    vocabulary: tuple[str, ...] | None = None,
    objective: Objective = "causal",
) -> Comparison:
    oracle = Oracle(pcfg, objective, lengths=lengths, vocabulary=vocabulary)
    return compare_in(oracle, Setting(pcfg, sentences, lengths=lengths, frame=frame, seed=seed))


def test_the_signature_changes_with_every_choice_and_with_nothing_else() -> None:
    variants = [
        signed(),
        signed(pcfg=PCFG.from_text("S -> S S 0.25 | a 0.4 | b 0.35")),
        signed(sentences=[*TWICE[1:], TWICE[0]]),
        signed(lengths=LengthRange(1, 4)),
        signed(lengths=None),
        signed(frame=ScoringFrame(eos=False)),
        signed(frame=ScoringFrame(first=False)),
        signed(frame=ScoringFrame(unk="skip")),
        signed(seed=1),
        signed(vocabulary=("a",)),
        signed(vocabulary=("b",)),
        signed(objective="masked"),
    ]
    assert len({c.signature for c in variants}) == len(variants)
    assert signed().signature == signed(vocabulary=("a", "b")).signature == variants[0].signature
    for part in ("objective:causal", "given:1..3", "eos:in", "first:in", "unk:token", "unit:nats/token", "tokens:36"):
        assert part in variants[0].signature.split("|")


def test_a_masked_signature_has_no_end_of_sentence_and_no_length_range() -> None:
    parts = signed(objective="masked").signature.split("|")
    assert {"eos:out", "given:length", "objective:masked"} <= set(parts)


def test_a_record_holds_every_number_with_its_interval() -> None:
    record = signed().as_record()
    for name in (*MEASURES, "bound_unconditioned"):
        assert record[f"{name}_low"] <= record[name] * (1 + 1e-12)
        assert record[name] <= record[f"{name}_high"] * (1 + 1e-12)
    assert (record["model"], record["objective"]) == ("oracle", "causal")
    assert (record["tokens"], record["sentences"], record["excluded"]) == (36, 12, 0)


def test_few_sentences_have_no_interval_and_the_signature_says_so() -> None:
    """One sentence resampled is itself again and again: nothing is known of others."""
    for sentences in (TWICE[:1], TWICE[:9]):
        found = signed(sentences=sentences)
        record = found.as_record()
        for name in (*MEASURES, "bound_unconditioned"):
            assert record[f"{name}_low"] is record[f"{name}_high"] is None, name
        assert "ci:none/fewer-than-10-sentences" in found.signature.split("|")
    assert "ci:sentence-bootstrap-t95/seed0" in signed(sentences=TWICE[:10]).signature.split("|")


def test_every_measure_is_a_record_of_its_own_that_agrees_with_the_row() -> None:
    model = Unigram({"a": 0.4, "b": 0.2}, stop=0.4)
    found = compare_in(model, Setting(TOY, SAMPLE, lengths=SHORT, seed=3))
    row, records = found.as_record(), {record["name"]: record for record in found.records()}
    assert set(records) == {
        *MEASURES,
        "bound_unconditioned",
        "tokens",
        "sentences",
        "excluded",
        "impossible_model",
        "impossible_oracle",
    }
    for name, record in records.items():
        assert record["value"] == row[name]
        assert (record["low"], record["high"]) == (row.get(f"{name}_low"), row.get(f"{name}_high"))
        assert (record["model"], record["objective"]) == ("unigram", "causal")
    parts = {name: record["signature"].split("|") for name, record in records.items()}
    assert records["kl"]["signature"] == found.signature.replace("|v:", "|estimator:paired|v:")
    units = {name: parts_of(record["signature"])["unit"] for name, record in records.items()}
    assert units == {
        **dict.fromkeys(("ppl", "bound", "bound_unconditioned"), "perplexity"),
        "relative_ppl": "ratio",
        "kl": "nats/token",
        "rho": "correlation",
        **dict.fromkeys(("r2_pearson", "r2_identity", "r2_released"), "share"),
        **dict.fromkeys(("tokens", "sentences", "excluded", "impossible_model", "impossible_oracle"), "count"),
    }
    assert "estimator:paired" in parts["kl"]
    assert "given:none" in parts["bound_unconditioned"]
    assert "given:1..3" in parts["bound"]


def test_kl_is_the_log_of_relative_perplexity_interval_included() -> None:
    found = compare_in(Unigram({"a": 0.4, "b": 0.2}, stop=0.4), Setting(TOY, TWICE, lengths=SHORT, seed=3))
    assert np.exp(found.measures["kl"]) == pytest.approx(found.measures["relative_ppl"], rel=1e-12)


# -- the per-token table ----------------------------------------------------------------------------


def test_the_token_table_reads_back(tmp_path: Path) -> None:
    found = signed(sentences=SAMPLE)
    about = {"record": found.as_record(), "parts": signature_parts(found.parts)}
    write_token_table(tmp_path / "tokens.parquet", found.paired, SAMPLE, about)
    table = read_token_table(tmp_path / "tokens.parquet")
    kept = read_token_record(tmp_path / "tokens.parquet", dict[str, Any])
    assert kept == about and signature(kept["parts"]) == kept["record"]["signature"]
    for name in ("sentence", "position", "model", "oracle"):
        assert table[name].tolist() == getattr(found.paired, name).tolist()
    import pyarrow.parquet as pq

    words = pq.read_table(tmp_path / "tokens.parquet").column("token").to_pylist()
    assert words == list(itertools.chain.from_iterable([*s, "</s>"] for s in SAMPLE))
