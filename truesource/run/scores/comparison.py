"""Stages: vocabularies of comparison of a run, and the scores of each model in its vocabulary.

If models of one objective have different vocabularies, scores in these vocabularies do not compare, see
`truesource.evaluation.core.vocabulary`. A model with the vocabulary of comparison has no further scores.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from truesource.evaluation.core.oracle import Oracle
from truesource.evaluation.core.vocabulary import ModelWords
from truesource.generator.abilities import offers
from truesource.grammar.support.atomic_files import write_json
from truesource.grammar.support.files import digest_json
from truesource.report.finished_run import COMPARED, VOCABULARY
from truesource.run.models import Replicate
from truesource.run.scores.stage import oracle_inputs, scored
from truesource.run.stage import Stage

if TYPE_CHECKING:
    from truesource.generator.objectives import Objective
    from truesource.run.config import RunConfig
    from truesource.run.folder import RunFolder
    from truesource.run.models import ModelEntry

DONE = "comparison/{}.json"  #: records if a model has scores in another vocabulary


def stages(config: RunConfig) -> list[Stage]:
    """Return the stage of the vocabularies, and one for every model that is compared with another."""
    models = compared(config)
    if not models:
        return []
    first = Stage("vocabulary", (VOCABULARY, COMPARED.format("oracle-*")), vocabulary_inputs, make_vocabulary)
    return [first, *(Stage.of_model("compare", model, (DONE, COMPARED), inputs, make) for model in models)]


def compared(config: RunConfig) -> list[ModelEntry]:
    """Return the models that may share an objective with another, including loaded models of unknown objective.

    The seeds of one model have the same vocabulary.
    """
    objectives = {model.name: None if model.loaded else model.resolve()[0].objective for model in config.models}

    def has_other(name: str) -> bool:
        others = {objective for other, objective in objectives.items() if other != name}
        return bool(others) and (objectives[name] is None or bool({objectives[name], None} & others))

    return [entry for entry in config.entries if has_other(base_of(entry))]


def base_of(entry: ModelEntry) -> str:
    """Return the name in the configuration of an entry, or of the model that it is a seed of."""
    return entry.replicate_of if isinstance(entry, Replicate) else entry.name


def vocabulary_inputs(run: RunFolder) -> Any:
    """Return the inputs of the scores of the truth, the models, and the requested vocabulary."""
    models = {entry.name: run.model_digest(entry) for entry in compared(run.config)}
    return {**oracle_inputs(run), "vocabulary": run.config.evaluation.vocabulary, "models": models}


def make_vocabulary(run: RunFolder) -> str:
    """Write ``comparison/vocabulary.json``, by objective, and the scores of the truth in each vocabulary."""
    groups: dict[Objective, list[ModelEntry]] = {}
    for entry in compared(run.config):
        groups.setdefault(run.objective(entry), []).append(entry)
    several = [entry for group in groups.values() if len(group) > 1 for entry in group]
    words = [ModelWords.of(run.model(entry)) for entry in several]
    vocabularies = run.setting().vocabularies(words, run.config.evaluation.vocabulary)
    record = {objective: None if each is None else each.as_record() for objective, each in vocabularies.items()}
    (run.folder / VOCABULARY).parent.mkdir(exist_ok=True)
    for leftover in run.folder.glob(COMPARED.format("oracle-*")):  # file of an earlier configuration
        leftover.unlink()
    write_json(run.folder / VOCABULARY, record)
    truth, transform = run.text_truth
    digests = [digest_json(record)]
    for objective, vocabulary in vocabularies.items():
        if vocabulary is not None and offers(truth, objective):
            oracle = Oracle(truth, objective, lengths=run.corpus.lengths, transform=transform)
            file = COMPARED.format(f"oracle-{objective}")
            digests.append(scored(run, vocabulary.adapt(oracle), file, {}))
    return digest_json(digests)


def inputs(run: RunFolder, model: ModelEntry) -> Any:
    """Return the inputs of the scores of the truth, the vocabularies, and the trained model."""
    return {**oracle_inputs(run), "model": run.model_digest(model), "vocabulary": run.outputs["vocabulary"]}


def make(run: RunFolder, model: ModelEntry) -> str:
    """Write ``comparison/<name>.json``, and ``comparison/<name>.parquet`` if its vocabulary differs."""
    vocabulary = run.vocabulary(run.objective(model))
    target = COMPARED.format(model.name)
    (run.folder / target).unlink(missing_ok=True)  # file of an earlier configuration
    record: dict[str, object] = {"compared": None, "digest": None}
    if vocabulary is not None:
        adapted = vocabulary.adapt(run.model(model))
        record = {"compared": adapted.compared, "digest": scored(run, adapted, target, {}, model)}
    write_json(run.folder / DONE.format(model.name), record)
    return digest_json(record)
