"""The truth of transformed text: of sentences, of masked tokens, and of all tokens of a reversal, by enumeration."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st
from random_grammars import length_ranges, small_pcfgs
from reference_inference import all_strings, rules_of
from toy_models import Table

from truesource.evaluation.core.comparison import compare_in
from truesource.evaluation.core.exact_bound import bound_records
from truesource.evaluation.core.exclusion import Exclusion
from truesource.evaluation.core.oracle import Oracle
from truesource.evaluation.core.scores_on_disk import score_in_parts
from truesource.evaluation.core.sentence_records import sentence_records
from truesource.evaluation.core.setting import Setting
from truesource.evaluation.core.signature import parts_of
from truesource.evaluation.core.transformed import original_digest, text_grammar
from truesource.evaluation.divergence.compare import compare_distributions
from truesource.evaluation.dynamics.oracle_monitor import OracleMonitor
from truesource.evaluation.pplu.compare import compare_pplu, oracle_unigram
from truesource.generator.corpus import Corpus
from truesource.generator.language_model import ScoringFrame, preset_frame
from truesource.generator.objectives import Objective
from truesource.generator.plan import BlockShuffle, LengthShuffle, OddEven, Reversal, Transform
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.errors import InputError, NothingToMeasureError

FRAME = ScoringFrame()
LENGTHS = LengthRange(1, 4)
LAW = PCFG.from_text("S -> A S 0.4 | A B 0.2 | b 0.4\nA -> a 0.5 | A B 0.2 | c 0.3\nB -> b 0.7 | c 0.3")
EVERY = st.sampled_from([Reversal(), OddEven(), OddEven(first="even"), BlockShuffle(size=2), LengthShuffle(seed=4)])
SHUFFLE = LengthShuffle(seed=4)
WORDS = ("a", "b", "c")
#: of the next word, the same after every word
NEXT = {"a": 0.3, "b": 0.25, "c": 0.2, "</s>": 0.25}
MODEL = Table(dict.fromkeys(("<s>", *WORDS), NEXT), WORDS)
BEFORE = {"<s>": (0.5, 0.3, 0.2), "a": (0.2, 0.2, 0.6), "b": (0.1, 0.6, 0.3), "c": (0.4, 0.4, 0.2)}
MASKED = Table({w: dict(zip(WORDS, p, strict=True)) for w, p in BEFORE.items()}, WORDS, "masked")
String = tuple[str, ...]
Law = dict[String, float]


def transformed(pcfg: PCFG, lengths: LengthRange, transform: Transform | None) -> Law:
    """Every sentence of the transformed language of such a length and its probability, by enumeration."""
    strings = all_strings(rules_of(pcfg), lengths.high)[pcfg.symbols[pcfg.start]]
    law = {s: p for m in range(lengths.low, lengths.high + 1) for s, p in strings[m].items() if p > 0.0}
    total = math.fsum(law.values())
    if total == 0.0:
        reject()
    return {s if transform is None else tuple(transform.apply(s)): p / total for s, p in law.items()}


def sum_over(law: Law, like: Sequence[str], free: set[int]) -> float:
    """Probability of sentences of the same length that agree at all places but ``free``."""
    return math.fsum(
        p
        for s, p in law.items()
        if len(s) == len(like) and all(i in free or x == y for i, (x, y) in enumerate(zip(s, like, strict=True)))
    )


def tokens(law: Law, sentence: Sequence[str]) -> list[float]:
    """P(token | those before it), end included, by adding up the language."""
    n = len(sentence)
    begins = [math.fsum(p for s, p in law.items() if s[:i] == tuple(sentence[:i])) for i in range(n + 1)]
    return [b / a for a, b in zip(begins, [*begins[1:], law[tuple(sentence)]], strict=True)]


@pytest.mark.long
@given(small_pcfgs(), length_ranges(4), EVERY)
def test_sentences_and_masked_tokens_are_exact(pcfg: PCFG, lengths: LengthRange, transform: Transform) -> None:
    law = transformed(pcfg, lengths, transform)
    assert math.fsum(law.values()) == pytest.approx(1.0, abs=1e-12)
    asked = sorted(law)
    causal = Oracle(pcfg, "causal", lengths=lengths, transform=transform).score(asked, FRAME)
    assert causal.impossible.tolist() == []
    found = np.exp(np.bincount(causal.sentence, causal.log_prob))
    assert found == pytest.approx([law[s] for s in asked], rel=1e-10)
    masked = Oracle(pcfg, "masked", transform=transform).score(asked, FRAME)
    for i, sentence in enumerate(asked):
        wanted = [law[sentence] / sum_over(law, sentence, {place}) for place in range(len(sentence))]
        assert np.exp(masked.log_prob[masked.sentence == i]) == pytest.approx(wanted, rel=1e-10)


@pytest.mark.long
@given(small_pcfgs(), length_ranges(4))
def test_every_token_of_a_reversal_is_exact(pcfg: PCFG, lengths: LengthRange) -> None:
    law = transformed(pcfg, lengths, Reversal())
    mirrored, rest = text_grammar(pcfg, Reversal())
    assert rest is None and original_digest(mirrored) == pcfg.digest == original_digest(pcfg)
    asked = sorted(law)
    causal = Oracle(mirrored, lengths=lengths).score(asked, FRAME)
    masked = Oracle(mirrored, "masked").score(asked, FRAME)
    for i, sentence in enumerate(asked):
        assert np.exp(causal.log_prob[causal.sentence == i]) == pytest.approx(tokens(law, sentence), rel=1e-9)
        wanted = [law[sentence] / sum_over(law, sentence, {place}) for place in range(len(sentence))]
        assert np.exp(masked.log_prob[masked.sentence == i]) == pytest.approx(wanted, rel=1e-10)


@pytest.mark.long
@given(small_pcfgs(), length_ranges(3), EVERY)
def test_masked_distributions_are_exact(pcfg: PCFG, lengths: LengthRange, transform: Transform) -> None:
    law = transformed(pcfg, lengths, transform)
    oracle = Oracle(pcfg, "masked", transform=transform)
    for n in {len(s) for s in law}:
        asked = sorted(s for s in law if len(s) == n)
        blocks = list(oracle.distributions(asked))
        assert [block.position for block in blocks] == list(range(n))
        for block in blocks:
            for row, sentence in zip(np.exp(block.log_prob), asked, strict=True):
                whole = sum_over(law, sentence, {block.position})
                there = ((*sentence[: block.position], w, *sentence[block.position + 1 :]) for w in oracle.words)
                assert row == pytest.approx([*(law.get(s, 0.0) / whole for s in there), 0.0], abs=1e-10)


@pytest.mark.parametrize("transform", [SHUFFLE, BlockShuffle(size=2), Reversal()], ids=str)
@pytest.mark.parametrize("objective", ["causal", "masked"])
def test_unknown_words_and_sentences_that_are_left_out(transform: Transform, objective: Objective) -> None:
    """Both are of the transformed language: enumerated there."""
    law = transformed(LAW, LENGTHS, transform)
    gone = sorted(law)[::3]
    excluded = Exclusion.from_sentences([transform.undo(s) for s in gone], LAW, LENGTHS)
    oracle = Oracle(LAW, objective, lengths=LENGTHS, vocabulary=list("ab"), excluded=excluded, transform=transform)
    read: Law = {}
    left = {s: p for s, p in law.items() if s not in gone}
    for s, p in left.items():
        seen = tuple("<unk>" if w == "c" else w for w in s)
        read[seen] = read.get(seen, 0.0) + p / math.fsum(left.values())
    asked = sorted(left)
    found = oracle.score(asked, FRAME)
    for i, sentence in enumerate(asked):
        seen = tuple(oracle.read(sentence))
        mine = np.exp(found.log_prob[found.sentence == i])
        if objective == "causal":
            assert mine.prod() == pytest.approx(read[seen], rel=1e-10)
        else:
            wanted = [read[seen] / sum_over(read, seen, {place}) for place in range(len(seen))]
            assert mine == pytest.approx(wanted, rel=1e-9)


def test_a_corpus_that_leaves_sentences_out_is_scored_in_its_own_order(tmp_path: Path) -> None:
    splits = {"train": 60, "eval": 40}
    for transform in (SHUFFLE, Reversal()):
        path = tmp_path / transform.name
        made = Corpus.sample(LAW, splits, seed=2, path=path, lengths=LENGTHS, overlap="disjoint", transform=transform)
        pcfg, rest = text_grammar(LAW, made.transform)
        excluded = Exclusion.of(made, "eval", pcfg, LENGTHS)
        law = transformed(LAW, LENGTHS, transform)
        kept = 1.0 - math.fsum(law[s] for s in {tuple(s) for s in made.sentences("train")})
        sentences = made.sentences("eval")
        found = Oracle(pcfg, lengths=LENGTHS, excluded=excluded, transform=rest).score(sentences, FRAME)
        wanted = [law[tuple(s)] / kept for s in sentences]
        assert np.exp(np.bincount(found.sentence, found.log_prob)) == pytest.approx(wanted, rel=1e-10)


@pytest.mark.parametrize("transform", [SHUFFLE, OddEven(), Reversal()], ids=str)
def test_bounds_are_those_of_the_original_text(tmp_path: Path, transform: Transform) -> None:
    originals = Oracle(LAW, lengths=LENGTHS).sample(300, seed=1)
    text = Oracle(LAW, lengths=LENGTHS, transform=transform).sample(300, seed=1)
    assert text == [transform.apply(s) for s in originals]
    plain = bound_records(LAW, sentence_records(LAW, originals, lengths=LENGTHS), lengths=LENGTHS)
    pcfg, rest = text_grammar(LAW, transform)
    records = sentence_records(pcfg, text, lengths=LENGTHS, transform=rest)
    assert [record["tokens"] for record in records] == text
    assert all(("surprisal" in record) == (rest is None) for record in records)
    found = bound_records(pcfg, records, lengths=LENGTHS, transform=rest)
    for one, other in zip(plain, found, strict=True):
        assert (other.value, other.low, other.high) == pytest.approx((one.value, one.low, one.high), rel=1e-10)
        parts = parts_of(other.signature)
        assert parts["transform"] == str(transform)
        assert parts["truth"] == ("sentence" if rest is not None and "causal" in other.name else "token")
    options = {"lengths": LENGTHS, "part_size": 70}
    kept = score_in_parts(pcfg, text, tmp_path / "parts", transform=rest, **options)
    assert kept is not None and score_in_parts(pcfg, text, tmp_path / "parts", transform=rest, **options) == kept
    assert [record.keys() for record in kept] == [record.keys() for record in records]
    for again, record in zip(kept, records, strict=True):
        mine, wanted = ([record["logprob"], *record["masked_logprob"]] for record in (again, record))
        assert mine == pytest.approx(wanted, rel=1e-12)
    if rest is not None:
        with pytest.raises(InputError, match="other settings"):
            score_in_parts(pcfg, text, tmp_path / "parts", **options)


def test_relative_perplexity_is_exact_in_the_mean() -> None:
    """Over the whole language, each sentence as often as its probability says, ln relative PPL is the exact KL."""
    law = PCFG.from_text("S -> A B 0.5 | A S 0.5\nA -> a 0.5 | b 0.5\nB -> c 0.5 | b 0.5")
    lengths = LengthRange(2, 3)
    language = transformed(law, lengths, SHUFFLE)
    often = {s: round(p * 24) for s, p in language.items()}
    assert [p * 24 for p in language.values()] == pytest.approx(list(often.values()), abs=1e-9)
    text = [list(s) for s, n in often.items() for _ in range(n)]
    found = compare_in(MODEL, Setting(law, text, lengths=lengths, transform=SHUFFLE))
    kl = math.fsum(p * (math.log(p) - sum(math.log(NEXT[w]) for w in (*s, "</s>"))) for s, p in language.items())
    mean = math.fsum(p * (len(s) + 1) for s, p in language.items())
    assert found.measures["kl"].value == pytest.approx(kl / mean, rel=1e-10)
    assert found.measures["relative_ppl"].value == pytest.approx(math.exp(kl / mean), rel=1e-10)
    assert found.as_record()["rho"] is None and "rho" not in found.measures
    assert {"transform": str(SHUFFLE), "truth": "sentence"}.items() <= parts_of(found.signature).items()
    monitor = OracleMonitor(Setting(law, text, lengths, transform=SHUFFLE))
    assert monitor(MODEL) == {"relative_ppl": pytest.approx(math.exp(kl / mean), rel=1e-10)}
    pplu = compare_pplu(MODEL, Setting(law, text, lengths=lengths, transform=SHUFFLE)).scores
    plain = compare_pplu(MODEL, Setting(law, [SHUFFLE.undo(s) for s in text], lengths=lengths)).scores
    for name in ("bound", "pplu", "mutual_information", "share_learned"):
        assert pplu[name].value == pytest.approx(plain[name].value, rel=1e-10)


def test_the_oracle_against_itself_and_without_its_condition() -> None:
    text = Oracle(LAW, lengths=LENGTHS, transform=SHUFFLE).sample(50, seed=3)
    itself = compare_in(
        Oracle(LAW, lengths=LENGTHS, transform=SHUFFLE), Setting(LAW, text, lengths=LENGTHS, transform=SHUFFLE)
    )
    assert itself.measures["kl"].value == 0.0
    plain = compare_in(Oracle(LAW, lengths=LENGTHS), Setting(LAW, [SHUFFLE.undo(s) for s in text], lengths=LENGTHS))
    assert itself.bound_unconditioned is not None and plain.bound_unconditioned is not None
    assert itself.bound_unconditioned.value == pytest.approx(plain.bound_unconditioned.value, rel=1e-10)


def test_divergence_of_a_masked_model_is_exact() -> None:
    law = transformed(LAW, LENGTHS, SHUFFLE)
    text = Oracle(LAW, lengths=LENGTHS, transform=SHUFFLE).sample(40, seed=5)
    found = compare_distributions(MASKED, Setting(LAW, text, lengths=LENGTHS, transform=SHUFFLE))
    wanted = []
    for sentence in map(tuple, text):
        for i in range(len(sentence)):
            q = dict(zip(WORDS, BEFORE[("<s>", *sentence)[i]], strict=True))
            p = {w: law.get((*sentence[:i], w, *sentence[i + 1 :]), 0.0) / sum_over(law, sentence, {i}) for w in WORDS}
            wanted.append(math.fsum(p[w] * math.log(p[w] / q[w]) for w in WORDS if p[w] > 0.0))
    assert found.scores["kl"].value == pytest.approx(np.mean(wanted), rel=1e-9)
    assert {"transform": str(SHUFFLE), "truth": "token"}.items() <= parts_of(found.scores["kl"].signature).items()
    monitor = OracleMonitor(Setting(LAW, text, LENGTHS, transform=SHUFFLE))
    assert monitor(MASKED)["kl"] == pytest.approx(np.mean(wanted), rel=1e-4)  # kept in single precision


def test_what_needs_tokens_is_refused_in_one_sentence() -> None:
    oracle, text = Oracle(LAW, lengths=LENGTHS, transform=SHUFFLE), [["a", "b"]]
    paper = preset_frame("paper", "causal")
    calls = [
        lambda: oracle.score(text, paper),
        lambda: next(oracle.distributions(text)),
        lambda: oracle.next_token(["a"]),
        lambda: compare_in(MODEL, Setting(LAW, text, lengths=LENGTHS, frame=paper, transform=SHUFFLE)),
        lambda: compare_distributions(MODEL, Setting(LAW, text, lengths=LENGTHS, transform=SHUFFLE)),
        lambda: sentence_records(LAW, text, lengths=LENGTHS, distributions=True, transform=SHUFFLE),
        lambda: bound_records(
            LAW,
            sentence_records(LAW, [SHUFFLE.apply(["a", "b"])], lengths=LENGTHS, transform=SHUFFLE),
            lengths=LENGTHS,
            frame="paper",
            transform=SHUFFLE,
        ),
    ]
    for call in calls:
        with pytest.raises(NothingToMeasureError, match=r"only whole sentences and masked tokens have exact") as caught:
            call()
        assert caught.value.code == "sentence-truth"
    with pytest.raises(NothingToMeasureError) as caught:
        oracle_unigram(Oracle(LAW, "masked", transform=SHUFFLE), ScoringFrame(first=False))
    assert caught.value.code == "transformed"
