"""Stage: one language model, trained on the corpus."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from truesource.grammar.support.files import digest_file, digest_json
from truesource.lmtrain.model_registry import completed
from truesource.lmtrain.own.settings import OwnSettings, find
from truesource.lmtrain.training_record import weights_digest
from truesource.run.stage import Stage

if TYPE_CHECKING:
    from pathlib import Path

    from truesource.lmtrain.config import ModelConfig, TrainConfig
    from truesource.run.config import RunConfig
    from truesource.run.folder import RunFolder
    from truesource.run.models import ModelEntry


MADE = tuple(f"models/{{}}/{pattern}" for pattern in ("*.json", "metrics.jsonl", "**/model.safetensors", "*.npz"))


def stages(config: RunConfig) -> list[Stage]:
    """Return a stage for every model that is not loaded."""
    return [Stage.of_model("train", model, MADE, inputs, make) for model in config.entries if not model.loaded]


def resolved(run: RunFolder, model: ModelEntry) -> tuple[ModelConfig, TrainConfig | None]:
    """Return the full settings; for custom code, with its defaults and the digest of its file."""
    shape, training = model.resolve(run.base)
    return completed(shape), training


def weights_part(run: RunFolder, model: ModelEntry) -> dict[str, str]:
    """Return the digest of the initial weights; empty if training starts from random weights."""
    folder = run.weights_of(model)
    return {} if folder is None else {"weights": weights_digest(folder)}


def check_code(config: RunConfig, base: Path) -> None:
    """Import all custom architectures, and build a small network of each.

    Args:
        config: configuration of the run.
        base: folder that relative paths of the configuration start from.

    Raises:
        InputError: code cannot be imported, or rejects its settings; a network cannot be trained, or takes fewer
            tokens than the sentences of the corpus have.
    """
    for entry in config.models:
        shape = None if entry.loaded else entry.resolve(base)[0]
        if isinstance(shape, OwnSettings):
            from truesource.lmtrain.own.architecture import try_out

            shape = find(shape).completed(shape)
            config.require_positions(entry.name, shape.longest)
            try_out(shape)


def inputs(run: RunFolder, model: ModelEntry) -> Any:
    """Return the inputs: full settings, seed, corpus."""
    shape, training = resolved(run, model)
    compared: dict[str, object] = {}
    if model.oracle_monitor:  # the key of finished stages is unchanged, so they do not run again
        compared = {"oracle_monitor_sentences": model.oracle_monitor_sentences, "grammar": run.outputs["grammar"]}
    return {
        **compared,
        **weights_part(run, model),
        "model": shape.model_dump(mode="json"),
        "training": None if training is None else training.model_dump(mode="json"),
        "seed": run.seed_of(model),
        "corpus": run.outputs["corpus"],
    }


def make(run: RunFolder, model: ModelEntry) -> str:
    """Write the model folder."""
    from truesource.evaluation.dynamics.oracle_monitor import OracleMonitor
    from truesource.lmtrain.training import train

    shape, training = resolved(run, model)
    out = run.model_folder(model)
    monitor = None
    if model.oracle_monitor:
        monitor = OracleMonitor.on_corpus(run.truth, run.corpus, sentences=model.oracle_monitor_sentences)
    start = run.weights_of(model)
    train(run.corpus, shape, training, out, seed=run.seed_of(model), monitor=monitor, weights=start, force=True)
    weights = sorted(path for path in out.rglob("*") if path.suffix in (".safetensors", ".npz"))  # including snapshots
    return digest_json({path.relative_to(out).as_posix(): digest_file(path) for path in weights})
