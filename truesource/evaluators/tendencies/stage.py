"""Stage: what the text of all causal models looks like compared with the truth, by decoding scheme."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from truesource.evaluation.tendencies.decoding_schemes import ModelSample, compare, record_of, same_size
from truesource.evaluation.tendencies.truth import Truth
from truesource.evaluators.tendencies import samples
from truesource.evaluators.tendencies.measure import engine_settings
from truesource.evaluators.tendencies.samples import applies
from truesource.evaluators.tendencies.settings import TendenciesSettings
from truesource.grammar.support.errors import NothingToMeasureError
from truesource.grammar.support.files import digest_json, write_json, write_text
from truesource.run.inputs import of_settings
from truesource.run.stage import Stage

if TYPE_CHECKING:
    from truesource.chain.models.config import ModelEntry
    from truesource.run.config import RunConfig
    from truesource.run.folder import RunFolder


def stages(config: RunConfig) -> list[Stage]:
    """The samples of every causal model, then one comparison of all of them."""
    causal = [model for model in config.entries if samples.applies(model)]
    if not causal:
        return []
    schemes = config.evaluation.of(TendenciesSettings).decodings()
    files = tuple(f"samples/{{}}/{s}/{file}" for s in schemes for file in ("record.json", "data/*.parquet"))
    made = ("tendencies/tendencies.json", *(f"tendencies/{scheme}.svg" for scheme in schemes))
    compared = Stage("tendencies", made, inputs, make)
    return [*(Stage.of_model("samples", model, files, samples.inputs, samples.make) for model in causal), compared]


def inputs(run: RunFolder) -> Any:
    """Settings, seed, grammar, samples, and what they are compared with."""
    settings = run.settings(TendenciesSettings)
    return {
        **of_settings(run, TendenciesSettings),
        "split": run.config.evaluation.split if settings.reference == "split" else None,
        "seed": run.config.seed,
        "corpus": run.outputs["corpus"],
        "grammar": run.outputs["grammar"],
        "samples": {m.name: run.outputs[f"samples:{m.name}"] for m in run.config.entries if applies(m)},
    }


def make(run: RunFolder) -> str:
    """Write ``tendencies/tendencies.json`` and a figure for each scheme."""
    from truesource.evaluators.tendencies.figures import tendencies_figure
    from truesource.report.figures import standalone

    settings = run.settings(TendenciesSettings)
    models = [m for m in run.config.entries if applies(m) and f"samples:{m.name}" not in run.unmeasured]
    sampled = [_read(run, model.name, scheme) for scheme in settings.decodings() for model in models]
    kept = same_size([sample for sample in sampled if sample.sentences])
    if not kept:
        raise NothingToMeasureError("no model ended a single sentence, so there is no text to compare", "no-text")
    truth = Truth(run.pcfg, run.corpus.lengths, vocabulary=_words(run, models))
    reference = run.corpus.sentences(run.config.evaluation.split) if settings.reference == "split" else None
    options = engine_settings(settings, [sample.sentences for sample in kept], truth.words, run.config.seed)
    parts = compare(kept, truth, options, reference)
    record = record_of(parts, [*kept, *(sample for sample in sampled if not sample.sentences)], truth)
    if "stopwords" not in options.classes:
        record["notes"].append("No word is in the list of stopwords; evaluation.tendencies.stopwords takes another")
    folder = run.folder / "tendencies"
    for number, (scheme, found) in enumerate(parts.items()):
        write_text(folder / f"{scheme}.svg", standalone(tendencies_figure(found, f"tendencies{number}")))
    write_json(folder / "tendencies.json", record)
    return digest_json(record)


def _read(run: RunFolder, model: str, scheme: str) -> ModelSample:
    from truesource.lmtrain.decoding.folder import SampleFolder

    samples = SampleFolder.load(run.folder / "samples" / model / scheme)
    finished = samples.sentences(cut=False)
    kept = [sentence for sentence in finished if sentence]
    return ModelSample(model, scheme, kept, samples.n_sentences - len(finished), len(finished) - len(kept))


def _words(run: RunFolder, models: list[ModelEntry]) -> set[str] | None:
    """The words that every model tells apart; None where all read pieces, and so every word."""
    known = [run.model(model).vocabulary for model in models]
    sets = [set(words) for words in known if words is not None]
    return set.intersection(*sets) if sets else None
