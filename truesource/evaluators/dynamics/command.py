"""`truesource evaluate dynamics`: what a model learns when, against the exact truth."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from truesource.cli.console import console, echo
from truesource.cli.options import Condition, Force, Json, Plot, Seed, SplitName

if TYPE_CHECKING:
    from truesource.evaluation.dynamics.groupings import By
    from truesource.evaluation.dynamics.milestones import Milestone
    from truesource.evaluation.dynamics.table import Dynamics

NAME = "dynamics"
HEADS = {
    "all": "",
    "class": "class",
    "length": "words in sentence",
    "position": "position",
    "frequency": "frequency",
    "depth": "constituents above",
}


def command(
    model: Annotated[
        Path,
        typer.Argument(
            help="Model folder with snapshots: of truesource train with training.snapshots, or laid out by hand."
        ),
    ],
    corpus: Annotated[Path, typer.Argument(help="Corpus folder, or text with one tokenised sentence a line.")],
    oracle: Annotated[Path, typer.Option("--oracle", help="The grammar that the corpus was drawn from.")],
    classes: Annotated[
        Path | None,
        typer.Option("--classes", help="Class of each tag: lines of tag, tab, class; or .json, .yaml. Default: Penn."),
    ] = None,
    only: Annotated[
        str | None, typer.Option("--only", help="Show only these classes, by commas; --json has all.")
    ] = None,
    tags: Annotated[
        Literal["expected", "paper", "drawn"],
        typer.Option(help="expected: exact posterior shares; paper: of the sampled trees; drawn: of trees drawn anew."),
    ] = "expected",
    by: Annotated[
        str, typer.Option("--by", help="Measure also by length, position, frequency, depth (by commas).")
    ] = "",
    measure: Annotated[
        Literal["mean", "median", "kl"],
        typer.Option(
            help="What the figure shows: mean or median of ln Q - ln P, or the exact KL (default frame only)."
        ),
    ] = "mean",
    threshold: Annotated[
        float, typer.Option(help="Nats a token; a class whose mean stays within them of 0 counts as learned.")
    ] = 0.2,
    split: SplitName = "eval",
    sentences: Annotated[int | None, typer.Option("--sentences", min=2, help="Only the first so many.")] = None,
    contexts: Annotated[
        int, typer.Option("--contexts", min=0, help="Positions for the exact KL, about; 0: leave it out.")
    ] = 2000,
    frame: Annotated[
        Literal["default", "paper"], typer.Option(help="Which positions count; paper: no end, no first word, no <unk>.")
    ] = "default",
    lengths: Condition = None,
    seed: Seed = 1,
    json: Json = None,
    plot: Plot = None,
    force: Force = False,
) -> None:
    """Compare every snapshot of a model with the exact truth: which words it learns first, and where it still fails.

    ln Q - ln P, model less truth, of each token, averaged by class of word, sentence length, position, word frequency
    and depth in the tree; 0 is perfect. Needs snapshots: truesource train ... --set training.snapshots=log
    """
    from truesource.cli.claims import claim_files
    from truesource.cli.inputs import read_sentences, say_left_out, truth_of
    from truesource.evaluation.core.tag_classes import PENN, read_classes, tags_of
    from truesource.evaluation.divergence.groups import END
    from truesource.evaluation.dynamics.compare import CurveSettings
    from truesource.evaluation.dynamics.findings import findings
    from truesource.evaluation.dynamics.groupings import BY
    from truesource.evaluators.dynamics.measure import measure_checkpoints, sampled_trees
    from truesource.grammar.conditioning import LengthRange
    from truesource.grammar.errors import InputError
    from truesource.grammar.files import write_json, write_text
    from truesource.grammar.pcfg import PCFG
    from truesource.lmtrain.snapshots import checkpoints

    parts = {part.strip() for part in by.split(",") if part.strip()}
    asked = [name for name in BY if name in parts]
    if len(asked) < len(parts):
        raise InputError(f"--by takes {', '.join(BY)}, by commas; got {by!r}")
    if plot is not None and measure == "kl" and (contexts == 0 or frame != "default"):
        why = "--contexts is 0" if contexts == 0 else f"it is of all positions, and --frame {frame} leaves some out"
        raise InputError(f"there is no exact KL to draw: {why}; take --measure mean")
    outputs = claim_files(json, plot, force=force)
    table = PENN if classes is None else read_classes(classes)
    checkpoints(model)
    text, drawn = read_sentences(corpus, split)
    text = text[:sentences]
    pcfg = PCFG.load(oracle)
    shown = [] if only is None else [part.strip() for part in only.split(",")]
    names = (*table.table(tags_of(pcfg))[0], END)
    unknown = [name for name in shown if name not in names]
    if unknown:
        raise InputError(f"there is no class {unknown[0]!r}; there are {', '.join(names)}")
    condition = drawn if lengths is None else LengthRange.parse(lengths)
    exactly = "exact divergences (kl)" if contexts and frame == "default" else ""
    excluded = truth_of(corpus, split, pcfg, drawn, condition, uncorrected=exactly)
    settings = CurveSettings(
        by=tuple(dict.fromkeys(("all", "class", *asked))),
        classes=table,
        tags=tags,
        trees=sampled_trees(corpus, split, sentences) if tags == "paper" else None,
        frame=frame,
        threshold=threshold,
        contexts=contexts,
        seed=seed,
    )
    name = model.resolve().name
    found = measure_checkpoints(model, pcfg, text, name=name, lengths=condition, settings=settings, excluded=excluded)
    say_left_out(text, pcfg, found.impossible_model, found.impossible_truth)
    if frame != "default" and contexts:
        echo(f"No exact KL: it is of all positions, and --frame {frame} leaves some out", err=True)
    for kind in found.curves:
        print_table(found, kind, shown if kind == "class" else [])
    echo(
        "Steps: from there on; in parentheses between which checkpoints, in 95% of resampled sentences (seeds of"
        " training are not in it)."
    )
    for sentence in findings(found):
        echo(sentence)
    echo(f"{found.score('all', 0, len(found.steps) - 1, 'log_ratio')}")
    wrote = []
    with outputs.together():
        if json is not None:
            write_json(json, found.records())
            wrote.append(str(json))
        if plot is not None:
            from truesource.evaluators.dynamics.figures import dynamics_figure
            from truesource.report.figures import standalone

            write_text(plot, standalone(dynamics_figure(found.as_record(), measure, shown)))
            wrote.append(str(plot))
    done = f"Wrote {' and '.join(wrote)}" if wrote else "Nothing written; --json FILE keeps these numbers"
    echo(f"{done}. Next: truesource evaluate divergence {model} {corpus} --oracle {oracle} --by class")


def print_table(found: Dynamics, by: By, only: list[str]) -> None:
    """The groups at the last checkpoint, and when each was learned; classes in the order of learning."""
    from rich.table import Table

    curves = found.curves[by]
    groups = [g for g, name in enumerate(curves.names) if not only or name in only]
    if by == "class":
        groups.sort(key=lambda g: float("inf") if (step := curves.half[g].step) is None else step)
    last = len(found.steps) - 1
    table = Table(
        title=f"{found.model} ({found.objective}) at step {found.steps[-1]:,}, {found.tokens:,} tokens"
        if by == "all"
        else f"by {by}"
    )
    table.add_column(HEADS[by], no_wrap=True)
    exactly = "part of KL" if by in ("class", "frequency") else "KL"
    for head in ("tokens", "ln Q - ln P", "", "median", exactly, "half gone from", f"within {found.level:g} from"):
        table.add_column(head, justify="left" if not head else "right", no_wrap=True)
    for g in groups:
        mean, median, exact = (found.score(by, g, last, m) for m in ("log_ratio", "log_ratio_median", "kl"))
        assert mean is not None and median is not None
        table.add_row(
            curves.names[g],
            f"{curves.tokens[g]:,.1f}" if by == "class" else f"{curves.tokens[g]:,.0f}",
            f"{mean.value:+.4f}",
            "" if mean.low is None else f"[{mean.low:+.3f}, {mean.high:+.3f}]",
            f"{median.value:+.4f}",
            "-" if exact is None else f"{exact.value:.4f}",
            _reached(curves.half[g]),
            _reached(curves.threshold[g]),
        )
    console(130).print(table)


def _reached(milestone: Milestone) -> str:
    if milestone.step is None:
        return "-"
    if milestone.low is None:
        return f"{milestone.step:,.0f}"
    high = "..." if milestone.high is None else f"{milestone.high:,.0f}"
    return f"{milestone.step:,.0f} ({milestone.low:,.0f} to {high})"
