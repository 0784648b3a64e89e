"""`truesource score`: a trained model against the truth."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from truesource.chain.lengths import length_condition
from truesource.cli.console import echo
from truesource.cli.options import Before, Condition, Force, Json, Longest, OracleGrammar, SplitName, TextOrCorpus


def command(
    model: Annotated[Path, typer.Argument(help="Model folder: trained here, or any causal or masked checkpoint.")],
    corpus: TextOrCorpus,
    oracle: OracleGrammar,
    split: SplitName = "eval",
    frame: Annotated[str, typer.Option(help="Positions that count: default, or paper (fewer).")] = "default",
    before: Before = None,
    lengths: Condition = None,
    longest: Longest = None,
    json: Json = None,
    force: Force = False,
) -> None:
    """Compare the perplexity of a model with that of the truth on the same tokens.

    A model as good as the truth has a relative perplexity of 1. Intervals: 95%, from resampling sentences.

    Example: truesource score model/ corpus/ --oracle grammar.npz --json scores.json
    """
    from truesource.cli.claims import claim_files
    from truesource.cli.inputs import grammar_of_text, read_sentences, say_left_out, truth_of, warn_of_other_corpus
    from truesource.cli.lengths import announce_long, at_most
    from truesource.cli.table import print_results
    from truesource.evaluation.core.comparison import compare
    from truesource.evaluation.tokenisation.measure import with_marks
    from truesource.generator.frame import preset_frame
    from truesource.grammar.files import write_json

    preset_frame(frame, "causal")  # before anything is read
    claim_files(json, force=force)
    sentences, drawn = read_sentences(corpus, split)
    condition = length_condition(lengths, drawn)
    pcfg, transform = grammar_of_text(corpus, oracle)
    excluded = truth_of(corpus, split, pcfg, drawn, condition)
    warn_of_other_corpus(model, corpus)
    sentences, longer = at_most(sentences, longest)
    from truesource.lmtrain.models import load_model  # torch, after the quick checks

    trained = with_marks(load_model(model), before, True, model)
    positions = preset_frame(frame, trained.objective)
    announce_long(pcfg, sentences, condition, masked=trained.objective == "masked")
    found = compare(
        trained,
        pcfg,
        sentences,
        lengths=condition,
        frame=positions,
        excluded=excluded,
        left_out=longer,
        transform=transform,
    )
    record = found.as_record()
    say_left_out(sentences, pcfg, found.paired.impossible_model, found.paired.impossible_oracle)
    print_results([record])
    echo(record["signature"])
    wrote = "Nothing written; --json FILE keeps these numbers"
    if json is not None:
        write_json(json, found.records())
        wrote = f"Wrote {json}"
    echo(f"{wrote}. Next: truesource cite")
