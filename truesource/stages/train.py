"""Stage: one language model, trained on the corpus."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from truesource.grammar.files import digest_file, digest_json

if TYPE_CHECKING:
    from truesource.config.sources import ModelEntry
    from truesource.run.folder import RunFolder


def inputs(run: RunFolder, model: ModelEntry) -> Any:
    """Full settings, seed, corpus."""
    shape, training = model.resolve()
    probe = {"probe_sentences": model.probe_sentences, "grammar": run.outputs["grammar"]} if model.probe else {}
    return {
        **probe,
        "model": shape.model_dump(mode="json"),
        "training": None if training is None else training.model_dump(mode="json"),
        "seed": run.config.seed,
        "corpus": run.outputs["corpus"],
    }


def make(run: RunFolder, model: ModelEntry) -> str:
    """Write the model folder."""
    from truesource.evaluation.oracle_monitor import OracleProbe
    from truesource.lmtrain.training import train

    shape, training = model.resolve()
    out = run.folder / "models" / model.name
    probe = OracleProbe.on_corpus(run.pcfg, run.corpus, sentences=model.probe_sentences) if model.probe else None
    train(run.corpus, shape, training, out, seed=run.config.seed, probe=probe, force=True)
    weights = sorted(path for path in out.rglob("*") if path.suffix in (".safetensors", ".npz"))  # snapshots too
    return digest_json({path.relative_to(out).as_posix(): digest_file(path) for path in weights})
