"""Hidden states of every layer of a network, one vector a word."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from truesource.generator.abilities import require
from truesource.generator.foreign_code import code_errors, file_of
from truesource.generator.language_model import LanguageModel, real_numbers
from truesource.grammar.support.arrays import IntArray
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.printable import meter
from truesource.lmtrain.data import by_length, pack
from truesource.lmtrain.decoding.steppers import without_cache
from truesource.lmtrain.pieces.models import CausalPieceModel, MaskedPieceModel
from truesource.lmtrain.pieces.words import Marks, check_piece_counts
from truesource.lmtrain.scoring import batch_budget
from truesource.lmtrain.word_models import AnyOrderModel, CausalModel, MaskedModel

Pooling = Literal["last", "mean"]
Network = CausalModel | MaskedModel | AnyOrderModel | CausalPieceModel | MaskedPieceModel
Vectors = NDArray[np.float32]
BUDGET = 2**31  #: bytes of vectors in memory at once, unless one layer alone has more


def hidden_states(
    model: LanguageModel,
    sentences: Sequence[Sequence[str]],
    *,
    layers: Sequence[int] | None = None,
    pooling: Pooling = "last",
) -> dict[int, Vectors]:
    """Return vectors of the words of sentences in each layer, as ``output_hidden_states`` of `transformers` gives them.

    Layer 0 is what enters the first layer (word vectors, with positions where the network adds them), layer k the
    output of the k-th; in some architectures the last one has gone through the final layer norm. The text has around
    it the tokens that the model was trained with; nothing is masked. A causal network has read the word itself and all
    before it, a masked one the whole sentence.

    Args:
        model: any network, or a custom model with a method ``hidden_states(sentences)`` that returns what this
            function does, for all layers.
        sentences: at least one word each.
        layers: their numbers; None: all.
        pooling: for models of pieces trained here, a word is its last piece, or the mean of its pieces.

    Returns:
        For each layer (W, D) vectors of the W words, sentence after sentence, float32.

    Raises:
        InputError: the model is no network or shows no hidden states, it has no such layer, a sentence is too long
            for it, two words share a piece, or a vector is not finite.
    """
    return dict(hidden_layers(model, sentences, layers=layers, pooling=pooling, budget=math.inf))


def hidden_layers(
    model: LanguageModel,
    sentences: Sequence[Sequence[str]],
    *,
    layers: Sequence[int] | None = None,
    pooling: Pooling = "last",
    words: IntArray | None = None,
    hide: bool = False,
    budget: float = BUDGET,
) -> Iterator[tuple[int, Vectors]]:
    """Yield the arrays of `hidden_states` layer by layer, in rising order, so that not all are in memory.

    The network reads the text once for as many layers as fit the budget, and again for the next ones; the vectors do
    not depend on that.

    Args:
        model: any network.
        sentences: at least one word each.
        layers: their numbers; None: all.
        pooling: for models of pieces.
        words: numbers of the words to return vectors of, rising, (W,); None: all.
        hide: read each word's vector with that word alone masked, as when the network is asked for it.
        budget: bytes of vectors; one layer is kept at least.

    Yields:
        Number of the layer, and (W, D) vectors, float32; not kept here.

    Raises:
        InputError: as `hidden_states`, or ``hide`` and the model has no mask.
    """
    require(model, "hidden-states", "evaluate probing")
    if hide and not (isinstance(model, Network) and model.objective != "causal"):
        raise InputError(f"{model.name} cannot be read with words masked; only a masked network can")
    if not isinstance(model, Network):
        yield from _layers_of_others(model, sentences, layers, words)
        return
    text = _Text.of(model, sentences)
    selected = np.arange(text.word_bounds[-1]) if words is None else words
    if hide:
        text, selected = text.hidden(selected)
    widths = _widths(model, text)
    numbers = [*range(len(widths))] if layers is None else sorted(layers)
    missing = [layer for layer in numbers if not 0 <= layer < len(widths)]
    if missing:
        raise InputError(f"{model.name} has layers 0 to {len(widths) - 1}, there is no layer {missing[0]}")
    size = np.dtype(np.float32).itemsize * len(selected)
    while numbers:
        sums = np.cumsum([size * widths[layer] for layer in numbers])
        n = max(1, int(np.searchsorted(sums, budget, side="right")))
        some, numbers = numbers[:n], numbers[n:]
        vectors = _extracted(model, text, {layer: widths[layer] for layer in some}, pooling, selected)
        for layer in some:
            yield layer, _finite(vectors.pop(layer))


def _layers_of_others(
    model: Any, sentences: Sequence[Sequence[str]], layers: Sequence[int] | None, words: IntArray | None
) -> Iterator[tuple[int, Vectors]]:
    """Yield the layers of a custom model, checked.

    Raises:
        InputError: they are not arrays of numbers by layer (code ``not-hidden-states``), complex (``complex``), not
            finite, or the model raises (``code-failed``).
    """
    source, n_words = file_of(model), sum(map(len, sentences))
    with code_errors(f"{model.name}.hidden_states", source):
        arrays = model.hidden_states(sentences)

    def refuse(what: str) -> InputError:
        return InputError(f"{model.name}.hidden_states {what}", source, code="not-hidden-states")

    if not isinstance(arrays, Mapping) or not all(isinstance(layer, int) for layer in arrays):
        raise refuse("has to return a dictionary from numbers of layers to arrays of vectors")
    missing = [layer for layer in layers or () if layer not in arrays]
    if missing:
        raise InputError(
            f"{model.name} has layers {', '.join(map(str, sorted(arrays)))}, there is no layer {missing[0]}"
        )
    for layer in sorted(arrays if layers is None else layers):
        with code_errors(f"reading layer {layer} of {model.name}.hidden_states", source):
            vectors = real_numbers(arrays[layer], f"layer {layer} of {model.name}.hidden_states", np.float32)
        if vectors.ndim != 2 or len(vectors) != n_words or not vectors.shape[1]:
            shape = "x".join(map(str, vectors.shape)) or "a single number"
            raise refuse(f"gives layer {layer} the shape {shape}, expected a row for each of the {n_words} words")
        yield layer, _finite(vectors if words is None else vectors[words])


class _Text:
    """Sentences as rows of token numbers, with the tokens around them."""

    def __init__(
        self,
        rows: list[IntArray],
        counts: IntArray,
        marks: Marks,
        masked: bool,
        size: int,
        sizes: Sequence[int],
    ) -> None:
        self.rows, self.marks, self.masked, self.size = rows, marks, masked, size
        self.counts = counts  # (W,) tokens of each word
        self.lengths = np.array([len(row) for row in rows], dtype=np.int64)
        #: (S+1,) where the words of each begin
        self.word_bounds = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self.budget = batch_budget(size)

    @classmethod
    def of(cls, model: Network, sentences: Sequence[Sequence[str]]) -> _Text:
        masked = model.objective != "causal"
        if isinstance(model, CausalModel | MaskedModel | AnyOrderModel):
            model.check_readable(sentences)
            words = model.encoder
            rows = words.encode(sentences)
            marks = Marks((words.bos,), (words.eos,) if masked else (), words.mask, words.pad)
            counts = np.ones(sum(map(len, rows)), dtype=np.int64)
            return cls(rows, counts, marks, masked, len(words), [len(sentence) for sentence in sentences])
        pieces = model.aligner.align(sentences)
        before, after, mask, pad = model.aligner.marks
        after = after if masked else ()
        check_piece_counts(pieces, len(before) + len(after), model.longest)
        marks = Marks(before, after, mask, pad)
        sizes = [len(sentence) for sentence in sentences]
        return cls(pieces.rows(), pieces.counts, marks, masked, len(model.aligner), sizes)

    def hidden(self, words: IntArray) -> tuple[_Text, IntArray]:
        """Copy the sentence of each given word (W,), with that word masked; and number the words in the copies."""
        assert self.marks.mask is not None
        sentence = np.searchsorted(self.word_bounds, words, side="right") - 1
        first = self.word_bounds[sentence]
        rows = []
        for word, row, start in zip(words.tolist(), (self.rows[i] for i in sentence), first.tolist(), strict=True):
            before = int(self.counts[start:word].sum())
            rows.append(row.copy())
            rows[-1][before : before + self.counts[word]] = self.marks.mask
        sizes = np.diff(self.word_bounds)[sentence]
        counts = [self.counts[start : start + size] for start, size in zip(first.tolist(), sizes.tolist(), strict=True)]
        copies = _Text(rows, np.concatenate(counts), self.marks, self.masked, self.size, sizes.tolist())
        return copies, copies.word_bounds[:-1] + words - first

    def words(self, sentences: IntArray) -> IntArray:
        """Return the numbers of the words of some sentences, in their order."""
        bounds = self.word_bounds
        return np.concatenate([np.arange(bounds[i], bounds[i + 1]) for i in sentences])


def _widths(model: Network, text: _Text) -> list[int]:
    """Return the size of the vectors of each layer, from a look at the shortest sentence."""
    if not text.rows:
        return []
    states, _ = _states(model, text, np.array([text.lengths.argmin()]))
    return [state.shape[-1] for state in states]


def _extracted(
    model: Network, text: _Text, widths: dict[int, int], pooling: Pooling, selected: IntArray
) -> dict[int, Vectors]:
    """Return the vectors of selected words in some layers, given with their widths."""
    result = {layer: np.empty((len(selected), width), dtype=np.float32) for layer, width in widths.items()}
    row = np.full(text.word_bounds[-1], -1)
    row[selected] = np.arange(len(selected))
    around = len(text.marks.before) + len(text.marks.after)
    with meter("hidden states of sentences", len(text.rows)) as bar:
        for some in by_length(text.lengths + around, text.budget):
            words = text.words(some)
            is_selected = row[words] >= 0
            if is_selected.any():
                states, at = _states(model, text, some)
                for layer, vectors in result.items():
                    rows = states[layer].flatten(0, 1)[at].float().cpu().numpy()
                    vectors[row[words[is_selected]]] = _pooled(rows, text.counts[words], pooling)[is_selected]
            bar.advance(len(some))
    return result


def _states(model: Network, text: _Text, some: IntArray) -> tuple[tuple[Tensor, ...], Tensor]:
    """Return the output of each layer for a batch, (B, L, D), and the places of its own tokens in B times L."""
    network = model.model.eval()
    before, after, _, pad = text.marks
    left, right = np.array(before, dtype=np.int64), np.array(after, dtype=np.int64)
    filler = pad if text.masked or not before else before[0]  # on the right, where no causal network looks
    table, occupied = pack([np.concatenate([left, text.rows[i], right]) for i in some], filler)
    inputs = {"input_ids": torch.from_numpy(table).to(network.device)}
    if text.masked and not occupied.all():
        inputs["attention_mask"] = torch.from_numpy(occupied.astype(np.int64)).to(network.device)
    with torch.inference_mode():
        output = network(**inputs, output_hidden_states=True, **without_cache(network))
    states: tuple[Tensor, ...] | None = getattr(output, "hidden_states", None)
    if states is None:
        raise InputError(f"{model.name} does not show its hidden states, so it cannot be probed")
    column = np.arange(table.shape[1])
    inner = (column >= len(before)) & (column < len(before) + text.lengths[some][:, None])
    return states, torch.from_numpy(np.flatnonzero(inner)).to(network.device)


def _pooled(rows: Vectors, counts: IntArray, pooling: Pooling) -> Vectors:
    """Pool the vectors of the pieces of each word."""
    ends = np.cumsum(counts)
    if pooling == "last":
        return rows[ends - 1]
    sums = np.add.reduceat(rows, ends - counts, axis=0)
    return np.asarray(sums / counts[:, None], dtype=np.float32)


def _finite(rows: Vectors) -> Vectors:
    """Return the rows, all of them finite.

    Raises:
        InputError: a value is not finite.
    """
    if not np.isfinite(rows).all():
        raise InputError("the hidden states are not finite; the model's weights are damaged or training diverged")
    return rows
