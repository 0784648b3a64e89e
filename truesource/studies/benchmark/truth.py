"""The truth about one language of a suite, computed once and kept for all models that a process measures."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
from typing_extensions import override

from truesource.evaluation.core.oracle import Oracle
from truesource.evaluation.core.setting import Setting, oracle_for
from truesource.evaluation.core.word_frequencies import ConstantModel, equal_frequencies, true_frequencies
from truesource.evaluation.divergence.contexts import CachedTruth, Contexts, cache_truth, measure_contexts
from truesource.evaluation.divergence.of_words import in_words
from truesource.generator.columns import CodedSentences
from truesource.generator.corpus import Corpus
from truesource.generator.corpus_builder import make_corpus
from truesource.generator.language_model import DistributionModel, LanguageModel
from truesource.generator.objectives import Objective
from truesource.generator.plan import Columns, Plan, mean_length, require_room
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.diagnostics import require_consistent
from truesource.grammar.pieces.truth import TokenisedTruth
from truesource.grammar.support.arrays import BoolArray, FloatArray
from truesource.grammar.support.locks import exclusive
from truesource.grammar.support.parallel import Workers
from truesource.grammar.truth import Truth, load_truth
from truesource.studies.benchmark.results import TruthContexts, TruthRecord
from truesource.studies.benchmark.suite import Suite, SuiteLanguage

LONGER_SEED = 1  #: added to the seed of a suite for longer strings
KEPT = 512 * 2**20  #: bytes of probabilities that are kept for one vocabulary; more are computed for each model


def truth_of(language: SuiteLanguage) -> Truth:
    """Return the grammar or process of a language.

    Raises:
        InputError: there is no such language, or its derivations may not end.
    """
    truth = load_truth(language.language)
    require_consistent(truth)
    return truth


def corpus_folder(folder: Path, name: str) -> Path:
    """Return the folder of the corpus of a language in a folder of results."""
    return folder / "corpora" / name


def longer_folder(folder: Path, name: str) -> Path:
    """Return the folder of its longer strings."""
    return folder / "corpora" / f"{name}-longer"


def train_sentences(suite: Suite, language: SuiteLanguage, truth: Truth) -> int:
    """Return the number of train strings that are expected to have the tokens of the budget, ends included."""
    return max(1, round(suite.training.tokens / (mean_length(truth, language.range, None) + 1.0)))


def require_corpora(suite: Suite, name: str, folder: Path) -> None:
    """Refuse a language whose corpora do not fit this machine, unless they are made already.

    Raises:
        InputError: they do not fit (code ``too-large``), or the language has no strings of these lengths.
    """
    if not corpus_folder(folder, name).exists():
        for path, plan in _plans(suite, name, truth_of(suite.languages[name]), folder).items():
            require_room(plan.splits, plan.shard_size, path)


def _plans(suite: Suite, name: str, truth: Truth, folder: Path) -> dict[Path, Plan]:
    """Return the corpora of a language by their folders."""
    language = suite.languages[name]
    sizes = {
        "train": train_sentences(suite, language, truth),
        "dev": suite.sizes.dev,
        "test": suite.sizes.test,
    }
    plain = Columns(trees="none", split=False)
    plans = {corpus_folder(folder, name): Plan(sizes, suite.seed, language.range, columns=plain)}
    if language.longer_range is not None:
        longer = {"test": suite.sizes.longer}
        seed = suite.seed + LONGER_SEED
        plans[longer_folder(folder, name)] = Plan(longer, seed, language.longer_range, columns=plain)
    return plans


def make_corpora(suite: Suite, name: str, folder: Path, workers: Workers) -> None:
    """Sample the corpora of one language, unless they exist.

    Raises:
        InputError: the language has no strings of these lengths, or another corpus is there.
    """
    truth = truth_of(suite.languages[name])
    for path, plan in _plans(suite, name, truth, folder).items():
        with exclusive(path, wait=True):  # of several jobs that start together, the first samples
            make_corpus(truth, plan, path, workers=workers, keep=path.exists())


class ReadCorpus(Corpus):
    """A corpus whose splits are read once: each is kept as numbers, four bytes a word."""

    @cached_property
    def _kept(self) -> dict[str, CodedSentences]:
        return {}

    @override
    def coded(self, split: str) -> CodedSentences:
        # the same object at each call
        if split not in self._kept:
            self._kept[split] = super().coded(split)
        return self._kept[split]


def corpus_of(folder: Path, name: str) -> ReadCorpus:
    """Return the corpus of a language, with splits train, dev and test."""
    return ReadCorpus.load(corpus_folder(folder, name))


def longer_strings(folder: Path, name: str) -> list[list[str]]:
    """Return the longer strings of a language."""
    return Corpus.load(longer_folder(folder, name)).sentences("test")


def known_words(corpus: Corpus, min_count: int) -> dict[str, int]:
    """Return the words that models tell apart, in order, and their counts in the train split, if large enough."""
    train = corpus.coded("train")
    counts = zip(train.words, train.counts().tolist(), strict=True)
    return {word: n for word, n in sorted(counts) if n >= min_count}


Part = Literal["test", "longer"]


class LanguageTruth:
    """The truth about a language of a suite.

    For strings of ``test``, the truth has the length condition of the training strings. For longer strings it is the
    grammar without a condition, and only positions beyond the longest training string count: a learner who has found
    the grammar behind its data would predict it there.

    Args:
        suite: that the language is in.
        name: of the language there.
        folder: with its corpora.
    """

    def __init__(self, suite: Suite, name: str, folder: Path) -> None:
        self.suite, self.name = suite, name
        self.language = suite.languages[name]
        self.distribution = truth_of(self.language)
        self._folder = folder
        self._kept: dict[tuple[Objective, tuple[str, ...] | None, Part, str], CachedTruth] = {}

    @cached_property
    def corpus(self) -> ReadCorpus:
        """Corpus of the language."""
        return corpus_of(self._folder, self.name)

    @cached_property
    def known(self) -> dict[str, int]:
        """The words that models tell apart, and how often each occurs in the train split."""
        return known_words(self.corpus, self.suite.training.min_count)

    @cached_property
    def _strings(self) -> dict[Part, list[list[str]]]:
        strings: dict[Part, list[list[str]]] = {"test": self.corpus.sentences("test")}
        if self.language.longer is not None:
            strings["longer"] = longer_strings(self._folder, self.name)
        return strings

    @property
    def parts(self) -> tuple[Part, ...]:
        """The parts of the language with strings: the test text, and longer strings if it has them."""
        return tuple(self._strings)

    def oracle(self, model: DistributionModel, part: Part) -> Oracle:
        """Return the truth that a model is compared with."""
        return oracle_for(model, self.distribution, self._lengths(part))

    def measured(self, model: LanguageModel, part: Part) -> Contexts:
        """Measure a model and the truth in every context of the strings of a part; models of pieces in words.

        Raises:
            InputError: as `truesource.evaluation.divergence.contexts.measure_contexts`.
        """
        tokens, cut = self._setting(part).with_distributions(model)
        oracle = oracle_for(tokens, cut.known, cut.lengths)
        contexts = sum(len(string) + 1 for string in cut.sentences)
        blocks = None
        if contexts * len(oracle.words) * 8 <= KEPT:
            key = tokens.objective, tokens.vocabulary, part, cut.known.digest
            if key not in self._kept:
                self._kept[key] = cache_truth(tokens, cut, contexts=contexts, dtype=np.float64)
            blocks = self._kept[key].blocks(tokens)
        measured = measure_contexts(tokens, oracle, cut.sentences, blocks=blocks)
        return in_words(measured, cut.known, cut.sentences) if isinstance(cut.known, TokenisedTruth) else measured

    def tokens(self, model: LanguageModel, part: Part) -> int:
        """Return the most tokens of a string that a model must read, its marks included."""
        setting = self._setting(part)
        _, cut = setting.with_distributions(model)
        if cut is setting:
            return (self.language.range.high if part == "test" else self.language.longest) + 2
        return max(map(len, cut.sentences)) + 1

    def _setting(self, part: Part) -> Setting:
        return Setting(self.distribution, self._strings[part], self._lengths(part))

    def counted(self, measured: Contexts, part: Part) -> BoolArray:
        """Mark the contexts that count, (T,)."""
        return measured.position >= (self.language.range.high if part == "longer" else 0)

    def blocks(self, measured: Contexts, part: Part, values: FloatArray) -> list[float]:
        """Return the sums of values of contexts that count, (T,), in the blocks of strings."""
        size = self.suite.sizes.blocks
        counted = self.counted(measured, part)
        sums = np.bincount(measured.sentence[counted] % size, weights=values[counted], minlength=size)
        return [float(value) for value in sums]

    def record(self, objective: Objective) -> TruthRecord:
        """Return the record of the truth for models of an objective."""
        frequencies = true_frequencies(
            Oracle(self.distribution, objective, lengths=self._lengths("test"), vocabulary=self.known)
        )
        test, longer = (
            self._contexts(frequencies, part) if part in self.parts else None for part in ("test", "longer")
        )
        assert test is not None
        return {"test": test, "longer": longer}

    def _contexts(self, frequencies: ConstantModel, part: Part) -> TruthContexts:
        contexts = self.measured(frequencies, part)
        equal = self.measured(equal_frequencies(self.oracle(frequencies, part)), part)
        counted = self.counted(contexts, part)
        return {
            "contexts": [round(value) for value in self.blocks(contexts, part, np.ones(len(contexts.values)))],
            "information": self.blocks(contexts, part, contexts.column("kl")),
            "entropy": float(contexts.column("entropy_truth")[counted].mean()),
            "impossible": float(equal.column("impossible_mass")[counted].mean()),
        }

    def _lengths(self, part: Part) -> LengthRange | None:
        return self.language.range if part == "test" else None
