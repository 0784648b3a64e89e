"""`truesource score`: a trained model against the truth."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from truesource.cli.console import echo
from truesource.cli.options import Condition, Force, Json, SplitName

NAME = "score"


def command(
    model: Annotated[
        Path, typer.Argument(help="Model folder: of truesource train, or a checkpoint of any causal or masked model.")
    ],
    corpus: Annotated[Path, typer.Argument(help="Corpus folder, or text with one tokenised sentence a line.")],
    oracle: Annotated[Path, typer.Option("--oracle", help="The grammar that the corpus was drawn from.")],
    split: SplitName = "eval",
    frame: Annotated[str, typer.Option(help="Which positions count: default or paper.")] = "default",
    lengths: Condition = None,
    json: Json = None,
    force: Force = False,
) -> None:
    """Compare a model with the exact truth on the same tokens.

    A relative PPL of 1 is a model as good as the truth; the interval is that of other sentences from the same source.
    """
    from evaluation.comparison import compare
    from evaluation.measures.paired import unknown_words, words_missing
    from generator.frame import preset_frame
    from grammar.conditioning import LengthRange
    from grammar.files import write_json
    from grammar.pcfg import PCFG
    from truesource.cli.claims import claim_files
    from truesource.cli.inputs import (
        exclusion_of,
        read_sentences,
        warn_of_conditions,
        warn_of_other_corpus,
        warn_of_other_grammar,
        warn_of_other_lengths,
    )
    from truesource.cli.table import print_results
    from truesource.report.words import impossible

    preset_frame(frame, "causal")  # before anything is read
    claim_files(json, force=force)
    sentences, drawn = read_sentences(corpus, split)
    condition = drawn if lengths is None else LengthRange.parse(lengths)
    pcfg = PCFG.load(oracle)
    warn_of_other_grammar(corpus, pcfg)
    excluded = exclusion_of(corpus, split, pcfg, condition)
    warn_of_conditions(corpus, split, corrected=excluded is not None and excluded.exact)
    warn_of_other_lengths(corpus, drawn, condition)
    warn_of_other_corpus(model, corpus)
    from lmtrain.models import load_model  # torch, after the quick checks

    trained = load_model(model)
    positions = preset_frame(frame, trained.objective)
    found = compare(trained, pcfg, sentences, lengths=condition, frame=positions, excluded=excluded)
    record = found.as_record()
    if record["excluded"]:
        unknown = unknown_words(pcfg, (sentences[i] for i in found.paired.impossible_oracle))
        why = f"; {words_missing(unknown)}" if unknown else ""
        echo(
            f"{record['excluded']} of {len(sentences)} sentences are impossible and left out:"
            f" {impossible(record)}{why}",
            err=True,
        )
    print_results([record])
    echo(record["signature"])
    wrote = "Nothing written; --json FILE keeps these numbers"
    if json is not None:
        write_json(json, found.records())
        wrote = f"Wrote {json}"
    echo(f"{wrote}. Next: truesource cite")
