"""Stage: linear probes on the layers of one network, against the exact posterior of the grammar."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from truesource.evaluation.probing.experiment import ProbeSettings
from truesource.evaluators.probing.measure import Task, probe_model
from truesource.evaluators.probing.settings import ProbingSettings
from truesource.grammar.errors import NothingToMeasureError
from truesource.grammar.files import digest_json, write_json
from truesource.run.inputs import of_model
from truesource.run.stage import Stage

if TYPE_CHECKING:
    from truesource.chain.models.config import ModelEntry
    from truesource.run.config import RunConfig
    from truesource.run.folder import RunFolder


def stages(config: RunConfig) -> list[Stage]:
    """Every network."""
    networks = filter(applies, config.models)
    return [Stage.of_model("probing", model, ("probing/{}.json",), inputs, make) for model in networks]


def applies(model: ModelEntry) -> bool:
    """Whether a model has hidden states: it is a network."""
    return not model.resolve()[0].counts


def inputs(run: RunFolder, model: ModelEntry) -> Any:
    """Settings, split, seed, corpus, grammar, and the trained model."""
    return {"probe": run.config.evaluation.of(ProbingSettings).model_dump(mode="json"), **of_model(run, model)}


def make(run: RunFolder, model: ModelEntry) -> str:
    """Write ``probing/<name>.json``: the records of each target."""
    config = run.settings(ProbingSettings)
    sentences = run.corpus.sentences(run.config.evaluation.split)[: config.sentences]
    folder = run.folder / "models" / model.name
    kept = config.checkpoints == "all" and (folder / "snapshots").is_dir()
    targets, missing = {}, {}
    for target in config.targets:
        try:
            found = probe_model(
                folder,
                run.pcfg,
                sentences,
                lengths=run.corpus.lengths,
                task=Task(
                    target,
                    "sentence",
                    config.right,
                    checkpoints="all" if kept else "last",
                    pooling=config.pieces,
                    correlations=config.correlations,
                ),
                options=ProbeSettings(config.soft, config.split_by, config.control, config.mdl, run.config.seed),
            )
        except NothingToMeasureError as error:
            missing[target] = error
        else:
            targets[target] = found.records()
    if not targets:
        raise next(iter(missing.values()))
    record = {
        "model": model.name,
        "targets": targets,
        "missing": {target: {"code": error.code, "reason": error.reason} for target, error in missing.items()},
    }
    write_json(run.folder / "probing" / f"{model.name}.json", record)
    return digest_json(record)
