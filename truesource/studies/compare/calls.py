"""Comparing in one call: one model with the truth, or several with the truth and with each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from truesource.evaluation.comparing import ModelComparison, ModelScores, SeedScores
from truesource.evaluation.comparing import compare_models as compare_scores
from truesource.evaluation.core.comparison import compare_in, score_alone
from truesource.evaluation.core.differences import notes_on
from truesource.evaluation.core.given import as_setting, require_truth
from truesource.evaluation.core.setting import Setting
from truesource.evaluation.core.vocabulary import KINDS, Kind
from truesource.evaluation.show.result import Result
from truesource.evaluation.show.score_tables import alone_table, results_table
from truesource.evaluation.show.words import bound_warning, left_out, too_few
from truesource.generator.arguments import as_models
from truesource.generator.language_model import LanguageModel, ScoringFrame
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.support.call_arguments import choice, whole_number
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.settings import DEFAULT_SEED
from truesource.grammar.truth import Truth
from truesource.lmtrain.in_memory import is_pair
from truesource.lmtrain.models import as_loaded
from truesource.studies.compare.groups import comparisons
from truesource.studies.compare.scoring import require_seeds, score_seeds, without_exact
from truesource.studies.compare.tables import comparison_figure, comparison_table, warning_of

Model = LanguageModel | str | Path  #: a model, or its reference


def compare(
    models: Model | Sequence[Model] | Mapping[str, Model | Sequence[Model]],
    text: Any,
    oracle: Truth | str | Path | bool = True,
    *,
    split: str = "eval",
    sentences: int | None = None,
    longest: int | None = None,
    lengths: LengthRange | tuple[int, int] | str | None = None,
    frame: ScoringFrame | str = "default",
    seed: int = DEFAULT_SEED,
    baseline: str | None = None,
    exact_kl: int | None = None,
    vocabulary: Kind | None = None,
    counts: Mapping[str, int] | None = None,
) -> Result:
    """Compare models with the truth on the same tokens, and several models with each other.

    Args:
        models: one model, a list of models with names, or models by name; several of one name are its training seeds.
            A text is a reference: a folder, or code such as ``file.py:name``. A pair is an object and its vocabulary,
            such as ``(network, tokenizer)``, see `truesource.lmtrain.in_memory.model_of`.
        text: a corpus, its folder, a text file, sentences, or a `Setting` with its own truth and frame.
        oracle: grammar or process that the text was sampled from, its file, or a language; True: the one in the corpus
            folder; False: nobody knows the truth, and the perplexity of one model is measured alone.
        split: of a corpus.
        sentences: number of sentences, from the first; None: all.
        longest: most words of a sentence; None: any number.
        lengths: the condition of the truth, such as ``6..25``, ``(6, 25)`` or ``none``; None: as the corpus.
        frame: positions that count.
        seed: of the intervals.
        baseline: of several models, the name of the one that the others are compared with; None: the first.
        exact_kl: of several models, number of sentences whose full distributions are compared too; None: of none.
        vocabulary: of several models, ``common``, ``full`` or ``own``, see `truesource.evaluation.core.vocabulary`;
            None: if models tell different words apart, ``common`` if all have full distributions, else ``full``.
        counts: of words in the training text, by which ``full`` divides ``<unk>``; None: the counts of the corpus.

    Returns:
        Of one model ``ppl``, ``bound``, ``relative_ppl``, ``kl`` (nats a token) and correlations; ``detail`` is the
        `Comparison`. Of several models also the differences of KL; ``detail`` is a list of
        `truesource.evaluation.comparing.ModelComparison`, one for each objective.

    Raises:
        InputError: a model, the text or the truth cannot be used, or the truth of the text is not known.
        NothingToCompareError: a model, or all models together, can make no sentence.
    """
    if isinstance(models, list | tuple) and len(models) == 1:
        models = models[0]
    several = isinstance(models, Mapping | list | tuple) and not is_pair(models)
    seeds = _named(models) if several else {}
    single = None if several else as_loaded(models)
    _check({"baseline": baseline, "exact_kl": exact_kl, "vocabulary": vocabulary, "counts": counts}, several=several)
    setting = as_setting(
        text, oracle, split=split, sentences=sentences, longest=longest, lengths=lengths, frame=frame, seed=seed
    )
    if counts is not None:
        setting = replace(setting, counts=counts)
    notes = notes_on(setting)
    if single is not None:
        return score(single, setting, notes)
    require_truth(setting)
    require_seeds(seeds, setting.known)
    vocabularies = setting.vocabularies([model for of_name in seeds.values() for model in of_name], vocabulary)
    scored = [score_seeds(name, of_name, setting, exact_kl, vocabularies) for name, of_name in seeds.items()]
    groups, apart = comparisons(scored, baseline=baseline, seed=seed, own=vocabulary == "own")
    return result_of(groups, notes=(*notes, *without_exact(scored, exact_kl), *apart))


def score(model: LanguageModel, setting: Setting, notes: Sequence[str] = ()) -> Result:
    """Compare one model with the truth of a setting; if nobody knows it, measure the perplexity of the model alone."""
    if setting.language is None:
        frame = setting.frame_of(model.objective)
        alone = score_alone(model, setting.sentences, frame, seed=setting.seed, left_out=setting.left_out)
        return Result(
            kind="score", scores=alone.as_scores(), tables=[alone_table(alone)], notes=tuple(notes), detail=alone
        )
    comparison = compare_in(model, setting)
    record = comparison.as_record()
    warnings = filter(None, (*left_out([record]), *too_few([record]), bound_warning([record])))

    def draw() -> str:
        scores = SeedScores(label=model.name, paired=comparison.paired, parts=comparison.parts, resampling=setting.seed)
        return comparison_figure([compare_scores([ModelScores(name=model.name, seeds=[scores])], seed=setting.seed)])

    return Result(
        kind="compare",
        scores=comparison.as_scores(),
        tables=[results_table([record])],
        notes=(*notes, *warnings),
        draw=draw,
        detail=comparison,
    )


def result_of(
    found: Sequence[ModelComparison], columns: Sequence[str] | None = None, notes: Sequence[str] = ()
) -> Result:
    """Return the result of comparisons of several models.

    Args:
        found: one for each objective, text and vocabulary.
        columns: of the tables, see `comparison_table`.
        notes: sentences for the reader.
    """
    return Result(
        kind="compare",
        scores=[score for comparison in found for score in comparison.as_scores()],
        tables=[comparison_table(comparison, columns) for comparison in found],
        notes=(*notes, *filter(None, map(warning_of, found))),
        draw=lambda: comparison_figure(found),
        detail=list(found),
    )


def _check(options: Mapping[str, Any], *, several: bool) -> None:
    """Refuse options of several models for one model, and values of another type.

    Raises:
        InputError: as above.
    """
    present = {name: value for name, value in options.items() if value is not None}
    if present and not several:
        raise InputError(f"{next(iter(present))} is for several models; pass a list of models, or remove it")
    if "exact_kl" in present:
        whole_number(present["exact_kl"], "exact_kl")
    if "vocabulary" in present:
        choice(present["vocabulary"], "vocabulary", KINDS)
    if not isinstance(present.get("counts", {}), Mapping):
        raise InputError(f"counts must be numbers by word, got {type(present['counts']).__name__}; pass a Counter")


def _named(models: Any) -> dict[str, list[LanguageModel]]:
    """Load the models that are references, by name."""
    if isinstance(models, Mapping):
        models = {
            name: [*map(as_loaded, each)] if isinstance(each, list | tuple) and not is_pair(each) else as_loaded(each)
            for name, each in models.items()
        }
    else:
        models = [*map(as_loaded, models)]
    return as_models(models)
