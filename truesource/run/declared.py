"""Verb, stage and section of a declared evaluator, see `truesource.run.evaluator.Evaluator`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from truesource.cli.console import echo
from truesource.cli.options import (
    Condition,
    Figure,
    FirstSentences,
    Force,
    FrameName,
    Json,
    Model,
    OracleGrammar,
    Seed,
    SplitName,
    TextOrCorpus,
    grammar_there,
)
from truesource.cli.settings import with_options
from truesource.grammar.support.settings import DEFAULT_SEED

if TYPE_CHECKING:
    from truesource.chain.models import ModelEntry
    from truesource.evaluation.core.setting import Setting
    from truesource.report.finished_run import FinishedRun
    from truesource.report.table import Cell, ReportTable
    from truesource.run.config import RunConfig
    from truesource.run.evaluator import Evaluator, Measure, Result
    from truesource.run.folder import RunFolder
    from truesource.run.stage import Stage

Record = Mapping[str, Any]
MaybeOracle = Annotated[
    Path | None,
    typer.Option(
        "--oracle", help="Grammar that the corpus was sampled from: a file, or a language.", callback=grammar_there
    ),
]


def command_of(evaluator: Evaluator) -> Callable[..., None]:
    """The verb `truesource evaluate <name>`: options of the settings, and those that the declaration asks for."""

    def command(
        model: Model,
        corpus: TextOrCorpus,
        settings: Any,
        oracle: MaybeOracle = None,
        split: SplitName = "eval",
        sentences: FirstSentences = None,
        frame: FrameName = "default",
        lengths: Condition = None,
        seed: Seed = DEFAULT_SEED,
        json: Json = None,
        figure: Figure = None,
        force: Force = False,
    ) -> None:
        from truesource.cli.inputs import read_setting, say_left_out
        from truesource.cli.output import OutputFiles, figure_of, json_of, show

        check = evaluator.beside_settings("check_call")
        if check is not None:
            check(settings, model=model, oracle=oracle is not None, frame=frame, figure=figure is not None)
        files = OutputFiles(json=json, figure=figure, force=force)
        uncorrected = evaluator.beside_settings("uncorrected")
        said = "" if uncorrected is None else uncorrected(settings, frame)
        given: dict[str, Any] = {"frame": frame, "seed": seed, "first": sentences, "uncorrected": said}
        setting = read_setting(corpus, split, oracle, lengths, **given, scores=evaluator.corrected)
        trained = _loaded(evaluator, model, settings)
        result = evaluator.measure(trained, setting, settings)
        record = record_of(result)
        say_left_out(setting, *result.impossible)
        for note in result.notes:
            echo(note, err=True)
        title = result.title or f"{record['model']} ({record['objective']})"
        tables = evaluator.function("tables") or (
            lambda *_: [measures_table(evaluator, {record["model"]: record}, title)]
        )
        extent = evaluator.extent(settings, len(setting.sentences))
        for number, table in enumerate(tables(record, title)):
            show(with_extent(table, extent) if number == 0 else table, evaluator.width)
        if result.line:
            echo(result.line)
        draw = evaluator.function("figure")
        files.finish(
            _then(evaluator, trained, model, corpus, oracle),
            json=json_of(record["records"]),
            figure=figure_of(lambda: "" if draw is None else draw(record, evaluator.name)),
        )

    command.__doc__ = evaluator.help or evaluator.summary
    signature = inspect.signature(command, eval_str=True)
    left_out = {*(() if evaluator.frame else ("sentences", "frame")), *(() if evaluator.draws else ("figure",))}
    left_out |= {"sentences"} & set(evaluator.settings.model_fields)  # the settings say how many
    kept = [parameter for name, parameter in signature.parameters.items() if name not in left_out]
    if evaluator.oracle:
        required = kept.pop(3).replace(annotation=OracleGrammar, default=inspect.Parameter.empty)
        kept.insert(2, required)
    command.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]
    return with_options(evaluator.settings)(command)


def with_extent(table: ReportTable, extent: str) -> ReportTable:
    """A table whose title says of which sentences it is; the same table without an extent."""
    return replace(table, title=f"{table.title}; {extent}" if table.title else extent) if extent else table


def _loaded(evaluator: Evaluator, model: str, settings: Any) -> Any:
    """The model that a verb names, or, of one that has snapshots, where they are."""
    if not evaluator.whole_models:
        from truesource.lmtrain.references import model_reference

        return model_reference(model)
    from truesource.generator.abilities import require
    from truesource.lmtrain.models import load_model  # torch, after the quick checks

    trained = load_model(model)
    needed = evaluator.beside_settings("needed")
    for ability, option in ({} if needed is None else needed(settings)).items():
        require(trained, ability, option)
    return trained


def _then(evaluator: Evaluator, trained: Any, model: str, corpus: Path, oracle: Path | None) -> str:
    """The command that shows more of the same model, where the truth is known and the model is one of whole words."""
    from truesource.generator.abilities import offers

    if not evaluator.then or oracle is None or (evaluator.whole_models and not offers(trained, "distributions")):
        return "truesource cite"
    return f"truesource {evaluator.then.format(model=model, corpus=corpus, oracle=oracle)}"


def record_of(result: Result, name: str = "") -> dict[str, Any]:
    """The record that a run keeps of a result.

    Args:
        result: with one record or more.
        name: what the run calls the model; empty: as it calls itself.
    """
    from truesource.run.folder import under_name

    head = {key: result.records[0][key] for key in ("model", "objective")}
    record = {**head, **result.entries, "records": list(result.records)}
    return under_name(record, head["model"], name) if name else record


def measured(evaluator: Evaluator, model: Any, setting: Setting, name: str) -> dict[str, Any]:
    """The record of a loaded model, under another name, by an evaluator with its default settings."""
    return record_of(evaluator.measure(model, setting, evaluator.settings()), name)


def plain(record: Record) -> dict[str, Record]:
    """The records of whole measures by name, without those of tables and groups."""
    return {each["name"]: each for each in record["records"] if "by" not in each and "table" not in each}


def grouped(record: Record, by: str) -> dict[str, dict[str, Record]]:
    """The records of groups of one kind: by group, in their order, and by name."""
    from truesource.report.records import nested

    return nested((each for each in record["records"] if each.get("by") == by), itemgetter("group"))


def measures_table(
    evaluator: Evaluator,
    models: Mapping[str, Record],
    title: str = "",
    note: str = "",
    cell: Callable[[Measure, Record], Cell | None] | None = None,
) -> ReportTable:
    """A row for each measure that there is, a column for each model.

    Args:
        evaluator: whose measures they are.
        models: what a run keeps of each, by the heading of its column.
        title: of the table.
        note: below it.
        cell: of a measure in a record; None: its value, where it was measured.
    """
    from truesource.report.table import ReportTable, TableRow

    shown = cell or measure_cell
    cells = {each: [shown(each, record) for record in models.values()] for each in evaluator.measures}
    rows = [TableRow((each.label, *row, each.meaning)) for each, row in cells.items() if any(row)]
    return ReportTable(title=title, columns=("measure", *models, "meaning"), text=(0, -1), rows=rows, note=note)


def measure_cell(measure: Measure, record: Record) -> Cell | None:
    """The value of a measure with its interval; None where it was not measured."""
    from truesource.report.table import score_cell

    return score_cell(plain(record).get(measure.name), measure.format)


def stages_of(evaluator: Evaluator, config: RunConfig) -> list[Stage]:
    """A step for each model that it applies to."""
    from truesource.run.stage import Stage

    name = evaluator.name
    models = (model for model in config.entries if evaluator.applies(model))
    steps = partial(_inputs, evaluator=evaluator), partial(_make, evaluator=evaluator)
    return [Stage.of_model(name, model, (f"{name}/{{}}.json",), *steps) for model in models]


def _inputs(run: RunFolder, model: ModelEntry, *, evaluator: Evaluator) -> Any:
    """Settings, split, seed, corpus, grammar, the trained model, and what scores and comparisons depend on."""
    from truesource.run.stage import of_model

    whole = of_model(run, model, evaluator.settings)
    if evaluator.frame:
        whole |= run.config.evaluation.model_dump(mode="json", include={"sentences", "frame"})
    if evaluator.compares and "vocabulary" in run.outputs:
        whole["vocabulary"] = run.outputs["vocabulary"]
    return whole


def _make(run: RunFolder, model: ModelEntry, *, evaluator: Evaluator) -> str:
    """Write ``<name>/<model>.json``."""
    from truesource.grammar.support.files import digest_json, write_json

    settings = run.settings(evaluator.settings)
    setting = run.setting(getattr(settings, "sentences", None), scores=evaluator.frame)
    make = run.compared_model if evaluator.compares else run.model
    trained = make(model) if evaluator.whole_models else run.reference(model)
    record = record_of(evaluator.measure(trained, setting, settings), model.name)
    write_json(run.folder / evaluator.name / f"{model.name}.json", record)
    return digest_json(record)


def section_of(evaluator: Evaluator, run: FinishedRun) -> dict[str, Any] | None:
    """Tables and figures for the template; None where nothing was measured."""
    records = run.of_models(evaluator.name, dict[str, Any])
    if not records:
        return None
    signed = {name: next((r.get("signature") for r in record["records"]), None) for name, record in records.items()}
    return {
        "prose": evaluator.prose,
        "table": measures_table(evaluator, records),
        "signatures": {name: signature for name, signature in signed.items() if signature},
        "figures": figures_of(evaluator, records),
    }


def figures_of(evaluator: Evaluator, records: Mapping[str, Record]) -> dict[str, str]:
    """The figure of each model that has one, as ``<svg>``."""
    draw = evaluator.function("figure")
    if draw is None:
        return {}
    drawn = {name: draw(record, f"{evaluator.name}-{name}") for name, record in records.items()}
    return {name: svg for name, svg in drawn.items() if svg is not None}
