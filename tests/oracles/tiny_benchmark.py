"""A suite of two small languages, and a benchmark of a few quick models on it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from truesource.grammar.support.parallel import Share, Workers
from truesource.studies.benchmark.run import Outcome, Selection, execute
from truesource.studies.benchmark.suite import Suite, candidates, load_suite

SUITE = """\
name: mini
version: 1
title: Two small languages
seed: 1
training: {tokens: 3000, batch_tokens: 128, points: 3, parameters: 20000, preset: tiny, seeds: [1, 2]}
sizes: {dev: 10, test: 40, longer: 20, blocks: 10}
languages:
  brackets: {language: "dyck:k=2,depth=2", kind: brackets, tests: a stack, lengths: 1..10, longer: 11..16}
  chain: {language: "ngram:order=2,vocabulary=4,mean_length=5", kind: chain, tests: contexts, lengths: 1..8}
baselines:
  oracle: {}
  unigram: {}
  bigram: {model: {architecture: ngram, order: 2}}
  small: {model: {architecture: gpt2, dim: 8, heads: 1, layers: 1}}
  masked: {model: {architecture: bert, dim: 8, heads: 1, layers: 1}}
"""


def mini_suite(folder: Path) -> Suite:
    """The suite, from ``mini.yaml`` in a folder."""
    path = folder / "mini.yaml"
    path.write_text(SUITE, encoding="utf-8")
    return load_suite(str(path))


def measure(
    suite: Suite,
    folder: Path,
    models: Sequence[str],
    *,
    share: Share | None = None,
    workers: int = 1,
    seeds: Sequence[int] | None = None,
    languages: Sequence[str] | None = None,
) -> Outcome:
    """Run some baselines of the suite."""
    asked = Selection.of(suite, candidates(suite, models, [], None), languages, seeds)
    return execute(asked, folder, workers=Workers(workers), share=share or Share())
