"""Stage: one language model, trained on the corpus."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from grammar.files import digest_file

if TYPE_CHECKING:
    from truesource.config import ModelEntry
    from truesource.runner import Run


def inputs(run: Run, model: ModelEntry) -> Any:
    """Full settings, seed, corpus."""
    shape, training = model.resolve()
    return {
        "model": shape.model_dump(mode="json"),
        "training": training.model_dump(mode="json"),
        "seed": run.config.seed,
        "corpus": run.outputs["corpus"],
    }


def make(run: Run, model: ModelEntry) -> str:
    """Write the model folder."""
    from lmtrain.training import train

    shape, training = model.resolve()
    out = run.folder / "models" / model.name
    train(run.corpus, shape, training, out, seed=run.config.seed, force=True)
    return digest_file(out / "model.safetensors")
