"""Stage: trainings of the levers of one model of a run, in ``explain/<model>/``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from truesource.evaluation.explain.evaluator import ExplainSettings
from truesource.evaluation.show.declared import under_name
from truesource.grammar.support.atomic_files import write_json
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import digest_json
from truesource.grammar.support.parallel import Share
from truesource.run.stage import Stage, of_model

if TYPE_CHECKING:
    from truesource.run.config import RunConfig
    from truesource.run.folder import RunFolder
    from truesource.run.models import ModelEntry


def stages(config: RunConfig) -> list[Stage]:
    """Return a step for each model."""
    return [Stage.of_model("explain", model, ("explain/{}.json",), inputs, make) for model in config.entries]


def inputs(run: RunFolder, model: ModelEntry) -> Any:
    """Return the inputs: settings, split, seed, corpus, grammar, and the trained model."""
    return of_model(run, model, ExplainSettings)


def make(run: RunFolder, model: ModelEntry) -> str:
    """Write ``explain/<model>.json``."""
    from truesource.run.stages.explain.job import ExplainJob
    from truesource.run.stages.explain.results import explained

    settings, reference = run.settings(ExplainSettings), run.reference(model)
    trained = run.model(model)
    job = ExplainJob(
        folder=run.folder / "explain" / model.name,
        trained_in=Path(reference.text) if reference.folder is None else reference.folder,
        model=trained,
        setting=run.setting(settings.sentences),
        corpus=run.corpus,
        settings=settings,
        base=run.base,
    )
    failures = job.explain(Share())
    if failures:
        raise InputError(f"{failures[0].task} cannot be trained: {failures[0].reason}")
    record = under_name(explained(job), trained.name, model.name)
    write_json(run.folder / "explain" / f"{model.name}.json", record)
    return digest_json(record)
