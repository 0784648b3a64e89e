"""`truesource sample`: sample a corpus from a grammar."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from truesource.generator.plan import SHARES
from truesource.grammar.conditioning import condition_text, length_condition
from truesource.grammar.support.settings import DEFAULT_SEED
from truesource.run.corpus import SampleSettings
from truesource.terminal.console import echo
from truesource.terminal.options import Force, Grammar, Heads, Json, Lengths, License, Scheduler, Seed, Shard, Workers
from truesource.terminal.settings import with_options

if TYPE_CHECKING:
    from truesource.generator.corpus import Corpus
    from truesource.generator.plan import Plan
    from truesource.grammar.pcfg import PCFG
    from truesource.grammar.support.parallel import Share
    from truesource.grammar.support.parallel import Workers as AtWork
    from truesource.grammar.truth import Truth
    from truesource.terminal.output import OutputFiles


@with_options(SampleSettings)
def command(
    grammar: Grammar,
    output: Annotated[Path, typer.Option("-o", "--output", help="Corpus folder to write.")],
    *,
    number: Annotated[
        int | None, typer.Option("-n", "--number", min=1, help="Total number of sentences of all splits.")
    ] = None,
    tokens: Annotated[int | None, typer.Option(min=1, help="Expected total number of tokens, instead of -n.")] = None,
    lengths: Lengths = None,
    split: Annotated[str, typer.Option("--shares", help="Share of the sentences for each split.")] = SHARES,
    seed: Seed = DEFAULT_SEED,
    settings: SampleSettings,
    variant: Annotated[
        list[str] | None, typer.Option("--variant", help="Also sample this variant, such as mirror=all; see vary.")
    ] = None,
    heads: Heads = None,
    workers: Workers = 1,
    scheduler: Scheduler = None,
    shard: Shard = None,
    license: License = None,  # noqa: A002
    json: Json = None,
    force: Force = False,
) -> None:
    """Sample a corpus of sentences and their trees from a grammar.

    The corpus has the splits train, dev, test and eval (--shares), and keeps its grammar, so that other commands find
    the truth. With --lengths, the sentences follow the exact distribution given the range of lengths. Give the size of
    the corpus as -n or --tokens. To resume an interrupted call, repeat it.

    Example: truesource sample grammar.npz -n 100000 -o corpus/

    Example: truesource sample dyck:k=2 --tokens 1000000 --lengths 2..40 -o corpus/
    """
    from truesource.generator.abilities import require
    from truesource.generator.corpus import Corpus
    from truesource.generator.corpus_builder import make_corpus
    from truesource.grammar.support.errors import InputError
    from truesource.grammar.support.parallel import Share
    from truesource.grammar.support.parallel import Workers as AtWork
    from truesource.terminal.output import OutputFiles, claim_folder

    if (number is None) == (tokens is None):
        raise InputError("give the size of the corpus once, either as -n SENTENCES or --tokens TOKENS")
    if heads is not None and not variant:
        raise InputError("--heads needs --variant head-initial or head-final; add one or remove --heads")
    share = None if shard is None else Share.parse(shard)
    alone = share is None
    if alone and not variant:
        claim_folder(output, "corpus", "record.json", force=force)
    files = OutputFiles(json=json, folder=output if alone and variant else None, shared=not alone, force=force)
    truth, plan = _plan(grammar, settings, number, tokens, lengths, split, seed)
    at_work = AtWork(workers, scheduler)
    if variant:
        pcfg, keep = require(truth, "parses", "--variant"), alone and files.resumed
        corpus, output, variants = _make_variants(
            pcfg, variant, heads, plan, output, workers=at_work, share=share, force=force, license=license, keep=keep
        )
    else:
        exact = settings.exact_correction
        complete = make_corpus(
            truth, plan, output, workers=at_work, share=share, force=force, exact_correction=exact, license=license
        )
        corpus, variants = Corpus.load(output) if complete else None, []
    if corpus is None:
        echo(f"Wrote this job's shards of {output}. Next: run the other jobs; the last one completes the corpus.")
        return
    _report(corpus)
    _finish(corpus, output, variants, files)


def _finish(corpus: Corpus, output: Path, variants: Sequence[Mapping[str, object]], files: OutputFiles) -> None:
    """Write the numbers of a complete corpus, and print its size."""
    from truesource.terminal.output import json_of

    sentences, words = (sum(count(name) for name in corpus.splits) for count in (corpus.n_sentences, corpus.n_tokens))
    record = {"corpus": str(output), "sentences": sentences, "tokens": words, **corpus.record}
    also = files.also(json=json_of({**record, "variants": variants} if variants else record))
    echo(
        f"Wrote {output}{also}: {sentences:,} sentences, {words:,} tokens, mean length {words / sentences:.2f},"
        f" {condition_text(corpus.lengths)}."
        f" Next: truesource train {output} --model gpt2 --preset tiny -o model/"
    )


def _plan(
    grammar: Path,
    settings: SampleSettings,
    number: int | None,
    tokens: int | None,
    lengths: str | None,
    split: str,
    seed: int,
) -> tuple[Truth, Plan]:
    """Return the grammar to sample from, and the plan of the corpus."""
    from truesource.generator.abilities import require
    from truesource.generator.plan import Columns, Plan, sentences_for, split_sizes
    from truesource.grammar.truth import load_truth

    condition = length_condition(lengths)
    truth = load_truth(grammar)
    if settings.start is not None or settings.temperature != 1.0:
        truth = _changed(require(truth, "parses", "--start or --temperature"), settings.start, settings.temperature)
    if condition is None:
        _check_lengths(truth, grammar, settings.max_height)
    n = number or sentences_for(truth, tokens or 0, condition, settings.max_height)
    columns = Columns(settings.trees, settings.string_logprob, settings.ids)
    splits = split_sizes(split, n)
    return truth, Plan(
        splits,
        seed,
        condition,
        settings.overlap or "iid",
        settings.max_height,
        columns,
        settings.shard_size,
        settings.words_order,
        bool(settings.stratified),
    )


def _check_lengths(truth: Truth, grammar: Path, max_height: int | None) -> None:
    """Refuse to sample all lengths if derivations may not end, and warn if sentences are long."""
    from truesource.generator.plan import LONG
    from truesource.grammar.diagnostics import require_consistent

    remedy = "to sample this grammar, give a range of lengths, such as --lengths 1..100"
    require_consistent(truth, grammar, remedy=remedy)
    if max_height is None and truth.exact.mean_length > LONG:
        echo(
            f"Warning: sentences of this grammar have {truth.exact.mean_length:,.0f} tokens on average; a range of"
            " lengths, such as --lengths 1..100, gives shorter ones.",
            err=True,
        )


def _changed(pcfg: PCFG, start: str | None, temperature: float) -> PCFG:
    from dataclasses import replace

    from truesource.grammar.support.errors import InputError
    from truesource.grammar.variants import Temperature

    if start is not None:
        if start not in pcfg.symbol_ids:
            raise InputError(f"the grammar has no symbol {start!r}; choose another --start")
        pcfg = replace(pcfg, start=pcfg.symbol_ids[start])
    return pcfg if temperature == 1.0 else Temperature(temperature)(pcfg).pcfg


def _make_variants(
    pcfg: PCFG,
    variants: list[str],
    heads: Path | None,
    plan: Plan,
    output: Path,
    *,
    workers: AtWork,
    share: Share | None,
    force: bool,
    license: str | None,  # noqa: A002
    keep: bool,
) -> tuple[Corpus | None, Path, list[dict[str, object]]]:
    """Return the corpus of the original, its folder, and the measures of the variants."""
    from truesource.cli.vary import print_table, read_changes
    from truesource.generator.parallel_corpora import sample_variants

    changes = read_changes(variants, heads)
    changed, corpora = sample_variants(
        pcfg, changes, plan, output, workers=workers, share=share, force=force or keep, keep=keep, license=license
    )
    if share is None or share.index == 0:
        print_table(changed[0].original, changed)
    for name, corpus in corpora.items():
        if corpus is not None and name != "original":
            echo(f"Wrote {output / name}: {sum(corpus.n_tokens(split) for split in corpus.splits):,} tokens.")
    records = [variant.as_dict() for variant in changed]
    return (None if None in corpora.values() else corpora["original"]), output / "original", records


def _report(corpus: Corpus) -> None:
    """Print the effects of the conditions, if they had any."""
    record = corpus.record
    cap = record["height_cap"]
    if cap is not None:
        echo(
            f"height     {1.0 - cap['probability']:.3g} of the probability is in trees above {cap['max_height']}; mean"
            f" length {cap['mean_tokens']:.4f}, {cap['mean_tokens_without']:.4f} without the cap"
        )
    if "unique" in record:
        n_sampled, repeated = record["unique"]["drawn"], record["unique"]["repeated"]
        echo(f"unique     {repeated:,} of {n_sampled:,} sampled sentences repeated an earlier one")
    for name, counts in record["splits"].items():
        excluded, shared = counts["excluded"], counts["overlap"]
        if "with_event" in counts:
            echo(f"stratified {counts['with_event']:,} of {counts['sentences']:,} sentences of {name} have the event")
        if excluded is not None:
            how = "exactly" if excluded["exact"] else "about"
            echo(
                f"disjoint   {name}: earlier splits hold {how} {excluded['probability']:.6g} of the probability; add"
                f" {excluded['log_correction']:.6g} nats to each log probability"
            )
        elif shared is not None and record["call"]["overlap"] == "iid":
            echo(
                f"overlap    {shared['tokens']:.2%} of {name} ({shared['types']:.2%} of its sentence types) also"
                f" occur in {record['overlap_with']}"
            )
