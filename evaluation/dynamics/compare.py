"""Comparison of the checkpoints of a model with the truth, by kinds of words and of places.

* ``log_ratio``: mean of ln Q - ln P over the tokens of a group, which is minus their part of KL(P || Q). A token
  that is half in a class counts half.
* ``log_ratio_median``: the median, which the published curves show (a half token has half the weight).
* ``kl``: the exact KL(P || Q) of a group in about the first ``settings.contexts`` positions; see
  `evaluation.divergence.compare.compare_distributions`. By class, the class is of the symbol of the next
  word given its left context (or, masked, given all others). By class and by frequency, it is the part of the
  divergence due to the words of a group, per token of the group, which may be below 0; models of pieces have none
  there. It is missing by depth, and in frames other than the default, as it covers all positions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import get_args

import numpy as np

from truesource.evaluation.core.comparison import ScorePair, score_both
from truesource.evaluation.core.oracle import Oracle
from truesource.evaluation.core.score import Score
from truesource.evaluation.core.setting import Setting
from truesource.evaluation.core.windows import BestWithin
from truesource.evaluation.divergence import OF_EVENTS
from truesource.evaluation.divergence import By as ExactBy
from truesource.evaluation.divergence.blocks import PENN, Events, TagClasses, events_of, frequency_bands, tags_of
from truesource.evaluation.divergence.compare import compare_distributions
from truesource.evaluation.divergence.contexts import CachedTruth, cache_truth
from truesource.evaluation.dynamics import CurveSettings, groupings
from truesource.evaluation.dynamics.groupings import (
    ALL,
    Grouping,
    Means,
    Places,
    Structure,
    drawn_structure,
    enough_sentences,
    expected_structure,
    group_means,
    group_medians,
    median_intervals,
    tree_structure,
)
from truesource.evaluation.dynamics.table import (
    Crossings,
    Dynamics,
    LearningCurves,
    Line,
    Milestone,
    crossings,
    milestones,
    stays_below,
)
from truesource.evaluation.measures.bootstrap import Interval, ends, resampled_ratio, resampled_sums
from truesource.evaluation.measures.paired import Paired
from truesource.generator.abilities import offers
from truesource.generator.language_model import LanguageModel, TokenScores
from truesource.grammar.inference.nonnegative_matrices import CRITICAL
from truesource.grammar.pieces.truth import TokenisedTruth
from truesource.grammar.support.arrays import FloatArray, Int32Array, IntArray
from truesource.grammar.support.errors import InputError, NothingToMeasureError
from truesource.grammar.support.printable import few_code, meter
from truesource.grammar.tree import Tree


@dataclass(frozen=True, eq=False)
class ExactTable:
    """The exact divergence by group."""

    scores: dict[str, Score]
    infinite: dict[str, int]  #: contexts with infinite divergence, which the score excludes
    tokens: dict[str, float]  #: contexts, or expected tokens of a group of words


@dataclass(frozen=True, eq=False, kw_only=True)
class OracleScores:
    """Scores of the truth for all models of one objective and vocabulary; built by `oracle_scores`."""

    setting: Setting
    objective: str
    vocabulary: tuple[str, ...] | None
    oracle: Oracle
    events: Events
    scores: TokenScores  #: scores of the truth
    #: full distributions without exclusions; None: models have none, or they are not requested
    cached: CachedTruth | None

    def score(self, step: int, model: LanguageModel) -> ScorePair:
        """A checkpoint and the truth on the same positions.

        Raises:
            InputError: the checkpoint has another objective or vocabulary, or no sentence is possible for both.
        """
        if (model.objective, model.vocabulary) != (self.objective, self.vocabulary):
            raise InputError(f"the checkpoint of step {step} has another objective or vocabulary than the first one")
        return score_both(model, self.setting)

    def exact(
        self,
        model: LanguageModel,
        by: Sequence[ExactBy],
        *,
        classes: TagClasses,
        signed: Mapping[str, object],
    ) -> dict[str, ExactTable]:
        """Compute the exact divergence of a checkpoint, in total and by requested groups; empty without a cache.

        Sentence lengths and positions of too few sentences have no interval.
        """
        if self.cached is None:
            return {}
        divergence = compare_distributions(
            model,
            self.setting.first(len(self.cached.inputs)),
            by=[name for name in by if not self._of_pieces or name not in OF_EVENTS],
            classes=classes,
            truth=self.cached,
            signed=signed,
        )
        whole = divergence.scores.get("kl") or divergence.scores.get("kl_where_finite")
        infinite = round(divergence.scores["kl_infinite"].value * divergence.contexts)
        every = {} if whole is None else {ALL: self._with_interval(whole, self._sizes)}
        tables = {"all": ExactTable(every, {ALL: infinite} if infinite else {}, {ALL: float(divergence.contexts)})}
        for name, rows in divergence.tables.items():
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
        """Return the number of words of each sentence in the exact divergence."""
        assert self.cached is not None
        groups = [blocks[0].members for _, blocks in self.cached.groups]
        numbers = [number for rows in groups for members in rows for number in members]
        return np.array([len(self.setting.sentences[number]) for number in numbers], dtype=np.int64)

    @property
    def _of_pieces(self) -> bool:
        return self.cached is not None and isinstance(self.cached.oracle.truth, TokenisedTruth)

    def _having(self, by: str, group: str) -> IntArray:
        """Return the lengths of sentences with a context in the group; for groups of words, of all sentences."""
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


def oracle_scores(model: LanguageModel, setting: Setting, *, contexts: int, states: bool) -> OracleScores:
    """Score the truth for models like this one, and cache its distributions in about this many contexts.

    Raises:
        InputError: the truth gives all sentences probability 0.
    """
    oracle = setting.full_oracle(model)
    scores = setting.truth(model)
    cached = None
    if contexts and (distributed := setting.distributed(model, of_words=True)) is not None:
        tokens, cut = distributed
        cached = cache_truth(tokens, cut, contexts=contexts, dtype=np.float64, states=states and cut is setting)
    return OracleScores(
        setting=setting,
        objective=model.objective,
        vocabulary=model.vocabulary,
        oracle=oracle,
        events=events_of(model, oracle),
        scores=scores,
        cached=cached,
    )


@dataclass(frozen=True, eq=False)
class _Scored:
    """The scores of all checkpoints of a model."""

    truth: OracleScores
    groups: _Groups
    steps: list[int] = field(default_factory=list)
    both: list[ScorePair] = field(default_factory=list)
    exact: list[dict[str, ExactTable]] = field(default_factory=list)


def learning_dynamics(
    checkpoints: Iterable[tuple[int, LanguageModel]],
    setting: Setting,
    *,
    name: str,
    settings: CurveSettings | None = None,
    classes: TagClasses = PENN,
    trees: Sequence[Tree] | None = None,
) -> Dynamics:
    """Measure every checkpoint of one model against the exact truth, which is computed once; one model is in memory.

    Args:
        checkpoints: ascending steps, with models of one objective and one vocabulary.
        setting: text and truth; its seed also samples the derivations for the tags ``drawn``. What the sentences
            exclude, the truth excludes too, except for ``kl`` (``disjoint:uncorrected``).
        name: name of the model.
        settings: None: the default settings.
        classes: classes of tags.
        trees: derivations of the sentences with treebank labels, for the tags ``paper``.

    Raises:
        InputError: derivations are missing, the classes miss a tag; there are no checkpoints, their steps do not rise,
            they differ in objective or vocabulary; no sentence is possible for all of them and the truth.
    """
    settings = settings or CurveSettings()
    if settings.tags == "paper" and (trees is None or len(trees) != len(setting.sentences)):
        raise InputError("tags 'paper' need the derivations that sentences were sampled with; add them, or use 'drawn'")
    if "class" in settings.by:
        classes.table(tags_of(setting.grammar))
    scored = None
    for step, model in checkpoints:
        if scored is None:
            truth = oracle_scores(
                model,
                setting,
                contexts=settings.contexts if setting.frame == "default" else 0,
                states="class" in settings.by,
            )
            scored = _Scored(truth, _Groups.of(truth, settings, classes, trees))
        elif step <= scored.steps[-1]:
            raise InputError(f"the steps of checkpoints must be ascending, but {step} comes after {scored.steps[-1]}")
        scored.steps.append(step)
        scored.both.append(scored.truth.score(step, model))
        by = [name for name in get_args(ExactBy) if name in settings.by]
        signed = {"model": name, "step": step}
        scored.exact.append(scored.truth.exact(model, by, classes=classes, signed=signed))
    if scored is None:
        raise InputError("there are no checkpoints to compare")
    return _dynamics(scored, name, settings)


def _dynamics(scored: _Scored, name: str, settings: CurveSettings) -> Dynamics:
    truth, seed = scored.truth, scored.truth.setting.seed
    sentences = truth.setting.sentences
    places, gaps = _together([both.paired for both in scored.both], sentences)
    left_out = len(places.paired.excluded)
    group_sizes = {
        "sentences": len(sentences) - left_out,
        "excluded": left_out,
        "tokens": places.paired.tokens,
        "tags": settings.tags,
        "classes": scored.groups.classes.origin,
        "model": name,
    }
    return Dynamics(
        model=name,
        objective=truth.objective,
        steps=tuple(scored.steps),
        curves={
            grouping.by: _curves(grouping, gaps, places, scored, settings.threshold, seed)
            for grouping in scored.groups.of_places(places, truth, settings.by)
        },
        lines=_lines(truth, settings.lines, scored.steps, gaps, places),
        level=settings.threshold,
        contexts=0 if truth.cached is None else truth.cached.contexts,
        frame=str(truth.setting.frame),
        tags=settings.tags,
        tokens=places.paired.tokens,
        sentences=len(sentences) - left_out,
        impossible_model=places.paired.impossible_model,
        impossible_truth=places.paired.impossible_oracle,
        seed=seed,
        parts={**scored.both[-1].parts, **group_sizes},
    )


def _lines(
    truth: OracleScores, number: int, steps: Sequence[int], gaps: FloatArray, places: Places
) -> tuple[Line, ...]:
    """Compare optimal predictors of 0 to ``number`` - 1 words with ln Q - ln P, (T, C), of a causal model.

    They do not exclude sentences of earlier splits. The list is empty in a frame that skips unknown words, if the
    expected sentence length is infinite, and for a process.
    """
    setting, frame = truth.setting, truth.scores.frame
    if truth.objective != "causal" or not number or frame.unk != "token" or not offers(setting.known, "windows"):
        return ()
    if setting.lengths is None and setting.grammar.exact.spectral_radius >= 1.0 - CRITICAL:
        return ()
    best = BestWithin(setting.grammar, 0, lengths=setting.lengths, vocabulary=truth.vocabulary)
    sentences, paired = [setting.sentences[i] for i in places.numbers.tolist()], places.paired
    rows = [best.with_words(k).score(sentences, frame).log_prob - paired.oracle for k in range(number)]
    row = np.unique(paired.sentence, return_inverse=True)[1]
    counts = np.bincount(row).astype(np.float64)
    sums = np.stack([np.bincount(row, column) for column in (*gaps.T, *rows)], axis=1).astype(np.float64)
    mean, c = sums.sum(axis=0) / counts.sum(), len(steps)
    resampled = resampled_sums(np.column_stack([sums, counts]), seed=setting.seed)
    resampled = resampled[:, :-1] / resampled[:, -1:]
    there = np.full((len(resampled), 1), enough_sentences(counts))
    lines = []
    for k in range(number):
        crossed = stays_below(steps, -mean[None, :c], -mean[None, c + k])
        again = stays_below(steps, -resampled[:, None, :c], -resampled[:, c + k, None])
        low, high = ends(*resampled_ratio(sums[:, c + k], counts, seed=setting.seed))
        lines.append(Line(k, *Interval(float(mean[c + k]), low, high), milestones(crossed, again, there)[0]))
    return tuple(lines)


def _all_of(numbers: Sequence[Int32Array]) -> Int32Array:
    """Return the sentences that occur in any of the arrays, each once, ascending."""
    return np.unique(np.concatenate(numbers))


def _together(checkpoints: Sequence[Paired], sentences: Sequence[Sequence[str]]) -> tuple[Places, FloatArray]:
    """Return the positions that count at every checkpoint, and their ln Q - ln P, (T, C)."""
    excluded = _all_of([paired.excluded for paired in checkpoints])
    masks = [~np.isin(paired.sentence, excluded) for paired in checkpoints]
    if not masks[0].any():
        raise NothingToMeasureError(
            f"none of the {len(sentences)} sentences is possible for all checkpoints and the truth",
            "no-common-sentence",
        )
    gaps = np.stack([(p.model - p.oracle)[mask] for p, mask in zip(checkpoints, masks, strict=True)], axis=1)
    first, mask = checkpoints[0], masks[0]
    paired = replace(
        first,
        model=first.model[mask],
        oracle=first.oracle[mask],
        sentence=first.sentence[mask],
        position=first.position[mask],
        impossible_model=_all_of([paired.impossible_model for paired in checkpoints]),
        impossible_oracle=_all_of([paired.impossible_oracle for paired in checkpoints]),
    )
    return Places(paired, sentences, np.unique(paired.sentence).astype(np.int64)), gaps


@dataclass(frozen=True, eq=False)
class _Groups:
    """The classes, structure and bands of groups, computed before any model is scored."""

    classes: TagClasses
    structure: Structure | None  #: of the words of sentences that are possible under the truth
    first: IntArray  #: (N,) number of each sentence's first word in the structure
    bands: tuple[IntArray, tuple[str, ...]] | None  #: bands of word frequency

    @classmethod
    def of(
        cls,
        truth: OracleScores,
        settings: CurveSettings,
        classes: TagClasses,
        trees: Sequence[Tree] | None,
    ) -> _Groups:
        """Compute the groups that the settings request."""
        sentences = truth.setting.sentences
        possible = np.ones(len(sentences), dtype=bool)
        possible[truth.scores.impossible] = False
        sizes = np.array([len(sentence) for sentence in sentences]) * possible
        structure = None
        if {"class", "depth"} & set(settings.by) and possible.any():
            numbers = np.flatnonzero(possible).tolist()
            possible_sentences = [sentences[i] for i in numbers]
            if settings.tags == "paper" and trees is not None:
                structure = tree_structure(trees[i] for i in numbers)
            elif settings.tags == "drawn":
                structure = drawn_structure(truth.oracle, possible_sentences, truth.setting.seed)
            else:
                structure = expected_structure(truth.oracle, possible_sentences)
            if "class" in settings.by:
                classes.table(structure.labels)
        bands = frequency_bands(truth.oracle, truth.events) if "frequency" in settings.by else None
        return cls(classes, structure, np.cumsum(sizes) - sizes, bands)

    def of_places(self, places: Places, truth: OracleScores, requested: Collection[str]) -> Iterator[Grouping]:
        """Yield all tokens, then the requested groups, one at a time, as each has the size of all positions."""
        structure = None
        if self.structure is not None:
            numbers = places.numbers.tolist()
            words = np.concatenate([self.first[i] + np.arange(len(places.sentences[i])) for i in numbers])
            structure = Structure(self.structure.labels, self.structure.tags[words], self.structure.depth[words])
        yield groupings.by_all(places)
        if "class" in requested and structure is not None:
            yield groupings.by_class(places, structure, self.classes)
        if "length" in requested:
            yield groupings.by_length(places)
        if "position" in requested:
            yield groupings.by_position(places)
        if self.bands is not None:
            yield groupings.by_frequency(places, truth.events, *self.bands)
        if "depth" in requested and structure is not None:
            yield groupings.by_depth(places, structure)


def _curves(
    grouping: Grouping,
    gaps: FloatArray,
    places: Places,
    scored: _Scored,
    threshold: float,
    seed: int,
) -> LearningCurves:
    sentence, members, steps = places.paired.sentence, grouping.members, scored.steps
    means: list[Means] = []
    halves: list[Crossings] = []
    half: list[Milestone] = []
    reached: list[Milestone] = []
    for some in group_means(gaps, members, sentence, seed=seed):
        value, resampled = -some.value.T, -np.moveaxis(some.resampled, 1, -1)
        there = ~np.isnan(resampled[..., 0])
        halves.append(crossings(steps, resampled, None))
        half += milestones(crossings(steps, value, None), halves[-1], there)
        reached += milestones(crossings(steps, value, threshold), crossings(steps, resampled, threshold), there)
        means.append(some._replace(resampled=some.resampled[:0]))  # resamples are large
    with meter(f"medians by {grouping.by}", gaps.shape[1]) as progress:
        rows = []
        for column in gaps.T:
            rows.append(group_medians(column, members))
            progress.advance(1)
    exact = [table.get(grouping.by, ExactTable({}, {}, {})) for table in scored.exact]
    return LearningCurves(
        by=grouping.by,
        names=grouping.names,
        tokens=np.array([each.share.sum() for each in members]),
        mean=np.concatenate([some.value for some in means], axis=1),
        low=np.concatenate([some.low for some in means], axis=1),
        high=np.concatenate([some.high for some in means], axis=1),
        median=np.stack(rows),
        median_ends=median_intervals(gaps[:, -1], members, sentence, seed=seed),
        kl=tuple(table.scores for table in exact),
        infinite=tuple(table.infinite for table in exact),
        kl_tokens=exact[-1].tokens,
        half=tuple(half),
        threshold=tuple(reached),
        total=np.concatenate([some.total for some in means]),
        count=np.concatenate([some.tokens for some in means]),
        resampled_half=Crossings(*(np.concatenate(parts, axis=1) for parts in zip(*halves, strict=True))),
    )
