"""Stage: all next-token probabilities of a model compared with the true ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from truesource.evaluation.divergence.blocks import PENN, read_classes
from truesource.evaluation.divergence.compare import ModelDivergence, compare_distributions
from truesource.evaluators.divergence import DivergenceSettings
from truesource.generator.abilities import require
from truesource.grammar.support.files import digest_json, write_json, write_text
from truesource.run.stage import Stage, of_model

if TYPE_CHECKING:
    from truesource.chain.models import ModelEntry
    from truesource.evaluation.core.exclusion import Exclusion
    from truesource.generator.language_model import DistributionModel
    from truesource.generator.plan import Transform
    from truesource.grammar.conditioning import LengthRange
    from truesource.grammar.pcfg import PCFG
    from truesource.run.config import RunConfig
    from truesource.run.folder import RunFolder


def measure(
    model: DistributionModel,
    pcfg: PCFG,
    sentences: Sequence[Sequence[str]],
    settings: DivergenceSettings,
    *,
    lengths: LengthRange | None,
    seed: int,
    excluded: Exclusion | None = None,
    transform: Transform | None = None,
) -> ModelDivergence:
    """Compare the first sentences; see `truesource.evaluation.divergence.compare.compare_distributions`."""
    return compare_distributions(
        model,
        pcfg,
        sentences[: settings.sentences],
        lengths=lengths,
        top=settings.top_k,
        by=settings.by,
        classes=PENN if settings.classes is None else read_classes(settings.classes),
        seed=seed,
        excluded=excluded,
        transform=transform,
    )


def stages(config: RunConfig) -> list[Stage]:
    """One for each model of whole words; models of pieces have no probability for each word of a list."""
    made = ("divergence/{}.json", "divergence/{}.svg")
    return [Stage.of_model("divergence", model, made, inputs, make) for model in config.entries if model.of_words]


def inputs(run: RunFolder, model: ModelEntry) -> Any:
    """Settings, split, seed, corpus, grammar, and the trained model."""
    return of_model(run, model, DivergenceSettings)


def make(run: RunFolder, model: ModelEntry) -> str:
    """Write ``divergence/<name>.json`` and the figure ``divergence/<name>.svg``."""
    from truesource.evaluators.divergence.section import divergence_figure
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
