"""Stage: the perplexity of one model over that of word frequencies, and the same of the truth."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from truesource.chain.scores import stage as score
from truesource.evaluation.measures.paired import NothingToCompareError
from truesource.evaluators.pplu.measure import measure
from truesource.evaluators.pplu.settings import PpluSettings
from truesource.grammar.support.files import digest_json, write_json, write_text
from truesource.run.inputs import of_settings
from truesource.run.named_records import under_name
from truesource.run.stage import Stage

if TYPE_CHECKING:
    from truesource.chain.models.config import ModelEntry
    from truesource.run.config import RunConfig
    from truesource.run.folder import RunFolder


def stages(config: RunConfig) -> list[Stage]:
    """One for each model."""
    made = ("pplu/{}.json", "pplu/{}.svg")
    return [Stage.of_model("pplu", model, made, inputs, make) for model in config.entries]


def inputs(run: RunFolder, model: ModelEntry) -> Any:
    """Settings, and the inputs of its scores: split, seed, corpus, grammar, and the trained model."""
    return {**score.inputs(run, model), **of_settings(run, PpluSettings)}


def make(run: RunFolder, model: ModelEntry) -> str:
    """Write ``pplu/<name>.json``, and the figure ``pplu/<name>.svg`` of smaller vocabularies."""
    from truesource.evaluators.pplu.figures import reduction_figure
    from truesource.report.figures import standalone

    config, settings = run.config.evaluation, run.settings(PpluSettings)
    trained = run.model(model)
    record: dict[str, Any] = {"model": model.name, "objective": trained.objective}
    figure = run.folder / "pplu" / f"{model.name}.svg"
    figure.unlink(missing_ok=True)
    pcfg, transform = run.text_grammar
    try:
        result = measure(
            trained,
            pcfg,
            run.corpus.sentences(config.split)[: config.sentences],
            settings,
            frame=config.frame,
            lengths=run.corpus.lengths,
            seed=run.config.seed,
            counted=_counted(run, settings),
            transform=transform,
        )
    except NothingToCompareError as error:  # as the stage of its scores says
        record |= {"excluded": error.n_sentences, "records": []}
    else:
        record |= {
            "excluded": result.scores.excluded,
            "unigram": result.scores.unigram.source,
            "records": under_name(result.records, trained.name, model.name),
        }
        if result.curves:
            write_text(figure, standalone(reduction_figure(result.curves, f"reduction-{model.name}")))
    write_json(run.folder / "pplu" / f"{model.name}.json", record)
    return digest_json(record)


def _counted(run: RunFolder, settings: PpluSettings) -> list[list[str]]:
    """The text that word frequencies are counted in; none where they are not counted, or in the scored text."""
    from truesource.generator.text import read_sentences

    if settings.counted is not None:
        return read_sentences(settings.counted)
    return run.corpus.sentences("train") if settings.unigram == "train" else []
