"""Running a model's output layer only where something is to be predicted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn

from lmtrain.data import Batch


class Predictor:
    """Logits of a model at chosen positions.

    The output layer is most of a small model's work, and a masked model needs it at few positions. A hook
    before it picks those out, so any architecture serves, also inside a distributed wrapper.
    """

    def __init__(self, model: nn.Module, head: str) -> None:
        self._positions: Tensor | None = None
        self._handle = getattr(model, head).register_forward_pre_hook(self._pick)

    def _pick(self, module: nn.Module, arguments: tuple[Tensor, ...]) -> tuple[Tensor, ...] | None:
        if self._positions is None:
            return None
        return (arguments[0].flatten(0, 1).index_select(0, self._positions), *arguments[1:])

    def __call__(self, model: nn.Module, batch: Batch, **options: Any) -> Tensor:
        """Logits (T, V) at ``batch["positions"]``; ``model`` is the hooked one or a wrapper of it."""
        inputs = {key: value for key, value in batch.items() if key not in ("positions", "targets")}
        self._positions = batch["positions"]
        try:
            logits: Tensor = model(**inputs, **options).logits
        finally:
            self._positions = None
        return logits

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
