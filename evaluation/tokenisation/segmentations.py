"""Exact sums over all segmentations of a text, without a model: their number, probability and entropy."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from truesource.evaluation.core.score import Key, keyed
from truesource.evaluation.show.result import Result
from truesource.evaluation.show.words import count
from truesource.evaluation.tokenisation.ambiguity import measure_ambiguity
from truesource.evaluation.tokenisation.ambiguity_report import ambiguity_table, words_table
from truesource.evaluation.tokenisation.documents import Unreadable
from truesource.evaluation.tokenisation.preparation import builder_for
from truesource.evaluation.tokenisation.texts import Warn, warn_of_altered
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.printable import track

if TYPE_CHECKING:
    from truesource.evaluation.tokenisation.evaluator import TokenisationSettings
    from truesource.generator.piece_model import PieceText, PieceTokenizer

KIND = "evaluate tokenisation --lattice"


def sum_over_lattice(
    tokeniser: str | Path, path: Path, documents: Sequence[str], settings: TokenisationSettings, *, list_words: int = 10
) -> Result:
    """Sum over all segmentations of documents by the scores of their pieces; no network is run.

    Args:
        tokeniser: model folder, tokenizer.json or SentencePiece .model.
        path: file or folder of the documents.
        documents: documents to segment.
        settings: ``proposal``, ``inverse_temperature`` and ``sentences`` are used.
        list_words: number of most ambiguous words to list.

    Returns:
        A result whose ``detail`` is `truesource.evaluation.tokenisation.ambiguity.Ambiguity`.

    Raises:
        InputError: the tokeniser cannot be read, or cannot spell any document.
    """
    from truesource.lmtrain.pieces.inventory import read_pieces  # tokenizers, after the quick checks

    notes: list[str] = []
    documents = documents[: settings.sentences]
    pieces = read_pieces(Path(tokeniser))
    spelled = _read(pieces, documents, path, notes.append)
    builder, by = builder_for(pieces, [document.original for document in spelled], settings.proposal)
    if by == "fitted":
        notes.append(
            f"scores of pieces were fitted to this same text ({count(len(spelled), 'document')}),"
            " so Q is too high and entropies are too low, especially for short texts; --proposal uniform needs no"
            " fit, and a Unigram tokeniser already has scores"
        )
    ambiguity = measure_ambiguity(builder, spelled, settings.inverse_temperature)
    words = words_table(ambiguity, list_words)
    counts = {"given": len(documents), "unreadable": len(documents) - len(spelled)}
    head: dict[str, Key] = {"tokeniser": str(tokeniser), "text": str(path), **counts}
    return Result(
        kind=KIND,
        scores=keyed(ambiguity.as_scores(scores=by, words=list_words), **head),
        tables=[ambiguity_table(ambiguity, f"{tokeniser}, {by} scores", by), *([words] if words else [])],
        notes=notes,
        detail=ambiguity,
    )


def _read(pieces: PieceTokenizer, documents: Sequence[str], path: Path, warn: Warn) -> list[PieceText]:
    """Read the documents that pieces spell, and warn of the others.

    Raises:
        InputError: there are no such documents, or the tokeniser refuses one.
    """
    texts = []
    for number, document in enumerate(track(documents, "segmentations of texts", len(documents))):
        try:
            texts.append(pieces.read(document))
        except InputError as error:
            raise InputError(str(error), path, number + 1) from error
    spelled = [(number, text) for number, text in enumerate(texts) if not text.unreadable]
    others = [Unreadable(number, text.unreadable) for number, text in enumerate(texts) if text.unreadable]
    if not spelled:
        part = others[0].parts[0]
        raise InputError(f"no document has a segmentation: no piece spells {part!r}", path, others[0].number + 1)
    warn_of_altered(spelled, others, len(documents), path, warn)
    return [text for _, text in spelled]
