"""`truesource induce`: a grammar from a treebank, or from sentences without trees."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from truesource.cli.claims import claim_files
from truesource.cli.console import echo
from truesource.cli.inputs import show_reading
from truesource.cli.options import Convention, Force, Seed
from truesource.grammar.errors import InputError

if TYPE_CHECKING:
    from truesource.grammar.pcfg import PCFG

NAME = "induce"
_SETTINGS = ("method", "lexicon", "cycles", "iterations")


class Method(StrEnum):
    """How the grammar is estimated."""

    SPLIT_MERGE = "split-merge"
    RELATIVE_FREQUENCY = "relative-frequency"
    PARENT = "parent"


def command(
    context: typer.Context,
    output: Annotated[Path, typer.Option("-o", "--output", help="The grammar to write (.npz, or text).")],
    treebank: Annotated[
        str, typer.Argument(help="Penn bracketings: a file (.gz too), a folder, or a quoted glob.", show_default=False)
    ] = "",
    cycles: Annotated[int, typer.Option(min=0, help="Split-merge cycles; 0 is the relative-frequency grammar.")] = 5,
    method: Annotated[
        Method,
        typer.Option(
            help="Substates found by splitting and merging, or a baseline: relative frequencies of the treebank as it"
            " is, or with every phrase's label annotated by its parent's (Johnson 1998)."
        ),
    ] = Method.SPLIT_MERGE,
    lexicon: Annotated[
        str,
        typer.Option(
            help="Lexicon mode: generate (the words seen and no others: to sample from and to compare with) or parse"
            " (rare words also train classes by form, as which unknown words are read)."
        ),
    ] = "generate",
    held_out: Annotated[
        str | None,
        typer.Option(
            help="More of what the grammar is fitted to (of a corpus its split dev), to report the likelihood of."
        ),
    ] = None,
    convention: Convention = "penn",
    seed: Seed = 1,
    unbracketed: Annotated[
        Path | None, typer.Option(help="Instead of a treebank: tokenised sentences, one a line, or a corpus folder.")
    ] = None,
    brackets: Annotated[
        str | None,
        typer.Option(help="Instead of a treebank: trees whose brackets bind and whose labels do not count."),
    ] = None,
    start_from: Annotated[
        Path | None, typer.Option(help="The grammar whose rules --unbracketed or --brackets re-estimate.")
    ] = None,
    iterations: Annotated[
        int, typer.Option(min=1, help="Most EM iterations with --start-from; a gain below 1e-6 stops, too.")
    ] = 50,
    trace: Annotated[
        Path | None,
        typer.Option(help="A JSON line per EM iteration, written after every phase (.jsonl)."),
    ] = None,
    force: Force = False,
) -> None:
    """Induce a probabilistic grammar from a treebank (split-merge, Petrov et al. 2006).

    After Ctrl-C the same command goes on from the last finished phase. With --start-from and --unbracketed: fit the
    rules of a grammar to sentences without trees (inside-outside EM, Lari and Young 1990); with --brackets: to
    sentences of which some constituents are known (Pereira and Schabes 1992).
    """
    given = [source for source in (treebank, unbracketed, brackets) if source]
    if len(given) != 1 or bool(treebank) == bool(start_from):
        raise InputError(
            "induce takes either a treebank, or --start-from GRAMMAR with one of --unbracketed and --brackets"
        )
    sources = {name: context.get_parameter_source(name) for name in _SETTINGS}
    explicit = {name for name, source in sources.items() if source is not None and source.name == "COMMANDLINE"}
    if start_from and (idle := sorted(explicit - {"iterations"})):
        raise InputError(f"{_options(idle)}: for a treebank; with --start-from, EM needs no such thing")
    if not start_from and "iterations" in explicit:
        raise InputError("--iterations: of --start-from; a treebank is fitted in --cycles of splitting and merging")
    if "cycles" in explicit and method is not Method.SPLIT_MERGE:
        raise InputError(f"--cycles: of the method split-merge; {method} splits nothing")
    if unbracketed is not None and convention != "penn":
        raise InputError("--convention: of a treebank; sentences without trees have none")
    outputs = claim_files(output, trace, force=force)
    if start_from:
        from truesource.cli.reestimate import reestimate

        reestimate(
            start_from,
            output,
            iterations,
            unbracketed=unbracketed,
            brackets=brackets,
            convention=convention,
            held_out=held_out,
            trace=trace,
            outputs=outputs,
        )
        return
    import shutil
    from collections import Counter
    from dataclasses import asdict, replace
    from functools import partial

    from truesource.grammar.diagnostics import require_consistent
    from truesource.grammar.estimate import SplitMerge, relative_frequency, split_merge
    from truesource.grammar.files import digest_json, write_json_lines
    from truesource.grammar.formats import save_grammar
    from truesource.grammar.treebank import Binarisation, Normalisation, Treebank

    config = SplitMerge(cycles=cycles if method is Method.SPLIT_MERGE else 0, lexicon=lexicon)
    binarisation = Binarisation(vertical=2 if method is Method.PARENT else 1)
    normalise = Normalisation(convention=convention)
    bank = Treebank.read(treebank, normalise)
    echo(str(bank.statistics()))
    show_reading(bank)
    for reason, count in Counter(refusal.reason for refusal in bank.refused).most_common():
        echo(f"{count:,} trees refused: {reason}")
    binarised = bank.binarise(binarisation)
    others = None if held_out is None else Treebank.read(held_out, normalise).binarise(binarisation)
    call = digest_json([asdict(config), seed, binarised.digest, others and others.digest])[:12]
    checkpoint = output.with_name(f".{output.name}.{call}.checkpoint")  # other settings never meet it
    if config.cycles or config.lexicon == "parse" or others is not None:
        folder = checkpoint if config.cycles else None
        record = None
        if trace is not None and not output.exists():  # beside an old grammar, it comes with the new one
            record = partial(write_json_lines, trace)
        found = split_merge(binarised, config, seed=seed, held_out=others, checkpoint=folder, on_phase=record)
        pcfg, iterations_done = found.pcfg, found.trace
    elif trace is not None:
        raise InputError("relative frequencies are counted at once: there is no --trace of them")
    else:
        pcfg, iterations_done = relative_frequency(binarised), ()
    labels = tuple(binarisation.coarse(label) for label in pcfg.labels)
    pcfg = replace(pcfg, labels=labels).with_meta(method=str(method), binarisation=asdict(binarisation))
    require_consistent(pcfg)
    with outputs.together():
        save_grammar(pcfg, output, force=True)
        if trace is not None:
            write_json_lines(trace, iterations_done)
    shutil.rmtree(checkpoint, ignore_errors=True)
    for line in _found(pcfg):
        echo(line)
    echo(f"Wrote {output}: {pcfg!r}. Next: truesource {_next(lexicon, output)}")


def _options(names: list[str]) -> str:
    return ", ".join(f"--{name}" for name in names)


def _next(lexicon: str, output: Path) -> str:
    """The command that a grammar of this lexicon mode is for."""
    return (
        f"parse {output} TEXT -o trees.mrg --method max-rule"
        if lexicon == "parse"
        else (f"sample {output} -n 100000 -o corpus/")
    )


def _found(pcfg: PCFG) -> list[str]:
    """What came of the training, a few lines."""
    meta = pcfg.meta
    lines = [f"training   {_nats(meta)} nats per token{_impossible(meta)}"]
    if (other := meta.get("held_out")) is not None:
        lines.append(f"held out   {_nats(other)} nats per token of {other['trees']:,} trees{_impossible(other)}")
    sizes = pcfg.sizes()
    lines.append(
        f"grammar    {sizes['symbols']:,} symbols of {sizes['labels']:,} labels; rules: {sizes['binary']:,} binary,"
        f" {sizes['unary']:,} unary, {sizes['lexical']:,} lexical"
    )
    if (unknown := meta.get("unknown_words")) is not None:
        lines.append(
            f"unknown    {len(unknown['classes']):,} classes of words, made of {unknown['rare_words']:,} seen"
            f" {unknown['rare']} times or fewer"
        )
    if (cost := meta.get("filter")) is not None:
        lines.append(
            f"filter     {cost['rules']:,} rules below {cost['threshold']:g} dropped; they took part in"
            f" {cost['mass_lost']:.3g} of the derivations, {cost['kl_per_token']:.3g} nats per token"
        )
    if stopped := meta.get("stopped"):
        lines.append(f"! {stopped}")
    return lines


def _nats(record: Mapping[str, Any]) -> str:
    value = record["log_likelihood_per_token"]
    return "no" if value is None else f"{value:.4f}"


def _impossible(record: Mapping[str, Any]) -> str:
    count = record.get("impossible_trees", 0)
    return f"; {count:,} trees are impossible and left out" if count else ""
