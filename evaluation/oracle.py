"""The truth as a language model: a grammar that scores, predicts and samples exactly."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from generator.frame import ScoringFrame
from generator.language_model import Objective, TokenScores, assemble_scores
from grammar.conditioning import LengthRange
from grammar.inference.exact import NextToken
from grammar.pcfg import PCFG

UNKNOWN = "<unk>"


class Oracle:
    """The exact distribution of a grammar, as a `LanguageModel`.

    Args:
        pcfg: the grammar that the corpus was drawn from.
        objective: ``causal`` (next token given the left context) or ``masked`` (token given all others).
        lengths: the corpus's length condition; None is the unconditioned grammar. A masked score does not
            depend on it, as the length is given.
        vocabulary: words that the model compared with tells apart. All others read ``<unk>`` for the oracle
            too, as target and as context: the exact truth of the collapsed language. None: every word.
    """

    def __init__(
        self,
        pcfg: PCFG,
        objective: Objective = "causal",
        *,
        lengths: LengthRange | None = None,
        vocabulary: Iterable[str] | None = None,
    ) -> None:
        self.pcfg = pcfg
        self.objective: Objective = objective
        self.lengths = lengths
        self.vocabulary = None if vocabulary is None else tuple(sorted(set(vocabulary) & set(pcfg.terminals)))
        self.name = "oracle"
        self._language = pcfg if self.vocabulary is None else pcfg.collapse(self.vocabulary, UNKNOWN)

    @property
    def language(self) -> PCFG:
        """The grammar after the vocabulary is collapsed."""
        return self._language

    @property
    def condition(self) -> str:
        """What the scores are conditioned on, for signatures."""
        if self.objective == "masked":
            return "length"
        return "none" if self.lengths is None else str(self.lengths)

    def read(self, sentence: Sequence[str]) -> list[str]:
        """The sentence as the oracle sees it: words outside its vocabulary are ``<unk>``."""
        known = self._language.word_ids
        return list(sentence) if self.vocabulary is None else [w if w in known else UNKNOWN for w in sentence]

    def score(self, sentences: Sequence[Sequence[str]], frame: ScoringFrame) -> TokenScores:
        """Exact log probabilities, nats, of the positions that ``frame`` counts.

        Sentences that the grammar (or the length range) cannot make are listed in ``impossible``.
        """
        seen = [self.read(sentence) for sentence in sentences]
        exact = self._language.exact
        if self.objective == "masked":
            rows = exact.masked_log_probs(seen)
        else:
            rows = exact.causal_log_probs(seen, self.lengths)
        unknown = [np.array([word == UNKNOWN for word in sentence]) for sentence in seen]
        return assemble_scores(rows, unknown, frame)

    def next_token(self, prefix: Sequence[str]) -> NextToken:
        """The exact next-token distribution after ``prefix``."""
        return self._language.next_token(self.read(prefix), self.lengths)

    def sample(self, n: int, seed: int) -> list[list[str]]:
        """N sentences drawn from the distribution that `score` scores."""
        from generator.sampler import Sampler, random_state

        sampler = Sampler(self._language, self.lengths)
        return sampler.sentences(sampler.draw(n, random_state(seed)))
