"""Options that several verbs share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from truesource.grammar.conventions import Name
from truesource.grammar.support.errors import InputError


def model_there(text: str | None) -> str | None:
    """Check that a reference names a model and return it. Checks of this module run before slow imports.

    Raises:
        InputError: see `truesource.lmtrain.references.require_there`.
    """
    from truesource.lmtrain.references import require_there

    if text is not None:
        require_there(text)
    return text


def grammar_there(path: Path | None) -> Path | None:
    """Check that there is such a grammar and return its path.

    Raises:
        InputError: it is neither a file nor a language.
    """
    from truesource.grammar.formats import require_source

    if path is not None:
        require_source(path)
    return path


def grammar_or_corpus_there(path: Path | None) -> Path | None:
    """Check that a path is a grammar, or a folder that may be a corpus, and return it.

    Raises:
        InputError: it is neither a file, nor a folder, nor a language.
    """
    return path if path is not None and path.is_dir() else grammar_there(path)


def text_there(path: Path | None) -> Path | None:
    """Check that there is such a text or corpus and return its path.

    Raises:
        InputError: there is no such file or folder.
    """
    if path is not None and not path.exists():
        raise InputError("there is no such file", path, code="missing")
    return path


Force = Annotated[bool, typer.Option("--force", help="Overwrite existing files.")]
License = Annotated[
    str | None, typer.Option("--license", metavar="SPDX", help="Licence to record with the output, such as CC-BY-4.0.")
]
Seed = Annotated[int, typer.Option("--seed", min=0, max=2**32 - 1, help="Random seed.")]
IntervalSeed = Annotated[int, typer.Option("--seed", min=0, max=2**32 - 1, help="Random seed of the intervals.")]
Number = Annotated[int, typer.Option("-n", "--number", min=1, help="Number of sentences to sample.")]
Grammar = Annotated[
    Path,
    typer.Argument(help="Grammar file in any format, or a language such as dyck:k=2.", callback=grammar_there),
]
Lengths = Annotated[
    str | None, typer.Option("--lengths", help="Range of sentence lengths, such as 6..25 (default: all lengths).")
]
Convention = Annotated[
    Name,
    typer.Option(
        "--convention",
        help="Annotation convention of the treebank; plain keeps everything.",
    ),
]
Normalise = Annotated[
    list[str] | None,
    typer.Option(
        "--normalisation",
        metavar="KEY=VALUE",
        help="Set a key of treebank.normalise: annotation=-, loose_words=tag, ...; repeatable.",
    ),
]
Heads = Annotated[
    Path | None,
    typer.Option("--heads", help="File of head rules ('VP -> *V NP'), for --variant head-initial or head-final."),
]
Overrides = Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Override the setting KEY.")]
Json = Annotated[
    Path | None, typer.Option("--json", help="Write the numbers to this JSON file; - for standard output.")
]
Condition = Annotated[
    str | None,
    typer.Option("--lengths", help="Lengths to condition the truth on: 6..25, or none (default: as the corpus)."),
]
Longest = Annotated[
    int | None,
    typer.Option("--longest", min=1, help="Skip sentences of over N words; time grows with the cube of the length."),
]
Before = Annotated[
    str | None,
    typer.Option("--before", help="Token before each sentence, if the model has no start token: eos, or another."),
]
FirstSentences = Annotated[
    int | None, typer.Option("--sentences", min=2, help="Number of sentences to use, from the first (default: all).")
]
FrameName = Annotated[
    Literal["default", "paper"],
    typer.Option("--frame", help="Positions that count: all (default), or all but end, first word and <unk> (paper)."),
]
SplitName = Annotated[str, typer.Option("--split", help="Split to use, if the text is a corpus folder.")]
Figure = Annotated[
    Path | None, typer.Option("--figure", help="Also draw the results to this file: .svg, .pdf or .png.")
]
TokenTable = Annotated[
    Path | None, typer.Option("--token-table", help="Write a row for each token to this .csv or .parquet file.")
]
WordTable = Annotated[
    Path | None, typer.Option("--word-table", help="Write a row for each word to this .csv or .parquet file.")
]
Model = Annotated[str, typer.Argument(help="Model: a folder, or custom code as file.py:name.", callback=model_there)]
Oracle = Annotated[
    Path | None,
    typer.Option(
        "--oracle",
        help="Grammar of the text: a file, or a language (default: the grammar in the corpus folder).",
        callback=grammar_there,
    ),
]
NoOracle = Annotated[
    bool, typer.Option("--no-oracle", help="Do not compare with the truth, even if the corpus folder has its grammar.")
]
TextOrCorpus = Annotated[
    Path,
    typer.Argument(help="Corpus folder, or text with one tokenised sentence per line.", callback=text_there),
]
Runs = Annotated[Path, typer.Option("--runs", help="Folder for runs; this run is written to RUNS/NAME.")]
Rebuild = Annotated[bool, typer.Option("--force", help="Repeat all stages, even those that are up to date.")]
PlanOnly = Annotated[bool, typer.Option("--plan", help="Only show what the trainings would cost; train nothing.")]
Workers = Annotated[int, typer.Option("--workers", min=1, help="Number of processes; results do not depend on it.")]
Scheduler = Annotated[
    str | None,
    typer.Option("--scheduler", help="Address or scheduler file of a running Dask cluster to use."),
]
Shard = Annotated[str | None, typer.Option("--shard", help="Do only this job's share: 0/4 is the first of 4 jobs.")]
