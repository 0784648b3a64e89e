"""Results of an explanation: records, tables, figures, and the sentence that says what would help most."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, cast

import numpy as np

from truesource.evaluation.explain.measure import Rung, changes, em_rung, first_of, floor_rung, window_rungs
from truesource.evaluation.explain.report import BASE, REASONS, TITLES
from truesource.evaluation.explain.where import memory_of, places_of
from truesource.evaluation.measures.bootstrap import ci_part
from truesource.evaluation.measures.contrast import Contrast, SeedSums, mean_over_seeds
from truesource.evaluation.show.records import Record
from truesource.evaluation.show.table import Cell, ReportTable, TableRow, number_cell
from truesource.evaluation.show.words import brief, count, duration
from truesource.evaluation.tokenisation.sums import table_of_sums
from truesource.grammar.support.arrays import BoolArray, FloatArray
from truesource.grammar.support.errors import NothingToMeasureError
from truesource.lmtrain.levers import Lever
from truesource.run.stages.explain.job import ExplainJob, LeverCost


def explained(job: ExplainJob) -> dict[str, object]:
    """Return the record of a model from its scored trainings; missing trainings are excluded.

    Raises:
        InputError: a file is damaged.
    """
    model_scores = job.scored(job.model)
    tables: dict[str, list[FloatArray]] = {BASE: [model_scores]}
    missing = 0
    levers, reasons = job.levers
    left_out = {str(name): reason for name, reason in reasons.items()}
    if job.unknown is None:
        tables, missing = _scored(job, model_scores)
    rungs = rungs_of(job, model_scores)
    common = _common([*(t for many in tables.values() for t in many), *(r.table for r in rungs if r.table is not None)])
    return {
        "model": job.model.name,
        "objective": job.model.objective,
        "sentences": int(common.sum()),
        "seeds": len(tables[BASE]),
        "left_out": left_out,
        "missing": missing,
        **_levers(job, levers, tables, common),
        "ladder": [_rung(job, rung, common) for rung in rungs],
        "where": places_of(job.model, job.setting),
        "memory": memory_of(job.model, job.setting, job.train_split) if job.text_known else [],
    }


def _scored(job: ExplainJob, model_scores: FloatArray) -> tuple[dict[str, list[FloatArray]], int]:
    """Return sums of each lever with scores for all seeds of the model, and the number of missing trainings."""
    scores_by_lever: dict[str, dict[int, FloatArray]] = {BASE: {job.seeds[0]: model_scores}}
    cells = job.cells()
    for cell in cells:
        table = job.table_of(cell)
        if table is not None:
            scores_by_lever.setdefault(cell.lever, {})[cell.seed] = table
    seeds = list(scores_by_lever[BASE])
    tables = {name: [rows[seed] for seed in seeds] for name, rows in scores_by_lever.items() if set(seeds) <= set(rows)}
    return tables, 1 + len(cells) - sum(map(len, scores_by_lever.values()))


def rungs_of(job: ExplainJob, own: FloatArray) -> list[Rung]:
    """Return references from word frequencies up to the truth; references to the train split only if known.

    Args:
        job: job of the model.
        own: scores of the model, (3, N).
    """
    rungs = list(window_rungs(job.model, job.setting, job.settings.lines, job.vocabulary))
    if (summed := table_of_sums(job.model, job.setting, own)) is not None:
        rungs.append(Rung("marginal", None, summed))
    if not job.text_known or job.model.objective != "causal":
        return rungs
    if job.reads_words:
        rungs += job.ngram_rungs()
    em = None
    if job.settings.starts:
        em = em_rung(job.model, job.setting, list(job.train_split), job.settings.starts, job.vocabulary)
    rows = job.setting.sentences
    floor = floor_rung(job.setting, len(job.train_split), sum(len(row) for row in rows) / len(rows) + 1)
    return [*rungs, *filter(None, (em, floor))]


def _common(tables: Sequence[FloatArray]) -> BoolArray:
    common = np.asarray(np.all([table[2] > 0.0 for table in tables], axis=0))
    if not common.any():
        raise NothingToMeasureError("no sentence is possible for the model and all references", "no-common-sentence")
    return common


def _sums(tables: Sequence[FloatArray], common: BoolArray) -> SeedSums:
    stacked = np.stack(tables)[:, :, common]
    return SeedSums(stacked[:, 0], stacked[:, 2])


def _levers(
    job: ExplainJob, levers: Sequence[Lever], tables: Mapping[str, list[FloatArray]], common: BoolArray
) -> dict[str, object]:
    seed, n = job.setting.seed, int(common.sum())
    base = _sums(tables[BASE], common)
    several = base.seeds > 1
    shared = {"estimator": "paired", "ci": ci_part(n, seed, with_seeds=several), "seeds": base.seeds, **_extent(common)}

    def number(name: str, value: Contrast, **parts: object) -> dict[str, Any]:
        return job.setting.score(job.model, name, value.value, value.low, value.high, **{**shared, **parts}).as_record()

    sums: dict[str, SeedSums] = {
        lever.name: _sums(tables[lever.name], common) for lever in levers if lever.name in tables
    }
    changes_by_lever = changes(base, sums, seed=seed)
    rows: list[tuple[float, dict[str, object]]] = []
    for lever in levers:
        if lever.name not in sums:
            continue
        change = changes_by_lever[lever.name]
        difference = number("kl_change", change.contrast, lever=lever.name, adjusted=f"holm/{len(sums)}")
        row = {
            "lever": lever.name,
            "before": lever.before,
            "after": lever.after,
            **_cost(job.costs[lever.name]),
            "kl": number("kl", mean_over_seeds(sums[lever.name], seed=seed), lever=lever.name),
            "change": difference,
            "p": change.contrast.p,
            "p_adjusted": change.p_adjusted,
            "helps": change.helps,
        }
        rows.append((difference["value"], row))
    rows.sort(key=lambda each: each[0])
    return {
        "kl": number("kl", mean_over_seeds(base, seed=seed)),
        "cost": _cost(job.base_cost) if levers else None,
        "levers": [row for _, row in rows],
        "first": first_of(changes_by_lever),
    }


def _extent(common: BoolArray) -> dict[str, object]:
    """Return the parts of a signature on excluded sentences, which a model or a reference cannot make."""
    n = int(common.sum())
    return {} if n == len(common) else {"sentences": n, "excluded": len(common) - n}


def _cost(cost: LeverCost) -> dict[str, object]:
    """Return the machine-independent part of the cost."""
    return {name: value for name, value in asdict(cost).items() if name != "seconds"}


def _rung(job: ExplainJob, rung: Rung, common: BoolArray) -> dict[str, object]:
    seen = {} if rung.seen is None else {"seen": rung.seen}
    if rung.table is None:
        value = Contrast(float(cast(float, rung.value)))
        parts: dict[str, object] = {"estimator": "closed-form", "ci": "none/exact"}
    else:
        value = mean_over_seeds(_sums([rung.table], common), seed=job.setting.seed)
        parts = {"estimator": "paired", "ci": ci_part(int(common.sum()), job.setting.seed)}
    signature_parts = {**parts, **seen, **_extent(common), "rung": rung.kind}
    return {
        "rung": rung.kind,
        **seen,
        **job.setting.score(job.model, "kl", value.value, value.low, value.high, **signature_parts).as_record(),
    }


def records_of(record: Record) -> list[dict[str, object]]:
    """Return a record for each number, for JSON: of the model, of each lever, and of each reference."""
    head = {"model": record["model"], "objective": record["objective"]}
    rows = [dict(record["kl"])]
    for row in record["levers"]:
        lever_fields = {key: row[key] for key in ("lever", "parameters", "steps", "flops", "p", "p_adjusted")}
        rows += [{**head, **lever_fields, **row[name]} for name in ("kl", "change")]
    return [*rows, *({**head, **row} for name in ("ladder", "where", "memory") for row in record[name])]


def plan_table(job: ExplainJob) -> ReportTable:
    """Build a table of the estimated cost of each lever."""
    affordable, left_out = job.levers
    names = {lever.name for lever in affordable}
    rows = []
    for name in job.settings.levers:
        lever = next((each for each in affordable if each.name == name), None)
        cost = job.costs.get(name)
        what = f"{lever.before} → {lever.after}" if lever is not None else REASONS[left_out[name]]
        rows.append(
            TableRow(
                [
                    TITLES[name],
                    what,
                    None if cost is None else number_cell(cost.parameters, ","),
                    None if cost is None else number_cell(cost.steps, ","),
                    None if cost is None or not cost.flops else brief(cost.flops),
                    None if cost is None else Cell(duration(cost.seconds)),
                    "run" if name in names else "excluded",
                ]
            )
        )
    total = job.settings.trainings * sum(job.costs[lever.name].seconds for lever in affordable)
    total += 0.0 if job.unknown is not None else (job.settings.trainings - 1) * job.base_cost.seconds
    return ReportTable(
        title=f"Cost of explaining {job.model.name}",
        columns=("lever", "change", "parameters", "steps", "FLOPs", "time", ""),
        rows=rows,
        text=(0, 1, 6),
        note="Times are for one training, at the speed of its first steps on this machine; in total"
        f" {duration(total)} of a budget of {job.settings.budget:g} min, with"
        f" {count(job.settings.trainings, 'training')} each. Parameters are without word and position vectors.",
    )
