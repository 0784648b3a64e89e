"""The truth about one language of a suite, computed once and kept for all models that a process measures."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np

from truesource.benchmark.corpora import ReadCorpus, corpus_of, grammar_of, known_words, longer_strings
from truesource.benchmark.results import TruthContexts, TruthRecord
from truesource.benchmark.suite import Suite
from truesource.evaluation.core.comparison import oracle_for
from truesource.evaluation.core.constant import ConstantModel, equal_frequencies, true_frequencies
from truesource.evaluation.core.oracle import Oracle
from truesource.evaluation.divergence.cached import CachedTruth, cache_truth
from truesource.evaluation.divergence.contexts import Contexts, measure_contexts
from truesource.generator.language_model import DistributionModel, Objective
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.support.arrays import BoolArray, FloatArray

Part = Literal["test", "longer"]
KEPT = 512 * 2**20  #: bytes of probabilities that are kept for one vocabulary; more are computed for each model


class LanguageTruth:
    """The truth about a language of a suite.

    The truth about the strings of ``test`` is that under the length condition of the training strings. About longer
    strings it is the grammar without a condition, and only positions beyond the longest training string count: what a
    learner who has found the grammar behind its data would expect there.

    Args:
        suite: that the language is in.
        name: of the language there.
        folder: with its corpora.
    """

    def __init__(self, suite: Suite, name: str, folder: Path) -> None:
        self.suite, self.name = suite, name
        self.language = suite.languages[name]
        self.pcfg = grammar_of(self.language)
        self._folder = folder
        self._kept: dict[tuple[Objective, tuple[str, ...] | None, Part], CachedTruth] = {}

    @cached_property
    def corpus(self) -> ReadCorpus:
        """Of the language."""
        return corpus_of(self._folder, self.name)

    @cached_property
    def known(self) -> dict[str, int]:
        """The words that models tell apart, and how often each occurs in the train split."""
        return known_words(self.corpus, self.suite.training.min_count)

    @cached_property
    def _strings(self) -> dict[Part, list[list[str]]]:
        found: dict[Part, list[list[str]]] = {"test": self.corpus.sentences("test")}
        if self.language.longer is not None:
            found["longer"] = longer_strings(self._folder, self.name)
        return found

    @property
    def parts(self) -> tuple[Part, ...]:
        """What there are strings of."""
        return tuple(self._strings)

    def oracle(self, model: DistributionModel, part: Part) -> Oracle:
        """The truth that a model is compared with."""
        return oracle_for(model, self.pcfg, self._lengths(part))

    def measured(self, model: DistributionModel, part: Part) -> Contexts:
        """Model and truth in every context of the strings of a part.

        Raises:
            InputError: as `truesource.evaluation.divergence.contexts.measure_contexts`.
        """
        strings = self._strings[part]
        oracle = self.oracle(model, part)
        contexts = sum(len(string) + 1 for string in strings)
        if contexts * len(oracle.words) * 8 > KEPT:
            return measure_contexts(model, oracle, strings)
        key = model.objective, model.vocabulary, part
        if key not in self._kept:
            self._kept[key] = cache_truth(
                *(model, self.pcfg, strings), lengths=self._lengths(part), contexts=contexts, dtype=np.float64
            )
        return measure_contexts(model, oracle, strings, blocks=self._kept[key].blocks(model))

    def counted(self, measured: Contexts, part: Part) -> BoolArray:
        """Which contexts count, (T,)."""
        return measured.position >= (self.language.range.high if part == "longer" else 0)

    def blocks(self, measured: Contexts, part: Part, values: FloatArray) -> list[float]:
        """Sums of values of contexts that count, (T,), in the blocks of strings."""
        size = self.suite.sizes.blocks
        kept = self.counted(measured, part)
        sums = np.bincount(measured.sentence[kept] % size, weights=values[kept], minlength=size)
        return [float(value) for value in sums]

    def record(self, objective: Objective) -> TruthRecord:
        """What there is to learn for models of an objective."""
        frequencies = true_frequencies(
            Oracle(self.pcfg, objective, lengths=self._lengths("test"), vocabulary=self.known)
        )
        test, longer = (
            self._contexts(frequencies, part) if part in self.parts else None for part in ("test", "longer")
        )
        assert test is not None
        return {"test": test, "longer": longer}

    def _contexts(self, frequencies: ConstantModel, part: Part) -> TruthContexts:
        found = self.measured(frequencies, part)
        equal = self.measured(equal_frequencies(self.oracle(frequencies, part)), part)
        kept = self.counted(found, part)
        return {
            "contexts": [round(value) for value in self.blocks(found, part, np.ones(len(found.values)))],
            "information": self.blocks(found, part, found.column("kl")),
            "entropy": float(found.column("entropy_truth")[kept].mean()),
            "impossible": float(equal.column("impossible_mass")[kept].mean()),
        }

    def _lengths(self, part: Part) -> LengthRange | None:
        return self.language.range if part == "test" else None
