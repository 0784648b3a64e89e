"""Corpora with exactly as many sentences of an event as are expected: their number, their laws, their bytes."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from reference_inference import all_strings, rules_of
from scipy import stats

from truesource.generator.corpus import Corpus
from truesource.generator.corpus_record import call_of, plan_of
from truesource.generator.plan import Plan
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.pcfg import PCFG, language
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import digest_file
from truesource.grammar.support.parallel import Workers
from truesource.grammar.tilting.rewards import Count, Pattern
from truesource.grammar.tilting.tilt import Tilting
from truesource.grammar.truth import process

LENGTHS = LengthRange(1, 5)
TOY = PCFG.from_text("S -> S S 0.2 | A 0.3 | b 0.5\nA -> a A 0.4 | c 0.6")
EVENT = Count(("c",), 1, None)


def tilted(probability: float) -> PCFG:
    return Tilting(TOY, EVENT).with_probability(probability, LENGTHS).pcfg


def sample(pcfg: PCFG, path: Path, n: int, **changes: object) -> Corpus:
    call = {"seed": 3, "lengths": LENGTHS, "shard_size": 700, "stratified": True, **changes}
    return Corpus.sample(pcfg, {"train": n, "eval": 50}, path=path, **call)  # type: ignore[arg-type]


@pytest.mark.parametrize("wanted", [1, 16, 300, 1990])
def test_a_split_has_as_many_sentences_with_the_event_as_are_expected(wanted: int, tmp_path: Path) -> None:
    corpus = sample(tilted(wanted / 2000), tmp_path / "corpus", 2000)
    sentences = corpus.sentences("train")
    assert (len(sentences), sum("c" in words for words in sentences)) == (2000, wanted)
    assert corpus.record["splits"]["train"]["with_event"] == wanted
    of_eval = round(50 * wanted / 2000)
    assert sum("c" in words for words in corpus.sentences("eval")) == of_eval


@pytest.mark.long
def test_sentences_with_and_without_the_event_have_the_probabilities_of_the_grammar(tmp_path: Path) -> None:
    n, with_event = 40_000, 10_000
    sentences = sample(tilted(with_event / n), tmp_path / "corpus", n, shard_size=5000).sentences("train")
    exact = {s: p for table in all_strings(rules_of(TOY), LENGTHS.high)["S"] for s, p in table.items()}
    counts = Counter(map(tuple, sentences))
    assert set(counts) <= set(exact)
    for holds, number in ((True, with_event), (False, n - with_event)):
        those = {s: p for s, p in exact.items() if ("c" in s) == holds}
        expected = np.array(list(those.values())) / math.fsum(those.values()) * number
        seen = np.array([counts[s] for s in those], dtype=float)
        rare = expected < 20.0
        if rare.any():
            seen, expected = (np.append(v[~rare], v[rare].sum()) for v in (seen, expected))
        assert stats.chisquare(seen, expected).pvalue > 1e-4
    holds = np.array(["c" in words for words in sentences])
    shards = holds.reshape(-1, 5000).sum(axis=1)
    assert stats.chisquare(shards).pvalue > 1e-4 and shards.std() > 0.0, "chance spreads them over the shards"
    halves = holds.reshape(-1, 2, 2500).sum(axis=(0, 2))
    assert stats.binomtest(int(halves[0]), with_event).pvalue > 1e-4, "and over each shard"


@pytest.mark.long
def test_bytes_are_the_same_for_any_number_of_workers_and_when_made_again(tmp_path: Path) -> None:
    pcfg = tilted(0.1)
    one = sample(pcfg, tmp_path / "one", 2000)
    two = sample(pcfg, tmp_path / "two", 2000, workers=Workers(2))
    again = Corpus.replay(one.record, pcfg, tmp_path / "again")
    files = [sorted((c.path / "data").iterdir()) for c in (one, two, again)]
    assert [[digest_file(f) for f in of] for of in files[1:]] == [[digest_file(f) for f in files[0]]] * 2
    assert one.digest != sample(pcfg, tmp_path / "other", 2000, seed=4).digest


def test_an_event_that_is_required_or_excluded_leaves_no_choice(tmp_path: Path) -> None:
    given = Tilting(TOY, Pattern(".* c .*")).given().pcfg
    assert all("c" in words for words in sample(given, tmp_path / "corpus", 100).sentences("train"))


def test_truths_without_an_event_and_other_conditions_are_refused(tmp_path: Path) -> None:
    tilting = Tilting(TOY, EVENT)
    for truth in (TOY, process("copy"), tilting.at(0.5).pcfg, tilting.given(holds=False).pcfg, language("dyck")):
        with pytest.raises(InputError, match="truesource tilt --probability"):
            sample(truth, tmp_path / "corpus", 10, lengths=LengthRange(2, 6))  # type: ignore[arg-type]
    for changes in ({"overlap": "disjoint"}, {"overlap": "unique"}, {"max_height": 9}):
        with pytest.raises(InputError, match="independent splits"):
            Plan({"train": 10}, 1, stratified=True, **changes)  # type: ignore[arg-type]
    plan = Plan({"train": 10}, 1, stratified=True)
    assert plan_of(call_of(plan)) == plan
