"""Tables, figures and section of the explanation of a model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from truesource.evaluation.core.windows import window_name
from truesource.evaluation.explain.where import memory_sentence, places_table
from truesource.evaluation.show.figures import MODEL, QUIET, SECOND, TRUTH, to_svg
from truesource.evaluation.show.figures import figure as new_figure
from truesource.evaluation.show.records import Record
from truesource.evaluation.show.table import ReportTable, TableRow, number_cell, score_cell
from truesource.evaluation.show.words import brief, count, p_value
from truesource.evaluation.tokenisation.sums import SUMMED
from truesource.grammar.support.printable import listed
from truesource.lmtrain.levers import LEVERS, LeverName

if TYPE_CHECKING:
    from truesource.evaluation.core.run_view import MeasuredRun


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
    "fresh-already": "the model saw no sentence twice, so it had fresh ones",
    "whole-sentence": "nothing limits the words that the model sees",
    "no-size": "the architecture has no such setting",
    "no-parameter": "the module has no parameter of a name such as layers, hidden or context",
    "masked": "only a causal model can be trained like that",
    "single-tokens": "the architecture is trained on single tokens only",
    "pieces": "its pieces do not show where words end, so the next one has no known distribution",
    "few-words": "there are too few words to cut into pieces",
    "unknown-words": "the model reads rare words as <unk>, which pieces spell, so the two predict different things",
    "no-order": "the next word of transformed text has no known distribution",
    "over-budget": "it takes longer than was granted; raise the budget",
    "too-large": "the exact targets of the train split take more than 2 GiB",
    "not-trained-here": "truesource did not train the model, so it cannot retrain it with other settings",
    "other-text": "the model was trained on another text",
    "other-weights": "the model started from the weights of another, which levers do not",
}
BODY = Path(__file__).with_name("section.html.j2")
NO_TRAINING = ("not-trained-here", "other-text", "other-weights")  #: codes of errors that leave a model without levers
BASE = "model"  #: the training of the model itself, with another seed


def sentence(record: Record) -> str:
    """Return the most helpful change of a model in words, and the levers that were too expensive to try."""
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
    """Return why levers with larger changes are not recommended; empty without such levers."""
    larger = [row for row in tried if row["change"]["value"] < first["change"]["value"]]
    chance = [TITLES[row["lever"]] for row in larger if not row["helps"]]
    sentences = [
        f"{TITLES[row['lever']].capitalize()} help more ({-row['change']['value']:.3f} nats), but they need a known"
        " truth."
        for row in larger
        if row["helps"]
    ]
    if chance:
        sentences.append(f"A larger change by {listed(chance)} may be chance.")
    return "".join(f" {text}" for text in sentences)


def rung_title(row: Record) -> str:
    """Return what a reference is, for readers."""
    seen = row.get("seen")
    if row["rung"] == "window":
        return "word frequencies" if seen == 0 else f"best of {window_name(cast(int, seen))}"
    if row["rung"] == "ngram":
        return f"counted {cast(int, seen) + 1}-grams"
    return REFERENCES[row["rung"]]


def lever_table(record: Record) -> ReportTable:
    """Return a row for each lever that was run, the one that helps most first."""
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
    titles: dict[str, list[str]] = {}  # by reason
    for name in LEVERS:
        if name in record["left_out"]:
            titles.setdefault(REASONS[record["left_out"][name]], []).append(TITLES[name])
    reasons = "; ".join(f"{listed(names)}: {reason}" for reason, names in titles.items())
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
    """Return what intervals and p-values are about."""
    if record["seeds"] == 1:
        return "One training each, so intervals are about other sentences, not about other seeds"
    return f"Means over {record['seeds']} seeds, with intervals over sentences and seeds"


def _ladder(record: Record) -> list[tuple[str, Record, str]]:
    """Return the title, number and kind of each reference, the model among them; the farthest from the truth first."""
    rows = [(rung_title(row), row, row["rung"]) for row in record["ladder"]]
    rows.append((record["model"], record["kl"], BASE))
    return sorted(rows, key=lambda row: -cast(float, row[1]["value"]))


def ladder_table(record: Record) -> ReportTable:
    """Return a row for each reference, the model among them."""
    rows = _ladder(record)
    kinds = {
        "window": "exact: no model that sees as few words is nearer",
        "ngram": "counted in the same train split",
        "marginal": f"the difference to the model is due to its tokeniser; estimated from up to {SUMMED} sentences",
        "em": "knows the rules, and fits them to the train split",
        "floor": "closed form: a learner that knows the rules, from its trees",
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


def ladder_figure(record: Record, salt: str) -> str:
    """Draw references as dots by their distance from the truth, the model among them."""
    rows = _ladder(record)
    colours = {"window": QUIET, "ngram": SECOND, "marginal": MODEL, "em": TRUTH, "floor": TRUTH, BASE: MODEL}
    with new_figure(7.6, 1.2 + 0.32 * len(rows), salt) as canvas:
        axes = canvas.subplots()
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
        return to_svg(canvas, salt, f"References between word frequencies and the truth, and {record['model']}")


def lever_figure(record: Record, salt: str) -> str | None:
    """Draw the change of each lever with its interval; None if no lever was run."""
    rows = record["levers"]
    if not rows:
        return None
    with new_figure(7.6, 1.2 + 0.36 * len(rows), salt) as canvas:
        axes = canvas.subplots()
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
        return to_svg(canvas, salt, f"What each lever changes for {record['model']}")


def section(run: MeasuredRun) -> dict[str, object] | None:
    """Return what the template shows; None if nothing was explained."""
    records = run.of_models("explain")
    if not records:
        return None
    return {**content(records), "opening": [sentence(record) for record in records.values() if record["levers"]]}


def content(records: dict[str, Record]) -> dict[str, object]:
    """Return what the template shows of each model."""
    return {
        "models": [
            {
                "name": name,
                "sentence": sentence(record),
                "levers": lever_table(record) if record["levers"] else None,
                "reasons": lever_table(record).note,
                "lever_figure": lever_figure(record, f"levers-{name}"),
                "ladder": ladder_table(record) if record["ladder"] else None,
                "ladder_figure": ladder_figure(record, f"ladder-{name}"),
                "where": places_table(record),
                "memory": memory_sentence(record),
                "signature": record["kl"]["signature"],
            }
            for name, record in records.items()
        ]
    }
