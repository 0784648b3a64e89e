"""Stage: all snapshots of one model beside the truth, by classes of words and of places."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from truesource.evaluation.core.tag_classes import PENN, read_classes
from truesource.evaluation.dynamics.compare import CurveSettings
from truesource.evaluation.dynamics.findings import findings
from truesource.evaluators.dynamics.measure import measure_checkpoints, sampled_trees
from truesource.evaluators.dynamics.settings import DynamicsSettings
from truesource.grammar.files import digest_file, digest_json, write_json
from truesource.run.inputs import of_model
from truesource.run.stage import Stage

if TYPE_CHECKING:
    from truesource.chain.models.config import ModelEntry
    from truesource.run.config import RunConfig
    from truesource.run.folder import RunFolder


def stages(config: RunConfig) -> list[Stage]:
    """Every model with snapshots."""
    trained = filter(applies, config.models)
    return [Stage.of_model("dynamics", model, ("dynamics/{}.json",), inputs, make) for model in trained]


def applies(model: ModelEntry) -> bool:
    """Whether a model keeps snapshots while it is trained."""
    return model.keeps_snapshots


def inputs(run: RunFolder, model: ModelEntry) -> Any:
    """Settings, classes, sentences, seed, corpus, grammar, and the trained model."""
    config, evaluation = run.settings(DynamicsSettings), run.config.evaluation
    file = _classes(run)
    return {
        "dynamics": config.model_dump(mode="json"),
        "classes": None if file is None else digest_file(file),
        "sentences": evaluation.sentences,
        "frame": evaluation.frame,
        **of_model(run, model),
    }


def make(run: RunFolder, model: ModelEntry) -> str:
    """Write ``dynamics/<name>.json``."""
    config, evaluation = run.settings(DynamicsSettings), run.config.evaluation
    most = config.sentences or evaluation.sentences
    file = _classes(run)
    settings = CurveSettings(
        by=("all", *config.by),
        classes=PENN if file is None else read_classes(file),
        tags=config.tags,
        trees=sampled_trees(run.corpus.path, evaluation.split, most) if config.tags == "paper" else None,
        frame=evaluation.frame,
        threshold=config.threshold,
        contexts=config.contexts,
        seed=run.config.seed,
    )
    found = measure_checkpoints(
        run.folder / "models" / model.name,
        run.pcfg,
        run.corpus.sentences(evaluation.split)[:most],
        name=model.name,
        lengths=run.corpus.lengths,
        settings=settings,
    )
    record = {**found.as_record(), "findings": findings(found), "records": found.records()}
    write_json(run.folder / "dynamics" / f"{model.name}.json", record)
    return digest_json(record)


def _classes(run: RunFolder) -> Path | None:
    name = run.settings(DynamicsSettings).classes
    return None if name is None else Path(run.resolve(name))
