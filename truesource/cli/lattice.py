"""`truesource evaluate lattice`: exact sums over all segmentations of a text into a tokeniser's pieces."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from truesource.evaluation.tokenisation import Proposal
from truesource.terminal.console import echo
from truesource.terminal.options import Force, Json, SplitName

if TYPE_CHECKING:
    from collections.abc import Sequence

    from truesource.evaluation.show.table import Cell, ReportTable
    from truesource.evaluation.tokenisation.ambiguity import Ambiguity
    from truesource.generator.piece_model import PieceText, PieceTokenizer

NAME = "lattice"
LARGEST = 10**300  #: number of segmentations that is a number in files, and no text
#: measure, its name, what it means, how it is shown
ROWS = (
    ("arcs_per_character", "pieces at a character", "mean number of pieces that can begin there", ".4f"),
    ("log2_paths", "log2 of segmentations", "bits a document: 10 are about a thousand segmentations", ".4f"),
    ("words_to_64_paths", "words with 64 segmentations or fewer", "share of words", ".2%"),
    ("words_to_1024_paths", "  1,024 or fewer", "", ".2%"),
    ("words_to_4096_paths", "  4,096 or fewer", "", ".2%"),
    ("log_partition", "log Z", "nats a document", ".4f"),
    ("entropy", "entropy of segmentations", "nats a document", ".4f"),
    ("entropy_per_word", "  of a word", "nats", ".4f"),
    ("entropy_per_character", "  of a character", "nats", ".4f"),
    ("entropy_check", "  largest error", "against log Z - b d(log Z)/db, nats in one document", ".1e"),
    (
        "log_collision",
        "log of the collision mass",
        "nats a document: that two samples are equal",
        ".4f",
    ),
    ("collision", "collision mass", "probability, mean of documents", ".4g"),
    ("altered", "altered by the tokeniser", "share of documents: normalised, or white space changed", ".2%"),
    ("own_log_q", "log Q of the canonical tokenisation", "nats a document", ".4f"),
    (
        "own_below_best",
        "canonical is not the best",
        "documents in which another has a higher score",
        ",.0f",
    ),
    ("own_tied", "canonical ties with another", "documents in which two segmentations are the best", ",.0f"),
)


def command(
    tokeniser: Annotated[
        Path, typer.Argument(help="Model folder, tokenizer.json, or SentencePiece .model.", metavar="TOKENISER")
    ],
    text: Annotated[Path, typer.Argument(help="Corpus folder, or text with one document per line.")],
    split: SplitName = "eval",
    scores: Annotated[
        Proposal | None,
        typer.Option("--scores", help="Scores of pieces: own, fitted (EM) or uniform; default: own, else fitted."),
    ] = None,
    inverse_temperature: Annotated[
        float, typer.Option("--inverse-temperature", min=0.0, help="Of the distribution; 0: all segmentations alike.")
    ] = 1.0,
    number: Annotated[
        int, typer.Option("--list-words", min=0, help="Number of words to list, the most ambiguous first.")
    ] = 10,
    json: Json = None,
    force: Force = False,
) -> None:
    """Sum exactly over all segmentations of a text: their number, probability and entropy.

    The probability Q of a segmentation is proportional to exp(b * sum of the scores of its pieces).

    Example: truesource evaluate lattice model/ corpus/ --json lattice.json
    """
    from truesource.evaluation.show.words import count
    from truesource.evaluation.tokenisation.ambiguity import measure_ambiguity
    from truesource.evaluation.tokenisation.preparation import builder_for
    from truesource.terminal.inputs import read_text
    from truesource.terminal.output import OutputFiles, json_of, show

    files = OutputFiles(json=json, force=force)
    documents = read_text(text, split, lines=True).documents
    from truesource.lmtrain.pieces.inventory import read_pieces  # tokenizers, after the quick checks

    pieces = read_pieces(tokeniser)
    kept = _read(pieces, documents, text)
    builder, by = builder_for(pieces, [found.original for found in kept], scores)
    if by == "fitted":
        echo(
            f"Warning: scores of pieces were fitted to this very text ({count(len(kept), 'document')}),"
            " so Q is too high and entropies are too low, the more the shorter the text is; --scores uniform needs no"
            " fit, and a Unigram tokeniser has scores already",
            err=True,
        )
    found = measure_ambiguity(builder, kept, inverse_temperature)
    show(_measures(found, f"{tokeniser}, {by} scores", by))
    if words := _words(found, number):
        show(words)
    echo(f"entropy|{found.scores(scores=by)['entropy'].signature}")
    counts = {"given": len(documents), "unreadable": len(documents) - len(kept)}
    head = {"tokeniser": str(tokeniser), "text": str(text), **counts}
    files.finish(
        f"truesource evaluate tokenisation MODEL {text}",
        json=json_of([{**head, **record} for record in found.records(scores=by, words=number)]),
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


def _measures(found: Ambiguity, title: str, by: str) -> ReportTable:
    from truesource.evaluation.show.table import ReportTable, TableRow, number_cell

    values = found.scores(scores=by)
    sizes = ", ".join(f"{int(values[name].value):,} {name}" for name in ("documents", "words", "characters", "bytes"))
    how = "by word" if found.factorises else "by document, because pieces reach over white space"
    return ReportTable(
        title=f"{title}\n{sizes}",
        columns=("measure", "value", "meaning"),
        text=(0, -1),
        rows=[
            TableRow((label, number_cell(values[name].value, spec), meaning))
            for name, label, meaning, spec in ROWS
            if name in values
        ],
        note=f"b = {found.b:g}; sums {how}",
    )


def _paths(number: int) -> Cell:
    """A number of segmentations, which may be too large for any float."""
    from truesource.evaluation.show.table import Cell

    text = f"{number:,}" if number < 10**9 else f"{Decimal(number):.3g}"
    return Cell(text, score=(float(number), None, None) if number < LARGEST else None)


def _words(found: Ambiguity, number: int) -> ReportTable | None:
    """The most ambiguous words; None where sums are not by word."""
    from truesource.evaluation.show.table import ReportTable, TableRow, number_cell

    rows = [
        TableRow(
            (
                word.word,
                number_cell(word.tokens, ","),
                _paths(word.paths),
                number_cell(word.entropy, ".4f"),
                " ".join(word.best),
                number_cell(word.probability, ".4f"),
            )
        )
        for word in found.words(number)
    ]
    columns = ("word", "times", "segmentations", "entropy, nats", "best segmentation", "its Q")
    return ReportTable(title="Most ambiguous words", columns=columns, text=(0, 4), rows=rows) if rows else None
