"""Options that several verbs share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from truesource.grammar.conventions import Name

Force = Annotated[bool, typer.Option("--force", help="Overwrite what exists.")]
Seed = Annotated[
    int, typer.Option("--seed", min=0, max=2**32 - 1, help="Seed; one seed gives the same bytes everywhere.")
]
Lengths = Annotated[str, typer.Option("--lengths", help="Sentence lengths, such as 6..25 (inclusive), or none.")]
Convention = Annotated[
    Name,
    typer.Option(
        "--convention",
        help="Annotation convention of the treebank (docs/grammars.md); plain keeps everything.",
    ),
]
Heads = Annotated[
    Path | None,
    typer.Option(
        "--heads",
        help="Heads for head-initial and head-final, a line each: 'VP -> *V NP', or 'VP: V Aux'. They go before those"
        " of the grammar (%head).",
    ),
]
Overrides = Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Override a key.")]
Json = Annotated[Path | None, typer.Option("--json", help="Also write the numbers to this JSON file.")]
Condition = Annotated[
    str | None,
    typer.Option("--lengths", help="Length condition such as 6..25, or none (default: that of the corpus)."),
]
Longest = Annotated[
    int | None,
    typer.Option("--longest", min=1, help="Leave out sentences of more words: time grows as the cube of the length."),
]
Before = Annotated[
    str | None,
    typer.Option(
        "--before",
        help="What comes before a text, for models without a token for the beginning: eos, or a token of theirs.",
    ),
]
FirstSentences = Annotated[
    int | None, typer.Option("--sentences", min=2, help="Number of sentences to use, from the first.")
]
FrameName = Annotated[
    Literal["default", "paper"],
    typer.Option("--frame", help="Which positions count; paper: no end, no first word, no <unk>."),
]
SplitName = Annotated[str, typer.Option("--split", help="Split of a corpus folder.")]
Figure = Annotated[Path | None, typer.Option("--figure", help="Also draw the results to this SVG file.")]
Plot = Figure
OracleGrammar = Annotated[Path, typer.Option("--oracle", help="Grammar that the corpus was sampled from.")]
TextOrCorpus = Annotated[Path, typer.Argument(help="Corpus folder, or text with one tokenised sentence per line.")]
Runs = Annotated[Path, typer.Option("--runs", help="Folder of all runs; this one is made in RUNS/NAME.")]
Workers = Annotated[int, typer.Option("--workers", min=1, help="Processes; the bytes do not depend on it.")]
Scheduler = Annotated[
    str | None,
    typer.Option("--scheduler", help="Work on a running Dask cluster: its address, or the scheduler's file."),
]
Shard = Annotated[str | None, typer.Option("--shard", help="Only a share of the files: 0/4 is the first of four jobs.")]
