"""Texts that are read for sums over their cuts, and what is said of those that cannot be."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from truesource.cli.console import echo

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from truesource.evaluation.tokenisation.builder import LatticeBuilder
    from truesource.evaluation.tokenisation.documents import Documents, Unreadable
    from truesource.evaluation.tokenisation.measure import Measured
    from truesource.evaluation.tokenisation.settings import EstimatorSettings
    from truesource.generator.piece_model import PieceText, TokenisedModel


def read_texts(
    model: TokenisedModel,
    texts: list[str],
    builder: LatticeBuilder,
    path: Path,
    leave_out_long: bool,
    exact: EstimatorSettings | None,
) -> Documents:
    """Documents of a file that the model can read, with a word about the others.

    Args:
        model: whose tokeniser reads them.
        texts: one document each.
        builder: of lattices.
        path: the file, for messages.
        leave_out_long: set documents aside that are too long for the model.
        exact: settings, where all cuts are to be added up one by one.

    Raises:
        InputError: no document can be read, one is too long, or has too many cuts for ``exact``.
    """
    from truesource.evaluation.tokenisation.documents import documents
    from truesource.evaluation.tokenisation.measure import fitting_documents, impossible_exact, partly_read
    from truesource.grammar.errors import InputError

    found = documents(model, texts, builder, path)
    read_as = zip(found.numbers, (document.text for document in found.documents), strict=True)
    warn_of_texts(read_as, found.unreadable, len(texts), path)
    try:
        found = fitting_documents(model, found, leave_out=leave_out_long)
    except InputError as error:
        raise InputError(str(error), path) from error
    if (partly := partly_read(model, found)) is not None:
        echo(f"Warning: {path}: {partly}", err=True)
    if exact is not None and (number := impossible_exact(model, found, exact)) is not None:
        raise InputError(
            "this text has too many ways to be cut to add them all up with this model; leave exact out and use dpf",
            path,
            number + 1,
        )
    return found


def warn_of_left_out(measured: Measured, path: Path) -> None:
    """Say on stderr how many documents of a file count in no sum, but for those that no piece spells."""
    evaluation = measured.evaluation
    given = len(evaluation.documents) + len(evaluation.left_out)
    reasons = Counter(text.reason for text in evaluation.left_out if not text.unreadable)  # those were said when read
    for reason, number in reasons.items():
        echo(f"Warning: {number:,} of {given:,} documents of {path} are left out; {reason}", err=True)


def warn_of_texts(
    texts: Iterable[tuple[int, PieceText]], unreadable: Sequence[Unreadable], given: int, path: Path
) -> None:
    """Say on stderr which documents are set aside, and which the tokeniser reads otherwise than they were given."""
    from truesource.cli.inputs import list_lines

    if unreadable:
        numbers = [text.number + 1 for text in unreadable]
        parts = sorted({part for text in unreadable for part in text.parts})
        listed = ", ".join(map(repr, parts[:5])) + (", ..." if len(parts) > 5 else "")
        echo(
            f"Warning: {len(numbers):,} of {given:,} documents of {path} ({list_lines(numbers)}) hold what no piece"
            f" spells, {listed}, and are set aside: they have no probability.",
            err=True,
        )
    spaced: list[int] = []
    changed: list[int] = []
    for number, text in texts:
        if text.altered:
            (spaced if " ".join(text.original.split()) != text.original else changed).append(number + 1)
    if spaced:
        echo(
            f"Warning: {len(spaced):,} of {given:,} documents of {path} ({list_lines(spaced)}) have runs of white"
            " space, or white space at an end, which the tokeniser changes; words and characters are counted on the"
            " original.",
            err=True,
        )
    if changed:
        echo(
            f"Warning: the tokeniser normalises {len(changed):,} of {given:,} documents of {path}"
            f" ({list_lines(changed)}) to other characters; words and characters are counted on the original.",
            err=True,
        )
