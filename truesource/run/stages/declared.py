"""Stages of declared evaluators: one for each model."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from truesource.evaluation.show.declared import record_of

if TYPE_CHECKING:
    from truesource.evaluation.core.evaluator import Evaluator
    from truesource.run.config import RunConfig
    from truesource.run.folder import RunFolder
    from truesource.run.models import ModelEntry
    from truesource.run.stage import Stage


def stages_of(evaluator: Evaluator, config: RunConfig) -> list[Stage]:
    """Return a step for each model that the evaluator applies to."""
    from truesource.run.stage import Stage

    name = evaluator.name
    models = (model for model in config.entries if evaluator.applies(model))
    steps = partial(_inputs, evaluator=evaluator), partial(_make, evaluator=evaluator)
    return [Stage.of_model(name, model, (f"{name}/{{}}.json",), *steps) for model in models]


def _inputs(run: RunFolder, model: ModelEntry, *, evaluator: Evaluator) -> Any:
    """Return the inputs: settings, split, seed, corpus, grammar, model, and inputs of scores and comparisons."""
    from truesource.run.stage import of_model

    whole = of_model(run, model, evaluator.settings)
    if evaluator.frame:
        whole |= run.config.evaluation.model_dump(mode="json", include={"sentences", "frame"})
    if evaluator.compares and "vocabulary" in run.outputs:
        whole["vocabulary"] = run.outputs["vocabulary"]
    return whole


def _make(run: RunFolder, model: ModelEntry, *, evaluator: Evaluator) -> str:
    """Write ``<name>/<model>.json``."""
    from truesource.grammar.support.atomic_files import write_json
    from truesource.grammar.support.files import digest_json

    settings = run.settings(evaluator.settings)
    first = getattr(settings, "sentences", None)
    setting = run.setting(first, scores=evaluator.frame, corrected=evaluator.corrected)
    make = run.compared_model if evaluator.compares else run.model
    trained = make(model) if evaluator.whole_models else run.reference(model)
    record = record_of(evaluator.measure(trained, setting, settings), model.name)
    write_json(run.folder / evaluator.name / f"{model.name}.json", record)
    return digest_json(record)
