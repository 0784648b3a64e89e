"""Texts made ready for sums over their segmentations."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from truesource.evaluation.tokenisation.builder import LatticeBuilder
from truesource.evaluation.tokenisation.estimators.estimate import Document
from truesource.evaluation.tokenisation.window import canonical_fits
from truesource.generator.language_model import PieceInventory, TokenisedModel
from truesource.grammar.support.errors import InputError, NothingToMeasureError
from truesource.grammar.support.printable import track


@dataclass(frozen=True)
class Unreadable:
    """A text that the tokeniser has no pieces for; it has no probability."""

    number: int  #: of the text among those given, from 0
    parts: tuple[str, ...]  #: characters, or stretches, that no piece spells


@dataclass(frozen=True)
class Documents:
    """Texts that can be segmented, and those set aside."""

    documents: tuple[Document, ...]
    numbers: tuple[int, ...]  #: of each document among the texts given, from 0, ascending
    unreadable: tuple[Unreadable, ...]
    too_long: tuple[int, ...] = ()  #: numbers of the texts that `fitting` set aside, ascending

    def __len__(self) -> int:
        return len(self.documents)


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
            segmentations would count the same tokens twice).
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
            found.append(Document(read, lattice, builder.path(lattice, read.canonical)))
            numbers.append(number)
        except InputError as error:
            where = "" if path is not None else f"text {number + 1}: "
            raise InputError(f"{where}{error}", path, number + 1) from error
    if not found:
        parts = ", ".join(dict.fromkeys(repr(part) for text in unreadable for part in text.parts))
        raise NothingToMeasureError(
            f"none of the {len(texts)} texts can be segmented into pieces: no piece spells {parts}", "no-pieces", path
        )
    return Documents(tuple(found), tuple(numbers), tuple(unreadable))


def fitting(model: TokenisedModel, found: Documents) -> Documents:
    """The documents whose canonical tokenisation fits the model's window; the others are set aside.

    Args:
        model: that is to score their segmentations.
        found: from `documents`.

    Raises:
        InputError: none fits.
    """
    long = [not canonical_fits(model, document) for document in found.documents]
    if all(long):
        raise NothingToMeasureError(
            f"the window of {model.name}, {model.longest} tokens, is too short for all of the texts", "too-long"
        )
    kept = [i for i, wrong in enumerate(long) if not wrong]
    return replace(
        found,
        documents=tuple(found.documents[i] for i in kept),
        numbers=tuple(found.numbers[i] for i in kept),
        too_long=tuple(sorted([*found.too_long, *itertools.compress(found.numbers, long)])),
    )


def check_numbers(inventory: PieceInventory) -> None:
    """Whether different segmentations are different rows of tokens.

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
            " would be counted as two segmentations"
        )
