"""Stage: all next-token probabilities of a model compared with the true ones."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from truesource.evaluators.divergence.measure import measure
from truesource.evaluators.divergence.settings import DivergenceSettings
from truesource.generator.abilities import require
from truesource.grammar.support.files import digest_json, write_json, write_text
from truesource.run.inputs import of_model
from truesource.run.stage import Stage

if TYPE_CHECKING:
    from truesource.chain.models.config import ModelEntry
    from truesource.run.config import RunConfig
    from truesource.run.folder import RunFolder


def stages(config: RunConfig) -> list[Stage]:
    """One for each model of whole words; models of pieces have no probability for each word of a list."""
    made = ("divergence/{}.json", "divergence/{}.svg")
    return [Stage.of_model("divergence", model, made, inputs, make) for model in config.entries if model.of_words]


def inputs(run: RunFolder, model: ModelEntry) -> Any:
    """Settings, split, seed, corpus, grammar, and the trained model."""
    return of_model(run, model, DivergenceSettings)


def make(run: RunFolder, model: ModelEntry) -> str:
    """Write ``divergence/<name>.json`` and the figure ``divergence/<name>.svg``."""
    from truesource.evaluators.divergence.figures import divergence_figure
    from truesource.report.figures import standalone

    pcfg, transform = run.text_grammar
    trained = require(run.model(model), "distributions", "evaluate divergence")
    found = measure(
        trained,
        pcfg,
        run.corpus.sentences(run.config.evaluation.split),
        run.settings(DivergenceSettings),
        lengths=run.corpus.lengths,
        seed=run.config.seed,
        transform=transform,
    )
    found = replace(found, model=model.name)  # what the configuration calls it
    record = {
        "model": model.name,
        "objective": found.objective,
        "contexts": found.contexts,
        "excluded": found.excluded,
        "records": found.records(),
    }
    place = run.folder / "divergence"
    write_text(place / f"{model.name}.svg", standalone(divergence_figure(found, f"divergence-{model.name}")))
    write_json(place / f"{model.name}.json", record)
    return digest_json(record)
