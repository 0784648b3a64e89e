"""`truesource bound`: the exact perplexity of a language, which no model can beat."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from truesource.cli.console import echo
from truesource.cli.options import Condition, Force, Json, Longest, Scheduler, Shard, SplitName, Workers


def command(
    grammar: Annotated[Path | None, typer.Argument(help="A grammar: .npz or text.")] = None,
    corpus: Annotated[
        Path | None, typer.Argument(help="Corpus folder, or text with one tokenised sentence a line.")
    ] = None,
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
    longest: Longest = None,
    frame: Annotated[
        Literal["default", "paper"],
        typer.Option(help="Which positions count; paper: no ends, no first words (causal), no unknown words."),
    ] = "default",
    vocabulary: Annotated[
        Path | None,
        typer.Option(help="With --frame paper: the known words, as a JSON object or list, or one a line."),
    ] = None,
    masked_variant: Annotated[
        Literal["default", "paper"],
        typer.Option(help="paper: masked scores as Jumelet and Zuidema (2023) define them; for comparison only."),
    ] = "default",
    token_scores: Annotated[
        Path | None,
        typer.Option(
            help="In place of a grammar and a corpus: token scores as Jumelet and Zuidema (2023) release them."
        ),
    ] = None,
    json: Json = None,
    force: Force = False,
) -> None:
    """Score sentences exactly: the perplexity that no model can beat in the long run.

    The causal bound counts the end of each sentence; the masked bound is a pseudo-perplexity. Large sets are scored
    in parts: with -o, by --workers, by the workers of a --scheduler, or by the jobs of a --shard.
    --frame paper, --vocabulary, --masked-variant and --token-scores reproduce published numbers (docs/published.md).
    """
    from truesource.cli.claims import claim_files, hold
    from truesource.cli.inputs import (
        list_lines,
        read_sentences,
        truth_of,
    )
    from truesource.cli.lengths import announce_long, at_most
    from truesource.evaluation.core.exact_bound import bound_records, sentence_records
    from truesource.evaluation.core.published import read_words
    from truesource.evaluation.core.scores_on_disk import score_in_parts
    from truesource.evaluation.measures.bootstrap import FEWEST
    from truesource.evaluation.measures.paired import unknown_words, words_missing
    from truesource.grammar.conditioning import LengthRange
    from truesource.grammar.errors import InputError
    from truesource.grammar.files import write_json
    from truesource.grammar.parallel import Share
    from truesource.grammar.parallel import Workers as Hands
    from truesource.grammar.pcfg import PCFG

    if vocabulary is not None and frame != "paper":
        raise InputError("--vocabulary needs --frame paper, which leaves out the words that are not in it")
    words = None if vocabulary is None else read_words(vocabulary)
    claim_files(json, force=force)
    if token_scores is not None:
        if grammar is not None or corpus is not None:
            raise InputError("--token-scores takes the place of a grammar and a corpus; leave those out")
        _published(token_scores, frame, words, json)
        return
    if grammar is None or corpus is None:
        raise InputError("name a grammar and a corpus; truesource bound --help shows how")
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
    if output is not None and shard is None:
        hold(output)
    pcfg = PCFG.load(grammar)
    sentences, drawn = read_sentences(corpus, split)
    condition = drawn if lengths is None else LengthRange.parse(lengths)
    excluded = truth_of(corpus, split, pcfg, drawn, condition)
    share = None if shard is None else Share.parse(shard)
    sentences, longer = at_most(sentences, longest)
    announce_long(pcfg, sentences, condition, masked=masked, dtype=precision)
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
            variant=masked_variant,
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
            variant=masked_variant,
        )
        if found is None:
            echo(f"Wrote this job's parts to {output}. Next: the other jobs; the last to end prints the bounds.")
            return
        scores = found
    summary = bound_records(
        pcfg,
        scores,
        lengths=condition,
        excluded=excluded,
        frame=frame,
        vocabulary=words,
        variant=masked_variant,
        left_out=longer,
    )
    left_out = [number for number, record in enumerate(scores, start=1) if not record["possible"]]
    if left_out:
        what = "cannot be made by the grammar" + ("" if condition is None else f" with {condition} tokens")
        unknown = unknown_words(pcfg, (scores[number - 1]["tokens"] for number in left_out))
        why = f" ({words_missing(unknown)})" if unknown else ""
        echo(f"{len(left_out)} of {len(scores)} sentences {what}, left out: {list_lines(left_out)}{why}", err=True)
    for score in summary:
        echo(str(score))
    if summary and summary[0].low is None:
        echo(f"Fewer than {FEWEST} possible sentences: too few for intervals.", err=True)
    wrote = "Nothing written; --json FILE keeps the numbers of every token" if output is None else f"Wrote {output}"
    if json is not None:
        write_json(json, {"sentences": scores, "summary": [score.as_record() for score in summary]})
        wrote = f"Wrote {json}" if output is None else f"Wrote {output} and {json}"
    echo(f"{wrote}. Next: truesource score MODEL {corpus} --oracle {grammar}")


def _published(path: Path, frame: str, vocabulary: frozenset[str] | None, json: Path | None) -> None:
    """Print (and write) the perplexity of token scores that others have published."""
    from truesource.evaluation.core.published import published_bound, read_published
    from truesource.generator.frame import preset_frame
    from truesource.grammar.files import write_json

    scores = read_published(path)
    found = published_bound(scores, frame=preset_frame(frame, scores.objective), vocabulary=vocabulary)
    echo(str(found))
    wrote = "Nothing written; --json FILE keeps these numbers"
    if json is not None:
        write_json(json, {"summary": [found.as_record()]})
        wrote = f"Wrote {json}"
    echo(f"{wrote}. Next: truesource cite")
