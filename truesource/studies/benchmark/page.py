"""Writing the page: tables, figures and what each language tests, in one self-contained file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import cycle, product
from pathlib import Path
from typing import Any, Literal

import numpy as np

from truesource.evaluation.show.figures import QUIET, SERIES, TRUTH, figure, plain_log_axis, round_ticks, to_svg
from truesource.evaluation.show.table import ABSENT, ReportTable, score_cell, shown
from truesource.evaluation.show.words import brief, chance, number
from truesource.generator.objectives import Objective
from truesource.grammar.support.atomic_files import write_text
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.printable import one_line
from truesource.report.environment import render, script_hash
from truesource.studies.benchmark.results import REFERENCES, BenchmarkResults
from truesource.studies.benchmark.standings import (
    SPEC,
    THRESHOLDS,
    Standing,
    Standings,
    is_reference,
    share_differences,
)
from truesource.studies.benchmark.suite import Suite
from truesource.studies.benchmark.tables import headline_table, language_table, models_table, remarks, suite_signature

#: of shares: where a colour begins, its name and the colour; what the model has learned is blue, the rest is not
SHADES = (
    (-np.inf, "below \N{MINUS SIGN}1", "#A8508F"),
    (-1.0, "\N{MINUS SIGN}1 to 0", "#E8C4DC"),
    (0.0, "0 to .25", "#F7FBFF"),
    (0.25, "to .5", "#DCEBF7"),
    (0.5, "to .75", "#B3D3EA"),
    (0.75, "to .9", "#7FB2D5"),
    (0.9, "to .95", "#4A90C2"),
    (0.95, "to .99", "#1F6BA5"),
    (0.99, "to 1", "#0B3F70"),
)
NOTHING = "#F1F2F4"  #: colour of a cell that was not measured
INK, PAPER = "#111827", "#FFFFFF"  #: of numbers on pale and on dark colours
DARK = ("#A8508F", "#1F6BA5", "#0B3F70")
WIDTH = 9.4  #: inches, at least
COLUMN, NAMES = 0.56, 1.9  #: inches that a language and the names of models need
UPRIGHT = 10  #: maximum number of languages with upright names
PANELS = 4  #: of learning curves in a row
DASHES = ("-", (0, (4, 1.5)), (0, (1, 1.2)))
LONG_DASHES = (0, (6, 4))  #: of the line of the word frequencies
PLACES = 3  #: of shares, which are coloured as they are written
SECTIONS = {
    "standings": "Standings",
    "matrix": "Models and languages",
    "curves": "Learning curves",
    "languages": "Languages",
    "models": "Models",
    "reading": "How to read",
    "submitting": "How to submit",
}
TERMS = {
    "share learned": "One less the KL of the model over the KL of the word frequencies, in the same contexts; no unit."
    " 1 is the truth, 0 is word frequencies, and below 0 is worse than them.",
    "longer strings": "The share at positions beyond the longest string of training, where the truth is known too; no"
    " unit.",
    "KL": "Exact Kullback-Leibler divergence from the truth to the model, mean over contexts; bits a token in tables,"
    " nats a token in learning curves. 0 is the truth.",
    "relative PPL": "Perplexity of the model over the truth's, in expectation: exp of the KL in nats; no unit."
    " 1 is the truth.",
    "wrong mass": "Probability that the model gives to what cannot follow, mean over contexts; 0 to 1. 0 is the truth.",
    "calibration error": "Mean distance between a probability of the model and how often such events occur; 0 to 1."
    " 0 is perfect.",
    "tokens to 0.1 nats": "Training tokens until the KL on the split dev is first at most 0.1 nats a token; the same"
    " for 0.01. Geometric mean over seeds; more than N: not every seed got there within N tokens.",
    "seeds": "Trained models that a number is the mean of. Brackets and small numbers are 95% intervals over other test"
    " strings and other seeds.",
    "rank": "By the headline, among models measured on all languages. Models whose intervals overlap may differ by"
    " chance.",
}
FOLDER = Path(__file__).parent
PHONE, DESK = 72, 106  #: pixels of the page for an inch of a figure, at least and at most


def heat_map(standings: Standings, part: Literal["test", "longer"] = "test", *, own: Sequence[str] = ()) -> str | None:
    """Draw the share of information learned: a row a model, a column a language, with the number in each cell.

    Args:
        standings: of models of one objective.
        part: ``test``, or ``longer`` for strings longer than the training strings.
        own: names of models that are marked as the reader's.

    Returns:
        An ``<svg>`` element; None: nothing of this part was measured.
    """
    shares = [[_share(row, name, part) for name in standings.languages] for row in standings.rows]
    if all(value is None for row in shares for value in row):
        return None
    height = 0.27 * len(shares)
    salt = f"shares{standings.objective}{part}"
    with figure(heat_map_width(standings), height + 1.3, salt) as fig:
        axes, legend = fig.subplots(2, 1, height_ratios=[height, 0.2])
        for (y, row), (x, _) in product(enumerate(shares), enumerate(standings.languages)):
            _square(axes, x, y, row[x])
        axes.set_xlim(-0.5, len(standings.languages) - 0.5)
        axes.set_ylim(len(shares) - 0.5, -0.5)
        axes.xaxis.tick_top()
        _name_columns(axes, standings.languages)
        axes.set_yticks(range(len(shares)), [_label(row, standings, own) for row in standings.rows])
        _bare(axes)
        _shade_legend(legend)
        what = "longer strings" if part == "longer" else "test strings"
        return to_svg(fig, salt, f"Share of information learned by {standings.objective} models, {what}")


def heat_map_width(standings: Standings) -> float:
    """Return the width of a heat map, inches."""
    return max(WIDTH, NAMES + COLUMN * len(standings.languages))


def learning_curves(results: BenchmarkResults, standings: Standings, *, own: Sequence[str] = ()) -> str | None:
    """Draw the KL in nats a token over training tokens: a panel a language, a line a model, logarithms on both axes.

    Args:
        results: source of the standings.
        standings: of models of one objective.
        own: names of models whose lines are thick.

    Returns:
        An ``<svg>`` element; None: no model has a curve.
    """
    lines = dict(zip(_trained(standings), cycle(product(DASHES, SERIES)), strict=False))
    models = [row for row in standings.rows if row.name in lines]
    if not models:
        return None
    across = min(PANELS, len(standings.languages))
    down = -(-len(standings.languages) // across)
    salt = f"curves{standings.objective}"
    with figure(WIDTH, 2.1 * down + 0.35 + 0.2 * -(-len(models) // 6), salt) as fig:
        panels = fig.subplots(down, across, squeeze=False).ravel()
        for axes in panels[len(standings.languages) :]:
            axes.set_visible(False)
        for number, (axes, name) in enumerate(zip(panels, standings.languages, strict=False)):
            _panel(axes, models, name, lines, own)
            _bounds(axes, results, name, standings)
            axes.set_title(name)
            if number % across == 0:
                axes.set_ylabel("KL, nats a token")
            if number >= len(standings.languages) - across:
                axes.set_xlabel("training tokens")
        _line_legend(fig, models, standings, lines, own)
        return to_svg(fig, salt, f"Learning curves of {standings.objective} models on each language")


def shade(share: float) -> str:
    """Return the colour of a share."""
    return next(colour for low, _, colour in reversed(SHADES) if round(share, PLACES) >= low)


def _share(row: Standing, language: str, part: str) -> float | None:
    standing = row.languages.get(language)
    contrast = None if standing is None else standing.longer_share if part == "longer" else standing.share
    return None if contrast is None else contrast.value


def _square(axes: Any, x: int, y: int, share: float | None) -> None:
    from matplotlib.patches import Rectangle

    colour = NOTHING if share is None else shade(share)
    axes.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, facecolor=colour, edgecolor=PAPER, linewidth=1.2))
    text = ABSENT if share is None else shown(share, f".{PLACES}f" if abs(share) < 10.0 else ".4g")
    ink = PAPER if colour in DARK else INK
    axes.text(x, y, text, ha="center", va="center_baseline", color=ink, fontsize=8.5)


def _name_columns(axes: Any, names: Sequence[str]) -> None:
    if len(names) > UPRIGHT:
        axes.set_xticks(range(len(names)), names, rotation=35, ha="left", rotation_mode="anchor")
    else:
        axes.set_xticks(range(len(names)), [name.replace("-", "-\n") for name in names])


def _shade_legend(axes: Any) -> None:
    from matplotlib.patches import Rectangle

    for x, (_, text, colour) in enumerate(SHADES):
        axes.add_patch(Rectangle((x - 0.5, -0.5), 1, 1, facecolor=colour, edgecolor="#9CA3AF", linewidth=0.5))
        ink = PAPER if colour in DARK else INK
        axes.text(x, 0, text, ha="center", va="center_baseline", color=ink, fontsize=8)
    axes.set_xlim(-0.5, len(SHADES) - 0.5)
    axes.set_ylim(-0.5, 0.5)
    axes.set_xticks([])
    axes.set_yticks([])
    _bare(axes)


def _bare(axes: Any) -> None:
    axes.tick_params(length=0, labelcolor="#1f2937")
    for spine in axes.spines.values():
        spine.set_visible(False)


def _label(row: Standing, standings: Standings, own: Sequence[str]) -> str:
    notes = remarks(row, standings, own)
    return one_line(row.name) + (f" ({', '.join(notes)})" if notes else "")


def _trained(standings: Standings) -> list[str]:
    """Return the names of the models with curves that can be drawn, the best first."""
    rows = [row for row in standings.rows if not is_reference(row)]
    return [row.name for row in rows if any(_points(standing.curve) for standing in row.languages.values())]


def _points(curve: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the points that logarithmic axes can show."""
    return [(tokens, kl) for tokens, kl in curve if tokens > 0 and kl > 0.0]


