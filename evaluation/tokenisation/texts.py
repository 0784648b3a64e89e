"""Reading the documents of a text, with warnings of excluded and altered ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from truesource.evaluation.tokenisation.documents import Documents, Unreadable, documents
from truesource.evaluation.tokenisation.preparation import fitting_documents, impossible_exact, partly_read
from truesource.grammar.support.errors import InputError, NothingToMeasureError
from truesource.grammar.support.printable import list_lines

if TYPE_CHECKING:
    from truesource.evaluation.tokenisation import EstimatorSettings
    from truesource.evaluation.tokenisation.evaluator import TokenisationSettings
    from truesource.evaluation.tokenisation.lattice import LatticeBuilder
    from truesource.generator.piece_model import PieceText, TokenisedModel

BRACKETINGS = (".mrg", ".ptb")  #: endings of names of treebanks, before ``.gz``

Warn = Callable[[str], None]  #: prints one sentence to the user


@dataclass(frozen=True)
class TextSet:
    """A set of documents, and their source."""

    name: str
    path: Path  #: path for messages
    documents: Sequence[str]


def is_treebank(path: Path) -> bool:
    """Return True if the name of a file indicates Penn bracketings, compressed or not."""
    return path.name.removesuffix(".gz").endswith(BRACKETINGS)


def sentences_of_trees(path: Path) -> list[str]:
    """Read a document from each tree: its words, without traces, separated by single spaces.

    Raises:
        InputError: the file is missing, a bracketing is broken, or there is no tree.
    """
    from truesource.grammar.treebank import Treebank

    return [" ".join(tree.leaves()) for tree in Treebank.read(path)]


def read_text(
    model: TokenisedModel, text: TextSet, builder: LatticeBuilder, leave_out_long: bool, warn: Warn
) -> Documents:
    """Read the documents that the model can read.

    Args:
        model: model whose tokeniser reads them.
        text: set of documents.
        builder: builder of lattices.
        leave_out_long: exclude documents that are too long for the model.
        warn: prints what is excluded, and what the tokeniser alters.

    Raises:
        InputError: no document can be read, or one is too long.
    """
    readable = documents(model, text.documents, builder, text.path)
    read_as = zip(readable.numbers, (document.text for document in readable.documents), strict=True)
    warn_of_altered(read_as, readable.unreadable, len(text.documents), text.path, warn)
    try:
        readable = fitting_documents(model, readable, leave_out=leave_out_long)
    except NothingToMeasureError as error:
        raise NothingToMeasureError(str(error), error.code, text.path) from error
    except InputError as error:
        raise InputError(str(error), text.path) from error
    if (partly := partly_read(model, readable)) is not None:
        warn(f"{text.path}: {partly}")
    return readable


def possible_estimators(
    model: TokenisedModel,
    texts: Iterable[tuple[TextSet, Documents]],
    settings: TokenisationSettings,
    estimation: EstimatorSettings,
    warn: Warn,
) -> list[str]:
    """Return the estimators, without ``exact`` if some text has too many segmentations to enumerate.

    Raises:
        NothingToMeasureError: ``exact`` is the only estimator.
    """
    for text, readable in texts if "exact" in settings.estimators else ():
        if (number := impossible_exact(model, readable, estimation)) is not None:
            reason = f"text {number + 1} has too many segmentations for exact"
            if len(settings.estimators) == 1:
                raise NothingToMeasureError(f"{reason}; use dpf", "too-many-segmentations", text.path)
            warn(f"{reason}, which is not run ({text.path})")
            return [name for name in settings.estimators if name != "exact"]
    return list(settings.estimators)


def warn_of_altered(
    texts: Iterable[tuple[int, PieceText]], unreadable: Sequence[Unreadable], given: int, path: Path, warn: Warn
) -> None:
    """Warn of documents that no pieces spell, and of documents that the tokeniser alters."""
    if unreadable:
        numbers = [text.number + 1 for text in unreadable]
        parts = sorted({part for text in unreadable for part in text.parts})
        listed = ", ".join(map(repr, parts[:5])) + (", ..." if len(parts) > 5 else "")
        warn(
            f"{len(numbers):,} of {given:,} documents of {path} ({list_lines(numbers)}) are excluded:"
            f" no piece spells {listed}, so they have no probability"
        )
    altered: dict[bool, list[int]] = {True: [], False: []}
    for number, text in texts:
        if text.altered:
            altered[" ".join(text.original.split()) != text.original].append(number + 1)
    for white_space, numbers in altered.items():
        if numbers:
            what = "white space" if white_space else "characters"
            warn(
                f"the tokeniser alters {what} of {len(numbers):,} of {given:,} documents of {path}"
                f" ({list_lines(numbers)}); words and characters are counted in the original"
            )
