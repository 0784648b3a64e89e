"""One page for several runs: their models next to each other, with links to the runs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from urllib.parse import quote

from truesource.evaluation.comparing import ModelComparison
from truesource.evaluation.core.signature import parts_of
from truesource.evaluation.show.records import Record
from truesource.evaluation.show.table import ReportTable, TableRow, number_cell
from truesource.evaluation.show.words import chance
from truesource.grammar.support.errors import require_extras
from truesource.grammar.support.printable import listed
from truesource.report.finished_run import read_results
from truesource.report.page import render_explorable
from truesource.run.model_scores import scores_of_runs
from truesource.studies.compare.groups import comparisons
from truesource.studies.compare.tables import comparison_figure, comparison_table

PAGE = Path(__file__).with_name("page.html.j2")
MEASURES = ("ppl", "bound", "relative_ppl")  #: of each model, next to its own bound


def comparison_page(runs: Sequence[Path], target: Path) -> tuple[str, list[str]]:
    """Return the page that compares the models of some runs.

    Args:
        runs: their folders.
        target: path of the page, for its links.

    Returns:
        The page, and sentences on models that are excluded or set apart.

    Raises:
        InputError: a run is not finished or damaged, or as `truesource.studies.compare.scoring.comparisons`.
    """
    require_extras("a report", "report")
    read = scores_of_runs([str(run) for run in runs], [])
    compared, notes = comparisons(read.models)
    names = [row.name for comparison in compared for row in comparison.rows]
    models = [{"name": name, "objective": "", "names": [name]} for name in dict.fromkeys(names)]
    page, _ = render_explorable(
        PAGE,
        target,
        data={"runName": "", "models": models},
        title=f"{listed([run.resolve().name for run in runs])} compared",
        answer=[_answer(comparison) for comparison in compared],
        said=notes,
        tables=[comparison_table(comparison) for comparison in compared],
        drawn=comparison_figure(compared),
        runs=[_run(run, target) for run in runs],
        results=results_table({run.resolve().name: read_results(run) for run in runs}),
        version=version("truesource"),
    )
    return page, [*read.left_out, *notes]


def _answer(comparison: ModelComparison) -> str:
    """Name the model of an objective that is nearest to the truth, with its distance and the next model's."""
    rows = sorted(comparison.rows, key=lambda row: row.measures["kl"].value)
    best = rows[0].measures["relative_ppl"]
    ends = "" if best.low is None or best.high is None else f" [{best.low:.3f}, {best.high:.3f}]"
    value = f"relative perplexity {best.value:.3f}{ends}"
    if len(rows) == 1:
        return f"{rows[0].name} compares with no other {comparison.objective} model here: {value}."
    pair = comparison.pair(rows[1].name, rows[0].name)
    after = f"the next is {rows[1].name} with {rows[1].measures['relative_ppl'].value:.3f}"
    after += f", which {chance(pair.p_adjusted, pair.tests, pair.contrast.value)}"
    return f"Of the {comparison.objective} models, {rows[0].name} is nearest to the truth: {value}; {after}."


def _run(run: Path, target: Path) -> dict[str, object]:
    place = Path(os.path.relpath(run.resolve(), target.resolve().parent)).as_posix()
    links = [(name, quote(f"{place}/{name}")) for name in ("report.html", "results.json") if (run / name).is_file()]
    return {"name": run.resolve().name, "links": links}


def results_table(results: dict[str, Sequence[Record]]) -> ReportTable:
    """Return all models of all runs, each with its own bound, also those that do not compare."""
    rows = [
        TableRow(
            [
                row["model"],
                run,
                row["objective"],
                number_cell(int(parts_of(row["signature"]).get("vocab", "0").partition("/")[0]), ","),
                *(number_cell(row[name], ".4f" if name == "relative_ppl" else ".2f") for name in MEASURES),
                number_cell(row["tokens"], ","),
                number_cell(row["parameters"], ","),
            ],
            row["signature"],
        )
        for run, records in results.items()
        for row in records
        if row["model"] != "oracle"
    ]
    columns = ("model", "run", "objective", "words", "PPL", "bound", "relative PPL", "tokens", "parameters")
    note = (
        "Not a ranking: each model predicts its own words, all others <unk>, and the fewer they are, the easier is its"
        " text. Compare rows only where signatures agree in data, grammar and vocabulary"
    )
    return ReportTable(columns=columns, rows=rows, title="Every model against its own bound", text=(0, 1, 2), note=note)
