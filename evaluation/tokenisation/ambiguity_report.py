"""Tables of the ambiguity of texts: sums over all their segmentations."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from truesource.evaluation.show.table import Cell, ReportTable, TableRow, number_cell

if TYPE_CHECKING:
    from truesource.evaluation.tokenisation.ambiguity import Ambiguity

LARGEST = 10**300  #: larger numbers of segmentations are text in files
#: measure, label, meaning, format
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
    ("entropy_check", "  maximum error", "against log Z - b d(log Z)/db, nats in one document", ".1e"),
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


def ambiguity_table(ambiguity: Ambiguity, title: str, by: str) -> ReportTable:
    """Build a row for each measure of a text; ``by``: how pieces were scored."""
    values = ambiguity.scores(scores=by)
    sizes = ", ".join(f"{int(values[name].value):,} {name}" for name in ("documents", "words", "characters", "bytes"))
    how = "by word" if ambiguity.factorises else "by document, because pieces reach over white space"
    return ReportTable(
        title=f"{title}\n{sizes}",
        columns=("measure", "value", "meaning"),
        text=(0, -1),
        rows=[
            TableRow((label, number_cell(values[name].value, spec), meaning))
            for name, label, meaning, spec in ROWS
            if name in values
        ],
        note=f"b = {ambiguity.b:g}; sums {how}",
    )


def _paths(number: int) -> Cell:
    """Return a number of segmentations, which may be too large for a float."""
    text = f"{number:,}" if number < 10**9 else f"{Decimal(number):.3g}"
    return Cell(text, score=(float(number), None, None) if number < LARGEST else None)


def words_table(ambiguity: Ambiguity, number: int) -> ReportTable | None:
    """Build a table of the most ambiguous words; None if sums are not by word."""
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
        for word in ambiguity.words(number)
    ]
    columns = ("word", "times", "segmentations", "entropy, nats", "best segmentation", "its Q")
    return ReportTable(title="Most ambiguous words", columns=columns, text=(0, 4), rows=rows) if rows else None
