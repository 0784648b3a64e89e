"""Stages: samples of all causal models, and their differences from the truth, by decoding scheme."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from truesource.evaluation.tendencies.call import engine_settings
from truesource.evaluation.tendencies.decoding_schemes import ModelSample, compare, record_of, same_size
from truesource.evaluation.tendencies.evaluator import TendenciesSettings
from truesource.evaluation.tendencies.truth import TrueText
from truesource.grammar.support.atomic_files import write_json
from truesource.grammar.support.errors import InputError, NothingToMeasureError
from truesource.grammar.support.files import digest_json
from truesource.run.stage import Stage, of_settings

if TYPE_CHECKING:
    from truesource.lmtrain.decoding.folder import SampleFolder
    from truesource.lmtrain.decoding.settings import Decoding
    from truesource.run.config import RunConfig
    from truesource.run.folder import RunFolder
    from truesource.run.models import ModelEntry


def stages(config: RunConfig) -> list[Stage]:
    """Return the stages of samples of every causal model, then one comparison of all of them."""
    causal = [model for model in config.entries if applies(model)]
    if not causal:
        return []
    schemes = config.evaluation.of(TendenciesSettings).decodings()
    files = tuple(f"samples/{{}}/{s}/{file}" for s in schemes for file in ("record.json", "data/*.parquet"))
    compared = Stage("tendencies", ("tendencies/tendencies.json",), inputs, make)
    return [*(Stage.of_model("samples", model, files, sampling_inputs, draw) for model in causal), compared]


def applies(model: ModelEntry) -> bool:
    """Return True if a model can sample sentences, because it is causal; for a loaded model: perhaps."""
    return model.is_causal


def sampling_inputs(run: RunFolder, model: ModelEntry) -> Any:
    """Return the inputs: schemes, number of sentences, seed, and the trained model."""
    config = run.settings(TendenciesSettings)
    return {
        "schemes": {name: decoding.as_record() for name, decoding in config.decodings().items()},
        "sentences": config.number,
        "seed": run.config.seed,
        "model": run.model_digest(model),
    }


def draw(run: RunFolder, model: ModelEntry) -> str:
    """Write ``samples/<name>/<scheme>/``."""
    from truesource.lmtrain.decoding.sample_builder import make_samples, reference_digest

    config, reference = run.settings(TendenciesSettings), run.reference(model)
    if model.loaded and run.model(model).objective != "causal":
        raise NothingToMeasureError("text cannot be sampled from a masked model, which has no order of words", "masked")
    digest = reference_digest(reference)
    digests = {}
    for name, decoding in config.decodings().items():
        path = run.folder / "samples" / model.name / name
        samples = _finished_samples(path, config.number, decoding, run.config.seed, digest)
        if samples is None:
            samples = make_samples(reference, config.number, decoding, path, seed=run.config.seed, force=True)
        assert samples is not None
        digests[name] = samples.digest
    return digest_json(digests)


def _finished_samples(path: Path, n: int, decoding: Decoding, seed: int, digest: str) -> SampleFolder | None:
    """Return the samples of the same call, if they exist undamaged."""
    from truesource.lmtrain.decoding.folder import SampleFolder

    try:
        samples = SampleFolder.load(path)
        samples.verify()
    except InputError:  # missing or incomplete
        return None
    call = samples.record["call"]
    requested = decoding.as_record()
    there = {key: value for key, value in call["decoding"].items() if key in requested or key != "max_tokens"}
    same = (call["sentences"], call["seed"], there, samples.record["model"]["digest"]) == (n, seed, requested, digest)
    return samples if same else None


def inputs(run: RunFolder) -> Any:
    """Return the inputs: settings, seed, grammar, samples, and the text of comparison."""
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
    """Write ``tendencies/tendencies.json``."""
    from truesource.evaluation.tendencies.figures import drawn_of

    settings = run.settings(TendenciesSettings)
    models = [m for m in run.config.entries if applies(m) and f"samples:{m.name}" not in run.unmeasured]
    sampled = [_read(run, model.name, scheme) for scheme in settings.decodings() for model in models]
    nonempty = same_size([sample for sample in sampled if sample.sentences])
    if not nonempty:
        raise NothingToMeasureError("no model ended a single sentence, so there is no text to compare", "no-text")
    truth = TrueText(run.pcfg, run.corpus.lengths, vocabulary=_words(run, models))
    reference = run.corpus.sentences(run.config.evaluation.split) if settings.reference == "split" else None
    options = engine_settings(settings, [sample.sentences for sample in nonempty], truth.words, run.config.seed)
    parts = compare(nonempty, truth, options, reference)
    notes: list[str] = []
    if "stopwords" not in options.classes:
        notes = ["No word is in the list of stopwords; set another in evaluation.tendencies.stopwords"]
    record = record_of(parts, [*nonempty, *(sample for sample in sampled if not sample.sentences)], truth, notes)
    record["figures"] = {scheme: drawn_of(comparison) for scheme, comparison in parts.items()}
    write_json(run.folder / "tendencies" / "tendencies.json", record)
    return digest_json(record)


def _read(run: RunFolder, model: str, scheme: str) -> ModelSample:
    from truesource.lmtrain.decoding.folder import SampleFolder

    samples = SampleFolder.load(run.folder / "samples" / model / scheme)
    finished = samples.sentences(cut=False)
    sentences = [sentence for sentence in finished if sentence]
    return ModelSample(model, scheme, sentences, samples.n_sentences - len(finished), len(finished) - len(sentences))


def _words(run: RunFolder, models: list[ModelEntry]) -> set[str] | None:
    """Return the words in the vocabulary of every model; None if all read pieces, and so every word."""
    vocabularies = [run.model(model).vocabulary for model in models]
    sets = [set(words) for words in vocabularies if words is not None]
    return set.intersection(*sets) if sets else None
