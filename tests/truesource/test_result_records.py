"""Results in Python: one line each, data frames, and tables in notebooks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from truesource import PCFG, Comparison, Corpus, LengthRange, Oracle, ScoringFrame, Setting, compare
from truesource.evaluation.divergence.compare import compare_distributions
from truesource.grammar.support.printable import ResultRecords, line_of

GRAMMAR = PCFG.from_text("S -> 'a' S 0.3 | 'b' S 0.3 | 'a' 0.2 | 'c' 0.2")
SENTENCES = [["a", "b", "c"], ["c"], ["b", "a"]] * 20


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    comparison: Comparison = compare(Oracle(GRAMMAR, "causal"), SENTENCES, GRAMMAR).detail
    return comparison


def test_a_comparison_is_one_line_and_a_data_frame(comparison: Comparison) -> None:
    assert repr(comparison).startswith("Comparison(oracle, causal: ppl ") and len(repr(comparison)) < 200
    frame = comparison.to_pandas()
    assert len(frame) == len(comparison.records())
    kl = frame.set_index("name").loc["kl"]
    assert (kl["value"], kl["model"], kl["objective"]) == (0.0, "oracle", "causal")
    html = comparison._repr_html_()
    assert html.startswith("<table") and "relative_ppl" in html and "signature" not in html and len(html) < 10_000


def test_tokens_of_a_comparison_are_a_data_frame(comparison: Comparison) -> None:
    frame = comparison.tokens_to_pandas()
    assert len(frame) == comparison.paired.tokens == 20 * 9
    assert np.allclose(frame["log_prob"].astype(float), frame["truth_log_prob"].astype(float))
    assert frame["word"].isna().sum() == len(SENTENCES)


def test_scores_and_divergences(tmp_path: Path) -> None:
    scores = Oracle(GRAMMAR, "causal").score(SENTENCES, ScoringFrame())
    assert repr(scores).startswith("TokenScores(180 tokens of 60 sentences; ") and len(scores.to_pandas()) == 180
    found = compare_distributions(Oracle(GRAMMAR, "causal"), Setting(GRAMMAR, SENTENCES, lengths=None))
    assert len(repr(found)) < 300 and {"kl", "js"} <= set(found.to_pandas()["name"])


def test_comparisons_of_models() -> None:
    models = {"one": Oracle(GRAMMAR, "causal"), "two": Oracle(GRAMMAR, "causal", lengths=LengthRange(1, 9))}
    (found,) = compare(models, SENTENCES, GRAMMAR).detail
    assert repr(found).startswith("ModelComparison(causal, 60 sentences; one: KL 0.0000 nats a token; two: KL ")
    frame = found.to_pandas()
    assert {"kl", "ppl", "kl_difference"} <= set(frame["name"]) and set(frame["model"]) == {"oracle", "one", "two"}


def test_a_corpus(tmp_path: Path) -> None:
    corpus = Corpus.sample(GRAMMAR, {"train": 30, "eval": 5}, seed=1, path=tmp_path / "c", lengths=LengthRange(1, 6))
    assert repr(corpus) == f"Corpus({tmp_path / 'c'}: train 30, eval 5 sentences of 1..6 tokens)"
    frame = corpus.to_pandas("eval")
    assert [text.split() for text in frame["text"]] == corpus.sentences("eval")
    assert frame["n_tokens"].tolist() == [len(sentence) for sentence in corpus.sentences("eval")]
    assert np.allclose(frame["logprob"], corpus.log_probs("eval"))


class Hostile(ResultRecords):
    """A result with names that come from a file."""

    def records(self) -> list[dict[str, object]]:
        number = {"name": "<b>&", "value": 1.0, "low": None, "high": None}
        return [{"model": "m\x1b[31m\n" + "x" * 100, **number}] + [number] * 50


def test_names_are_data() -> None:
    shown = repr(Hostile())
    assert "\n" not in shown and "\x1b" not in shown and len(shown) < 200 and shown.endswith("48 more)")
    html = Hostile()._repr_html_()
    assert "<b>" not in html and "&lt;b&gt;&amp;" in html and html.count("<tr>") < 30


def test_results_without_numbers_have_a_line() -> None:
    assert line_of("Kind", []) == "Kind()"
    assert line_of("Kind", [{"model": "m", "value": None}]) == "Kind(m: 1 more)"
