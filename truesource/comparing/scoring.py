"""Models scored beside one truth, computed once for each objective and vocabulary, and comparisons of them."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from truesource.comparing.named import NamedModel, NamedReference
from truesource.evaluation.comparing import SAME, ModelComparison, ModelScores, SeedScores, grouped
from truesource.evaluation.comparing import compare_models as compare_scores
from truesource.evaluation.core.comparison import score_both
from truesource.evaluation.core.score import Score
from truesource.evaluation.core.setting import Setting
from truesource.evaluation.core.transformed import of_sentences
from truesource.evaluation.divergence.compare import compare_distributions
from truesource.evaluation.measures.paired import NothingToCompareError
from truesource.generator.abilities import offers
from truesource.generator.language_model import LanguageModel
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.printable import listed
from truesource.grammar.support.settings import DEFAULT_SEED
from truesource.grammar.truth import Truth
from truesource.run.declared import measured
from truesource.run.evaluator import Evaluator

log = logging.getLogger("truesource")


def score_seed(
    model: LanguageModel,
    setting: Setting,
    label: str,
    *,
    training_seed: int | None = None,
    exact: int | None = None,
    also: Sequence[Evaluator] = (),
) -> SeedScores:
    """One model beside the truth.

    Args:
        model: to score.
        setting: text and truth.
        label: of the model.
        training_seed: that it was trained with, where that is known.
        exact: number of sentences whose full distributions are compared; None: of none.
        also: evaluators that measure it too, with their default settings.

    Raises:
        NothingToCompareError: no sentence is possible for both; the message names the model.
        InputError: as `truesource.evaluation.core.comparison.score_both`.
    """
    try:
        both = score_both(model, setting)
    except NothingToCompareError as error:
        counts = error.n_sentences, error.impossible_model, error.impossible_oracle
        raise NothingToCompareError(f"{label}: {error}", *counts) from error
    return SeedScores(
        label=label,
        paired=both.paired,
        parts=both.parts,
        resampling=setting.seed,
        seed=training_seed,
        exact=None if exact is None else _exact(model, setting.first(exact)),
        also={each.name: measured(each, model, setting, label) for each in also},
    )


def _exact(model: Any, setting: Setting) -> Score | None:
    """The exact KL, where the model has full distributions and tokens have a truth."""
    if not offers(model, "distributions") or of_sentences(setting.transform, model.objective):
        return None
    scores = compare_distributions(model, setting).scores
    return scores.get("kl") or scores["kl_infinite"]


def score_seeds(name: str, models: Sequence[LanguageModel], setting: Setting, exact: int | None) -> ModelScores:
    """The seeds of one model beside the truth; several are called ``name 1``, ``name 2`` and so on.

    Raises:
        NothingToCompareError: as `score_seed`.
    """
    labels = [name] if len(models) == 1 else [f"{name} {number}" for number in range(1, len(models) + 1)]
    seeds = [score_seed(model, setting, label, exact=exact) for model, label in zip(models, labels, strict=True)]
    return ModelScores(name=name, seeds=seeds)


def score_models(
    models: Sequence[NamedModel], setting: Setting, exact: int | None = None, also: Sequence[Evaluator] = ()
) -> list[ModelScores]:
    """Load and score the models, one after the other; arguments as of `score_seed`.

    Raises:
        InputError: a model cannot be loaded or scored.
    """
    return [
        ModelScores(name=model.name, seeds=[_scored(seed, setting, exact, also) for seed in model.seeds])
        for model in models
    ]


def _scored(seed: NamedReference, setting: Setting, exact: int | None, also: Sequence[Evaluator]) -> SeedScores:
    from truesource.lmtrain.models import load_model  # torch

    log.info("scoring %s", seed.text)
    trained = None if seed.training is None else seed.training.seed
    return score_seed(load_model(seed.text), setting, seed.text, training_seed=trained, exact=exact, also=also)


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

    language: Truth
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
        setting = Setting(text.language, text.sentences, lengths, frame, seed)
        scored.append(score_seeds(name, text.models, setting, exact))
    return compare_scores(scored, baseline=baseline, seed=seed, parallel=True)


def compare_models(
    models: Mapping[str, LanguageModel | Sequence[LanguageModel]],
    truth: Truth,
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
        truth: the grammar or process that the corpus was drawn from.
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
    setting = Setting(truth, sentences, lengths, frame, seed)
    scored = [
        score_seeds(name, list(given) if isinstance(given, Sequence) else [given], setting, exact)
        for name, given in models.items()
    ]
    return comparisons(scored, baseline=baseline, seed=seed)[0]
