"""Models scored beside one truth, computed once for each objective and vocabulary, and comparisons of them."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from truesource.evaluation.comparing import SAME, ModelComparison, ModelScores, SeedScores, grouped
from truesource.evaluation.comparing import compare_models as compare_scores
from truesource.evaluation.core.comparison import score_both
from truesource.evaluation.core.evaluator import Evaluator
from truesource.evaluation.core.score import Score
from truesource.evaluation.core.setting import Setting
from truesource.evaluation.core.transformed import of_sentences
from truesource.evaluation.core.vocabulary import ComparisonVocabulary, Kind, ModelWords, in_vocabulary, words_of
from truesource.evaluation.divergence.compare import compare_distributions
from truesource.evaluation.measures.paired import NothingToCompareError
from truesource.evaluation.show.declared import measured
from truesource.generator.abilities import offers
from truesource.generator.arguments import as_lengths, as_models, as_truth
from truesource.generator.language_model import LanguageModel
from truesource.generator.objectives import Objective
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.sentences import as_sentences
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.printable import listed
from truesource.grammar.support.settings import DEFAULT_SEED
from truesource.grammar.truth import Truth
from truesource.studies.compare.named import NamedModel, NamedReference

MOST_BYTES = 2**30  #: of the weights of models that are kept in memory between the two uses of a comparison
log = logging.getLogger("truesource")
#: why models are set apart, by the first part of their signatures that differs
REASONS = {
    "data": "sentences",
    "grammar": "grammars",
    "given": "length conditions",
    "vocab": "vocabularies",
    **dict.fromkeys(("eos", "first", "unk"), "scoring frames"),
}


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
        training_seed: that it was trained with, where that is known.
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
    """The exact KL, where the model has full distributions and tokens have a truth."""
    if not offers(model, "distributions") or of_sentences(setting.transform, model.objective):
        return None
    scores = compare_distributions(model, setting).scores
    return scores.get("kl") or scores["kl_infinite"]


def score_seeds(
    name: str,
    models: Sequence[LanguageModel],
    setting: Setting,
    exact: int | None,
    vocabularies: Mapping[Objective, ComparisonVocabulary | None],
) -> ModelScores:
    """The seeds of one model beside the truth; several are called ``name 1``, ``name 2`` and so on.

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
    loaded = _Loaded()
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
    loaded = _Loaded()
    words = [[ModelWords.of(loaded.model(seed)) for seed in model.seeds] for model in models]
    pairs = [(setting.known, each) for setting, of in zip(settings, words, strict=True) for each in of]
    chosen = kind or parallel_kind(pairs)
    return [
        loaded.scored(model, setting, exact, also, setting.vocabularies(of, chosen))
        for model, setting, of in zip(models, settings, words, strict=True)
    ]


def require_seeds(models: Mapping[str, Sequence[LanguageModel | ModelWords]], truth: Truth) -> None:
    """Refuse models of one name that are no seeds of one model: they have different objectives, or know other words.

    Raises:
        InputError: there are such (code ``different-seeds``).
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
            f"{name} is the name of {what}, which are no seeds of one model; give each model a name of its own",
            code="different-seeds",
        )


class _Loaded:
    """Models of a call; small ones are kept, large ones are loaded again when they are scored."""

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


def comparisons(
    models: Sequence[ModelScores], *, baseline: str | None = None, seed: int | None = None, own: bool = False
) -> tuple[list[ModelComparison], list[str]]:
    """A comparison for each objective, text, truth and vocabulary, causal models first; a sentence on groups set apart.

    Args:
        models: of one call or of some runs.
        own: vocabularies are the models' own on request, so that no two models need to compare.
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
    if apart and not own and all(len(group) == 1 for group in groups):
        those = apart[0]
        raise InputError(
            f"{listed([group[0].name for group in those])} do not compare: they have different {_reason(those)}"
            f"{_remedy(those)}",
            code="different-texts",
        )
    found_in = [baseline if any(model.name == baseline for model in group) else None for group in groups]
    said = [
        f"the {those[0][0].objective} models have different {_reason(those)}, so they are compared in {len(those)}"
        f" groups: {'; '.join(listed([model.name for model in group]) for group in those)}"
        f"{'' if own else _remedy(those)}"
        for those in apart
    ]
    drawn = _seed_of_scores(models) if seed is None else seed
    return [
        compare_scores(group, baseline=against, seed=drawn) for group, against in zip(groups, found_in, strict=True)
    ], said


def _seed_of_scores(models: Sequence[ModelScores]) -> int:
    drawn = {scores.resampling for model in models for scores in model.seeds}
    return drawn.pop() if len(drawn) == 1 else DEFAULT_SEED


