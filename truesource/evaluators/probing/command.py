"""`truesource evaluate probe`: what the layers of a network know of the derivation of a sentence."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from truesource.cli.console import console, echo
from truesource.cli.options import Condition, Force, Json, Seed, SplitName

if TYPE_CHECKING:
    from truesource.evaluation.measures.bootstrap import Interval
    from truesource.evaluation.probing.results import Probing

NAME = "probe"


def command(
    model: Annotated[Path, typer.Argument(help="Model folder, of any network.")],
    corpus: Annotated[Path, typer.Argument(help="Corpus folder, or text with one tokenised sentence a line.")],
    oracle: Annotated[Path, typer.Option("--oracle", help="The grammar that the corpus was drawn from.")],
    split: SplitName = "eval",
    sentences: Annotated[int | None, typer.Option("--sentences", min=3, help="Only the first so many.")] = None,
    target: Annotated[
        Literal["tag", "state", "span"],
        typer.Option(help="tag: the treebank tag of each word; state: the grammar's own symbol; span: phrase labels."),
    ] = "tag",
    layers: Annotated[str, typer.Option(help="Numbers by commas, 0: the word vectors; or all.")] = "all",
    checkpoints: Annotated[
        Literal["last", "all"], typer.Option(help="all: also the snapshots kept during training.")
    ] = "last",
    split_by: Annotated[
        Literal["type", "position"],
        typer.Option(
            help="type: no word type is both learnt from and measured on (spans: one end at least is new); position:"
            " 80/10/10 of the text."
        ),
    ] = "type",
    soft: Annotated[
        bool, typer.Option("--soft/--hard", help="Train on the exact posterior, or on the right label alone.")
    ] = True,
    right: Annotated[
        Literal["argmax", "sampled"],
        typer.Option(help="The right label: the most probable one, or that of a tree drawn from the posterior."),
    ] = "argmax",
    given: Annotated[
        Literal["sentence", "left"],
        typer.Option(help="Posterior given the whole sentence, or (causal models) the words up to this one."),
    ] = "sentence",
    control: Annotated[
        Literal["tokens", "split", "none"],
        typer.Option(
            help="Split on which selectivity is measured: by position (tokens), or that of --split-by; on one by type"
            " the control task is at chance by construction (spans: wherever the first word is new)."
        ),
    ] = "tokens",
    mdl: Annotated[bool, typer.Option("--mdl/--no-mdl", help="Measure the minimum description length.")] = True,
    correlations: Annotated[
        bool, typer.Option("--correlations/--no-correlations", help="Set probes beside probabilities of the words.")
    ] = True,
    pieces: Annotated[
        Literal["last", "mean"], typer.Option(help="Models of pieces: a word is its last piece, or their mean.")
    ] = "last",
    lengths: Condition = None,
    seed: Seed = 1,
    json: Json = None,
    figure: Annotated[Path | None, typer.Option("--figure", help="Also draw it to this SVG file.")] = None,
    force: Force = False,
) -> None:
    """Train linear probes on the hidden states of a network, to tell what the exact grammar says of each word.

    The grammar knows how uncertain the truth is, so probes learn from the exact posterior, and are measured against it.
    Intervals are those of other word types (or, where a split is by position, other sentences) of the same kind.
    """
    from truesource.cli.claims import claim_files
    from truesource.cli.inputs import read_sentences, warn_of_other_grammar
    from truesource.evaluation.probing.experiment import ProbeSettings
    from truesource.evaluators.probing.measure import Task, parse_layers, probe_model
    from truesource.grammar.conditioning import LengthRange
    from truesource.grammar.files import write_json, write_text
    from truesource.grammar.pcfg import PCFG

    task = Task(target, given, right, parse_layers(layers), checkpoints, pieces, correlations)
    outputs = claim_files(json, figure, force=force)
    text, drawn = read_sentences(corpus, split)
    pcfg = PCFG.load(oracle)
    warn_of_other_grammar(corpus, pcfg)
    found = probe_model(
        model,
        pcfg,
        text[:sentences],
        lengths=drawn if lengths is None else LengthRange.parse(lengths),
        task=task,
        options=ProbeSettings(soft, split_by, control, mdl, seed),
    )
    excluded = found.parts["excluded"]
    if excluded:
        echo(f"{excluded} of {len(text[:sentences])} sentences are impossible and left out", err=True)
    for note in found.notes:
        echo(f"Note: {note}", err=True)
    _print_layers(found)
    if len(found.steps) > 1:
        _print_steps(found)
    _print_best(found)
    wrote = []
    with outputs.together():
        if json is not None:
            write_json(json, found.records())
            wrote.append(str(json))
        if figure is not None:
            from truesource.evaluators.probing.figures import probing_figure
            from truesource.report.figures import standalone

            write_text(figure, standalone(probing_figure(found.records())))
            wrote.append(str(figure))
    done = f"Wrote {' and '.join(wrote)}" if wrote else "Nothing written; --json FILE keeps these numbers"
    echo(f"{done}. Next: {_next(found, model, corpus, oracle)}")


def _print_layers(found: Probing) -> None:
    """A row a layer of the finished model."""
    from rich.table import Table

    parts = found.parts
    title = (
        f"{found.model} ({found.objective}): {parts['target']} of {parts['items']:,} items, {parts['labels']} labels"
    )
    table = Table(title=title, title_justify="left", caption=_caption(found), caption_justify="left")
    columns = {"accuracy": "accuracy", "mcc": "MCC", "selectivity": "selectivity", "kl": "KL, nats", "mdl": "MDL, bits"}
    shown = [name for name in columns if name in found.final[0].measures]
    table.add_column("layer", justify="right")
    for name in shown:
        table.add_column(columns[name], justify="right", no_wrap=True)
    for row in found.final:
        name = f"{row.layer}{' *' if row.layer == found.best.layer else ''}"
        table.add_row(name, *(_interval(row.measures[name]) for name in shown))
    console(130).print(table)


def _print_steps(found: Probing) -> None:
    """Accuracy of each layer at each step."""
    from rich.table import Table

    table = Table(title="accuracy by step and layer", title_justify="left")
    table.add_column("step", justify="right")
    layers = [row.layer for row in found.final]
    for layer in layers:
        table.add_column(f"layer {layer}", justify="right")
    values = {(row.step, row.layer): row.measures["accuracy"].value for row in found.layers}
    for step in found.steps:
        table.add_row(f"{step:,}", *(f"{values[step, layer]:.4f}" for layer in layers))
    console(130).print(table)


def _print_best(found: Probing) -> None:
    """The best layer beside guesses, limits and controls, and its correlations."""
    from rich.table import Table

    best = found.best
    measures = best.measures
    span = found.parts["target"] == "span"
    own = "pair of end words" if span else "word type"
    by_type = found.part("accuracy", "split").startswith("type")
    drawn = found.parts["right"] == "sampled"
    limit = "of the truth's own first label"
    lines: list[tuple[str, Interval | None, str]] = [
        ("accuracy", measures["accuracy"], "share of test items whose right label is the probe's first"),
        ("  mean over groups", measures["group_accuracy"], f"each {own} counts the same"),
        ("  expected", measures["expected_accuracy"], "posterior probability of the probe's first label"),
        (
            "  expected at most",
            found.baselines["expected_accuracy_limit"],
            f"{limit}: no accuracy is more, but by luck" if drawn else f"{limit}; no limit of accuracy, see --right",
        ),
        ("cross-entropy", measures["cross_entropy"], "nats, of the probe against the posterior"),
        ("  at least", measures["entropy"], "nats, the posterior's own entropy"),
        ("most frequent label", found.baselines["majority_accuracy"], "accuracy of always guessing it"),
        (
            f"label of the {'pair of ends' if span else 'word type'}",
            found.baselines["identity_accuracy"],
            "accuracy of its most frequent one in training",
        ),
        (
            "  split by position",
            found.baselines["position_identity_accuracy"] if by_type else None,
            "where pairs may recur" if span else "where most words were seen in training",
        ),
        ("labels not in training", found.baselines["unseen_labels"], "share of test items"),
    ]
    if "selectivity" in measures:
        split, kind = found.part("selectivity", "split").split("/")[0], "type of first word" if span else "word type"
        lines += [
            ("accuracy for selectivity", measures["task_accuracy"], f"split by {split}"),
            ("  on the control task", measures["control_accuracy"], f"one random label a {kind}: learnt by heart"),
        ]
    lines += [
        ("accuracy, random labels", found.chance["random_accuracy"], "of items: nothing to find"),
        ("  chance", found.chance["random_chance"], "what the same guesses must expect"),
        ("compression", measures.get("compression"), "uniform code over online code, split by position"),
        ("rho with ln P(word)", measures.get("rho_truth"), "Spearman, of ln probability of the right label"),
        ("  with ln Q(word)", measures.get("rho_model"), "of the model"),
        ("  with |ln P - ln Q|", measures.get("rho_difference"), ""),
    ]
    rows = [(label, _interval(value), meaning) for label, value, meaning in lines if value is not None]
    table = Table(title=f"best layer on the dev part: {best.layer} (*)", title_justify="left")
    table.add_column("measure", no_wrap=True)
    table.add_column("value", justify="right", no_wrap=True)
    table.add_column("meaning")
    for row in rows:
        table.add_row(*row)
    console(130).print(table)


def _caption(found: Probing) -> str:
    """What intervals of the columns resample, and on which split they are measured where that is another."""
    from truesource.evaluation.probing.results import intervals

    said = f"in brackets: {intervals(found.part('accuracy', 'ci'))}"
    main = found.part("accuracy", "split")
    there = [name for name in ("selectivity", "mdl") if name in found.final[0].measures]
    others = [name for name in there if found.part(name, "split") != main]
    if not others:
        return said
    names = " and ".join({"selectivity": "selectivity", "mdl": "MDL"}[name] for name in others)
    return f"{said}; {names}: on a split by position: {intervals(found.part(others[0], 'ci'))}"


def _interval(value: Interval) -> str:
    if value.low is None or value.high is None:
        return f"{value.value:.4f}"
    low, high = (f"{x if abs(x) >= 5e-4 else 0.0:.3f}" for x in (value.low, value.high))
    return f"{value.value:.4f} [{low}, {high}]"


def _next(found: Probing, model: Path, corpus: Path, oracle: Path) -> str:
    other = "state" if found.parts["target"] == "tag" else "span" if found.parts["target"] == "state" else "tag"
    return f"truesource evaluate probe {model} {corpus} --oracle {oracle} --target {other}"
