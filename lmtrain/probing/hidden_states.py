"""Hidden states of every layer of a network, one vector a word."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from grammar.errors import InputError
from grammar.progress import meter
from lmtrain.data import Ints, by_length, pack
from lmtrain.models import CausalModel, MaskedModel, TrainedModel
from lmtrain.pieces.cutter import Marks
from lmtrain.pieces.models import CausalPieceModel, MaskedPieceModel
from lmtrain.pieces.slots import check_piece_counts
from lmtrain.scoring import batch_budget, check_lengths
from lmtrain.tokenizer import Vocabulary

Pooling = Literal["last", "mean"]
Network = CausalModel | MaskedModel | CausalPieceModel | MaskedPieceModel
Vectors = NDArray[np.float32]


def hidden_states(
    model: TrainedModel,
    sentences: Sequence[Sequence[str]],
    *,
    layers: Sequence[int] | None = None,
    pooling: Pooling = "last",
) -> dict[int, Vectors]:
    """Vectors of the words of sentences in each layer, as ``output_hidden_states`` of `transformers` gives them.

    Layer 0 is what enters the first layer (word vectors, with positions where the network adds them), layer k the
    output of the k-th; in some architectures the last one has gone through the final layer norm. The text has around
    it the tokens that the model was trained with; nothing is masked. A causal network has read the word itself and all
    before it, a masked one the whole sentence.

    Args:
        model: any network.
        sentences: at least one word each.
        layers: numbers of those wanted; None: all.
        pooling: for models of pieces, a word is its last piece, or the mean of its pieces.

    Returns:
        For each layer (W, D) vectors of the W words, sentence after sentence, float32.

    Raises:
        InputError: the model is no network or shows no hidden states, it has no such layer, a sentence is too long
            for it, two words share a piece, or a vector is not finite.
    """
    require_network(model)
    assert isinstance(model, Network)
    text = _Text.of(model, sentences)
    found: dict[int, Vectors] = {}
    with meter("hidden states", len(sentences)) as bar:
        for some, vectors in _batches(model, text, layers):
            own = np.concatenate([np.arange(text.bounds[i], text.bounds[i + 1]) for i in some])
            for layer, rows in vectors.items():
                if layer not in found:
                    found[layer] = np.empty((int(text.bounds[-1]), rows.shape[1]), dtype=np.float32)
                found[layer][own] = rows
            bar.advance(len(some))
    for layer, rows in found.items():
        found[layer] = _pooled(rows, text.counts, pooling)
        if not np.isfinite(found[layer]).all():
            raise InputError("the hidden states are not finite; the model's weights are damaged or training diverged")
    return found


def require_network(model: object) -> None:
    """Stop where there are no layers.

    Raises:
        InputError: the model counts n-grams.
    """
    if not isinstance(model, Network):
        name = getattr(model, "name", "this model")
        raise InputError(f"{name} has no hidden states, for it counts n-grams; probe a network")


class _Text:
    """Sentences as rows of token numbers, with the tokens around them."""

    def __init__(self, rows: list[Ints], counts: Ints, marks: Marks, masked: bool, size: int) -> None:
        self.rows, self.counts, self.marks, self.masked = rows, counts, marks, masked
        self.lengths = np.array([len(row) for row in rows], dtype=np.int64)
        self.bounds = np.concatenate([[0], np.cumsum(self.lengths)])  # (S+1,) where the tokens of each begin
        self.budget = batch_budget(size)

    @classmethod
    def of(cls, model: Network, sentences: Sequence[Sequence[str]]) -> _Text:
        masked = model.objective == "masked"
        if isinstance(model, CausalModel | MaskedModel):
            check_lengths(sentences, model.longest)
            words = Vocabulary(model.tokenizer)
            rows = words.encode(sentences)
            marks = Marks((words.bos,), (words.eos,) if masked else (), None, words.pad)
            return cls(rows, np.ones(sum(map(len, rows)), dtype=np.int64), marks, masked, len(words))
        pieces = model.cutter.cut(sentences)
        before, after, mask, pad = model.cutter.marks
        after = after if masked else ()
        check_piece_counts(pieces, len(before) + len(after), model.longest)
        return cls(pieces.rows(), pieces.counts, Marks(before, after, mask, pad), masked, len(model.cutter))


def _batches(
    model: Network, text: _Text, layers: Sequence[int] | None
) -> Iterator[tuple[Ints, dict[int, NDArray[np.float32]]]]:
    """Sentences of a batch and the vectors of their tokens, layer by layer."""
    network = model.model.eval()
    options = {"use_cache": False} if "use_cache" in inspect.signature(network.forward).parameters else {}
    before, after, _, pad = text.marks
    left, right = np.array(before, dtype=np.int64), np.array(after, dtype=np.int64)
    filler = pad if text.masked or not before else before[0]  # stands on the right, where no causal network looks
    for some in by_length(text.lengths + len(before) + len(after), text.budget):
        table, own = pack([np.concatenate([left, text.rows[i], right]) for i in some], filler)
        inputs = {"input_ids": torch.from_numpy(table).to(network.device)}
        if text.masked and not own.all():
            inputs["attention_mask"] = torch.from_numpy(own.astype(np.int64)).to(network.device)
        with torch.inference_mode():
            states: tuple[Tensor, ...] | None = network(**inputs, output_hidden_states=True, **options).hidden_states
        if states is None:
            raise InputError(f"{model.name} does not show its hidden states, so it cannot be probed")
        wanted = range(len(states)) if layers is None else layers
        missing = [layer for layer in wanted if not 0 <= layer < len(states)]
        if missing:
            raise InputError(f"{model.name} has layers 0 to {len(states) - 1}, there is no layer {missing[0]}")
        column = np.arange(table.shape[1])
        inner = (column >= len(before)) & (column < len(before) + text.lengths[some][:, None])
        at = torch.from_numpy(np.flatnonzero(inner)).to(network.device)
        yield some, {layer: states[layer].flatten(0, 1)[at].float().cpu().numpy() for layer in wanted}


def _pooled(rows: Vectors, counts: Ints, pooling: Pooling) -> Vectors:
    """One vector a word from those of its pieces."""
    ends = np.cumsum(counts)
    if pooling == "last":
        return rows[ends - 1]
    sums = np.add.reduceat(rows, ends - counts, axis=0)
    return np.asarray(sums / counts[:, None], dtype=np.float32)
