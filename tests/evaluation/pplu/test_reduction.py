"""Smaller vocabularies, against loops over positions and words."""

from __future__ import annotations

import math

import numpy as np
import pytest
from toy_english import TOY
from toy_models import Table

from truesource.evaluation.core.oracle import Oracle
from truesource.evaluation.pplu.compare import END, UnigramModel, oracle_unigram
from truesource.evaluation.pplu.reduced_vocabulary import halving, reduce_vocabulary
from truesource.generator.language_model import ScoringFrame
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.errors import InputError

MODEL = Table(
    {
        "<s>": {"a": 0.4, "b": 0.3, "c": 0.1, "<unk>": 0.1, END: 0.1},
        "a": {"a": 0.1, "b": 0.4, "c": 0.2, "<unk>": 0.1, END: 0.2},
        "b": {"a": 0.3, "b": 0.2, "c": 0.1, "<unk>": 0.2, END: 0.1},
        "c": {"a": 0.2, "b": 0.2, "c": 0.2, "<unk>": 0.2, END: 0.2},
        "<unk>": {"a": 0.5, "b": 0.1, "c": 0.1, "<unk>": 0.1, END: 0.2},
    },
    ("c", "a", "b"),
)
U = {"a": 0.3, "b": 0.2, "c": 0.1, "<unk>": 0.15, END: 0.25}
UNIGRAM = UnigramModel({w: math.log(p) for w, p in U.items()}, "oracle", {})
TEXT = [["a", "b"], ["c", "z", "a"], ["b"], ["b", "c"], ["a", "a"]]


@pytest.mark.parametrize("size", [1, 2, 3])
def test_every_protocol_by_loops(size: int) -> None:
    kept = set(["a", "b", "c"][:size])
    sums = {name: [0.0, 0.0, 0] for name in ("skip", "merge", "renormalise")}
    for sentence in TEXT:
        read = MODEL.read(sentence)
        for row, target in zip(MODEL.rows(sentence), [*read, END], strict=True):
            for law, column in ((row, 0), (U, 1)):
                rest = sum(law.get(w, 0.0) for w in (*kept, END))
                dropped = sum(p for w, p in law.items() if w not in kept and w != END)
                if target in kept or target == END:
                    sums["skip"][column] += math.log(law[target])
                    sums["merge"][column] += math.log(law[target])
                    sums["renormalise"][column] += math.log(law[target] / rest)
                else:
                    sums["merge"][column] += math.log(dropped)
            for name in sums:
                sums[name][2] += name == "merge" or target in kept or target == END
    found = {(r.words, r.protocol): r for r in reduce_vocabulary(MODEL, TEXT, UNIGRAM, [size])}
    whole = found[3, "merge"]
    for name, (q, u, n) in sums.items():
        row = found[size, name]
        assert row.tokens == n
        assert row.ppl == pytest.approx(math.exp(-q / n), rel=1e-12)
        assert row.ppl_unigram == pytest.approx(math.exp(-u / n), rel=1e-12)
        assert row.pplu == pytest.approx(math.exp((u - q) / n), rel=1e-12)
        assert row.change_ppl == pytest.approx(abs(row.ppl / whole.ppl - 1), abs=1e-12)
        assert row.change_pplu == pytest.approx(abs(row.pplu / whole.pplu - 1), abs=1e-12)


def test_the_whole_vocabulary_is_the_model_as_it_is() -> None:
    scores = MODEL.score(TEXT, ScoringFrame()).log_prob
    found = {r.protocol: r for r in reduce_vocabulary(MODEL, TEXT, UNIGRAM, [3])}
    assert found["merge"].ppl == pytest.approx(math.exp(-scores.mean()))
    assert found["merge"].change_ppl == 0.0


@pytest.mark.long
def test_merging_words_takes_information_from_the_truth() -> None:
    """Data processing: I(W; C) of the truth falls when words are merged; on the expectation, here on a large sample."""
    pcfg, lengths = PCFG.from_text(TOY), LengthRange(2, 8)
    oracle = Oracle(pcfg, lengths=lengths)
    unigram = oracle_unigram(oracle, ScoringFrame())
    rows = reduce_vocabulary(oracle, oracle.sample(2000, seed=3), unigram, [2, 4, 6, 8])
    information = [-math.log(row.pplu) for row in rows if row.protocol == "merge"]
    assert information == sorted(information)
    assert np.diff(information).min() > 0


def test_masked_models_have_no_end() -> None:
    masked = Table(MODEL.table, MODEL.vocabulary, "masked")
    no_end = UnigramModel({w: math.log(p / 0.75) for w, p in U.items() if w != END}, "oracle", {})
    (row,) = (r for r in reduce_vocabulary(masked, [["a", "c"]], no_end, [1]) if r.words == 1 and r.protocol == "merge")
    assert row.ppl == pytest.approx((0.4 * (0.4 + 0.2 + 0.1)) ** -0.5)


def test_sizes() -> None:
    assert halving(100) == [100, 50, 25, 12]
    with pytest.raises(InputError, match="3 words; give sizes"):
        reduce_vocabulary(MODEL, TEXT, UNIGRAM, [4])
    with pytest.raises(InputError, match="3 words; give sizes"):
        reduce_vocabulary(MODEL, TEXT, UNIGRAM, [0])
    with pytest.raises(InputError, match="no probability"):
        reduce_vocabulary(MODEL, TEXT, UnigramModel({"a": 0.0}, "test", {}), [2])
