"""What the stages that evaluate a trained model depend on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from truesource.chain.config import ModelEntry
    from truesource.run.folder import RunFolder


def of_model(run: RunFolder, model: ModelEntry) -> dict[str, Any]:
    """Split, seed, corpus, grammar, and the trained model."""
    return {
        "split": run.config.evaluation.split,
        "seed": run.config.seed,
        "corpus": run.outputs["corpus"],
        "grammar": run.outputs["grammar"],
        "model": run.outputs[f"train:{model.name}"],
    }
