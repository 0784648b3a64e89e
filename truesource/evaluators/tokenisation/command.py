"""`truesource evaluate tokenisation`: the probability of texts summed over the ways to cut them into pieces."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from truesource.cli.console import echo
from truesource.cli.options import Before, Condition, Force, Json, Plot, Seed, SplitName

NAME = "tokenisation"


def command(
    model: Annotated[Path, typer.Argument(help="Folder of a causal model of pieces (BPE, unigram, WordPiece).")],
    text: Annotated[
        Path, typer.Argument(help="Corpus folder, or text with one document a line; NAME=PATH names it for --also.")
    ],
    also: Annotated[
        list[str] | None,
        typer.Option(
            "--also",
            metavar="TEXT",
            help="Another text or corpus folder, any number of times; NAME=PATH names it. Perplexities, gaps, entropy,"
            " --grid and the figure are then by set, and pooled; --curves, --caching and --canonical by set.",
        ),
    ] = None,
    estimators: Annotated[
        str,
        typer.Option(
            help="By commas: exact, bracket, auto, one-best, nbest, wr, wr1, wor, wor1, distinct, block, dpf, beam,"
            " guided; and consistent-nbest, -wr, -wr1, -wor, -wor1. docs/tokenisation.md says which to take."
        ),
    ] = "nbest,wor1,dpf",
    samples: Annotated[
        int, typer.Option("--samples", min=1, help="Cuts that nbest, wr, wor, guided, ... score.")
    ] = 128,
    inverse_temperature: Annotated[
        float,
        typer.Option("--inverse-temperature", min=0.0, help="Of the distribution cuts are drawn from: 0 is uniform."),
    ] = 1.0,
    candidates: Annotated[
        int, typer.Option("--candidates", min=1, help="Cuts of a word that block, dpf, beam look at.")
    ] = 8,
    particles: Annotated[
        int,
        typer.Option(
            "--particles",
            min=1,
            help="Particles of dpf and block, width of beam. Of dpf with fewer than 16, intervals are too short.",
        ),
    ] = 16,
    replicates: Annotated[
        int,
        typer.Option(
            "--replicates",
            min=1,
            help="Filters of dpf, averaged; one alone has no error bar. Where they differ much, take more particles.",
        ),
    ] = 4,
    tail: Annotated[
        bool,
        typer.Option("--tail/--no-tail", help="Whether block and dpf draw cuts that are not among the candidates too."),
    ] = True,
    tolerance: Annotated[
        float,
        typer.Option("--tolerance", help="What bracket may leave out at most, over P of the tokeniser's own cut."),
    ] = 1e-3,
    most_prefixes: Annotated[
        int,
        typer.Option("--most-prefixes", min=1, help="Beginnings of cuts that exact, bracket visit at most in a text."),
    ] = 200_000,
    proposal: Annotated[
        str | None,
        typer.Option(
            help="Scores that cuts are drawn by: own (the tokeniser's), fitted (by EM on the text), uniform;"
            " default: own where there are some, else fitted."
        ),
    ] = None,
    before: Before = None,
    end: Annotated[
        bool,
        typer.Option("--end/--no-end", help="Whether P of a text includes its end; without: of all that begin so."),
    ] = True,
    oracle: Annotated[
        Path | None,
        typer.Option("--oracle", help="The grammar that the text, a sentence a document, was drawn from."),
    ] = None,
    lengths: Condition = None,
    split: SplitName = "eval",
    documents: Annotated[int | None, typer.Option("--documents", min=1, help="Only the first so many.")] = None,
    per_document: Annotated[
        int,
        typer.Option(
            "--per-document", min=1, help="Consecutive sentences that are one document, for the distance to the truth."
        ),
    ] = 1,
    leave_out_long: Annotated[
        bool,
        typer.Option("--leave-out-long", help="Leave out texts that are too long for the model; else refuse them."),
    ] = False,
    out_of_domain: Annotated[
        list[str] | None,
        typer.Option(
            "--out-of-domain", help="Also sentences of the grammar changed: zipf=0.5, temperature=1.5, respell=0.5."
        ),
    ] = None,
    grid: Annotated[
        bool, typer.Option("--grid", help="Also the published estimators, words cut alike or not.")
    ] = False,
    curves: Annotated[
        bool, typer.Option("--curves", help="Also perplexity by number of cuts, their order, and temperature.")
    ] = False,
    caching: Annotated[
        bool, typer.Option("--caching", help="Also the loss of words that recur in a document.")
    ] = False,
    canonical: Annotated[
        bool, typer.Option("--canonical", help="Also whether the likeliest cut of each word is the tokeniser's.")
    ] = False,
    equal_cost: Annotated[
        int,
        typer.Option(
            "--equal-cost", min=0, help="Also all estimators by cost and error, on the first so many documents."
        ),
    ] = 0,
    seed: Seed = 1,
    json: Json = None,
    table: Annotated[
        Path | None, typer.Option("--table", help="Also write a row a document and estimator to this Parquet file.")
    ] = None,
    words: Annotated[
        Path | None,
        typer.Option(
            "--words", help="Also write surprisals of words, with one cut and over all, to this Parquet file."
        ),
    ] = None,
    plot: Plot = None,
    force: Force = False,
) -> None:
    """Add up the probability of a text over the ways to cut it into pieces, by several estimators side by side.

    A tokeniser cuts a text in one way, but the model gives probability to all. What one cut leaves out is the marginal
    gap. With --oracle the truth is known, and the distance of the model from it is divided: what is the tokeniser's,
    and what is the model's.
    """
    from truesource.cli.claims import claim_files
    from truesource.cli.inputs import read_documents, truth_of
    from truesource.cli.sources import named
    from truesource.evaluation.tokenisation.domain_shift import parse_change
    from truesource.evaluation.tokenisation.further_tables import Wanted, make_tables
    from truesource.evaluation.tokenisation.measure import (
        PROPOSALS,
        builder_for,
        check_estimators,
        measure,
        require_pieces,
        with_marks,
        write_rows,
    )
    from truesource.evaluation.tokenisation.measure_sets import check_set_names, measure_sets
    from truesource.evaluation.tokenisation.settings import EstimatorSettings
    from truesource.evaluators.tokenisation.set_tables import show_sets
    from truesource.evaluators.tokenisation.tables import show, show_tables
    from truesource.evaluators.tokenisation.texts import read_texts, warn_of_left_out
    from truesource.grammar.conditioning import LengthRange
    from truesource.grammar.errors import InputError
    from truesource.grammar.files import write_json, write_text
    from truesource.grammar.pcfg import PCFG

    asked = [name.strip() for name in estimators.split(",") if name.strip()]
    check_estimators(asked, samples)
    if proposal is not None and proposal not in PROPOSALS:
        raise InputError(f"--proposal takes {', '.join(PROPOSALS)}; got {proposal!r}")
    if not 0.0 <= tolerance <= 1.0:
        raise InputError(f"--tolerance is from 0 to 1, got {tolerance:g}")
    outputs = claim_files(json, table, words, plot, force=force)
    changes = tuple(out_of_domain or ())
    if changes and oracle is None:
        raise InputError("--out-of-domain changes the grammar of the text; name it with --oracle")
    if per_document > 1 and oracle is None:
        raise InputError("--per-document is of the distance to the truth; name the grammar with --oracle")
    if not end and (oracle is not None or words is not None):
        raise InputError("--no-end leaves out that a text is over, which --oracle and --words need; leave it out")
    for change in changes:
        parse_change(change)
    title, text = named(str(text))
    paths = [(title, text), *map(named, also or ())]
    if also:
        check_set_names([name for name, _ in paths])
    texts, drawn = read_documents(text, split)
    others = {name: (path, read_documents(path, split)[0]) for name, path in paths[1:]}
    condition = drawn if lengths is None else LengthRange.parse(lengths)
    pcfg = excluded = None
    if oracle is not None:
        pcfg = PCFG.load(oracle)
        excluded = truth_of(text, split, pcfg, drawn, condition)
    from truesource.lmtrain.models import load_model  # torch, after the quick checks

    trained = require_pieces(with_marks(load_model(model), before, end, model), model)
    settings = EstimatorSettings(
        samples=samples,
        b=inverse_temperature,
        seed=seed,
        candidates=candidates,
        particles=particles,
        tail=tail,
        replicates=replicates,
        most_prefixes=most_prefixes,
        tolerance=tolerance,
    )
    every = [*texts, *(each for _, other in others.values() for each in other)]
    builder, by = builder_for(trained.pieces, every, proposal)  # scores are fitted to all of the texts
    wanted = Wanted(
        grid=grid,
        curves=curves,
        caching=caching,
        equal_cost=equal_cost,
        changes=changes,
        canonical=canonical,
        words=words is not None,
    )
    wanted.check(builder, settings)
    check = settings if "exact" in asked else None
    found, *more = (
        read_texts(trained, given[:documents], builder, path, leave_out_long, check)
        for path, given in ((text, texts), *others.values())
    )
    measured = measure(
        trained,
        found,
        asked,
        settings,
        proposal=by,
        truth=pcfg,
        lengths=condition,
        per_document=per_document,
        excluded=excluded,
    )
    warn_of_left_out(measured, text)
    show(measured)
    try:
        tables = make_tables(
            trained,
            found,
            builder,
            settings,
            wanted,
            measured,
            truth=pcfg,
            lengths=condition,
            excluded=excluded,
            leave_out_long=leave_out_long,
        )
        sets = None
        if others:
            readable = dict(zip(others, more, strict=True))
            sets = measure_sets(
                trained, title, measured, readable, builder, settings, proposal=by, wanted=wanted, tables=tables
            )
    except InputError:
        with outputs.together():  # what was measured may have taken hours
            if json is not None:
                write_json(json, measured.records())
            if table is not None:
                write_rows(table, measured.rows())
        raise
    show_tables(tables)
    if sets is not None:
        for name, (path, _) in others.items():
            warn_of_left_out(sets.sets[name], path)
        show_sets(sets)
    scores = measured.ppl[measured.marginal]
    signed = scores.get("ppl", scores["bits_per_character"])
    echo(f"{signed.name}|{signed.signature}")
    records = measured.records() + tables.records() + ([] if sets is None else sets.records())
    wrote = []
    with outputs.together():
        if json is not None:
            write_json(json, records)
            wrote.append(str(json))
        if table is not None:
            write_rows(table, measured.rows() if sets is None else sets.rows())
            wrote.append(str(table))
        if words is not None and tables.words is not None:
            write_rows(words, tables.words.rows())
            wrote.append(str(words))
        if plot is not None:
            from truesource.evaluators.tokenisation.figures import tokenisation_figure
            from truesource.report.figures import standalone

            drawn_gaps = (measured if sets is None else sets.pooled).gaps
            gaps = [] if drawn_gaps is None else drawn_gaps.records()
            write_text(plot, standalone(tokenisation_figure(records, gaps)))
            wrote.append(str(plot))
    done = f"Wrote {' and '.join(wrote)}" if wrote else "Nothing written; --json FILE keeps these numbers"
    echo(f"{done}. Next: {_next(model, text, oracle)}")


def _next(model: Path, text: Path, oracle: Path | None) -> str:
    return (
        "truesource cite" if oracle is not None else f"truesource evaluate tokenisation {model} {text} --oracle GRAMMAR"
    )
