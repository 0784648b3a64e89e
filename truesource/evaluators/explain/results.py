"""What an explanation found: records, tables, figures, and the sentence that says what would help most."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, cast

import numpy as np

from truesource.evaluation.core.windows import window_name
from truesource.evaluation.explain import Rung, changes, em_rung, first_of, floor_rung, window_rungs
from truesource.evaluation.measures.bootstrap import ci_part
from truesource.evaluation.measures.contrast import Contrast, SeedSums, mean_over_seeds
from truesource.evaluation.tokenisation.measure import table_of_sums
from truesource.evaluators.explain.job import BASE, NO_TRAINING, ExplainJob, LeverCost
from truesource.evaluators.explain.where import memory_of, places_of
from truesource.grammar.support.arrays import BoolArray, FloatArray
from truesource.grammar.support.errors import NothingToMeasureError
from truesource.grammar.support.printable import listed
from truesource.lmtrain.levers import LEVERS, Lever, LeverName
from truesource.report.figures import MODEL, QUIET, SECOND, TRUTH, to_svg
from truesource.report.figures import figure as new_figure
from truesource.report.records import Record
from truesource.report.table import Cell, ReportTable, TableRow, number_cell, score_cell
from truesource.report.words import brief, count, duration, p_value

#: what each lever changes
TITLES: dict[LeverName, str] = {
    "data": "more data",
    "targets": "exact targets",
    "steps": "more steps",
    "width": "a wider model",
    "layers": "a deeper model",
    "context": "a longer context",
    "tokenizer": "another tokeniser",
}
REFERENCES = {
    "marginal": "the model, all segmentations summed",
    "em": "floor of the data, by EM without trees",
    "floor": "floor of the data, with trees",
}
REASONS = {
    "counts": "a model that counts has no such setting",
    "fresh-already": "the model saw no sentence twice, so fresh ones are what it had",
    "whole-sentence": "nothing limits the words that the model sees",
    "no-size": "the architecture has no such setting",
    "no-parameter": "the module has no parameter of a name such as layers, hidden or context",
    "masked": "only a causal model can be trained like that",
    "single-tokens": "the architecture is trained on single tokens only",
    "pieces": "what is expected next is known for words, not for pieces of words",
    "few-words": "there are too few words to cut into pieces",
    "unknown-words": "the model reads rare words as <unk>, which pieces spell, so the two predict different things",
    "no-order": "the next word of transformed text has no known distribution",
    "over-budget": "it takes longer than was granted; raise the budget",
    "too-large": "the exact targets of the train split take more than 2 GiB",
    "not-trained-here": "truesource did not train the model, so it cannot retrain it with other settings",
    "other-text": "the model was trained on another text",
    "other-weights": "the model started from the weights of another, which levers do not",
}


def explained(job: ExplainJob) -> dict[str, Any]:
    """The record of a model, once all its trainings are scored; what is missing is left out.

    Raises:
        InputError: something is damaged.
    """
    own = job.scored(job.model)
    tables: dict[str, list[FloatArray]] = {BASE: [own]}
    missing = 0
    levers, reasons = job.levers
    left_out = {str(name): reason for name, reason in reasons.items()}
    if job.unknown is None:
        tables, missing = _scored(job, own)
    rungs = rungs_of(job, own)
    kept = _common([*(t for many in tables.values() for t in many), *(r.table for r in rungs if r.table is not None)])
    return {
        "model": job.model.name,
        "objective": job.model.objective,
        "sentences": int(kept.sum()),
        "seeds": len(tables[BASE]),
        "left_out": left_out,
        "missing": missing,
        **_levers(job, levers, tables, kept),
        "ladder": [_rung(job, rung, kept) for rung in rungs],
        "where": places_of(job.model, job.setting),
        "memory": memory_of(job.model, job.setting, job.train) if job.text_known else [],
    }


def _scored(job: ExplainJob, own: FloatArray) -> tuple[dict[str, list[FloatArray]], int]:
    """Sums of each lever with the seeds of the model, of all that are scored with all of these; and what is missing."""
    found: dict[str, dict[int, FloatArray]] = {BASE: {job.seeds[0]: own}}
    cells = job.cells()
    for cell in cells:
        table = job.table_of(cell)
        if table is not None:
            found.setdefault(cell.lever, {})[cell.seed] = table
    seeds = list(found[BASE])
    tables = {name: [rows[seed] for seed in seeds] for name, rows in found.items() if set(seeds) <= set(rows)}
    return tables, 1 + len(cells) - sum(map(len, found.values()))


def rungs_of(job: ExplainJob, own: FloatArray) -> list[Rung]:
    """References from word frequencies up to the truth; those that need the train split only where it is known.

    Args:
        job: of the model.
        own: (3, N) the scores of the model itself.
    """
    found = list(window_rungs(job.model, job.setting, job.settings.lines, job.vocabulary))
    if (summed := table_of_sums(job.model, job.setting, own)) is not None:
        found.append(Rung("marginal", None, summed))
    if not job.text_known or job.model.objective != "causal":
        return found
    if job.reads_words:
        found += job.ngram_rungs()
    em = None
    if job.settings.starts:
        em = em_rung(job.model, job.setting, list(job.train), job.settings.starts, job.vocabulary)
    rows = job.setting.sentences
    floor = floor_rung(job.setting, len(job.train), sum(len(row) for row in rows) / len(rows) + 1)
    return [*found, *filter(None, (em, floor))]


def _common(tables: Sequence[FloatArray]) -> BoolArray:
    kept = np.asarray(np.all([table[2] > 0.0 for table in tables], axis=0))
    if not kept.any():
        raise NothingToMeasureError("no sentence is possible for the model and all references", "no-common-sentence")
    return kept


def _sums(tables: Sequence[FloatArray], kept: BoolArray) -> SeedSums:
    stacked = np.stack(tables)[:, :, kept]
    return SeedSums(stacked[:, 0], stacked[:, 2])


def _levers(
    job: ExplainJob, levers: Sequence[Lever], tables: Mapping[str, list[FloatArray]], kept: BoolArray
) -> dict[str, Any]:
    seed, n = job.setting.seed, int(kept.sum())
    base = _sums(tables[BASE], kept)
    several = base.seeds > 1
    shared = {"estimator": "paired", "ci": ci_part(n, seed, with_seeds=several), "seeds": base.seeds}

    def number(name: str, value: Contrast, **parts: object) -> dict[str, Any]:
        return job.setting.record(job.model, name, value.value, value.low, value.high, **{**shared, **parts})

    sums: dict[str, SeedSums] = {
        lever.name: _sums(tables[lever.name], kept) for lever in levers if lever.name in tables
    }
    found = changes(base, sums, seed=seed)
    rows = []
    for lever in levers:
        if lever.name not in sums:
            continue
        change = found[lever.name]
        rows.append(
            {
                "lever": lever.name,
                "before": lever.before,
                "after": lever.after,
                **_cost(job.costs[lever.name]),
                "kl": number("kl", mean_over_seeds(sums[lever.name], seed=seed), lever=lever.name),
                "change": number("kl_change", change.contrast, lever=lever.name, adjusted=f"holm/{len(sums)}"),
                "p": change.contrast.p,
                "p_adjusted": change.p_adjusted,
                "helps": change.helps,
            }
        )
    rows.sort(key=lambda row: cast(float, row["change"]["value"]))
    return {
        "kl": number("kl", mean_over_seeds(base, seed=seed)),
        "cost": _cost(job.base_cost) if levers else None,
        "levers": rows,
        "first": first_of(found),
    }


def _cost(cost: LeverCost) -> dict[str, Any]:
    """What is the same on every machine."""
    return {name: value for name, value in asdict(cost).items() if name != "seconds"}


def _rung(job: ExplainJob, rung: Rung, kept: BoolArray) -> dict[str, Any]:
    seen = {} if rung.seen is None else {"seen": rung.seen}
    if rung.table is None:
        value = Contrast(float(cast(float, rung.value)))
        parts: dict[str, object] = {"estimator": "closed-form", "ci": "none/exact"}
    else:
        value = mean_over_seeds(_sums([rung.table], kept), seed=job.setting.seed)
        parts = {"estimator": "paired", "ci": ci_part(int(kept.sum()), job.setting.seed)}
    made = {**parts, **seen, "rung": rung.kind}
    return {
        "rung": rung.kind,
        **seen,
        **job.setting.record(job.model, "kl", value.value, value.low, value.high, **made),
    }


def records_of(record: Record) -> list[dict[str, Any]]:
    """One record a number, for JSON: of the model, of each lever, and of each reference."""
    head = {"model": record["model"], "objective": record["objective"]}
    rows = [dict(record["kl"])]
    for row in record["levers"]:
        own = {key: row[key] for key in ("lever", "parameters", "steps", "flops", "p", "p_adjusted")}
        rows += [{**head, **own, **row[name]} for name in ("kl", "change")]
    return [*rows, *({**head, **row} for name in ("ladder", "where", "memory") for row in record[name])]


def sentence(record: Record) -> str:
    """What would help a model most, in words, and what was too expensive to try."""
    name, kl, tried = record["model"], record["kl"]["value"], record["levers"]
    untried = [TITLES[lever] for lever, reason in record["left_out"].items() if reason == "over-budget"]
    rest = f" Not tried, as it takes longer than was granted: {listed(untried)}." if untried else ""
    if not tried:
        codes = set(record["left_out"].values())
        why = f": {REASONS[codes.pop()]}" if len(codes) == 1 and codes <= set(NO_TRAINING) else ""
        return f"Why {name} is {kl:.3f} nats a token from the truth was not tested{why}.{rest}"
    first = next((row for row in tried if row["lever"] == record["first"]), None)
    if first is None:
        what = f"none of {count(len(tried), 'lever')} that {'was' if len(tried) == 1 else 'were'} tried surely helps"
        return f"{name} is {kl:.3f} nats a token from the truth, and {what}.{rest}"
    change, to = first["change"], first["kl"]["value"]
    ends = "" if change["low"] is None else f" [{-change['high']:.3f}, {-change['low']:.3f}]"
    return (
        f"{name} is {kl:.3f} nats a token from the truth. What would help most is {TITLES[first['lever']]}"
        f" ({first['before']} → {first['after']}): {-change['value']:.3f}{ends} nats nearer, which leaves"
        f" {to:.3f}.{_no_advice(tried, first)}{rest}"
    )


def _no_advice(tried: Sequence[Record], first: Record) -> str:
    """Say why the levers that change more are not what would help most; empty if there are none."""
    larger = [row for row in tried if row["change"]["value"] < first["change"]["value"]]
    chance = [TITLES[row["lever"]] for row in larger if not row["helps"]]
    said = [
        f"{TITLES[row['lever']].capitalize()} help more ({-row['change']['value']:.3f} nats), but nobody has them where"
        " the truth is unknown."
        for row in larger
        if row["helps"]
    ]
    if chance:
        said.append(f"A larger change by {listed(chance)} may be chance.")
    return "".join(f" {text}" for text in said)


def rung_title(row: Record) -> str:
    """What a reference is, for readers."""
    seen = row.get("seen")
    if row["rung"] == "window":
        return "word frequencies" if seen == 0 else f"best of {window_name(cast(int, seen))}"
    if row["rung"] == "ngram":
        return f"counted {cast(int, seen) + 1}-grams"
    return REFERENCES[row["rung"]]


def lever_table(record: Record) -> ReportTable:
    """A row for each lever that was run, the one that helps most first."""
    rows = [
        TableRow(
            [
                TITLES[row["lever"]],
                f"{row['before']} → {row['after']}",
                score_cell(row["kl"], ".4f"),
                score_cell(row["change"], "+.4f"),
                p_value(row["p_adjusted"]),
                brief(row["flops"]) if row["flops"] else None,
                "helps" if row["helps"] else "may be chance" if row["change"]["value"] < 0.0 else "does not help",
            ]
        )
        for row in record["levers"]
    ]
    reasons = "; ".join(
        f"{TITLES[name]}: {REASONS[record['left_out'][name]]}" for name in LEVERS if name in record["left_out"]
    )
    return ReportTable(
        title=f"What would help {record['model']} most (KL {record['kl']['value']:.4f} nats a token,"
        f" {record['sentences']:,} sentences)",
        columns=("lever", "what differs", "KL", "change", "p", "FLOPs", ""),
        rows=rows,
        text=(0, 1, 6),
        note=f"{_seeds(record)}, all else equal, nats a token; p is adjusted for all levers (Holm)."
        + (f" Left out: {reasons}." if reasons else ""),
    )


def _seeds(record: Record) -> str:
    """What intervals and p-values are about."""
    if record["seeds"] == 1:
        return "One training each, so intervals are about other sentences, not about other seeds"
    return f"Means over {record['seeds']} seeds, with intervals over sentences and seeds"


def _ladder(record: Record) -> list[tuple[str, Record, str]]:
    """Title, number and kind of each reference, the model among them; the farthest from the truth first."""
    rows = [(rung_title(row), row, row["rung"]) for row in record["ladder"]]
    rows.append((record["model"], record["kl"], BASE))
    return sorted(rows, key=lambda row: -cast(float, row[1]["value"]))


def ladder_table(record: Record) -> ReportTable:
    """A row for each reference, the model among them."""
    rows = _ladder(record)
    kinds = {
        "window": "exact: no model that sees no more is nearer",
        "ngram": "counted in the same train split",
        "marginal": "what the model has more is its tokeniser's; from some sentences",
        "em": "knows the rules, and fits them to the train split",
        "floor": "closed form: what its trees teach one who knows the rules",
        BASE: "the model",
    }
    table = [TableRow([title, score_cell(row, ".4f"), kinds[kind]]) for title, row, kind in rows]
    return ReportTable(
        title=f"The ladder: references and {record['model']}, {record['sentences']:,} sentences",
        columns=("reference", "KL", "what it is"),
        rows=[*table, TableRow(["the truth", number_cell(0.0, ".4f"), "exact"])],
        text=(0, 2),
        note="KL(P‖Q), nats a token, on the same sentences",
    )


def plan_table(job: ExplainJob) -> ReportTable:
    """What each lever costs, before anything is trained."""
    kept, left_out = job.levers
    names = {lever.name for lever in kept}
    rows = []
    for name in job.settings.levers:
        lever = next((each for each in kept if each.name == name), None)
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
                    "run" if name in names else "left out",
                ]
            )
        )
    total = job.settings.trainings * sum(job.costs[lever.name].seconds for lever in kept)
    total += 0.0 if job.unknown is not None else (job.settings.trainings - 1) * job.base_cost.seconds
    return ReportTable(
        title=f"What explaining {job.model.name} costs",
        columns=("lever", "what differs", "parameters", "steps", "FLOPs", "time", ""),
        rows=rows,
        text=(0, 1, 6),
        note="Times are of one training, at the speed of its first steps on this machine; together"
        f" {duration(total)} of {job.settings.budget:g} min granted, with"
        f" {count(job.settings.trainings, 'training')} of each. Parameters are without word and position vectors.",
    )


def ladder_figure(record: Record, salt: str) -> str:
    """References as dots by their distance from the truth, the model among them."""
    rows = _ladder(record)
    colours = {"window": QUIET, "ngram": SECOND, "marginal": MODEL, "em": TRUTH, "floor": TRUTH, BASE: MODEL}
    with new_figure(7.6, 1.2 + 0.32 * len(rows), salt) as drawn:
        axes = drawn.subplots()
        for place, (_, row, kind) in enumerate(rows):
            low, high = row["low"], row["high"]
            if low is not None and high is not None:
                axes.plot([low, high], [-place, -place], color=colours[kind], linewidth=2.2)
            axes.plot([row["value"]], [-place], "o", color=colours[kind], markersize=8 if kind == BASE else 6)
            axes.axhline(-place, color="#E5E7EB", linewidth=0.7, zorder=0)
        axes.axvline(0.0, color=TRUTH, linestyle="--", linewidth=1.3)
        axes.annotate(
            "the truth",
            (0.0, 1.0),
            (3, -10),
            xycoords=("data", "axes fraction"),
            textcoords="offset points",
            fontsize=8,
            color=TRUTH,
        )
        axes.set_yticks([-i for i in range(len(rows))], [title for title, _, _ in rows])
        axes.set_ylim(-len(rows) + 0.4, 0.6)
        axes.set_xlabel("KL from the truth, nats a token")
        return to_svg(drawn, salt, f"References between word frequencies and the truth, and {record['model']}")


def lever_figure(record: Record, salt: str) -> str | None:
    """The change of each lever with its interval; None if none was run."""
    rows = record["levers"]
    if not rows:
        return None
    with new_figure(7.6, 1.2 + 0.36 * len(rows), salt) as drawn:
        axes = drawn.subplots()
        for place, row in enumerate(rows):
            change = row["change"]
            colour = MODEL if row["helps"] else QUIET
            axes.barh(-place, change["value"], color=colour, height=0.6, alpha=0.85)
            if change["low"] is not None:
                axes.plot([change["low"], change["high"]], [-place, -place], color="#111827", linewidth=1.4)
        axes.axvline(0.0, color="#111827", linewidth=0.8)
        whole = -record["kl"]["value"]
        axes.axvline(whole, color=TRUTH, linestyle="--", linewidth=1.3)
        axes.annotate(
            "the truth",
            (whole, 1.0),
            (3, -10),
            xycoords=("data", "axes fraction"),
            textcoords="offset points",
            fontsize=8,
            color=TRUTH,
        )
        names = [f"{TITLES[row['lever']]}\n{row['before']} → {row['after']}" for row in rows]
        axes.set_yticks([-i for i in range(len(rows))], names, fontsize=8)
        axes.set_ylim(-len(rows) + 0.4, 0.8)
        axes.set_xlabel("change of KL, nats a token; to the left is nearer to the truth")
        return to_svg(drawn, salt, f"What each lever changes for {record['model']}")
