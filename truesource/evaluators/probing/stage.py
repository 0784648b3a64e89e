"""Stage: linear probes on the layers of one network, against the exact posterior of the grammar."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from truesource.evaluation.core.transformed import require_order
from truesource.evaluators.probing.measure import measure
from truesource.evaluators.probing.settings import ProbingSettings
from truesource.grammar.support.files import digest_json, write_json
from truesource.run.inputs import of_model
from truesource.run.stage import Stage

if TYPE_CHECKING:
    from truesource.chain.models.config import ModelEntry
    from truesource.run.config import RunConfig
    from truesource.run.folder import RunFolder


def stages(config: RunConfig) -> list[Stage]:
    """Every network."""
    networks = (model for model in config.entries if model.is_network)
    return [Stage.of_model("probing", model, ("probing/{}.json",), inputs, make) for model in networks]


def inputs(run: RunFolder, model: ModelEntry) -> Any:
    """Settings, split, seed, corpus, grammar, and the trained model."""
    return of_model(run, model, ProbingSettings)


def make(run: RunFolder, model: ModelEntry) -> str:
    """Write ``probing/<name>.json``: the records of each target."""
    pcfg, transform = run.text_grammar
    require_order(transform, "evaluation.probing")
    found, missing = measure(
        run.reference(model),
        pcfg,
        run.corpus.sentences(run.config.evaluation.split),
        run.settings(ProbingSettings),
        lengths=run.corpus.lengths,
        seed=run.config.seed,
    )
    record = {
        "model": model.name,
        "targets": {target: replace(probing, model=model.name).records() for target, probing in found.items()},
        "missing": {target: {"code": error.code, "reason": error.reason} for target, error in missing.items()},
    }
    write_json(run.folder / "probing" / f"{model.name}.json", record)
    return digest_json(record)
