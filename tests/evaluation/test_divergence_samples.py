"""Reverse divergence on a model's own sentences, and the truth kept for a model in training."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from reference_inference import all_strings, rules_of
from toy_models import END, Table
from whole_language import whole_language

from truesource.evaluation.core.oracle import Oracle
from truesource.evaluation.core.setting import Setting
from truesource.evaluation.divergence.compare import compare_distributions
from truesource.evaluation.divergence.contexts import cache_truth
from truesource.evaluation.divergence.reverse import reverse_divergence
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.errors import InputError

TRUTH = PCFG.from_text("S -> S S 0.25 | a 0.5 | b 0.25")
OTHER = PCFG.from_text("S -> S S 0.5 | a 0.25 | b 0.25")  #: the same strings, other probabilities
SHORT = LengthRange(1, 3)
ROW = {"a": 0.4, "b": 0.2, "<unk>": 0.05, END: 0.25}  #: 0.1 is lost
MODEL = Table({"<s>": ROW, "a": {**ROW, "a": 0.1, END: 0.55}, "b": ROW, "<unk>": ROW}, ("b", "a"))


def strings_of(pcfg: PCFG, high: int) -> dict[tuple[str, ...], float]:
    tables = all_strings(rules_of(pcfg), high)["S"]
    found = {s: p for m in range(1, high + 1) for s, p in tables[m].items()}
    z = math.fsum(found.values())
    return {s: p / z for s, p in found.items()}


# -- samples ----------------------------------------------------------------------------------------


def test_over_all_of_the_models_language_both_estimates_are_the_reverse_divergence() -> None:
    model = Oracle(OTHER, lengths=SHORT)
    p, q = strings_of(TRUTH, 3), strings_of(OTHER, 3)
    samples = whole_language(OTHER, 1, 3, 256)
    found = reverse_divergence(model, TRUTH, samples, lengths=SHORT)
    divergence = math.fsum(x * math.log(x / p[s]) for s, x in q.items())
    tokens = math.fsum(x * (len(s) + 1) for s, x in q.items())
    assert found["samples_reverse_kl"].value == pytest.approx(divergence / tokens, abs=1e-10)
    assert found["samples_reverse_kl_paired"].value == pytest.approx(divergence / tokens, abs=1e-10)
    assert found["samples_reverse_kl_possible"].value == pytest.approx(divergence / tokens, abs=1e-10)
    assert found["samples_impossible"].value == found["samples_reverse_kl_infinite"].value == 0.0
    assert found["samples_variance_ratio"].value > 1.0
    assert "contexts-of:model" in found["samples_reverse_kl"].signature


def test_what_a_model_loses_on_special_tokens_is_no_part_of_its_reverse_divergence() -> None:
    """Samples are drawn from what is left, made to sum to one."""
    samples = [["a"], ["b", "a"], ["a", "a", "b"]]
    found = reverse_divergence(MODEL, TRUTH, samples, lengths=None)
    kept = replace(
        MODEL, table={w: {x: p / sum(row.values()) for x, p in row.items()} for w, row in MODEL.table.items()}
    )
    twin = reverse_divergence(kept, TRUTH, samples, lengths=None)
    for name in ("samples_reverse_kl_paired", "samples_reverse_kl_possible"):
        assert found[name].value == pytest.approx(twin[name].value, rel=1e-10)
    read = Oracle(TRUTH, vocabulary=["a", "b"])
    log_p = read.language.exact.string_log_probs(samples)
    log_q = [math.fsum(math.log(row[w]) for row, w in zip(kept.rows(s), [*s, END], strict=True)) for s in samples]
    assert found["samples_reverse_kl_paired"].value == pytest.approx(float(np.sum(log_q) - log_p.sum()) / 9, rel=1e-10)


def test_samples_that_the_truth_cannot_make_are_counted_and_left_out() -> None:
    """At a length of 3 the truth allows the end only, so the model's own expectation is infinitely wrong there."""
    samples = [["a"], ["a", "b", "a", "a"], ["b", "b", "b"], ["zebra"]]
    found = reverse_divergence(MODEL, TRUTH, samples, lengths=SHORT)
    assert found["samples_impossible"].value == 0.5
    assert found["samples_impossible"].low is None
    more = reverse_divergence(MODEL, TRUTH, samples * 3, lengths=SHORT)
    low, high = more["samples_impossible"].low, more["samples_impossible"].high
    assert low is not None and high is not None
    assert 0.0 < low < 0.5 < high < 1.0
    assert more["samples_reverse_kl_of_possible"].low is None  # 6 are possible
    assert "ci:none/fewer-than-10-sentences" in more["samples_reverse_kl_of_possible"].signature
    assert "samples_reverse_kl" not in found
    assert "samples_variance_ratio" not in found
    alone = reverse_divergence(MODEL, TRUTH, [samples[0], samples[2]], lengths=SHORT)
    assert "samples_reverse_kl_paired" not in found
    log_ratio = alone["samples_reverse_kl_paired"].value
    assert found["samples_reverse_kl_of_possible"].value == pytest.approx(log_ratio - 2 * math.log(0.5) / 6, rel=1e-12)
    for name in ("samples_reverse_kl_possible", "samples_impossible_mass"):
        assert found[name].value == pytest.approx(alone[name].value, rel=1e-12)
        assert "possible:2" in found[name].signature
        assert "samples:4" in found[name].signature
    assert found["samples_reverse_kl_infinite"].value == 1.0
    # <unk> is impossible everywhere, the end at the start, and after three words all but the end
    outside = [0.05 + 0.25, 0.05, 0.05 + 0.25, 0.05, 0.05, 0.4 + 0.2 + 0.05]
    assert found["samples_impossible_mass"].value == pytest.approx(math.fsum(outside) / 6, rel=1e-12)


