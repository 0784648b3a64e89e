"""Stage: linear probes on the layers of one network, against the exact posterior of the grammar."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from truesource.evaluation.probing.experiment import ProbingSettings
from truesource.grammar.errors import NothingToMeasureError
from truesource.grammar.files import digest_json, write_json
from truesource.probing import Task, probe_model
from truesource.stages.inputs import of_model

if TYPE_CHECKING:
    from truesource.config.evaluation import ProbeConfig
    from truesource.config.sources import ModelEntry
    from truesource.run.folder import RunFolder


def applies(model: ModelEntry) -> bool:
    """Whether a model has hidden states: it is a network."""
    return not model.resolve()[0].counts


def inputs(run: RunFolder, model: ModelEntry) -> Any:
    """Settings, split, seed, corpus, grammar, and the trained model."""
    return {"probe": _config(run).model_dump(mode="json"), **of_model(run, model)}


def make(run: RunFolder, model: ModelEntry) -> str:
    """Write ``probing/<name>.json``: the records of each target."""
    config = _config(run)
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
                options=ProbingSettings(config.soft, config.split_by, config.control, config.mdl, run.config.seed),
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


def _config(run: RunFolder) -> ProbeConfig:
    config = run.config.evaluation.probe
    assert config is not None
    return config
