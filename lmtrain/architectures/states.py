"""The state that a recurrent or convolutional model keeps of a text to go on with it."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


class RecurrentStates:
    """Tensors with a row for each text, of fixed size however long the text.

    Takes the place of the `transformers.DynamicCache` of a transformer. A model that is given one leaves
    it as it is and returns another.
    """

    def __init__(self, tensors: Sequence[Tensor], dim: int) -> None:
        """``dim`` is the dimension of the rows."""
        self.tensors = list(tensors)
        self.dim = dim

    def batch_select_indices(self, indices: Tensor) -> None:
        """Keep the rows ``indices`` (int64 or bool mask), in that order; a number may be repeated."""
        rows = indices.nonzero()[:, 0] if indices.dtype == torch.bool else indices
        self.tensors = [tensor.index_select(self.dim, rows) for tensor in self.tensors]

    def reorder_cache(self, beam_idx: Tensor) -> None:
        """The same by the name that beam search of `transformers` calls it by."""
        self.batch_select_indices(beam_idx)
