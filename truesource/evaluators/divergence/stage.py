"""Stage: all that one model expects beside all that the truth expects, in every context of some sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from truesource.evaluation.divergence.compare import BY, compare_distributions
from truesource.evaluators.divergence.settings import DivergenceSettings
from truesource.grammar.files import digest_json, write_json, write_text
from truesource.run.inputs import of_model
from truesource.run.stage import Stage

if TYPE_CHECKING:
    from truesource.chain.config import ModelEntry
    from truesource.run.config import RunConfig
    from truesource.run.folder import RunFolder


def stages(config: RunConfig) -> list[Stage]:
    """Every model that has a probability for each word."""
    made = ("divergence/{}.json", "divergence/{}.svg")
    return [Stage.of_model("divergence", model, made, inputs, make) for model in filter(applies, config.models)]


def applies(model: ModelEntry) -> bool:
    """Whether a model has a probability for every word of a list: those of pieces have not."""
    return model.resolve()[0].tokenizer == "word"


def inputs(run: RunFolder, model: ModelEntry) -> Any:
    """Settings, split, seed, corpus, grammar, and the trained model."""
    return {"divergence": run.config.evaluation.of(DivergenceSettings).model_dump(mode="json"), **of_model(run, model)}


def make(run: RunFolder, model: ModelEntry) -> str:
    """Write ``divergence/<name>.json`` and the figure ``divergence/<name>.svg``."""
    from truesource.evaluators.divergence.figures import divergence_figure
    from truesource.lmtrain.models import load_model
    from truesource.report.figures import standalone

    config, place = run.settings(DivergenceSettings), run.folder / "divergence"
    found = compare_distributions(
        load_model(run.folder / "models" / model.name),
        run.pcfg,
        run.corpus.sentences(run.config.evaluation.split)[: config.sentences],
        lengths=run.corpus.lengths,
        top=config.top,
        by=BY,
        seed=run.config.seed,
    )
    record = {
        "model": model.name,
        "objective": found.objective,
        "contexts": found.contexts,
        "excluded": found.excluded,
        "records": found.records(),
    }
    drawn = divergence_figure(found, f"divergence-{model.name}")
    write_text(place / f"{model.name}.svg", standalone(drawn))
    write_json(place / f"{model.name}.json", record)
    return digest_json(record)
