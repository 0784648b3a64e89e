"""The corpora of a suite: recipes with seeds, so that everyone has the same bytes without a download."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

from truesource.benchmark.suite import Suite, SuiteLanguage
from truesource.generator.columns import CodedSentences
from truesource.generator.corpus import Corpus
from truesource.generator.corpus_builder import make_corpus
from truesource.generator.plan import Columns, Plan, mean_length
from truesource.grammar.diagnostics import require_consistent
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.locks import exclusive
from truesource.grammar.support.parallel import Workers

LONGER_SEED = 1  #: added to the seed of a suite for strings longer than those of training


def grammar_of(language: SuiteLanguage) -> PCFG:
    """The grammar of a language.

    Raises:
        InputError: there is no such language, or its derivations may not end.
    """
    pcfg = PCFG.load(language.language)
    require_consistent(pcfg)
    return pcfg


def corpus_folder(folder: Path, name: str) -> Path:
    """Where the corpus of a language lies in a folder of results."""
    return folder / "corpora" / name


def longer_folder(folder: Path, name: str) -> Path:
    """Where its longer strings lie."""
    return folder / "corpora" / f"{name}-longer"


def train_sentences(suite: Suite, language: SuiteLanguage, pcfg: PCFG) -> int:
    """Strings of the train split: as many as have the tokens of the budget, in expectation, with their ends."""
    return max(1, round(suite.training.tokens / (mean_length(pcfg, language.range, None) + 1.0)))


def make_corpora(suite: Suite, name: str, folder: Path, workers: Workers) -> None:
    """Sample the corpora of one language, unless they stand there.

    Raises:
        InputError: the language has no strings of these lengths, or another corpus stands there.
    """
    language = suite.languages[name]
    pcfg = grammar_of(language)
    sizes = {
        "train": train_sentences(suite, language, pcfg),
        "dev": suite.sizes.dev,
        "test": suite.sizes.test,
    }
    plain = Columns(trees="none", split=False)
    plans = {corpus_folder(folder, name): Plan(sizes, suite.seed, language.range, columns=plain)}
    if language.longer_range is not None:
        longer = {"test": suite.sizes.longer}
        seed = suite.seed + LONGER_SEED
        plans[longer_folder(folder, name)] = Plan(longer, seed, language.longer_range, columns=plain)
    for path, plan in plans.items():
        with exclusive(path, wait=True):  # of several jobs that start together, the first samples
            make_corpus(pcfg, plan, path, workers=workers, keep=path.exists())


class ReadCorpus(Corpus):
    """A corpus whose splits are read once: each is kept as numbers, four bytes a word."""

    @cached_property
    def _kept(self) -> dict[str, CodedSentences]:
        return {}

    def coded(self, split: str) -> CodedSentences:
        """As `Corpus.coded`, the same object at each call."""
        if split not in self._kept:
            self._kept[split] = super().coded(split)
        return self._kept[split]


def corpus_of(folder: Path, name: str) -> ReadCorpus:
    """The corpus of a language, with splits train, dev and test."""
    return ReadCorpus.load(corpus_folder(folder, name))


def longer_strings(folder: Path, name: str) -> list[list[str]]:
    """The longer strings of a language."""
    return Corpus.load(longer_folder(folder, name)).sentences("test")


def known_words(corpus: Corpus, min_count: int) -> dict[str, int]:
    """The words that models tell apart, in order, and how often each occurs in the train split: often enough."""
    train = corpus.coded("train")
    counts = zip(train.words, train.counts().tolist(), strict=True)
    return {word: n for word, n in sorted(counts) if n >= min_count}
