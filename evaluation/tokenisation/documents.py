"""Texts made ready for sums over their cuts."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from evaluation.tokenisation.builder import LatticeBuilder
from evaluation.tokenisation.estimate import Document
from evaluation.tokenisation.lattice import Lattice
from generator.piece_model import PieceInventory, TokenisedModel
from grammar.errors import InputError
from grammar.progress import track


@dataclass(frozen=True)
class Unreadable:
    """A text that the tokeniser has no pieces for; it has no probability."""

    number: int  #: of the text among those given, from 0
    parts: tuple[str, ...]  #: characters, or stretches, that no piece spells


@dataclass(frozen=True)
class Documents:
    """Texts that can be cut, and those set aside."""

    documents: tuple[Document, ...]
    numbers: tuple[int, ...]  #: of each document among the texts given, from 0, ascending
    unreadable: tuple[Unreadable, ...]

    def __len__(self) -> int:
        return len(self.documents)

    @property
    def altered(self) -> tuple[int, ...]:
        """Numbers of the documents that the tokeniser changes before it cuts them."""
        return tuple(n for n, document in zip(self.numbers, self.documents, strict=True) if document.text.altered)


def documents(
    model: TokenisedModel, texts: Sequence[str], builder: LatticeBuilder, path: str | Path | None = None
) -> Documents:
    """Read texts and build their lattices; those that hold what no piece spells are set aside.

    Args:
        model: whose tokeniser reads them.
        texts: one document each.
        builder: of lattices over the pieces of the same tokeniser.
        path: the file that the texts are the lines of, for messages.

    Raises:
        InputError: there are no texts, one is empty, none can be read, or two pieces have one number (a sum over
            cuts would count the same tokens twice).
    """
    tokenizer = model.pieces
    check_numbers(tokenizer.inventory)
    if builder.inventory.pieces != tokenizer.inventory.pieces:
        raise ValueError("the lattices must be over the pieces of the model's tokeniser")
    if not texts:
        raise InputError("there are no texts", path)
    found: list[Document] = []
    numbers: list[int] = []
    unreadable: list[Unreadable] = []
    for number, text in enumerate(track(texts, "lattices of the texts", len(texts))):
        try:
            read = tokenizer.read(text)
            if read.unreadable:
                unreadable.append(Unreadable(number, read.unreadable))
                continue
            lattice = builder.build(read.spelling)
            found.append(Document(read, lattice, builder.path(lattice, read.cut)))
            numbers.append(number)
        except InputError as error:
            where = "" if path is not None else f"text {number + 1}: "
            raise InputError(f"{where}{error}", path, number + 1) from error
    if not found:
        parts = ", ".join(dict.fromkeys(repr(part) for text in unreadable for part in text.parts))
        raise InputError(f"none of the {len(texts)} texts can be cut into pieces: no piece spells {parts}", path)
    return Documents(tuple(found), tuple(numbers), tuple(unreadable))


def check_numbers(inventory: PieceInventory) -> None:
    """Whether different cuts are different rows of tokens.

    Raises:
        InputError: two pieces have one number.
    """
    order = np.argsort(inventory.ids, kind="stable")
    ids = inventory.ids[order]
    same = np.flatnonzero(ids[1:] == ids[:-1])
    if len(same):
        one, two = (inventory.pieces[int(order[same[0] + i])] for i in (0, 1))
        raise InputError(
            f"the pieces {one!r} and {two!r} have the same number {int(ids[same[0]])}, so that one row of tokens"
            " would be counted as two cuts"
        )


def longest_cut(lattice: Lattice) -> int:
    """The most pieces that the text of a lattice can be cut into."""
    longest = np.zeros(lattice.n + 1, dtype=np.int64)
    bounds = lattice.first[1:].tolist()
    for position, (low, high) in enumerate(itertools.pairwise(bounds), start=1):
        if high > low:
            longest[position] = longest[lattice.source[low:high]].max() + 1
    return int(longest[-1])


def check_window(model: TokenisedModel, document: Document) -> None:
    """Whether the model can score every cut of a text: the probability of a part of a cut is not that of the cut.

    Raises:
        InputError: the longest cut, with the token before it, is longer than what the model reads.
    """
    before = model.around[0]
    if model.longest is None or document.lattice.n + before <= model.longest:
        return
    tokens = longest_cut(document.lattice) + before
    if tokens > model.longest:
        raise InputError(
            f"the window of {model.name} is too short: a text may have {tokens} tokens in its longest cut, the model"
            f" reads {model.longest}; divide the text, or use one-best or nbest, which score the best cuts only"
        )
