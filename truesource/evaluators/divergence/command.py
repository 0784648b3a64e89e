"""`truesource evaluate divergence`: what a model expects against what the truth expects, word by word."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from truesource.cli.console import console, echo
from truesource.cli.options import Condition, Force, Json, Plot, Seed, SplitName

if TYPE_CHECKING:
    from collections.abc import Mapping

    from truesource.evaluation.core.score import Score
    from truesource.evaluation.divergence.breakdown import BreakdownRow
    from truesource.evaluation.divergence.compare import ModelDivergence

NAME = "divergence"
ROWS = (
    ("kl", "KL(truth || model)", "nats a token; 0 is perfect"),
    ("kl_paired", "  from the tokens alone", "the same, from the words that came"),
    ("variance_ratio", "  variance ratio", "so many times more tokens needed without them"),
    ("reverse_kl", "KL(model || truth)", "nats; infinite if it expects the impossible"),
    ("reverse_kl_possible", "  of what is possible", "the model restricted to what the truth allows"),
    ("js", "Jensen-Shannon divergence", "nats, 0 to 0.693"),
    ("tv", "total variation", "probability that would have to move, 0 to 1"),
    ("entropy_truth", "entropy of the truth", "nats a token"),
    ("entropy_model", "entropy of the model", "nats a token; higher is vaguer than the truth"),
    ("agreement", "same most probable token", "share of contexts"),
    ("top_k_overlap", "most probable {k} in common", "share of the set"),
    ("impossible_mass", "given to the impossible", "probability on tokens that cannot follow"),
    ("special_mass", "given to no token", "probability on special tokens, or missing to 1"),
    ("calibration_error", "calibration error", "share of probability in the wrong bin"),
    ("calibration_error_top", "  of the first guess", "of the model's most probable token"),
)
SAMPLES = (
    ("samples_impossible", "impossible sentences", "share of the model's sentences"),
    ("samples_reverse_kl", "KL(model || truth)", "nats a token; infinite if it expects the impossible"),
    ("samples_reverse_kl_paired", "  from the tokens alone", "the same, from the words that were drawn"),
    ("samples_reverse_kl_of_possible", "  of possible sentences", "nats a token, of the model without the others"),
    (
        "samples_reverse_kl_possible",
        "  of what is possible",
        "the model restricted, word by word, to what the truth allows",
    ),
    ("samples_impossible_mass", "given to the impossible", "probability, in the model's own contexts"),
)
HEADS = {"position": "position", "length": "words in sentence", "class": "class of token", "frequency": "frequency"}


def command(
    model: Annotated[
        Path,
        typer.Argument(
            help="Model folder of whole words: of truesource train, or a checkpoint with a WordLevel tokeniser."
        ),
    ],
    corpus: Annotated[Path, typer.Argument(help="Corpus folder, or text with one tokenised sentence a line.")],
    oracle: Annotated[Path, typer.Option("--oracle", help="The grammar that the corpus was drawn from.")],
    split: SplitName = "eval",
    sentences: Annotated[int | None, typer.Option("--sentences", min=1, help="Only the first so many.")] = None,
    top_k: Annotated[int, typer.Option("--top-k", min=1, help="Size of the sets of most probable tokens.")] = 10,
    by: Annotated[
        str, typer.Option("--by", help="Tables to show as well: position, length, class, frequency (by commas).")
    ] = "",
    classes: Annotated[
        Path | None,
        typer.Option("--classes", help="Class of each tag, for --by class: lines of tag, tab, class; or .json, .yaml."),
    ] = None,
    samples: Annotated[
        Path | None,
        typer.Option("--samples", help="The model's own sentences, for KL(model || truth): text, or a folder."),
    ] = None,
    lengths: Condition = None,
    seed: Seed = 1,
    json: Json = None,
    plot: Plot = None,
    force: Force = False,
) -> None:
    """Compare everything a model expects with everything the truth expects, in every context of a corpus.

    Exact distributions of the grammar over all words stand beside those of the model, so nothing depends on which word
    happened to come next. Intervals are those of other sentences from the same source.
    """
    from truesource.cli.claims import claim_files
    from truesource.cli.inputs import read_sentences, say_left_out, truth_of
    from truesource.evaluation.core.tag_classes import PENN, read_classes
    from truesource.evaluation.divergence.compare import BY, compare_distributions
    from truesource.evaluation.divergence.reverse import reverse_divergence
    from truesource.grammar.conditioning import LengthRange
    from truesource.grammar.errors import InputError
    from truesource.grammar.files import write_json, write_text
    from truesource.grammar.pcfg import PCFG

    asked = [name for name in BY if name in {part.strip() for part in by.split(",")}]
    if len(asked) < len([part for part in by.split(",") if part.strip()]):
        raise InputError(f"--by takes {', '.join(BY)}, by commas; got {by!r}")
    outputs = claim_files(json, plot, force=force)
    table = PENN if classes is None else read_classes(classes)
    text, drawn = read_sentences(corpus, split)
    own = None if samples is None else read_samples(samples)
    condition = drawn if lengths is None else LengthRange.parse(lengths)
    pcfg = PCFG.load(oracle)
    excluded = truth_of(corpus, split, pcfg, drawn, condition, scores=False)
    from truesource.lmtrain.models import load_model  # torch, after the quick checks

    trained = load_model(model)
    if not hasattr(trained, "distributions"):
        raise InputError("this model has no probabilities of whole words, which the truth is compared with", model)
    sampled = None if own is None else reverse_divergence(trained, pcfg, own, lengths=condition, seed=seed)
    tables = [name for name in BY if name in asked or (plot is not None and name in ("position", "length"))]
    found = compare_distributions(
        trained,
        pcfg,
        text[:sentences],
        lengths=condition,
        top=top_k,
        by=tables,
        classes=table,
        seed=seed,
        excluded=excluded,
    )
    say_left_out(text[:sentences], pcfg, [], found.impossible.tolist())
    records = found.records()
    print_measures(f"{found.model} ({found.objective}), {found.contexts:,} contexts", ROWS, found.scores, top_k)
    for name in asked:
        print_table(name, found.tables[name])
    if own is not None and sampled is not None:
        head = {"model": found.model, "objective": found.objective}
        records += [{**head, **score.as_record()} for score in sampled.values()]
        print_measures(f"{len(own):,} sentences of {found.model}", SAMPLES, sampled, top_k)
    main = found.scores.get("kl") or found.scores["kl_infinite"]
    echo(f"{main.name}|{main.signature}")
    wrote = []
    with outputs.together():
        if json is not None:
            write_json(json, records)
            wrote.append(str(json))
        if plot is not None:
            from truesource.evaluators.divergence.figures import divergence_figure
            from truesource.report.figures import standalone

            write_text(plot, standalone(divergence_figure(found)))
            wrote.append(str(plot))
    done = f"Wrote {' and '.join(wrote)}" if wrote else "Nothing written; --json FILE keeps these numbers"
    echo(f"{done}. Next: {_next(model, found, own is not None)}")


def read_samples(path: Path) -> list[list[str]]:
    """Sentences of a model: a folder that `truesource generate` made, or text with one tokenised sentence a line.

    Sentences of a folder that were cut before the model ended them are left out, and said so.

    Raises:
        InputError: the folder is none, holds no finished sentence, or was not drawn from the model's own distribution.
    """
    from truesource.grammar.errors import InputError

    if not path.is_dir():
        from truesource.generator.text import read_sentences

        return read_sentences(path)
    from truesource.lmtrain.decoding.folder import SampleFolder

    folder = SampleFolder.load(path)
    how = folder.decoding
    if how.scheme != "ancestral" or how.temperature not in (None, 1.0):
        raise InputError(f"these were drawn by {how}, not from the model's own distribution: use ancestral ones", path)
    cut = folder.n_sentences - folder.n_finished
    if cut:
        echo(f"{cut:,} of {folder.n_sentences:,} sentences of the model were cut and are left out", err=True)
    found = folder.sentences(cut=False)
    if not found:
        raise InputError("the model ended none of these sentences, so there is nothing to compare", path)
    return found


def print_measures(title: str, rows: tuple[tuple[str, str, str], ...], scores: Mapping[str, Score], top_k: int) -> None:
    """A line a measure: its name, its value with interval, and what it means."""
    from rich.table import Table

    table = Table(title=title, title_justify="left", caption="in brackets: 95%, sentences resampled")
    table.add_column("measure", no_wrap=True)
    table.add_column("value", justify="right", no_wrap=True)
    table.add_column("meaning")
    for name, label, meaning in rows:
        cell = _cell(name, scores)
        if cell is not None:
            table.add_row(label.format(k=top_k), cell, meaning)
    console().print(table)


def print_table(by: str, rows: list[BreakdownRow]) -> None:
    """Divergence of each group, and the other measures where there are any."""
    from rich.table import Table

    table = Table(title=f"by {by}", title_justify="left")
    table.add_column(HEADS[by], no_wrap=True)
    names = {"kl": "KL, nats a token", "js": "JS", "tv": "TV", "agreement": "same first"}
    shown = [name for name in names if any(name in row.scores for row in rows)]
    table.add_column("tokens", justify="right")
    for name in shown:
        table.add_column(names[name], justify="right", no_wrap=True)
    infinite = any(row.infinite for row in rows)
    if infinite:
        table.add_column("infinite KL", justify="right")
    for row in rows:
        cells = [("-" if name not in row.scores else _value(row.scores[name], name == "kl")) for name in shown]
        counts = [f"{row.infinite:,}"] if infinite else []
        table.add_row(row.group, f"{row.tokens:,.0f}", *cells, *counts)
    console().print(table)


def _cell(name: str, scores: Mapping[str, Score]) -> str | None:
    """The value of a measure, or in what share of the contexts it is infinite; None where it was not measured."""
    if name in scores:
        return _value(scores[name], True)
    share = scores.get(f"{name}_infinite")
    if share is None:
        return None
    finite = scores.get(f"{name}_where_finite")
    rest = "" if finite is None else f"; else {_number(finite.value)}"
    return f"infinite in {share.value:.2%}{rest}"


def _value(score: Score, ends: bool) -> str:
    if not ends or score.low is None or score.high is None:
        return _number(score.value)
    return f"{_number(score.value)} [{_number(score.low)}, {_number(score.high)}]"


def _number(value: float) -> str:
    """Four places, and no minus before zeros."""
    return f"{value if abs(value) >= 5e-5 else 0.0:.4f}"


def _next(model: Path, found: ModelDivergence, sampled: bool) -> str:
    if sampled or found.objective != "causal":
        return "truesource cite"
    return f"truesource generate {model} -o samples/, then --samples samples/"
