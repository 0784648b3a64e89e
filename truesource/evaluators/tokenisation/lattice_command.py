"""`truesource evaluate lattice`: in how many ways a tokeniser's pieces spell a text, summed up exactly."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from truesource.cli.console import console, echo
from truesource.cli.options import Force, Json, SplitName

if TYPE_CHECKING:
    from collections.abc import Sequence

    from truesource.evaluation.tokenisation.ambiguity import Ambiguity
    from truesource.generator.piece_model import PieceText, PieceTokenizer

NAME = "lattice"
ROWS = (
    ("arcs_per_character", "pieces at a character", "of all that can stand in the text, for each character of it"),
    ("log2_paths", "log2 of ways to cut", "bits a document: 10 are about a thousand ways"),
    ("words_to_64_paths", "words with 64 ways or fewer", "share of words"),
    ("words_to_1024_paths", "  1,024 or fewer", ""),
    ("words_to_4096_paths", "  4,096 or fewer", ""),
    ("log_partition", "log Z", "nats a document"),
    ("entropy", "entropy of the cuts", "nats a document"),
    ("entropy_per_word", "  of a word", "nats"),
    ("entropy_per_character", "  of a character", "nats"),
    ("entropy_check", "  largest error", "against log Z - b d(log Z)/db, nats in one document"),
    ("log_collision", "log of the collision mass", "nats a document: that two cuts drawn are the same one"),
    ("collision", "collision mass", "probability, mean of documents"),
    ("altered", "altered by the tokeniser", "share of documents: normalised, or white space changed"),
    ("own_log_q", "log Q of the own cut", "nats a document, of the cut that the tokeniser itself makes"),
    ("own_below_best", "own cut is not the best", "documents in which another cut has a higher score"),
    ("own_tied", "own cut ties with another", "documents in which two cuts are the best"),
)


def command(
    tokeniser: Annotated[
        Path, typer.Argument(help="Model folder, tokenizer.json, or SentencePiece .model.", metavar="TOKENISER")
    ],
    text: Annotated[Path, typer.Argument(help="Corpus folder, or text with one document a line.")],
    split: SplitName = "eval",
    scores: Annotated[
        str | None,
        typer.Option(
            "--scores",
            help="Of the pieces: own (the tokeniser's), fitted (by EM on the text), uniform; default: own where there"
            " are some, else fitted.",
        ),
    ] = None,
    inverse_temperature: Annotated[
        float, typer.Option("--inverse-temperature", min=0.0, help="Multiplies scores; 0: all cuts are alike.")
    ] = 1.0,
    words: Annotated[int, typer.Option("--words", min=0, help="Most ambiguous words to show.")] = 10,
    json: Json = None,
    force: Force = False,
) -> None:
    """Sum over all ways to cut a text into a tokeniser's pieces: how many, how probable, how uncertain.

    Q gives a cut a probability in proportion to exp(b * sum of the scores of its pieces). Every number is exact.
    """
    from truesource.cli.claims import claim_files
    from truesource.cli.inputs import read_documents
    from truesource.evaluation.tokenisation.ambiguity import measure_ambiguity
    from truesource.evaluation.tokenisation.documents import Unreadable
    from truesource.evaluation.tokenisation.measure import PROPOSALS, builder_for
    from truesource.evaluators.tokenisation.texts import warn_of_texts
    from truesource.grammar.errors import InputError
    from truesource.grammar.files import write_json

    if scores is not None and scores not in PROPOSALS:
        raise InputError(f"--scores takes {', '.join(PROPOSALS)}; got {scores!r}")
    claim_files(json, force=force)
    documents, _ = read_documents(text, split)
    from truesource.lmtrain.pieces.inventory import read_pieces  # tokenizers, after the quick checks

    pieces = read_pieces(tokeniser)
    if scores == "own" and pieces.inventory.scores is None:
        raise InputError(f"a {pieces.inventory.kind} tokeniser has no scores of its own; use fitted, or uniform")
    read = _read(pieces, documents, text)
    kept = [(number, found) for number, found in enumerate(read) if not found.unreadable]
    set_aside = [Unreadable(number, found.unreadable) for number, found in enumerate(read) if found.unreadable]
    if not kept:
        raise InputError(
            f"no document can be cut: each holds what no piece spells, such as {set_aside[0].parts[0]!r}",
            text,
            set_aside[0].number + 1,
        )
    warn_of_texts(kept, set_aside, len(documents), text)
    builder, by = builder_for(pieces, [found.original for _, found in kept], scores)
    found = measure_ambiguity(builder, [each for _, each in kept], inverse_temperature)
    show(found, f"{tokeniser}, {by} scores", words, scores=by)
    measured = found.scores(scores=by)
    echo(f"entropy|{measured['entropy'].signature}")
    if json is not None:
        counts = {"given": len(documents), "unreadable": len(set_aside)}
        head = {"tokeniser": str(tokeniser), "text": str(text), **counts}
        write_json(json, [{**head, **record} for record in found.records(scores=by, words=words)])
    done = "Nothing written; --json FILE keeps these numbers" if json is None else f"Wrote {json}"
    echo(f"{done}. Next: truesource evaluate tokenisation MODEL {text}")


def _read(pieces: PieceTokenizer, documents: Sequence[str], path: Path) -> list[PieceText]:
    from truesource.grammar.errors import InputError
    from truesource.grammar.progress import track

    read = []
    for number, document in enumerate(track(documents, "reading", len(documents))):
        try:
            read.append(pieces.read(document))
        except InputError as error:
            raise InputError(str(error), path, number + 1) from error
    return read


def show(found: Ambiguity, title: str, words: int, *, scores: str) -> None:
    """The table of measures, and that of the most ambiguous words."""
    from decimal import Decimal

    from rich.table import Table

    values = found.scores(scores=scores)
    sizes = ", ".join(f"{int(values[name].value):,} {name}" for name in ("documents", "words", "characters", "bytes"))
    how = "words are cut on their own" if found.factorises else "pieces reach over white space: whole documents are cut"
    table = Table(title=f"{title}\n{sizes}", title_justify="left", caption=f"b = {found.b:g}; {how}")
    table.add_column("measure", no_wrap=True)
    table.add_column("value", justify="right", no_wrap=True)
    table.add_column("meaning")
    for name, label, meaning in ROWS:
        if name in values:
            table.add_row(label, _number(name, values[name].value), meaning)
    console().print(table)
    ambiguous = found.words(words)
    if not ambiguous:
        return
    table = Table(title="most ambiguous words", title_justify="left", caption="as the pieces spell them")
    table.add_column("word")
    for name in ("times", "ways", "entropy, nats"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("best cut")
    table.add_column("its Q", justify="right", no_wrap=True)
    for word in ambiguous:
        ways = f"{word.paths:,}" if word.paths < 10**9 else f"{Decimal(word.paths):.3g}"
        table.add_row(
            word.word,
            f"{word.tokens:,}",
            ways,
            f"{word.entropy:.4f}",
            " ".join(word.best),
            f"{word.probability:.4f}",
        )
    console().print(table)


def _number(name: str, value: float) -> str:
    if name == "altered" or name.startswith("words_to"):
        return f"{value:.2%}"
    if name.startswith(("own_below", "own_tied")):
        return f"{int(value):,}"
    return f"{value:.4f}" if abs(value) >= 1e-3 or value == 0.0 else f"{value:.1e}"
