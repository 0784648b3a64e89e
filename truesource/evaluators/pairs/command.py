"""`truesource evaluate pairs`: minimal pairs from the grammar."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from truesource.cli.console import echo
from truesource.cli.options import Force, Json, Lengths, Seed

if TYPE_CHECKING:
    from truesource.evaluation.pairs.pair import Pair
    from truesource.evaluation.pairs.settings import PairSettings
    from truesource.grammar.conditioning import LengthRange
    from truesource.grammar.pcfg import PCFG

NAME = "pairs"


MAKING = ("tolerance", "tries", "attached", "forms")  #: options of pairs that are made, not of those of a file


def command(
    context: typer.Context,
    oracle: Annotated[Path, typer.Option("--oracle", help="The grammar: it makes the pairs, and gives the true odds.")],
    model: Annotated[
        Path | None,
        typer.Argument(help="Folder of a trained model; left out, pairs are only made.", show_default=False),
    ] = None,
    number: Annotated[
        int | None,
        typer.Option(
            "-n",
            "--number",
            min=1,
            help="At most so many pairs of each phenomenon: 200, or all of --given.",
            show_default=False,
        ),
    ] = None,
    phenomena: Annotated[
        str | None,
        typer.Option(
            help="Of subject-verb, determiner-noun, subcategorisation, attachment, word-order (or those of --given), by"
            " commas: all.",
            show_default=False,
        ),
    ] = None,
    lengths: Lengths = "6..25",
    given: Annotated[
        Path | None, typer.Option("--given", help="Score the pairs of this JSON lines file instead.")
    ] = None,
    pairs: Annotated[Path | None, typer.Option("--pairs", help="Write the pairs to this file, JSON lines.")] = None,
    forms: Annotated[
        Path | None,
        typer.Option(help="Forms that differ in number: verb|determiner|noun SINGULAR PLURAL a line; default English."),
    ] = None,
    tolerance: Annotated[float, typer.Option(help="Nats by which frequencies of exchanged words may differ.")] = 0.5,
    tries: Annotated[int, typer.Option(min=1, help="At most so many sentences drawn for each pair wanted.")] = 10,
    attached: Annotated[float, typer.Option(help="Posterior from which an attachment is nearly sure.")] = 0.8,
    possible: Annotated[
        bool, typer.Option("--possible", help="Only pairs of which the grammar can make both sentences.")
    ] = False,
    seed: Seed = 1,
    json: Json = None,
    figure: Annotated[
        Path | None, typer.Option("--figure", help="Draw accuracy and log odds to this SVG file.")
    ] = None,
    force: Force = False,
) -> None:
    """Pairs of sentences that differ in one controlled thing, and which of the two a model prefers.

    Pairs are drawn from the grammar, with exact log odds ln P(a)/P(b): agreement in number, verbs in the wrong frame,
    attachment, word order. Printed is how often the model prefers what the truth prefers, and how far its odds are off.
    """
    from truesource.cli.claims import claim_files
    from truesource.evaluation.pairs.files import filter_pairs, read_pairs, write_pairs
    from truesource.evaluation.pairs.lexicon import Lexicon
    from truesource.evaluation.pairs.odds import with_truth
    from truesource.evaluation.pairs.settings import NUMBER, PHENOMENA, PairSettings
    from truesource.evaluators.pairs.tables import print_measures, print_pairs, print_parts
    from truesource.grammar.conditioning import LengthRange
    from truesource.grammar.errors import InputError
    from truesource.grammar.files import write_json, write_text
    from truesource.grammar.pcfg import PCFG

    if model is None and pairs is None:
        raise InputError("name a model to score, or --pairs FILE to keep the pairs")
    if model is None and (json is not None or figure is not None):
        raise InputError("--json and --figure are of a model's scores; name a model, or leave them out")
    outputs = claim_files(pairs, json, figure, force=force)
    names = None if phenomena is None else tuple(part.strip() for part in phenomena.split(","))
    condition = LengthRange.parse(lengths)
    if given is not None:
        _refuse(context)
        pcfg = PCFG.load(oracle)
        found = with_truth(read_pairs(given, pcfg.terminals, condition), Lexicon(pcfg, condition))
        found = filter_pairs(found, given, phenomena=names, number=number, possible=possible)
    else:
        settings = PairSettings(
            NUMBER if number is None else number,
            PHENOMENA if names is None else names,
            seed,
            tries,
            tolerance,
            attached=attached,
            possible=possible,
            forms=forms,
        )
        pcfg = PCFG.load(oracle)
        found = _make(pcfg, condition, settings)
    if model is None:
        assert pairs is not None
        write_pairs(pairs, found)
        print_pairs(found)
        echo(
            f"Wrote {len(found):,} pairs to {pairs}."
            f" Next: truesource evaluate pairs MODEL --oracle {oracle} --given {pairs}"
        )
        return
    from truesource.evaluation.pairs.evaluate import evaluate_pairs
    from truesource.lmtrain.models import load_model  # torch, after the quick checks

    measured = evaluate_pairs(load_model(model), found, pcfg, lengths=condition, seed=seed)
    for reason, n in measured.left_out.items():
        echo(f"{n} of {len(found)} pairs left out: {reason}", err=True)
    records = measured.records()
    print_measures(records)
    print_parts(records)
    wrote = []
    with outputs.together():
        if pairs is not None:
            write_pairs(pairs, found)
            wrote.append(str(pairs))
        if json is not None:
            write_json(json, records)
            wrote.append(str(json))
        if figure is not None:
            from truesource.evaluators.pairs.figures import pairs_figure
            from truesource.report.figures import standalone

            write_text(figure, standalone(pairs_figure(measured.objective, {measured.model: records})))
            wrote.append(str(figure))
    done = f"Wrote {' and '.join(wrote)}" if wrote else "Nothing written; --json FILE keeps these numbers"
    echo(f"{done}. Next: truesource score {model} CORPUS --oracle {oracle}")


def _refuse(context: typer.Context) -> None:
    """Options that only matter where pairs are made are refused beside a file of pairs.

    Raises:
        InputError: one is given.
    """
    from truesource.grammar.errors import InputError

    sources = {name: context.get_parameter_source(name) for name in MAKING}
    told = [f"--{name}" for name, source in sources.items() if source is not None and source.name != "DEFAULT"]
    if told:
        names, they, them = " and ".join(told), *(("is", "it") if len(told) == 1 else ("are", "them"))
        raise InputError(f"{names} {they} for making pairs, and --given has them made; leave {them} out")


def _make(pcfg: PCFG, lengths: LengthRange | None, settings: PairSettings) -> list[Pair]:
    from truesource.evaluation.pairs.generate import make_pairs

    made = make_pairs(pcfg, lengths, settings)
    for note in made.notes:
        echo(f"Note: {note}.", err=True)
    return made.pairs
