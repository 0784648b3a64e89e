"""`truesource induce`: induce a grammar from a treebank, or from sentences without trees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from truesource.grammar.support.errors import InputError
from truesource.grammar.support.printable import counted
from truesource.grammar.support.settings import DEFAULT_SEED
from truesource.terminal.console import echo
from truesource.terminal.inputs import read_text
from truesource.terminal.options import Convention, Force, Json, Normalise, Overrides, Seed
from truesource.terminal.output import OutputFiles, json_of
from truesource.terminal.treebanks import normalisation, show_reading

if TYPE_CHECKING:
    from truesource.grammar.estimate.inside_outside import Brackets, EmIteration
    from truesource.grammar.pcfg import PCFG
    from truesource.grammar.treebank import Normalisation
    from truesource.run.grammar.config import GrammarConfig


class Method(StrEnum):
    """Method that estimates the grammar."""

    SPLIT_MERGE = "split-merge"
    RELATIVE_FREQUENCY = "relative-frequency"
    PARENT = "parent"


Treebank_ = Annotated[
    str, typer.Argument(help="Penn bracketings: a file (.gz too), a folder, or a quoted glob.", show_default=False)
]
Grammar = Annotated[Path, typer.Option("-o", "--output", help="Grammar file to write (.npz, or text).")]
How = Annotated[
    Method | None,
    typer.Option(help="Estimator: split-merge (default), relative-frequency, or parent (parent annotation)."),
]
Cycles = Annotated[int | None, typer.Option(min=0, help="Number of split-merge cycles (default: 5).")]
Lexicon = Annotated[
    str | None, typer.Option(help="Lexicon: generate, or parse, which covers unknown words (default: generate).")
]
HeldOut = Annotated[str | None, typer.Option(help="Held-out trees (or text) whose likelihood to report.")]
Unbracketed = Annotated[
    Path | None, typer.Option(help="With --start-from: text with one tokenised sentence per line, or a corpus folder.")
]
BracketsFile = Annotated[
    str | None, typer.Option(help="With --start-from: trees, whose brackets constrain EM; labels are ignored.")
]
StartFrom = Annotated[
    Path | None, typer.Option(help="Grammar file or language to re-estimate from --unbracketed or --brackets.")
]
Iterations = Annotated[int | None, typer.Option(min=1, help="Maximum EM iterations with --start-from (default: 50).")]
TraceFile = Annotated[Path | None, typer.Option(help="Write a record of each EM iteration to this JSON Lines file.")]


def command(
    output: Grammar,
    treebank: Treebank_ = "",
    method: How = None,
    cycles: Cycles = None,
    lexicon: Lexicon = None,
    set_: Overrides = None,
    held_out: HeldOut = None,
    convention: Convention = "penn",
    normalise: Normalise = None,
    seed: Seed = DEFAULT_SEED,
    unbracketed: Unbracketed = None,
    brackets: BracketsFile = None,
    start_from: StartFrom = None,
    iterations: Iterations = None,
    trace: TraceFile = None,
    json: Json = None,
    force: Force = False,
) -> None:
    """Induce a probabilistic grammar from a treebank by splitting and merging symbols (Petrov et al. 2006).

    With --start-from, re-estimate the rule probabilities of an existing grammar instead, by inside-outside EM, on
    sentences without trees (--unbracketed) or on trees whose labels are ignored (--brackets).

    --set overrides a key of `grammar` in a configuration, such as --set split_merge.em_split=20. After Ctrl-C, repeat
    the command to resume from the last finished phase.

    Example: truesource induce treebank/ -o grammar.npz --held-out dev.mrg

    Example: truesource induce --start-from grammar.npz --unbracketed text.txt -o better.npz
    """
    sources = [source for source in (treebank, unbracketed, brackets) if source]
    if len(sources) != 1 or bool(treebank) == bool(start_from):
        raise InputError("give a treebank, or --start-from GRAMMAR with one of --unbracketed and --brackets")
    options = {"method": method, "lexicon": lexicon, "cycles": cycles, "set": set_}
    if start_from is not None:
        if idle := sorted(name for name, value in options.items() if value is not None):
            raise InputError(f"{_options(idle)} cannot be combined with --start-from; remove it")
        if unbracketed is not None and (convention != "penn" or normalise):
            option = "--normalisation" if normalise else "--convention"
            raise InputError(f"{option} applies to treebanks, but --unbracketed has no trees; remove it")

        reestimate(
            start_from,
            output,
            iterations or 50,
            unbracketed=unbracketed,
            brackets=brackets,
            normalise=normalisation(convention, normalise),
            held_out=held_out,
            trace=trace,
            outputs=OutputFiles(grammar=output, trace=trace, json=json, force=force),
        )
        return
    if iterations is not None:
        raise InputError("--iterations needs --start-from; for a treebank, use --cycles")
    if cycles is not None and method not in (None, Method.SPLIT_MERGE):
        raise InputError(f"--cycles applies to the method split-merge, not to {method}; remove it")
    config = _config(method, cycles, lexicon, set_)
    files = OutputFiles(grammar=output, trace=trace, json=json, force=force)
    _from_trees(treebank, held_out, config, normalisation(convention, normalise), seed, output, trace, files)


def _config(
    method: Method | None, cycles: int | None, lexicon: str | None, overrides: list[str] | None
) -> GrammarConfig:
    """Return the settings as the key ``grammar`` of a configuration."""
    from pydantic import ValidationError

    from truesource.grammar.support.records import explain
    from truesource.run.grammar.config import GrammarConfig
    from truesource.run.reading import override

    split_merge = {"cycles": cycles, "lexicon": lexicon}
    values: dict[str, object] = {"split_merge": {key: value for key, value in split_merge.items() if value is not None}}
    if method is not None:
        values["method"] = "split_merge" if method is Method.SPLIT_MERGE else "relative_frequency"
    if method is Method.PARENT:
        values["binarise"] = {"vertical": 2}
    for text in overrides or []:
        override(values, text)
    try:
        return GrammarConfig(**values)
    except ValidationError as error:
        raise InputError(f"cannot induce with these settings: {explain(error)}") from error


def _from_trees(
    treebank: str,
    held_out: str | None,
    config: GrammarConfig,
    normalise: Normalisation,
    seed: int,
    output: Path,
    trace: Path | None,
    outputs: OutputFiles,
) -> None:
    import shutil
    from functools import partial

    from truesource.grammar.diagnostics import require_consistent
    from truesource.grammar.formats import save_grammar
    from truesource.grammar.support.atomic_files import write_json_lines
    from truesource.grammar.support.files import digest_json
    from truesource.grammar.treebank import Treebank
    from truesource.run.grammar.induce import induce, useless_cycles

    bank = Treebank.read(treebank, normalise)
    echo(str(bank.statistics))
    show_reading(bank)
    others = None if held_out is None else Treebank.read(held_out, normalise)
    call = digest_json([config.model_dump(mode="json"), seed, bank.digest, others and others.digest])[:12]
    checkpoint = output.with_name(f".{output.name}.{call}.checkpoint")  # one for each choice of settings
    record = None
    if trace is not None:
        early = not output.exists()  # an old grammar and its trace are replaced together
        record = partial(write_json_lines, trace) if early else lambda rows: None
    pcfg, rows = induce(bank, config, seed=seed, held_out=others, checkpoint=checkpoint, on_phase=record)
    require_consistent(pcfg)
    wrote = outputs.write(
        grammar=lambda file: save_grammar(pcfg, file, force=True),
        trace=lambda file: write_json_lines(file, rows),
        json=json_of(record_of(output, pcfg)),
    )
    shutil.rmtree(checkpoint, ignore_errors=True)
    for line in _result_lines(pcfg):
        echo(line)
    if others is not None and (warning := useless_cycles(rows, len(others))):
        echo(f"! {warning}")
    echo(f"Wrote {' and '.join(wrote)}: {pcfg!r}. Next: truesource {_next(config.split_merge.lexicon, output)}")


def record_of(output: Path, pcfg: PCFG, **more: Any) -> dict[str, object]:
    """Return the result of the training for JSON."""
    reported = ("log_likelihood_per_token", "impossible_trees", "held_out", "filter", "stopped")
    results = {name: pcfg.meta[name] for name in reported if name in pcfg.meta}
    return {"grammar": str(output), "digest": pcfg.digest, "sizes": pcfg.sizes(), **results, **more}


def _options(names: list[str]) -> str:
    return ", ".join(f"--{name}" for name in names)


def _next(lexicon: str, output: Path) -> str:
    """Return the next command for a grammar with this lexicon."""
    return (
        f"parse {output} TEXT -o trees.mrg --method max-rule"
        if lexicon == "parse"
        else (f"sample {output} -n 100000 -o corpus/")
    )


def _result_lines(pcfg: PCFG) -> list[str]:
    """Return lines on the result of the training."""
    meta = pcfg.meta
    final = " by the grammar as written, smoothed and filtered" if "filter" in meta else ""
    lines = [f"training   {_nats(meta)} nats per token{final}{_impossible(meta)}"]
    if (other := meta.get("held_out")) is not None:
        lines.append(f"held out   {_nats(other)} nats per token of {_possible(other)}")
    sizes = pcfg.sizes()
    lines.append(
        f"grammar    {sizes['symbols']:,} symbols of {sizes['labels']:,} labels; rules: {sizes['binary']:,} binary,"
        f" {sizes['unary']:,} unary, {sizes['lexical']:,} lexical"
    )
    if (unknown := meta.get("unknown_words")) is not None:
        lines.append(
            f"unknown    {len(unknown['classes']):,} word classes, learned from {unknown['rare_words']:,} words seen"
            f" {unknown['rare']} times or fewer"
        )
    if (cost := meta.get("filter")) is not None:
        lines.append(
            f"filter     {cost['rules']:,} rules below {cost['threshold']:g} dropped; {cost['mass_lost']:.3g} of the"
            f" derivations used one of them; {cost['kl_per_token']:.3g} nats per token (KL)"
        )
    if stopped := meta.get("stopped"):
        lines.append(f"! {stopped}")
    return lines


def _nats(record: Mapping[str, Any]) -> str:
    value = record["log_likelihood_per_token"]
    return "no" if value is None else f"{value:.4f}"


def _impossible(record: Mapping[str, Any]) -> str:
    count = record.get("impossible_trees", 0)
    return f"; {count:,} trees have probability 0 and are excluded" if count else ""


def _possible(held_out: Mapping[str, Any]) -> str:
    """Return how many trees a mean is over, and how many it excludes."""
    trees, impossible = held_out["trees"], held_out.get("impossible_trees", 0)
    if not impossible:
        return counted(trees, "tree")
    return f"{trees - impossible:,} of {trees:,} trees; the other {impossible:,} have probability 0 and are excluded"


Sentences = Sequence[Sequence[str]]


def reestimate(
    start_from: Path,
    output: Path,
    iterations: int,
    *,
    unbracketed: Path | None,
    brackets: str | None,
    normalise: Normalisation,
    held_out: str | None,
    trace: Path | None,
    outputs: OutputFiles,
) -> None:
    """Run inside-outside EM on sentences without trees (``unbracketed``) or with the brackets of a treebank.

    ``held_out`` is other data of the same kind: text, a corpus folder (its split dev), or a treebank.
    """
    import shutil

    from truesource.grammar.diagnostics import require_consistent
    from truesource.grammar.estimate.inside_outside import inside_outside
    from truesource.grammar.formats import save_grammar
    from truesource.grammar.pcfg import PCFG
    from truesource.grammar.support.atomic_files import write_json_lines
    from truesource.grammar.support.files import digest_json

    start = PCFG.load(start_from)
    constituents: Brackets | None = None
    if unbracketed is not None:
        sentences, others = _read_text(unbracketed, held_out)
    else:
        sentences, constituents, others = _read_brackets(str(brackets), normalise, held_out)
    call = digest_json([start.digest, sentences, constituents, others, iterations])[:12]
    checkpoint = output.with_name(f".{output.name}.{call}.checkpoint")
    fitted = inside_outside(
        start,
        sentences,
        brackets=constituents,
        iterations=iterations,
        tolerance=1e-6,
        held_out=others,
        checkpoint=checkpoint,
    )
    _report(fitted.trace, len(sentences), None if others is None else len(others))
    require_consistent(fitted.pcfg)
    about = {"grammar": str(output), "digest": fitted.pcfg.digest, "sizes": fitted.pcfg.sizes()}
    wrote = outputs.write(
        grammar=lambda file: save_grammar(fitted.pcfg, file, force=True),
        trace=lambda file: write_json_lines(file, fitted.trace),
        json=json_of({**about, "sentences": len(sentences), "iterations": list(fitted.trace)}),
    )
    shutil.rmtree(checkpoint, ignore_errors=True)
    following = f"truesource bound {output} {unbracketed}" if unbracketed else f"truesource inspect {output}"
    echo(f"Wrote {' and '.join(wrote)}: {fitted.pcfg!r}. Next: {following}")


def _read_text(path: Path, held_out: str | None) -> tuple[Sentences, Sentences | None]:
    of_training = read_text(path, "train").sentences
    return of_training, None if held_out is None else read_text(Path(held_out), "dev").sentences


def _read_brackets(
    path: str, normalise: Normalisation, held_out: str | None
) -> tuple[Sentences, Brackets, Sentences | None]:
    from truesource.grammar.estimate.inside_outside import tree_brackets
    from truesource.grammar.treebank import Treebank

    bank = Treebank.read(path, normalise)
    show_reading(bank)
    others = None if held_out is None else Treebank.read(held_out, normalise).sentences()
    return bank.sentences(), [tree_brackets(tree) for tree in bank], others


def _report(trace: tuple[EmIteration, ...], sentences: int, held_out: int | None) -> None:
    for record in trace:
        echo(f"iteration {record['iteration']}: {record['log_likelihood']:.6f} nats per token")
    last = trace[-1]
    if last["impossible"]:
        echo(f"{last['impossible']:,} of {sentences:,} sentences have probability 0 and are excluded")
    if held_out is not None:
        value = "no" if last["held_out"] is None else f"{last['held_out']:.6f}"
        echo(
            f"held out: {value} nats per token of {held_out - last['held_out_impossible']:,} of {held_out:,} sentences;"
            f" the other {last['held_out_impossible']:,} have probability 0 and are excluded"
        )
