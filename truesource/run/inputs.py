"""What the stages that evaluate a trained model depend on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from truesource.grammar.support.files import digest_file
from truesource.grammar.support.settings import Settings

if TYPE_CHECKING:
    from truesource.chain.models.config import ModelEntry
    from truesource.run.folder import RunFolder


def of_settings(run: RunFolder, kind: type[Settings]) -> dict[str, Any]:
    """The settings of an evaluator, with the contents of the files that they name."""
    settings = run.config.evaluation.of(kind).model_dump(mode="json")
    files = {name: digest_file(file) for name, file in run.settings(kind).named_files().items()}
    return {"settings": settings, "files": files}


def of_model(run: RunFolder, model: ModelEntry, kind: type[Settings] | None = None) -> dict[str, Any]:
    """Split, seed, corpus, grammar, the trained model, and the settings of an evaluator."""
    return {
        **({} if kind is None else of_settings(run, kind)),
        "split": run.config.evaluation.split,
        "seed": run.config.seed,
        "corpus": run.outputs["corpus"],
        "grammar": run.outputs["grammar"],
        "model": run.model_digest(model),
    }
