"""A suite and a file of results of the benchmark that nobody trained for: random, and valid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from truesource.studies.benchmark.results import BenchmarkResults
from truesource.studies.benchmark.suite import Suite

BLOCKS = 20
POINTS = 12
TOKENS = 2_000_000
KINDS = (
    "regular",
    "bounded Dyck",
    "hierarchical",
    "ambiguous",
    "English-like",
    "Zipfian",
    "hidden Markov",
    "palindromes",
)
REFUSAL = "it has learned positions of its training strings only"


def made_suite(languages: int = 8, *, unlimited: Sequence[int] = (5,), **changes: Any) -> Suite:
    """A suite of so many languages.

    Args:
        languages: their number.
        unlimited: which of them have no longer strings.
        changes: of other entries.
    """
    entries = {
        f"language-{i}": {
            "language": f"dyck:k={i + 1},depth=5",
            "kind": KINDS[i % len(KINDS)],
            "tests": f"keep {i + 1} kinds of brackets in mind",
            "lengths": "1..40",
            "longer": None if i in unlimited else "41..80",
        }
        for i in range(languages)
    }
    values: dict[str, Any] = {
        "name": "toy",
        "version": 2,
        "title": "Toy suite",
        "seed": 1,
        "languages": entries,
        "training": {
            "tokens": TOKENS,
            "batch_tokens": 4096,
            "points": POINTS,
            "parameters": 600_000,
            "seeds": [1, 2, 3],
        },
        "sizes": {"dev": 100, "test": 400, "longer": 100, "blocks": BLOCKS},
    }
    return Suite(**{**values, **changes})


class MadeModel:
    """A model of the results.

    Args:
        name: of the model.
        skill: share of information that it learns, about.
        objective: causal or masked.
        architecture: its name.
        languages: how many of the suite it was measured on; None: all.
        refuses: whether it reads no longer strings.
        settings: what was chosen.
    """

    def __init__(
        self,
        name: str,
        skill: float,
        *,
        objective: str = "causal",
        architecture: str = "gpt2",
        languages: int | None = None,
        refuses: bool = False,
        settings: dict[str, Any] | None = None,
    ) -> None:
        self.name, self.skill, self.objective, self.architecture = name, skill, objective, architecture
        self.languages, self.refuses = languages, refuses
        self.settings = settings or {"model": {"architecture": architecture}, "training": {"learning_rate": 0.001}}

    @property
    def exact(self) -> bool:
        """Whether it is an end of the scale."""
        return self.architecture in ("oracle", "unigram")


CAUSAL = (
    MadeModel("oracle", 1.0, architecture="oracle"),
    MadeModel("llama", 0.97, architecture="llama"),
    MadeModel("gpt2", 0.94, architecture="gpt2", refuses=True),
    MadeModel("opt", 0.92, architecture="opt"),
    MadeModel("lstm", 0.9, architecture="lstm"),
    MadeModel("gru", 0.88, architecture="my_gru.py:GRU"),
    MadeModel("gated-cnn", 0.75, architecture="gated_cnn"),
    MadeModel("ngram-5", 0.55, architecture="ngram"),
    MadeModel("ngram-2", 0.2, architecture="ngram"),
    MadeModel("untrained", -0.6, architecture="gpt2"),
    MadeModel("half-done", 0.99, architecture="llama", languages=5),
    MadeModel("unigram", 0.0, architecture="unigram"),
)
MASKED = (
    MadeModel("bert", 0.9, objective="masked", architecture="bert"),
    MadeModel("roberta", 0.7, objective="masked"),
)


def made_results(
    suite: Suite, models: Sequence[MadeModel] = (*CAUSAL, *MASKED), *, seeds: int = 3, seed: int = 0
) -> BenchmarkResults:
    """Results of models on a suite, by chance."""
    random = np.random.default_rng(seed)
    languages = {name: _language(suite, name, random) for name in suite.languages}
    return {
        "format": "truesource-benchmark",
        "version": 1,
        "suite": {"name": suite.name, "version": suite.version, "digest": suite.digest},
        "truesource": "0.1.0",
        "languages": languages,
        "models": [_model(each, languages, seeds, random) for each in models],
        "provenance": {"python": "3.12.1", "machine": "two cores"},
    }


def _language(suite: Suite, name: str, random: np.random.Generator) -> Any:
    language = suite.languages[name]
    return {
        "language": language.language,
        "words": int(random.integers(4, 400)),
        "train_sentences": 100_000,
        "train_tokens": TOKENS,
        "truth": {
            objective: {
                "test": _contexts(random),
                "longer": None if language.longer is None else _contexts(random),
            }
            for objective in ("causal", "masked")
        },
    }


def _contexts(random: np.random.Generator) -> dict[str, Any]:
    contexts = random.integers(300, 500, BLOCKS)
    information = contexts * random.uniform(0.4, 1.8) * random.uniform(0.9, 1.1, BLOCKS)
    return {
        "contexts": contexts.tolist(),
        "information": information.tolist(),
        "entropy": float(random.uniform(0.5, 3.0)),
        "impossible": float(random.uniform(0.1, 0.95)),
    }


def _model(model: MadeModel, languages: dict[str, Any], seeds: int, random: np.random.Generator) -> Any:
    names = list(languages)[: model.languages]
    return {
        "name": model.name,
        "objective": model.objective,
        "architecture": model.architecture,
        "settings": model.settings,
        "parameters": {name: 0 if model.exact else int(random.integers(400_000, 500_000)) for name in names},
        "cells": [
            _cell(model, name, languages[name], number, random)
            for name in names
            for number in range(1, 1 + (1 if model.exact else seeds))
        ],
    }


def _cell(model: MadeModel, name: str, language: Any, seed: int, random: np.random.Generator) -> dict[str, Any]:
    truth = language["truth"][model.objective]
    missed = 1.0 - model.skill if model.exact else (1.0 - model.skill) * random.uniform(0.7, 1.3)
    test = _divergences(truth["test"], missed, model, random)
    longer = (
        None if truth["longer"] is None or model.refuses else _divergences(truth["longer"], 1.6 * missed, model, random)
    )
    information = sum(truth["test"]["information"]) / sum(truth["test"]["contexts"])
    trained = not model.exact
    return {
        "language": name,
        "seed": seed,
        "test": test,
        "longer": longer,
        "longer_refused": REFUSAL if model.refuses and truth["longer"] is not None else None,
        "calibration": 0.02 * abs(missed),
        "curve": _curve(missed * information, information, random) if trained else [],
        "steps": 488 if trained else 0,
        "tokens": TOKENS if trained else 0,
        "flops": 3 * 10**12 if trained else None,
    }


def _divergences(truth: Any, missed: float, model: MadeModel, random: np.random.Generator) -> dict[str, Any]:
    noise = np.ones(BLOCKS) if model.exact else random.uniform(0.95, 1.05, BLOCKS)
    if model.exact:
        missed = 1.0 - model.skill
    return {"kl": (np.array(truth["information"]) * missed * noise).tolist(), "wrong": min(0.3 * abs(missed), 1.0)}


def _curve(last: float, information: float, random: np.random.Generator) -> list[tuple[int, float]]:
    tokens = np.unique(np.geomspace(TOKENS / 200, TOKENS, POINTS).round()).astype(int)
    progress = np.log(tokens / tokens[0]) / np.log(tokens[-1] / tokens[0])
    first = max(1.5 * information, last)
    kl = np.exp((1 - progress**1.5) * np.log(first) + progress**1.5 * np.log(last)) * random.uniform(0.97, 1.03)
    return [(int(token), float(value)) for token, value in zip(tokens, kl, strict=True)]
