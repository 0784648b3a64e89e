"""`truesource sample`: a corpus from a grammar."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from truesource.cli.console import echo
from truesource.cli.options import Force, Heads, Lengths, Scheduler, Seed, Shard, Workers

if TYPE_CHECKING:
    from truesource.generator.corpus import Corpus
    from truesource.generator.plan import Plan
    from truesource.grammar.parallel import Share
    from truesource.grammar.parallel import Workers as AtWork
    from truesource.grammar.pcfg import PCFG
    from truesource.grammar.variants import Change

NAME = "sample"


def command(
    grammar: Annotated[Path, typer.Argument(help="A grammar: .npz or text.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Corpus folder to make.")],
    n: Annotated[int | None, typer.Option("-n", min=1, help="Sentences, all splits together.")] = None,
    tokens: Annotated[
        int | None, typer.Option(min=1, help="In place of -n: as many sentences as have so many tokens on average.")
    ] = None,
    lengths: Lengths = "6..25",
    split: Annotated[
        str, typer.Option("--split", help="Shares of the splits.")
    ] = "train=.96,dev=.01,test=.01,eval=.02",
    overlap: Annotated[
        Literal["iid", "disjoint", "unique"],
        typer.Option(
            help="iid: splits are independent samples. disjoint: no sentence of an earlier split in a later one."
            " unique: no sentence twice at all."
        ),
    ] = "iid",
    exact_correction: Annotated[
        bool,
        typer.Option(
            "--exact-correction", help="With disjoint splits, sum what they exclude exactly, however long it takes."
        ),
    ] = False,
    start: Annotated[str | None, typer.Option(help="Symbol to expand, in place of the grammar's start symbol.")] = None,
    temperature: Annotated[
        float, typer.Option(help="Below 1 the frequent rules become more so; the corpus has the grammar so changed.")
    ] = 1.0,
    max_height: Annotated[
        int | None, typer.Option(min=2, help="Throw higher trees away, as the published pipeline does.")
    ] = None,
    seed: Seed = 1,
    trees: Annotated[bool, typer.Option("--trees/--no-trees", help="Also write the derivations.")] = True,
    string_logprob: Annotated[
        bool, typer.Option("--string-logprob", help="Also the exact log probability of each sentence; slow.")
    ] = False,
    ids: Annotated[bool, typer.Option("--ids", help="Also the tokens as numbers.")] = False,
    variant: Annotated[
        list[str] | None,
        typer.Option(
            "--variant",
            help="Parallel corpora: in the folder, the corpus original and one of the grammar so changed, as in"
            " truesource vary. Any number of times.",
        ),
    ] = None,
    heads: Heads = None,
    shard_size: Annotated[int, typer.Option(min=1, help="Sentences a file; other sizes give other bytes.")] = 50_000,
    workers: Workers = 1,
    scheduler: Scheduler = None,
    shard: Shard = None,
    force: Force = False,
) -> None:
    """Sample a corpus, with trees, exactly conditioned on a range of sentence lengths.

    A call that was stopped goes on where it was when given again.
    """
    from truesource.cli.claims import claim_files, claim_folder
    from truesource.cli.inputs import parse_splits
    from truesource.cli.vary import read_changes
    from truesource.generator.corpus import Corpus
    from truesource.generator.corpus_builder import make_corpus
    from truesource.generator.plan import Columns, Plan, sentences_for
    from truesource.grammar.conditioning import LengthRange
    from truesource.grammar.diagnostics import require_consistent
    from truesource.grammar.errors import InputError
    from truesource.grammar.parallel import Share
    from truesource.grammar.parallel import Workers as AtWork
    from truesource.grammar.pcfg import PCFG

    if (n is None) == (tokens is None):
        raise InputError("give the size of the corpus: -n SENTENCES or --tokens TOKENS")
    share = None if shard is None else Share.parse(shard)
    outputs = None
    if share is None and variant:
        outputs = claim_files(folder=output, force=force)
    elif share is None:
        claim_folder(output, force=force)
    pcfg = PCFG.load(grammar)
    condition = LengthRange.parse(lengths)
    if condition is None:
        require_consistent(pcfg, grammar)
    pcfg = _changed(pcfg, start, temperature)
    if n is None:
        n = sentences_for(pcfg, tokens or 0, condition, max_height)
    columns = Columns(trees, string_logprob, ids)
    plan = Plan(parse_splits(split, n), seed, condition, overlap, max_height, columns, shard_size)
    at_work = AtWork(workers, scheduler)
    if heads is not None and not variant:
        raise InputError("--heads: for --variant head-initial and head-final; leave it out")
    if variant:
        changes = read_changes(variant, heads)
        resumed = outputs is not None and outputs.resumed
        corpus, output = _make_variants(pcfg, changes, plan, output, at_work, share, force, resumed)
    else:
        made = make_corpus(
            pcfg, plan, output, workers=at_work, share=share, force=force, exact_correction=exact_correction
        )
        corpus = Corpus.load(output) if made else None
    if corpus is None:
        echo(f"Wrote this job's shards of {output}. Next: the other jobs; the last to end completes the corpus.")
        return
    _report(corpus)
    tokens_there = sum(corpus.n_tokens(name) for name in corpus.splits)
    echo(
        f"Wrote {output}: {n:,} sentences, {tokens_there:,} tokens."
        f" Next: truesource train {output} --model gpt2 --preset tiny -o model/"
    )


def _changed(pcfg: PCFG, start: str | None, temperature: float) -> PCFG:
    from dataclasses import replace

    from truesource.grammar.errors import InputError
    from truesource.grammar.variants import Temperature

    if start is not None:
        if start not in pcfg.symbol_ids:
            raise InputError(f"the grammar has no symbol {start!r}; truesource inspect GRAMMAR lists them")
        pcfg = replace(pcfg, start=pcfg.symbol_ids[start])
    return pcfg if temperature == 1.0 else Temperature(temperature)(pcfg).pcfg


def _make_variants(
    pcfg: PCFG,
    changes: list[Change],
    plan: Plan,
    output: Path,
    workers: AtWork,
    share: Share | None,
    force: bool,
    resumed: bool,
) -> tuple[Corpus | None, Path]:
    """The corpus of the original, and where it is."""
    from truesource.cli.vary import print_table
    from truesource.generator.parallel_corpora import sample_variants

    variants, made = sample_variants(
        pcfg, changes, plan, output, workers=workers, share=share, force=force or resumed, keep=resumed
    )
    if share is None or share.index == 0:
        print_table(variants[0].original, variants)
    for name, corpus in made.items():
        if corpus is not None and name != "original":
            echo(f"Wrote {output / name}: {sum(corpus.n_tokens(split) for split in corpus.splits):,} tokens.")
    return (None if None in made.values() else made["original"]), output / "original"


def _report(corpus: Corpus) -> None:
    """What the conditions did, where they did anything."""
    record = corpus.record
    cap = record["height_cap"]
    if cap is not None:
        echo(
            f"height     {1.0 - cap['probability']:.3g} of the probability is in trees above {cap['max_height']}; mean"
            f" length {cap['mean_tokens']:.4f}, {cap['mean_tokens_without']:.4f} without the cap"
        )
    if "unique" in record:
        drawn, repeated = record["unique"]["drawn"], record["unique"]["repeated"]
        echo(f"unique     {repeated:,} of {drawn:,} sentences drawn repeated an earlier one")
    for name, counts in record["splits"].items():
        found, shared = counts["excluded"], counts["overlap"]
        if found is not None:
            how = "exactly" if found["exact"] else "about"
            echo(
                f"disjoint   {name}: earlier splits hold {how} {found['probability']:.6g} of the probability; add"
                f" {found['log_correction']:.6g} nats to each log probability"
            )
        elif shared is not None and record["call"]["overlap"] == "iid":
            echo(
                f"overlap    {shared['tokens']:.2%} of {name} ({shared['types']:.2%} of its different sentences) stand"
                f" in {record['overlap_with']} too"
            )
