"""Stage: one model that exists, loaded to see that it can be used; the first of a run, so that hours are not lost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from truesource.grammar.support.atomic_files import write_json
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import digest_json
from truesource.run.folder import model_errors
from truesource.run.stage import Stage

if TYPE_CHECKING:
    from truesource.generator.language_model import LanguageModel
    from truesource.lmtrain.references import ModelReference
    from truesource.run.config import RunConfig
    from truesource.run.folder import RunFolder
    from truesource.run.models import ModelEntry


def stages(config: RunConfig) -> list[Stage]:
    """Every model that is loaded."""
    loaded = (model for model in config.models if model.loaded)
    return [Stage.of_model("load", model, ("loaded/{}.json",), inputs, make) for model in loaded]


def inputs(run: RunFolder, model: ModelEntry) -> Any:
    """The files that make the model, and the longest sentence that it will read."""
    lengths = run.config.corpus.lengths
    return {"model": _digest(run, model), "longest": None if lengths is None else lengths.high}


def make(run: RunFolder, model: ModelEntry) -> str:
    """Write ``loaded/<name>.json``: what the model says of itself."""
    reference = run.reference(model)
    with model_errors(model):
        found = run.model(model)
        _require_length(run, found)
        head = {"reference": model.load, "name": found.name, "objective": found.objective}
        record = {**head, **_made_of(found, reference)}
    write_json(run.folder / "loaded" / f"{model.name}.json", record)
    return _digest(run, model)


def _digest(run: RunFolder, model: ModelEntry) -> str:
    """Return the digest of its files, and of the reference if that is code: one file may name several models."""
    from truesource.lmtrain.decoding.sample_builder import reference_digest

    reference = run.reference(model)
    return digest_json([reference.code, reference_digest(reference)])


def _require_length(run: RunFolder, model: LanguageModel) -> None:
    longest, lengths = getattr(model, "longest", None), run.config.corpus.lengths
    if longest is not None and lengths is not None and lengths.high > longest and model.vocabulary is not None:
        raise InputError(
            f"it reads sentences of at most {longest} words, and the corpus has up to {lengths.high}; change"
            " corpus.lengths, or take another model"
        )


def _made_of(model: LanguageModel, reference: ModelReference) -> dict[str, Any]:
    """Number of parameters and kind of tokeniser, as far as they are known."""
    from truesource.lmtrain.training_record import FILE, read_finished

    if reference.folder is not None and (reference.folder / FILE).is_file():
        training = read_finished(reference.folder)
        return {"parameters": training.parameters, "tokenizer": training.model.tokenizer}
    network = getattr(model, "model", None)
    count = getattr(network, "num_parameters", None)
    return {"parameters": count() if callable(count) else None, "tokenizer": None}
