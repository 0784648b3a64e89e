"""`truesource bound`: the exact perplexity of a language, which no model can beat."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from truesource.cli.console import echo
from truesource.cli.options import Condition, Force, Json, Scheduler, Shard, SplitName, Workers

NAME = "bound"


def command(
    grammar: Annotated[Path, typer.Argument(help="A grammar: .npz or text.")],
    corpus: Annotated[Path, typer.Argument(help="Corpus folder, or text with one tokenised sentence a line.")],
    causal: Annotated[bool, typer.Option("--causal/--no-causal", help="Next token given its left context.")] = True,
    masked: Annotated[bool, typer.Option("--masked/--no-masked", help="Token given all others.")] = True,
    lengths: Condition = None,
    split: SplitName = "eval",
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Folder for the scores of every token, in parts; a stopped call goes on."),
    ] = None,
    shard: Shard = None,
    workers: Workers = 1,
    scheduler: Scheduler = None,
    next_: Annotated[
        bool, typer.Option("--next", help="With --json, also P(word | left context) of every word; small inputs only.")
    ] = False,
    precision: Annotated[
        Literal["float64", "float32"], typer.Option(help="float32 is faster, and within 1e-4 nats a token.")
    ] = "float64",
    json: Json = None,
    force: Force = False,
) -> None:
    """Score sentences exactly: the perplexity that no model can beat in the long run.

    The causal bound counts the end of each sentence; the masked bound is a pseudo-perplexity. Large sets are scored
    in parts: with -o, by --workers, by the workers of a --scheduler, or by the jobs of a --shard.
    """
    from evaluation.bound import bound_records, sentence_records
    from evaluation.measures.paired import unknown_words, words_missing
    from evaluation.parts import score_in_parts
    from grammar.conditioning import LengthRange
    from grammar.errors import InputError
    from grammar.files import write_json
    from grammar.parallel import Share
    from grammar.parallel import Workers as Hands
    from grammar.pcfg import PCFG
    from truesource.cli.inputs import (
        claim_file,
        exclusion_of,
        list_lines,
        read_sentences,
        warn_of_conditions,
        warn_of_other_grammar,
        warn_of_other_lengths,
    )

    if not causal and not masked:
        raise InputError("--no-causal and --no-masked together leave nothing to measure")
    if next_ and json is None:
        raise InputError("--next needs --json FILE to write the distributions to")
    if output is None:
        if shard is not None:
            raise InputError("--shard needs -o FOLDER, where the jobs leave their parts")
        if workers > 1 or scheduler is not None:
            raise InputError("--workers and --scheduler need -o FOLDER, where the parts go; without, one process works")
    hands = Hands(workers, scheduler)
    if next_ and output is not None:
        raise InputError("--next is for small inputs; leave -o out")
    if json is not None:
        claim_file(json, force)
    pcfg = PCFG.load(grammar)
    warn_of_other_grammar(corpus, pcfg)
    sentences, drawn = read_sentences(corpus, split)
    condition = drawn if lengths is None else LengthRange.parse(lengths)
    excluded = exclusion_of(corpus, split, pcfg, condition)
    warn_of_conditions(corpus, split, corrected=excluded is not None and excluded.exact)
    warn_of_other_lengths(corpus, drawn, condition)
    share = None if shard is None else Share.parse(shard)
    if output is None:
        scores = sentence_records(
            pcfg,
            sentences,
            lengths=condition,
            causal=causal,
            masked=masked,
            distributions=next_,
            dtype=precision,
            excluded=excluded,
        )
    else:
        found = score_in_parts(
            pcfg,
            sentences,
            output,
            lengths=condition,
            causal=causal,
            masked=masked,
            dtype=precision,
            share=share,
            workers=hands,
            excluded=excluded,
        )
        if found is None:
            echo(f"Wrote this job's parts to {output}. Next: the other jobs; the last to end prints the bounds.")
            return
        scores = found
    summary = bound_records(pcfg, scores, lengths=condition, excluded=excluded)
    left_out = [number for number, record in enumerate(scores, start=1) if not record["possible"]]
    if left_out:
        what = "cannot be made by the grammar" + ("" if condition is None else f" with {condition} tokens")
        unknown = unknown_words(pcfg, (scores[number - 1]["tokens"] for number in left_out))
        why = f" ({words_missing(unknown)})" if unknown else ""
        echo(f"{len(left_out)} of {len(scores)} sentences {what}, left out: {list_lines(left_out)}{why}", err=True)
    for score in summary:
        echo(str(score))
    wrote = "Nothing written; --json FILE keeps the numbers of every token" if output is None else f"Wrote {output}"
    if json is not None:
        write_json(json, {"sentences": scores, "summary": [score.as_record() for score in summary]})
        wrote = f"Wrote {json}" if output is None else f"Wrote {output} and {json}"
    echo(f"{wrote}. Next: truesource score MODEL {corpus} --oracle {grammar}")