def _panel(axes: Any, models: Sequence[Standing], language: str, lines: Any, own: Sequence[str]) -> None:
    shown_points: list[tuple[float, float]] = []
    for row in models:
        standing = row.languages.get(language)
        points = [] if standing is None else _points(standing.curve)
        if not points:
            continue
        shown_points += points
        dashes, colour = lines[row.name]
        marker = "o" if len(points) == 1 else ""
        width = 2.6 if row.name in own else 1.3
        axes.plot(
            *zip(*points, strict=True), color=colour, linestyle=dashes, linewidth=width, marker=marker, markersize=4
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    if not shown_points:
        return
    for axis, limits, values in (
        (axes.xaxis, axes.set_xlim, [x for x, _ in shown_points]),
        (axes.yaxis, axes.set_ylim, [*(y for _, y in shown_points), *THRESHOLDS[:1]]),
    ):
        margin = max(1.15, (max(values) / min(values)) ** 0.06)
        low, high = min(values) / margin, max(values) * margin
        limits(low, high)
        _ticks(axis, round_ticks(low, high, most=4))


def _ticks(axis: Any, ticks: list[float]) -> None:
    from matplotlib.ticker import FixedFormatter

    plain_log_axis(axis, ticks)
    axis.set_major_formatter(FixedFormatter([brief(tick) for tick in ticks]))


def _bounds(axes: Any, results: BenchmarkResults, language: str, standings: Standings) -> None:
    """Draw the line of the word frequencies, and mark the truth."""
    record = results["languages"].get(language)
    truth = None if record is None else record["truth"].get(standings.objective)
    if truth is None or not axes.lines:
        axes.text(0.5, 0.5, "not measured", ha="center", color=QUIET, transform=axes.transAxes)
        axes.set_xticks([])
        axes.set_yticks([])
        return
    information = sum(truth["test"]["information"]) / sum(truth["test"]["contexts"])
    low, high = axes.get_ylim()
    axes.set_ylim(low, max(high, information * 1.2))
    axes.axhline(information, color=INK, linestyle=LONG_DASHES, linewidth=1.0)
    axes.grid(axis="y")
    axes.text(0.03, 0.03, "\N{DOWNWARDS ARROW} the truth: 0", color=TRUTH, fontsize=8, transform=axes.transAxes)


def _line_legend(fig: Any, models: Sequence[Standing], standings: Standings, lines: Any, own: Sequence[str]) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D(
            [], [], color=lines[row.name][1], linestyle=lines[row.name][0], linewidth=2.6 if row.name in own else 1.3
        )
        for row in models
    ]
    handles.append(Line2D([], [], color=INK, linestyle=LONG_DASHES, linewidth=1.0))
    names = [*(_label(row, standings, own) for row in models), "word frequencies of the truth"]
    legend = fig.legend(
        handles, [str(i) for i in range(len(names))], loc="outside upper center", ncols=min(6, len(names))
    )
    for text, name in zip(legend.get_texts(), names, strict=True):  # a name may begin with _, which hides a label
        text.set_text(name)


