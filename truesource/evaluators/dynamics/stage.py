"""Stage: all snapshots of one model compared with the truth."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from truesource.evaluation.core.transformed import require_order
from truesource.evaluators.dynamics.measure import measure, report_record
from truesource.evaluators.dynamics.settings import DynamicsSettings
from truesource.grammar.support.errors import NothingToMeasureError
from truesource.grammar.support.files import digest_json, write_json
from truesource.run.inputs import of_model
from truesource.run.stage import Stage

if TYPE_CHECKING:
    from truesource.chain.models.config import ModelEntry
    from truesource.run.config import RunConfig
    from truesource.run.folder import RunFolder


def stages(config: RunConfig) -> list[Stage]:
    """Every model with snapshots."""
    trained = (model for model in config.entries if model.keeps_snapshots)
    return [Stage.of_model("dynamics", model, ("dynamics/{}.json",), inputs, make) for model in trained]


def inputs(run: RunFolder, model: ModelEntry) -> Any:
    """Settings, sentences, frame, seed, corpus, grammar, and the trained model."""
    evaluation = run.config.evaluation
    return {
        **of_model(run, model, DynamicsSettings),
        "sentences": evaluation.sentences,
        "frame": evaluation.frame,
    }


def make(run: RunFolder, model: ModelEntry) -> str:
    """Write ``dynamics/<name>.json``."""
    settings, evaluation = run.settings(DynamicsSettings), run.config.evaluation
    pcfg, transform = run.text_grammar
    require_order(transform, "evaluation.dynamics")
    reference = run.reference(model)
    if model.loaded:
        from truesource.lmtrain.snapshots import has_checkpoints

        if not has_checkpoints(reference, run.model(model)):
            raise NothingToMeasureError(f"{model.name} has no snapshots of its training", "no-snapshots")
    found = measure(
        reference,
        pcfg,
        run.corpus.path,
        evaluation.split,
        run.corpus.sentences(evaluation.split)[: settings.sentences or evaluation.sentences],
        settings,
        name=model.name,
        lengths=run.corpus.lengths,
        frame=evaluation.frame,
        seed=run.config.seed,
    )
    record = {**report_record(found, settings), "records": found.records()}
    write_json(run.folder / "dynamics" / f"{model.name}.json", record)
    return digest_json(record)
