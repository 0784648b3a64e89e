"""Models scored beside one truth, computed once for each objective and vocabulary, and comparisons of them."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from truesource.comparing.named import NamedModel, NamedReference
from truesource.evaluation.comparing import SAME, ModelComparison, ModelScores, SeedScores, grouped
from truesource.evaluation.comparing import compare_models as compare_scores
from truesource.evaluation.core.comparison import oracle_for, score_both
from truesource.evaluation.core.exclusion import Exclusion
from truesource.evaluation.core.score import Score
from truesource.evaluation.core.transformed import of_sentences
from truesource.evaluation.divergence.compare import compare_distributions
from truesource.evaluation.measures.paired import NothingToCompareError
from truesource.generator.abilities import offers
from truesource.generator.language_model import LanguageModel, TokenScores, preset_frame
from truesource.generator.plan import Transform
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.settings import DEFAULT_SEED
from truesource.report.words import listed

log = logging.getLogger("truesource")


@dataclass(frozen=True, kw_only=True)
class SharedText:
    """A text and its truth, which all models are scored on."""

    pcfg: PCFG
    sentences: Sequence[Sequence[str]]
    lengths: LengthRange | None
    frame: str = "default"  #: name of a preset
    seed: int = DEFAULT_SEED  #: of intervals
    excluded: Exclusion | None = None
    left_out: Mapping[str, int] = field(default_factory=dict)  #: parts of signatures
    transform: Transform | None = None
    exact: int | None = None  #: number of sentences whose full distributions are compared; None: of none
    truths: dict[Any, TokenScores] = field(default_factory=dict)  #: by objective and vocabulary

    def score(self, model: LanguageModel, label: str, training_seed: int | None = None) -> SeedScores:
        """One model beside the truth.

        Raises:
            NothingToCompareError: no sentence is possible for both; the message names the model.
            InputError: as `truesource.evaluation.core.comparison.score_both`.
        """
        frame = preset_frame(self.frame, model.objective)
        key = model.objective, None if model.vocabulary is None else tuple(model.vocabulary)
        if key not in self.truths:
            oracle = oracle_for(model, self.pcfg, self.lengths, frame, self.excluded, self.transform)
            self.truths[key] = oracle.score(self.sentences, frame)
        try:
            both = score_both(
                model,
                self.pcfg,
                self.sentences,
                lengths=self.lengths,
                frame=frame,
                seed=self.seed,
                truth=self.truths[key],
                excluded=self.excluded,
                left_out=self.left_out,
                transform=self.transform,
            )
        except NothingToCompareError as error:
            counts = error.n_sentences, error.impossible_model, error.impossible_oracle
            raise NothingToCompareError(f"{label}: {error}", *counts) from error
        return SeedScores(
            label=label,
            paired=both.paired,
            parts=both.parts,
            resampling=self.seed,
            seed=training_seed,
            exact=self._exact(model),
        )

    def score_seeds(self, name: str, models: Sequence[LanguageModel]) -> ModelScores:
        """The seeds of one model beside the truth; several are called ``name 1``, ``name 2`` and so on.

        Raises:
            NothingToCompareError: as `score`.
        """
        labels = [name] if len(models) == 1 else [f"{name} {number}" for number in range(1, len(models) + 1)]
        return ModelScores(name=name, seeds=[self.score(*each) for each in zip(models, labels, strict=True)])

    def _exact(self, model: Any) -> Score | None:
        """The exact KL of the first sentences, where the model has full distributions and tokens have a truth."""
        if self.exact is None or not offers(model, "distributions") or of_sentences(self.transform, model.objective):
            return None
        found = compare_distributions(
            model,
            self.pcfg,
            self.sentences[: self.exact],
            lengths=self.lengths,
            seed=self.seed,
            excluded=self.excluded,
            transform=self.transform,
        )
        return found.scores.get("kl") or found.scores["kl_infinite"]


def score_models(models: Sequence[NamedModel], text: SharedText) -> list[ModelScores]:
    """Load and score the models, one after the other.

    Raises:
        InputError: a model cannot be loaded or scored.
    """
    return [ModelScores(name=model.name, seeds=[_scored(seed, text) for seed in model.seeds]) for model in models]


def _scored(seed: NamedReference, text: SharedText) -> SeedScores:
    from truesource.lmtrain.models import load_model  # torch

    log.info("scoring %s", seed.text)
    model = load_model(seed.text)
    return text.score(model, seed.text, None if seed.training is None else seed.training.seed)


#: why models are set apart, by the first part of their signatures that differs
REASONS = {
    "data": "sentences",
    "grammar": "grammars",
    "given": "length conditions",
    **dict.fromkeys(("eos", "first", "unk"), "scoring frames"),
}


def comparisons(
    models: Sequence[ModelScores], *, baseline: str | None = None, seed: int | None = None
) -> tuple[list[ModelComparison], list[str]]:
    """A comparison for each objective, text and truth, causal models first; and a sentence on groups set apart.

    Args:
        models: of one call or of some runs.
        baseline: name of a model; in groups that lack it, and where it is None, it is the first model.
        seed: of the resampling; None: that of the scores where all have the same, else the default.

    Raises:
        InputError: there are fewer than two models, several have one objective and no two of all compare, or none is
            called ``baseline``.
        NothingToCompareError: a group has no sentence in common.
    """
    names = [model.name for model in models]
    if len(models) < 2:
        found = f"there is only {names[0]}" if names else "there is none"
        raise InputError(f"a comparison takes two models or more, but {found}; name another", code="too-few-models")
    if baseline is not None and baseline not in names:
        raise InputError(
            f"there is no model {baseline!r} to be the baseline; there are {listed(names)}", code="unknown-baseline"
        )
    groups = sorted(grouped(models), key=lambda group: group[0].objective)
    apart = _apart(groups)
    if apart and all(len(group) == 1 for group in groups):
        those = apart[0]
        raise InputError(
            f"{listed([group[0].name for group in those])} do not compare: they have different {_reason(those)}",
            code="different-texts",
        )
    found_in = [baseline if any(model.name == baseline for model in group) else None for group in groups]
    said = [
        f"the {those[0][0].objective} models have different {_reason(those)}, so they are compared in {len(those)}"
        f" groups: {'; '.join(listed([model.name for model in group]) for group in those)}"
        for those in apart
    ]
    drawn = _seed_of_scores(models) if seed is None else seed
    return [
        compare_scores(group, baseline=against, seed=drawn) for group, against in zip(groups, found_in, strict=True)
    ], said


def _seed_of_scores(models: Sequence[ModelScores]) -> int:
    drawn = {scores.resampling for model in models for scores in model.seeds}
    return drawn.pop() if len(drawn) == 1 else DEFAULT_SEED


def _reason(groups: Sequence[Sequence[ModelScores]]) -> str:
    keys = [group[0].key for group in groups]
    differing = [name for name, values in zip(SAME, zip(*keys, strict=True), strict=True) if len(set(values)) > 1]
    return listed(list(dict.fromkeys(REASONS.get(name, "texts") for name in differing)))


def _apart(groups: Sequence[Sequence[ModelScores]]) -> list[list[Sequence[ModelScores]]]:
    """For each objective whose models form several groups, these."""
    objectives = dict.fromkeys(group[0].objective for group in groups)
    found = [[group for group in groups if group[0].objective == objective] for objective in objectives]
    return [those for those in found if len(those) > 1]


@dataclass(frozen=True, kw_only=True)
class ParallelText:
    """One of several texts whose sentences correspond, its truth, and the models that learned its language."""

    pcfg: PCFG
    sentences: Sequence[Sequence[str]]
    models: Sequence[LanguageModel]  #: one, or its training seeds


def compare_parallel(
    texts: Mapping[str, ParallelText],
    *,
    lengths: LengthRange | None,
    frame: str = "default",
    baseline: str | None = None,
    seed: int = DEFAULT_SEED,
    exact: int | None = None,
) -> ModelComparison:
    """Compare models of parallel languages, each with its own truth, in pairs of sentences.

    The texts are those of `truesource sample --variant` whose sentences have as many words as each other: in another
    order (``head-final``, ``mirror``) or with other words in the same trees (``zipf``). What makes a sentence of one
    text hard also makes its counterpart hard, so the difference of KL has less noise than that of independent texts.

    Args:
        texts: by name, two or more.
        lengths: the length condition that the corpora were drawn under.
        frame: positions that count: ``default`` or ``paper``.
        baseline: name of the text that the others are compared with; None: the first.
        seed: of the resampling.
        exact: number of sentences whose full distributions are compared too; None: of none.

    Returns:
        A row a text; differences of KL, nats a token, to the baseline. Intervals and p-values are also over training
        seeds, where there are several.

    Raises:
        InputError: there are fewer than two texts, they are not parallel, a text has no model, models have different
            objectives, or none is called ``baseline``.
        NothingToCompareError: a model, or all models together, can make no sentence.
    """
    if len(texts) < 2:
        raise InputError("a comparison takes two texts or more; name another", code="too-few-models")
    scored = []
    for name, text in texts.items():
        if not text.models:
            raise InputError(f"the text {name} has no model; give one or more", code="too-few-models")
        shared = SharedText(
            pcfg=text.pcfg, sentences=text.sentences, lengths=lengths, frame=frame, seed=seed, exact=exact
        )
        scored.append(shared.score_seeds(name, text.models))
    return compare_scores(scored, baseline=baseline, seed=seed, parallel=True)


def compare_models(
    models: Mapping[str, LanguageModel | Sequence[LanguageModel]],
    pcfg: PCFG,
    sentences: Sequence[Sequence[str]],
    *,
    lengths: LengthRange | None,
    frame: str = "default",
    baseline: str | None = None,
    seed: int = DEFAULT_SEED,
    exact: int | None = None,
) -> list[ModelComparison]:
    """Compare several models with the truth and with each other, as `truesource compare` does.

    `truesource.comparing.tables.comparison_table` makes the table of a comparison,
    its method ``records`` gives its numbers for JSON, ``to_pandas`` the same as a data frame.

    Args:
        models: by name; several of one name are its training seeds.
        pcfg: the grammar that the corpus was drawn from.
        sentences: evaluation sentences, in the grammar's words.
        lengths: the length condition that the corpus was drawn under.
        frame: positions that count: ``default`` or ``paper``.
        baseline: name of the model that the others are compared with; None: the first.
        seed: of the resampling.
        exact: number of sentences whose full distributions are compared too; None: of none.

    Returns:
        A comparison for each objective, causal models first.

    Raises:
        InputError: there are fewer than two models, or none is called ``baseline``.
        NothingToCompareError: a model, or all models together, can make no sentence.
    """
    text = SharedText(pcfg=pcfg, sentences=sentences, lengths=lengths, frame=frame, seed=seed, exact=exact)
    scored = [
        text.score_seeds(name, list(given) if isinstance(given, Sequence) else [given])
        for name, given in models.items()
    ]
    return comparisons(scored, baseline=baseline, seed=seed)[0]
