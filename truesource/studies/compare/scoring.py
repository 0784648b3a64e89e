"""Scoring of models against one truth, computed once for each objective and vocabulary, and comparisons of them."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from truesource.evaluation.comparing import ModelScores, SeedScores
from truesource.evaluation.core.comparison import score_both
from truesource.evaluation.core.evaluator import Evaluator
from truesource.evaluation.core.score import Score
from truesource.evaluation.core.setting import Setting
from truesource.evaluation.core.transformed import of_sentences
from truesource.evaluation.core.vocabulary import ComparisonVocabulary, Kind, ModelWords, in_vocabulary, words_of
from truesource.evaluation.divergence.compare import compare_distributions
from truesource.evaluation.measures.paired import NothingToCompareError
from truesource.evaluation.show.declared import measured
from truesource.generator.language_model import LanguageModel
from truesource.generator.objectives import Objective
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.printable import listed
from truesource.grammar.truth import Truth
from truesource.studies.compare.named_models import NamedModel, NamedReference

MOST_BYTES = 2**30  #: of the weights of models that are kept in memory between the two uses of a comparison
log = logging.getLogger("truesource")


def score_seed(
    model: LanguageModel,
    setting: Setting,
    label: str,
    *,
    training_seed: int | None = None,
    exact: int | None = None,
    also: Sequence[Evaluator] = (),
    vocabulary: ComparisonVocabulary | None = None,
) -> SeedScores:
    """Compare one model with the truth.

    Args:
        model: to score.
        setting: text and truth.
        label: of the model.
        training_seed: that it was trained with, if known.
        exact: number of sentences whose full distributions are compared; None: of none.
        also: evaluators that measure it too, with their default settings.
        vocabulary: of the comparison; None: the model's own.

    Raises:
        NothingToCompareError: no sentence is possible for both; the message names the model.
        InputError: as `truesource.evaluation.core.comparison.score_both`.
    """
    adapted = in_vocabulary(model, vocabulary)
    try:
        both = score_both(adapted, setting)
    except NothingToCompareError as error:
        counts = error.n_sentences, error.impossible_model, error.impossible_oracle
        raise NothingToCompareError(f"{label}: {error}", *counts) from error
    return SeedScores(
        label=label,
        paired=both.paired,
        parts=both.parts,
        resampling=setting.seed,
        seed=training_seed,
        exact=None if exact is None else _exact(adapted, setting.first(exact)),
        also={each.name: measured(each, adapted if each.compares else model, setting, label) for each in also},
    )


def _exact(model: Any, setting: Setting) -> Score | None:
    """Return the exact KL per word; None if the model has no such distributions or tokens have no truth."""
    if setting.distributed(model, of_words=True) is None or of_sentences(setting.transform, model.objective):
        return None
    scores = compare_distributions(model, setting).scores
    return scores.get("kl") or scores["kl_infinite"]


def without_exact(models: Sequence[ModelScores], exact: int | None) -> list[str]:
    """Return a sentence that names the models whose exact KL was requested but is not defined; none if there are none.

    Args:
        models: that were scored.
        exact: number of sentences whose full distributions were requested; None: of none.
    """
    names = [model.name for model in models if exact is not None and any(seed.exact is None for seed in model.seeds)]
    reason = (
        "it needs full distributions of the model over words, or over pieces given the pieces before them, and token"
        " scores of the truth"
    )
    return [f"no exact KL of {listed(names)}: {reason}"] if names else []


def score_seeds(
    name: str,
    models: Sequence[LanguageModel],
    setting: Setting,
    exact: int | None,
    vocabularies: Mapping[Objective, ComparisonVocabulary | None],
) -> ModelScores:
    """Score the seeds of one model against the truth; several are called ``name 1``, ``name 2`` and so on.

    Raises:
        NothingToCompareError: as `score_seed`.
    """
    labels = [name] if len(models) == 1 else [f"{name} {number}" for number in range(1, len(models) + 1)]
    seeds = [
        score_seed(model, setting, label, exact=exact, vocabulary=vocabularies[model.objective])
        for model, label in zip(models, labels, strict=True)
    ]
    return ModelScores(name=name, seeds=seeds)


def score_models(
    models: Sequence[NamedModel],
    setting: Setting,
    exact: int | None = None,
    also: Sequence[Evaluator] = (),
    kind: Kind | None = None,
) -> list[ModelScores]:
    """Load and score the models in one vocabulary; arguments as of `score_seed` and `comparison_vocabulary`.

    Raises:
        InputError: a model cannot be loaded or scored, or as `comparison_vocabulary`.
    """
    loaded = _ModelCache()
    words = {model.name: [ModelWords.of(loaded.model(seed)) for seed in model.seeds] for model in models}
    require_seeds(words, setting.known)
    vocabularies = setting.vocabularies([each for of in words.values() for each in of], kind)
    return [loaded.scored(model, setting, exact, also, vocabularies) for model in models]


def score_parallel(
    models: Sequence[NamedModel],
    settings: Sequence[Setting],
    exact: int | None = None,
    also: Sequence[Evaluator] = (),
    kind: Kind | None = None,
) -> list[ModelScores]:
    """Load and score models of parallel texts, each in its own setting; arguments as of `score_models`.

    Raises:
        InputError: as `score_models`, or ``common`` is asked for (code ``different-texts``).
    """
    if kind == "common":
        raise InputError(
            "models of texts with words of their own have no common vocabulary; use full or own", code="different-texts"
        )
    loaded = _ModelCache()
    words = [[ModelWords.of(loaded.model(seed)) for seed in model.seeds] for model in models]
    pairs = [(setting.known, each) for setting, of in zip(settings, words, strict=True) for each in of]
    chosen = kind or parallel_kind(pairs)
    return [
        loaded.scored(model, setting, exact, also, setting.vocabularies(of, chosen))
        for model, setting, of in zip(models, settings, words, strict=True)
    ]


def parallel_kind(models: Sequence[tuple[Truth, LanguageModel | ModelWords]]) -> Kind:
    """Return the vocabulary of parallel models: ``full`` if their words differ and one lacks words of its text.

    Args:
        models: each with the truth of its text.
    """
    vocabularies = [words_of(model, truth) for truth, model in models]
    missing = any(len(words) < len(truth.vocabulary) for words, (truth, _) in zip(vocabularies, models, strict=True))
    return "full" if missing and len(set(vocabularies)) > 1 else "own"


def require_seeds(models: Mapping[str, Sequence[LanguageModel | ModelWords]], truth: Truth) -> None:
    """Refuse models of one name that are no seeds of one model: they have different objectives, or know other words.

    Raises:
        InputError: some are (code ``different-seeds``).
    """
    for name, seeds in models.items():
        objectives = list(dict.fromkeys(seed.objective for seed in seeds))
        if len(objectives) > 1:
            what = f"{listed(objectives)} models"
        elif len({words_of(seed, truth) for seed in seeds}) > 1:
            what = "models that know different words"
        else:
            continue
        raise InputError(
            f"{name} is the name of {what}, which are not seeds of one model; give each model a name of its own",
            code="different-seeds",
        )


class _ModelCache:
    """A cache of the models of a call: small ones are kept, large ones are loaded again when they are scored."""

    def __init__(self) -> None:
        self._models: dict[str, LanguageModel] = {}
        self._bytes = 0

    def model(self, seed: NamedReference) -> LanguageModel:
        """Load the model of a reference, or take the one that is kept."""
        from truesource.lmtrain.models import load_model  # torch

        if seed.text in self._models:
            return self._models[seed.text]
        model = load_model(seed.text)
        weights = getattr(getattr(model, "model", None), "parameters", None)
        tensors = () if weights is None else weights()
        size = sum(each.numel() * each.element_size() for each in tensors)
        if self._bytes + size <= MOST_BYTES:
            self._models[seed.text] = model
            self._bytes += size
        return model

    def scored(
        self,
        model: NamedModel,
        setting: Setting,
        exact: int | None,
        also: Sequence[Evaluator],
        vocabularies: Mapping[Objective, ComparisonVocabulary | None],
    ) -> ModelScores:
        """Score all seeds of a model."""
        seeds = []
        for seed in model.seeds:
            log.info("scoring %s", seed.text)
            each = self.model(seed)
            trained = None if seed.training is None else seed.training.seed
            words = vocabularies[each.objective]
            seeds.append(
                score_seed(each, setting, seed.text, training_seed=trained, exact=exact, also=also, vocabulary=words)
            )
        return ModelScores(name=model.name, seeds=seeds)
