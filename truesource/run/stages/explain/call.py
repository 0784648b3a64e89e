"""Explanation of a model in one call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from truesource.evaluation.core.differences import differences
from truesource.evaluation.core.given import as_setting, require_truth
from truesource.evaluation.core.score import read_score
from truesource.evaluation.explain.evaluator import ExplainSettings
from truesource.evaluation.explain.report import ladder_table, lever_table, sentence
from truesource.evaluation.explain.where import memory_sentence, places_table
from truesource.evaluation.show.result import Result
from truesource.generator.arguments import as_model
from truesource.generator.corpus import Corpus
from truesource.generator.language_model import LanguageModel
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.support.call_arguments import as_path
from truesource.grammar.support.errors import InputError, require_extras
from truesource.grammar.support.parallel import Share
from truesource.grammar.support.records import made_settings
from truesource.grammar.support.settings import DEFAULT_SEED
from truesource.grammar.truth import Truth

if TYPE_CHECKING:
    from truesource.evaluation.core.setting import Setting
    from truesource.run.stages.explain.job import ExplainJob


def explain(
    model: LanguageModel | str | Path,
    corpus: Corpus | str | Path,
    path: str | Path | None = None,
    oracle: Truth | str | Path | bool = True,
    *,
    split: str = "eval",
    lengths: LengthRange | tuple[int, int] | str | None = None,
    seed: int = DEFAULT_SEED,
    **settings: Any,
) -> Result:
    """Explain why a model is off, as `truesource explain` does: retrain it with one changed setting at a time.

    Args:
        model: that truesource trained, or its folder; other models only get references, no trainings.
        corpus: corpus that it was trained on, or its folder.
        path: folder for the trainings; an interrupted call resumes there. None: a temporary one.
        oracle: grammar or process that the corpus was sampled from, its file, or a language; True: in its folder.
        split: split to measure on.
        lengths: the condition of the truth; None: the condition of the corpus.
        seed: seed of the intervals.
        settings: see `ExplainSettings`, such as ``levers`` and ``budget`` (minutes).

    Returns:
        The change of KL by each setting, references, and errors by kind of token; ``detail`` is the record for JSON.

    Raises:
        InputError: a bad argument, or the truth of the text is not known.
    """
    require_extras("truesource.explain", "lm", "report")
    from truesource.run.stages.explain.results import explained, records_of

    chosen = made_settings(ExplainSettings, "explain", settings)
    setting = as_setting(corpus, oracle, split=split, sentences=chosen.sentences, lengths=lengths, seed=seed)
    if setting.text is None or setting.text.corpus is None:
        raise InputError("use the corpus that the model was trained on, not a text", code="no-corpus")
    require_truth(setting)
    with TemporaryDirectory(prefix="truesource-") if path is None else nullcontext(as_path(path)) as place:
        job = job_of(model, setting, setting.text.corpus, Path(place), chosen)
        failures = [f"failed: {each.task}: {each.reason}" for each in job.explain(Share())]
        record = explained(job)
        unknown = [] if job.unknown is None else [f"The model is not retrained: {job.unknown.reason}."]
        return result_of(record, records_of(record), [*differences(setting), *unknown, *failures])


def job_of(
    model: LanguageModel | str | Path, setting: Setting, corpus: Corpus, folder: Path, settings: ExplainSettings
) -> ExplainJob:
    """Return the trainings that explain a model.

    Args:
        model: model to explain, or its reference, which leads to the record of its training.
        setting: text and truth to measure on.
        corpus: corpus that the model was trained on.
        folder: folder for the trainings.
        settings: settings of the explanation.

    Raises:
        InputError: there is no such model.
    """
    from truesource.lmtrain.models import load_model
    from truesource.lmtrain.references import model_reference
    from truesource.run.stages.explain.job import ExplainJob

    if isinstance(model, str | Path):
        reference = model_reference(model)
        trained_in, model = reference.folder or Path(reference.text), load_model(reference)
    else:
        trained_in = getattr(model, "folder", None) or Path("(in memory)")
    return ExplainJob(
        folder=folder, trained_in=trained_in, model=as_model(model), setting=setting, corpus=corpus, settings=settings
    )


def result_of(record: Mapping[str, Any], numbers: Sequence[Mapping[str, Any]], notes: Sequence[str] = ()) -> Result:
    """Return an explanation as a result.

    Args:
        record: result of `truesource.run.stages.explain.results.explained`.
        numbers: records of the explanation.
        notes: sentences for the reader.
    """
    places = places_table(record)
    sentences = filter(None, (memory_sentence(record), sentence(record)))
    return Result(
        kind="explain",
        scores=[*map(read_score, numbers)],
        tables=[lever_table(record), ladder_table(record), *([] if places is None else [places])],
        notes=(*notes, *sentences),
        detail=record,
    )
