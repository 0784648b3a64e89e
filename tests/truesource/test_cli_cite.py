"""What `truesource cite` says of a run: works that it has used, and its methods paragraph."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from truesource.report.methods import methods
from truesource.report.works import topics_of

CONFIG: dict[str, Any] = {
    "seeds": None,
    "treebank": {"embedded": None, "files": ["a/gum.mrg", "b.mrg"], "normalise": {"convention": "penn"}},
    "grammar": {"method": "split_merge", "language": None, "split_merge": {"cycles": 1}},
    "corpus": {"lengths": "6..25", "splits": {"train": 1000, "eval": 200}},
    "models": [
        {"name": "small", "load": None, "model": {"architecture": "gpt2"}},
        {"name": "tri", "load": None, "model": {"architecture": "ngram"}},
        {"name": "theirs", "load": "gpt2/"},
    ],
    "evaluation": {"split": "eval", "divergence": {}, "tendencies": {"schemes": ["ancestral", {"scheme": "eta"}]}},
}
MEASURES = ("ppl", "bound", "relative_ppl", "rho", "r2_pearson", "r2_identity")
ROW = {
    **{"objective": "causal", "sentences": 200, "signature": "objective:causal|compared:common/103", "tokens": 900},
    **dict.fromkeys(MEASURES),
    **{"excluded": 0, "impossible_model": 0, "impossible_oracle": 0},
}
RESULTS = [{"model": name, **ROW} for name in ("oracle", "small", "tri", "theirs")]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    for name, value in (
        ("config.json", CONFIG),
        ("results.json", RESULTS),
        ("provenance.json", {"truesource": "0.1.0", "seed": 7}),
        ("stages.json", {}),
        (
            "models/small/training.json",
            {
                "model": {"architecture": "gpt2", "layers": 2, "dim": 64, "tokenizer": "bpe"},
                "training": {"learning_rate": 0.003, "schedule": "cosine"},
                "steps": 300,
                "parameters": 12345,
                "vocabulary": 99,
            },
        ),
        (
            "models/tri/training.json",
            {
                "model": {"architecture": "ngram", "order": 3, "smoothing": "kneser_ney"},
                "training": None,
                "steps": 0,
                "parameters": 42,
                "vocabulary": 9,
            },
        ),
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(json.dumps(value))
    return tmp_path


def test_the_methods_of_a_run(run: Path) -> None:
    text = methods(run)
    for part in (
        "The truth is a split-merge grammar (1 cycle; Petrov, Barrett, Thibaux and Klein, 2006), induced from gum.mrg"
        " and b.mrg, read by the convention penn.",
        "conditioned on 6..25 words: 1,000 (train) and 200 (eval).",
        "small is a gpt2 (2 layers, 64 dimensions; 12,345 parameters, 99 pieces), trained for 300 steps (AdamW, peak"
        " learning rate 0.003, cosine schedule).",
        "tri is a ngram (order 3, kneser_ney; 42 n-grams, 9 words).",
        "theirs was loaded from gpt2/.",
        "On 200 sentences, the causal scores",
        "in the vocabulary common",
        "Also measured: the divergence of full next-word distributions and statistical tendencies of generated text.",
        "Models are compared over sentences; p-values are adjusted by Holm over 3 pairs (causal) (Holm, 1979).",
        "Computed with truesource 0.1.0 (seed 7).",
    ):
        assert part in text


def test_the_methods_of_a_run_with_seeds_name_the_test(run: Path) -> None:
    (run / "config.json").write_text(json.dumps({**CONFIG, "seeds": 5}))
    assert "Welch's t test with Satterthwaite's degrees of freedom; p-values" in methods(run)
    assert "(Holm, 1979; Satterthwaite, 1946)" in methods(run)


def test_only_schemes_that_were_used_are_cited(run: Path) -> None:
    topics = topics_of(run, {})
    assert "eta" in topics and "tests" in topics
    assert not {"nucleus", "typical"} & set(topics)


def test_the_command(run: Path, command) -> None:  # type: ignore[no-untyped-def]
    code, out, _ = command("cite", run, "--methods")
    assert code == 0
    assert out.startswith("The truth is a split-merge grammar")
    assert "name the run" in command("cite", "--methods").err
    assert command("cite", run / "models", "--methods").code == 2
