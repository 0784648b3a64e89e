"""Stages: the treebank's sentences as text; each model trained on it; all of them scored on real and sampled text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from truesource.chain.models.stage import resolved
from truesource.chain.treebank.text import HELD_OUT, TreebankText, write_text_folder
from truesource.evaluators.treebank_baseline.measure import TextToMeasure, measure, records_of
from truesource.evaluators.treebank_baseline.records import SAMPLED, Trained
from truesource.evaluators.treebank_baseline.settings import TreebankBaselineSettings
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.support.errors import InputError, NothingToMeasureError
from truesource.grammar.support.files import digest_json, write_json
from truesource.grammar.support.records import read_record
from truesource.grammar.treebank import Treebank
from truesource.run.inputs import of_model, of_settings
from truesource.run.stage import Stage

if TYPE_CHECKING:
    from truesource.chain.models.config import ModelEntry
    from truesource.run.config import RunConfig
    from truesource.run.folder import RunFolder

TEXT = ("treebank_baseline/text/*.txt", "treebank_baseline/text/text.json")
MODELS = tuple(
    f"treebank_baseline/models/{{}}/{pattern}"
    for pattern in ("trained.json", "*/*.json", "*/metrics.jsonl", "**/model.safetensors", "*/*.npz")
)


def stages(config: RunConfig) -> list[Stage]:
    """The text, then each model that is trained here: trained once more, and scored."""
    models = [model for model in config.entries if not model.loaded]
    trained = [Stage.of_model("treebank_train", model, MODELS, train_inputs, make_model) for model in models]
    files = ("treebank_baseline/{}.json",)
    scored = [Stage.of_model("treebank_baseline", model, files, inputs, make) for model in models]
    return [Stage("treebank_baseline", TEXT, text_inputs, make_text), *trained, *scored]


def text_inputs(run: RunFolder) -> Any:
    """Share of dev, disjointness, seed, treebank, lengths."""
    lengths = _lengths(run)
    return {
        "settings": run.settings(TreebankBaselineSettings).model_dump(mode="json", include={"dev", "disjoint"}),
        "seed": run.config.seed,
        "treebank": run.outputs["treebank"],
        "lengths": None if lengths is None else str(lengths),
    }


def make_text(run: RunFolder) -> str:
    """Write ``treebank_baseline/text/``, as `truesource split` does."""
    settings = run.settings(TreebankBaselineSettings)
    held_out = run.folder / "treebank" / "held_out.mrg.gz"
    if not held_out.is_file():
        raise InputError(
            "evaluation.treebank_baseline needs held-out trees, but the treebank is too small for the share"
            " treebank.held_out; raise it, or name held_out_files"
        )
    made = write_text_folder(
        run.folder / "treebank_baseline" / "text",
        Treebank.read(run.folder / "treebank" / "treebank.mrg.gz", None),
        Treebank.read(held_out, None),
        lengths=_lengths(run),
        dev=settings.dev,
        seed=run.config.seed,
        disjoint=settings.disjoint,
    )
    return made.digest


def _lengths(run: RunFolder) -> LengthRange | None:
    """The lengths of the corpus; of a corpus of all lengths, those that every model reads."""
    if run.config.corpus.lengths is not None:
        return run.config.corpus.lengths
    shapes = [resolved(run, model)[0] for model in run.config.entries if not model.loaded]
    longest = [shape.longest for shape in shapes if shape.longest is not None]
    return LengthRange(1, min(longest) - 2) if longest else None


def train_inputs(run: RunFolder, model: ModelEntry) -> Any:
    """Settings, seed, text, corpus, and the model that it is a twin of, which fixes tokeniser and duration."""
    shape, training = resolved(run, model)
    return {
        **of_settings(run, TreebankBaselineSettings),
        "seed": run.seed_of(model),
        "text": run.outputs["treebank_baseline"],
        "corpus": run.outputs["corpus"],
        "model": run.model_digest(model),
        "shape": shape.model_dump(mode="json"),
        "training": None if training is None else training.model_dump(mode="json"),
    }


def make_model(run: RunFolder, model: ModelEntry) -> str:
    """Write ``treebank_baseline/models/<name>/``."""
    from truesource.evaluators.treebank_baseline.training import train_again

    _require_text(run)
    return train_again(run, model)


def _require_text(run: RunFolder) -> None:
    note = run.unmeasured.get("treebank_baseline")
    if note is not None:
        raise NothingToMeasureError(note["reason"], note["code"])


def inputs(run: RunFolder, model: ModelEntry) -> Any:
    """Split, sentences, frame, seed, corpus, grammar, text, and the models."""
    evaluation = run.config.evaluation
    return {
        **of_model(run, model),
        "sentences": evaluation.sentences,
        "frame": evaluation.frame,
        "text": run.outputs["treebank_baseline"],
        "trained": run.outputs[f"treebank_train:{model.name}"],
    }


def make(run: RunFolder, model: ModelEntry) -> str:
    """Write ``treebank_baseline/<name>.json``."""
    from truesource.evaluators.treebank_baseline.training import REMEDY, folder_of
    from truesource.lmtrain.trained_models import load_trained

    evaluation, place = run.config.evaluation, folder_of(run, model)
    trained = read_record(place / "trained.json", dict[str, Trained], remedy=REMEDY)
    models = {name: load_trained(place / about["folder"], resolved(run, model)[0]) for name, about in trained.items()}
    text = TreebankText.load(run.folder / "treebank_baseline" / "text")
    lengths = run.corpus.lengths
    sampled = run.corpus.sentences(evaluation.split)[: evaluation.sentences]
    found = measure(
        {**models, SAMPLED: run.model(model)},
        run.pcfg,
        {
            "real": TextToMeasure(text.sentences(HELD_OUT), lengths),
            "sampled": TextToMeasure(sampled, lengths),
        },
        frame=evaluation.frame,
        seed=run.config.seed,
    )
    record = {
        "model": model.name,
        "objective": next(iter(found.values())).objective,
        "trained": trained,
        "texts": {kind: scores.counts() for kind, scores in found.items()},
        "records": records_of(found),
    }
    write_json(run.folder / "treebank_baseline" / f"{model.name}.json", record)
    return digest_json(record)
