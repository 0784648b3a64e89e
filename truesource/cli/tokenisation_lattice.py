"""`truesource evaluate tokenisation --lattice`: exact sums over all segmentations of a text."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from truesource.terminal.console import echo

if TYPE_CHECKING:
    from collections.abc import Sequence

    from truesource.evaluation.tokenisation import Proposal
    from truesource.generator.piece_model import PieceText, PieceTokenizer
    from truesource.terminal.output import OutputFiles


def sum_over_lattice(
    tokeniser: Path,
    text: Path,
    documents: Sequence[str],
    *,
    scores: Proposal | None,
    inverse_temperature: float,
    n_words: int,
    files: OutputFiles,
) -> None:
    """Print and write the number, probability and entropy of the segmentations of documents; no network is run.

    Args:
        tokeniser: model folder, tokenizer.json or SentencePiece .model.
        text: where the documents are from.
        documents: to segment.
        scores: of pieces; None: the tokeniser's own, else fitted.
        inverse_temperature: of the distribution over segmentations.
        n_words: number of words to list, the most ambiguous first.
        files: to write.

    Raises:
        InputError: the tokeniser cannot be read, or spells no document.
    """
    from truesource.evaluation.show.words import count
    from truesource.evaluation.tokenisation.ambiguity import measure_ambiguity
    from truesource.evaluation.tokenisation.ambiguity_report import ambiguity_table, words_table
    from truesource.evaluation.tokenisation.preparation import builder_for
    from truesource.lmtrain.pieces.inventory import read_pieces  # tokenizers, after the quick checks
    from truesource.terminal.output import json_of
    from truesource.terminal.tables import show

    pieces = read_pieces(tokeniser)
    spelled = _read(pieces, documents, text)
    builder, by = builder_for(pieces, [document.original for document in spelled], scores)
    if by == "fitted":
        echo(
            f"Warning: scores of pieces were fitted to this very text ({count(len(spelled), 'document')}),"
            " so Q is too high and entropies are too low, the more the shorter the text is; --proposal uniform needs no"
            " fit, and a Unigram tokeniser has scores already",
            err=True,
        )
    ambiguity = measure_ambiguity(builder, spelled, inverse_temperature)
    show(ambiguity_table(ambiguity, f"{tokeniser}, {by} scores", by))
    if words := words_table(ambiguity, n_words):
        show(words)
    echo(f"entropy|{ambiguity.scores(scores=by)['entropy'].signature}")
    counts = {"given": len(documents), "unreadable": len(documents) - len(spelled)}
    head = {"tokeniser": str(tokeniser), "text": str(text), **counts}
    files.finish(
        f"truesource evaluate tokenisation MODEL {text}",
        json=json_of([{**head, **record} for record in ambiguity.records(scores=by, words=n_words)]),
    )


def _read(pieces: PieceTokenizer, documents: Sequence[str], path: Path) -> list[PieceText]:
    """The documents that pieces spell, with a warning of the others.

    Raises:
        InputError: there are none, or the tokeniser refuses one.
    """
    from truesource.evaluation.tokenisation.documents import Unreadable
    from truesource.evaluation.tokenisation.texts import warn_of_altered
    from truesource.grammar.support.errors import InputError
    from truesource.grammar.support.printable import track

    read = []
    for number, document in enumerate(track(documents, "segmentations of texts", len(documents))):
        try:
            read.append(pieces.read(document))
        except InputError as error:
            raise InputError(str(error), path, number + 1) from error
    kept = [(number, found) for number, found in enumerate(read) if not found.unreadable]
    others = [Unreadable(number, found.unreadable) for number, found in enumerate(read) if found.unreadable]
    if not kept:
        part = others[0].parts[0]
        raise InputError(f"no document has a segmentation: no piece spells {part!r}", path, others[0].number + 1)
    warn_of_altered(kept, others, len(documents), path, lambda warning: echo(f"Warning: {warning}", err=True))
    return [found for _, found in kept]