def test_the_divergence_of_the_possible_sentences_is_that_of_enumeration() -> None:
    """The model is the other grammar up to 3 words, the truth makes 1 or 2 only; all samples in true proportion."""
    p, q = strings_of(TRUTH, 2), strings_of(OTHER, 3)
    samples = whole_language(OTHER, 1, 3, 256)
    found = reverse_divergence(Oracle(OTHER, lengths=SHORT), TRUTH, samples, lengths=LengthRange(1, 2))
    share = math.fsum(x for s, x in q.items() if s in p)
    divergence = math.fsum(x / share * math.log(x / share / p[s]) for s, x in q.items() if s in p)
    tokens = math.fsum(x / share * (len(s) + 1) for s, x in q.items() if s in p)
    score = found["samples_reverse_kl_of_possible"]
    assert score.value == pytest.approx(divergence / tokens, abs=1e-10)
    assert found["samples_impossible"].value == pytest.approx(1 - share, abs=1e-12)
    assert score.low is not None
    assert score.high is not None
    assert score.low < score.value < score.high


def test_only_impossible_samples() -> None:
    for samples in ([["zebra"]], [[]], [["zebra"], []]):
        found = reverse_divergence(MODEL, TRUTH, samples, lengths=SHORT)
    assert {name: score.value for name, score in found.items()} == {"samples_impossible": 1.0}


def test_reverse_divergence_needs_samples_of_a_causal_model() -> None:
    with pytest.raises(InputError, match="no sentences of the model"):
        reverse_divergence(MODEL, TRUTH, [], lengths=None)
    with pytest.raises(InputError, match="a masked model cannot sample sentences"):
        reverse_divergence(replace(MODEL, objective="masked"), TRUTH, [["a"]], lengths=None)


# -- the truth, kept --------------------------------------------------------------------------------

SENTENCES = [*Oracle(TRUTH, lengths=SHORT).sample(30, 3), ["zebra"], ["a"] * 7]


@pytest.mark.parametrize("model", [MODEL, replace(MODEL, objective="masked")], ids=["causal", "masked"])
@pytest.mark.parametrize(("dtype", "near"), [("float64", 1e-10), ("float32", 1e-6)])
def test_the_kept_truth_gives_the_numbers_of_a_comparison(model: Table, dtype: str, near: float) -> None:
    kept = cache_truth(model, Setting(TRUTH, SENTENCES, lengths=SHORT), contexts=10_000, dtype=dtype)
    whole = compare_distributions(model, Setting(TRUTH, SENTENCES, lengths=SHORT))
    assert (kept.sentences, kept.contexts) == (30, whole.contexts) or model.objective == "masked"
    found = kept.compare(model)
    assert found.keys() == {"kl", "js", "tv", "relative_ppl"}
    for name in ("kl", "js", "tv"):
        assert found[name] == pytest.approx(whole.scores[name].value, abs=near)
    assert math.log(found["relative_ppl"]) == pytest.approx(whole.scores["kl_paired"].value, abs=near)


def test_the_kept_truth_against_itself() -> None:
    oracle = Oracle(TRUTH, lengths=SHORT, vocabulary=["a"])
    found = cache_truth(oracle, Setting(TRUTH, SENTENCES, lengths=SHORT), dtype="float64").compare(oracle)
    assert found == {"kl": 0.0, "js": 0.0, "tv": 0.0, "relative_ppl": 1.0}


def test_memory_is_bounded_and_stated() -> None:
    kept = cache_truth(MODEL, Setting(TRUTH, SENTENCES, lengths=SHORT), contexts=12)
    assert sum(len(s) + 1 for s in SENTENCES[: kept.sentences]) == kept.contexts <= 12
    distinct = {tuple(s) for s in SENTENCES[: kept.sentences]}
    assert kept.memory == sum(len(s) + 1 for s in distinct) * 4 * 4  # contexts, events, bytes
    assert cache_truth(MODEL, Setting(TRUTH, SENTENCES, lengths=SHORT), contexts=1).sentences == 1


def test_what_is_infinite_is_left_out_of_the_kept_comparison() -> None:
    broken = replace(MODEL, table={**MODEL.table, "a": {**ROW, "b": 0.0}})
    found = cache_truth(MODEL, Setting(TRUTH, [["a", "a"], ["a", "b"]], lengths=SHORT)).compare(broken)
    assert found.keys() == {"js", "tv", "infinite"}
    assert found["infinite"] == 3.0  # after a, and after a a


def test_the_kept_truth_is_for_one_vocabulary_and_objective() -> None:
    kept = cache_truth(MODEL, Setting(TRUTH, SENTENCES, lengths=SHORT))
    for other in (replace(MODEL, vocabulary=("a", "b")), replace(MODEL, objective="masked")):
        with pytest.raises(InputError, match="another objective or vocabulary"):
            kept.compare(other)
    with pytest.raises(InputError, match="can make none of the 1 sentences"):
        cache_truth(MODEL, Setting(TRUTH, [["zebra"]], lengths=SHORT))
    with pytest.raises(InputError, match="float32 or float64"):
        cache_truth(MODEL, Setting(TRUTH, SENTENCES, lengths=SHORT), dtype="float16")
