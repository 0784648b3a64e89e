"""The words of a grammar by tag and frequency, exact."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from truesource.evaluation.pairs.forms import Forms, english_forms, read_forms
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.inference.expected import expected_counts
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Lexicon:
    """Expected counts of the words of a grammar, given a range of lengths or not."""

    pcfg: PCFG
    lengths: LengthRange | None
    forms_file: Path | None = None  #: forms that differ in number; None: English ones

    @cached_property
    def _counts(self) -> tuple[FloatArray, FloatArray]:
        found = expected_counts(self.pcfg, self.lengths)
        return found.words, found.lexical

    @cached_property
    def unigram(self) -> FloatArray:
        """Ln of the share of each word among the tokens of sentences, ends not counted, (V,) nats; -inf at zero."""
        words = self._counts[0]
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(words / words.sum()))

    @cached_property
    def tags(self) -> dict[str, dict[str, float]]:
        """For each label that makes words, its words and their expected number in a sentence."""
        found: dict[str, dict[str, float]] = {}
        rules, terminals, labels = self.pcfg.lexical.tolist(), self.pcfg.terminals, self.pcfg.labels
        for (symbol, word), count in zip(rules, self._counts[1].tolist(), strict=True):
            if count > 0.0:
                words = found.setdefault(labels[symbol], {})
                words[terminals[word]] = words.get(terminals[word], 0.0) + count
        return found

    @cached_property
    def main_tag(self) -> dict[str, str]:
        """The tag under which each word is most often expected; of equals the first by name."""
        best: dict[str, tuple[float, str]] = {}
        for tag in sorted(self.tags):
            for word, count in self.tags[tag].items():
                if word not in best or count > best[word][0]:
                    best[word] = (count, tag)
        return {word: tag for word, (_, tag) in best.items()}

    @cached_property
    def members(self) -> dict[str, IntArray]:
        """Numbers of the words of each tag that have no more frequent tag, ascending."""
        found: dict[str, list[int]] = {}
        for word, tag in self.main_tag.items():
            found.setdefault(tag, []).append(self.pcfg.word_ids[word])
        return {tag: np.array(sorted(words), dtype=np.int64) for tag, words in found.items()}

    @cached_property
    def forms(self) -> Forms:
        """Forms that differ in number."""
        if self.forms_file is not None:
            return read_forms(self.forms_file, self.pcfg.terminals)
        return english_forms(self.tags)

    def alike(self, word: str, tag: str, tolerance: float) -> IntArray:
        """Other words of a tag whose unigram log probability differs by at most ``tolerance`` nats, ascending."""
        own = self.pcfg.word_ids[word]
        words = self.members.get(tag, np.empty(0, dtype=np.int64))
        near = np.abs(self.unigram[words] - self.unigram[own]) <= tolerance
        return np.asarray(words[near & (words != own)])
