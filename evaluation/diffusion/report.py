"""Measurement, tables and figure of `evaluate diffusion`."""

from __future__ import annotations

from collections.abc import Mapping

from truesource.evaluation.core.evaluator import EvaluatorOutput
from truesource.evaluation.core.run_view import MeasuredRun
from truesource.evaluation.core.setting import Setting
from truesource.evaluation.diffusion.evaluator import DIFFUSION, DiffusionSettings
from truesource.evaluation.diffusion.measure import filling, left_to_right
from truesource.evaluation.show.declared import measures_table, section_of_measures
from truesource.evaluation.show.figures import QUIET, SERIES, to_svg
from truesource.evaluation.show.figures import figure as new_figure
from truesource.evaluation.show.records import Record
from truesource.evaluation.show.table import ReportTable, TableRow, score_cell
from truesource.generator.abilities import require
from truesource.generator.language_model import LanguageModel

ORDER_LABELS = {"random": "random", "confidence": "surest first", "blocks": "from the left"}
COLUMNS = ("kl", "parallel", "denoising", "invalid")


def measure(model: LanguageModel, setting: Setting, settings: DiffusionSettings) -> EvaluatorOutput:
    """Fill sentences; see `truesource.evaluation.diffusion.measure.filling`. A causal model: `left_to_right`."""
    if model.objective == "causal":
        result = left_to_right(model, setting, samples=settings.samples)
    else:
        result = filling(
            require(model, "denoising", "evaluate diffusion"),
            setting,
            steps=settings.steps,
            orders=settings.orders,
            samples=settings.samples,
            short=settings.short,
        )
    return EvaluatorOutput(
        scores=result.as_scores(),
        entries={"sentences": result.sentences},
        impossible=((), result.impossible.tolist()),
        title=f"{result.model}, {result.sentences:,} sentences",
        line=str(result.scores["kl"]) if "kl" in result.scores else "",
    )


def samplers_of(record: Record) -> dict[tuple[str, str], dict[str, dict[str, Record]]]:
    """Return the numbers by name, for each order and number of steps, of ``model`` and ``exact``."""
    samplers: dict[tuple[str, str], dict[str, dict[str, Record]]] = {}
    for each in record["records"]:
        if each.get("by") == "sampler":
            of_sampler = samplers.setdefault((each["order"], each["fills"]), {})
            of_sampler.setdefault(each["denoiser"], {})[each["name"]] = each
    return samplers


def steps_table(record: Record, title: str) -> ReportTable:
    """Return a row for each sampler."""
    rows = []
    for (order, fills), sides in samplers_of(record).items():
        model, exact = sides["model"], sides["exact"]
        cells = [score_cell(model.get(name), ".3f") for name in COLUMNS]
        cells += [score_cell(exact.get(name), ".3f") for name in ("kl", "invalid")]
        rows.append(TableRow((ORDER_LABELS[order], fills, *cells)))
    return ReportTable(
        title=title,
        columns=(
            "order",
            "steps",
            "KL",
            "of it parallel",
            "of it model",
            "impossible",
            "KL, exact",
            "impossible, exact",
        ),
        rows=rows,
        text=(0, 1),
        note="all steps: one word a step; KL: truth‖sampler, nats a sentence, given its length; parallel: what exact"
        " probabilities cost on the same path; impossible: share of sampled sentences that the grammar cannot make;"
        " exact: a sampler with exact probabilities; 95% intervals",
    )


def tables(record: Record, title: str) -> list[ReportTable]:
    """Return the measures of one model, and its samplers."""
    measures = measures_table(DIFFUSION, {record["model"]: record}, title)
    return [measures, steps_table(record, record["model"])] if samplers_of(record) else [measures]


def section(run: MeasuredRun) -> dict[str, object] | None:
    """Return tables and figures for the template; None if nothing was measured."""
    content = section_of_measures(DIFFUSION, run)
    if content is None:
        return None
    records = run.of_models("diffusion")
    return {
        **content,
        "steps": {name: steps_table(record, "") for name, record in records.items() if samplers_of(record)},
    }


def figure(record: Record, salt: str) -> str | None:
    """Draw KL and the share of impossible sentences against the number of steps, of model and exact probabilities."""
    samplers = samplers_of(record)
    if not samplers:
        return None
    orders = list(dict.fromkeys(order for order, _ in samplers))
    fills = list(dict.fromkeys(steps for _, steps in samplers))
    with new_figure(9.4, 3.8, salt) as canvas:
        for axes, name, label in zip(
            canvas.subplots(1, 2),
            ("kl", "invalid"),
            ("KL(truth‖sampler), nats a sentence", "impossible sentences"),
            strict=True,
        ):
            for order in orders:
                color = SERIES[orders.index(order) % len(SERIES)]
                for side, style in (("model", "-"), ("exact", (0, (4, 2)))):
                    points = _points(samplers, order, fills, side, name)
                    if points:
                        named = f"{ORDER_LABELS[order]}, {'model' if side == 'model' else 'exact'}"
                        axes.plot(
                            *zip(*points, strict=True),
                            color=color,
                            linestyle=style,
                            marker="o",
                            markersize=3.5,
                            label=named,
                        )
            axes.set_xticks(range(len(fills)), fills)
            axes.set_xlabel("steps (all: one word a step)")
            axes.set_ylabel(label)
            axes.set_ylim(bottom=0.0)
            axes.grid(axis="y", color=QUIET, alpha=0.3)
        canvas.legend(*axes.get_legend_handles_labels(), loc="outside upper center", ncols=3, handlelength=3.2)
        return to_svg(canvas, salt, f"Distance of {record['model']} from the truth by the number of steps")


def _points(
    samplers: Mapping[tuple[str, str], Mapping[str, Mapping[str, Record]]],
    order: str,
    fills: list[str],
    side: str,
    name: str,
) -> list[tuple[int, float]]:
    """Return the place of a number of steps, and a value there."""
    scores = [(i, samplers.get((order, steps), {}).get(side, {}).get(name)) for i, steps in enumerate(fills)]
    return [(i, float(each["value"])) for i, each in scores if each is not None]