def answer(results: BenchmarkResults, found: Sequence[Standings], own: Sequence[str] = ()) -> list[str]:
    """Return the best model of each objective, and the reader's own, a sentence each."""
    sentences = []
    for each in found:
        complete = [(row, row.share) for row in each.rows if row.share is not None and not is_reference(row)]
        if not complete:
            continue
        row, share = complete[0]
        learned = score_cell(share.interval._asdict(), SPEC)
        which = f"best of {len(complete)} {each.objective} models," if len(complete) > 1 else f"{each.objective} model"
        comma = "," if len(complete) > 1 else ""
        text = f"The {which} {row.name}{comma} learned {learned} of the information"
        if len(complete) > 1:
            next_one, *_ = share_differences(results, each, row.name)
            text += f"; that it learned more than {next_one.model} "
            text += chance(next_one.p_adjusted, next_one.tests, -next_one.contrast.value)
        sentences.append(f"{text}.")
        sentences += [
            f"Yours, {mine.name}, learned {score_cell(held.interval._asdict(), SPEC)}: rank {rank} of {len(complete)}."
            for rank, (mine, held) in enumerate(complete, start=1)
            if mine.name in own and len(complete) > 1
        ]
    return sentences


def facts(results: BenchmarkResults, suite: Suite, name: str, objectives: Sequence[Objective]) -> dict[str, str]:
    """Return the known facts of a language, by their names; the truth for models of these objectives."""
    language = suite.languages[name]
    entries = {
        "kind": language.kind,
        "reference": language.language,
        "words in a string": language.lengths,
        "in longer strings": language.longer or "there are none",
    }
    record = results["languages"].get(name)
    if record is None:
        return entries
    entries |= {
        "training strings": f"{record['train_sentences']:,}",
        "training tokens": f"{record['train_tokens']:,}",
    }
    for objective in objectives:
        if objective not in record["truth"]:
            continue
        test = record["truth"][objective]["test"]
        information = sum(test["information"]) / max(sum(test["contexts"]), 1)
        entries |= {
            f"entropy ({objective})": f"{number(test['entropy'], 3)} nats a token",
            f"information of the context ({objective})": f"{number(information, 3)} nats a token",
            f"impossible next words ({objective})": f"{test['impossible']:.1%}",
        }
    return entries


