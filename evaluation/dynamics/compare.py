"""The checkpoints of a model against the truth: how far from it each is, by kinds of words and of places."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import get_args

import numpy as np

from truesource.evaluation.core.comparison import BothScored
from truesource.evaluation.core.exclusion import Exclusion
from truesource.evaluation.core.tag_classes import PENN, TagClasses, tags_of
from truesource.evaluation.divergence.cached import CONTEXTS
from truesource.evaluation.divergence.groups import frequency_bands
from truesource.evaluation.divergence.settings import By as ExactBy
from truesource.evaluation.dynamics import groupings
from truesource.evaluation.dynamics.averages import Means, group_means, group_medians, median_intervals
from truesource.evaluation.dynamics.derivations import (
    TAGS,
    Structure,
    Tags,
    drawn_structure,
    expected_structure,
    tree_structure,
)
from truesource.evaluation.dynamics.groupings import BY, By, Grouping, Places
from truesource.evaluation.dynamics.milestones import Crossings, Milestone, crossings, milestones
from truesource.evaluation.dynamics.table import Dynamics, LearningCurves
from truesource.evaluation.dynamics.truth import ExactTable, OracleScores, oracle_scores
from truesource.evaluation.measures.paired import Paired
from truesource.generator.frame import preset_frame
from truesource.generator.language_model import LanguageModel
from truesource.grammar.arrays import FloatArray, Int32Array, IntArray
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.errors import InputError, NothingToMeasureError
from truesource.grammar.pcfg import PCFG
from truesource.grammar.progress import meter
from truesource.grammar.tree import Tree

THRESHOLD = 0.2  #: nats a token


@dataclass(frozen=True, kw_only=True)
class CurveSettings:
    """How dynamics are measured."""

    by: Sequence[By] = BY
    classes: TagClasses = PENN
    tags: Tags = "expected"
    trees: Sequence[Tree] | None = None  #: derivation of each sentence with treebank labels, for ``tags="paper"``
    frame: str = "default"  #: which positions count, see `truesource.generator.frame.preset_frame`
    threshold: float = THRESHOLD  #: nats a token
    contexts: int = CONTEXTS  #: about so many positions for the exact divergence; 0: none. None in other frames
    seed: int = 0  #: of the bootstrap, and of drawn derivations

    def check(self, pcfg: PCFG, sentences: int) -> None:
        """Refuse what cannot be measured.

        Raises:
            InputError: an unknown ``by`` or ``tags``, derivations are missing, the threshold is not above 0, or the
                classes miss a tag of the grammar.
        """
        unknown = [name for name in self.by if name not in BY]
        if unknown or not self.by:
            raise InputError(f"dynamics are by {', '.join(BY)}, got {', '.join(unknown) or 'none'}")
        if self.tags not in TAGS:
            raise InputError(f"tags are {', '.join(TAGS)}, not {self.tags!r}")
        if self.tags == "paper" and (self.trees is None or len(self.trees) != sentences):
            raise InputError("tags 'paper' are those of the sampled derivations, one a sentence; give them, or 'drawn'")
        if not 0.0 < self.threshold < np.inf:
            raise InputError(f"the threshold is a number of nats above 0, got {self.threshold}")
        if "class" in self.by:
            self.classes.table(tags_of(pcfg))


def learning_dynamics(
    checkpoints: Iterable[tuple[int, LanguageModel]],
    pcfg: PCFG,
    sentences: Sequence[Sequence[str]],
    *,
    name: str,
    lengths: LengthRange | None,
    settings: CurveSettings | None = None,
    excluded: Exclusion | None = None,
) -> Dynamics:
    """Measure every checkpoint of one model against the exact truth.

    The truth is computed once, and one model is held at a time.

    * ``log_ratio``: mean of ln Q - ln P over the tokens of a group, which is minus what they add to KL(P || Q). A token
      that is in a class by half counts half.
    * ``log_ratio_median``: the median, which the published curves show (a token by half has half a weight).
    * ``kl``: the exact KL(P || Q) of a group in about the first ``settings.contexts`` positions, of models of whole
      words; see `evaluation.divergence.compare.compare_distributions`. By class, it asks for the symbol of the next
      word given its left context (or, masked, given all others). By class and by frequency it is the part of the
      divergence that the words of a group make, per token of them, which may be below 0. There is none by depth, and
      none in a frame other than the default one, as it is of all positions.

    Args:
        checkpoints: steps, rising, with models of one objective and one vocabulary.
        pcfg: the grammar that the sentences were drawn from.
        sentences: to measure on.
        name: of the model.
        lengths: the length condition of the sentences.
        settings: None: the default ones.
        excluded: what the sentences leave out, as `core.comparison.compare` has it. Log ratios are then those to
            the truth that leaves it out too; ``kl`` stays that to the grammar, with ``disjoint:uncorrected``.

    Raises:
        InputError: as `CurveSettings.check`; there are no checkpoints, their steps do not rise, they differ in
            objective or vocabulary; no sentence is possible for all of them and the truth.
    """
    settings = settings or CurveSettings()
    settings.check(pcfg, len(sentences))
    beside, known, steps, scored, tables = _score_all(
        checkpoints, pcfg, sentences, name=name, lengths=lengths, settings=settings, excluded=excluded
    )
    places, gaps = _together([both.paired for both in scored], sentences)
    left_out = len(places.paired.excluded)
    parts = {
        **scored[-1].parts,
        "sentences": len(sentences) - left_out,
        "excluded": left_out,
        "tokens": places.paired.tokens,
        "tags": settings.tags,
        "classes": settings.classes.origin,
        "model": name,
    }
    return Dynamics(
        model=name,
        objective=beside.objective,
        steps=tuple(steps),
        curves={
            grouping.by: _curves(grouping, gaps, places, steps, tables, settings)
            for grouping in _groupings(places, beside, known, settings)
        },
        level=settings.threshold,
        contexts=0 if beside.cached is None else beside.cached.contexts,
        frame=settings.frame,
        tags=settings.tags,
        tokens=places.paired.tokens,
        sentences=len(sentences) - left_out,
        impossible_model=places.paired.impossible_model,
        impossible_truth=places.paired.impossible_oracle,
        seed=settings.seed,
        parts=parts,
    )


def _score_all(
    checkpoints: Iterable[tuple[int, LanguageModel]],
    pcfg: PCFG,
    sentences: Sequence[Sequence[str]],
    *,
    name: str,
    lengths: LengthRange | None,
    settings: CurveSettings,
    excluded: Exclusion | None,
) -> tuple[OracleScores, _Known, list[int], list[BothScored], list[dict[str, ExactTable]]]:
    """The oracle, what groups need to know, and steps, scores and exact divergences of all checkpoints."""
    exactly: list[ExactBy] = [by for by in get_args(ExactBy) if by in settings.by]
    known: _Known | None = None
    steps: list[int] = []
    scored: list[BothScored] = []
    tables: list[dict[str, ExactTable]] = []
    beside: OracleScores | None = None
    for step, model in checkpoints:
        if steps and step <= steps[-1]:
            raise InputError(f"the steps of checkpoints rise, but {step} comes after {steps[-1]}")
        if beside is None:
            beside = oracle_scores(
                model,
                pcfg,
                sentences,
                lengths=lengths,
                frame=preset_frame(settings.frame, model.objective),
                contexts=settings.contexts if settings.frame == "default" else 0,
                states="class" in settings.by,
                excluded=excluded,
            )
            known = _known(beside, settings)
        steps.append(step)
        scored.append(beside.score(step, model, settings.seed))
        signed = {"model": name, "step": step}
        tables.append(beside.exact(model, exactly, classes=settings.classes, seed=settings.seed, signed=signed))
    if beside is None or known is None:
        raise InputError("there are no checkpoints to compare")
    return beside, known, steps, scored, tables


def _all_of(numbers: Sequence[Int32Array]) -> Int32Array:
    """The sentences that occur in any of the arrays, each once, ascending."""
    return np.unique(np.concatenate(numbers))


def _together(found: Sequence[Paired], sentences: Sequence[Sequence[str]]) -> tuple[Places, FloatArray]:
    """The positions that count at every checkpoint, and ln Q - ln P of each, (T, C)."""
    excluded = _all_of([paired.excluded for paired in found])
    kept = [~np.isin(paired.sentence, excluded) for paired in found]
    if not kept[0].any():
        raise NothingToMeasureError(
            f"none of the {len(sentences)} sentences is possible for all checkpoints and the truth",
            "no-common-sentence",
        )
    gaps = np.stack([(p.model - p.oracle)[own] for p, own in zip(found, kept, strict=True)], axis=1)
    first, own = found[0], kept[0]
    paired = replace(
        first,
        model=first.model[own],
        oracle=first.oracle[own],
        sentence=first.sentence[own],
        position=first.position[own],
        impossible_model=_all_of([paired.impossible_model for paired in found]),
        impossible_oracle=_all_of([paired.impossible_oracle for paired in found]),
    )
    return Places(paired, sentences, np.unique(paired.sentence).astype(np.int64)), gaps


@dataclass(frozen=True, eq=False)
class _Known:
    """What groups need to know, found before any model is scored."""

    structure: Structure | None  #: of the words of the sentences that the truth can make
    first: IntArray  #: (N,) number of each given sentence's first word in it
    bands: tuple[IntArray, tuple[str, ...]] | None  #: of word frequency


def _known(beside: OracleScores, settings: CurveSettings) -> _Known:
    possible = np.ones(len(beside.sentences), dtype=bool)
    possible[beside.scores.impossible] = False
    sizes = np.array([len(sentence) for sentence in beside.sentences]) * possible
    structure = None
    if {"class", "depth"} & set(settings.by) and possible.any():
        structure = _structure(beside, np.flatnonzero(possible).tolist(), settings)
        if "class" in settings.by:
            settings.classes.table(structure.labels)
    bands = frequency_bands(beside.oracle, beside.events) if "frequency" in settings.by else None
    return _Known(structure, np.cumsum(sizes) - sizes, bands)


def _structure(beside: OracleScores, possible: Sequence[int], settings: CurveSettings) -> Structure:
    if settings.tags == "paper" and settings.trees is not None:
        return tree_structure(settings.trees[i] for i in possible)
    own = [beside.sentences[i] for i in possible]
    if settings.tags == "drawn":
        return drawn_structure(beside.oracle, own, settings.seed)
    return expected_structure(beside.oracle, own)


def _groupings(places: Places, beside: OracleScores, known: _Known, settings: CurveSettings) -> Iterator[Grouping]:
    """One at a time, as each is as large as the positions."""
    structure = None
    if known.structure is not None:
        kept = places.kept.tolist()
        own = np.concatenate([known.first[i] + np.arange(len(places.sentences[i])) for i in kept])
        structure = Structure(known.structure.labels, known.structure.tags[own], known.structure.depth[own])
    for by in (by for by in BY if by in settings.by):
        if by == "all":
            yield groupings.by_all(places)
        elif by == "length":
            yield groupings.by_length(places)
        elif by == "position":
            yield groupings.by_position(places)
        elif by == "frequency" and known.bands is not None:
            yield groupings.by_frequency(places, beside.events, *known.bands)
        elif by == "class" and structure is not None:
            yield groupings.by_class(places, structure, settings.classes)
        elif by == "depth" and structure is not None:
            yield groupings.by_depth(places, structure)


def _curves(
    grouping: Grouping,
    gaps: FloatArray,
    places: Places,
    steps: Sequence[int],
    tables: Sequence[dict[str, ExactTable]],
    settings: CurveSettings,
) -> LearningCurves:
    sentence, members, seed = places.paired.sentence, grouping.members, settings.seed
    means: list[Means] = []
    halves: list[Crossings] = []
    half: list[Milestone] = []
    reached: list[Milestone] = []
    for some in group_means(gaps, members, sentence, seed=seed):
        value, drawn = -some.value.T, -np.moveaxis(some.resampled, 1, -1)
        there, level = ~np.isnan(drawn[..., 0]), settings.threshold
        halves.append(crossings(steps, drawn, None))
        half += milestones(crossings(steps, value, None), halves[-1], there)
        reached += milestones(crossings(steps, value, level), crossings(steps, drawn, level), there)
        means.append(some._replace(resampled=some.resampled[:, -1].copy()))
    with meter(f"medians by {grouping.by}", gaps.shape[1]) as progress:
        rows = []
        for column in gaps.T:
            rows.append(group_medians(column, members))
            progress.advance(1)
    exact = [table.get(grouping.by, ExactTable({}, {}, {})) for table in tables]
    return LearningCurves(
        by=grouping.by,
        names=grouping.names,
        tokens=np.array([own.share.sum() for own in members]),
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
        resampled=np.concatenate([some.resampled for some in means], axis=1),
        resampled_half=Crossings(*(np.concatenate(parts, axis=1) for parts in zip(*halves, strict=True))),
    )
