"""Language models small enough to be read, with full distributions by plain loops."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from truesource.generator.language_model import LogDistributions, ScoringFrame, TokenScores, assemble_scores
from truesource.generator.objectives import Objective

END = "</s>"


def log(p: float) -> float:
    return math.log(p) if p > 0.0 else -math.inf


@dataclass(frozen=True)
class Table:
    """What comes next depends on the word before only, or for a masked model on the word to the left.

    ``table`` has for each word before (``<s>`` at the start) the probability of words, ``<unk>`` and the end; what is
    missing to 1 is lost on tokens that no sentence contains.
    """

    table: Mapping[str, Mapping[str, float]]
    vocabulary: tuple[str, ...]
    objective: Objective = "causal"
    name: str = "table"

    def read(self, sentence: Sequence[str]) -> list[str]:
        return [word if word in self.vocabulary else "<unk>" for word in sentence]

    def rows(self, sentence: Sequence[str]) -> list[Mapping[str, float]]:
        """What is expected at each position."""
        before = ["<s>", *self.read(sentence)]
        return [self.table[word] for word in (before if self.objective == "causal" else before[:-1])]

    @property
    def columns(self) -> list[str]:
        return [*self.vocabulary, "<unk>", *([END] if self.objective == "causal" else [])]

    def score(self, sentences: Sequence[Sequence[str]], frame: ScoringFrame) -> TokenScores:
        found, unknown = [], []
        for sentence in sentences:
            read = self.read(sentence)
            targets = [*read, END] if self.objective == "causal" else read
            found.append(np.array([log(row.get(w, 0.0)) for row, w in zip(self.rows(sentence), targets, strict=True)]))
            unknown.append(np.array([word == "<unk>" for word in read]))
        return assemble_scores(found, unknown, frame)

    def distributions(self, sentences: Sequence[Sequence[str]]) -> Iterator[LogDistributions]:
        rows = [self.rows(sentence) for sentence in sentences]
        for position in range(len(rows[0])):
            table = [[log(row[position].get(word, 0.0)) for word in self.columns] for row in rows]
            yield LogDistributions(position, np.array(table))
