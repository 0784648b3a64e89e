"""Stage: sentences sampled from one causal model, a folder per decoding scheme; finished folders are kept."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from truesource.evaluators.tendencies.settings import TendenciesSettings
from truesource.grammar.support.errors import InputError, NothingToMeasureError
from truesource.grammar.support.files import digest_json

if TYPE_CHECKING:
    from truesource.chain.models.config import ModelEntry
    from truesource.lmtrain.decoding.folder import SampleFolder
    from truesource.lmtrain.decoding.settings import Decoding
    from truesource.run.folder import RunFolder


def applies(model: ModelEntry) -> bool:
    """Whether a model has a distribution over sentences to draw from: it is causal; of a loaded model: perhaps."""
    return model.is_causal


def inputs(run: RunFolder, model: ModelEntry) -> Any:
    """Schemes, number of sentences, seed, and the trained model."""
    config = run.settings(TendenciesSettings)
    return {
        "schemes": {name: decoding.as_record() for name, decoding in config.decodings().items()},
        "sentences": config.number,
        "seed": run.config.seed,
        "model": run.model_digest(model),
    }


def make(run: RunFolder, model: ModelEntry) -> str:
    """Write ``samples/<name>/<scheme>/``."""
    from truesource.lmtrain.decoding.sample_builder import make_samples, reference_digest

    config, reference = run.settings(TendenciesSettings), run.reference(model)
    if model.loaded and run.model(model).objective != "causal":
        raise NothingToMeasureError("text cannot be drawn from a masked model, which has no order of words", "masked")
    digest = reference_digest(reference)
    found = {}
    for name, decoding in config.decodings().items():
        path = run.folder / "samples" / model.name / name
        samples = _standing(path, config.number, decoding, run.config.seed, digest)
        if samples is None:
            samples = make_samples(reference, config.number, decoding, path, seed=run.config.seed, force=True)
        assert samples is not None
        found[name] = samples.digest
    return digest_json(found)


def _standing(path: Path, n: int, decoding: Decoding, seed: int, digest: str) -> SampleFolder | None:
    """The samples of this very call, if they stand there undamaged."""
    from truesource.lmtrain.decoding.folder import SampleFolder

    try:
        samples = SampleFolder.load(path)
        samples.verify()
    except InputError:  # absent, or not whole
        return None
    call = samples.record["call"]
    wanted = decoding.as_record()
    there = {key: value for key, value in call["decoding"].items() if key in wanted or key != "max_tokens"}
    same = (call["sentences"], call["seed"], there, samples.record["model"]["digest"]) == (n, seed, wanted, digest)
    return samples if same else None
