"""`truesource compare`: compare models, or the models of finished runs, with one truth."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from truesource.grammar.support.errors import InputError
from truesource.grammar.support.folders import kind_of
from truesource.grammar.support.settings import DEFAULT_SEED
from truesource.terminal.console import echo
from truesource.terminal.options import Condition, Figure, FirstSentences, Force, Json, Longest, Oracle

if TYPE_CHECKING:
    from truesource.evaluation.comparing import ModelComparison, ModelScores
    from truesource.evaluation.core.evaluator import Evaluator
    from truesource.evaluation.show.result import Result

Models = Annotated[
    list[str],
    typer.Argument(
        metavar="MODEL_OR_RUN", help="Models, then the corpus folder, text or folder of variants; or folders of runs."
    ),
]
Baseline = Annotated[
    str | None, typer.Option("--baseline", metavar="NAME", help="Model to compare the others with (default: first).")
]
Split = Annotated[
    str | None, typer.Option("--split", help="Split to use, if the text is a corpus folder (default: eval).")
]
Frame = Annotated[
    Literal["default", "paper"] | None,
    typer.Option("--frame", help="Positions that count: all (default), or all but end, first word and <unk> (paper)."),
]
Exact = Annotated[
    int | None,
    typer.Option(
        "--exact-kl", metavar="N", min=2, help="Also compute the exact KL in all contexts of the first N sentences."
    ),
]
Evaluators = Annotated[
    str | None,
    typer.Option(
        "--evaluators", metavar="A,B", help="Also measure each model with these evaluators, such as divergence,pplu."
    ),
]
VocabularyKind = Annotated[
    Literal["common", "full", "own"] | None,
    typer.Option(
        "--vocabulary",
        help="Words: common (to all models), full (of the truth) or own (default: common, else full).",
    ),
]
Seed = Annotated[
    int | None,
    typer.Option(
        "--seed",
        min=0,
        max=2**32 - 1,
        help=f"Random seed of the intervals (default: the seed of the runs, else {DEFAULT_SEED}).",
    ),
]
Columns = Annotated[
    str | None, typer.Option("--columns", help="Columns of the table, such as ppl,kl,difference,p,tokens.")
]

#: options that apply to models only, by key
OPTIONS = {
    "split": "--split",
    "frame": "--frame",
    "lengths": "--lengths",
    "longest": "--longest",
    "first": "--sentences",
    "exact": "--exact-kl",
    "also": "--evaluators",
    "vocabulary": "--vocabulary",
}


def command(
    models: Models,
    oracle: Oracle = None,
    baseline: Baseline = None,
    split: Split = None,
    frame: Frame = None,
    lengths: Condition = None,
    longest: Longest = None,
    sentences: FirstSentences = None,
    exact: Exact = None,
    evaluators: Evaluators = None,
    vocabulary: VocabularyKind = None,
    seed: Seed = None,
    columns: Columns = None,
    json: Json = None,
    figure: Figure = None,
    force: Force = False,
) -> None:
    """Compare several models with the truth and with each other, on the same tokens and in one vocabulary.

    A model is a folder, or code (file.py:name); NAME=MODEL gives it a name. Models with the same name count as seeds of
    one model. So do folders whose training differs only in the random seed. The table shows the mean over seeds, and
    its intervals then cover other seeds too. A difference is the KL per token of a model minus the KL of the baseline,
    on the same sentences; p-values are adjusted for all pairs of models (Holm).

    Models with different vocabularies are compared in a common one: all predict the words that all of them know,
    and <unk> for every other word. Each model still reads its usual input, and the truth reads every word. With
    --vocabulary own, each model keeps its own vocabulary, and models with different vocabularies are not ranked.

    Given folders of finished runs, the command compares their stored scores and loads no model. Given a folder that
    truesource sample --variant wrote, name each model after its training corpus, as in original=MODEL: each is scored
    on this corpus with its truth, and differences are between corresponding sentences.

    The truth of real text is not known. On a text that truesource split wrote, models of one vocabulary are compared by
    their perplexities, and the perplexity of the grammar (--oracle) is a reference, not a bound.

    Example: truesource compare gpt2=models/a gpt2=models/b models/lstm corpus/ --table table.csv

    Example: truesource compare runs/first runs/second
    """
    from truesource.cli.compare_arguments import Scored, models_on_real_text, scores_of_models, scores_of_variants
    from truesource.cli.real_text import score_real_text
    from truesource.run.model_scores import scores_of_runs
    from truesource.run.treebank.text import text_of_file
    from truesource.studies.compare.calls import result_of
    from truesource.studies.compare.tables import check_columns
    from truesource.terminal.inputs import warn
    from truesource.terminal.output import OutputFiles, figure_of, json_of

    files = OutputFiles(json=json, figure=figure, force=force)
    chosen = None if columns is None else [name.strip() for name in columns.split(",")]
    check_columns(chosen or ["kl"])
    options = {"split": split, "frame": frame, "lengths": lengths, "longest": longest, "first": sentences}
    options |= {"exact": exact, "also": evaluators, "vocabulary": vocabulary}
    requested = {key: value for key, value in options.items() if value is not None}
    request = Scored.of(requested, DEFAULT_SEED if seed is None else seed)
    if (treebank := text_of_file(Path(models[-1]))) is not None:
        further = {**requested, "columns": columns, "figure": None if figure is None else str(figure)}
        of_text = score_real_text(*models_on_real_text(models, treebank.lengths, oracle, request, further, baseline))
        files.finish("truesource cite", json=json_of(of_text.records))
        return
    kind = kind_of(Path(models[-1]))
    parallel = kind == "variants"
    if parallel and oracle is not None:
        raise InputError(f"each corpus of {models[-1]} has its own grammar inside; remove --oracle")
    if parallel:
        scored = scores_of_variants(models, request, baseline)
    elif oracle is None and kind != "corpus" and not Path(models[-1]).is_file():
        runs = scores_of_runs(models, [OPTIONS[key] for key in requested], seed)
        warn(runs.left_out)
        scored = runs.models
    else:
        scored = scores_of_models(models, oracle, request, baseline)
    options_of_intervals = {"baseline": baseline, "seed": request.seed if parallel else seed}
    compared = _comparisons(scored, parallel=parallel, own=vocabulary == "own", **options_of_intervals)
    result = result_of(compared, chosen)
    _show(result)
    records = [*result.records(), *_further(request.also, scored)]
    files.finish("truesource cite", json=json_of(records), figure=figure_of(result.drawn))


def _show(result: Result) -> None:
    """Print the tables of a comparison, and warnings."""
    from truesource.terminal.tables import show

    for table in result.tables:
        show(table)
    for note in result.notes:
        echo(note)


def _comparisons(scored: list[ModelScores], *, parallel: bool, own: bool, **how: Any) -> list[ModelComparison]:
    """Compare models of each objective and text, or variants with one text each; warn of separate groups."""
    from truesource.evaluation.comparing import compare_models
    from truesource.studies.compare.groups import comparisons
    from truesource.terminal.inputs import warn

    if parallel:
        return [compare_models(scored, parallel=True, **how)]
    compared, notes = comparisons(scored, own=own, **how)
    warn(notes)
    return compared


def _further(evaluators: Sequence[Evaluator], models: Sequence[ModelScores]) -> list[dict[str, object]]:
    """Return the records of further evaluators, and print a table for each."""
    from truesource.evaluation.calls import with_extent
    from truesource.evaluation.show.declared import measures_table
    from truesource.terminal.tables import show

    records = []
    for evaluator in evaluators:
        seeds = {seed.label: seed.also[evaluator.name] for model in models for seed in model.seeds}
        number = models[0].seeds[0].paired.n_sentences
        table = measures_table(evaluator, seeds, evaluator.title)
        show(with_extent(table, evaluator.extent(evaluator.settings(), number)), evaluator.width)
        records += [record for seed in seeds.values() for record in seed["records"]]
    return records
