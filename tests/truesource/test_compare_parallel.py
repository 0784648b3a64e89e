"""`truesource.compare_parallel`: models of variants of a grammar, sentence beside sentence."""

from __future__ import annotations

import numpy as np
import pytest
from toy_models import Table

from truesource import PCFG, LengthRange, Oracle, ParallelText, compare_parallel
from truesource.evaluation.core.signature import parts_of
from truesource.grammar.support.errors import InputError
from truesource.grammar.variants import parse_variant
from truesource.studies.compare.tables import comparison_table

WORDS = ("a", "b", "c")
GRAMMAR = PCFG.from_text("S -> A X 1\nX -> B S 0.3 | B 0.7\nA -> a 0.7 | c 0.3\nB -> b 0.9 | c 0.1")
MIRROR = parse_variant("mirror=all")(GRAMMAR).pcfg
TEXT = Oracle(GRAMMAR, "causal", lengths=None).sample(300, seed=1)
MIRRORED = [sentence[::-1] for sentence in TEXT]
ROW = {"a": 0.3, "b": 0.3, "c": 0.1, "</s>": 0.3}


def model(a: float) -> Table:
    row = {**ROW, "a": a, "b": 0.6 - a}
    return Table(dict.fromkeys(("<s>", *WORDS), row), WORDS, "causal")


def texts(*seeds: float) -> dict[str, ParallelText]:
    models = [model(a) for a in seeds]
    return {
        "original": ParallelText(language=GRAMMAR, sentences=TEXT, models=models),
        "mirror": ParallelText(language=MIRROR, sentences=MIRRORED, models=models),
    }


def test_a_model_of_word_frequencies_finds_no_order_harder_and_pairs_see_it() -> None:
    # both truths give a sentence and its mirror image one probability, and so does a model without context
    found = compare_parallel(texts(0.3), lengths=None)
    (difference,) = found.differences
    assert difference.contrast.value == pytest.approx(0.0, abs=1e-12)
    assert difference.contrast.low == pytest.approx(0.0, abs=1e-12) == difference.contrast.high
    assert found.rows[0].measures["kl"].value == pytest.approx(found.rows[1].measures["kl"].value, abs=1e-12)


def test_a_variant_whose_models_are_worse_by_a_known_amount() -> None:
    changed = {
        **texts(0.3, 0.31, 0.29),
        "mirror": ParallelText(language=MIRROR, sentences=MIRRORED, models=[model(0.1)]),
    }
    found = compare_parallel(changed, lengths=None)
    tokens = sum(len(sentence) + 1 for sentence in TEXT)
    n = {word: sum(sentence.count(word) for sentence in TEXT) for word in "ab"}
    cost = {a: -(n["a"] * np.log(a) + n["b"] * np.log(0.6 - a)) / tokens for a in (0.1, 0.29, 0.3, 0.31)}
    expected = cost[0.1] - np.mean([cost[a] for a in (0.3, 0.31, 0.29)])
    (difference,) = found.differences
    assert difference.contrast.value == pytest.approx(expected, abs=1e-9)
    assert difference.contrast.p is not None and difference.contrast.p < 0.001
    both = parts_of(found.records()[-1]["signature"])
    assert both["grammar"] == f"{MIRROR.digest[:8]}/{GRAMMAR.digest[:8]}"
    table = comparison_table(found, ["seeds", "bound", "kl", "difference"])
    assert [row.cells[0] for row in table.rows] == ["oracle of original", "original", "mirror"]


def test_texts_that_are_not_parallel_are_refused() -> None:
    one = texts(0.3)
    for sentences, code in ((MIRRORED[1:], "not-parallel"), (MIRRORED[1:] + MIRRORED[:1], "not-parallel")):
        with pytest.raises(InputError) as refused:
            compare_parallel(
                {**one, "mirror": ParallelText(language=MIRROR, sentences=sentences, models=[model(0.3)])}, lengths=None
            )
        assert refused.value.code == code


def test_one_text_or_a_text_without_models_is_refused() -> None:
    with pytest.raises(InputError, match="two texts or more"):
        compare_parallel({"original": texts(0.3)["original"]}, lengths=LengthRange(2, 4))
    with pytest.raises(InputError, match="mirror has no model"):
        compare_parallel(
            {**texts(0.3), "mirror": ParallelText(language=MIRROR, sentences=MIRRORED, models=[])}, lengths=None
        )
