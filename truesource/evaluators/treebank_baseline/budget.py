"""How long a model is trained on another, smaller text."""

from __future__ import annotations

from truesource.lmtrain.config import TrainConfig


def budget(
    training: TrainConfig, *, steps: int, tokens: int, available: int, max_epochs: float, snapshots: bool
) -> TrainConfig:
    """The same training on a smaller text: as many optimiser steps, up to a number of passes.

    That is the rule of Jumelet and Zuidema (2023, section 5.4) for smaller corpora.

    Args:
        training: settings on the larger text.
        steps: optimiser steps that these came to.
        tokens: that were seen in these steps, ends of sentences included.
        available: tokens of the smaller text, ends of sentences included.
        max_epochs: largest number of passes over the smaller text.
        snapshots: keep the model at every step at which the loss on the dev split is measured.
    """
    passes = tokens / available
    duration = (
        {"max_steps": None, "epochs": max_epochs} if passes > max_epochs else {"max_steps": steps, "epochs": None}
    )
    kept = {"snapshots": "linear", "snapshot_every": training.eval_every} if snapshots else {"snapshots": "none"}
    return TrainConfig(**{**training.model_dump(), **duration, **kept})
