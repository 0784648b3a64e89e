"""What a kind of pair has to offer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from truesource.evaluation.pairs.constituents import Constituents
from truesource.evaluation.pairs.lexicon import Lexicon
from truesource.evaluation.pairs.pair import Stratum, Words
from truesource.evaluation.pairs.sampled_sentence import PairChange, SampledSentence
from truesource.evaluation.pairs.settings import PairSettings


class Phenomenon(ABC):
    """One controlled difference between two sentences."""

    name: ClassVar[str]
    outside: ClassVar[bool] = False  #: it looks at `SampledSentence.log_odds` of most sentences

    @abstractmethod
    def missing(self, lexicon: Lexicon) -> str | None:
        """Why the grammar can have no such pairs; None: it may."""

    @abstractmethod
    def change(self, sentence: SampledSentence, settings: PairSettings, rng: np.random.Generator) -> PairChange | None:
        """A changed sentence of the same length, at random; None where this one has nothing to change."""

    @abstractmethod
    def strata(self, tree: Constituents, words: Words, change: PairChange, lexicon: Lexicon) -> dict[str, Stratum]:
        """Properties to report by.

        Args:
            tree: the most probable one of ``words``, with treebank labels.
            words: the more probable sentence of the pair.
            change: what was done.
            lexicon: of the grammar.
        """

    def facts(self, change: PairChange, swapped: bool, log_odds: float | None) -> Mapping[str, float | None]:
        """Other exact numbers of the pair.

        Args:
            change: what was done.
            swapped: the changed sentence is the more probable one.
            log_odds: ln P(more probable) / P(less probable); None where the latter is zero.
        """
        return {}
