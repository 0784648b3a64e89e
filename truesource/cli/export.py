"""`truesource export`: a corpus in the files that other training code reads."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from truesource.grammar.support.errors import InputError
from truesource.terminal.console import echo
from truesource.terminal.options import Force

if TYPE_CHECKING:
    from truesource.generator.corpus import Corpus


def command(
    corpus: Annotated[Path, typer.Argument(help="Corpus folder.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder to make.")],
    to: Annotated[
        Literal["bin", "jsonl", "ids"],
        typer.Option("--to", help="Format to write: bin (as nanoGPT reads it), jsonl, or ids."),
    ] = "bin",
    split: Annotated[str | None, typer.Option("--split", help="Split of a corpus folder (default: all).")] = None,
    bound: Annotated[
        bool, typer.Option("--bound/--no-bound", help="Compute the exact bound of each split for meta.json.")
    ] = True,
    force: Force = False,
) -> None:
    """Write a corpus in the files that other training code reads, with the loss that no model can beat.

    Each split becomes one file: token numbers in one row (bin), lines of JSON with the key text (jsonl), or lines of
    token numbers (ids). The file meta.json has the vocabulary, and the exact bound of each split in nats per token:
    validation loss minus this bound estimates how far the model is from the truth.

    Example: truesource export corpus/ -o shards/ --to bin
    """
    from truesource.generator.corpus import Corpus
    from truesource.generator.export import META, export
    from truesource.grammar.truth import load_truth
    from truesource.terminal.inputs import grammar_inside
    from truesource.terminal.output import claim_folder

    claim_folder(output, "folder of exported text", META, force=force)
    found = Corpus.load(corpus)
    names = list(found.splits) if split is None else [split]
    for name in names:
        found.n_sentences(name)  # raises where there is none
    grammar = grammar_inside(corpus)
    if grammar is None and bound:
        echo(f"{corpus} has no grammar inside, so the bound is not known.", err=True)
    bounds = {name: _bound(found, name, grammar) for name in names} if bound and grammar is not None else {}
    words = () if grammar is None else load_truth(grammar).terminals
    meta = export(found, output, to, splits=names, words=words, bounds=bounds)
    for name, part in meta["splits"].items():
        known = "" if part["bound"] is None else f", exact bound {part['bound']:.4f} nats per token"
        echo(f"{name}: {part['sentences']:,} sentences, {part['tokens']:,} tokens with their ends{known}")
    echo(f"Wrote {output}. Next: train on {output / meta['splits'][names[0]]['file']}; meta.json has the vocabulary")


def _bound(corpus: Corpus, split: str, grammar: Path) -> float:
    """The exact cross-entropy of a split, nats per token, ends included.

    Raises:
        InputError: the grammar in the folder cannot make a sentence of it.
    """
    from truesource.evaluation.core.sentence_records import sentence_records
    from truesource.evaluation.core.text import Text
    from truesource.terminal.inputs import setting_of

    setting = setting_of(Text.of(corpus, split), grammar)
    records = sentence_records(
        setting.known,
        setting.sentences,
        lengths=setting.lengths,
        masked=False,
        excluded=setting.excluded,
        transform=setting.transform,
    )
    wrong = [number for number, record in enumerate(records, start=1) if not record["possible"]]
    if wrong:
        raise InputError(
            f"the grammar in the folder cannot make sentence {wrong[0]} of {split}; use --no-bound", corpus.path
        )
    total = float(sum(record["logprob"] for record in records))
    return -total / (corpus.n_tokens(split) + corpus.n_sentences(split))