def _differing(groups: Sequence[Sequence[ModelScores]]) -> list[str]:
    """The parts of signatures, of `SAME`, in which groups differ."""
    keys = [group[0].key for group in groups]
    return [name for name, values in zip(SAME, zip(*keys, strict=True), strict=True) if len(set(values)) > 1]


def _reason(groups: Sequence[Sequence[ModelScores]]) -> str:
    return listed(list(dict.fromkeys(REASONS.get(name, "texts") for name in _differing(groups))))


def _remedy(groups: Sequence[Sequence[ModelScores]]) -> str:
    """Name the command that compares models that differ in nothing but their vocabularies."""
    if _differing(groups) != ["vocab"]:
        return ""
    return "; truesource compare MODEL MODEL CORPUS --oracle GRAMMAR compares models in one vocabulary"


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
    lengths: LengthRange | tuple[int, int] | str | None,
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
    if alone := [name for name, text in texts.items() if not text.models]:
        raise InputError(f"the text {alone[0]} has no model; give one or more", code="too-few-models")
    kind = parallel_kind([(text.language, model) for text in texts.values() for model in text.models])
    scored = []
    for name, text in texts.items():
        setting = Setting(text.language, text.sentences, as_lengths(lengths), frame, seed)
        scored.append(score_seeds(name, text.models, setting, exact, setting.vocabularies(text.models, kind)))
    return compare_scores(scored, baseline=baseline, seed=seed, parallel=True)


def parallel_kind(models: Sequence[tuple[Truth, LanguageModel | ModelWords]]) -> Kind:
    """The vocabulary of models of parallel texts: ``full`` if their words differ and one does not know all of its own.

    Args:
        models: each with the truth of its text.
    """
    vocabularies = [words_of(model, truth) for truth, model in models]
    missing = any(len(words) < len(truth.terminals) for words, (truth, _) in zip(vocabularies, models, strict=True))
    return "full" if missing and len(set(vocabularies)) > 1 else "own"


def compare_models(
    models: Mapping[str, LanguageModel | Sequence[LanguageModel]] | Sequence[LanguageModel],
    truth: Truth | str | Path,
    sentences: Sequence[Sequence[str]],
    *,
    lengths: LengthRange | tuple[int, int] | str | None,
    frame: str = "default",
    baseline: str | None = None,
    seed: int = DEFAULT_SEED,
    exact: int | None = None,
    vocabulary: Kind | None = None,
    counts: Mapping[str, int] | None = None,
) -> list[ModelComparison]:
    """Compare several models with the truth and with each other, as `truesource compare` does.

    `truesource.studies.compare.tables.comparison_table` makes the table of a comparison,
    its method ``records`` gives its numbers for JSON, ``to_pandas`` the same as a data frame.

    Args:
        models: by name, or a list of models with names; several of one name are its training seeds.
        truth: the grammar or process that the corpus was drawn from, or its file or name.
        sentences: evaluation sentences, in the grammar's words: lists of words, or text.
        lengths: the length condition that the corpus was drawn under: a range, its two ends, or ``6..25``.
        frame: positions that count: ``default`` or ``paper``.
        baseline: name of the model that the others are compared with; None: the first.
        seed: of the resampling.
        exact: number of sentences whose full distributions are compared too; None: of none.
        vocabulary: ``common``, ``full`` or ``own``, see `truesource.evaluation.core.vocabulary`; None: where models
            tell different words apart, ``common`` if all have full distributions, else ``full``.
        counts: of words in the training text, by which ``full`` shares ``<unk>`` out; None: uniformly.

    Returns:
        A comparison for each objective, causal models first; with ``own`` one for each vocabulary too.

    Raises:
        InputError: there are fewer than two models, none is called ``baseline``, or as
            `truesource.evaluation.core.vocabulary.comparison_vocabulary`.
        NothingToCompareError: a model, or all models together, can make no sentence.
    """
    truth, lengths = as_truth(truth), as_lengths(lengths)
    setting = Setting(truth, as_sentences(sentences), lengths, frame, seed, counts=counts)
    seeds = {name: list(given) if isinstance(given, Sequence) else [given] for name, given in as_models(models).items()}
    require_seeds(seeds, truth)
    every = [model for of_name in seeds.values() for model in of_name]
    vocabularies = setting.vocabularies(every, vocabulary)
    scored = [score_seeds(name, of_name, setting, exact, vocabularies) for name, of_name in seeds.items()]
    return comparisons(scored, baseline=baseline, seed=seed, own=vocabulary == "own")[0]
