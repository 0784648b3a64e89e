"""Stage: one existing model, loaded first in a run to fail early if it cannot be used."""

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
    """Return a stage for every loaded model."""
    loaded = (model for model in config.models if model.loaded)
    return [Stage.of_model("load", model, ("loaded/{}.json",), inputs, make) for model in loaded]


def inputs(run: RunFolder, model: ModelEntry) -> Any:
    """Return the inputs: files of the model, and the longest sentence that it will read."""
    lengths = run.config.corpus.lengths
    return {"model": _digest(run, model), "longest": None if lengths is None else lengths.high}


def make(run: RunFolder, model: ModelEntry) -> str:
    """Write ``loaded/<name>.json``: description of the model."""
    reference = run.reference(model)
    with model_errors(model):
        loaded = run.model(model)
        _require_length(run, loaded)
        head = {"reference": model.load, "name": loaded.name, "objective": loaded.objective}
        parameters, tokenizer = _made_of(loaded, reference)
        record = {**head, "parameters": parameters, "tokenizer": tokenizer}
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
            f"it reads sentences of at most {longest} words, but the corpus has up to {lengths.high}; change"
            " corpus.lengths, or use another model"
        )


def _made_of(model: LanguageModel, reference: ModelReference) -> tuple[int | None, str | None]:
    """Number of parameters and kind of tokeniser, if known."""
    from truesource.lmtrain.training_record import FILE, read_finished

    if reference.folder is not None and (reference.folder / FILE).is_file():
        training = read_finished(reference.folder)
        return training.parameters, training.model.tokenizer
    network = getattr(model, "model", None)
    count = getattr(network, "num_parameters", None)
    return count() if callable(count) else None, None
