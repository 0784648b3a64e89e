"""Measurement, tables and figure of `evaluate divergence`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NotRequired

import numpy as np
from pydantic import with_config
from typing_extensions import TypedDict

from truesource.evaluation.core.evaluator import EvaluatorOutput, Measure
from truesource.evaluation.core.run_view import MeasuredRun
from truesource.evaluation.core.score import ScoreRecord, keyed
from truesource.evaluation.core.setting import Setting
from truesource.evaluation.core.signature import parts_of
from truesource.evaluation.divergence import IN_WORDS, USUAL, By
from truesource.evaluation.divergence.blocks import END, PENN, read_classes
from truesource.evaluation.divergence.compare import compare_distributions
from truesource.evaluation.divergence.evaluator import DIVERGENCE, DivergenceSettings
from truesource.evaluation.divergence.reverse import reverse_divergence
from truesource.evaluation.show.declared import measures_table as table_of
from truesource.evaluation.show.declared import plain
from truesource.evaluation.show.figures import MODEL, QUIET, TRUTH, to_svg
from truesource.evaluation.show.figures import figure as new_figure
from truesource.evaluation.show.records import Record
from truesource.evaluation.show.table import Cell, ReportTable, TableRow, number_cell, score_cell, shown
from truesource.evaluation.tokenisation.sums import gains_of_sums
from truesource.generator.abilities import offers
from truesource.generator.language_model import DistributionModel
from truesource.generator.objectives import Objective
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.printable import listed
from truesource.grammar.support.records import STRICT, Count

OF_SAMPLES = (
    Measure("samples_impossible", "impossible sentences", meaning="share of the model's sentences"),
    Measure("samples_reverse_kl", "KL(Q‖P)", meaning="nats per token; infinite if the model expects the impossible"),
    Measure(
        "samples_reverse_kl_paired", "KL(Q‖P), sampled", meaning="estimated from the tokens of the model's sentences"
    ),
    Measure(
        "samples_reverse_kl_of_possible",
        "KL(Q‖P), possible sentences",
        meaning="nats per token, without the impossible sentences",
    ),
    Measure(
        "samples_reverse_kl_possible",
        "KL(Q‖P), possible tokens",
        meaning="Q restricted, word by word, to what the grammar allows",
    ),
    Measure("samples_impossible_mass", "Q of the impossible", meaning="probability, in sampled contexts"),
)
TITLES = {
    "position": "position",
    "length": "words in the sentence",
    "class": "class of the next word",
    "frequency": "frequency of the next word",
    "phrase": "lowest phrase over the next word",
    "ambiguity": "ambiguity of the sentence",
    "distance": "words back that matter",
    "probability": "true probability in the context",
}
#: meanings of the groups, or of tokens that are expected instead of counted
MEANINGS = {
    "class": "; tokens are expected under the truth",
    "frequency": "; frequency: expected share of the tokens of the language; tokens are expected under the truth",
    "phrase": "; tokens are expected under the truth, given the sentences",
    "ambiguity": "; ambiguity is the entropy of the trees of a sentence, nats",
    "distance": "; words back are the fewest from which the next word can be predicted nearly as well as from all",
    "probability": "; tokens are expected under the truth; parts of KL and masses are means over contexts",
}
OF_GROUPS = {
    "kl": "KL(P‖Q)",
    "kl_part": "part of KL(P‖Q)",
    "true_mass": "mass of P",
    "model_mass": "mass of Q",
    "js": "JS",
    "tv": "TV",
    "agreement": "same first",
}
OF_SEVERAL = {"probability": ("kl_part", "true_mass", "model_mass")}  #: measures shown for several models, if not KL
MASSES = ("true_mass", "model_mass")  #: masses of rare words are small
LEAST_TOKENS = 0.5  #: expected tokens of a group; tables would print fewer as 0
_IN_FILES = ("position", "length", "frequency")  #: tables that are only in files; two have figures
LEAST_SENTENCES = 10  #: positions and lengths of fewer sentences are not drawn
LEAST = 1e-8  #: lower end of the axes of the reliability diagram


def measure(model: DistributionModel, setting: Setting, settings: DivergenceSettings) -> EvaluatorOutput:
    """Compare distributions, also in contexts of sentences sampled from the model if given.

    Raises:
        InputError: samples cannot be used; or see `truesource.evaluation.divergence.compare.compare_distributions`.
    """
    samples, notes = (None, []) if settings.model_samples is None else read_samples(settings.model_samples)
    of_words, words = getattr(model, "of_words", None), setting.words
    gains = gains_of_sums(of_words, words, settings.sums) if settings.sums and of_words and words else None
    compared = compare_distributions(
        model,
        setting,
        top=settings.top_k,
        by=usual(setting, model.objective) if settings.by is None else settings.by,
        classes=PENN if settings.classes is None else read_classes(settings.classes),
        gains=gains,
    )
    reverse = {}
    if samples is not None:
        reverse = reverse_divergence(model, setting.known, samples, lengths=setting.lengths, seed=setting.seed)
    main = compared.scores.get("kl") or compared.scores["kl_infinite"]
    return EvaluatorOutput(
        scores=[*compared.as_scores(), *keyed(reverse.values(), model=compared.model, objective=compared.objective)],
        entries={
            "contexts": compared.contexts,
            "excluded": compared.excluded,
            "reliability": [column.tolist() for column in compared.reliability.curve()],
            **({} if samples is None else {"samples": len(samples)}),
        },
        impossible=((), compared.impossible.tolist()),
        notes=notes,
        title=f"{compared.model} ({compared.objective}), {compared.contexts:,} contexts",
        line=f"{main.name}|{main.signature}",
    )


def usual(setting: Setting, objective: Objective) -> list[By]:
    """Return the default tables of models of an objective: all for which the truth and the text have groups.

    Masked pieces have no groups of words.
    """
    text = setting.words or setting
    pieces = setting.words is not None and objective == "masked"
    missing = {
        "class": not offers(setting.known, "parses"),
        "phrase": pieces or not offers(text.known, "parses") or setting.transform is not None,
    }
    return [by for by in USUAL if not missing.get(by)]


def read_samples(path: Path) -> tuple[list[list[str]], list[str]]:
    """Read sentences of a model: a folder from `truesource generate`, or text with one sentence per line.

    Truncated sentences of a folder are excluded, with a note.

    Raises:
        InputError: the folder has no samples, no finished sentence, or samples by another decoding scheme.
    """
    if not path.is_dir():
        from truesource.generator.text_files import read_sentences

        return read_sentences(path), []
    from truesource.lmtrain.decoding.folder import SampleFolder

    folder = SampleFolder.load(path)
    how = folder.decoding
    if how.scheme != "ancestral" or how.temperature not in (None, 1.0):
        raise InputError(f"these were sampled by {how}, not from the model's own distribution; sample again", path)
    cut = folder.n_sentences - folder.n_finished
    notes = [f"{cut:,} of {folder.n_sentences:,} sentences of the model were truncated and are excluded"] if cut else []
    sentences = folder.sentences(cut=False)
    if not sentences:
        raise InputError("the model ended none of these sentences, so there is nothing to compare", path)
    return sentences, notes


def measures_table(models: Mapping[str, Record], title: str = "") -> ReportTable:
    """Build a row for each measure and a column for each model; infinite measures show a share of contexts.

    Args:
        models: stored results of each model, by heading of its column.
        title: title of the table.
    """
    note = "P: the truth, Q: the model; 95% intervals from resampling sentences"
    pieces = [name for name, record in models.items() if of_pieces(record)]
    masked = [name for name in pieces if models[name]["objective"] == "masked"]
    causal = [name for name in pieces if name not in masked]
    if causal and len(causal) < len(models):
        note += f"; tokens of {listed(causal)} are pieces, so compare models per word"
    if masked and len(models) > 1:
        note += f"; tokens of {listed(masked)} are masked pieces, which have no divergence per word"

    def cell(measure: Measure, record: Record) -> Cell | None:
        in_words = pieces and measure.name == "kl_per_word" and not of_pieces(record)
        return _cell("kl" if in_words else measure.name, measure.format, record)

    return table_of(DIVERGENCE, models, title, note, cell)


def of_pieces(record: Record) -> bool:
    """Return True if the tokens of a record are pieces of words."""
    return any("pieces" in parts_of(each.get("signature") or "") for each in record["records"])


def _cell(name: str, form: str, record: Record) -> Cell | None:
    """Build the cell of a value, or of the share of contexts in which it is infinite; None if unmeasured."""
    scores = plain(record)
    if name in scores:
        return score_cell(scores[name], form)
    share, finite = scores.get(f"{name}_infinite"), scores.get(f"{name}_where_finite")
    if share is None:
        return None
    rest = "" if finite is None else f"{shown(finite['value'], form)} in the other contexts"
    part = f"{share['value']:.2%}"
    if part == "100.00%" and finite is not None:
        part = "over 99.99%"
    return Cell(f"infinite in {part} of contexts", small=rest)


def group_table(by: str, models: Mapping[str, Record]) -> ReportTable:
    """Build a row for each group: all measures of one model, or the KL of several."""
    names = OF_GROUPS if len(models) == 1 else {name: OF_GROUPS[name] for name in OF_SEVERAL.get(by, ("kl",))}
    scores = {
        (name, record["name"], record["group"]): record
        for name, of_model in models.items()
        for record in of_model["records"]
        if record.get("by") == by
    }
    tokens = {group: record["tokens"] for (_, _, group), record in reversed(scores.items())}
    columns = [(model, name) for model in models for name in names if any(k[:2] == (model, name) for k in scores)]
    massive = {group for (_, name, group), record in scores.items() if name in MASSES and record["value"] > 0.0}
    every = list(dict.fromkeys(group for _, _, group in scores))
    groups = [group for group in every if tokens[group] >= LEAST_TOKENS or group in massive]
    few = f"; groups with fewer than {LEAST_TOKENS} expected tokens are excluded" if len(groups) < len(every) else ""
    pieces = all(map(of_pieces, models.values()))
    in_words = by in IN_WORDS and any(map(of_pieces, models.values()))
    heading = TITLES[by].replace("word", "piece") if pieces and not in_words else TITLES[by]
    if pieces and all(record["objective"] == "masked" for record in models.values()):
        heading = heading.replace("next piece", "masked piece")
    shares = ", and shares of contexts" if {name for _, name in columns} & {"tv", "agreement"} else ""
    return ReportTable(
        title=f"By {heading}",
        columns=(
            heading,
            "words" if in_words else "tokens",
            *(names[name] if len(models) == 1 else f"{model}\n{names[name]}" for model, name in columns),
        ),
        rows=[
            TableRow(
                (
                    "sentence ends" if group == END else group,
                    number_cell(tokens[group], ",.0f"),
                    *(
                        score_cell(scores.get((model, name, group)), ".3g" if name in MASSES else ".4f")
                        for model, name in columns
                    ),
                )
            )
            for group in groups
        ],
        note=f"nats per {'word' if in_words else 'token'}{shares}{MEANINGS.get(by, '')}{few}",
    )


def tables(record: Record, title: str) -> list[ReportTable]:
    """Build all tables of one model."""
    model = {record["model"]: record}
    groupings = [by for by in TITLES if any(each.get("by") == by for each in record["records"])]
    results = [measures_table(model, title), *(group_table(by, model) for by in groupings)]
    if "samples" in record:
        of_samples = replace(DIVERGENCE, measures=OF_SAMPLES)
        note = "P: the truth, Q: the model; 95% intervals from resampling sentences"
        results.append(table_of(of_samples, model, f"{record['samples']:,} sentences of {record['model']}", note))
    return results


@with_config(STRICT)
class DivergenceRecord(TypedDict):
    """``divergence/<model>.json``."""

    model: str
    objective: str
    contexts: Count
    excluded: Count
    reliability: list[list[float]]  #: of bins of Q: mean Q, mean P, number of events
    samples: NotRequired[Count]  #: number of input sentences from the model
    records: list[ScoreRecord]


def section(run: MeasuredRun) -> dict[str, object] | None:
    """Return tables and figures for the template; None if no full distributions were compared."""
    models = run.of_models("divergence", DivergenceRecord)
    if not models:
        return None
    signed = {name: plain(record) for name, record in models.items()}
    return {
        "opening": [sentence for record in nearest(list(models.values())) if (sentence := constructions(record))],
        "models": [
            {**record, "signature": (signed[name].get("kl") or signed[name]["kl_infinite"])["signature"]}
            for name, record in models.items()
        ],
        "measures": measures_table(models),
        "groups": [table for by in TITLES if by not in _IN_FILES for table in shared_tables(by, models) if table.rows],
        "figures": [(name, figure(record, f"divergence-{name}")) for name, record in models.items()],
    }


def shared_tables(by: str, models: Mapping[str, Record]) -> list[ReportTable]:
    """Return a table of all models; of pieces, which each model cuts otherwise, one of each model."""
    pieces = {} if by in IN_WORDS else {name: record for name, record in models.items() if of_pieces(record)}
    shared = {name: record for name, record in models.items() if name not in pieces}
    alone = [group_table(by, {name: record}) for name, record in pieces.items()]
    titled = [replace(table, title=f"{table.title}, {name}") for name, table in zip(pieces, alone, strict=True)]
    return [*([group_table(by, shared)] if shared else []), *titled]


def nearest(records: Sequence[Record]) -> list[Record]:
    """Select the nearest model to the truth of each objective and vocabulary, if its divergence is finite."""
    selected: dict[tuple[str, str], Record] = {}
    for record in records:
        kl = plain(record).get("kl")
        if kl is None:
            continue
        group = record["objective"], parts_of(kl.get("signature") or "").get("vocab", "")
        best = selected.get(group)
        if best is None or kl["value"] < plain(best)["kl"]["value"]:
            selected[group] = record
    return list(selected.values())


def constructions(record: Record) -> str:
    """Describe the phrase and the word class with the largest parts of a model's divergence; empty if unknown.

    The part of a group is its KL times its expected number of tokens.
    """
    parts, unit = [], "word" if of_pieces(record) else "token"
    for by, what in (("phrase", "words directly below {}"), ("class", "by class, {}")):
        rows = [r for r in record["records"] if r.get("by") == by and r["name"] == "kl" and r["group"] != END]
        whole = sum(r["value"] * r["tokens"] for r in rows)
        if not rows or whole <= 0.0:
            continue
        most = max(rows, key=lambda r: r["value"] * r["tokens"])
        share = most["value"] * most["tokens"] / whole
        ends = "" if most.get("low") is None else f" [{most['low']:.3f}, {most['high']:.3f}]"
        parts.append(f"{what.format(most['group'])} ({share:.0%} of it, {most['value']:.3f}{ends} nats per {unit})")
    return f"The largest parts of the divergence of {record['model']} are {listed(parts)}." if parts else ""


def figure(record: Record, salt: str) -> str:
    """Draw the reliability diagram, and a finite divergence by position and sentence length, as ``<svg>``."""
    tables = [(by, [row for row in record["records"] if _drawn(record, by, row)]) for by in ("position", "length")]
    tables = [(by, rows) for by, rows in tables if rows]
    with new_figure(9.4 if tables else 4.8, 4.2, salt) as canvas:
        if tables:
            parts: Any = canvas.subfigures(1, 2, width_ratios=(1.0, 1.05))
            _reliability(parts[0], record)
            _places(parts[1], record, tables)
        else:
            _reliability(canvas, record)
        return to_svg(canvas, salt, f"Divergence of {record['model']} from the truth")


def _reliability(canvas: Any, record: Record) -> None:
    q, p, number = (np.array(column, dtype=np.float64) for column in record["reliability"])
    contexts, error = record["contexts"], plain(record)["calibration_error"]["value"]
    visible = q >= LEAST
    q, p, number = q[visible], p[visible], number[visible]
    axes, below = canvas.subplots(2, 1, sharex=True, height_ratios=(3.2, 1.0))
    axes.plot([LEAST, 1], [LEAST, 1], color=TRUTH, linewidth=1.3, label="calibrated")
    seen = p >= LEAST
    axes.plot(q[seen], p[seen], color=MODEL, linestyle="none", marker="o", markersize=4, label="model")
    if not seen.all():
        axes.plot(
            q[~seen],
            np.full(int((~seen).sum()), LEAST),
            linestyle="none",
            marker="v",
            color=MODEL,
            markerfacecolor="white",
            markersize=5,
            clip_on=False,
            label=f"truth below {LEAST:.0e}",
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_ylim(LEAST, 1.6)
    axes.set_ylabel("true probability")
    axes.legend(loc="upper left")
    below.step(q, q * number / contexts, where="mid", color=MODEL, linewidth=1.4, label="model")
    below.step(q, p * number / contexts, where="mid", color=TRUTH, linewidth=1.1, label="truth")
    below.legend(loc="upper left", ncols=2)
    below.set_xlim(LEAST, 1.6)
    below.set_ylim(bottom=0.0)
    below.set_ylabel("mass of bin")
    below.set_xlabel("probability the model gives (bins of a quarter nat)")
    for panel in (axes, below):
        panel.grid(which="major")
        panel.minorticks_off()
    axes.set_title(f"calibration error {error:.4f}", fontsize=9, color=QUIET)


def _places(canvas: Any, record: Record, tables: Sequence[tuple[str, Sequence[Record]]]) -> None:
    from matplotlib.ticker import MaxNLocator

    panels = canvas.subplots(len(tables), 1, squeeze=False)[:, 0]
    scores = plain(record)
    whole = scores.get("kl") or scores.get("kl_where_finite")
    for axes, (by, rows) in zip(panels, tables, strict=True):
        x = [int(row["group"]) for row in rows]
        value = [row["value"] for row in rows]
        ends = np.array([[row["low"], row["high"]] for row in rows], dtype=np.float64)
        if whole is not None:
            axes.axhline(whole["value"], color=QUIET, linewidth=1.1, linestyle=(0, (4, 3)))
        axes.fill_between(x, ends[:, 0], ends[:, 1], color=MODEL, alpha=0.18, linewidth=0)
        axes.plot(x, value, color=MODEL, marker="o", markersize=3.6, linewidth=1.4)
        axes.set_ylim(bottom=0.0)
        axes.set_xlim(x[0] - 0.5, x[-1] + 0.5)
        unit = "piece" if of_pieces(record) else "word"
        position = "position in the sentence" + (", in pieces" if unit == "piece" else "")
        axes.set_xlabel(position if by == "position" else f"{unit}s in the sentence")
        axes.set_ylabel(f"KL, nats per {'piece' if unit == 'piece' else 'token'}")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.grid(axis="y")
    if whole is not None:
        panels[0].set_title(f"dashed: mean {whole['value']:.4f}; bands: 95%", fontsize=9, color=QUIET)


def _drawn(record: Record, by: str, row: Record) -> bool:
    """Return True if a record is a divergence at a position or length with enough sentences for an interval.

    A sentence has one context per position, and in total one per word (plus its end, if the model is causal).
    """
    if row.get("by") != by or row["name"] != "kl":
        return False
    each = 1 if by == "position" else int(row["group"]) + (record["objective"] == "causal")
    return bool(row["tokens"] >= LEAST_SENTENCES * each)
