"""The truth beside checkpoints of one kind, computed once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np

from truesource.evaluation.core.comparison import BothScored, oracle_for, score_both
from truesource.evaluation.core.exclusion import Exclusion
from truesource.evaluation.core.oracle import Oracle
from truesource.evaluation.core.score import Score
from truesource.evaluation.core.tag_classes import TagClasses
from truesource.evaluation.divergence.blocks import Events, events_of
from truesource.evaluation.divergence.cached import CachedTruth, cache_truth
from truesource.evaluation.divergence.compare import compare_distributions
from truesource.evaluation.divergence.settings import By as ExactBy
from truesource.evaluation.dynamics.averages import enough_sentences
from truesource.evaluation.dynamics.groupings import ALL
from truesource.generator.abilities import offers
from truesource.generator.language_model import DistributionModel, LanguageModel, ScoringFrame, TokenScores
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import IntArray
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.printable import few_code


@dataclass(frozen=True, eq=False)
class ExactTable:
    """The exact divergence of some groups."""

    scores: dict[str, Score]
    infinite: dict[str, int]  #: contexts in which it is infinite, which the score leaves out
    tokens: dict[str, float]  #: contexts, or expected tokens of a group of words


@dataclass(frozen=True, eq=False, kw_only=True)
class OracleScores:
    """What is known of the truth for all models of one objective and vocabulary; made by `oracle_scores`."""

    pcfg: PCFG
    sentences: Sequence[Sequence[str]]
    lengths: LengthRange | None
    frame: ScoringFrame
    objective: str
    vocabulary: tuple[str, ...] | None
    oracle: Oracle
    events: Events
    scores: TokenScores
    cached: CachedTruth | None  #: None: the models have no full distributions, or they are not wanted
    excluded: Exclusion | None  #: what the sentences leave out; ``scores`` leave it out too, ``cached`` does not

    def score(self, step: int, model: LanguageModel, seed: int) -> BothScored:
        """A checkpoint and the truth on the same positions.

        Raises:
            InputError: it has another objective or vocabulary, or no sentence is possible for both.
        """
        if (model.objective, model.vocabulary) != (self.objective, self.vocabulary):
            raise InputError(f"the checkpoint of step {step} has another objective or vocabulary than the first one")
        return score_both(
            model,
            self.pcfg,
            self.sentences,
            lengths=self.lengths,
            frame=self.frame,
            seed=seed,
            truth=self.scores,
            excluded=self.excluded,
        )

    def exact(
        self,
        model: LanguageModel,
        by: Sequence[ExactBy],
        *,
        classes: TagClasses,
        seed: int,
        signed: Mapping[str, object],
    ) -> dict[str, ExactTable]:
        """The exact divergence of a checkpoint, of all tokens and by what is asked for; nothing without a cache.

        Sentence lengths and positions that too few sentences have get no interval.
        """
        if self.cached is None:
            return {}
        found = compare_distributions(
            cast("DistributionModel", model),  # a truth is kept only for such models
            self.pcfg,
            self.cached.inputs,
            lengths=self.lengths,
            by=by,
            classes=classes,
            seed=seed,
            truth=self.cached,
            signed=signed,
            excluded=self.excluded,
        )
        whole = found.scores.get("kl") or found.scores.get("kl_where_finite")
        infinite = round(found.scores["kl_infinite"].value * found.contexts)
        every = {} if whole is None else {ALL: self._with_interval(whole, self._sizes)}
        tables = {"all": ExactTable(every, {ALL: infinite} if infinite else {}, {ALL: float(found.contexts)})}
        for name, rows in found.tables.items():
            tables[name] = ExactTable(
                {
                    row.group: self._with_interval(row.scores["kl"], self._having(name, row.group))
                    for row in rows
                    if "kl" in row.scores
                },
                {row.group: row.infinite for row in rows if row.infinite},
                {row.group: row.tokens for row in rows},
            )
        return tables

    @cached_property
    def _sizes(self) -> IntArray:
        """Words of each sentence that the exact divergence is of."""
        assert self.cached is not None
        found = [
            len(words)
            for rows, blocks in self.cached.groups
            for words, members in zip(rows, blocks[0].members, strict=True)
            for _ in members
        ]
        return np.array(found, dtype=np.int64)

    def _having(self, by: str, group: str) -> IntArray:
        """Lengths of the sentences with a context in the group; of all, for groups of words."""
        sizes: IntArray = self._sizes
        if by == "length":
            return np.extract(sizes == int(group), sizes)
        if by == "position":
            return np.extract(sizes + self.events.causal >= int(group), sizes)
        return sizes

    @staticmethod
    def _with_interval(score: Score, sentences: IntArray) -> Score:
        if enough_sentences(np.ones(len(sentences))):
            return score
        return score.without_interval(few_code())


def oracle_scores(
    model: LanguageModel,
    pcfg: PCFG,
    sentences: Sequence[Sequence[str]],
    *,
    lengths: LengthRange | None,
    frame: ScoringFrame,
    contexts: int,
    states: bool,
    excluded: Exclusion | None = None,
) -> OracleScores:
    """Score the truth for models like this one, and keep its distributions in about so many contexts.

    Raises:
        InputError: the truth can make none of the sentences.
    """
    oracle = oracle_for(model, pcfg, lengths)
    scores = oracle_for(model, pcfg, lengths, frame, excluded).score(sentences, frame)
    cached = None
    if contexts and offers(model, "distributions"):
        cached = cache_truth(
            cast("DistributionModel", model),
            pcfg,
            sentences,
            lengths=lengths,
            contexts=contexts,
            dtype=np.float64,
            states=states,
        )
    return OracleScores(
        pcfg=pcfg,
        sentences=sentences,
        lengths=lengths,
        frame=frame,
        objective=model.objective,
        vocabulary=model.vocabulary,
        oracle=oracle,
        events=events_of(model, oracle),
        scores=scores,
        cached=cached,
        excluded=excluded,
    )
