"""What a module of one's own keeps of a text: any nest of tensors, flattened to a list and made again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from truesource.grammar.support.errors import InputError


def tensors_of(state: Any) -> list[Tensor]:
    """The tensors in a nest of tuples, lists and dicts, in order.

    Raises:
        InputError: it holds something else, such as a number (code ``bad-step``).
    """
    if isinstance(state, Tensor):
        return [state]
    if state is None:
        return []
    if isinstance(state, Mapping):
        return [tensor for value in state.values() for tensor in tensors_of(value)]
    if isinstance(state, Sequence) and not isinstance(state, str):
        return [tensor for value in state for tensor in tensors_of(value)]
    raise InputError(
        f"step returns a state with a {type(state).__name__} in it; it must be made of tensors (B, ...) alone,"
        " in tuples, lists or dicts",
        code="bad-step",
    )


def nest_like(state: Any, tensors: Sequence[Tensor]) -> Any:
    """The same nest as ``state`` with other tensors in it."""
    remaining = iter(tensors)

    def filled(part: Any) -> Any:
        if part is None:
            return None
        if isinstance(part, Tensor):
            return next(remaining)
        if isinstance(part, Mapping):
            return {key: filled(value) for key, value in part.items()}
        values = [filled(value) for value in part]
        if hasattr(part, "_fields"):
            return type(part)(*values)
        return tuple(values) if isinstance(part, tuple) else values

    return filled(state)


class GrowingStates:
    """Tensors with a row for each text whose other sizes grow with it, such as keys and values."""

    def __init__(self, tensors: Sequence[Tensor]) -> None:
        self.tensors = list(tensors)

    def batch_select_indices(self, indices: Tensor) -> None:
        """Keep the rows ``indices`` (int64 or bool mask), in that order; a number may be repeated."""
        rows = indices.nonzero()[:, 0] if indices.dtype == torch.bool else indices
        self.tensors = [tensor.index_select(0, rows) for tensor in self.tensors]
