"""`truesource explain`: explain why a model is off, and what would help most."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from truesource.evaluation.explain.evaluator import ExplainSettings
from truesource.grammar.support.settings import DEFAULT_SEED
from truesource.terminal.console import echo
from truesource.terminal.options import Condition, Force, IntervalSeed, Json, Model, Oracle, PlanOnly, Shard, SplitName
from truesource.terminal.settings import with_options

if TYPE_CHECKING:
    from truesource.run.stages.explain.job import ExplainJob, LeverCell
    from truesource.run.tasks import Failure
    from truesource.terminal.output import OutputFiles


@with_options(ExplainSettings)
def command(
    model: Model,
    corpus: Annotated[Path, typer.Argument(help="Corpus folder that the model was trained on.", exists=True)],
    settings: ExplainSettings,
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder of trainings and report, to resume from.")],
    oracle: Oracle = None,
    plan: PlanOnly = False,
    split: SplitName = "eval",
    lengths: Condition = None,
    shard: Shard = None,
    seed: IntervalSeed = DEFAULT_SEED,
    json: Json = None,
    force: Force = False,
) -> None:
    """Explain why a model is off, and what would help most.

    The command retrains the model once for each possible change (lever), with all else equal: more data, exact targets,
    more steps, a larger network, a longer context, another tokeniser. A table compares how far each is from the truth.
    A second table has references: the best predictors that see k words, n-gram models, and the distance that the
    amount of training data leaves at least (the floor of the data).

    --plan shows what the trainings would cost. To resume an interrupted call, repeat it; finished trainings are kept.

    Example: truesource explain model/ corpus/ -o why/ --plan

    Example: truesource explain model/ corpus/ -o why/ --budget 30
    """
    from truesource.grammar.support.parallel import Share
    from truesource.terminal.inputs import oracle_option
    from truesource.terminal.output import OutputFiles, json_of
    from truesource.terminal.tables import show

    share = Share() if shard is None else Share.parse(shard)
    files = OutputFiles(json=json, force=force)
    job = _job(model, corpus, settings, oracle, output, split, lengths, seed)
    if plan:
        from truesource.run.stages.explain.results import plan_table

        show(plan_table(job), 150)
        option = oracle_option(oracle, corpus)
        files.finish(f"truesource explain {model} {corpus}{option} -o {output}", json=json_of([job.plan()]))
        return
    if job.unknown is not None:
        echo(f"The model is not retrained: {job.unknown.reason}.", err=True)
    failures = job.explain(share)
    _finish(job, files, failures, shared=shard is not None)


def _job(
    model: str,
    corpus: Path,
    settings: ExplainSettings,
    oracle: Path | None,
    output: Path,
    split: str,
    lengths: str | None,
    seed: int,
) -> ExplainJob:
    """Read and check the model, its text and the truth."""
    from truesource.grammar.support.errors import InputError, require_extras

    require_extras("`truesource explain`", "lm", "report")
    from truesource.run.stages.explain.call import job_of
    from truesource.run.stages.explain.job import PLAN
    from truesource.run.tasks import refuse_foreign
    from truesource.terminal.inputs import read_setting, requested_truth, require_truth

    if not corpus.is_dir():
        raise InputError("name the corpus folder that the model was trained on, not a text", corpus, code="no-corpus")
    refuse_foreign(output, PLAN, "this exists and is not an explanation; choose another folder")
    setting = read_setting(corpus, split, requested_truth(oracle), lengths, seed=seed, first=settings.sentences)
    if setting.text is None or setting.text.corpus is None:
        raise InputError("name the corpus folder that the model was trained on, not samples", corpus, code="no-corpus")
    require_truth(setting, corpus)
    return job_of(model, setting, setting.text.corpus, output, settings)


def _finish(job: ExplainJob, files: OutputFiles, failures: list[Failure[LeverCell]], *, shared: bool) -> None:
    """Show and write the finished results."""
    from truesource.grammar.support.atomic_files import all_at_once, remove_leftovers, write_json
    from truesource.grammar.support.locks import exclusive
    from truesource.run.stages.explain.call import result_of
    from truesource.run.stages.explain.page import PAGE, write_page
    from truesource.run.stages.explain.results import explained, records_of
    from truesource.terminal.output import json_of
    from truesource.terminal.tables import show

    for failure in failures:
        echo(f"failed: {failure.task}: {failure.reason}", err=True)
    record = explained(job)
    if record["missing"] and shared:
        echo(f"Wrote this job's trainings to {job.folder}; {record['missing']} are missing. Next: run the others.")
        return
    result = result_of(record, records_of(record))
    for number, table in enumerate(result.tables):
        show(table, 110 if number else 150)
    for note in result.notes:
        echo(note)
    written = job.folder / "explain.json", job.folder / PAGE
    with exclusive(job.folder, wait=True):
        for file in written:
            remove_leftovers(file)
        with all_at_once(written):
            write_json(written[0], record)
            page = write_page(record, job.folder)
    also = "".join(f" and {file}" for file in files.write(json=json_of(result.records())))
    echo(f"Wrote {page}{also}. Next: open it in a browser.")
    if failures:
        raise typer.Exit(2)