def write_page(
    results: BenchmarkResults,
    suite: Suite,
    path: Path,
    *,
    found: Sequence[Standings],
    differences: Sequence[ReportTable] = (),
    own: Sequence[str] = (),
) -> None:
    """Write the page of a benchmark, completely or not at all: one file of HTML.

    Args:
        results: of models on the suite.
        suite: their suite.
        path: of the page.
        found: standings of the models, see `truesource.studies.benchmark.standings.standings`.
        differences: see `truesource.studies.benchmark.standings.difference_tables`.
        own: names of models that are marked as the reader's.

    Raises:
        InputError: the results are of another suite, or the page cannot be written.
    """
    made_on = results["suite"]
    if (made_on["name"], made_on["version"], made_on["digest"]) != (suite.name, suite.version, suite.digest):
        raise InputError(
            f"these results are of suite {made_on['name']}-v{made_on['version']} ({made_on['digest']}), and the page is"
            f" of {suite.label} ({suite.digest}); name the suite that they were made on",
            code="other-suite",
        )
    script = (FOLDER / "sort.js").read_text(encoding="utf-8")
    page = render(
        FOLDER / "page.html.j2",
        path,
        templates={"style.css": FOLDER / "style.css"},
        results=results,
        suite=suite,
        sections=SECTIONS,
        terms=TERMS,
        answer=answer(results, found, own),
        competing=sum(not is_reference(row) for each in found for row in each.rows),
        objectives=[_objective(results, each, suite, own) for each in found],
        languages=[_language(results, found, suite, name, own) for name in suite.languages],
        differences=differences,
        models=models_table(found, own=own),
        references=REFERENCES,
        script=script,
        script_hash=script_hash(script),
    )
    write_text(path, page)


def _objective(results: BenchmarkResults, found: Standings, suite: Suite, own: Sequence[str]) -> dict[str, object]:
    return {
        "title": f"{found.objective.capitalize()} models",
        "headline": _unsigned(headline_table(found, suite, own=own)),
        "signature": suite_signature(found, suite),
        "test": heat_map(found, own=own) or "",
        "least": round(PHONE * heat_map_width(found)),
        "most": round(DESK * heat_map_width(found)),
        "longer": heat_map(found, "longer", own=own),
        "curves": learning_curves(results, found, own=own),
    }


def _language(
    results: BenchmarkResults, found: Sequence[Standings], suite: Suite, name: str, own: Sequence[str]
) -> dict[str, object]:
    tables = [
        replace(language_table(each, suite, name, own=own), title=f"{each.objective.capitalize()} models")
        for each in found
    ]
    return {
        "name": name,
        "tests": suite.languages[name].tests,
        "facts": facts(results, suite, name, [each.objective for each in found]),
        "tables": [_unsigned(table) for table in tables if table.rows],
    }


def _unsigned(table: ReportTable) -> ReportTable:
    """Return a table without the signatures of its rows; the page shows one for each objective."""
    return replace(table, rows=[replace(row, signature="") for row in table.rows])
