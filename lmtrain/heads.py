"""Running a model's output layer only where something is to be predicted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn
from torch.nn import functional

from truesource.lmtrain.architectures.target_head import TargetHead
from truesource.lmtrain.data import Batch


class Predictor:
    """Logits, or the loss, of a model at chosen positions.

    The output layer is most of a small model's work, and a masked model needs it at few positions. A hook
    before it picks those out, so any architecture serves, also inside a distributed wrapper.
    """

    def __init__(self, model: nn.Module, head: str) -> None:
        self._positions: Tensor | None = None
        self._targets: Tensor | None = None
        layer = getattr(model, head)
        self._scores_targets = isinstance(layer, TargetHead)
        self._handle = layer.register_forward_pre_hook(self._pick)

    def _pick(self, module: nn.Module, arguments: tuple[Tensor, ...]) -> tuple[Tensor, ...] | None:
        if self._positions is None:
            return None
        hidden = arguments[0].flatten(0, 1).index_select(0, self._positions)
        return (hidden, *arguments[1:]) if self._targets is None else (hidden, self._targets)

    def __call__(self, model: nn.Module, batch: Batch, **options: Any) -> Tensor:
        """Logits (T, V) at ``batch["positions"]``; ``model`` is the hooked one or a wrapper of it."""
        inputs = {key: value for key, value in batch.items() if key not in ("positions", "targets")}
        self._positions = batch["positions"]
        try:
            logits: Tensor = model(**inputs, **options).logits
        finally:
            self._positions = None
        return logits

    def loss(self, model: nn.Module, batch: Batch, *, reduction: str = "mean", **options: Any) -> Tensor:
        """Cross-entropy with ``batch["targets"]``, nats: the mean, or with ``reduction="none"`` of each (T,)."""
        if not self._scores_targets:
            return functional.cross_entropy(
                self(model, batch, **options).float(), batch["targets"], reduction=reduction
            )
        self._targets = batch["targets"]
        try:
            losses = -self(model, batch, **options)
        finally:
            self._targets = None
        return losses if reduction == "none" else losses.mean()

    def close(self) -> None:
        """Take the hook away."""
        self._handle.remove()


@contextmanager
def predictor(model: nn.Module, head: str) -> Iterator[Predictor]:
    """A `Predictor` that leaves the model as it was."""
    made = Predictor(model, head)
    try:
        yield made
    finally:
        made.close()
